"""The cutting-plane loop: solve, ask every family, add what is violated, until nothing is.

No answer of a solver is believed: its form, its residual and its dual bound are checked against
our own matrix, and so is a claim that there is no answer. Where one fails, the next way is tried.
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
from dpopt.lp.backends.highs import conflict
from dpopt.lp.basis import BASIC, Basis, joined, still_cuts, vertex
from dpopt.lp.bounds import dual_bound, implied_bound
from dpopt.lp.claims import surely_infeasible, surely_unbounded
from dpopt.lp.interior import Rounds, suits
from dpopt.lp.model import Model, Rows, Separation, objective_size, stack
from dpopt.lp.problem import Inside, Problem
from dpopt.lp.solution import Limits, Solution, Status, advice

if TYPE_CHECKING:
    import cvxpy as cp

    from dpopt.lp.door import Families

_TASK = "linear program"
# Gaps above this share of what was asked for are worth a factorisation.
_WELL_WITHIN = 0.1
# Variables from which interior points are used, if a family gives rows to begin with; and what they
# aim for, as a share of the gap asked for: a few rounds more.
_LEAST_INTERIOR, _INTERIOR_AIM = 150, 1e-2
# What objectives give way to later ones, tried in turn, as a share of their size: with nothing a
# solver may call a program infeasible that holds the point before. And the gap that does for a
# later one, which only chooses, and may price what is given way at up to 1e7.
_GIVEN_WAY, _CHOOSING_GAP = (0.0, 1e-10, 1e-9), 1e-5
# Ends that another way would meet too.
_FINAL = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class Progress(ProgressEvent):
    """One round of the loop, as `dpopt.reporting` hears of it; ``done`` is its number, from 1.

    Attributes:
        objective: objective of the relaxation in this round.
        worst: worst violation found by the families.
        rows: rows in the relaxation.
        bound: best bound on the optimum so far; infinite while there is none.
        gap: distance to it from the best point that is known to be feasible; infinite while none
            is. Only `Problem.set_inside` makes one known before the last round.
    """

    objective: float = np.nan
    worst: float = np.inf
    rows: int = 0
    bound: float = np.nan
    gap: float = np.inf


@dataclass(frozen=True)
class _Answer:
    """A run's point with all that was checked of it.

    Attributes:
        x: the point.
        y: the multipliers of all rows.
        separations: what the families say of the point.
        worst: worst violation that they found.
        poor: why the next way should be tried first; empty if it need not.
        gap: duality gap in the units of ``relative_gap``; 0 where a family is violated.
    """

    x: Vector
    y: Vector
    separations: Mapping[str, Separation]
    worst: float
    poor: str
    gap: float


class _Loop:
    """State of one solve: the rows given to the solver, and who they belong to."""

    def __init__(
        self, problem: Problem, backend: Backend, limits: Limits, start: Solution | None
    ) -> None:
        self.start = time.perf_counter()
        self.problem, self.backend, self.limits = problem, backend, limits
        self.model: Model = problem.assemble()
        # With the rows that the families gave, and the family of each of these.
        self.whole, self.owners = self.model, np.empty(0, dtype=object)
        self.session: Session = backend.load(self.model)
        self.known: set[bytes] = set()
        self.iterations, self.rounds = 0, 0
        # Lower bound, and the best feasible point that is known; of the minimisation.
        self.lower, self.feasible = -np.inf, cast(Vector | None, None)
        self.inside = _still_inside(problem.inside, self.model, limits.tolerance)
        # Whether the point is none of the session's basis; whether some multipliers bound nothing.
        self.central, self.endless = False, False
        if start is not None and start.basis is not None:
            basis = start.basis
            self.append(still_cuts(problem, basis, start.cuts))
            if basis.variables and isinstance(self.session, WarmSession):
                # A new variable is nonbasic and a new row basic, as at a start from nothing.
                columns = joined(basis.variables, self.model.variables, self.model.cost.size, 0)
                rows = joined(basis.rows, self.parts(), self.whole.rows.count, BASIC)
                self.session.begin(columns, rows)

    def seconds_left(self) -> float | None:
        """Return the seconds left; raise if there are none."""
        if self.limits.time_limit is None:
            return None
        left = self.limits.time_limit - (time.perf_counter() - self.start)
        if left <= 0:
            raise self.failure(Status.TIME_LIMIT, "time is used up")
        return left

    def failure(self, status: Status, detail: str) -> SolverError:
        name = self.backend.name
        return SolverError(
            f"{name} ended with status {status} on {self.problem.name!r} ({detail}); "
            f"{advice(status, name)}.",
            str(status),
        )

    def stalled(self, worst: float) -> SolverError:
        detail = f"a violation of {worst:.1e} stays above tolerance {self.limits.tolerance:.1e}"
        return self.failure(Status.STALLED, detail)

    def round(self) -> _Answer | None:
        """Return the optimum; or None where the relaxation grew."""
        failure = self.failure(Status.NUMERICAL, "it was not run")
        for answer in self.answers():
            if isinstance(answer, SolverError):
                failure = answer
            elif answer.worst <= self.limits.tolerance:
                return answer
            elif self.append_cuts(answer):
                return None
            else:
                failure = self.stalled(answer.worst)
        if self.endless and surely_unbounded(self.whole, self.seconds_left()):
            raise self.failure(Status.UNBOUNDED, "a direction without end was found")
        raise failure

    def answers(self) -> Iterator[_Answer | SolverError]:
        """Yield what the backend's ways give in turn, and at last the first poor answer of them."""
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
            stopped = self.learned(answer, tell=poor is None)
            if stopped is not None:
                yield stopped
            if answer.poor:
                poor = poor or answer
            else:
                yield answer
        if poor is not None:
            yield poor

    def attempt(self, way: int) -> _Answer | SolverError:
        """Return what one way of the solver gives, refined where that helps; or why it is no use.

        Raises:
            InfeasibleError: if that was claimed, and is proved.
            SolverError: if no other way can help.
        """
        raw = self.session.run(self.seconds_left(), way=way)
        self.rounds += 1
        fault = _fault(raw)
        if fault:
            return self.failure(Status.NUMERICAL, fault)
        self.iterations += int(raw.iterations)
        if raw.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            return self.claimed(raw)
        if raw.status is not Status.OPTIMAL:
            failure = self.failure(raw.status, raw.detail)
            if raw.status in _FINAL:
                raise failure
            return failure
        x, y = _vector(raw.x, self.model.cost.size), _vector(raw.y, self.whole.rows.count)
        if x is None or y is None:
            what = "point" if x is None else "multipliers"
            return self.failure(Status.NUMERICAL, f"{raw.detail}, but no {what} of finite numbers")
        x = np.clip(x, self.model.lower, self.model.upper)
        answer = self.examined(x, y)
        # Within what was asked for, but not well within.
        rough = max(_WELL_WITHIN * self.limits.relative_gap, self.limits.stop_at_gap)
        if isinstance(answer, SolverError) or answer.poor or abs(answer.gap) > rough:
            return self.refined(x, y) or answer
        return answer

    def claimed(self, raw: RawSolution) -> SolverError:
        """Raise what a solver claims if it is proved; return that it could not be."""
        if raw.status is Status.INFEASIBLE:
            if surely_infeasible(self.whole, self.seconds_left()):
                raise _infeasible(self.problem, self.whole, self.owners)
        elif surely_unbounded(self.whole, self.seconds_left()):
            raise self.failure(raw.status, raw.detail)
        detail = f"{raw.status} was claimed and could not be confirmed"
        return self.failure(Status.NUMERICAL, detail)

    def examined(self, x: Vector, y: Vector) -> _Answer | SolverError:
        """Return the answer with its checks; or an error if it is of no use.

        Wanted are rows that hold up to 10 tolerances and, where no family is violated, the
        duality gap that was asked for; within limits 10 and 1,000 times as wide an answer is poor
        but of use. Rows are measured in units of 1 + max |x|.
        """
        size, tolerance = 1.0 + float(np.max(np.abs(x), initial=0.0)), self.limits.tolerance
        broken = self.whole.rows.violation(x) / size
        residual, written = float(np.max(broken, initial=0.0)), self.model.rows.count
        if residual > 100 * tolerance:
            if residual > np.max(broken[:written], initial=0.0) <= tolerance:
                # The solver does not see what the families ask for.
                return self.stalled(residual)
            return self.failure(Status.NUMERICAL, "the point returned fails its own rows")
        separations = self.asked(x)
        worst = max((answer.worst for answer in separations.values()), default=0.0)
        poor, gap = "", 0.0
        if residual > 10 * tolerance:
            poor = f"its rows are violated by {residual:.1e}"
        if worst <= tolerance:
            unit = objective_size(self.model.cost, x)
            gap = (float(self.model.cost @ x) - self.bound(x, y)) / unit
            if not gap <= self.limits.widest_gap:
                self.endless |= dual_bound(self.whole, y) == -np.inf
                detail = f"the point returned fails its dual bound by {gap:.1e}"
                return self.failure(Status.NUMERICAL, detail)
            if abs(gap) > self.limits.enough:
                poor = f"a duality gap of {gap:.1e} stays"
        return _Answer(x, y, separations, worst, poor, gap)

    def asked(self, x: Vector) -> dict[str, Separation]:
        return {name: family.separate(x) for name, family in self.problem.families.items()}

    def bound(self, x: Vector, y: Vector) -> float:
        """Return the dual bound; over limits that the rows and this value imply if it is none."""
        found = dual_bound(self.whole, y)
        if np.isinf(found):
            return implied_bound(self.whole, y, float(self.model.cost @ x))
        return found

    def refined(self, x: Vector, y: Vector) -> _Answer | None:
        """Return the answer that the solver's basis gives; None if that is no good either."""
        ended = self.session.basis() if isinstance(self.session, WarmSession) else None
        found = None if ended is None else vertex(self.whole, *ended, x, y)
        if found is None or not all(np.all(np.isfinite(part)) for part in found):
            return None
        answer = self.examined(np.clip(found[0], self.model.lower, self.model.upper), found[1])
        return None if isinstance(answer, SolverError) or answer.poor else answer

    @property
    def sign(self) -> float:
        return -1.0 if self.problem.maximising else 1.0

    @property
    def gap(self) -> float:
        """Distance from the best feasible point to the bound; infinite where one is unknown."""
        if self.feasible is None:
            return np.inf
        return float(self.model.cost @ self.feasible) - self.lower

    def learned(self, answer: _Answer, *, tell: bool) -> _Answer | None:
        """Take the bound of an answer, and the feasible point that it gives.

        Returns:
            The best feasible point, if its gap is as small as was asked for, and rows are still
            violated: its multipliers are those of the optimum over the present rows.
        """
        if not (listening() or self.limits.stop_at_gap):
            return None
        x, worst = answer.x, max(answer.worst, 0.0)
        self.lower = max(self.lower, dual_bound(self.whole, answer.y))
        inside, violated = self.inside, worst > self.limits.tolerance
        if violated and inside is not None and np.isfinite(worst):
            x = inside.x + inside.slack / (inside.slack + worst) * (x - inside.x)
        if not violated or x is not answer.x:
            self.reach(x)
        if tell:
            self.tell(answer.x, answer.worst, self.whole.rows.count)
        if not self.limits.stop_at_gap or not violated or self.feasible is None:
            return None
        unit = objective_size(self.model.cost, self.feasible)
        if self.gap > self.limits.stop_at_gap * unit:
            return None
        return self.central_answer(self.feasible, answer.y)

    def reach(self, x: Vector) -> None:
        """Take a feasible point if it is the best."""
        cost = self.model.cost
        if self.feasible is None or float(cost @ x) < float(cost @ self.feasible):
            self.feasible = x

    def tell(self, x: Vector, worst: float, rows: int) -> None:
        """Report a round at a point."""
        objective, bound = self.sign * float(self.model.cost @ x), self.sign * self.lower
        message = (
            f"{self.problem.name}: objective {objective:.9g}, worst violation {worst:.1e}, "
            f"bound {bound:.9g}, gap {self.gap:.1e}, {rows:,} rows"
        )
        numbers = (objective, worst, rows, bound, self.gap)
        report(Progress(_TASK, self.rounds, None, message, None, *numbers))

    def central_answer(self, x: Vector, y: Vector) -> _Answer | None:
        """Return the answer of a point that is none of a basis; None if it fails a check."""
        answer = self.examined(x, y)
        if isinstance(answer, SolverError) or answer.poor or answer.worst > self.limits.tolerance:
            return None
        self.central = True
        return answer

    def interior(self, most: int) -> _Answer | None:
        """Return the optimum by interior points; None if they do not suit, or gave up.

        Then their rows stay for the simplex method.
        """
        families, size = self.problem.families, self.model.cost.size
        kind = getattr(self.backend, "rounds", "simplex")
        begun = size >= _LEAST_INTERIOR and any(f.first for f in families.values())
        if kind == "simplex" or (kind == "auto" and not begun):
            return None
        inside = self.inside
        if inside is None or not families or not suits(self.model, inside):
            return None
        written = self.model.rows.count
        extra, owners = [self.whole.rows.take(slice(written, None))], [*self.owners]
        for name, family in families.items():
            if family.first is not None:
                extra.append(family.over_all(family.first(), size))
                owners += [name] * extra[-1].count
        search = Rounds(self.model, inside, self.asked, stack(extra, size), owners)

        def tell() -> None:
            self.rounds += 1
            self.lower = max(self.lower, search.bound)
            self.reach(search.best)
            self.tell(search.x, search.worst, search.rows.count)

        limits = self.limits
        search.run(
            max(_INTERIOR_AIM * limits.relative_gap, limits.stop_at_gap),
            most,
            self.seconds_left,
            tell,
        )
        self.iterations += search.steps
        if search.near(max(_WELL_WITHIN * limits.relative_gap, limits.stop_at_gap)):
            before = self.whole, self.owners
            self.whole = replace(self.model, rows=search.rows)
            self.owners = np.array(search.owners, dtype=object)
            y = np.zeros(search.rows.count)
            y[: search.y.size] = search.y
            answer = self.central_answer(search.best, y)
            if answer is not None:
                return answer
            self.whole, self.owners = before
        found, owner = search.rows.take(slice(written, None)), np.array(search.owners, dtype=object)
        self.append((name, found.take(owner == name)) for name in families)
        return None

    def append_cuts(self, answer: _Answer) -> bool:
        return self.append((name, found.rows) for name, found in answer.separations.items())

    def append(self, cuts: Iterable[tuple[str, Rows]]) -> bool:
        """Give the solver rows of families that it has not seen; False if there are none."""
        added, owners = [], []
        for name, rows in cuts:
            keys = _keys(rows)
            fresh = np.array([key not in self.known for key in keys], dtype=bool)
            if np.any(fresh):
                self.known.update(keys)
                added.append(rows.take(fresh))
                owners += [name] * added[-1].count
        if not added:
            return False
        rows = stack(added, self.model.cost.size)
        self.whole = replace(self.whole, rows=stack([self.whole.rows, rows], self.model.cost.size))
        self.owners = np.concatenate([self.owners, np.array(owners, dtype=object)])
        self.session.append(rows)
        return True

    def basis(self) -> Basis | None:
        """Return where the session ended, by name; None if the backend does not tell.

        After interior points it names the families alone, whose rows are cuts for another solve.
        """
        families = {n: (family.oracle, family.over) for n, family in self.problem.families.items()}
        if self.central:
            return Basis({}, {}, families)
        ended = self.session.basis() if isinstance(self.session, WarmSession) else None
        if ended is None:
            return None
        columns, rows = ended
        return Basis(
            {name: columns[part] for name, part in self.model.variables.items()},
            {name: rows[part] for name, part in self.parts().items()},
            families,
        )

    def parts(self) -> dict[str, slice | np.ndarray]:
        """Return where the rows of each block stand, and those of each family."""
        at, written = np.arange(self.whole.rows.count), self.model.rows.count
        own = {name: at[written:][self.owners == name] for name in self.problem.families}
        return {**self.model.blocks, **own}

    def solution(self, answer: _Answer) -> Solution:
        x, sign, limits, parts = answer.x, self.sign, self.limits, self.parts()
        objective, bound = sign * float(self.model.cost @ x), sign * self.bound(x, answer.y)
        rows = self.whole.rows
        far = limits.relative_gap < answer.gap <= limits.stop_at_gap
        checked = sum(found.checked for found in answer.separations.values())
        return Solution(
            status=Status.GAP if far else Status.OPTIMAL,
            values=self.model.by_name(x),
            objective=objective,
            bound=bound,
            gap=sign * (objective - bound),
            residual=max(answer.worst, float(np.max(rows.violation(x), initial=0.0))),
            duals={name: frozen(sign * answer.y[part]) for name, part in parts.items()},
            cuts={name: rows.take(parts[name]) for name in self.problem.families},
            constraints_checked=self.model.rows.count + checked,
            rows_used=rows.count,
            rounds=self.rounds,
            iterations=self.iterations,
            seconds=time.perf_counter() - self.start,
            backend=self.backend.name,
            basis=self.basis(),
        )


