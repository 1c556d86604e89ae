"""Certificates of infeasibility and unboundedness: no solver's claim is reported unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dpopt._types import Vector
from dpopt.lp.backends import RawSolution
from dpopt.lp.backends.highs import Highs
from dpopt.lp.bounds import dual_bound
from dpopt.lp.model import Model, Rows, stack
from dpopt.lp.solution import Status

# Margin of a certificate, far above rounding errors.
_PROVEN = 1e-9


def surely_infeasible(model: Model, time_limit: float | None = None) -> bool:
    """Whether multipliers prove that no point satisfies the rows within the variables' bounds.

    The program min t subject to lower - t <= A x <= upper + t is always feasible, and its optimum
    is above 0 iff the rows are in conflict. HiGHS supplies multipliers, and `dual_bound` recomputes
    their bound: if it is above 0 (above 1e-9 where bounds are infinite), they are a Farkas
    certificate. The time limit is in seconds, for each strategy of HiGHS.
    """
    relaxed = _relaxed(model)
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
    directions = _directions(model)
    if not np.any(directions.lower < directions.upper):
        return False
    for raw in _answers(directions, time_limit):
        if raw.x is None:
            continue
        d = np.clip(raw.x, directions.lower, directions.upper)
        # Second try without tiny entries: noise can break a row whose terms are all tiny.
        if _falls(directions, d) or _falls(directions, np.where(np.abs(d) > _PROVEN, d, 0.0)):
            return True
    return False


def _falls(directions: Model, d: Vector) -> bool:
    """Whether the objective falls along ``d`` and every row holds, relative to its own terms."""
    rows = directions.rows
    broken = rows.violation(d) > _PROVEN * (abs(rows.matrix) @ np.abs(d))
    terms = directions.cost * d
    return not np.any(broken) and float(np.sum(terms)) < -_PROVEN * float(np.sum(np.abs(terms)))


def _answers(model: Model, time_limit: float | None) -> Iterator[RawSolution]:
    """Yield HiGHS's answers, one for each strategy up to the first optimum."""
    session = Highs().load(model)
    for way in range(session.ways):
        answer = session.run(time_limit, way=way)
        yield answer
        if answer.status is Status.OPTIMAL:
            break


def _relaxed(model: Model) -> Model:
    """Return min t over (x, t), t >= 0, with every limit relaxed by t.

    Columns: x, then t. Rows: A x + t >= lower, then A x - t <= upper.
    """
    rows, size = model.rows, model.cost.size
    nearest = np.clip(np.zeros(size), model.lower, model.upper)
    endless, ones = np.full(rows.count, np.inf), np.ones((rows.count, 1))
    above, below = (
        sp.csr_array(sp.hstack([rows.matrix, side], format="csr")) for side in (ones, -ones)
    )
    relaxed = [Rows(above, rows.lower, endless), Rows(below, -endless, rows.upper)]
    return Model(
        np.append(np.zeros(size), 1.0),
        np.append(model.lower, 0.0),
        # More than the largest violation at the point of the box that is nearest to 0.
        np.append(model.upper, 1.0 + float(np.max(rows.violation(nearest), initial=0.0))),
        stack(relaxed, size + 1),
        {},
        {},
    )


def _directions(model: Model) -> Model:
    """Return min c d over |d_j| <= 1 along which no finite limit of x or A x is approached."""
    rows = model.rows
    least = np.where(np.isfinite(rows.lower), 0.0, -np.inf)
    most = np.where(np.isfinite(rows.upper), 0.0, np.inf)
    lower = np.where(np.isfinite(model.lower), 0.0, -1.0)
    upper = np.where(np.isfinite(model.upper), 0.0, 1.0)
    # Costs of fixed variables are dropped, as they could dwarf the others in the solver's scaling.
    movable = np.where(lower < upper, model.cost, 0.0)
    rows = Rows(rows.matrix, least, most)
    return replace(model, cost=movable, lower=lower, upper=upper, rows=rows)
