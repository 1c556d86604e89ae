"""The cvxpy interface: solve a `cvxpy.Problem` by the cutting-plane loop of dpopt.

cvxpy compiles the problem (once for all parameter values, if it is DPP). It
becomes a `Problem` with one block of rows for each constraint, and the solution is written back to
the user's variables and constraints. To learn which row belongs to which constraint, row numbers
are passed to cvxpy as multipliers: each arrives at the constraint that its row comes from. Only
linear programs are accepted; cvxpy solves cone programs itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress
from time import perf_counter
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy import settings
from cvxpy.reductions.solution import Solution as CvxpyAnswer
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
from cvxpy.reductions.solvers.utilities import extract_dual_value, get_dual_values

from dpopt._errors import InfeasibleError, ParameterError, SolverError
from dpopt._types import Vector, frozen
from dpopt.lp.backends import Backend
from dpopt.lp.problem import Problem
from dpopt.lp.solution import Solution, Status

# What errors call the problem.
_TITLE = "cvxpy problem"
# Name of cvxpy's epigraph variables and constraints.
_AUXILIARY = "(auxiliary)"


@dataclass(frozen=True, repr=False)
class CvxpySolution(Solution):
    """An optimal solution of a `cvxpy.Problem`, with its dual bound, gap and residual.

    Differences from `Solution`: values have the shapes of the user's variables; objective, bound
    and gap include the objective's constants; duals have the shapes and the sign of cvxpy, the
    multipliers of lhs - rhs in the Lagrangian of the minimisation (of minus the objective, if
    maximising), and so are at least 0 for inequalities. Constraints without a label are named
    "constraint 0", "constraint 1" and so on, by their index in the problem; a repeated name of a
    variable or constraint gets the suffix " (2)".

    Attributes:
        inner: the solution of the compiled linear program, used by `start`.
    """

    inner: Solution | None = None


def solve_cvxpy(
    problem: cp.Problem,
    backend: str | Backend,
    solve: Callable[..., Solution],
    *,
    start: Solution | None = None,
    **others: Any,  # noqa: ANN401
) -> CvxpySolution:
    """Solve a cvxpy problem by ``solve``, which is `dpopt.lp.loop.solve`."""
    _require_solvable(problem)
    begin = perf_counter()
    if not problem.variables():
        raise ParameterError("problem has no variables; there is nothing to solve for.")
    if not problem.is_lp():
        raise ParameterError(
            "problem has a cone or an objective that is not linear; dpopt.solve takes linear "
            "programs: solve it by problem.solve() of cvxpy, and prove the kernel that it finds "
            "by dpopt.certify."
        )
    if isinstance(start, CvxpySolution):
        start = start.inner
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    with _quiet():
        compiled = _Compiled(problem)
        lp, order = compiled.program()
    try:
        inner = solve(lp, backend, start=start, **others)
    except InfeasibleError as error:
        problem.unpack(CvxpyAnswer(cp.INFEASIBLE, sign * math.inf, {}, {}, {}))
        # Only the user's constraints are named.
        own = [not name.removeprefix("bounds of ").startswith(_AUXILIARY) for name in error.blocks]
        blocks = tuple(compress(error.blocks, own)) or error.blocks
        conflict = f"no point satisfies {_TITLE!r}; in conflict: {', '.join(blocks)}."
        raise InfeasibleError(conflict if blocks else str(error), blocks) from None
    except SolverError as error:
        if error.status == Status.UNBOUNDED:
            problem.unpack(CvxpyAnswer(cp.UNBOUNDED, -sign * math.inf, {}, {}, {}))
        raise
    z = np.zeros(order.size)
    z[order] = np.concatenate([np.empty(0), *(-sign * inner.duals[name] for name in lp.blocks)])
    with _quiet():
        problem.unpack(compiled.answer(inner.x, z))
    bound = inner.bound + sign * float(compiled.inverse[-1][settings.OFFSET])
    objective = float(np.asarray(problem.value).item())
    inherited = {name: getattr(inner, name) for name in Solution.__dataclass_fields__}
    variables = problem.variables()
    names = zip(constraint_names(problem), problem.constraints, strict=True)
    duals = _by_name((name, dual) for name, row in names for dual in row.dual_variables)
    return replace(
        CvxpySolution(**inherited, inner=inner),
        values=_by_name(zip(unique([v.name() for v in variables]), variables, strict=True)),
        objective=objective,
        bound=bound,
        gap=sign * (objective - bound),
        duals=duals,
        seconds=perf_counter() - begin,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress cvxpy's warnings, which repeat what errors say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _require_solvable(problem: cp.Problem) -> None:
    for parameter in problem.parameters():
        if parameter.value is None:
            # For a parameter derived from others, name the user's parameter.
            sources = getattr(parameter, "derived_from", [parameter])
            name = next(source.name() for source in sources if source.value is None)
            raise ParameterError(f"parameter {name!r} has no value; set its value before solving.")
    finite = any(type(constraint).__name__ == "FiniteSet" for constraint in problem.constraints)
    if problem.is_mixed_integer() or finite:
        raise ParameterError(
            "problem has integer or boolean variables, or finite sets; only programs over real "
            "numbers are taken, whose optimum has a dual bound."
        )
    if any(expression.is_complex() for expression in [*problem.variables(), *problem.constraints]):
        raise ParameterError("problem has complex numbers; write real and imaginary parts.")
    if not problem.is_dcp():
        names = constraint_names(problem)
        wrong = [name for name, c in zip(names, problem.constraints, strict=True) if not c.is_dcp()]
        where = "its objective" if not problem.objective.is_dcp() else repr(wrong[0])
        raise ParameterError(
            f"problem is not convex by cvxpy's rules (DCP): see {where}; it must be."
        )


def unique(names: Sequence[str], reserved: Sequence[str] = ()) -> list[str]:
    """Return the names, with a number appended to repeated and reserved ones."""
    used, unique = set(reserved), []
    for name in names:
        candidate, number = name, 1
        while candidate in used:
            number += 1
            candidate = f"{name} ({number})"
        used.add(candidate)
        unique.append(candidate)
    return unique


def constraint_names(problem: cp.Problem) -> list[str]:
    """Return the constraints' labels, or "constraint i" for those without one."""
    labels = [constraint.label for constraint in problem.constraints]
    return unique([label or f"constraint {i}" for i, label in enumerate(labels)])


