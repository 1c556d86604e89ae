"""A builder of linear programs: named variables, named blocks of rows, and lazy rows.

`Model` and `Rows` are the arrays that backends receive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import MatrixLike, SparseMatrix, Vector, brief

Shape = tuple[int, ...]
"""Shape of a group of variables; () for one number."""

ByIndex = Mapping[Any, float]
"""Coefficients by index: ``{(0, 3): 1.0, (1, 3): -2.0}``, and ``{3: 1.0}`` for one axis."""

Coefficients: TypeAlias = MatrixLike | ByIndex | Sequence[ByIndex]
"""Rows over one group of variables, in any form that `rows_over` accepts."""


@dataclass(frozen=True)
class Rows:
    """Linear constraints ``lower <= matrix @ x <= upper``.

    Attributes:
        matrix: sparse, shape (rows, variables).
        lower: shape (rows,), ``-inf`` where a row has no lower limit.
        upper: shape (rows,), ``+inf`` where a row has no upper limit.
    """

    matrix: SparseMatrix
    lower: Vector
    upper: Vector

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.lower.size)

    def violation(self, x: Vector) -> Vector:
        """Return the violation of each row at ``x``, shape (rows,); 0 where the row holds."""
        values = self.matrix @ x
        return np.maximum(0.0, np.maximum(self.lower - values, values - self.upper))

    def take(self, selection: npt.NDArray[np.bool_] | npt.NDArray[np.int64] | slice) -> Rows:
        """Return the rows selected by a mask, indices or a slice."""
        indices = np.arange(self.count)[selection]
        return Rows(self.matrix[indices], self.lower[indices], self.upper[indices])


def make_rows(
    matrix: MatrixLike, lower: npt.ArrayLike | None = None, upper: npt.ArrayLike | None = None
) -> Rows:
    """Return `Rows` with scalar limits broadcast; at least one of the limits must be given.

    Args:
        matrix: dense or scipy sparse, shape (rows, variables).
        lower: lower limits, a number or shape (rows,); None for none.
        upper: upper limits, likewise.

    Raises:
        ParameterError: if shapes differ, an entry is not finite, or ``lower > upper`` in a row.
    """
    if lower is None and upper is None:
        raise ParameterError("lower and upper are both None; a block of rows needs one of them.")
    entries: Any = matrix
    if not sp.issparse(matrix):
        entries = np.atleast_2d(_checks.floats("matrix", matrix))
        if entries.ndim != 2:
            raise ParameterError(f"matrix has {entries.ndim} axes; it must have two.")
    csr = sp.csr_array(entries, copy=True).astype(np.float64)
    csr.sum_duplicates()
    if not np.all(np.isfinite(csr.data)):
        raise ParameterError("matrix holds a value that is not finite; every entry must be.")
    return Rows(csr, *make_limits((csr.shape[0],), lower, upper, "row"))


def make_limits(
    shape: Shape, lower: npt.ArrayLike | None, upper: npt.ArrayLike | None, what: str
) -> tuple[Vector, Vector]:
    """Return lower and upper limits, broadcast to a shape and flattened; None means no limit."""
    limits = []
    for name, value, missing in (("lower", lower, -np.inf), ("upper", upper, np.inf)):
        array = _checks.floats(name, missing if value is None else value)
        if array.ndim and not _broadcasts(array.shape, shape):
            raise ParameterError(
                f"{name} has shape {array.shape}; it must be a number or of shape {shape}."
            )
        if np.any(np.isnan(array)) or np.any(array == -missing):
            raise ParameterError(
                f"{name} holds NaN or {-missing}; it must hold numbers, or {missing} for no limit."
            )
        limits.append(np.broadcast_to(array, shape).flatten())
    if np.any(limits[0] > limits[1]):
        first = int(np.argmax(limits[0] > limits[1]))
        index = tuple(map(int, np.unravel_index(first, shape))) if shape else ()
        raise ParameterError(
            f"lower is {digits(limits[0][first])} and upper {digits(limits[1][first])} in {what} "
            f"{index[0] if len(index) == 1 else index}; lower must not exceed upper."
        )
    return limits[0], limits[1]


def _broadcasts(actual: Shape, shape: Shape) -> bool:
    # On one axis [limit] would broadcast to every shape; it is more often a mistake.
    if len(shape) == 1:
        return actual == shape
    try:
        return np.broadcast_shapes(actual, shape) == shape
    except ValueError:
        return False


def rows_over(name: str, shape: Shape, entries: Coefficients) -> sp.coo_array:
    """Return rows over one group of variables, shape (rows, size) in C order.

    An array of the group's shape, or a flat one, is one row; with another axis in front it is one
    row for each index of that axis. If an array fits two of these forms, both mean the same rows. A
    mapping from indices to coefficients is one row, a list of mappings several rows.
    """
    size = math.prod(shape)
    if isinstance(entries, Mapping):
        return _by_index(name, shape, [entries])
    if isinstance(entries, list | tuple) and entries and isinstance(entries[0], Mapping):
        return _by_index(name, shape, cast(Sequence[ByIndex], entries))
    sparse = sp.issparse(entries)
    array: Any = (
        sp.coo_array(entries) if sparse else _checks.floats(f"matrix for {name!r}", entries)
    )
    if array.shape in (shape, (size,)):
        return sp.coo_array(array.reshape((1, size)))
    if array.ndim and array.shape[1:] in (shape, (size,)):
        return sp.coo_array(array.reshape((array.shape[0], size)))
    forms = [(size,), shape] if len(shape) > 1 else [(size,)]
    several = " or ".join(f"(rows, {', '.join(map(str, form))})" for form in forms)
    raise ParameterError(
        f"the matrix for {name!r} has shape {array.shape}; it must be "
        f"{' or '.join(map(str, forms))} for one row, or {several}."
    )


def _by_index(name: str, shape: Shape, rows: Sequence[ByIndex]) -> sp.coo_array:
    # Triplets (row, column, value), one for each index of each mapping.
    row_of, column_of, values = [], [], []
    for row, entries in enumerate(rows):
        if not isinstance(entries, Mapping):
            raise ParameterError(
                f"row {row} for {name!r} is {_checks.shown(entries)}; every row must be a mapping "
                "from indices to coefficients, as the first one is."
            )
        column_of += [position_of(name, shape, index) for index in entries]
        values += list(entries.values())
        row_of += [row] * len(entries)
    data = _checks.floats(f"matrix for {name!r}", values)
    if data.ndim != 1:
        raise ParameterError(f"the coefficients for {name!r} must be numbers, one for each index.")
    return sp.coo_array((data, (row_of, column_of)), shape=(len(rows), math.prod(shape)))


def position_of(name: str, shape: Shape, index: object) -> int:
    """Return the position of an index in C order; an integer is an index of a single axis."""
    indices = cast(tuple[int, ...], index if isinstance(index, tuple) else (index,))
    if len(indices) != len(shape) or not all(
        isinstance(i, Integral) and not isinstance(i, bool) and 0 <= i < n
        for i, n in zip(indices, shape, strict=True)
    ):
        raise ParameterError(
            f"{name!r} has no entry {_checks.shown(index)}; its shape is {shape}, and indices "
            "count from 0."
        )
    return int(np.ravel_multi_index(tuple(map(int, indices)), shape)) if shape else 0


def stack(blocks: list[Rows], columns: int) -> Rows:
    """Stack blocks of rows, each padded with zeros to ``columns`` variables."""
    if not blocks:
        return Rows(sp.csr_array((0, columns)), np.empty(0), np.empty(0))
    if len(blocks) == 1 and blocks[0].matrix.shape[1] == columns:
        return blocks[0]
    matrices = [block.matrix for block in blocks]
    padded = [
        sp.csr_array((m.data, m.indices, m.indptr), (len(m.indptr) - 1, columns)) for m in matrices
    ]
    return Rows(
        sp.csr_array(sp.vstack(padded, format="csr")),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


def objective_size(cost: Vector, x: Vector) -> float:
    """Return the scale of relative gaps: max(sum |c_j x_j|, max |c_j|), or 1 if that is 0."""
    return max(float(np.sum(np.abs(cost * x))), float(np.max(np.abs(cost), initial=0.0))) or 1.0


@dataclass(frozen=True)
class Separation:
    """The answer of a separation oracle at a point.

    Attributes:
        rows: violated rows to add, over the variables that the family is declared for; empty if
            no row is violated.
        worst: an upper bound on the violation of any row of the family at the point; infinite if
            the oracle stopped early at violated rows.
        checked: number of constraints that the bound covers.
    """

    rows: Rows
    worst: float
    checked: int


Oracle = Callable[[Vector], Separation]
"""A separation oracle: from values of the family's variables, flat, to a `Separation`."""


