"""The cutting-plane loop: solve, ask every family, add what is violated, until nothing is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpopt import _checks
from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._progress import advance
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend, RawSolution, Session, get_backend
from dpopt.lp.model import Model, Rows, Separation, stack
from dpopt.lp.problem import Problem
from dpopt.lp.solution import ADVICE, Solution, Status, dual_bound


@dataclass(frozen=True)
class Progress:
    """One round of the loop, as told to a callback.

    Attributes:
        round: number of the round, from 1.
        objective: objective of the relaxation in this round.
        worst: worst violation found by the families.
        rows: rows in the relaxation.
        seconds: time since the start.
    """

    round: int
    objective: float
    worst: float
    rows: int
    seconds: float


class _Loop:
    """State of one solve: the rows given to the solver, and who they belong to."""

    def __init__(self, problem: Problem, backend: Backend, time_limit: float | None) -> None:
        self.start = time.perf_counter()
        self.problem, self.backend, self.time_limit = problem, backend, time_limit
        self.model: Model = problem.assemble()
        self.session: Session = backend.load(self.model)
        self.owners: list[str] = []
        self.extra: list[Rows] = []
        self.known: set[bytes] = set()
        self.iterations = 0
        self.rounds = 0

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def run(self, *, fresh: bool = False) -> RawSolution:
        left = None if self.time_limit is None else self.time_limit - self.seconds()
        if left is not None and left <= 0:
            raise _failure(Status.TIME_LIMIT, self.problem, self.backend, "time is used up")
        raw = self.session.run(left, fresh=fresh)
        self.iterations += raw.iterations
        self.rounds += 1
        if raw.status is Status.INFEASIBLE:
            raise _infeasible(self.problem, self.all_rows(), self.owners, self.model)
        if raw.status is not Status.OPTIMAL or raw.x is None or not np.all(np.isfinite(raw.x)):
            status = Status.NUMERICAL if raw.status is Status.OPTIMAL else raw.status
            raise _failure(status, self.problem, self.backend, raw.detail)
        return replace(raw, x=np.clip(raw.x, self.model.lower, self.model.upper))

    def all_rows(self) -> Rows:
        return stack([self.model.rows, *self.extra], self.model.cost.size)

    def append(self, separations: Mapping[str, Separation]) -> bool:
        """Give the solver the violated rows that it has not seen; False if there are none."""
        added = []
        for name, found in separations.items():
            keys = _keys(found.rows)
            fresh = np.array([key not in self.known for key in keys], dtype=bool)
            if not np.any(fresh):
                continue
            self.known.update(keys)
            rows = found.rows.take(fresh)
            added.append(rows)
            self.owners += [name] * rows.count
        if not added:
            return False
        rows = stack(added, self.model.cost.size)
        self.extra.append(rows)
        self.session.append(rows)
        return True


def solve(
    problem: Problem,
    backend: str | Backend = "highs",
    *,
    tolerance: float | None = None,
    time_limit: float | None = None,
    max_rounds: int = 1000,
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve a problem to optimality over all its rows and families.

    Args:
        problem: left unchanged.
        backend: ``"highs"``, ``"cvxpy"`` (HiGHS through cvxpy), ``"cvxpy:NAME"`` for another of
            its solvers, or a `Backend`.
        tolerance: violation at which a row counts as satisfied, in the row's own units; by
            default what the backend reaches (1e-9 for HiGHS). Not a privacy guarantee: see
            `dpopt.privacy`.
        time_limit: seconds for the whole loop; None for no limit.
        max_rounds: most solves in the loop.
        callback: called once a round with a `Progress`.

    Returns:
        An optimal `Solution`; its residual and dual bound are recomputed from our own matrix.

    Raises:
        ParameterError: for a backend that is unknown, or a limit out of range.
        InfeasibleError: if no point satisfies every constraint; it names the blocks in conflict.
        SolverError: for any other end; it carries the status and says what to try.

    Example:
        >>> from dpopt import Problem, solve
        >>> problem = Problem()
        >>> x = problem.add_variables("x", 2, lower=0.0, upper=1.0)
        >>> problem.add_rows("share", {"x": [[1.0, 1.0]]}, lower=1.0)
        >>> problem.minimise({"x": [2.0, 1.0]})
        >>> solution = solve(problem)
        >>> round(solution.objective, 6), solution["x"].round(6).tolist(), solution.gap < 1e-9
        (1.0, [0.0, 1.0], True)
    """
    _checks.instance("problem", problem, Problem)
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback is {_checks.shown(callback)}; it must be a function.")
    chosen = get_backend(backend)
    tolerance = (
        chosen.tolerance
        if tolerance is None
        else _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    )
    if time_limit is not None:
        time_limit = _checks.real("time_limit", time_limit, 0.0)
    loop = _Loop(problem, chosen, time_limit)
    for _ in range(_checks.integer("max_rounds", max_rounds, 1)):
        advance("linear program", loop.rounds, message=problem.name)
        raw = loop.run()
        separations = _separate(problem, raw)
        worst = max((found.worst for found in separations.values()), default=0.0)
        if callback is not None:
            value = _objective(loop, raw)
            rows = loop.model.rows.count + len(loop.owners)
            callback(Progress(loop.rounds, value, worst, rows, loop.seconds()))
        if worst > tolerance and loop.append(separations):
            continue
        if worst > tolerance or not _sound(loop, raw, tolerance):
            # No new row, yet violated; or a poor point. Warm starts cause both now and then.
            raw = loop.run(fresh=True)
            separations = _separate(problem, raw)
            worst = max((found.worst for found in separations.values()), default=0.0)
            if worst > tolerance:
                if loop.append(separations):
                    continue
                detail = f"a violation of {worst:.1e} stays above tolerance {tolerance:.1e}"
                raise _failure(Status.STALLED, problem, chosen, detail)
            if not _sound(loop, raw, tolerance):
                detail = "the point returned fails its own rows or its dual bound"
                raise _failure(Status.NUMERICAL, problem, chosen, detail)
        advance("linear program", loop.rounds, loop.rounds)
        return _finish(loop, raw, separations, worst)
    raise _failure(Status.ITERATION_LIMIT, problem, chosen, f"{max_rounds} rounds were not enough")


