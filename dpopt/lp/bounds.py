"""Bounds on the optimum that any multipliers prove, recomputed from our own matrix."""

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

_UNIT = 2.0**-53
# Share of a reduced cost's own terms that counts as zero.
_NOISE = 1e-9
_PASSES = 4


def dual_bound(model: Model, y: Vector) -> float:
    """Return a lower bound on min cost @ x from any dual vector, by weak duality.

    sum_i (y_i > 0 ? y_i lower_i : y_i upper_i) + sum_j min over the box of
    (cost - A'y)_j x_j. Multipliers that point at an infinite limit are dropped. Where the box is
    infinite, a reduced cost counts as 0 within 1e-9 of its own terms |c_j| + |A_j|'|y|, and what
    A_j'y moves by if each multiplier moves by the rounding of the largest. Costs of other variables
    do not matter: a cost of 0.5 beside one of 1e9 is no noise, and a free variable with it has no
    optimum.

    The sums are exact (`math.fsum`), and what single entries were rounded by is taken off.

    Args:
        model: the program.
        y: shape (rows,), multipliers, positive at a lower limit.
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
        reduced = np.where(endless & (np.abs(reduced) <= _NOISE * sizes + moved), 0.0, reduced)
    fixed = y * np.where(y == 0.0, 0.0, limit)
    boxed = reduced * np.where(reduced == 0.0, 0.0, box)
    ends = np.abs(np.array([model.lower, model.upper]))
    reach = np.max(ends, axis=0, initial=0.0, where=np.isfinite(ends))
    entries = np.bincount(matrix.indices, minlength=sizes.size)
    noise = math.fsum((entries + 4) * sizes * reach) * _UNIT + math.fsum(np.abs(fixed)) * 2 * _UNIT
    total = math.fsum([*fixed, *boxed])
    return total - 1.01 * noise - 2 * _UNIT * abs(total)


def boxed(model: Model, value: float) -> Model:
    """Return the model within the limits that its rows, and a cost of at most ``value``, imply."""
    cost = Rows(sp.csr_array(model.cost[None, :]), np.array([-np.inf]), np.array([value]))
    rows = stack([model.rows, cost], model.cost.size)
    lower, upper = implied_box(rows, model.lower, model.upper)
    return replace(model, lower=lower, upper=upper)


def implied_bound(model: Model, y: Vector, value: float) -> float:
    """Return a lower bound on min cost @ x from any dual vector.

    Points of a cost above ``value`` are above it, and the others within `boxed`: of a variable
    without limits, such as the height of a maximum, a small reduced cost then costs little.
    """
    return min(value, dual_bound(boxed(model, value), y))


def implied_box(rows: Rows, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds that every point of the rows within the given bounds satisfies.

    A row sum_j a_j x_j <= u leaves a_j x_j at most u less the least that the others may sum to;
    several rounds of that, each rounded outwards.
    """
    entries = rows.matrix.tocoo()
    keep = entries.data != 0.0
    row, column, value = entries.row[keep], entries.col[keep], entries.data[keep]
    count = np.bincount(row, minlength=rows.count)
    lower, upper = lower.astype(float), upper.astype(float)
    for _ in range(_PASSES):
        before = lower.copy(), upper.copy()
        # A x <= upper, and then -A x <= -lower.
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
    """Yield (1, upper bounds) and (-1, lower bounds) of the entries' variables."""
    least = np.where(value > 0, value * lower[column], value * upper[column])
    finite = np.isfinite(least)
    known = np.where(finite, least, 0.0)
    total = np.bincount(row, known, minlength=limits.size)
    size = np.bincount(row, np.abs(known), minlength=limits.size)
    unknown = np.bincount(row, ~finite, minlength=limits.size)
    # The entry's own term may be the unknown one.
    told = (unknown[row] - ~finite == 0) & np.isfinite(limits[row])
    limit = np.where(told, limits[row], 0.0)
    room = limit - (total[row] - known)
    error = (count[row] + 4) * 2 * _UNIT * (np.abs(limit) + size[row])
    with np.errstate(over="ignore"):
        highest = (room + error) / value
    highest = highest + np.sign(value) * 4 * _UNIT * np.abs(highest)
    yield 1, np.where(told & (value > 0), highest, np.inf)
    yield -1, np.where(told & (value < 0), highest, -np.inf)
