"""A `cvxpy.Problem` solved as one of ours: named, bounded, its values put back where they belong.

cvxpy compiles the problem, once for all values of its parameters where it is DPP. A linear one
becomes a `Problem` with a block of rows for each constraint and goes through the cutting-plane
loop; any other goes to a solver that has its cones, and its dual vector through `cone_bound`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy import settings
from cvxpy.reductions.solution import Solution as CvxpyAnswer

from dpopt import _checks
from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend, get_backend
from dpopt.lp.backends.cvxpy import STATUS, Cvxpy, solver_options
from dpopt.lp.backends.interrupt import interruptible
from dpopt.lp.compiled import (
    LINEAR,
    TITLE,
    CompiledLinear,
    Families,
    Point,
    compile_for,
    cone_program,
    constraint_names,
    maximising,
    multipliers,
    probed_problem,
    unique,
)
from dpopt.lp.cones import ConeProgram, cone_bound, implied_box
from dpopt.lp.model import stack
from dpopt.lp.problem import Problem
from dpopt.lp.solution import Limits, Solution, Status, advice, dual_bound

_NOISE = "a reduced cost of theirs below 1e-9 of its own terms is taken as 0."
_CONIC = "CLARABEL"
# Gap that solvers with cones are asked for.
_GAP = 1e-5
# Cones that cvxpy replaces by others that are close.
_APPROXIMATED = ("RelEntrConeQuad", "OpRelEntrConeQuad")
# What a proof of infeasibility must exceed where variables have no bounds, and the share of its
# largest multiplier that counts.
_PROVEN, _SHARE = 1e-8, 1e-6
# Solvers take a point as far as this for an optimum of a problem that has none.
_FAR = 1e8


@dataclass(frozen=True, repr=False)
class CvxpySolution(Solution):
    """An optimal point of a `cvxpy.Problem`, with what is needed to judge it.

    As in `Solution`, but values are in the shapes of the user's variables; objective, bound and gap
    count the objective's constants; and duals are those that cvxpy puts into the constraints, in
    their shapes and with their sign: the multipliers of lhs - rhs in the Lagrangian of the
    minimisation (a maximisation is that of minus its objective), so at least 0 for every
    inequality. Where there is no bound it is infinite, as is the gap. Constraints without a label
    are called "constraint 0", "constraint 1" and so on, by their place in the problem; a second
    variable, or constraint, of the same name has " (2)" behind it.

    Attributes:
        inner: the solution of the compiled linear program, which `start` begins from; None if the
            program was not linear.
    """

    inner: Solution | None = None


def solve_cvxpy(
    problem: cp.Problem,
    backend: str | Backend,
    solve: Callable[..., Solution],
    *,
    families: Families | None = None,
    start: Solution | None = None,
    tolerance: float | None = None,
    relative_gap: float | None = None,
    time_limit: float | None = None,
    **others: Any,  # noqa: ANN401
) -> CvxpySolution:
    """Solve a cvxpy problem; see `dpopt.solve`, which calls this.

    Args:
        problem: its variables, constraints, value and status are set as by ``problem.solve()``.
        backend: as for `dpopt.solve`; where a program is not linear, "highs" and "cvxpy" stand for
            CLARABEL.
        solve: `dpopt.lp.loop.solve`.
        families: constraint sets given by oracles, over the values in C order.
        start: as for `dpopt.solve`, of this problem or of one with some of its names.
        tolerance: as for `dpopt.solve`.
        relative_gap: as for `dpopt.solve`.
        time_limit: as for `dpopt.solve`.
        others: further arguments for ``solve``; a program that is not linear has no use for them.

    Raises:
        ParameterError: for a problem that is not convex by cvxpy's rules, has integer or complex
            variables, or a parameter without a value; or families that do not fit.
        InfeasibleError: if no point satisfies every constraint; it names those in conflict.
        SolverError: for any other end.
    """
    _require_solvable(problem)
    families = _require_families(families, problem)
    begin = perf_counter()
    if not problem.variables():
        return _constant(problem, begin)
    if problem.is_lp():
        inner = start.inner if isinstance(start, CvxpySolution) else start
        if inner is not None:
            others["start"] = inner
        others |= {
            "tolerance": tolerance,
            "relative_gap": relative_gap,
            "time_limit": time_limit,
        }
        return _linear(problem, families, lambda lp: solve(lp, backend, **others), begin)
    if families:
        raise ParameterError(
            "families belong to linear programs; this problem has a cone or an objective that is "
            "not linear."
        )
    chosen = _conic_solver(backend)
    limits = Limits.of(tolerance, relative_gap, time_limit, usual=chosen.tolerance, usual_gap=_GAP)
    return _conic(problem, chosen, limits, begin)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep cvxpy's warnings: what they are about is said by errors and by the solution."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _require_solvable(problem: cp.Problem) -> None:
    for parameter in problem.parameters():
        if parameter.value is None:
            # Of a parameter that follows from others, these are what the user knows.
            others = getattr(parameter, "derived_from", [parameter])
            name = next(other.name() for other in others if other.value is None)
            raise ParameterError(f"parameter {name!r} has no value; set its value before solving.")
    finite = any(type(constraint).__name__ == "FiniteSet" for constraint in problem.constraints)
    if problem.is_mixed_integer() or finite:
        raise ParameterError(
            "problem has integer or boolean variables, or finite sets; only programs over real "
            "numbers are taken, whose optimum has a dual bound."
        )
    if any(item.is_complex() for item in [*problem.variables(), *problem.constraints]):
        raise ParameterError("problem has complex numbers; write real and imaginary parts.")
    if not problem.is_dcp():
        names = constraint_names(problem)
        wrong = [name for name, c in zip(names, problem.constraints, strict=True) if not c.is_dcp()]
        where = "its objective" if not problem.objective.is_dcp() else repr(wrong[0])
        raise ParameterError(
            f"problem is not convex by cvxpy's rules (DCP): see {where}; it must be."
        )


def _require_families(families: object, problem: cp.Problem) -> Families:
    if families is None:
        return {}
    if not isinstance(families, Mapping):
        raise ParameterError(
            f"families is {_checks.shown(families)}; it must be a mapping from names to pairs "
            "(variable, oracle)."
        )
    for name, pair in families.items():
        fits = isinstance(name, str) and name and isinstance(pair, Sequence) and len(pair) == 2
        if not fits or not isinstance(pair[0], cp.Expression) or not callable(pair[1]):
            raise ParameterError(
                f"families holds {_checks.shown(name)}: {_checks.shown(pair)}; it must hold pairs "
                "(variable, oracle) by name."
            )
        variables = pair[0].variables()
        if not pair[0].is_affine() or not variables or pair[0].size == 0:
            raise ParameterError(
                f"family {name!r} is over {str(pair[0])[:60]!r}; it must be over a variable or an "
                "affine expression."
            )
        strange = {variable.id for variable in variables} - {v.id for v in problem.variables()}
        if strange:
            names = [variable.name() for variable in variables if variable.id in strange]
            raise ParameterError(
                f"family {name!r} is over {', '.join(names)}, which stands in no constraint and "
                "not in the objective of the problem."
            )
    return families


def _conic_solver(backend: str | Backend) -> Cvxpy:
    chosen = get_backend(backend)
    plain = backend in ("highs", "cvxpy") if isinstance(backend, str) else False
    if plain:
        return Cvxpy(_CONIC)
    if not isinstance(chosen, Cvxpy):
        raise ParameterError(
            f"backend is {_checks.shown(backend)}; a problem that is not linear needs "
            f"'cvxpy:NAME' of a solver that has its cones, such as 'cvxpy:{_CONIC}'."
        )
    return chosen


def _linear(
    problem: cp.Problem,
    families: Families,
    solve: Callable[[Problem], Solution],
    begin: float,
) -> CvxpySolution:
    sign = -1.0 if maximising(problem) else 1.0
    with _quiet():
        compiled = probed_problem(problem, families)
        data, chain, inverse = compile_for(compiled.probed, LINEAR)
        program = CompiledLinear(problem, compiled, data, chain, inverse)
        lp = program.problem(families)
    try:
        inner = solve(lp)
    except InfeasibleError:
        problem.unpack(CvxpyAnswer(cp.INFEASIBLE, sign * math.inf, {}, {}, {}))
        raise
    except SolverError as error:
        if error.status == Status.UNBOUNDED:
            problem.unpack(CvxpyAnswer(cp.UNBOUNDED, -sign * math.inf, {}, {}, {}))
        raise
    x, z = program.put_back(inner, sign)
    point = Point(x, z, float(data["c"] @ x), inner.seconds, inner.iterations)
    with _quiet():
        if compiled.probed is problem:
            problem.unpack_results(point, chain, inverse)
        else:
            problem.unpack(chain.invert(point, inverse))
    bound, note = _linear_bound(lp, inner, sign)
    bound += sign * float(inverse[-1][settings.OFFSET])
    objective = _objective(problem)
    duals = _duals(problem) | {
        name: frozen(-np.asarray(inner.duals[name])) if sign > 0 else inner.duals[name]
        for name in families
    }
    kept = {name: getattr(inner, name) for name in Solution.__dataclass_fields__}
    own = {
        "values": _values(problem),
        "objective": objective,
        "bound": bound,
        "gap": sign * (objective - bound),
        "duals": duals,
        "seconds": perf_counter() - begin,
        "note": note,
    }
    return CvxpySolution(**(kept | own), inner=inner)


def _linear_bound(lp: Problem, inner: Solution, sign: float) -> tuple[float, str]:
    """Return the bound over the box that the rows imply, where it is finite, and what to say."""
    model = lp.assemble()
    lower, upper = implied_box(model.rows, model.lower, model.upper)
    rows = stack([model.rows, *inner.cuts.values()], model.cost.size)
    duals = [np.asarray(dual) for dual in inner.duals.values()]
    y = sign * np.concatenate(duals) if duals else np.empty(0)
    endless = [
        name
        for name, place in model.variables.items()
        if not np.all(np.isfinite(lower[place]) & np.isfinite(upper[place]))
    ]
    bound = sign * dual_bound(replace(model, lower=lower, upper=upper), rows, y)
    if not math.isfinite(bound):
        bound = inner.bound
    if not endless:
        return bound, ""
    listed = ", ".join(endless[:5]) + (" and others" if len(endless) > 5 else "")
    if not math.isfinite(bound):
        return bound, f"no dual bound: nothing bounds {listed} on both sides."
    return bound, f"nothing bounds {listed} on both sides; {_NOISE}"


@_quiet()
def _constant(problem: cp.Problem, begin: float) -> CvxpySolution:
    """Judge a problem without variables: its value is its own bound."""
    broken = [
        name
        for name, constraint in zip(constraint_names(problem), problem.constraints, strict=True)
        if not constraint.value()
    ]
    problem.solve(solver=_CONIC)
    if broken:
        raise InfeasibleError(
            f"no point satisfies {TITLE!r}; in conflict: {', '.join(broken)}.", tuple(broken)
        )
    value = _objective(problem)
    return CvxpySolution(
        status=Status.OPTIMAL,
        values={},
        objective=value,
        bound=value,
        gap=0.0,
        residual=0.0,
        duals={},
        cuts={},
        constraints_checked=sum(constraint.size for constraint in problem.constraints),
        rows_used=0,
        rounds=0,
        iterations=0,
        seconds=perf_counter() - begin,
        backend="cvxpy",
    )


@_quiet()
def _conic(
    problem: cp.Problem,
    backend: Cvxpy,
    limits: Limits,
    begin: float,
) -> CvxpySolution:
    failure: SolverError | None = None
    # A solver may reach its ordinary tolerances where it fails at tight ones.
    for tight in (True, False):
        limit = limits.time_limit
        left = None if limit is None else limit - (perf_counter() - begin)
        if left is not None and left <= 0:
            break
        try:
            run = _run(problem, backend, solver_options(backend.solver, left, tight=tight))
            return _judged(problem, backend, run, limits, begin)
        except SolverError as error:
            if error.status != Status.NUMERICAL:
                raise
            failure = failure or error
    raise failure or _failure(backend, Status.TIME_LIMIT, "time is used up")


def _failure(backend: Cvxpy, status: Status, detail: str) -> SolverError:
    return SolverError(
        f"{backend.name} ended with status {status} on {TITLE!r} ({detail}); "
        f"{advice(status, backend.name, linear=False)}.",
        str(status),
    )


@dataclass(frozen=True)
class _Run:
    """What a solver said, over the compiled program and in the user's words."""

    raw: Any
    chain: Any
    inverse: Any
    compiled: CvxpyAnswer
    answer: CvxpyAnswer
    data: Any