def _is_cvxpy(problem: object) -> bool:
    """Whether it is a problem of cvxpy, which is not loaded for others."""
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(problem).__mro__]
    return ("cvxpy", "Problem") in kinds


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
    families: Families | None = None,
) -> Solution:
    """Solve a linear program, `Problem` or `cvxpy.Problem`, to optimality.

    A family is a set of rows too large to write out, given by an oracle that finds rows which a
    point breaks. Solving goes in rounds: solve over the rows so far, add what the oracles find,
    until they find none. `dpopt.reporting` hears of each round as a `Progress`.

    Args:
        problem: left unchanged; or a linear `cvxpy.Problem`, which gets its values as by its own
            solve.
            What is then returned, in the user's shapes, is a `dpopt.lp.door.CvxpySolution`.
        backend: ``"highs"``, ``"cvxpy"`` (HiGHS through cvxpy), ``"cvxpy:NAME"`` for another of
            its solvers, or a `Backend`.
        tolerance: violation at which a row counts as satisfied, in the row's own units; by
            default what the backend reaches (1e-9 for HiGHS). Not a privacy guarantee: see
            `dpopt.privacy`.
        relative_gap: duality gap above which the solver's other ways are tried, in units of
            sum |c x| or of the largest |c|, whichever is more; by default 10 times the
            tolerance (1e-8 for HiGHS). If none reaches it, the first within 1,000 times this is
            returned: the solution states its gap.
        time_limit: seconds for the whole loop; None for no limit.
        stop_at_gap: stop as soon as a feasible point is known that is within this of the bound, in
            the units of relative_gap, and return it with the status `Status.GAP`; in [0, 1], 0 to
            go on to the optimum. Before the last round one is known only where
            `Problem.set_inside` told of a point inside; other programs go on to the optimum.
        max_rounds: most solves in the loop, for each objective.
        start: a solution of this problem before something of it was changed, or of one with some
            of its names. Variables and rows of the same name and number begin with the statuses
            of its last basis, all others without any; only HiGHS uses them. The cuts
            of a family are rows of this one too if it has the same name, as many variables, and
            its oracle is the same object: cuts must depend on nothing but the oracle. What is
            returned does not depend on the start beyond the tolerances, though among several
            optimal points it may be another one.
        families: of a `cvxpy.Problem`: by name a pair of a variable, or an affine expression, and
            the oracle that separates its values, flattened in C order. A `Problem` has its own.

    Returns:
        An optimal `Solution`, or one within ``stop_at_gap``, as its status says; its residual and
        dual bound are recomputed from our own matrix. Of several objectives in order (see
        `Problem.then_minimise`), bound and duals are those of the first; where a later one finds no
        answer in time, its note says so, and the point is optimal for those before.

    Raises:
        ParameterError: for a backend that is unknown, a limit out of range, or a start that
            shares no variables with the problem, by name and shape.
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
    limits: Any = {
        "tolerance": tolerance,
        "relative_gap": relative_gap,
        "time_limit": time_limit,
        "stop_at_gap": stop_at_gap,
    }
    if _is_cvxpy(problem):
        if stop_at_gap != 0.0:
            raise ParameterError(
                f"stop_at_gap is {_checks.shown(stop_at_gap)}; it must be 0 for a cvxpy problem, "
                "which tells of no point inside."
            )
        from dpopt.lp.door import solve_cvxpy

        limits |= {"max_rounds": max_rounds, "start": start}
        return solve_cvxpy(cast("cp.Problem", problem), backend, solve, families=families, **limits)
    problem = cast(Problem, problem)
    _checks.instance("problem", problem, Problem)
    if families is not None:
        raise ParameterError("families belong to a cvxpy problem; use problem.add_family.")
    chosen, max_rounds = get_backend(backend), _checks.integer("max_rounds", max_rounds, 1)
    within = Limits.of(usual=chosen.tolerance, **limits)
    if start is not None:
        _require_related(problem, start)

    def optimum(program: Problem, within: Limits, start: Solution | None) -> Solution:
        loop = _Loop(program, chosen, within, start)
        advance(_TASK, 0, message=program.name)
        answer = loop.interior(max_rounds)
        while answer is None:
            if loop.rounds >= max_rounds:
                detail = f"{max_rounds} rounds were not enough"
                raise loop.failure(Status.ITERATION_LIMIT, detail)
            answer = loop.round()
        advance(_TASK, loop.rounds, loop.rounds)
        return loop.solution(answer)

    return _in_order(problem, within, optimum(problem, within, start), optimum)


def _in_order(
    problem: Problem,
    limits: Limits,
    first: Solution,
    optimum: Callable[[Problem, Limits, Solution], Solution],
) -> Solution:
    """Return the first objective's solution, with a point that is best for the later ones as well.

    Each of these is optimised over the points that are no worse than the last one for those before;
    or worse by the first of `_GIVEN_WAY` at which the solver finds an optimum.
    """
    begun, best, found = time.perf_counter() - first.seconds, first, first
    choosing = replace(limits, relative_gap=max(limits.relative_gap, _CHOOSING_GAP))
    sign = -1.0 if problem.maximising else 1.0
    for number in range(1, len(problem.goals)):
        costs, start, found = [problem.cost(goal) for goal in problem.goals[:number]], found, None
        for share in _GIVEN_WAY:
            if limits.time_limit is not None:
                left = limits.time_limit - (time.perf_counter() - begun)
                if left <= 0.0:
                    break
                choosing = replace(choosing, time_limit=left)
            most = [float(cost @ start.x) + share * objective_size(cost, start.x) for cost in costs]
            with suppress(InfeasibleError, SolverError):
                found = optimum(problem.among_optima(most), choosing, start)
                break
        if found is None:
            return replace(best, note=f"objective {number + 1} was not reached.")
        value = sign * float(costs[0] @ found.x)
        best = replace(
            best,
            values=found.values,
            objective=value,
            gap=sign * (value - best.bound),
            residual=found.residual,
            rounds=best.rounds + found.rounds,
            iterations=best.iterations + found.iterations,
            seconds=time.perf_counter() - begun,
        )
    return best


def _require_related(problem: Problem, start: Solution) -> None:
    _checks.instance("start", start, Solution)
    if not any(
        name in start.values and start.values[name].shape == shape
        for name, shape in problem.shapes.items()
    ):
        raise ParameterError(
            f"start is a solution of another problem: its variables are {_names(start.values)}, "
            f"and none has the name and the shape of one of {_names(problem.shapes)}."
        )


def _names(named: Mapping[str, object]) -> str:
    return _checks.shown(", ".join(named))


def _still_inside(inside: Inside | None, model: Model, tolerance: float) -> Inside | None:
    """Return the point inside; None if rows or limits that came after it leave it outside."""
    if inside is None or np.any(inside.x < model.lower) or np.any(inside.x > model.upper):
        return None
    return None if np.any(model.rows.violation(inside.x) > tolerance) else inside


def _fault(raw: object) -> str:
    """Return what is wrong with the form of a backend's answer; empty if nothing is."""
    if not isinstance(raw, RawSolution) or not isinstance(raw.status, Status):
        return "its answer is no RawSolution with a Status"
    if not isinstance(raw.iterations, int | np.integer):
        return "its number of iterations is not an integer"
    return ""


