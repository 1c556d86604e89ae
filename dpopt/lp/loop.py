"""The cutting-plane loop: solve, ask every family, add what is violated, until nothing is.

No answer of a solver is believed: its form, its residual and its dual bound are checked against
our own matrix, and so is a claim that there is no answer. Where one fails, the next way is tried.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MethodType
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._progress import advance
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend, RawSolution, Session, WarmSession, get_backend
from dpopt.lp.basis import BASIC, Basis, Statuses, vertex
from dpopt.lp.claims import surely_infeasible, surely_unbounded
from dpopt.lp.implied import implied_bound
from dpopt.lp.interior import Found, Rounds, Told, suits
from dpopt.lp.model import Model, Oracle, Rows, Separation, stack
from dpopt.lp.problem import Inside, Problem
from dpopt.lp.solution import Limits, Solution, Status, advice, dual_bound, tight_bound

if TYPE_CHECKING:
    import cvxpy as cp

    from dpopt.lp.door import Families

# Gaps above this share of what was asked for are worth a factorisation.
_WELL_WITHIN = 0.1
# Relative gap below which the rounding of a bound does not matter.
_CLOSE_BOUND = 1e-12
# Iterations of the simplex method after which interior points take over: these, or the square of
# the number of variables over the second, as a step of theirs grows with its cube.
_LEAST_SIMPLEX, _SQUARES = 2_500, 38
# Variables from which interior points come after the first round, if a family gives rows to begin
# with.
_LEAST_BEGUN = 150
# What interior points aim for, as a share of the gap asked for: a few rounds more.
_INTERIOR_AIM = 1e-2
# What objectives give way to later ones, tried in turn, as a share of their `_unit`: with nothing a
# solver may call a program infeasible that holds the point before. And the gap that does for a
# later one, which only chooses, and may price what is given way at up to 1e7.
_GIVEN_WAY, _CHOOSING_GAP = (0.0, 1e-10, 1e-9), 1e-5
# Ends that another way would meet too.
_FINAL = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class Progress:
    """One round of the loop, as told to a callback.

    Attributes:
        round: number of the round, from 1.
        objective: objective of the relaxation in this round.
        worst: worst violation found by the families.
        rows: rows in the relaxation.
        seconds: time since the start.
        bound: best bound on the optimum so far; infinite while there is none.
        gap: distance to it from the best point that is known to be feasible; infinite while none
            is. Only `Problem.set_inside` makes one known before the last round.
    """

    round: int
    objective: float
    worst: float
    rows: int
    seconds: float
    bound: float = np.nan
    gap: float = np.inf


@dataclass(frozen=True)
class _Answer:
    """A run's point with all that was checked of it.

    Attributes:
        raw: the point and the multipliers.
        separations: what the families say of it.
        worst: worst violation that they found.
        poor: why the next way should be tried first; empty if it need not.
        gap: duality gap in the units of ``relative_gap``; 0 where a family is violated.
    """

    raw: RawSolution
    separations: Mapping[str, Separation]
    worst: float
    poor: str
    gap: float = 0.0


class _Loop:
    """State of one solve: the rows given to the solver, and who they belong to."""

    def __init__(
        self,
        problem: Problem,
        backend: Backend,
        limits: Limits,
        start: Solution | None,
    ) -> None:
        self.start = time.perf_counter()
        self.problem, self.backend, self.limits = problem, backend, limits
        self.model: Model = problem.assemble()
        self.session: Session = backend.load(self.model)
        self.owners: list[str] = []
        self.extra: list[Rows] = []
        self.known: set[bytes] = set()
        self.iterations = 0
        self.rounds = 0
        # Lower bound, and the best feasible point that is known; of the minimisation.
        self.lower = -np.inf
        self.feasible: Vector | None = None
        self.inside = _still_inside(problem.inside, self.model, limits.tolerance)
        self.central, self.waits = False, True
        self.tried = getattr(backend, "rounds", "simplex") == "simplex"
        if start is not None and start.basis is not None:
            self.begin(start.basis, start.cuts)

    def begin(self, basis: Basis, cuts: Mapping[str, Rows]) -> None:
        """Begin at the basis of another solve and with the rows that its families gave."""
        for name, rows in _still_cuts(self.problem, basis, cuts).items():
            self.append({name: Separation(rows, np.inf, 0)})
        if not basis.variables:
            # It ended at an interior point: its many rows would hold up the simplex method.
            self.waits = False
            return
        if not isinstance(self.session, WarmSession):
            return
        # A new variable is nonbasic and a new row basic, as at a start from nothing.
        columns = [
            _statuses(basis.variables.get(name), part.stop - part.start, 0)
            for name, part in self.model.variables.items()
        ]
        rows = [
            _statuses(basis.rows.get(name), part.stop - part.start, BASIC)
            for name, part in self.model.blocks.items()
        ]
        owned = {name: self.owners.count(name) for name in dict.fromkeys(self.owners)}
        rows += [_statuses(basis.rows.get(name), count, BASIC) for name, count in owned.items()]
        self.session.begin(_joined(columns), _joined(rows))

    def basis(self) -> Basis | None:
        """Return where the session ended, by name; None if the backend does not tell.

        After interior points it names the families alone, whose rows are cuts for another solve.
        """
        oracles = {
            name: (family.oracle, family.over) for name, family in self.problem.families.items()
        }
        if self.central:
            return Basis({}, {}, oracles)
        ended = self.session.basis() if isinstance(self.session, WarmSession) else None
        if ended is None:
            return None
        columns, rows = ended
        appended, owners = rows[self.model.rows.count :], np.array(self.owners, dtype=object)
        families = self.problem.families
        return Basis(
            {name: columns[part] for name, part in self.model.variables.items()},
            {name: rows[part] for name, part in self.model.blocks.items()}
            | {name: appended[owners == name] for name in families},
            oracles,
        )

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def left(self) -> float | None:
        """Return the seconds left; raise if there are none."""
        if self.limits.time_limit is None:
            return None
        left = self.limits.time_limit - self.seconds()
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

    def round(self, callbacks: Sequence[Callable[[Progress], None]]) -> _Answer | None:
        """Return the optimum; or None where the relaxation grew.

        The backend's ways are tried in turn until an answer stands up to `examined`. If none
        does, the first that is within the wider limits there is taken with the gap that it has.
        """
        spare, failure, endless = None, None, False
        for way in range(self.session.ways):
            try:
                raw, failure = self.run(way)
            except SolverError:
                if spare is None:
                    raise
                break
            if raw is None:
                continue
            answer = self.examined(raw)
            if isinstance(answer, SolverError) or answer.poor or self.rough(answer):
                answer = self.refined(raw) or answer
            if isinstance(answer, SolverError):
                failure, endless = answer, endless or self.endless(raw)
                continue
            if callbacks or self.limits.stop_at_gap:
                self.learn(answer)
            if callbacks and spare is None:
                progress = self.progress(answer)
                for callback in callbacks:
                    callback(progress)
            if self.limits.stop_at_gap and answer.worst > self.limits.tolerance:
                stopped = self.stopped(raw)
                if stopped is not None:
                    return stopped
            if answer.poor:
                spare = spare or answer
                failure = self.failure(Status.NUMERICAL, answer.poor)
                continue
            if answer.worst <= self.limits.tolerance:
                return answer
            if self.append(answer.separations):
                return None
            failure = self.stalled(answer.worst)
        if spare is not None and spare.worst <= self.limits.tolerance:
            return spare
        if spare is not None and self.append(spare.separations):
            return None
        if endless and surely_unbounded(self.whole(), self.judge(), self.left()):
            raise self.failure(Status.UNBOUNDED, "a direction without end was found")
        raise failure or self.failure(Status.NUMERICAL, "it was not run")

    def run(self, way: int) -> tuple[RawSolution | None, SolverError | None]:
        """Return an optimal point of the right form, or why there is none.

        Raises:
            InfeasibleError: if that was claimed, and is proved.
            SolverError: if no other way can help.
        """
        raw = self.session.run(self.left(), way=way)
        self.rounds += 1
        fault = _malformed(raw)
        if fault:
            return None, self.failure(Status.NUMERICAL, fault)
        self.iterations += int(raw.iterations)
        if raw.status is Status.OPTIMAL:
            fault = _misshapen(raw, self.model.cost.size, self.model.rows.count + len(self.owners))
            if fault:
                return None, self.failure(Status.NUMERICAL, f"{raw.detail}: {fault}")
            x = np.clip(np.asarray(raw.x, dtype=float), self.model.lower, self.model.upper)
            y = None if raw.y is None else np.asarray(raw.y, dtype=float)
            return replace(raw, x=x, y=y), None
        if raw.status in _FINAL:
            raise self.failure(raw.status, raw.detail)
        claim = f"{raw.status} was claimed and could not be confirmed"
        if raw.status is Status.INFEASIBLE:
            if surely_infeasible(self.whole(), self.judge(), self.left()):
                raise _infeasible(self.problem, self.all_rows(), self.owners, self.model)
            return None, self.failure(Status.NUMERICAL, claim)
        if raw.status is Status.UNBOUNDED:
            if surely_unbounded(self.whole(), self.judge(), self.left()):
                raise self.failure(raw.status, raw.detail)
            return None, self.failure(Status.NUMERICAL, claim)
        return None, self.failure(raw.status, raw.detail)

    def judge(self) -> Callable[[Model], Session]:
        """Return the solver that is asked for proofs of claims, whichever backend made them."""
        return get_backend("highs").load

    def examined(self, raw: RawSolution) -> _Answer | SolverError:
        """Return the answer with its checks; or an error if it is of no use.

        Wanted are rows that hold up to 10 tolerances and, where no family is violated, the
        duality gap that was asked for; within limits 10 and 1,000 times as wide an answer is poor
        but of use. Rows are measured in units of 1 + max |x|.
        """
        rows, x = self.all_rows(), _point(raw)
        residual = float(np.max(rows.violation(x), initial=0.0)) / _size(x)
        if residual > 100 * self.limits.tolerance:
            # Rows that were appended: the solver does not see what the families ask for.
            if self.extra and not np.any(
                self.model.rows.violation(x) > self.limits.tolerance * _size(x)
            ):
                return self.stalled(residual)
            return self.failure(Status.NUMERICAL, "the point returned fails its own rows")
        separations = _separate(self.problem, raw)
        worst = max((answer.worst for answer in separations.values()), default=0.0)
        poor, gap = "", 0.0
        if residual > 10 * self.limits.tolerance:
            poor = f"its rows are violated by {residual:.1e}"
        if worst <= self.limits.tolerance and raw.y is not None:
            gap = _relative_gap(self.model, rows, raw)
            if not gap <= self.limits.widest_gap:
                detail = f"the point returned fails its dual bound by {gap:.1e}"
                return self.failure(Status.NUMERICAL, detail)
            if abs(gap) > self.limits.enough:
                poor = f"a duality gap of {gap:.1e} stays"
        return _Answer(raw, separations, worst, poor, gap)

    def endless(self, raw: RawSolution) -> bool:
        """Whether the multipliers leave the objective without any bound."""
        return raw.y is not None and dual_bound(self.model, self.all_rows(), raw.y) == -np.inf

    def rough(self, answer: _Answer) -> bool:
        """Whether a gap is within what was asked for, but not well within."""
        wanted = max(_WELL_WITHIN * self.limits.relative_gap, self.limits.stop_at_gap)
        return abs(answer.gap) > wanted

    def refined(self, raw: RawSolution) -> _Answer | None:
        """Return the answer that the solver's basis gives; None if that is no good either."""
        ended = self.session.basis() if isinstance(self.session, WarmSession) else None
        if ended is None or raw.y is None:
            return None
        refined = vertex(self.whole(), *ended, _point(raw), raw.y)
        if refined is None or not all(np.all(np.isfinite(part)) for part in refined):
            return None
        x = np.clip(refined[0], self.model.lower, self.model.upper)
        answer = self.examined(replace(raw, x=x, y=refined[1]))
        return None if isinstance(answer, SolverError) or answer.poor else answer

    def stalled(self, worst: float) -> SolverError:
        detail = f"a violation of {worst:.1e} stays above tolerance {self.limits.tolerance:.1e}"
        return self.failure(Status.STALLED, detail)

    def progress(self, answer: _Answer) -> Progress:
        value = _objective(self, answer.raw)
        rows = self.model.rows.count + len(self.owners)
        return Progress(
            self.rounds, value, answer.worst, rows, self.seconds(), self.sign * self.lower, self.gap
        )

    @property
    def sign(self) -> float:
        return -1.0 if self.problem.maximising else 1.0

    @property
    def gap(self) -> float:
        """Distance from the best feasible point to the bound; infinite where one is unknown."""
        if self.feasible is None:
            return np.inf
        return float(self.model.cost @ self.feasible) - self.lower

    def learn(self, answer: _Answer) -> None:
        """Take the bound of an answer, and the feasible point that it gives."""
        x, worst = _point(answer.raw), max(answer.worst, 0.0)
        if answer.raw.y is not None:
            self.lower = max(self.lower, dual_bound(self.model, self.all_rows(), answer.raw.y))
        inside = self.inside
        if worst > self.limits.tolerance:
            if inside is None or not np.isfinite(worst):
                return
            x = inside.x + inside.slack / (inside.slack + worst) * (x - inside.x)
        value = float(self.model.cost @ x)
        if self.feasible is None or value < float(self.model.cost @ self.feasible):
            self.feasible = x

    def stopped(self, raw: RawSolution) -> _Answer | None:
        """Return the best feasible point if its gap is as small as was asked for.

        Its multipliers are those of the optimum over the present rows, whose bound is the best.
        """
        if self.feasible is None:
            return None
        if self.gap > self.limits.stop_at_gap * _unit(self.model.cost, self.feasible):
            return None
        answer = self.examined(replace(raw, x=self.feasible))
        if isinstance(answer, SolverError) or answer.poor or answer.worst > self.limits.tolerance:
            return None
        # The session's basis is that of another point.
        self.central = True
        return answer

    def interior(
        self, callbacks: Sequence[Callable[[Progress], None]], rounds: int
    ) -> _Answer | None:
        """Return the optimum by interior points; None if it is not their turn, or they gave up."""
        begun = any(family.first is not None for family in self.problem.families.values())
        waits = self.waits and getattr(self.backend, "rounds", "simplex") == "auto"
        begins = begun and self.rounds > 0 and self.model.cost.size >= _LEAST_BEGUN
        waits = waits and not begins
        enough = max(_LEAST_SIMPLEX, self.model.cost.size**2 // _SQUARES)
        if self.tried or (waits and self.iterations <= enough):
            return None
        self.tried = True
        inside = self.inside
        if inside is None or not self.problem.families or not suits(self.model, inside):
            return None

        def tell(told: Told) -> None:
            self.rounds += 1
            advance("linear program", self.rounds, message=self.problem.name)
            self.lower = max(self.lower, told.bound)
            if self.feasible is None or told.value < float(self.model.cost @ self.feasible):
                self.feasible = told.best
            value = self.sign * float(self.model.cost @ told.x)
            bound, seconds = self.sign * self.lower, self.seconds()
            for callback in callbacks:
                callback(
                    Progress(self.rounds, value, told.worst, told.rows, seconds, bound, self.gap)
                )

        extra, owners = list(self.extra), list(self.owners)
        for name, family in self.problem.families.items():
            rows = family.beginning(self.model.cost.size)
            if rows is not None:
                extra.append(rows)
                owners += [name] * rows.count
        search = Rounds(
            self.model,
            inside,
            lambda x: _asked(self.problem, x),
            stack(extra, self.model.cost.size),
            owners,
            dropping=not begun,
        )
        limits = self.limits
        enough = max(_WELL_WITHIN * limits.relative_gap, limits.stop_at_gap)
        aim = max(_INTERIOR_AIM * limits.relative_gap, limits.stop_at_gap)
        found = search.run(aim, enough, rounds, self.left, tell)
        return None if found is None else self.taken(found)

    def taken(self, found: Found) -> _Answer | None:
        """Return what interior points found if it stands up to the checks.

        Else their rows stay for the simplex method.
        """
        self.iterations += found.steps
        if found.close:
            before = self.extra, self.owners
            self.extra, self.owners = [found.rows], found.owners
            detail = "interior points"
            raw = RawSolution(Status.OPTIMAL, found.x, found.y, found.steps, detail)
            answer = self.examined(raw)
            if (
                not isinstance(answer, SolverError)
                and not answer.poor
                and answer.worst <= self.limits.tolerance
            ):
                self.central = True
                return answer
            self.extra, self.owners = before
        names = np.array(found.owners, dtype=object)
        self.append(
            {
                name: Separation(found.rows.take(names == name), np.inf, 0)
                for name in self.problem.families
            }
        )
        return None

    def all_rows(self) -> Rows:
        return stack([self.model.rows, *self.extra], self.model.cost.size)

    def whole(self) -> Model:
        return replace(self.model, rows=self.all_rows())

    def append(self, separations: Mapping[str, Separation]) -> bool:
        """Give the solver the violated rows that it has not seen; False if there are none."""
        added = []
        for name, answer in separations.items():
            keys = _keys(answer.rows)
            fresh = np.array([key not in self.known for key in keys], dtype=bool)
            if not np.any(fresh):
                continue
            self.known.update(keys)
            rows = answer.rows.take(fresh)
            added.append(rows)
            self.owners += [name] * rows.count
        if not added:
            return False
        rows = stack(added, self.model.cost.size)
        self.extra.append(rows)
        self.session.append(rows)
        return True


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
    callback: Callable[[Progress], None] | None = None,
    start: Solution | None = None,
    verbose: bool = False,
    families: Families | None = None,
) -> Solution:
    """Solve a linear program, `Problem` or `cvxpy.Problem`, to optimality.

    A family is a set of rows too large to write out, given by an oracle that finds rows which a
    point breaks. Solving goes in rounds: solve over the rows so far, add what the oracles find,
    until they find none.

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
        max_rounds: most solves in the loop.
        callback: called once a round with a `Progress`.
        start: a solution of this problem before something of it was changed, or of one with some
            of its names. Variables and rows of the same name and number begin with the statuses
            of its last basis, all others without any; only HiGHS uses them. The cuts
            of a family are rows of this one too if it has the same name, as many variables, and
            its oracle is the same object: cuts must depend on nothing but the oracle. What is
            returned does not depend on the start beyond the tolerances, though among several
            optimal points it may be another one.
        verbose: write a line for each round to standard output.
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
    if _is_cvxpy(problem):
        if stop_at_gap != 0.0:
            raise ParameterError(
                f"stop_at_gap is {_checks.shown(stop_at_gap)}; it must be 0 for a cvxpy problem, "
                "which tells of no point inside."
            )
        from dpopt.lp.door import solve_cvxpy

        return solve_cvxpy(
            cast("cp.Problem", problem),
            backend,
            solve,
            families=families,
            tolerance=tolerance,
            relative_gap=relative_gap,
            time_limit=time_limit,
            max_rounds=max_rounds,
            callback=callback,
            start=start,
            verbose=verbose,
        )
    problem = cast(Problem, problem)
    _checks.instance("problem", problem, Problem)
    if families is not None:
        raise ParameterError("families belong to a cvxpy problem; use problem.add_family.")
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback is {_checks.shown(callback)}; it must be a function.")
    chosen = get_backend(backend)
    limits = Limits.of(
        tolerance, relative_gap, time_limit, usual=chosen.tolerance, stop_at_gap=stop_at_gap
    )
    if start is not None:
        _require_related(problem, start)
    callbacks = [callback] if callback is not None else []
    if _checks.flag("verbose", verbose):
        callbacks.append(_write_line)
    max_rounds = _checks.integer("max_rounds", max_rounds, 1)

    def optimum(program: Problem, limits: Limits, start: Solution | None) -> Solution:
        loop = _Loop(program, chosen, limits, start)
        for taken in range(max_rounds):
            advance("linear program", loop.rounds, message=program.name)
            answer = loop.interior(callbacks, max_rounds - taken) or loop.round(callbacks)
            if answer is not None:
                advance("linear program", loop.rounds, loop.rounds)
                return _finish(loop, answer)
        raise loop.failure(Status.ITERATION_LIMIT, f"{max_rounds} rounds were not enough")

    return _in_order(problem, limits, optimum(problem, limits, start), optimum)


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
            most = [float(cost @ start.x) + share * _unit(cost, start.x) for cost in costs]
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


def _write_line(progress: Progress) -> None:
    sys.stdout.write(
        f"round {progress.round}: objective {progress.objective:.9g}, worst violation "
        f"{progress.worst:.1e}, bound {progress.bound:.9g}, gap {progress.gap:.1e}, "
        f"{progress.rows:,} rows, {progress.seconds:.2f} s\n"
    )


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


def _still_cuts(problem: Problem, basis: Basis, cuts: Mapping[str, Rows]) -> dict[str, Rows]:
    """Return the rows of earlier cuts that are cuts of this problem, over its variables."""
    still = {}
    for name, (oracle, over) in basis.oracles.items():
        family = problem.families.get(name)
        if (
            family is None
            or not _same(oracle, family.oracle)
            or family.over.stop - family.over.start != over.stop - over.start
        ):
            continue
        rows = cuts[name]
        entries = rows.matrix.tocoo()
        moved = entries.col - over.start + family.over.start
        matrix = sp.csr_array(
            (entries.data, (entries.row, moved)), shape=(rows.count, problem.size)
        )
        still[name] = Rows(matrix, rows.lower, rows.upper)
    return still


def _still_inside(inside: Inside | None, model: Model, tolerance: float) -> Inside | None:
    """Return the point inside; None if rows or limits that came after it leave it outside."""
    if inside is None or np.any(inside.x < model.lower) or np.any(inside.x > model.upper):
        return None
    return None if np.any(model.rows.violation(inside.x) > tolerance) else inside


def _same(oracle: Oracle, other: Oracle) -> bool:
    # A method is a new object each time that it is asked for; they are equal if their objects are
    # the same one. Other kinds of equality could be an array, or mean less than it takes.
    return oracle is other or (isinstance(oracle, MethodType) and oracle == other)


def _statuses(before: Statuses | None, size: int, new: int) -> Statuses:
    if before is not None and before.size == size:
        return before
    return np.full(size, new, dtype=np.int8)


def _joined(parts: Sequence[Statuses]) -> Statuses:
    return np.concatenate([np.empty(0, dtype=np.int8), *parts])


def _separate(problem: Problem, raw: RawSolution) -> dict[str, Separation]:
    return _asked(problem, _point(raw))


def _asked(problem: Problem, x: Vector) -> dict[str, Separation]:
    return {name: family.separate(x) for name, family in problem.families.items()}


def _point(raw: RawSolution) -> Vector:
    if raw.x is None:
        raise SolverError("the solver returned no point.", Status.NUMERICAL)
    return raw.x


def _malformed(raw: object) -> str:
    """Return what is wrong with the form of a backend's answer; empty if nothing is."""
    if not isinstance(raw, RawSolution) or not isinstance(raw.status, Status):
        return "its answer is no RawSolution with a Status"
    if not isinstance(raw.iterations, int | np.integer):
        return "its number of iterations is not an integer"
    return ""


