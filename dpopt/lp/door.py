"""A `cvxpy.Problem` solved as one of ours: named, bounded, its values put back where they belong.

cvxpy compiles the problem, once for all values of its parameters where it is DPP and no family is
given. It becomes a `Problem` with a block of rows for each constraint, and goes through the
cutting-plane loop. Which row belongs to what is found by cvxpy's own way back: the number of a row,
sent back as that row's multiplier, arrives at the constraint that the row comes from. Only linear
problems are taken: programs over cones are cvxpy's own business.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy import settings
from cvxpy.reductions.solution import Solution as CvxpyAnswer
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
from cvxpy.reductions.solvers.utilities import extract_dual_value, get_dual_values

from dpopt import _checks
from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend
from dpopt.lp.bounds import boxed, dual_bound
from dpopt.lp.model import Oracle, stack
from dpopt.lp.problem import Problem
from dpopt.lp.solution import Solution, Status

Families: TypeAlias = Mapping[str, tuple[cp.Expression, Oracle]]
"""By name, what an oracle sees, an affine expression such as a variable, and the oracle."""

_TITLE = "cvxpy problem"
_NOISE = "a reduced cost of theirs below 1e-9 of its own terms is taken as 0."
# What cvxpy adds for maxima and the like, and the values that families see.
_AUXILIARY, _SEEN = "(auxiliary)", "(seen by) "


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
        inner: the solution of the compiled linear program, which `start` begins from.
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
    """Solve a cvxpy problem by `dpopt.lp.loop.solve`; see `dpopt.solve`, which calls this.

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
        raise ParameterError("problem has no variables; there is nothing to solve for.")
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


def _require_families(families: Any, problem: cp.Problem) -> Families:  # noqa: ANN401
    if families is None:
        return {}
    pairs: Any = families.items() if isinstance(families, Mapping) else [("", families)]
    known = {variable.id for variable in problem.variables()}
    for name, pair in pairs:
        fits = isinstance(name, str) and name and isinstance(pair, Sequence) and len(pair) == 2
        if not fits or not isinstance(pair[0], cp.Expression) or not callable(pair[1]):
            raise ParameterError(
                f"families is {_checks.shown(families)}; it must be a mapping from names to pairs "
                "(variable, oracle)."
            )
        variables = pair[0].variables()
        if not pair[0].is_affine() or not variables or pair[0].size == 0:
            raise ParameterError(
                f"family {name!r} is over {str(pair[0])[:60]!r}; it must be over a variable or an "
                "affine expression."
            )
        strange = [variable.name() for variable in variables if variable.id not in known]
        if strange:
            raise ParameterError(
                f"family {name!r} is over {', '.join(strange)}, which stands in no constraint and "
                "not in the objective of the problem."
            )
    return families