def _vector(values: object, size: int) -> Vector | None:
    """Return so many finite numbers; None if a backend gave anything else."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        return None
    if found.dtype.kind not in "iuf" or found.shape != (size,) or not np.all(np.isfinite(found)):
        return None
    return found.astype(float)


def _keys(rows: Rows) -> list[bytes]:
    """Return the bytes of each row, its columns, entries and limits: equal for equal rows."""
    matrix = rows.matrix
    keys = []
    for row in range(rows.count):
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        limits = np.array([rows.lower[row], rows.upper[row]])
        columns = matrix.indices[entries].astype(np.int64).tobytes()
        keys.append(columns + matrix.data[entries].tobytes() + limits.tobytes())
    return keys


def _infeasible(problem: Problem, model: Model, owners: np.ndarray) -> InfeasibleError:
    """Name the conflict by an irreducible infeasible set, whichever backend met it."""
    indices = conflict(model)
    if indices is None:
        return InfeasibleError(
            f"{problem.name!r} was reported infeasible; which blocks conflict could not be told."
        )
    # The rows' indices count the written rows and then the appended ones, as `owners` does.
    rows, columns = indices
    blocks = [name for name, part in model.blocks.items() for _ in range(part.stop - part.start)]
    owner = [*blocks, *owners]
    names = list(dict.fromkeys(owner[row] for row in sorted(rows)))
    for name, part in model.variables.items():
        if any(part.start <= column < part.stop for column in columns):
            names.append(f"bounds of {name}")
    return InfeasibleError(
        f"no point satisfies {problem.name!r}; in conflict: {', '.join(names)}.", tuple(names)
    )
