"""New axes, the style sheets of ``dpopt/styles``, and results as a notebook shows them.

A sheet has the width of a column, the font sizes and the embedded fonts of a venue:
``plt.style.use("dpopt.styles.neurips")``. Its colours are those of Okabe and Ito ("Color Universal
Design", 2008), which colour-blind readers tell apart.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from threading import RLock
from typing import TYPE_CHECKING, Any

from dpopt._errors import DpoptError, ParameterError
from dpopt._types import brief_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("plain", "neurips", "icml", "ieee")
"""The style sheets by the name of the venue; "plain" is for screens and reports."""

GOOD, BAD, LIMIT = "#009E73", "#D55E00", "#000000"
"""Colours of an optimum or a proof, of what is refuted, and of bounds."""

# Stands for the colour of the page's text, which the figure cannot know: light or dark.
_INK = "#010203"
_WIDTH, _HEIGHT = 5.0, 3.0

# matplotlib's style parameters are global: one thread draws at a time.
_ALONE = RLock()


@contextmanager
def context(name: str = "plain") -> Iterator[None]:
    """Set matplotlib to a style sheet, one of `STYLES`, while the block runs.

    A second thread waits until the block of the first has ended, as the setting holds for all.
    """
    if name not in STYLES:
        raise ParameterError(f"style is {name!r}; it must be one of {', '.join(STYLES)}.")
    require_matplotlib()
    import matplotlib.style

    with _ALONE, matplotlib.style.context(f"dpopt.styles.{name}"):
        yield


def new_axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure that no window holds on to."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def require_matplotlib() -> None:
    """Load matplotlib, which reads the environment as it does."""
    try:
        import matplotlib as mpl
    except ValueError as error:
        raise ParameterError(f"matplotlib refuses its settings: {error}.") from None
    del mpl


def result_page(
    name: str,
    statement: str,
    good: bool | None,
    facts: Mapping[str, object],
    plot: Callable[[Axes], object] | None = None,
) -> str:
    """Return a result as HTML that asks for nothing else: picture, statement, table of facts.

    The statement says what was proved, or what the answer is, which is good news, bad, or neither.
    Where the plot refuses, its reason is the picture.
    """
    texts = {key: each if isinstance(each, str) else brief_of(each) for key, each in facts.items()}
    rows = "".join(
        f"<tr><th scope='row' style='text-align: left'>{escape(key)}</th>"
        f"<td style='text-align: left'>{escape(text)}"
        "</td></tr>"
        for key, text in texts.items()
    )
    edge = "#7A7A7A" if good is None else GOOD if good else BAD
    said = statement and (
        f"<p style='border-left: 4px solid {edge}; padding-left: .6em'>{escape(statement)}</p>"
    )
    figure, label = "", escape(f"plot of {name}")
    if plot is not None:
        try:
            picture = drawn(plot)
            figure = f"<figure role='img' aria-label='{label}' style='margin: 0'>{picture}</figure>"
        except DpoptError as error:
            figure = f"<p>No picture: {escape(str(error))}</p>"
    return f"<div>{figure}{said}<table><caption>{escape(name)}</caption>{rows}</table></div>"


def drawn(plot: Callable[[Axes], object]) -> str:
    """Return what ``plot`` draws on new axes, with a legend if it names anything, as SVG.

    It is as wide as the page allows, up to its own size; its ink is the colour of the page's text.
    """
    with context("plain"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

        style: dict[Any, Any] = dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK
        ) | {"figure.facecolor": "none", "axes.facecolor": "none", "legend.framealpha": 0.0}
        with mpl.rc_context(style):
            figure, buffer = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained"), io.StringIO()
            axes = figure.subplots()
            plot(axes)
            if axes.get_legend_handles_labels()[0]:
                axes.legend()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor").replace(LIMIT, "currentColor")
    # What is left of the head names two web addresses that nothing has to read.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    opening, body = svg.split(">", 1)
    # The view box gives the proportions.
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening)
    return f'{opening} style="max-width: {96 * _WIDTH:.0f}px">{body}'
