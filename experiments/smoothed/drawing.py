"""What the figures of this paper share: legends, and room around their curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpopt import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "os^Dv<>ph"


def curves(values: Iterable[float]) -> Mapping[float, dict[str, Any]]:
    """Return keywords of ``axes.plot`` for the curves of a parameter: a colour and a marker each.

    Few colours between dark and light are told apart by eye alone; markers do it in grey too.
    """
    known = list(dict.fromkeys(values))
    return {
        value: {"color": colour, "marker": _MARKERS[place % len(_MARKERS)]}
        for place, (value, colour) in enumerate(zip(known, style.series(len(known)), strict=True))
    }


def beside(role: str, **other: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return keywords of a curve without markers in the colour and dash of a role."""
    return style.role(role).line | {"marker": ""} | other


def points(role: str, **other: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return keywords of points without a line in the colour and marker of a role."""
    return style.role(role).line | {"linestyle": "none"} | other


def grid(panels: int, columns: int = 2, **shape: Any) -> tuple[Figure, list[Axes]]:  # noqa: ANN401
    """Return a figure of so many columns at most, and the axes of its panels."""
    across = min(columns, panels)
    figure, axes = style.figure(math.ceil(panels / across), across, **shape)
    for spare in axes.flat[panels:]:
        spare.remove()
    return figure, list(axes.flat[:panels])


def legend(figure: Figure, panels: Iterable[Axes], columns: int) -> None:
    """Put one legend of all panels under them, where it covers nothing.

    Each label is told once, as the first panel that has it tells it.

    Args:
        figure: to draw on.
        panels: its axes.
        columns: of the legend, fewer where the figure is too narrow.
    """
    told: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            told.setdefault(label, handle)
    for count in range(columns, 0, -1):
        made = figure.legend(told.values(), told.keys(), loc="outside lower center", ncols=count)
        if count == 1 or made.get_window_extent().width <= figure.bbox.width:
            return
        made.remove()


def frame(figure: Figure, axes: Sequence[Axes], across: str, up: str) -> None:
    """Name the axes of a grid; several panels share the name of the vertical one."""
    for panel in axes:
        panel.set_xlabel(across)
        panel.margins(y=0.1)
    if len(axes) == 1:
        axes[0].set_ylabel(up)
    else:
        figure.supylabel(up, fontsize="medium")


def title(axes: Axes, words: str) -> None:
    """Set the title of a panel, and say under it which of its curves lie under others.

    Labels stay as they are: panels that share a legend differ in what they hide. Call it when
    limits and scales are set.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    labels = [str(line.get_label()) for line in lines]
    axes.autoscale_view()
    style.tell_hidden(axes)
    over: dict[str, str] = {}
    for line, label in zip(lines, labels, strict=True):
        if (told := str(line.get_label())) != label:
            over[label] = told[len(label) + len(" (under: ") : -1]
            line.set_label(label)
    under: dict[str, list[str]] = {}
    for label, last in over.items():
        # What hides it may be hidden itself.
        while last in over:
            last = over[last]
        under.setdefault(last, []).append(label)
    notes = [words, *(f"under {last}: {', '.join(some)}" for last, some in under.items())]
    axes.set_title("\n".join(notes))


def decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around a range, so that a logarithmic axis has two ticks or more."""
    least, most = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**least, 10.0 ** max(most, least + 1)