def _misshapen(raw: RawSolution, columns: int, rows: int) -> str:
    """Return what is wrong with the point or the multipliers; empty if nothing is."""
    if not _is_vector(raw.x, columns):
        return f"the point does not hold {columns} finite numbers"
    if raw.y is not None and not _is_vector(raw.y, rows):
        return f"the multipliers are not {rows} finite numbers"
    return ""


def _is_vector(values: object, size: int) -> bool:
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        return False
    return found.dtype.kind in "iuf" and found.shape == (size,) and bool(np.all(np.isfinite(found)))


def _size(x: Vector) -> float:
    return 1.0 + float(np.max(np.abs(x), initial=0.0))


def _unit(cost: Vector, x: Vector) -> float:
    """Return the size of an objective: sum |c x| or the largest |c|, whichever is more."""
    return max(float(np.sum(np.abs(cost * x))), float(np.max(np.abs(cost), initial=0.0))) or 1.0


def _relative_gap(model: Model, rows: Rows, raw: RawSolution) -> float:
    """Return (objective - dual bound) / max(sum |c x|, max |c|)."""
    if raw.y is None:
        return np.inf
    x = _point(raw)
    return (float(model.cost @ x) - _bound(model, rows, raw.y, x)) / _unit(model.cost, x)


def _bound(model: Model, rows: Rows, y: Vector, x: Vector) -> float:
    """Return the dual bound; if it is not close to the value, by finer sums and implied limits."""
    found, value = dual_bound(model, rows, y), float(model.cost @ x)
    if value - found <= _CLOSE_BOUND * abs(value):
        return found
    whole = replace(model, rows=rows)
    return implied_bound(whole, y, value) if np.isinf(found) else max(found, tight_bound(whole, y))