def _run(problem: cp.Problem, backend: Cvxpy, options: dict[str, Any]) -> _Run:
    try:
        data, chain, inverse = compile_for(problem, backend.solver, solver_opts=dict(options))
    except (cp.SolverError, ValueError) as error:
        words = " ".join(str(error).split()).rstrip(".")
        raise ParameterError(
            f"backend is {backend.name!r}, which cannot take this problem ({words}); "
            "'cvxpy:NAME' names another of cvxpy's solvers."
        ) from None
    _require_numbers(data)
    # Of its own: what cvxpy keeps there has options in it, which the user's own solves would have.
    cache: dict[str, Any] = {}
    try:
        raw = interruptible(
            lambda: chain.solver.solve_via_data(data, False, False, dict(options), cache)
        )
        compiled = chain.solver.invert(raw, inverse[-1])
        answer = chain.invert(raw, inverse)
    except cp.SolverError as error:
        raise _failure(backend, Status.NUMERICAL, " ".join(str(error).split())) from None
    return _Run(raw, chain, inverse, compiled, answer, data)


def _require_numbers(data: Mapping[str, Any]) -> None:
    for name in (settings.P, settings.C, settings.A, settings.B, settings.F, settings.G):
        values: Any = data.get(name)
        values = values.data if sp.issparse(values) else values
        if values is not None and np.any(np.isnan(np.asarray(values, dtype=float))):
            raise ParameterError("problem holds NaN in a constant or a parameter; it must not.")


