"""Bounds and claims that are recomputed from the program's own arrays: no solver is believed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dpopt._types import Vector
from dpopt.lp.backends import RawSolution
from dpopt.lp.backends.highs import Highs
from dpopt.lp.model import Model, Rows, stack
from dpopt.lp.solution import Status

# Margin of a certificate, far above rounding errors.
_PROVEN = 1e-9
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

    A row sum_j a_j x_j <= u implies a_j x_j <= u - min sum_{i != j} a_i x_i. At most eight passes
    over all rows, each rounded outwards.
    """
    # One entry a_ij for each index of row, column and value: of A x <= upper, then -A x <= -lower.
    entries = rows.matrix.tocoo()
    keep = entries.data != 0.0
    row = np.concatenate([entries.row[keep], entries.row[keep] + rows.count])
    column = np.tile(entries.col[keep], 2)
    value = np.concatenate([entries.data[keep], -entries.data[keep]])
    limits = np.concatenate([rows.upper, -rows.lower])
    count = np.bincount(row, minlength=limits.size)
    for _ in range(8):
        # The least value of each a_ij x_j, summed by row without the infinite ones.
        least = np.where(value > 0, value * lower[column], value * upper[column])
        finite = np.isfinite(least)
        terms = np.where(finite, least, 0.0)
        total, size, infinite = (
            np.bincount(row, each, minlength=limits.size) for each in (terms, abs(terms), ~finite)
        )
        # A bound on x_j is finite if no other entry of the row has an infinite least value.
        bounded = (infinite[row] - ~finite == 0) & np.isfinite(limits[row])
        limit = np.where(bounded, limits[row], 0.0)
        error = (count[row] + 4) * 2 * _UNIT * (np.abs(limit) + size[row])
        with np.errstate(over="ignore"):
            ends = (limit - (total[row] - terms) + error) / value
        ends += np.sign(value) * 4 * _UNIT * np.abs(ends)
        before, lower, upper = (lower, upper), lower.copy(), upper.copy()
        above, below = bounded & (value > 0), bounded & (value < 0)
        np.minimum.at(upper, column[above], ends[above])
        np.maximum.at(lower, column[below], ends[below])
        if np.any(lower > upper):
            return before
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def surely_infeasible(model: Model, time_limit: float | None = None) -> bool:
    """Whether multipliers prove that no point satisfies the rows within the variables' bounds.

    The program min t subject to lower - t <= A x <= upper + t is always feasible, and its optimum
    is above 0 iff the rows are in conflict. HiGHS supplies multipliers, and `dual_bound` recomputes
    their bound: if it is above 0 (above 1e-9 where bounds are infinite), they are a Farkas
    certificate. The time limit is in seconds, for each strategy of HiGHS.
    """
    rows, size = model.rows, model.cost.size
    nearest = np.clip(np.zeros(size), model.lower, model.upper)
    endless, ones = np.full(rows.count, np.inf), np.ones((rows.count, 1))
    # Columns: x, then t >= 0. Rows: A x + t >= lower, then A x - t <= upper.
    above, below = (
        sp.csr_array(sp.hstack([rows.matrix, side], format="csr")) for side in (ones, -ones)
    )
    relaxed = Model(
        np.append(np.zeros(size), 1.0),
        np.append(model.lower, 0.0),
        # More than the largest violation at the point of the box that is nearest to 0.
        np.append(model.upper, 1.0 + float(np.max(rows.violation(nearest), initial=0.0))),
        stack([Rows(above, rows.lower, endless), Rows(below, -endless, rows.upper)], size + 1),
        {},
        {},
    )
    boxed = bool(np.all(np.isfinite(model.lower)) and np.all(np.isfinite(model.upper)))
    threshold = 0.0 if boxed else _PROVEN
    return any(
        raw.y is not None and dual_bound(relaxed, raw.y) > threshold
        for raw in _answers(relaxed, time_limit)
    )


def surely_unbounded(model: Model, time_limit: float | None = None) -> bool:
    """Whether the objective falls along a direction in which no row or bound is ever reached.

    Minimise c d over directions d with |d_j| <= 1 that move towards no finite limit. A direction is
    accepted if c d < -1e-9 sum_j |c_j d_j| and row i is violated by at most 1e-9 of its own terms
    sum_j |a_ij d_j|, so that the scale of other costs and rows does not matter. The time limit is
    in seconds, for each strategy of HiGHS.
    """
    lower = np.where(np.isfinite(model.lower), 0.0, -1.0)
    upper = np.where(np.isfinite(model.upper), 0.0, 1.0)
    # Costs of fixed variables are dropped, as they could dwarf the others in the solver's scaling.
    cost = np.where(lower < upper, model.cost, 0.0)
    least = np.where(np.isfinite(model.rows.lower), 0.0, -np.inf)
    most = np.where(np.isfinite(model.rows.upper), 0.0, np.inf)
    rows = Rows(model.rows.matrix, least, most)
    directions = replace(model, cost=cost, lower=lower, upper=upper, rows=rows)
    for raw in _answers(directions, time_limit) if np.any(lower < upper) else ():
        if raw.x is None:
            continue
        whole = np.clip(raw.x, lower, upper)
        # Second try without tiny entries: noise can break a row whose terms are all tiny.
        for d in (whole, np.where(np.abs(whole) > _PROVEN, whole, 0.0)):
            broken = rows.violation(d) > _PROVEN * (abs(rows.matrix) @ np.abs(d))
            falls = float(np.sum(cost * d)) < -_PROVEN * float(np.sum(np.abs(cost * d)))
            if falls and not np.any(broken):
                return True
    return False


def _answers(model: Model, time_limit: float | None) -> Iterator[RawSolution]:
    """Yield HiGHS's answers, one for each strategy up to the first optimum."""
    session = Highs().load(model)
    for way in range(session.ways):
        answer = session.run(time_limit, way=way)
        yield answer
        if answer.status is Status.OPTIMAL:
            break