class _Linear(ConicSolver):
    """The solver interface that cvxpy compiles for: it passes data on and takes the solution."""

    BOUNDED_VARIABLES = True

    def name(self) -> str:
        return "DPOPT"

    def import_solver(self) -> None:
        """Do nothing: no package is needed."""

    def cite(self, data: object) -> str:
        del data
        return ""

    def solve_via_data(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        raise NotImplementedError("a problem is solved by dpopt.solve(problem).")

    def invert(self, solution: tuple[float, Vector, Vector], inverse_data: Any) -> CvxpyAnswer:  # noqa: ANN401
        """Return an objective, x and multipliers in cvxpy's sign as cvxpy's solution."""
        constraints = inverse_data[self.EQ_CONSTR] + inverse_data[self.NEQ_CONSTR]
        value, x, z = solution
        return CvxpyAnswer(
            cp.OPTIMAL,
            value + inverse_data[settings.OFFSET],
            {inverse_data[self.VAR_ID]: x},
            get_dual_values(z, extract_dual_value, constraints),
            {},
        )


# One object for all problems: cvxpy caches what it compiled by the solver object.
_LINEAR = _Linear()


class _Compiled:
    """A compiled linear program: A x = b in its first rows, A x <= b in the others."""

    def __init__(self, problem: cp.Problem) -> None:
        self.problem = problem
        compiled: Any = problem.get_problem_data(
            _LINEAR,  # pyright: ignore[reportArgumentType]
            ignore_dpp=not problem.is_dpp(),
        )
        self.data, self.chain, self.inverse = compiled

    def answer(self, x: Vector, z: Vector) -> CvxpyAnswer:
        """Return a solution and its multipliers by the user's variables and constraints."""
        return self.chain.invert((float(self.data["c"] @ x), x, z), self.inverse)

    def rows(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the row indices by constraint name; rows of no constraint come last."""
        count = self.data["b"].size
        duals = self.answer(np.zeros(self.data["c"].size), np.arange(count, dtype=float)).dual_vars
        blocks, free = {}, np.ones(count, dtype=bool)
        names = constraint_names(self.problem)
        for name, constraint in zip(names, self.problem.constraints, strict=True):
            # cvxpy flips the sign of some constraints, and so of their row numbers.
            numbers = np.abs(np.ravel(duals.get(constraint.id, []))).astype(np.int64)
            blocks[name], free[numbers] = numbers, False
        blocks[_AUXILIARY] = np.flatnonzero(free)
        return {name: rows for name, rows in blocks.items() if rows.size}

    def program(self) -> tuple[Problem, npt.NDArray[np.int64]]:
        """Return a problem with a block of rows for each constraint, and its order of the rows."""
        matrix, limits = sp.csr_array(self.data["A"]), np.asarray(self.data["b"], dtype=float)
        lower = np.where(np.arange(limits.size) < self.data["dims"].zero, limits, -np.inf)
        rows, stuffed = self.rows(), self.data[settings.PARAM_PROB]
        labels = unique([*rows])
        offsets = stuffed.var_id_to_col
        variables = sorted(stuffed.variables, key=lambda variable: offsets[variable.id])
        # cvxpy may have replaced a variable by a smaller one of the same name.
        user_names = {str(variable.name()) for variable in self.problem.variables()}
        own = [str(variable.name()) for variable in variables]
        own = [name if name in user_names else _AUXILIARY for name in own]
        names = unique(own, labels)
        name_of = {variable.id: name for name, variable in zip(names, variables, strict=True)}
        lp = Problem(_TITLE)
        ends = self.data[settings.LOWER_BOUNDS], self.data[settings.UPPER_BOUNDS]
        for variable in variables:
            columns = slice(offsets[variable.id], offsets[variable.id] + variable.size)
            least, greatest = (None if end is None else end[columns] for end in ends)
            lp.add_variables(
                name_of[variable.id],
                variable.size,
                lower=-np.inf if least is None else least,
                upper=np.inf if greatest is None else greatest,
            )
        for label, indices in zip(labels, rows.values(), strict=True):
            lp.add_rows(label, matrix[indices], lower=lower[indices], upper=limits[indices])
        # The compiled program always minimises.
        if isinstance(self.problem.objective, cp.Maximize):
            lp.maximise(-self.data["c"])
        else:
            lp.minimise(self.data["c"])
        return lp, np.concatenate([np.empty(0, dtype=np.int64), *rows.values()])


@_quiet()
def _by_name(pairs: Iterable[tuple[str, Any]]) -> dict[str, Vector]:
    """Return the values of cvxpy's variables, primal or dual, by the names in front of them."""
    return {
        name: frozen(np.array(value.toarray() if sp.issparse(value) else value, dtype=float))
        for name, value in ((name, variable.value) for name, variable in pairs)
        if value is not None
    }