def _judged(
    problem: cp.Problem,
    backend: Cvxpy,
    run: _Run,
    limits: Limits,
    begin: float,
) -> CvxpySolution:
    words = str(run.answer.status)
    status = STATUS.get(run.answer.status, Status.NUMERICAL)
    program, missing = cone_program(run.chain.solver, run.data)
    z = multipliers(run.compiled, run.data)
    if program is not None and (z is None or z.size != program.limits.size):
        program, missing = None, f"{backend.solver} gives no multipliers for its rows"
    if status is Status.INFEASIBLE or words == cp.INFEASIBLE_INACCURATE:
        names = None if program is None or z is None else _conflict(problem, run, program, z)
        if names is None:
            detail = "infeasible was claimed and could not be confirmed"
            raise _failure(backend, Status.NUMERICAL, detail)
        problem.unpack(run.answer)
        raise InfeasibleError(
            f"no point satisfies {TITLE!r}; the proof of conflict combines: "
            f"{', '.join(names) or 'the constraints'}.",
            names,
        )
    if status is Status.UNBOUNDED:
        problem.unpack(run.answer)
    if status is not Status.OPTIMAL:
        raise _failure(backend, status, words)
    x = np.asarray(next(iter(run.compiled.primal_vars.values())), dtype=float)
    residual = _residual(problem, run.answer) if program is None else program.violation(x)
    size = float(np.max(np.abs(x), initial=0.0))
    if not residual <= 100 * limits.tolerance * (1.0 + size):
        raise _failure(backend, Status.NUMERICAL, f"its rows are violated by {residual:.1e}")
    sign = -1.0 if maximising(problem) else 1.0
    missing = _approximated(problem) or missing
    bound, note = -sign * math.inf, f"no dual bound: {missing}."
    if not missing and program is not None and z is not None:
        bound, note = _cone_bound(program, z, x)
        gap = program.relative_gap(x, bound)
        if math.isfinite(bound) and gap > limits.widest_gap:
            detail = f"the point returned fails its dual bound by {gap:.1e}"
            raise _failure(backend, Status.NUMERICAL, detail)
        bound = sign * (bound + float(run.inverse[-1][settings.OFFSET]))
    if not math.isfinite(bound) and size > _FAR:
        detail = f"a point of size {size:.0e} without a bound: the problem may be unbounded"
        raise _failure(backend, Status.NUMERICAL, detail)
    problem.unpack_results(run.raw, run.chain, run.inverse)
    objective = _objective(problem)
    stats = problem.solver_stats
    return CvxpySolution(
        status=Status.OPTIMAL,
        values=_values(problem),
        objective=objective,
        bound=bound,
        gap=sign * (objective - bound),
        residual=residual,
        duals=_duals(problem),
        cuts={},
        constraints_checked=sum(constraint.size for constraint in problem.constraints),
        rows_used=0 if program is None else program.limits.size,
        rounds=1,
        iterations=int((stats.num_iters if stats is not None else 0) or 0),
        seconds=perf_counter() - begin,
        backend=backend.name,
        note=note,
    )