@dataclass(frozen=True)
class Model:
    """Minimise ``cost @ x`` subject to ``rows`` and ``lower <= x <= upper``.

    Attributes:
        cost: shape (variables,); already negated if the problem maximises.
        lower: shape (variables,).
        upper: shape (variables,).
        rows: all rows, block after block.
        variables: slice of x of each group of variables, by name.
        blocks: slice of the rows of each block, by name.
    """

    cost: Vector
    lower: Vector
    upper: Vector
    rows: Rows
    variables: Mapping[str, slice]
    blocks: Mapping[str, slice]


Blocks = MatrixLike | Mapping[str, Coefficients]
Objective = npt.ArrayLike | Mapping[str, npt.ArrayLike | ByIndex]


@dataclass(frozen=True)
class Family:
    """Lazy rows: a constraint set too large to write down, given by a separation oracle.

    Attributes:
        oracle: separates a point from the set.
        over: slice of x that the oracle sees and that its rows are over.
        first: returns initial rows; None for no rows.
    """

    oracle: Oracle
    over: slice
    first: Callable[[], Rows] | None = None

    def separate(self, x: Vector) -> Separation:
        """Call the oracle at ``x`` (all variables); return its rows over all variables."""
        answer = self.oracle(x[self.over])
        if np.isnan(answer.worst) or not np.all(np.isfinite(answer.rows.matrix.data)):
            raise ParameterError("the oracle of a family answered with NaN; it must give numbers.")
        return Separation(self.over_all(answer.rows, x.size), answer.worst, answer.checked)

    def over_all(self, rows: Rows, size: int) -> Rows:
        """Return rows over the oracle's variables as rows over all ``size`` variables."""
        # Column j of the oracle's rows is variable over.start + j of the problem.
        entries = rows.matrix.tocoo()
        matrix = sp.csr_array(
            (entries.data, (entries.row, entries.col + self.over.start)), shape=(rows.count, size)
        )
        return Rows(matrix, rows.lower, rows.upper)


