"""The cutting-plane loop: solve the relaxation, add violated lazy rows, until none is violated.

No answer of a solver is trusted: its form, its residual and its dual bound are recomputed from the
original matrix, and a claim of infeasibility or unboundedness needs a certificate. If a check
fails, the next fallback strategy is tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpopt import _checks
from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._progress import ProgressEvent, advance, listening, report
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend, RawSolution, Session, WarmSession, get_backend
from dpopt.lp.backends.highs import Highs, conflict
from dpopt.lp.certificates import surely_infeasible, surely_unbounded
from dpopt.lp.problem import Model, Problem, Rows, Separation, objective_size, stack
from dpopt.lp.solution import (
    BASIC,
    Basis,
    Solution,
    Status,
    advice,
    dual_bound,
    implied_bound,
    joined,
    still_cuts,
    vertex,
)

if TYPE_CHECKING:
    import cvxpy as cp


# What progress calls the solve.
_TASK = "linear program"
# Gaps above this fraction of the target gap are refined by a factorisation of the basis.
_WELL_WITHIN = 0.1
# Number of variables from which a family's initial rows are used.
_LEAST_INITIAL = 150
# Relative tolerances on the earlier objectives when a later one picks among optima, tried in turn:
# at 0 a solver may call the program infeasible. And the relative gap that suffices for a later
# objective, whose multipliers of the earlier ones can be 1e7.
_TOLERANCES, _CHOOSING_GAP = (0.0, 1e-10, 1e-9), 1e-5


@dataclass(frozen=True)
class Progress(ProgressEvent):
    """One round of the loop, as reported to `dpopt.reporting`; ``done`` is its number, from 1.

    Attributes:
        objective: objective of the relaxation in this round.
        worst: largest violation of a lazy row.
        rows: number of rows in the relaxation.
        bound: best bound on the optimum so far; infinite before the first.
        gap: distance from the bound to the best feasible point; infinite while none is known,
            which is until the last round without `Problem.set_inside`.
    """

    objective: float = np.nan
    worst: float = np.inf
    rows: int = 0
    bound: float = np.nan
    gap: float = np.inf


@dataclass(frozen=True)
class _Limits:
    """When a solve ends, by the numbers of `solve`; the deadline is a time of perf_counter."""

    tolerance: float
    relative_gap: float
    deadline: float
    stop_at_gap: float


@dataclass(frozen=True)
class _Answer:
    """A solution of the relaxation and the results of its checks.

    Attributes:
        x: the solution, shape (variables,).
        y: multipliers of all rows, shape (rows,).
        separations: the oracles' answers by family.
        worst: largest violation of a lazy row.
        poor: whether to try the next fallback strategy first.
        gap: duality gap relative to `objective_size`; 0 if a lazy row is violated.
    """

    x: Vector
    y: Vector
    separations: Mapping[str, Separation]
    worst: float
    poor: bool
    gap: float


class _Loop:
    """State of one solve: the relaxation, its bounds, and the family of each cut."""

    def __init__(
        self, problem: Problem, backend: Backend, limits: _Limits, start: Solution | None
    ) -> None:
        self.start = time.perf_counter()
        self.problem, self.backend, self.limits = problem, backend, limits
        self.model: Model = problem.assemble()
        # The model with all cuts appended, and the indices of each family's cuts among its rows.
        self.relaxation, self.row_keys, size = self.model, set[bytes](), self.model.cost.size
        self.cuts = {name: list[int]() for name in problem.families}
        families = problem.families.items() if size >= _LEAST_INITIAL else ()
        initial = [(name, f.over_all(f.first(), size)) for name, f in families if f.first]
        self.extend(initial)
        # On so many nearly parallel rows warm simplex runs stall. Interior points that end early
        # are more central, and their cuts deeper: half of the rounds.
        solver = Highs(interior=1e-9) if initial and backend == Highs() else backend
        self.session: Session = solver.load(self.relaxation)
        self.warm = self.session if isinstance(self.session, WarmSession) else None
        self.iterations, self.rounds = 0, 0
        # Lower bound on the minimisation, and the best feasible point so far.
        self.lower, self.feasible = -np.inf, cast(Vector | None, None)
        # The Slater point and its slack, unless rows or bounds that were set later exclude it.
        self.slater, model = problem.inside, self.model
        if self.slater is not None:
            x = self.slater[0]
            violated = np.any(model.rows.violation(x) > limits.tolerance)
            if violated or np.any(x != np.clip(x, model.lower, model.upper)):
                self.slater = None
        # Whether the solution is not that of the session's basis; whether some multipliers gave no
        # bound.
        self.central, self.no_bound = False, False
        if start is not None and start.basis is not None:
            basis = start.basis
            self.append(still_cuts(problem, basis, start.cuts))
            if basis.variables and self.warm is not None:
                # New variables are nonbasic and new rows basic, as in a start from scratch.
                columns = joined(basis.variables, self.model.variables, size, np.int8(0))
                count = self.relaxation.rows.count
                self.warm.begin(columns, joined(basis.rows, self.rows_by_name(), count, BASIC))

    def remaining_seconds(self) -> float | None:
        """Return the remaining seconds, None without a limit; raise if time is used up."""
        remaining = self.limits.deadline - time.perf_counter()
        if remaining <= 0:
            raise self.failure(Status.TIME_LIMIT, "time is used up")
        return None if remaining == np.inf else remaining

    def failure(self, status: Status, detail: str) -> SolverError:
        name, advised = self.backend.name, advice(status, self.backend.name)
        ended = f"{name} ended with status {status} on {self.problem.name!r}"
        return SolverError(f"{ended} ({detail}); {advised}.", str(status))

    def stalled(self, worst: float) -> SolverError:
        detail = f"a violation of {worst:.1e} stays above tolerance {self.limits.tolerance:.1e}"
        return self.failure(Status.STALLED, detail)

    def round(self) -> _Answer | None:
        """Solve the relaxation once; return the optimum, or None if cuts were added."""
        failure = self.failure(Status.NUMERICAL, "it was not run")
        for answer in self.answers():
            if isinstance(answer, SolverError):
                failure = answer
            elif answer.worst <= self.limits.tolerance:
                return answer
            elif self.append((name, cut.rows) for name, cut in answer.separations.items()):
                return None
            else:
                failure = self.stalled(answer.worst)
        if self.no_bound and surely_unbounded(self.relaxation, self.remaining_seconds()):
            raise self.failure(Status.UNBOUNDED, "a direction without end was found")
        raise failure

    def answers(self) -> Iterator[_Answer | SolverError]:
        """Yield the answers of the backend's strategies in turn, and last the first poor one."""
        poor = None
        for way in range(self.session.ways):
            try:
                answer = self.attempt(way)
            except SolverError:
                if poor is None:
                    raise
                break
            if isinstance(answer, SolverError):
                yield answer
                continue
            stopped = self.update_bounds(answer, notify=poor is None)
            if stopped is not None:
                yield stopped
            if answer.poor:
                poor = poor or answer
            else:
                yield answer
        if poor is not None:
            yield poor

    def attempt(self, way: int) -> _Answer | SolverError:
        """Return the checked answer of one strategy, refined if that helps; or why it failed."""
        raw = self.session.run(self.remaining_seconds(), way=way)
        self.rounds += 1
        if not isinstance(raw, RawSolution) or not isinstance(raw.status, Status):
            return self.failure(Status.NUMERICAL, "its answer is no RawSolution with a Status")
        if not isinstance(raw.iterations, int | np.integer):
            return self.failure(Status.NUMERICAL, "its number of iterations is not an integer")
        self.iterations += int(raw.iterations)
        if raw.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            return self.check_claim(raw)
        if raw.status is not Status.OPTIMAL:
            failure = self.failure(raw.status, raw.detail)
            # All strategies would end with these.
            if raw.status in (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.INTERRUPTED):
                raise failure
            return failure
        x, y = _vector(raw.x, self.model.cost.size), _vector(raw.y, self.relaxation.rows.count)
        if x is None or y is None:
            what = "point" if x is None else "multipliers"
            return self.failure(Status.NUMERICAL, f"{raw.detail}, but no {what} of finite numbers")
        x = np.clip(x, self.model.lower, self.model.upper)
        answer = self.checked(x, y)
        # Within the target gap, but not well within.
        rough = max(_WELL_WITHIN * self.limits.relative_gap, self.limits.stop_at_gap)
        if isinstance(answer, SolverError) or answer.poor or abs(answer.gap) > rough:
            return self.refined(x, y) or answer
        return answer

    def check_claim(self, raw: RawSolution) -> SolverError:
        """Raise what a solver claims if a certificate proves it; otherwise return a failure."""
        if raw.status is Status.INFEASIBLE:
            if surely_infeasible(self.relaxation, self.remaining_seconds()):
                raise self.infeasible()
        elif surely_unbounded(self.relaxation, self.remaining_seconds()):
            raise self.failure(raw.status, raw.detail)
        detail = f"{raw.status} was claimed and could not be confirmed"
        return self.failure(Status.NUMERICAL, detail)

    def infeasible(self) -> InfeasibleError:
        """Return the error that names the blocks of an irreducible infeasible set, by HiGHS."""
        rows, columns = conflict(self.relaxation) or ([], [])
        named = [(name, at, rows) for name, at in self.rows_by_name().items()]
        named += [(f"bounds of {n}", at, columns) for n, at in self.model.variables.items()]
        indices = np.arange(max(self.relaxation.rows.count, self.model.cost.size))
        names = tuple(n for n, at, chosen in named if np.isin(indices[at], chosen).any())
        listed = ", ".join(names) or "unknown blocks"
        return InfeasibleError(
            f"no point satisfies {self.problem.name!r}; in conflict: {listed}.", names
        )

    def checked(self, x: Vector, y: Vector) -> _Answer | SolverError:
        """Check residual, lazy rows and duality gap; return the answer, or an error.

        Rows may be violated by 10 tolerances, in units of 1 + max |x|; if no lazy row is violated,
        the gap must be within the target. With 10 times that residual, or 1,000 times that gap, an
        answer counts as poor; beyond, it is an error.
        """
        size, tolerance = 1.0 + float(np.max(np.abs(x), initial=0.0)), self.limits.tolerance
        broken = self.relaxation.rows.violation(x) / size
        residual, written = float(np.max(broken, initial=0.0)), self.model.rows.count
        if residual > 100 * tolerance:
            if np.max(broken[:written], initial=0.0) <= tolerance:
                # Only cuts are violated: the solver ignores them.
                return self.stalled(residual)
            return self.failure(Status.NUMERICAL, "the point returned fails its own rows")
        families = self.problem.families.items()
        separations = {name: family.separate(x) for name, family in families}
        worst = max((answer.worst for answer in separations.values()), default=0.0)
        poor, gap = residual > 10 * tolerance, 0.0
        if worst <= tolerance:
            unit = objective_size(self.model.cost, x)
            gap = (float(self.model.cost @ x) - self.bound(x, y)) / unit
            stop, target = self.limits.stop_at_gap, self.limits.relative_gap
            if not gap <= max(1e3 * target, stop):
                self.no_bound |= dual_bound(self.relaxation, y) == -np.inf
                detail = f"the point returned fails its dual bound by {gap:.1e}"
                return self.failure(Status.NUMERICAL, detail)
            poor |= abs(gap) > max(target, stop)
        return _Answer(x, y, separations, worst, poor, gap)

    def bound(self, x: Vector, y: Vector) -> float:
        """Return the dual bound; over implied bounds of variables without, if that is finite.

        Over implied bounds no reduced cost counts as 0, unless they are infinite, too.
        """
        bound = dual_bound(self.relaxation, y)
        if not np.all(np.isfinite(self.model.lower) & np.isfinite(self.model.upper)):
            implied = implied_bound(self.relaxation, y, float(self.model.cost @ x))
            return implied if np.isfinite(implied) else bound
        return bound

    def refined(self, x: Vector, y: Vector) -> _Answer | None:
        """Return the answer at the vertex of the solver's basis; None if it fails or is poor."""
        statuses = None if self.warm is None else self.warm.basis()
        pair = None if statuses is None else vertex(self.relaxation, *statuses, x, y)
        if pair is None or not all(np.all(np.isfinite(array)) for array in pair):
            return None
        answer = self.checked(np.clip(pair[0], self.model.lower, self.model.upper), pair[1])
        return None if isinstance(answer, SolverError) or answer.poor else answer

    @property
    def sign(self) -> float:
        return -1.0 if self.problem.maximising else 1.0

    def update_bounds(self, answer: _Answer, *, notify: bool) -> _Answer | None:
        """Update the bound and, by moving towards the Slater point, the best feasible point.

        Return that point if its gap is at most ``stop_at_gap`` while lazy rows are violated.
        """
        if not (listening() or self.limits.stop_at_gap):
            return None
        x, worst, cost = answer.x, answer.worst, self.model.cost
        stop, tolerance = self.limits.stop_at_gap, self.limits.tolerance
        self.lower = max(self.lower, dual_bound(self.relaxation, answer.y))
        violated = worst > tolerance
        feasible = not violated
        if violated and self.slater is not None and np.isfinite(worst):
            inside, slack = self.slater
            x, feasible = inside + slack / (slack + worst) * (x - inside), True
        better = self.feasible is None or float(cost @ x) < float(cost @ self.feasible)
        if feasible and better:
            self.feasible = x
        # Distance from the best feasible point to the bound; infinite without such a point.
        gap = np.inf if self.feasible is None else float(cost @ self.feasible) - self.lower
        if notify:
            objective, bound = self.sign * float(cost @ answer.x), self.sign * self.lower
            rows = self.relaxation.rows.count
            message = (
                f"{self.problem.name}: objective {objective:.9g}, worst violation {worst:.1e}, "
                f"bound {bound:.9g}, gap {gap:.1e}, {rows:,} rows"
            )
            numbers = (objective, worst, rows, bound, gap)
            report(Progress(_TASK, self.rounds, None, message, None, *numbers))
        if not (stop and violated) or self.feasible is None:
            return None
        if gap > stop * objective_size(cost, self.feasible):
            return None
        stopped = self.checked(self.feasible, answer.y)
        if isinstance(stopped, SolverError) or stopped.poor or stopped.worst > tolerance:
            return None
        self.central = True
        return stopped

    def extend(self, cuts: Iterable[tuple[str, Rows]]) -> Rows | None:
        """Add those cuts to the relaxation that it does not have, and return them if any."""
        added, present, size = list[Rows](), self.relaxation.rows, self.model.cost.size
        for name, rows in cuts:
            keys = _keys(rows)
            fresh = np.array([key not in self.row_keys for key in keys], dtype=bool)
            if np.any(fresh):
                self.row_keys.update(keys)
                start = present.count + sum(each.count for each in added)
                added.append(rows.take(fresh))
                self.cuts[name] += range(start, start + added[-1].count)
        if not added:
            return None
        rows = stack(added, size)
        self.relaxation = replace(self.relaxation, rows=stack([present, rows], size))
        return rows

    def append(self, cuts: Iterable[tuple[str, Rows]]) -> bool:
        """Append those cuts to the relaxation that it does not have; False if there are none."""
        rows = self.extend(cuts)
        if rows is not None:
            self.session.append(rows)
        return rows is not None

    def basis(self) -> Basis | None:
        """Return the final basis by name; None if there is neither a basis nor a family.

        Without a basis it holds only the families, so that their cuts can be reused.
        """
        families = {n: (family.oracle, family.over) for n, family in self.problem.families.items()}
        statuses = None if self.warm is None or self.central else self.warm.basis()
        if statuses is None:
            return Basis({}, {}, families) if families else None
        columns, rows = statuses
        return Basis(
            {name: columns[indices] for name, indices in self.model.variables.items()},
            {name: rows[indices] for name, indices in self.rows_by_name().items()},
            families,
        )

    def rows_by_name(self) -> dict[str, slice | np.ndarray]:
        """Return the row indices of each block, and of the cuts of each family."""
        cuts = {name: np.array(indices, dtype=np.int64) for name, indices in self.cuts.items()}
        return {**self.model.blocks, **cuts}

    def solution(self, answer: _Answer) -> Solution:
        x, sign, limits, blocks = answer.x, self.sign, self.limits, self.rows_by_name()
        rows, value = self.relaxation.rows, float(self.model.cost @ x)
        shapes, variables = self.problem.shapes, self.model.variables
        objective, bound = sign * value, sign * self.bound(x, answer.y)
        stopped_early = limits.relative_gap < answer.gap <= limits.stop_at_gap
        checked = sum(reply.checked for reply in answer.separations.values())
        return Solution(
            status=Status.GAP if stopped_early else Status.OPTIMAL,
            values={name: frozen(x[at].reshape(shapes[name])) for name, at in variables.items()},
            objective=objective,
            bound=bound,
            gap=sign * (objective - bound),
            residual=max(answer.worst, float(np.max(rows.violation(x), initial=0.0))),
            duals={name: frozen(sign * answer.y[indices]) for name, indices in blocks.items()},
            cuts={name: rows.take(blocks[name]) for name in self.problem.families},
            constraints_checked=self.model.rows.count + checked,
            rows_used=rows.count,
            rounds=self.rounds,
            iterations=self.iterations,
            seconds=time.perf_counter() - self.start,
            backend=self.backend.name,
            basis=self.basis(),
        )


