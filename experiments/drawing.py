"""What the figures of all papers share: looks, panels, one legend, and words on hidden curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase
from textwrap import fill
from typing import Any, TypeVar

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator

from experiments import style
from experiments.registry import Table

_Value = TypeVar("_Value")
Looks = Mapping[Any, tuple[str, dict[str, Any]]]
"""Label and keywords of ``axes.plot`` for the curve of each value of a column, or each column."""
_MARKERS = "os^Dv<>ph"
# Width of a letter over its height, in text that is broken into lines.
_LETTER = 0.42
# Inches: figures are narrow up to the first; the height of others has room for such a legend.
_NARROW, _ROOM = 4.0, 0.5


def line(role: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return keywords of a curve with markers, in the look of a role."""
    return style.ROLES[role].line | changes


def beside(role: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return keywords of a curve without markers, in the colour and dash of a role."""
    return line(role, marker="") | changes


def points(role: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return keywords of points without a line, in the colour and marker of a role."""
    return line(role, linestyle="none") | changes


def curves(values: Iterable[_Value]) -> Mapping[_Value, dict[str, Any]]:
    """Return keywords of ``axes.plot`` for the curves of a parameter: a colour and a marker each.

    Few colours between dark and light are told apart by eye alone; markers do it in grey too.
    """
    known = list(dict.fromkeys(values))
    return {
        value: {"color": colour, "marker": _MARKERS[place % len(_MARKERS)]}
        for place, (value, colour) in enumerate(zip(known, style.series(len(known)), strict=True))
    }


def panels(
    count: int,
    columns: int = 2,
    across: str = "",
    up: str = "",
    **shape: Any,  # noqa: ANN401
) -> tuple[style.PrintedFigure, list[Axes]]:
    """Return a figure of so many columns at most, and the axes of its panels, with their names.

    Args:
        count: of panels.
        columns: of panels at most.
        across: name of the horizontal axes; of a shared one it is below the lowest panels only.
        up: name of the vertical axes; written once where there are several.
        **shape: of `experiments.style.figure`.
    """
    columns = min(columns, count)
    figure, grid = style.figure(math.ceil(count / columns), columns, **shape)
    made = list(grid.flat)
    for spare in made[count:]:
        spare.remove()
    del made[count:]
    for place, axes in enumerate(made):
        if place + columns >= count or not shape.get("sharex"):
            axes.set_xlabel(across)
            axes.tick_params(labelbottom=True)
        if place % columns == 0 and (shape.get("sharey") or count == 1):
            axes.set_ylabel(up)
    if up and count > 1 and not shape.get("sharey"):
        # The legend is below: the middle of the panels is above that of the figure.
        figure.supylabel(up, y=0.58, fontsize="medium")
    return figure, made


def draw(axes: Axes, table: Table, across: str, up: str, looks: Looks, by: str) -> None:
    """Draw one column against another: a curve for each value of a third that the table has."""
    for value, (label, look) in looks.items():
        part = table.select(**{by: value})
        if part.rows:
            axes.plot(part.column(across), part.column(up), label=label, **look)


def plain_ticks(*scales: Axis, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Write plain numbers on logarithmic axes, at these multiples of powers of ten."""
    for scale in scales:
        scale.set_major_locator(LogLocator(subs=subs))
        scale.set_major_formatter("{x:g}")
        scale.set_minor_locator(NullLocator())


def by_panel(
    table: Table,
    names: Sequence[str],
    title: str,
    *layout: Any,  # noqa: ANN401
    **shape: Any,  # noqa: ANN401
) -> tuple[style.PrintedFigure, dict[Axes, Table]]:
    """Return a figure with a panel for each case of some columns, and the rows of each panel.

    Args:
        table: what is drawn.
        names: of the columns whose cells tell the panels apart.
        title: of each panel, with names of columns in braces.
        *layout: columns of panels, and the names of their axes, as in `panels`.
        **shape: likewise.
    """
    first: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.records:
        first.setdefault(tuple(row[name] for name in names), row)
    figure, each = panels(len(first), *layout, **shape)
    parts = [table.select(**dict(zip(names, case, strict=True))) for case in first]
    for axes, row in zip(each, first.values(), strict=True):
        axes.set_title(title.format(**row))
    return figure, dict(zip(each, parts, strict=True))


def draw_columns(
    axes: Axes,
    table: Table,
    across: str,
    curves: Looks,
    *,
    least: float = -math.inf,
) -> None:
    """Draw columns of a table against another one: of each its label, and keywords of its curve.

    A curve has a gap where its column is empty, or not above ``least``.
    """
    for column, (label, look) in curves.items():
        values = [
            math.nan if value is None or value <= least else value for value in table.column(column)
        ]
        axes.plot(table.column(across), values, label=label, **look)


def whole_row(axes: Axes) -> None:
    """Let a panel take its whole row."""
    grid = axes.get_gridspec()
    place = axes.get_subplotspec()
    if grid is not None and place is not None:
        axes.set_subplotspec(grid[place.rowspan.start, :])


def columns_for(count: int) -> int:
    """Return how many panels stand side by side: at most four, few places empty."""
    if count <= 4:
        return count
    return min((4, 3), key=lambda columns: (-count % columns, -columns))


def finish(figure: style.PrintedFigure, panels: Sequence[Axes], *notes: str) -> style.PrintedFigure:
    """Letter the panels, write one legend for all below them, and return the figure.

    Each label is told once, in as few lines as fit. Above them stand the remarks, if the style
    shows them: the notes, and which curves lie under others, and where.

    Titles, limits and scales of the panels must be set; the notes are on all of them.
    """
    style.letter(panels)
    told: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            told.setdefault(label, handle)
    letters = 72 * figure.get_figwidth() / (_LETTER * float(rcParams["font.size"]))
    remarks = figure.remark(*notes, *_hidden(panels))
    said = [fill(remark, int(letters)) for remark in remarks]
    for rows in range(1, len(told) + 1):
        made = figure.legend(
            told.values(),
            told.keys(),
            loc="outside lower center",
            ncols=math.ceil(len(told) / rows),
            title="\n".join(said) or None,
            title_fontsize="small",
        )
        size = made.get_window_extent()
        if rows == len(told) or size.width <= figure.bbox.width:
            # The panels keep their height.
            room = _ROOM if figure.get_figwidth() > _NARROW else 0.0
            figure.set_figheight(figure.get_figheight() + max(0.0, size.height / figure.dpi - room))
            break
        made.remove()
    return figure


def _hidden(panels: Sequence[Axes]) -> list[str]:
    """Return a sentence for each curve that hides others: "A and B lie under C in (a), (b)"."""
    places: dict[tuple[str, str], list[str]] = {}
    drawn: dict[str, int] = {}
    for letter, axes in zip(ascii_lowercase, panels, strict=False):
        axes.autoscale_view()
        over = {str(a.get_label()): str(b.get_label()) for a, b in style.hidden(axes)}
        for each in axes.get_lines():
            drawn[str(each.get_label())] = drawn.get(str(each.get_label()), 0) + 1
        for label, last in over.items():
            # What hides it may be hidden itself.
            while last in over:
                last = over[last]
            places.setdefault((label, last), []).append(f"({letter})")
    under: dict[tuple[str, str], list[str]] = {}
    for (label, last), at in places.items():
        everywhere = len(at) == drawn[label]
        under.setdefault((last, "" if everywhere else f" in {', '.join(at)}"), []).append(label)
    said = []
    for (last, where), some in under.items():
        names = " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)
        said.append(f"{names} {'lie' if len(some) > 1 else 'lies'} under {last}{where}")
    return said


def decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around a range, so that a logarithmic axis has two ticks or more."""
    least, most = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**least, 10.0 ** max(most, least + 1)


def nested(place: int, count: int) -> dict[str, Any]:
    """Return widths of line and marker for one of several curves, drawn one over the other.

    What is drawn first is wider, so that it is seen beside whatever lies on it.
    """
    if place == 0 and count > 1:
        return {"linewidth": 2.0, "markersize": 4.4}
    over_it = (count - 1 - place) / max(1, count - 2)
    return {"linewidth": 0.8 + 0.3 * over_it, "markersize": 2.3 + 0.9 * over_it}
