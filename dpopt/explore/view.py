"""What a tab shows, before it is a page: numbers as text, pictures, the Python behind them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Stands for the colour of the page's text, which the figure cannot know: light or dark.
_INK = "#010203"


@dataclass(frozen=True)
class Table:
    """A small table of text.

    Attributes:
        head: names of the columns; the first column names the rows.
        rows: as many texts each as ``head``.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, its text and axes in the colour of the text around it.

    Attributes:
        svg: the element, with neither links nor scripts.
        caption: what it shows, in one sentence.
    """

    svg: str
    caption: str


@dataclass(frozen=True)
class View:
    """What a tab shows for its parameters.

    Attributes:
        verdict: what was proved, in one sentence.
        private: whether the mechanism asked for was proved private.
        facts: single numbers, by name.
        tables: the others.
        pictures: drawn from the same results.
        code: lines of Python that compute what is shown.
    """

    verdict: str
    private: bool
    facts: Mapping[str, str]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    code: str


def number(value: float | None, digits: int = 6) -> str:
    """Return a number as it is shown: ``digits`` significant digits, a dash for None."""
    return "–" if value is None else f"{value:.{digits}g}"


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of this size in inches, made for `picture`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = dict.fromkeys(inks, _INK) | {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "legend.framealpha": 0.0,
        "svg.hashsalt": "dpopt",
    }
    with mpl.rc_context(style):
        yield Figure(figsize=(width, height))


def picture(figure: Figure, caption: str) -> Picture:
    """Return a figure of `drawing`; call it while that is open."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    whole = buffer.getvalue()
    svg = whole[whole.index("<svg") :].replace(_INK, "currentColor")
    # What is left of the head names two web addresses that nothing has to read.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # As wide as the page allows, up to its own size; the view box gives the proportions.
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening)
    widest = f'style="max-width: {96 * figure.get_figwidth():.0f}px"'
    return Picture(f"{opening} {widest}>{rest}", caption)
