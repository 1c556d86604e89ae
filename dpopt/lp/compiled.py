"""What cvxpy compiles a problem to, read as a program of ours.

It becomes a `Problem` with a block of rows for each constraint of the user. cvxpy tells which row
and column belongs to what by its own way back: the number of a row, sent back as that row's
multiplier, arrives at the constraint that the row comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy import settings
from cvxpy.reductions.solution import Solution as CvxpyAnswer
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
from cvxpy.reductions.solvers.utilities import extract_dual_value, get_dual_values

from dpopt._errors import ParameterError
from dpopt._types import SparseMatrix, Vector
from dpopt.lp.model import Oracle, Rows, Separation
from dpopt.lp.problem import Problem
from dpopt.lp.solution import Solution

Families: TypeAlias = Mapping[str, tuple[cp.Expression, Oracle]]
"""By name, what an oracle sees, an affine expression such as a variable, and the oracle."""

TITLE = "cvxpy problem"
"""What a problem of cvxpy, which has no name, is called."""


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

    def solve_via_data(
        self,
        data: Any,  # noqa: ANN401
        warm_start: bool,
        verbose: bool,
        solver_opts: Any,  # noqa: ANN401
        solver_cache: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        raise NotImplementedError("a problem is solved by dpopt.solve(problem).")

    def invert(self, solution: Point, inverse_data: Any) -> CvxpyAnswer:  # noqa: ANN401
        """Turn the answer of the loop into cvxpy's words."""
        constraints = inverse_data[self.EQ_CONSTR] + inverse_data[self.NEQ_CONSTR]
        return CvxpyAnswer(
            cp.OPTIMAL,
            solution.value + inverse_data[settings.OFFSET],
            {inverse_data[self.VAR_ID]: solution.x},
            get_dual_values(solution.z, extract_dual_value, constraints),
            {
                settings.SOLVE_TIME: solution.seconds,
                settings.NUM_ITERS: solution.iterations,
            },
        )


@dataclass(frozen=True)
class Point:
    """A point of the compiled program and its multipliers, in cvxpy's sign."""

    x: Vector
    z: Vector
    value: float = 0.0
    seconds: float = 0.0
    iterations: int = 0


# cvxpy keeps what it compiled for a solver: it must be the same object each time.
LINEAR = _Linear()


@dataclass
class Probed:
    """What is kept for a problem as long as it lives.

    Attributes:
        probed: the problem with one more variable for each family, equal to what its oracle sees.
        probes: these variables and their constraints.
        seen: the expressions that they are equal to.
        oracles: over the compiled program's variables: cuts are kept for the same object only.
    """

    probed: cp.Problem
    probes: list[tuple[cp.Variable, cp.Constraint]]
    seen: tuple[cp.Expression, ...]
    oracles: dict[str, _Seen] = field(default_factory=dict)


_PROBED: WeakKeyDictionary[cp.Problem, Probed] = WeakKeyDictionary()


def probed_problem(problem: cp.Problem, families: Families) -> Probed:
    """Return what is kept for the problem with these families, anew if they are others."""
    seen, probes = tuple(expression for expression, _ in families.values()), []
    compiled = _PROBED.get(problem)
    if compiled is not None and [*map(id, compiled.seen)] == [*map(id, seen)]:
        return compiled
    if not seen:
        # Not kept: what is kept for a problem would keep the problem itself.
        return Probed(problem, [], seen)
    for expression in seen:
        probe = cp.Variable(expression.size)
        probes.append((probe, probe == cp.vec(expression, order="C")))
    own = [constraint for _, constraint in probes]
    probed = cp.Problem(problem.objective, [*problem.constraints, *own])
    _PROBED[problem] = Probed(probed, probes, seen)
    return _PROBED[problem]


def compile_for(
    problem: cp.Problem,
    solver: str | _Linear,
    **options: Any,  # noqa: ANN401
) -> tuple[Any, Any, Any]:
    """Return cvxpy's data for a solver, and what takes the solver's answer back."""
    compiled: Any = problem.get_problem_data(
        solver,  # pyright: ignore[reportArgumentType]
        ignore_dpp=not problem.is_dpp(),
        **options,
    )
    return compiled


