"""The one place that opens figures; matplotlib is imported when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpopt._errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes


def new_axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure that no window holds on to."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, 3.4), layout="constrained").subplots()


def require_matplotlib() -> None:
    """Load matplotlib, which reads the environment as it does.

    Raises:
        ParameterError: if MPLBACKEND, or another setting of matplotlib, is one that it refuses.
    """
    try:
        import matplotlib as mpl
    except ValueError as error:
        raise ParameterError(f"matplotlib refuses its settings: {error}.") from None
    del mpl


def save_figure(axes: Axes, path: Path) -> None:
    """Write the figure that ``axes`` belong to; the ending of ``path`` tells the format."""
    figure = axes.get_figure(root=True)
    if figure is not None:
        figure.savefig(path, dpi=150)