def _cone_bound(program: ConeProgram, z: Vector, x: Vector) -> tuple[float, str]:
    """Return a lower bound on the compiled program's optimum, and what there is to say of it."""
    boxed = program.boxed()
    bound = cone_bound(boxed, z, x)
    if not math.isfinite(bound):
        return bound, (
            "no dual bound: the reduced costs of variables without bounds are not 0; give every "
            "variable bounds."
        )
    if np.all(np.isfinite(boxed.lower) & np.isfinite(boxed.upper)):
        return bound, ""
    return bound, f"nothing bounds some variables on both sides; {_NOISE}"


def _approximated(problem: cp.Problem) -> str:
    """Return which function of the problem cvxpy replaces by another one; empty if none."""
    left: list[Any] = [problem.objective, *problem.constraints]
    while left:
        node = left.pop()
        if getattr(node, "approx_error", 0.0) > 0.0 or type(node).__name__ in _APPROXIMATED:
            return f"cvxpy approximates {str(node)[:60]!r}"
        left += node.args
    return ""


def _residual(problem: cp.Problem, answer: CvxpyAnswer) -> float:
    """Return the worst violation of the user's constraints where the compiled ones are unknown."""
    for variable in problem.variables():
        variable.save_value(answer.primal_vars[variable.id])
    worst = [float(np.max(np.abs(constraint.violation()))) for constraint in problem.constraints]
    return max(worst, default=0.0)