def _separate(problem: Problem, raw: RawSolution) -> dict[str, Separation]:
    x = _point(raw)
    return {name: family.separate(x) for name, family in problem.families.items()}


def _point(raw: RawSolution) -> Vector:
    if raw.x is None:
        raise SolverError("the solver returned no point.", Status.NUMERICAL)
    return raw.x


def _sound(loop: _Loop, raw: RawSolution, tolerance: float) -> bool:
    """Whether residual and duality gap are what a solver of this tolerance should reach."""
    rows, x = loop.all_rows(), _point(raw)
    size = 1.0 + float(np.max(np.abs(x), initial=0.0))
    if float(np.max(rows.violation(x), initial=0.0)) > 100 * tolerance * size:
        return False
    if raw.y is None:
        return True
    if not np.all(np.isfinite(raw.y)):
        return False
    value = float(loop.model.cost @ x)
    scale = float(np.sum(np.abs(loop.model.cost * x)))
    unit = float(np.max(np.abs(loop.model.cost), initial=0.0)) or 1.0
    gap = value - dual_bound(loop.model, rows, raw.y)
    return gap <= 1e4 * tolerance * max(scale, unit)


def _objective(loop: _Loop, raw: RawSolution) -> float:
    value = float(loop.model.cost @ _point(raw))
    return -value if loop.problem.maximising else value


def _finish(
    loop: _Loop, raw: RawSolution, separations: Mapping[str, Separation], worst: float
) -> Solution:
    model, rows, x = loop.model, loop.all_rows(), _point(raw)
    sign = -1.0 if loop.problem.maximising else 1.0
    y = np.zeros(rows.count) if raw.y is None else raw.y
    bound = sign * dual_bound(model, rows, y)
    objective = _objective(loop, raw)
    owners = np.array(loop.owners, dtype=object)
    extra = stack(loop.extra, model.cost.size)
    tail = y[model.rows.count :]
    duals = {name: frozen(sign * y[place]) for name, place in model.blocks.items()}
    cuts = {}
    for name in loop.problem.families:
        mine = owners == name
        duals[name] = frozen(sign * tail[mine])
        cuts[name] = extra.take(mine)
    residual = max(worst, float(np.max(rows.violation(x), initial=0.0)))
    checked = model.rows.count + sum(found.checked for found in separations.values())
    return Solution(
        status=Status.OPTIMAL,
        values={name: frozen(x[part]) for name, part in model.variables.items()},
        objective=objective,
        bound=bound,
        gap=sign * (objective - bound),
        residual=residual,
        duals=duals,
        cuts=cuts,
        constraints_checked=checked,
        rows_used=rows.count,
        rounds=loop.rounds,
        iterations=loop.iterations,
        seconds=loop.seconds(),
        backend=loop.backend.name,
    )


def _keys(rows: Rows) -> list[bytes]:
    matrix = rows.matrix
    keys = []
    for i in range(rows.count):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        limits = np.array([rows.lower[i], rows.upper[i]])
        keys.append(matrix.indices[part].tobytes() + matrix.data[part].tobytes() + limits.tobytes())
    return keys


def _failure(status: Status, problem: Problem, backend: Backend, detail: str) -> SolverError:
    return SolverError(
        f"{backend.name} ended with status {status} on {problem.name!r} ({detail}); "
        f"{ADVICE[status]}.",
        str(status),
    )


def _infeasible(problem: Problem, rows: Rows, owners: list[str], model: Model) -> InfeasibleError:
    """Name the conflict by an irreducible infeasible set, whichever backend met it."""
    from dpopt.lp.backends.highs import conflict

    found = conflict(replace(model, rows=rows))
    if found is None:
        return InfeasibleError(
            f"{problem.name!r} was reported infeasible; which blocks conflict could not be told."
        )
    row_owner = [label.rpartition("[")[0] for label in model.row_names()] + owners
    names = list(dict.fromkeys(row_owner[row] for row in sorted(found[0])))
    for name, part in model.variables.items():
        if any(part.start <= column < part.stop for column in found[1]):
            names.append(f"bounds of {name}")
    return InfeasibleError(
        f"no point satisfies {problem.name!r}; in conflict: {', '.join(names)}.", tuple(names)
    )
