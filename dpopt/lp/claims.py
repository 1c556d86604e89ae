"""What a solver says of a program without an optimum, checked before anybody is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dpopt._types import Vector
from dpopt.lp.backends import RawSolution
from dpopt.lp.backends.highs import Highs
from dpopt.lp.bounds import dual_bound
from dpopt.lp.model import Model, Rows, stack
from dpopt.lp.solution import Status

_PROVEN = 1e-9


def surely_infeasible(model: Model, time_limit: float | None = None) -> bool:
    """Whether it is proved that no point satisfies the rows within the variables' bounds.

    Minimise t such that lower - t <= A x <= upper + t: always feasible, with an optimum above 0
    iff the rows are in conflict. The dual bound of this program, recomputed by `dual_bound`, is
    then above 0: its multipliers are Farkas's. Where bounds are infinite it must be above 1e-9.
    The limit is in seconds for each way of HiGHS, which is asked for the multipliers.
    """
    relaxed = _relaxed(model)
    boxed = bool(np.all(np.isfinite(model.lower)) and np.all(np.isfinite(model.upper)))
    least = 0.0 if boxed else _PROVEN
    return any(
        raw.y is not None and dual_bound(relaxed, raw.y) > least
        for raw in _answers(relaxed, time_limit)
    )


def surely_unbounded(model: Model, time_limit: float | None = None) -> bool:
    """Whether there is a direction in which the objective falls and that no row or bound ends.

    Minimise c d over directions d of at most 1 in each variable that leave every finite limit
    alone. One is taken whose value is below -1e-9 sum_j |c_j d_j| and whose rows hold up to 1e-9
    of their own terms sum_j |a_ij d_j|: neither costs nor rows elsewhere matter.
    """
    directions = _directions(model)
    if not np.any(directions.lower < directions.upper):
        return False
    # Costs of what cannot move would only hide the others from the solver.
    movable = np.where(directions.lower < directions.upper, model.cost, 0.0)
    directions = replace(directions, cost=movable)
    for raw in _answers(directions, time_limit):
        if raw.x is None:
            continue
        d = np.clip(raw.x, directions.lower, directions.upper)
        # A solver's noise in an entry may break rows whose terms are all as small.
        if _falls(directions, d) or _falls(directions, np.where(np.abs(d) > _PROVEN, d, 0.0)):
            return True
    return False


def _falls(directions: Model, d: Vector) -> bool:
    """Whether the objective falls along ``d`` and every row holds, each by its own terms."""
    rows = directions.rows
    broken = rows.violation(d) > _PROVEN * (abs(rows.matrix) @ np.abs(d))
    terms = directions.cost * d
    return not np.any(broken) and float(np.sum(terms)) < -_PROVEN * float(np.sum(np.abs(terms)))


def _answers(model: Model, time_limit: float | None) -> list[RawSolution]:
    """Return the answer of HiGHS's first way, or those of all ways if that is none."""
    session, answers = Highs().load(model), []
    for way in range(session.ways):
        answers.append(session.run(time_limit, way=way))
        if answers[-1].status is Status.OPTIMAL:
            break
    return answers


def _relaxed(model: Model) -> Model:
    """Return min t over (x, t), t >= 0, with t taken off each limit.

    The columns are the model's and then t; the rows are those with a lower limit, A x + t >= lower,
    and then those with an upper one, A x - t <= upper.
    """
    rows, size = model.rows, model.cost.size
    nearest = np.clip(np.zeros(size), model.lower, model.upper)
    above, below = np.isfinite(rows.lower), np.isfinite(rows.upper)
    blocks = [_with_slack(rows, above, 1.0), _with_slack(rows, below, -1.0)]
    return Model(
        np.append(np.zeros(size), 1.0),
        np.append(model.lower, 0.0),
        # More than any row is broken by at the bounds nearest to 0.
        np.append(model.upper, 1.0 + float(np.max(rows.violation(nearest), initial=0.0))),
        stack(blocks, size + 1),
        {},
        {},
    )


def _with_slack(rows: Rows, chosen: np.ndarray, sign: float) -> Rows:
    limited = rows.take(chosen)
    slack = sp.csr_array(np.full((limited.count, 1), sign))
    matrix = sp.csr_array(sp.hstack([limited.matrix, slack], format="csr"))
    none = np.full(limited.count, sign * np.inf)
    return Rows(matrix, limited.lower, none) if sign > 0 else Rows(matrix, none, limited.upper)


def _directions(model: Model) -> Model:
    """Return min c d over the directions in which no finite limit is ever reached."""
    rows = model.rows
    return replace(
        model,
        lower=np.where(np.isfinite(model.lower), 0.0, -1.0),
        upper=np.where(np.isfinite(model.upper), 0.0, 1.0),
        rows=Rows(
            rows.matrix,
            np.where(np.isfinite(rows.lower), 0.0, -np.inf),
            np.where(np.isfinite(rows.upper), 0.0, np.inf),
        ),
    )
