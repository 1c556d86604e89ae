"""New axes, files of figures, and the style sheets of ``dpopt/styles``.

A sheet has the width of a column, the font sizes and the embedded fonts of a venue:
``plt.style.use("dpopt.styles.neurips")``. Its colours are those of Okabe and Ito ("Color Universal
Design", 2008), which colour-blind readers tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from dpopt._errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("plain", "neurips", "icml", "ieee")
"""The style sheets by the name of the venue; "plain" is for screens and reports."""

GOOD, BAD, LIMIT = "#009E73", "#D55E00", "#000000"
"""Colours of an optimum or a proof, of what is refuted, and of bounds."""

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