def _objective(loop: _Loop, raw: RawSolution) -> float:
    value = float(loop.model.cost @ _point(raw))
    return -value if loop.problem.maximising else value


def _finish(loop: _Loop, answer: _Answer) -> Solution:
    raw, limits = answer.raw, loop.limits
    model, rows, x = loop.model, loop.all_rows(), _point(raw)
    sign = -1.0 if loop.problem.maximising else 1.0
    y = np.zeros(rows.count) if raw.y is None else raw.y
    bound = sign * _bound(model, rows, y, x)
    objective = _objective(loop, raw)
    # y: first the multipliers of the written rows, block after block, then those of the appended
    # rows in the order in which they came; owners tells of each of these whose it is.
    duals = {name: frozen(sign * y[block]) for name, block in model.blocks.items()}
    appended, of_appended = stack(loop.extra, model.cost.size), y[model.rows.count :]
    owners = np.array(loop.owners, dtype=object)
    cuts = {}
    for name in loop.problem.families:
        duals[name] = frozen(sign * of_appended[owners == name])
        cuts[name] = appended.take(owners == name)
    residual = max(answer.worst, float(np.max(rows.violation(x), initial=0.0)))
    far = limits.relative_gap < answer.gap <= limits.stop_at_gap
    checked = model.rows.count + sum(told.checked for told in answer.separations.values())
    return Solution(
        status=Status.GAP if far else Status.OPTIMAL,
        values=model.by_name(x),
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
        basis=loop.basis(),
    )


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


def _infeasible(problem: Problem, rows: Rows, owners: list[str], model: Model) -> InfeasibleError:
    """Name the conflict by an irreducible infeasible set, whichever backend met it."""
    from dpopt.lp.backends.highs import conflict

    indices = conflict(replace(model, rows=rows))
    if indices is None:
        return InfeasibleError(
            f"{problem.name!r} was reported infeasible; which blocks conflict could not be told."
        )
    # The rows' indices count the written rows and then the appended ones, as `owners` does.
    conflicting_rows, conflicting_columns = indices
    row_owner = [label.rpartition("[")[0] for label in model.row_names()] + owners
    names = list(dict.fromkeys(row_owner[row] for row in sorted(conflicting_rows)))
    for name, part in model.variables.items():
        if any(part.start <= column < part.stop for column in conflicting_columns):
            names.append(f"bounds of {name}")
    return InfeasibleError(
        f"no point satisfies {problem.name!r}; in conflict: {', '.join(names)}.", tuple(names)
    )