def unique(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return the names, each with a number behind it where it was taken before."""
    known, unique = set(taken), []
    for name in names:
        candidate, number = name, 1
        while candidate in known:
            number += 1
            candidate = f"{name} ({number})"
        known.add(candidate)
        unique.append(candidate)
    return unique


def constraint_names(problem: cp.Problem) -> list[str]:
    """Return the constraints' labels; of those that have none, their places."""
    labels = [constraint.label for constraint in problem.constraints]
    return unique([label or f"constraint {i}" for i, label in enumerate(labels)])


def maximising(problem: cp.Problem) -> bool:
    """Whether the user maximises; what cvxpy compiles is a minimisation."""
    return isinstance(problem.objective, cp.Maximize)


@dataclass(frozen=True)
class _Point:
    """A point of the compiled program and its multipliers, in cvxpy's sign."""

    x: Vector
    z: Vector
    value: float = 0.0
    seconds: float = 0.0
    iterations: int = 0


class _Linear(ConicSolver):
    """What cvxpy compiles linear programs for: it hands over the data and takes the answer."""

    BOUNDED_VARIABLES = True

    def name(self) -> str:
        return "DPOPT"

    def import_solver(self) -> None:
        """Nothing has to be there."""

    def cite(self, data: object) -> str:
        del data
        return ""

    def solve_via_data(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401
        raise NotImplementedError("a problem is solved by dpopt.solve(problem).")

    def invert(self, solution: _Point, inverse_data: Any) -> CvxpyAnswer:  # noqa: ANN401
        """Turn the answer of the loop into cvxpy's words."""
        constraints = inverse_data[self.EQ_CONSTR] + inverse_data[self.NEQ_CONSTR]
        told = {
            settings.SOLVE_TIME: solution.seconds,
            settings.NUM_ITERS: solution.iterations,
        }
        return CvxpyAnswer(
            cp.OPTIMAL,
            solution.value + inverse_data[settings.OFFSET],
            {inverse_data[self.VAR_ID]: solution.x},
            get_dual_values(solution.z, extract_dual_value, constraints),
            told,
        )


# cvxpy keeps what it compiled for a solver: it must be the same object each time.
_LINEAR = _Linear()


class _Compiled:
    """A compiled linear program: A x = b in its first rows, A x <= b in the others.

    Each family sees a variable of its own, equal to its expression by a constraint of its own.
    """

    def __init__(self, problem: cp.Problem, families: Families) -> None:
        self.problem = self.probed = problem
        sizes = {name: expression.size for name, (expression, _) in families.items()}
        self.seen = {name: cp.Variable(size, name=_SEEN + name) for name, size in sizes.items()}
        self.equal: list[Any] = [
            variable == cp.vec(families[name][0], order="C") for name, variable in self.seen.items()
        ]
        if families:
            self.probed = cp.Problem(problem.objective, [*problem.constraints, *self.equal])
        compiled: Any = self.probed.get_problem_data(
            _LINEAR,  # pyright: ignore[reportArgumentType]
            ignore_dpp=not problem.is_dpp(),
        )
        self.data, self.chain, self.inverse = compiled

    def put_back(self, x: Vector, z: Vector, inner: Solution) -> None:
        """Give variables and constraints of the user their values."""
        point = _Point(x, z, float(self.data["c"] @ x), inner.seconds, inner.iterations)
        if self.probed is self.problem:
            self.problem.unpack_results(point, self.chain, self.inverse)
        else:
            self.problem.unpack(self.chain.invert(point, self.inverse))

    def rows(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the rows of each constraint by its name; those of no constraint come last."""
        count = self.data["b"].size
        numbered = _Point(np.zeros(self.data["c"].size), np.arange(count, dtype=float))
        duals = self.chain.invert(numbered, self.inverse).dual_vars
        names = unique([*constraint_names(self.problem), *(_SEEN + name for name in self.seen)])
        own, free = {}, np.ones(count, dtype=bool)
        for name, constraint in zip(names, [*self.problem.constraints, *self.equal], strict=True):
            # The multipliers of a constraint that cvxpy turns over have the other sign.
            numbers = np.abs(np.ravel(duals.get(constraint.id, []))).astype(np.int64)
            own[name], free[numbers] = numbers, False
        own[_AUXILIARY] = np.flatnonzero(free)
        return {name: rows for name, rows in own.items() if rows.size}

    def program(self, families: Families) -> tuple[Problem, npt.NDArray[np.int64]]:
        """Return it with a block of rows for each constraint, and the rows in their order."""
        matrix, limits = sp.csr_array(self.data["A"]), np.asarray(self.data["b"], dtype=float)
        lower = np.where(np.arange(limits.size) < self.data["dims"].zero, limits, -np.inf)
        rows, stuffed = self.rows(), self.data[settings.PARAM_PROB]
        labels = unique([*rows], [*families])
        first = stuffed.var_id_to_col
        variables = sorted(stuffed.variables, key=lambda variable: first[variable.id])
        named = {variable.id: str(variable.name()) for variable in self.probed.variables()}
        # cvxpy may have replaced a variable by a smaller one of its name.
        names = [named.get(variable.id, str(variable.name())) for variable in variables]
        names = [name if name in named.values() else _AUXILIARY for name in names]
        names = unique(names, [*families, *labels])
        called = {variable.id: name for name, variable in zip(names, variables, strict=True)}
        lp = Problem(_TITLE)
        low, high = (
            np.full(self.data["c"].size, missing) if values is None else np.asarray(values, float)
            for values, missing in (
                (self.data[settings.LOWER_BOUNDS], -np.inf),
                (self.data[settings.UPPER_BOUNDS], np.inf),
            )
        )
        for variable in variables:
            part = slice(first[variable.id], first[variable.id] + variable.size)
            name = called[variable.id]
            lp.add_variables(name, variable.size, lower=low[part], upper=high[part])
        for label, at in zip(labels, rows.values(), strict=True):
            lp.add_rows(label, matrix[at], lower=lower[at], upper=limits[at])
        for name, (_, oracle) in families.items():
            lp.add_family(name, oracle, over=called[self.seen[name].id])
        if maximising(self.problem):
            lp.maximise(-self.data["c"])
        else:
            lp.minimise(self.data["c"])
        return lp, np.concatenate([np.empty(0, dtype=np.int64), *rows.values()])


def _linear(
    problem: cp.Problem,
    families: Families,
    solve: Callable[[Problem], Solution],
    begin: float,
) -> CvxpySolution:
    sign = -1.0 if maximising(problem) else 1.0
    with _quiet():
        compiled = _Compiled(problem, families)
        lp, order = compiled.program(families)
    try:
        inner = solve(lp)
    except InfeasibleError as error:
        problem.unpack(CvxpyAnswer(cp.INFEASIBLE, sign * math.inf, {}, {}, {}))
        raise _of_the_user(error) from None
    except SolverError as error:
        if error.status == Status.UNBOUNDED:
            problem.unpack(CvxpyAnswer(cp.UNBOUNDED, -sign * math.inf, {}, {}, {}))
        raise
    z = np.zeros(order.size)
    z[order] = np.concatenate([np.empty(0), *(-sign * inner.duals[name] for name in lp.blocks)])
    with _quiet():
        compiled.put_back(inner.x, z, inner)
    bound, note = _linear_bound(lp, inner, sign)
    bound += sign * float(compiled.inverse[-1][settings.OFFSET])
    objective = _objective(problem)
    own = {
        "values": _values(problem),
        "objective": objective,
        "bound": bound,
        "gap": sign * (objective - bound),
        "duals": _duals(problem) | {name: frozen(-sign * inner.duals[name]) for name in families},
        "seconds": perf_counter() - begin,
        "note": note,
    }
    kept = {name: getattr(inner, name) for name in Solution.__dataclass_fields__}
    return CvxpySolution(**(kept | own), inner=inner)


def _hidden(name: str) -> bool:
    """Whether a name is of what the user did not write."""
    return name.removeprefix("bounds of ").startswith((_AUXILIARY, _SEEN))


def _of_the_user(error: InfeasibleError) -> InfeasibleError:
    """Return the error with the names of the user's own constraints alone."""
    blocks = tuple(name for name in error.blocks if not _hidden(name))
    if not blocks:
        return error
    conflict = f"no point satisfies {_TITLE!r}; in conflict: {', '.join(blocks)}."
    return InfeasibleError(conflict, blocks)


def _linear_bound(lp: Problem, inner: Solution, sign: float) -> tuple[float, str]:
    """Return the bound over the limits that are implied, where it is finite, and what to say."""
    model, value = lp.assemble(), sign * inner.objective
    rows = stack([model.rows, *inner.cuts.values()], model.cost.size)
    within = boxed(replace(model, rows=rows), value)
    y = sign * np.concatenate([np.empty(0), *inner.duals.values()])
    endless = [
        name
        for name, place in model.variables.items()
        if not np.all(np.isfinite(within.lower[place]) & np.isfinite(within.upper[place]))
        and not name.startswith(_SEEN)
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
def _values(problem: cp.Problem) -> dict[str, Vector]:
    variables = problem.variables()
    names = unique([variable.name() for variable in variables])
    return {
        name: frozen(_dense(variable.value))
        for name, variable in zip(names, variables, strict=True)
    }


@_quiet()
def _duals(problem: cp.Problem) -> dict[str, Vector]:
    """Return the duals as cvxpy holds them, one for each constraint of a linear program."""
    return {
        name: frozen(_dense(variable.value))
        for name, constraint in zip(constraint_names(problem), problem.constraints, strict=True)
        for variable in constraint.dual_variables
        if variable.value is not None
    }


def _dense(value: Any) -> Vector:  # noqa: ANN401
    return np.array(value.toarray() if sp.issparse(value) else value, dtype=float)


def _objective(problem: cp.Problem) -> float:
    return float(np.asarray(problem.value).item())
