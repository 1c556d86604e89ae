"""Dual bounds on the optimum from any multipliers, computed with outward rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt._types import Vector
from dpopt.lp.model import Model, Rows, stack

# Unit roundoff of a double.
_UNIT = 2.0**-53


def dual_bound(model: Model, y: Vector) -> float:
    """Return a lower bound on min cost @ x from any dual vector, by weak duality.

    sum_i (y_i > 0 ? y_i lower_i : y_i upper_i) + sum_j min over the box of (cost - A'y)_j x_j.
    Multipliers that point at an infinite limit are set to 0. Where the box is infinite, a reduced
    cost counts as 0 below 1e-9 of its own terms |c_j| + |A_j|'|y| plus the change of A_j'y if each
    multiplier changes by the rounding error of the largest. The scale is each variable's own: a
    cost of 0.5 is not noise because another cost is 1e9; with it a free variable has no optimum.

    The sums are exact (`math.fsum`), and a bound on the rounding of their terms is subtracted. The
    bound is -inf if the multipliers y, positive at a lower limit, prove none.
    """
    limit = np.where(y > 0, model.rows.lower, model.rows.upper)
    y = np.where(np.isfinite(limit), y, 0.0)
    matrix, size = model.rows.matrix, np.abs(y)
    sizes = np.abs(model.cost) + abs(matrix).T @ size
    reduced = model.cost - matrix.T @ y
    box = np.where(reduced > 0, model.lower, model.upper)
    endless = ~np.isfinite(box)
    if np.any(endless):
        moved = 2.0**-52 * float(np.max(size, initial=0.0)) * (abs(matrix).T @ np.ones(y.size))
        # Reduced costs below this fraction of their own terms count as zero.
        reduced = np.where(endless & (np.abs(reduced) <= 1e-9 * sizes + moved), 0.0, reduced)
    fixed = y * np.where(y == 0.0, 0.0, limit)
    boxed = reduced * np.where(reduced == 0.0, 0.0, box)
    # Largest finite |x_j| in the box, for the rounding of the terms of variable j.
    ends = np.abs(np.array([model.lower, model.upper]))
    reach = np.max(ends, axis=0, initial=0.0, where=np.isfinite(ends))
    entries = np.bincount(matrix.indices, minlength=sizes.size)
    noise = math.fsum((entries + 4) * sizes * reach) * _UNIT + math.fsum(np.abs(fixed)) * 2 * _UNIT
    total = math.fsum([*fixed, *boxed])
    return total - 1.01 * noise - 2 * _UNIT * abs(total)


def implied_bound(model: Model, y: Vector, value: float) -> float:
    """Return a lower bound on min cost @ x from any dual vector, with implied variable bounds.

    Points of cost at most ``value`` lie in the box that the rows and this limit imply, and all
    others cost more. For a variable without bounds, such as the epigraph variable of a maximum, a
    small reduced cost then hardly lowers the bound.
    """
    cost = Rows(sp.csr_array(model.cost[None, :]), np.array([-np.inf]), np.array([value]))
    rows = stack([model.rows, cost], model.cost.size)
    lower, upper = implied_box(rows, model.lower, model.upper)
    return min(value, dual_bound(replace(model, lower=lower, upper=upper), y))


def implied_box(rows: Rows, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds on x that the rows and the given bounds imply (bound propagation).

    A row sum_j a_j x_j <= u implies a_j x_j <= u - min sum_{i != j} a_i x_i. At most four passes
    over all rows, each rounded outwards.
    """
    # One entry a_ij for each index of row, column and value.
    entries = rows.matrix.tocoo()
    keep = entries.data != 0.0
    row, column, value = entries.row[keep], entries.col[keep], entries.data[keep]
    count = np.bincount(row, minlength=rows.count)
    lower, upper = lower.astype(float), upper.astype(float)
    # Most passes of bound propagation.
    for _ in range(4):
        before = lower.copy(), upper.copy()
        # First the rows A x <= upper, then -A x <= -lower.
        for sign, limits in ((1.0, rows.upper), (-1.0, -rows.lower)):
            for sense, bounds in _limits_by_entry(
                row, column, sign * value, limits, count, lower, upper
            ):
                if sense > 0:
                    np.minimum.at(upper, column, bounds)
                else:
                    np.maximum.at(lower, column, bounds)
        if np.any(lower > upper):
            return before
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def _limits_by_entry(
    row: npt.NDArray[Any],
    column: npt.NDArray[Any],
    value: Vector,
    limits: Vector,
    count: npt.NDArray[np.intp],
    lower: Vector,
    upper: Vector,
) -> Iterator[tuple[int, Vector]]:
    """Yield (1, upper bounds) and (-1, lower bounds) on x_j, by entry a_ij of A x <= limits."""
    # Axis: entries; the least value of a_ij x_j, summed by row without the infinite ones.
    least = np.where(value > 0, value * lower[column], value * upper[column])
    finite = np.isfinite(least)
    terms = np.where(finite, least, 0.0)
    total = np.bincount(row, terms, minlength=limits.size)
    size = np.bincount(row, np.abs(terms), minlength=limits.size)
    infinite = np.bincount(row, ~finite, minlength=limits.size)
    # The bound is finite if no other entry of the row has an infinite least value.
    bounded = (infinite[row] - ~finite == 0) & np.isfinite(limits[row])
    limit = np.where(bounded, limits[row], 0.0)
    headroom = limit - (total[row] - terms)
    error = (count[row] + 4) * 2 * _UNIT * (np.abs(limit) + size[row])
    with np.errstate(over="ignore"):
        highest = (headroom + error) / value
    highest = highest + np.sign(value) * 4 * _UNIT * np.abs(highest)
    yield 1, np.where(bounded & (value > 0), highest, np.inf)
    yield -1, np.where(bounded & (value < 0), highest, -np.inf)