def solve(
    problem: Problem | cp.Problem,
    backend: str | Backend = "highs",
    *,
    tolerance: float | None = None,
    relative_gap: float | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
    max_rounds: int = 1000,
    start: Solution | None = None,
) -> Solution:
    """Solve a linear program, `Problem` or `cvxpy.Problem`, to optimality.

    Constraint sets too large to write out are families of lazy rows (`Problem.add_family`), given
    by a separation oracle that returns rows violated at a point. Each round solves the relaxation
    over the rows so far and adds what the oracles return, until no row is violated.
    `dpopt.reporting` receives a `Progress` for each round.

    Args:
        problem: a `Problem`, which is not changed; or a linear `cvxpy.Problem`, whose variables and
            duals get their values as by its own solve, and whose solution is a
            `dpopt.lp.door.CvxpySolution`.
        backend: ``"highs"``, ``"cvxpy"`` (HiGHS through cvxpy), ``"cvxpy:NAME"`` for another of
            its solvers, or a `Backend`.
        tolerance: violation up to which a row counts as satisfied, in the row's own units; by
            default what the backend reaches (1e-9 for HiGHS). It is not a privacy guarantee: see
            `dpopt.privacy`.
        relative_gap: duality gap above which the solver's fallback strategies are tried, relative
            to max(sum |c_j x_j|, max |c_j|); by default 10 times the tolerance (1e-8 for HiGHS). If
            no strategy reaches it, the first solution found within 1,000 times this gap is
            returned; its ``gap`` says so.
        time_limit: seconds for the whole loop; None for no limit.
        stop_at_gap: stop at a feasible point whose relative gap is at most this, and return it with
            status `Status.GAP`; in [0, 1], 0 to go on to the optimum. An early stop needs a
            strictly feasible point, set by `Problem.set_inside`; without one the loop goes on to
            the optimum.
        max_rounds: the largest number of solves in the loop, for each objective.
        start: warm start: a solution of an earlier version of this problem, or of a similar one.
            Variables and rows with the same name and size start from its simplex basis, which says
            what was at a bound (HiGHS only). The cuts of a family are reused if the family has the
            same name, the same number of variables and the same oracle object; cuts must depend on
            nothing but the oracle. The optimum does not depend on the start beyond the tolerances,
            but among several optimal points another one may be returned.

    Returns:
        An optimal `Solution`, or one within ``stop_at_gap``, as its status says; residual and dual
        bound are recomputed from the original matrix. With several objectives (see
        `Problem.then_minimise`), bound and duals are those of the first; if a later one is not
        reached in time, the note says so, and the solution is optimal for the earlier ones.

    Raises:
        ParameterError: if the backend is unknown, a limit is out of range, or the start shares no
            variables with the problem, by name and shape.
        InfeasibleError: if no point satisfies every constraint; it names the blocks in conflict.
        SolverError: for any other failure; it carries the status and advice.

    Example:
        >>> from dpopt import Problem, solve
        >>> problem = Problem()
        >>> x = problem.add_variables("x", 2, lower=0.0, upper=1.0)
        >>> problem.maximise({"x": [2.0, 1.0]})
        >>> round(solve(problem).objective, 6)
        3.0
    """
    # Without importing cvxpy for other problems.
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(problem).__mro__]
    if ("cvxpy", "Problem") in kinds:
        if stop_at_gap != 0.0:
            raise ParameterError(
                f"stop_at_gap is {_checks.shown(stop_at_gap)}; it must be 0 for a cvxpy problem, "
                "which has no Slater point."
            )
        from dpopt.lp.door import solve_cvxpy

        others: Any = {"tolerance": tolerance, "relative_gap": relative_gap}
        others |= {"time_limit": time_limit, "max_rounds": max_rounds, "start": start}
        return solve_cvxpy(cast("cp.Problem", problem), backend, solve, **others)
    problem = cast(Problem, problem)
    _checks.instance("problem", problem, Problem)
    solver, max_rounds = get_backend(backend), _checks.integer("max_rounds", max_rounds, 1)
    tolerance = solver.tolerance if tolerance is None else tolerance
    tolerance = _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    relative_gap = min(1.0, 10 * tolerance) if relative_gap is None else relative_gap
    _checks.real("relative_gap", relative_gap, 0.0, 1.0, open_lower=True)
    deadline = np.inf if time_limit is None else _checks.real("time_limit", time_limit, 0.0)
    _checks.real("stop_at_gap", stop_at_gap, 0.0, 1.0)
    limits = _Limits(tolerance, relative_gap, time.perf_counter() + deadline, stop_at_gap)
    if start is not None:
        _require_related(problem, start)

    def optimum(program: Problem, limits: _Limits, start: Solution | None) -> Solution:
        loop = _Loop(program, solver, limits, start)
        advance(_TASK, 0, message=program.name)
        while (answer := loop.round()) is None:
            if loop.rounds >= max_rounds:
                detail = f"{max_rounds} rounds were not enough"
                raise loop.failure(Status.ITERATION_LIMIT, detail)
        advance(_TASK, loop.rounds, loop.rounds)
        return loop.solution(answer)

    return _in_order(problem, limits, optimum(problem, limits, start), optimum)


