"""How figures of the experiments look: colours with one meaning each, lettered panels.

The sizes of a venue's page and its fonts are the style sheets of ``dpopt/styles``. Each role has a
marker, a dash and a hatch besides its colour, so that print in grey tells them apart too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import style as style_sheets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpopt import ParameterError


@dataclass(frozen=True)
class Style:
    """The measures of a venue's page.

    Attributes:
        column: width of one column in inches.
        text: width of the whole text in inches.
        size: points of axis labels; ticks and legends are one point smaller.
        half: half the height of the text in inches; panels are lower where more would be taken.
        remarks: whether figures show their remarks, such as which curve lies under which; their
            captions have them anyhow.
    """

    column: float
    text: float
    size: float
    half: float = math.inf
    remarks: bool = False


STYLES = MappingProxyType(
    {
        "plain": Style(5.0, 7.0, 9.0, remarks=True),
        "neurips": Style(5.5, 5.5, 8.0, 4.5),
        "icml": Style(3.25, 6.75, 8.0, 4.5),
        "ieee": Style(3.5, 7.16, 8.0, 4.6),
    }
)
"""Widths and font sizes by the name of the venue; "plain" is for screens and reports."""


@dataclass(frozen=True)
class Role:
    """What a curve, point or bar stands for, in every figure of the experiments.

    Attributes:
        colour: of Okabe and Ito's palette, or a grey.
        marker: of points and of the points of a curve.
        dash: of a line.
        hatch: of a bar.
    """

    colour: str
    marker: str
    dash: Any
    hatch: str

    @property
    def line(self) -> dict[str, Any]:
        """Keywords of ``axes.plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    @property
    def bar(self) -> dict[str, Any]:
        """Keywords of ``axes.bar``: the hatch is in white."""
        return {"color": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0}


ROLES = MappingProxyType(
    {
        "optimum": Role("#009E73", "o", "-", ""),
        "paper": Role("#D55E00", "s", "-", "//"),
        "baseline": Role("#0072B2", "^", "--", "\\\\"),
        "baseline-2": Role("#56B4E9", "d", "-.", ".."),
        "baseline-3": Role("#CC79A7", "P", (0, (4, 1, 1, 1, 1, 1)), "xx"),
        "variant": Role("#E69F00", "D", "--", "++"),
        "noise": Role("#7A7A7A", "v", ":", "--"),
        "limit": Role("#000000", "x", ":", "||"),
    }
)
"""The meaning of each colour.

- "optimum": the best of a program, or of its closed form: what this package returns by default.
- "variant": the same for another prior, objective or constraint.
- "paper": what the paper at hand proposes.
- "baseline", "baseline-2", "baseline-3": earlier mechanisms and rules beside it.
- "noise": answers that hardly look at the data: randomised response, a constant gamma.
- "limit": targets, bounds, printed numbers.

Curves that differ in a parameter only take `series`.
"""

# The colours of `series`, as places on viridis: its lightest cannot be seen on white.
_SPREAD = (0.0, 0.85)
# Share of an axis within which two curves are one to the eye.
_HIDDEN = 0.005
# Points by which a line or marker is clearly wider than another.
_RIM = 0.7
# Inches of a panel that is still legible, with its ticks and names.
_LEAST = 1.2
_CURRENT: ContextVar[Style | None] = ContextVar("style", default=None)


def series(count: int) -> list[Any]:
    """Return ``count`` colours from dark to light, for curves that differ in one parameter only."""
    low, high = _SPREAD
    step = (high - low) / max(1, count - 1)
    return [mpl.colormaps["viridis"](low + step * i) for i in range(count)]


@contextmanager
def context(name: str = "plain") -> Iterator[Style]:
    """Set matplotlib to a style sheet while the block runs, and yield the page's measures.

    Figures that `figure` makes inside the block have the width of a column or of the text.
    """
    if name not in STYLES:
        raise ParameterError(f"style is {name!r}; it must be one of {', '.join(STYLES)}.")
    before = _CURRENT.set(STYLES[name])
    try:
        with style_sheets.context(f"dpopt.styles.{name}"):
            yield STYLES[name]
    finally:
        _CURRENT.reset(before)


class PrintedFigure(Figure):
    """A figure whose fonts are embedded as Type 42, wherever it is written from.

    Attributes:
        remarks: sentences on what is drawn, for its caption.
    """

    remarks: tuple[str, ...] = ()

    def remark(self, *sentences: str) -> tuple[str, ...]:
        """Keep sentences for the caption, and return those that the figure shows itself."""
        self.remarks = sentences
        return sentences if (_CURRENT.get() or STYLES["plain"]).remarks else ()

    def savefig(self, fname: Any, **options: Any) -> None:  # noqa: ANN401
        """Write the figure; see matplotlib."""
        with mpl.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(fname, **options)


def figure(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float = 0.62,
    wide: bool | None = None,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[PrintedFigure, Any]:
    """Return an empty figure of the style that is set, and its axes as an array of two axes.

    Args:
        rows: of panels.
        columns: of panels.
        height: of a panel, as a share of a panel's width.
        wide: as wide as the text; None for wherever there is more than one column of panels.
        sharex: whether all panels have the horizontal axis of one.
        sharey: likewise the vertical one.
    """
    style = _CURRENT.get() or STYLES["plain"]
    width = style.text if (columns > 1 if wide is None else wide) else style.column
    size = (width, min(rows * height * width / columns, max(style.half, rows * _LEAST)))
    made = PrintedFigure(figsize=size, layout="constrained")
    return made, made.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)


def letter(panels: Sequence[Axes]) -> None:
    """Write (a), (b), ... before the titles of panels, if there are several.

    Call it when the titles are set.
    """
    if len(panels) < 2:
        return
    for mark, axes in zip(ascii_lowercase, panels, strict=False):
        axes.set_title(f"({mark}) {axes.get_title()}".rstrip())


def hidden(axes: Axes) -> list[tuple[Line2D, Line2D]]:
    """Return each curve that cannot be seen, and the later one that it lies under.

    Call it when limits and scales are set. A curve counts as hidden where no point of it is farther
    from the later one's than the width of a line. Points do not hide a line, nor open markers
    filled ones; and the rim of what is drawn clearly wider is seen.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    places = [axes.transData.transform(np.asarray(line.get_xydata(), float)) for line in lines]
    near = _HIDDEN * axes.bbox.height
    found = []
    for i, line in enumerate(lines):
        # A curve without points stands in the legend alone.
        if not places[i].size:
            continue
        for j in range(i + 1, len(lines)):
            same = places[i].shape == places[j].shape and _covers(lines[j], line)
            if same and bool(np.all(np.abs(places[i] - places[j]) <= near)):
                found.append((line, lines[j]))
                break
    return found


def _covers(later: Line2D, line: Line2D) -> bool:
    """Whether a curve in the place of an earlier one leaves nothing of it to be seen."""
    joined = [str(each.get_linestyle()).lower() not in ("none", "", " ") for each in (later, line)]
    if joined[1]:
        return joined[0] and line.get_linewidth() < later.get_linewidth() + _RIM
    opened = str(later.get_markerfacecolor()).lower() in ("none", "white")
    return not opened and line.get_markersize() < later.get_markersize() + _RIM
