"""How noise functions and their errors are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing, style
from experiments.majority.voters import CURVES
from experiments.majority.words import under
from experiments.registry import Outcome, Table

# Largest K whose noise functions are drawn for all counts, and with a marker at every count.
_WHOLE_RANGE, _MARKED = 41, 15
# Errors below it are rounding.
_SAME_AS_ZERO = 1e-12
# Decades of errors on the axis; smaller errors are drawn as 0.
_DECADES = 7


def plot_with_axis(axis: str, outcome: Outcome) -> Figure:
    """Draw a panel for the shapes at each target, and one for the errors below them."""
    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    targets = shapes.distinct("target")
    curves = shapes.distinct("curve")
    columns = drawing.columns_for(len(targets))
    rows = -(-len(targets) // columns)
    height = {1: 0.62, 2: 0.66, 3: 0.85}.get(columns, 1.15)
    figure, grid = style.figure(rows + 1, columns, height=height, sharey=True)
    places = grid[0, 0].get_gridspec()
    for unused in (*grid[:-1].ravel()[len(targets) :], *grid[-1]):
        unused.remove()
    panels = list(grid[:-1].ravel()[: len(targets)])
    for axes, target in zip(panels, targets, strict=True):
        draw_shapes(axes, shapes.select(target=target), _looks(curves))
        axes.set_title(f"{axis.split()[-1]} = {target}")
        axes.set_xlabel("ones $l$" if columns > 2 else "number of ones $l$")
    for axes in panels[::columns]:
        axes.set_ylabel(r"noise $\gamma(l)$" if columns > 2 else r"noise function $\gamma(l)$")
    below = figure.add_subplot(places[-1, :])
    pmf = under(errors.column("prior")[0])
    below.set(title=f"error under {pmf}{_draw_errors(below, errors, curves)}", xlabel=axis)
    if max(shapes.column("l")) > _WHOLE_RANGE:
        # The lower half mirrors it.
        for axes in panels:
            axes.set_xlabel("ones $l > K/2$")
    return drawing.finish(figure, [*panels, below])


def _looks(names: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    return {name: (CURVES[name][0], style.role(CURVES[name][1]).line) for name in names}


def draw_shapes(
    axes: Axes, shapes: Table, curves: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> None:
    """Draw noise functions; of many voters the upper half alone, as they are symmetric."""
    last = max(shapes.column("l"))
    first = 0 if last <= _WHOLE_RANGE else (last + 1) // 2
    for place, (curve, (label, look)) in enumerate(curves.items()):
        part = shapes.select(curve=curve)
        # Markers of many voters would run into each other: few of them have one.
        drawn: dict[str, Any] = {**look, **drawing.nested(place, len(curves))}
        drawn["markevery"] = 1 if last <= _MARKED else max(1, (last - first) // 8)
        axes.plot(part.column("l")[first:], part.column("gamma")[first:], **drawn, label=label)
    axes.set_ylim(-0.06, 1.06)
    room = 0.04 * (last - first)
    axes.set_xlim(first - room, last + room)
    step = drawing.tick_step(last - first)
    axes.set_xticks(range(-(-first // step) * step, last + 1, step))


def _draw_errors(axes: Axes, errors: Table, curves: Sequence[str]) -> str:
    """Draw the errors against the targets; return what is to be said of their scale."""
    for place, curve in enumerate(curves):
        label, role = CURVES[curve]
        part = errors.select(curve=curve)
        axes.errorbar(
            part.column("target"),
            part.column("sampled_error"),
            yerr=part.column("spread"),
            **style.role(role).line,
            **drawing.nested(place, len(curves)),
            label=label,
            elinewidth=0.8,
        )
    ticks = sorted(set(errors.column("target")))
    if len(ticks) <= 12:
        axes.set_xticks(ticks)
    axes.set_ylabel("error")
    axes.margins(x=0.06 if len(ticks) > 1 else 0.5)
    return scale_errors(axes, errors.column("sampled_error"), errors.column("spread"))


def scale_errors(axes: Axes, values: Sequence[float], spreads: Sequence[float]) -> str:
    """Set the vertical axis for errors, some of which may be 0; return a remark on the axis."""
    from matplotlib.ticker import NullLocator

    top = max(value + spread for value, spread in zip(values, spreads, strict=True))
    positive = [value for value in values if value > _SAME_AS_ZERO]
    if not positive:
        axes.set_ylim(-0.06, 1.0)
        return ": 0 for every curve"
    if len(positive) == len(values) and top < 10.0 * min(positive):
        axes.set_ylim(0.0, 1.12 * top)
        return ""
    last = int(np.floor(np.log10(top)))
    first = max(int(np.floor(np.log10(min(positive)))), last - _DECADES)
    lowest = 10.0**first
    zero = len(positive) < len(values)
    dips = any(v - s < 0.5 * v for v, s in zip(values, spreads, strict=True) if v > _SAME_AS_ZERO)
    if not zero and not dips:
        axes.set(yscale="log", ylim=(0.5 * min(positive), 2.0 * top))
        return ", log scale"
    axes.set_yscale("symlog", linthresh=lowest, linscale=0.6)
    axes.set_ylim(-0.7 * lowest, 3.0 * top)
    decades = range(last, first - 1, -max(1, -((first - last) // 4)))
    axes.set_yticks([0.0, *(10.0**power for power in decades)])
    axes.yaxis.set_minor_locator(NullLocator())
    return f", log scale, linear below $10^{{{first}}}$"
