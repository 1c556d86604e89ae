"""Limits of variables that rows and the objective imply, and the bound over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt._types import Vector
from dpopt.lp.model import Model, Rows, stack
from dpopt.lp.solution import dual_bound

_UNIT = 2.0**-53
_PASSES = 4


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

    Args:
        model: the program.
        y: shape (rows,), multipliers.
        value: any number; the bound is never above it.
    """
    within = boxed(model, value)
    return min(value, dual_bound(within, within.rows, y))


def implied_box(rows: Rows, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds that every point of the rows within the given bounds satisfies.

    A row sum_j a_j x_j <= u leaves a_j x_j at most u less the least that the others may sum to;
    several rounds of that, each rounded outwards.

    Args:
        rows: shape (rows, variables).
        lower: shape (variables,).
        upper: shape (variables,).
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
