"""A `cvxpy.Problem` solved as one of ours: named, bounded, its values put back where they belong.

cvxpy compiles the problem, once for all values of its parameters where it is DPP. It becomes a
`Problem` with a block of rows for each constraint and goes through the cutting-plane loop. Only
linear problems are taken: programs over cones are cvxpy's own business.
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
from dpopt.lp.backends import Backend
from dpopt.lp.bounds import boxed, dual_bound
from dpopt.lp.compiled import (
    LINEAR,
    TITLE,
    CompiledLinear,
    Families,
    Point,
    compile_for,
    constraint_names,
    maximising,
    probed_problem,
    unique,
)
from dpopt.lp.model import stack
from dpopt.lp.problem import Problem
from dpopt.lp.solution import Solution, Status

_NOISE = "a reduced cost of theirs below 1e-9 of its own terms is taken as 0."


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
            problem has no variables.
    """

    inner: Solution | None = None


def solve_cvxpy(
    problem: cp.Problem,
    backend: str | Backend,
    solve: Callable[..., Solution],
    *,
    families: Families | None = None,
    start: Solution | None = None,
    **others: Any,  # noqa: ANN401
) -> CvxpySolution:
    """Solve a cvxpy problem; see `dpopt.solve`, which calls this.

    Args:
        problem: its variables, constraints, value and status are set as by ``problem.solve()``.
        backend: as for `dpopt.solve`.
        solve: `dpopt.lp.loop.solve`.
        families: constraint sets given by oracles, over the values in C order.
        start: as for `dpopt.solve`, of this problem or of one with some of its names.
        others: further arguments for ``solve``.

    Raises:
        ParameterError: for a problem that is not linear or not convex by cvxpy's rules, has integer
            or complex variables, or a parameter without a value; or families that do not fit.
        InfeasibleError: if no point satisfies every constraint; it names those in conflict.
        SolverError: for any other end.
    """
    _require_solvable(problem)
    families = _require_families(families, problem)
    begin = perf_counter()
    if not problem.variables():
        return _constant(problem, begin)
    if not problem.is_lp():
        raise ParameterError(
            "problem has a cone or an objective that is not linear; dpopt.solve takes linear "
            "programs: solve it by problem.solve() of cvxpy, and prove the kernel that it finds "
            "by dpopt.certify."
        )
    inner = start.inner if isinstance(start, CvxpySolution) else start
    if inner is not None:
        others["start"] = inner
    return _linear(problem, families, lambda lp: solve(lp, backend, **others), begin)


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
    """Return the bound over the limits that are implied, where it is finite, and what to say."""
    model, value = lp.assemble(), sign * inner.objective
    rows = stack([model.rows, *inner.cuts.values()], model.cost.size)
    within = boxed(replace(model, rows=rows), value)
    duals = [np.asarray(dual) for dual in inner.duals.values()]
    y = sign * np.concatenate(duals) if duals else np.empty(0)
    endless = [
        name
        for name, place in model.variables.items()
        if not np.all(np.isfinite(within.lower[place]) & np.isfinite(within.upper[place]))
    ]
    bound = sign * min(value, dual_bound(within, y))
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
    problem.solve(solver="CLARABEL")
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