def _in_order(
    problem: Problem,
    limits: _Limits,
    primary: Solution,
    optimum: Callable[[Problem, _Limits, Solution], Solution],
) -> Solution:
    """Return the lexicographic optimum, with the bound and the duals of the first objective.

    Each later objective is optimised subject to the earlier ones being no worse than at the last
    solution, up to the first of `_TOLERANCES` at which the solver finds an optimum.
    """
    start_time, best, latest = time.perf_counter() - primary.seconds, primary, primary
    choosing = replace(limits, relative_gap=max(limits.relative_gap, _CHOOSING_GAP))
    sign = -1.0 if problem.maximising else 1.0
    for number in range(1, len(problem.goals)):
        costs, start, latest = [problem.cost(goal) for goal in problem.goals[:number]], latest, None
        for share in _TOLERANCES:
            ceilings = [float(c @ start.x) + share * objective_size(c, start.x) for c in costs]
            with suppress(InfeasibleError, SolverError):
                latest = optimum(problem.among_optima(ceilings), choosing, start)
                break
        if latest is None:
            return replace(best, note=f"objective {number + 1} was not reached.")
        value = sign * float(costs[0] @ latest.x)
        best = replace(
            best,
            values=latest.values,
            objective=value,
            gap=sign * (value - best.bound),
            residual=latest.residual,
            rounds=best.rounds + latest.rounds,
            iterations=best.iterations + latest.iterations,
            seconds=time.perf_counter() - start_time,
        )
    return best


def _require_related(problem: Problem, start: Solution) -> None:
    _checks.instance("start", start, Solution)
    if not any(
        name in start.values and start.values[name].shape == shape
        for name, shape in problem.shapes.items()
    ):
        names, own = (_checks.shown(", ".join(named)) for named in (start.values, problem.shapes))
        raise ParameterError(
            f"start is a solution of another problem: its variables are {names}, and none has the "
            f"name and the shape of one of {own}."
        )


def _vector(values: object, size: int) -> Vector | None:
    """Return ``values`` as a vector of ``size`` finite floats; None if they are anything else."""
    with suppress(ParameterError):
        array = _checks.floats("values", values)
        if array.shape == (size,) and np.all(np.isfinite(array)):
            return array
    return None


def _keys(rows: Rows) -> list[bytes]:
    """Return a key for each row, the bytes of its columns, entries and limits."""
    columns, entries, starts = rows.matrix.indices, rows.matrix.data, rows.matrix.indptr
    limits = np.stack([rows.lower, rows.upper], axis=1)
    return [
        columns[a:b].astype(np.int64).tobytes() + entries[a:b].tobytes() + ends.tobytes()
        for a, b, ends in zip(starts[:-1], starts[1:], limits, strict=True)
    ]