def _conflict(
    problem: cp.Problem, run: _Run, program: ConeProgram, z: Vector
) -> tuple[str, ...] | None:
    """Return the constraints that a proof of infeasibility combines; None if it proves nothing.

    With costs 0, a dual vector whose bound is above 0 says that 0 is above 0 at every point.
    """
    size = float(np.max(np.abs(z), initial=0.0))
    if not 0.0 < size < math.inf:
        return None
    nothing = np.zeros(program.cost.size)
    box = replace(program.boxed(), cost=nothing, quadratic=None)
    endless = not np.all(np.isfinite(box.lower) & np.isfinite(box.upper))
    least = _PROVEN if endless else 0.0
    # An interior point leaves a little of each row; what is left without that may prove it alone.
    share = z / size
    shares = (share, np.where(np.abs(share) > _SHARE, share, 0.0))
    if not any(cone_bound(box, part, nothing) > least for part in shares):
        return None
    answer = run.answer.dual_vars or {}
    names = []
    for name, constraint in zip(constraint_names(problem), problem.constraints, strict=True):
        part = answer.get(constraint.id)
        parts = part if isinstance(part, list) else [part]
        largest = [float(np.max(np.abs(dual), initial=0.0)) for dual in parts if dual is not None]
        if max(largest, default=0.0) > _SHARE * size:
            names.append(name)
    return tuple(names)


@_quiet()
def _values(problem: cp.Problem) -> dict[str, Vector]:
    variables = problem.variables()
    names = unique([variable.name() for variable in variables])
    return {
        name: frozen(_dense(variable.value))
        for name, variable in zip(names, variables, strict=True)
    }


@_quiet()
def _duals(problem: cp.Problem) -> dict[str, Vector]:
    """Return the duals as cvxpy holds them; further parts of a cone's have a number behind."""
    duals = {}
    for name, constraint in zip(constraint_names(problem), problem.constraints, strict=True):
        for index, variable in enumerate(constraint.dual_variables):
            if variable.value is not None:
                duals[f"{name}:{index}" if index else name] = frozen(_dense(variable.value))
    return duals


def _dense(value: Any) -> Vector:  # noqa: ANN401
    return np.array(value.toarray() if sp.issparse(value) else value, dtype=float)


def _objective(problem: cp.Problem) -> float:
    return float(np.asarray(problem.value).item())
