"""Claims of a solver, checked with the program's own arrays: infeasible, or unbounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dpopt.lp.backends import RawSolution
from dpopt.lp.backends.highs import Highs
from dpopt.lp.problem import Model, Rows, stack
from dpopt.lp.solution import Status, dual_bound

# Margin of a certificate, far above rounding errors.
_PROVEN = 1e-9


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
