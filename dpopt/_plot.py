"""The one place that opens figures; matplotlib is imported when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure that no window holds on to."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, 3.4), layout="constrained").subplots()