@dataclass(frozen=True)
class Goal:
    """One of the objectives, which are optimised lexicographically.

    Attributes:
        cost: coefficients by name of the variables, flat; 0 for variables that are not named.
        maximising: whether the objective is maximised.
    """

    cost: Mapping[str, Vector]
    maximising: bool


class Problem:
    """A linear program over named variables, built step by step; solving does not change it.

    Example:
        >>> from dpopt import Problem, solve
        >>> problem = Problem()
        >>> x = problem.add_variables("x", 2, lower=0.0, upper=1.0)
        >>> problem.add_rows("budget", {"x": [[1.0, 2.0]]}, upper=2.0)
        >>> problem.maximise({"x": [1.0, 1.0]})
        >>> solution = solve(problem)
        >>> round(solution.objective, 6), solution["x"].round(6).tolist()
        (1.5, [1.0, 0.5])
    """

    def __init__(self, name: str = "problem") -> None:
        self.name = name
        self.goals: list[Goal] = []
        self.variables: dict[str, slice] = {}
        self.shapes: dict[str, Shape] = {}
        self.blocks: dict[str, Rows] = {}
        self.families: dict[str, Family] = {}
        # A strictly feasible point (Slater point), and the least slack of any lazy row there.
        self.inside: tuple[Vector, float] | None = None
        self._bounds: dict[str, tuple[Vector, Vector]] = {}

    def __repr__(self) -> str:
        """Return the variables, rows and families in one line."""
        names = {
            "variables": [f"{name} {shape}" for name, shape in self.shapes.items()],
            "rows": [f"{name} {block.count:,}" for name, block in self.blocks.items()],
            "families": self.families,
        }
        listed = {what: ", ".join(each) for what, each in names.items() if each}
        return brief(self, name=self.name, **listed)

    @property
    def size(self) -> int:
        """Number of variables."""
        return sum(columns.stop - columns.start for columns in self.variables.values())

    @property
    def maximising(self) -> bool:
        """Whether the first objective is maximised."""
        return bool(self.goals) and self.goals[0].maximising

    def add_variables(
        self, name: str, shape: int | Sequence[int], *, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> slice:
        """Add a group of variables and return its slice of x, in which it is flat in C order.

        Args:
            name: a name not used before in this problem.
            shape: number of variables, at least 1; or a tuple of such numbers, one for each axis,
                () for a single number.
            lower: lower bounds, a number or an array that numpy broadcasts to the shape;
                ``-np.inf`` for none.
            upper: upper bounds, likewise. The dual bound of a solution is rigorous if every
                bound is finite.

        Raises:
            ParameterError: if the name is taken, or the bounds have the wrong shape or order.
        """
        self._check_new(name)
        axes = _shape(shape)
        bounds = self._limits(name, axes, lower, upper)
        start = self.size
        self.variables[name] = slice(start, start + math.prod(axes))
        self.shapes[name] = axes
        self._bounds[name] = bounds
        self.inside = None
        return self.variables[name]

    def set_bounds(
        self, name: str, *, lower: npt.ArrayLike | None = None, upper: npt.ArrayLike | None = None
    ) -> None:
        """Change the bounds of a group of variables; a bound that is None stays as it is.

        Its arguments are those of `add_variables`.

        Raises:
            ParameterError: if there are no such variables, or the bounds are of the wrong shape or
                order.
        """
        self._find(name)
        shape, (low, high) = self.shapes[name], self._bounds[name]
        lower = low.reshape(shape) if lower is None else lower
        upper = high.reshape(shape) if upper is None else upper
        self._bounds[name] = self._limits(name, shape, lower, upper)

    def minimise(self, objective: Objective) -> None:
        """Set the objective to minimise ``objective @ x``, replacing all earlier objectives.

        Args:
            objective: a vector over all variables; or a mapping from names of variables to a
                number for all of them, an array of their shape (or flat), or a mapping from
                indices to numbers, ``{"K": {(0, 3): 1.0}}``. All other coefficients are 0.

        Raises:
            ParameterError: if a name is unknown, a shape is wrong, or an index is out of range.
        """
        self.goals = [Goal(self._costs_of(objective), maximising=False)]

    def maximise(self, objective: Objective) -> None:
        """Set the objective to maximise ``objective @ x``, given as for `minimise`."""
        self.goals = [Goal(self._costs_of(objective), maximising=True)]

    def then_minimise(self, objective: Objective) -> None:
        """Minimise ``objective @ x``, given as for `minimise`, among earlier objectives' optima.

        `solve` optimises the objectives lexicographically: a later one only chooses among points
        that are optimal for all earlier ones, up to at most 1e-9 of their size. The solution's
        bound and duals are those of the first.

        Raises:
            ParameterError: if there is no earlier objective, or for the reasons of `minimise`.
        """
        self._then(objective, maximising=False)

    def then_maximise(self, objective: Objective) -> None:
        """Maximise ``objective @ x`` among the earlier optima, as `then_minimise` does."""
        self._then(objective, maximising=True)

    minimize, maximize = minimise, maximise
    then_minimize, then_maximize = then_minimise, then_maximise

    def add_rows(
        self,
        name: str,
        matrix: Blocks,
        *,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        """Add a named block of rows ``lower <= matrix @ x <= upper``.

        Args:
            name: a name not used before in this problem.
            matrix: dense or scipy sparse, shape (rows, variables); or a mapping from names of
                variables to the coefficients in their columns: an array (or sparse matrix) of
                shape (rows, size) or (rows, *shape), or of the variables' shape for one row; or
                coefficients by index, ``{"K": {(0, 3): 1.0, (1, 3): -2.0}}`` for one row and a
                list of such mappings for several. An array of the variables' shape is always one
                row.
            lower: lower limits, a number or shape (rows,).
            upper: upper limits, likewise.

        Raises:
            ParameterError: if the name is taken, a variable is unknown, an index is out of range,
                or a shape is wrong.
        """
        self._check_new(name)
        self.blocks[name] = self._read(name, matrix, lower, upper)

    def replace_rows(
        self,
        name: str,
        matrix: Blocks,
        *,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        """Replace the rows of a named block; their number may change.

        Its arguments are those of `add_rows`.

        Raises:
            ParameterError: if there is no such block, or for the reasons of `add_rows`; the block
                is then unchanged.
        """
        known("are no rows", name, self.blocks)
        self.blocks[name] = self._read(name, matrix, lower, upper)

    def add_family(
        self,
        name: str,
        oracle: Oracle,
        over: str | None = None,
        *,
        first: Callable[[], Rows] | None = None,
    ) -> None:
        """Add lazy rows: a constraint set given by a separation oracle.

        Args:
            name: a name not used before in this problem.
            oracle: called with the values of the variables; returns a `Separation`.
            over: name of the variables that the oracle sees; all added so far if None.
            first: returns initial rows, spread over the set and in the form of the oracle's rows.
                A problem of at least 150 variables is solved with them from the first round on, by
                interior points if the backend is HiGHS.

        Raises:
            ParameterError: if the name is taken, ``over`` is not a variable, or ``first`` is not a
                function.
        """
        self._check_new(name)
        columns = slice(0, self.size) if over is None else self._find(over)
        if first is not None and not callable(first):
            raise ParameterError(f"first is {_checks.shown(first)}; it must be a function.")
        self.families[name] = Family(oracle, columns, first)

    def set_inside(self, point: Mapping[str, npt.ArrayLike], slack: float) -> None:
        """Give a strictly feasible point (Slater point), for large programs with lazy rows.

        Moving an infeasible point towards it yields a feasible one, so that each round of `solve`
        has a gap. A wrong point does no harm: every solution is checked in the same way. Adding
        variables later discards the point.

        Args:
            point: by name of all variables, a number or an array of their shape.
            slack: least slack of any lazy row at the point, in the row's units, above 0; the
                other rows must hold strictly.

        Raises:
            ParameterError: if a variable is unknown or missing, or the point violates its bounds.
        """
        x = np.zeros(self.size)
        for name, value in point.items():
            x[self._find(name)] = self._cost_of(name, value)
        if set(point) != set(self.variables):
            raise ParameterError(
                f"point names {', '.join(point)}; it must name all variables: "
                f"{', '.join(self.variables)}."
            )
        lower, upper = (np.concatenate(ends) for ends in zip(*self._bounds.values(), strict=True))
        if not np.all((lower <= x) & (x <= upper)):
            raise ParameterError("point leaves the limits of the variables; it must lie inside.")
        self.inside = x, _checks.real("slack", slack, 0.0, open_lower=True)

    def cost(self, goal: Goal) -> Vector:
        """Return the cost to minimise, shape (variables,); negated if the goal is maximised."""
        cost = np.zeros(self.size)
        for name, values in goal.cost.items():
            cost[self.variables[name]] = -values if goal.maximising else values
        return cost

    def assemble(self) -> Model:
        """Return the program with the first objective and without lazy rows, as arrays."""
        if not self.variables:
            raise ParameterError("the problem has no variables; call add_variables first.")
        blocks, start = {}, 0
        for name, rows in self.blocks.items():
            blocks[name] = slice(start, start + rows.count)
            start += rows.count
        lower, upper = zip(*self._bounds.values(), strict=True)
        return Model(
            self.cost(self.goals[0]) if self.goals else np.zeros(self.size),
            np.concatenate(lower),
            np.concatenate(upper),
            stack(list(self.blocks.values()), self.size),
            dict(self.variables),
            blocks,
        )

    def among_optima(self, limits: Sequence[float]) -> Problem:
        """Return the program of the next objective, with all earlier ones bounded by rows.

        Args:
            limits: upper limit of each earlier objective, in the form of `cost`.
        """
        program = copy(self)
        program.goals, program.blocks = [self.goals[len(limits)]], dict(self.blocks)
        for goal, limit in zip(self.goals, limits, strict=False):
            name = "objective"
            while program._taken(name):
                name += "'"
            program.blocks[name] = make_rows(self.cost(goal), upper=limit)
        return program

    def _taken(self, name: str) -> bool:
        return name in self.variables or name in self.blocks or name in self.families

    def _check_new(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"name is {_checks.shown(name)}; it must be a non-empty string.")
        if self._taken(name):
            raise ParameterError(f"name is {name!r}; it is taken already in this problem.")

    def _find(self, name: str) -> slice:
        known("is no variable", name, self.variables)
        return self.variables[name]

    def _limits(
        self, name: str, shape: Shape, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> tuple[Vector, Vector]:
        try:
            return make_limits(shape, lower, upper, "entry")
        except ParameterError as error:
            raise ParameterError(f"bounds of {name!r}: {error}") from None

    def _read(
        self,
        name: str,
        matrix: Blocks,
        lower: npt.ArrayLike | None,
        upper: npt.ArrayLike | None,
    ) -> Rows:
        """Return user-given rows over all variables so far, checked."""
        try:
            full = self._side_by_side(matrix) if isinstance(matrix, Mapping) else matrix
            rows = make_rows(full, lower, upper)
        except ParameterError as error:
            raise ParameterError(f"rows {name!r}: {error}") from None
        if rows.matrix.shape[1] != self.size:
            raise ParameterError(
                f"rows {name!r} have {rows.matrix.shape[1]} columns; the problem has {self.size} "
                "variables so far. Name the variables in a mapping to give only some columns."
            )
        return rows

    def _side_by_side(self, blocks: Mapping[str, Coefficients]) -> sp.csr_array:
        if not blocks:
            raise ParameterError("matrix is an empty mapping; name at least one variable.")
        # Triplets (value, row, column) of all blocks; columns are those of x.
        triplets, height = [], None
        for name, coefficients in blocks.items():
            columns = self._find(name)
            block = rows_over(name, self.shapes[name], coefficients)
            if height not in (None, block.shape[0]):
                raise ParameterError("the matrices of a block must have the same number of rows.")
            height = block.shape[0]
            triplets.append((block.data, block.row, block.col + columns.start))
        data, row, col = (np.concatenate(arrays) for arrays in zip(*triplets, strict=True))
        return sp.csr_array((data.astype(float), (row, col)), shape=(height or 0, self.size))

    def _then(self, objective: Objective, *, maximising: bool) -> None:
        if not self.goals:
            raise ParameterError("there is no objective before; call minimise or maximise first.")
        self.goals.append(Goal(self._costs_of(objective), maximising))

    def _costs_of(self, objective: Objective) -> dict[str, Vector]:
        if not isinstance(objective, Mapping):
            costs = _checks.floats("objective", objective)
            if costs.shape != (self.size,):
                raise ParameterError(
                    f"objective has shape {costs.shape}; it must be ({self.size},)."
                )
            objective = {name: costs[columns] for name, columns in self.variables.items()}
        return {name: self._cost_of(name, value) for name, value in objective.items()}

    def _cost_of(self, name: str, value: npt.ArrayLike | ByIndex) -> Vector:
        """Return the costs of a group of variables, flat in C order."""
        columns = self._find(name)
        size, shape = columns.stop - columns.start, self.shapes[name]
        if isinstance(value, Mapping):
            array = rows_over(name, shape, value).toarray()
        else:
            array = _checks.floats(f"objective of {name!r}", value)
            if array.shape not in ((), (size,), shape):
                raise ParameterError(
                    f"objective of {name!r} has shape {array.shape}; "
                    f"it must be a number or of shape {shape}."
                )
        # Largest absolute cost; sums of such costs stay finite.
        if not np.all(np.abs(array) <= 1e100):
            raise ParameterError(
                f"objective of {name!r} holds a value that is not finite, or beyond 1e+100."
            )
        return np.broadcast_to(array.reshape(-1), (size,)).copy()


def known(what: str, name: str, names: Mapping[str, object]) -> None:
    """Refuse a name that is none of the names."""
    if not isinstance(name, str) or name not in names:
        listed = ", ".join(names) or "none"
        raise ParameterError(f"there {what} named {_checks.shown(name)}; known: {listed}.")


def _shape(shape: int | Sequence[int]) -> Shape:
    """Return a shape as a tuple, after checking its size against HiGHS's 32-bit indices."""
    sizes, most = shape if isinstance(shape, tuple | list) else (shape,), 2**31 - 1
    axes = tuple(_checks.integer("shape", size, 1, most) for size in sizes)
    if math.prod(axes) > most:
        raise ParameterError(f"shape is {_checks.shown(axes)}; at most {most} variables are taken.")
    return axes