class CompiledLinear:
    """A compiled linear program: A x = b in its first rows, A x <= b in the others."""

    def __init__(
        self,
        problem: cp.Problem,
        compiled: Probed,
        data: Any,  # noqa: ANN401
        chain: Any,  # noqa: ANN401
        inverse: Any,  # noqa: ANN401
    ) -> None:
        self._given, self._compiled = problem, compiled
        self._matrix = sp.csr_array(data["A"])
        self._limits, self._cost = np.asarray(data["b"], dtype=float), data["c"]
        self._equal = np.arange(self._limits.size) < data["dims"].zero
        columns = self._cost.size
        self._lower = _bounds(data[settings.LOWER_BOUNDS], -np.inf, columns)
        self._upper = _bounds(data[settings.UPPER_BOUNDS], np.inf, columns)
        self._stuffed = data[settings.PARAM_PROB]
        own = problem.variables()
        self._names = {variable.name() for variable in own}
        self._names_by_id = {variable.id: variable.name() for variable in own}
        # What stands in the duals of a constraint if the multiplier of row i is i; or -i, of a
        # constraint that cvxpy turns over.
        numbered = Point(np.zeros(columns), np.arange(self._limits.size, dtype=float))
        rows = chain.invert(numbered, inverse).dual_vars
        self._rows = {
            key: np.abs(np.asarray(numbers).ravel()).astype(np.int64)
            for key, numbers in rows.items()
        }
        self._set_aside(compiled)
        self._owners = self._owned()

    def _set_aside(self, compiled: Probed) -> None:
        """Read from the probes' rows what the oracles see, and take the probes away.

        A row of a probe is a (p_k - e_k(x)) = 0, compiled: p_k = (b - A' x) / a, with A' the row
        without the probe's own column.
        """
        columns = np.ones(self._cost.size, dtype=bool)
        used = np.ones(self._limits.size, dtype=bool)
        places = []
        for probe, constraint in compiled.probes:
            first = self._stuffed.var_id_to_col[probe.id]
            own, rows = np.arange(first, first + probe.size), self._rows[constraint.id]
            columns[own], used[rows] = False, False
            places.append((own, rows))
        self._kept, self._columns, self._used = columns, np.flatnonzero(columns), used
        self._seen = []
        for own, rows in places:
            factor = self._matrix[rows, own]
            factor = np.asarray(factor.todense() if sp.issparse(factor) else factor).ravel()
            seen = sp.diags_array(-1.0 / factor) @ self._matrix[rows][:, self._columns]
            self._seen.append((sp.csr_array(seen), self._limits[rows] / factor))

    def _owned(self) -> npt.NDArray[np.int64]:
        """Return the index of the constraint that each row comes from; -1 for the objective.

        A row that cvxpy adds for |x| or a maximum belongs to the constraint whose rows hold the
        variable that it adds with it.
        """
        owners = np.full(self._limits.size, -1, dtype=np.int64)
        for index, constraint in enumerate(self._given.constraints):
            owners[self._rows.get(constraint.id, [])] = index
        owners[~self._used] = -2
        added = self._added_columns()
        pattern = sp.coo_array(self._matrix)
        inside = added[pattern.col] & self._used[pattern.row]
        row, column = pattern.row[inside], pattern.col[inside]
        while True:
            of_column = np.full(self._cost.size, -1, dtype=np.int64)
            np.maximum.at(of_column, column, owners[row])
            gained = owners.copy()
            np.maximum.at(gained, row, np.where(owners[row] == -1, of_column[column], -1))
            if np.array_equal(gained, owners):
                return owners
            owners = gained

    def _added_columns(self) -> npt.NDArray[np.bool_]:
        """Tell the columns that are no variable of the user's."""
        added = np.ones(self._cost.size, dtype=bool)
        for variable in self._stuffed.variables:
            if self._own_name(variable) is not None:
                added[self._place(variable)] = False
        return added

    def _place(self, variable: cp.Variable) -> slice:
        first = self._stuffed.var_id_to_col[variable.id]
        return slice(first, first + variable.size)

    def _own_name(self, variable: cp.Variable) -> str | None:
        """Return the user's name of a variable, which cvxpy may have replaced by a smaller one."""
        name = self._names_by_id.get(variable.id, variable.name())
        return name if name in self._names else None

    def problem(self, families: Families) -> Problem:
        """Return the program with a block of rows for each constraint."""
        blocks, labels = self._blocks()
        labels = unique(labels, list(families))
        named = [
            (self._own_name(variable) or "auxiliary", self._place(variable))
            for variable in sorted(self._stuffed.variables, key=lambda v: self._place(v).start)
            if self._kept[self._place(variable).start]
        ]
        names = unique([name for name, _ in named], [*families, *labels])
        lp = Problem(TITLE)
        for name, (_, place) in zip(names, named, strict=True):
            size = place.stop - place.start
            lp.add_variables(name, size, lower=self._lower[place], upper=self._upper[place])
        lower = np.where(self._equal, self._limits, -np.inf)
        matrix = self._matrix[:, self._columns]
        for label, rows in zip(labels, blocks, strict=True):
            lp.add_rows(label, matrix[rows], lower=lower[rows], upper=self._limits[rows])
        for (name, (_, oracle)), (seen, offset) in zip(families.items(), self._seen, strict=True):
            lp.add_family(name, self._over_columns(name, _Seen(oracle, seen, offset)))
        cost = self._cost[self._columns]
        if maximising(self._given):
            lp.maximise(-cost)
        else:
            lp.minimise(cost)
        return lp

    def _over_columns(self, name: str, oracle: _Seen) -> _Seen:
        """Return the oracle, or the object that an earlier solve had for the same."""
        kept = self._compiled.oracles.get(name)
        if kept is None or not kept.same(oracle):
            self._compiled.oracles[name] = oracle
        return self._compiled.oracles[name]

    def _blocks(self) -> tuple[list[npt.NDArray[np.int64]], list[str]]:
        """Return the rows of each block in their order, and its label."""
        blocks, labels = [], []
        names = constraint_names(self._given)
        own_of = [self._rows.get(constraint.id) for constraint in self._given.constraints]
        for index, (name, own) in enumerate(zip(names, own_of, strict=True)):
            mine = np.flatnonzero(self._owners == index)
            if mine.size:
                stated = np.empty(0, dtype=np.int64) if own is None else own
                blocks.append(np.concatenate([stated, np.setdiff1d(mine, stated)]))
                labels.append(name)
        rest = np.flatnonzero(self._owners == -1)
        if rest.size:
            blocks.append(rest)
            labels.append("objective")
        self._order = np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)
        return blocks, labels

    def put_back(self, inner: Solution, sign: float) -> tuple[Vector, Vector]:
        """Return the point over all columns and the multipliers of all rows, in cvxpy's sign."""
        x, z = np.zeros(self._cost.size), np.zeros(self._limits.size)
        x[self._columns] = inner.x
        named = [value for name, value in inner.duals.items() if name not in inner.cuts]
        if named:
            z[self._order] = -sign * np.concatenate(named)
        return x, z


def _bounds(values: object, missing: float, size: int) -> Vector:
    return np.full(size, missing) if values is None else np.asarray(values, dtype=float)


@dataclass(frozen=True, eq=False)
class _Seen:
    """An oracle over matrix @ x + offset as one over x."""

    oracle: Oracle
    matrix: SparseMatrix
    offset: Vector

    def same(self, other: _Seen) -> bool:
        """Whether the other one says the same of every point; parameters may stand in it."""
        return (
            self.oracle is other.oracle
            and self.matrix.shape == other.matrix.shape
            and np.array_equal(self.offset, other.offset)
            and (self.matrix != other.matrix).nnz == 0
        )

    def __call__(self, x: Vector) -> Separation:
        answer = self.oracle(self.matrix @ x + self.offset)
        rows = answer.rows
        if rows.matrix.shape[1] != self.offset.size:
            raise ParameterError(
                f"the oracle of a family answered with {rows.matrix.shape[1]} columns; it sees "
                f"{self.offset.size} values."
            )
        fixed = rows.matrix @ self.offset
        over = sp.csr_array(rows.matrix @ self.matrix)
        return Separation(
            Rows(over, rows.lower - fixed, rows.upper - fixed), answer.worst, answer.checked
        )
