"""The builder of linear programs: named variables, named rows, rows given by an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import MatrixLike, Vector
from dpopt.lp.model import (
    ByIndex,
    Coefficients,
    Model,
    Oracle,
    Rows,
    Separation,
    Shape,
    make_limits,
    make_rows,
    place_of,
    rows_over,
    stack,
)

# As many as HiGHS can count.
_MOST_VARIABLES = 2**31 - 1
_LARGEST_COST = 1e100

Blocks = MatrixLike | Mapping[str, Coefficients]
Objective = npt.ArrayLike | Mapping[str, npt.ArrayLike | ByIndex]


@dataclass(frozen=True)
class Family:
    """A constraint set too large to write down.

    Attributes:
        oracle: separates a point from the set.
        over: the part of x that the oracle sees and writes its rows for.
        first: rows that interior points begin with; None if they begin with none.
    """

    oracle: Oracle
    over: slice
    first: Callable[[], Rows] | None = None

    def separate(self, x: Vector) -> Separation:
        """Ask the oracle about ``x`` (all variables); its rows come back over all variables."""
        answer = self.oracle(x[self.over])
        if np.isnan(answer.worst) or not np.all(np.isfinite(answer.rows.matrix.data)):
            raise ParameterError("the oracle of a family answered with NaN; it must give numbers.")
        return Separation(self.over_all(answer.rows, x.size), answer.worst, answer.checked)

    def over_all(self, rows: Rows, size: int) -> Rows:
        """Return rows over the part that the oracle sees as rows over that many variables."""
        # Column j of the oracle's rows is variable over.start + j of the problem.
        entries = rows.matrix.tocoo()
        matrix = sp.csr_array(
            (entries.data, (entries.row, entries.col + self.over.start)), shape=(rows.count, size)
        )
        return Rows(matrix, rows.lower, rows.upper)


@dataclass(frozen=True)
class Inside:
    """A point at which every row holds with room.

    Attributes:
        x: all variables, shape (variables,), within their limits.
        slack: by which each row of each family holds there at least, above 0.
    """

    x: Vector
    slack: float


@dataclass(frozen=True)
class Goal:
    """One of the objectives, which are optimised in order.

    Attributes:
        cost: by name of the variables, flat; what is not named costs nothing.
        maximising: whether more of it is better.
    """

    cost: Mapping[str, Vector]
    maximising: bool


class Problem:
    """A linear program over named variables, built step by step and left unchanged by solving.

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
        self.inside: Inside | None = None
        self._bounds: dict[str, tuple[Vector, Vector]] = {}

    def __repr__(self) -> str:
        """Return one line: the objective's sense, variables, rows and families."""
        variables = [
            f"{shown(name)} {shape} in [{', '.join(_range(b) for b in self._bounds[name])}]"
            for name, shape in self.shapes.items()
        ]
        rows = [f"{shown(name)} {block.count:,}" for name, block in self.blocks.items()]
        families = [shown(name) for name in self.families]
        parts = [
            f"{what} {_few(words)}"
            for what, words in (
                (f"{self._senses} over", variables),
                ("rows", rows),
                ("families", families),
            )
            if words
        ]
        return f"{type(self).__name__}({shown(self.name)}: {'; '.join(parts) or 'empty'})"

    @property
    def size(self) -> int:
        """Number of variables."""
        return sum(part.stop - part.start for part in self.variables.values())

    @property
    def maximising(self) -> bool:
        """Whether the first objective is maximised."""
        return bool(self.goals) and self.goals[0].maximising

    @property
    def _senses(self) -> str:
        senses = ["maximise" if goal.maximising else "minimise" for goal in self.goals]
        return ", then ".join(senses or ["minimise"])

    def add_variables(
        self,
        name: str,
        shape: int | Sequence[int],
        *,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
    ) -> slice:
        """Add variables called ``name`` and return their place in x, where they stand in C order.

        Args:
            name: a name not used before in this problem.
            shape: number of variables, at least 1; or a tuple of such numbers, one for each axis,
                () for a single number.
            lower: lower bounds, a number or an array that numpy broadcasts to the shape;
                ``-np.inf`` for none.
            upper: upper bounds, likewise. The dual bound of a solution is rigorous if every
                bound is finite.

        Raises:
            ParameterError: if the name is taken, or the bounds do not fit.
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
        self,
        name: str,
        *,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        """Give variables other bounds; those that are left out stay.

        Args:
            name: of the variables.
            lower: as for `add_variables`.
            upper: likewise.

        Raises:
            ParameterError: if there are no such variables, or the bounds do not fit.
        """
        self._find(name)
        shape, (low, high) = self.shapes[name], self._bounds[name]
        lower = low.reshape(shape) if lower is None else lower
        upper = high.reshape(shape) if upper is None else upper
        self._bounds[name] = self._limits(name, shape, lower, upper)

    def minimise(self, objective: Objective) -> None:
        """Minimise ``objective @ x``; objectives that were given before are replaced.

        Args:
            objective: a vector over all variables; or a mapping from names of variables to a
                number for all of them, an array of their shape (or flat), or a mapping from
                indices to numbers, ``{"K": {(0, 3): 1.0}}``. What is not named costs nothing.

        Raises:
            ParameterError: if a name is unknown, a shape does not fit, or an index is outside.
        """
        self.goals = [Goal(self._costs_of(objective), maximising=False)]

    def maximise(self, objective: Objective) -> None:
        """Maximise ``objective @ x``; as for `minimise`."""
        self.goals = [Goal(self._costs_of(objective), maximising=True)]

    def then_minimise(self, objective: Objective) -> None:
        """Minimise ``objective @ x`` among the optima of the objectives before.

        `solve` takes one objective after the other: a later one only chooses among points that are
        optimal for those before, up to at most 1e-9 of their size. The solution's bound and duals
        are those of the first.

        Args:
            objective: as for `minimise`.

        Raises:
            ParameterError: if there is no objective before, or as `minimise` does.
        """
        self._then(objective, maximising=False)

    def then_maximise(self, objective: Objective) -> None:
        """Maximise ``objective @ x`` among the optima of those before; as for `then_minimise`."""
        self._then(objective, maximising=True)

    def add_rows(
        self,
        name: str,
        matrix: Blocks | Rows,
        *,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        """Add a named block of rows ``lower <= matrix @ x <= upper``.

        Args:
            name: a name not used before in this problem.
            matrix: dense or scipy sparse, shape (rows, variables); or ready-made `Rows`, with
                their limits; or a mapping from names of variables to what stands in their
                columns: an array (or sparse matrix) of shape (rows, size) or (rows, *shape), or
                of the variables' own shape for one row; or coefficients by index,
                ``{"K": {(0, 3): 1.0, (1, 3): -2.0}}`` for one row and a list of such mappings
                for several. An array of the variables' shape is always one row.
            lower: lower limits, a number or shape (rows,).
            upper: upper limits, likewise.

        Raises:
            ParameterError: if the name is taken, a variable unknown, an index outside, or shapes
                do not fit.
        """
        self._check_new(name)
        self.blocks[name] = self._read(name, matrix, lower, upper)

    def replace_rows(
        self,
        name: str,
        matrix: Blocks | Rows,
        *,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        """Put other rows in the place of a named block, as many as there are now.

        Args:
            name: of the block.
            matrix: as for `add_rows`.
            lower: likewise.
            upper: likewise.

        Raises:
            ParameterError: if there is no such block, or as `add_rows` does; the block stays.
        """
        _known("are no rows", name, self.blocks)
        self.blocks[name] = self._read(name, matrix, lower, upper)

    def add_family(
        self,
        name: str,
        oracle: Oracle,
        over: str | None = None,
        *,
        first: Callable[[], Rows] | None = None,
    ) -> None:
        """Add a constraint set given by an oracle.

        Args:
            name: a name not used before in this problem.
            oracle: called with the values of the variables; returns a `Separation`.
            over: name of the variables that the oracle sees; all added so far if None.
            first: gives rows of the set from all over it, as the oracle does. Where
                `Problem.set_inside` told of a point inside, and there are at least 150 variables,
                the program is solved by interior points that begin with these rows.

        Raises:
            ParameterError: if the name is taken, ``over`` is not a variable, or ``first`` is not a
                function.
        """
        self._check_new(name)
        part = slice(0, self.size) if over is None else self._find(over)
        if first is not None and not callable(first):
            raise ParameterError(f"first is {_checks.shown(first)}; it must be a function.")
        self.families[name] = Family(oracle, part, first)

    def set_inside(self, point: Mapping[str, npt.ArrayLike], slack: float) -> None:
        """Tell of a point at which every row holds with room, for large programs with families.

        It makes a feasible point of one that breaks rows, and so a gap is known in each round of
        `solve`. What is told is not believed: an answer that it leads to is checked as any other.
        Variables that are added later undo it.

        Args:
            point: by name of all variables, a number or an array of their shape.
            slack: by which every row of every family holds there at least, in its own units,
                above 0; written rows hold with some room.

        Raises:
            ParameterError: if a variable is unknown or missing, or the point outside its limits.
        """
        x = np.zeros(self.size)
        for name, value in point.items():
            x[self._find(name)] = self._cost_of(name, value)
        if set(point) != set(self.variables):
            raise ParameterError(
                f"point names {', '.join(point)}; it must name all variables: "
                f"{', '.join(self.variables)}."
            )
        lower, upper = (np.concatenate(part) for part in zip(*self._bounds.values(), strict=True))
        if not np.all((lower <= x) & (x <= upper)):
            raise ParameterError("point leaves the limits of the variables; it must lie inside.")
        slack = _checks.real("slack", slack, 0.0, open_lower=True)
        self.inside = Inside(x, slack)

    def cost(self, goal: Goal) -> Vector:
        """Return what is minimised for a goal, shape (variables,): minus what is maximised."""
        cost = np.zeros(self.size)
        for name, values in goal.cost.items():
            cost[self.variables[name]] = -values if goal.maximising else values
        return cost

    def assemble(self) -> Model:
        """Return the program of the first objective, without its families, as arrays."""
        if not self.variables:
            raise ParameterError("the problem has no variables; call add_variables first.")
        places, row = {}, 0
        for name, rows in self.blocks.items():
            places[name] = slice(row, row + rows.count)
            row += rows.count
        lower, upper = zip(*self._bounds.values(), strict=True)
        return Model(
            self.cost(self.goals[0]) if self.goals else np.zeros(self.size),
            np.concatenate(lower),
            np.concatenate(upper),
            stack(list(self.blocks.values()), self.size),
            dict(self.variables),
            places,
            dict(self.shapes),
        )

    def among_optima(self, limits: Sequence[float]) -> Problem:
        """Return the program of a later objective, over points that are optimal for those before.

        Args:
            limits: what each objective before, as `cost` states it, may be at most.
        """
        copy = type(self)(self.name)
        copy.goals, copy.inside = [self.goals[len(limits)]], self.inside
        copy.variables, copy.shapes = dict(self.variables), dict(self.shapes)
        copy.blocks, copy.families = dict(self.blocks), dict(self.families)
        copy._bounds = dict(self._bounds)
        for goal, limit in zip(self.goals, limits, strict=False):
            name = "objective"
            while name in copy.variables or name in copy.blocks or name in copy.families:
                name += "'"
            copy.blocks[name] = make_rows(self.cost(goal), upper=limit)
        return copy

    def _check_new(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"name is {_checks.shown(name)}; it must be a non-empty string.")
        if name in self.variables or name in self.blocks or name in self.families:
            raise ParameterError(f"name is {name!r}; it is taken already in this problem.")

    def _find(self, name: str) -> slice:
        _known("is no variable", name, self.variables)
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
        matrix: Blocks | Rows,
        lower: npt.ArrayLike | None,
        upper: npt.ArrayLike | None,
    ) -> Rows:
        """Return the rows that were given under a name, over all variables so far."""
        if isinstance(matrix, Rows):
            if lower is not None or upper is not None:
                raise ParameterError("lower and upper come with the Rows; do not give them again.")
            rows = make_rows(matrix.matrix, matrix.lower, matrix.upper)
        else:
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

    def _side_by_side(self, parts: Mapping[str, Coefficients]) -> sp.csr_array:
        if not parts:
            raise ParameterError("matrix is an empty mapping; name at least one variable.")
        # The triplets (value, row, column) of all parts, the columns counted over all variables.
        pieces, height = [], None
        for name, part in parts.items():
            columns = self._find(name)
            piece = rows_over(name, self.shapes[name], part)
            if height not in (None, piece.shape[0]):
                raise ParameterError("the matrices of a block must have the same number of rows.")
            height = piece.shape[0]
            pieces.append((piece.data, piece.row, piece.col + columns.start))
        data, row, col = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
        return sp.csr_array((data.astype(float), (row, col)), shape=(height or 0, self.size))

    def _then(self, objective: Objective, *, maximising: bool) -> None:
        if not self.goals:
            raise ParameterError("there is no objective before; call minimise or maximise first.")
        self.goals.append(Goal(self._costs_of(objective), maximising))

    def _costs_of(self, objective: Objective) -> dict[str, Vector]:
        if not isinstance(objective, Mapping):
            whole = _checks.floats("objective", objective)
            if whole.shape != (self.size,):
                raise ParameterError(
                    f"objective has shape {whole.shape}; it must be ({self.size},)."
                )
            objective = {name: whole[part] for name, part in self.variables.items()}
        return {name: self._cost_of(name, value) for name, value in objective.items()}

    def _cost_of(self, name: str, value: npt.ArrayLike | ByIndex) -> Vector:
        """Return the cost of a group of variables, flat."""
        part = self._find(name)
        size, shape = part.stop - part.start, self.shapes[name]
        if isinstance(value, Mapping):
            array = np.zeros(size)
            places = [place_of(name, shape, index) for index in value]
            given = _checks.floats(f"objective of {name!r}", list(value.values()))
            if given.shape != (len(places),):
                raise ParameterError(f"objective of {name!r} must give a number for each index.")
            array[places] = given
        else:
            array = _checks.floats(f"objective of {name!r}", value)
            if array.shape not in ((), (size,), shape):
                raise ParameterError(
                    f"objective of {name!r} has shape {array.shape}; "
                    f"it must be a number or of shape {shape}."
                )
        if not np.all(np.abs(array) <= _LARGEST_COST):
            raise ParameterError(
                f"objective of {name!r} holds a value that is not finite, or beyond "
                f"{_LARGEST_COST:g}."
            )
        return np.broadcast_to(array.reshape(-1), (size,)).copy()


def _range(values: Vector) -> str:
    """Return the least and the greatest of some numbers in a word."""
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def _few(words: Sequence[str], most: int = 4) -> str:
    left = len(words) - most
    return ", ".join([*words[:most], f"{left} more"] if left > 1 else words)


def _known(what: str, name: str, names: Mapping[str, object]) -> None:
    if not isinstance(name, str) or name not in names:
        known = ", ".join(names) or "none"
        raise ParameterError(f"there {what} named {_checks.shown(name)}; known: {known}.")


def _shape(shape: int | Sequence[int]) -> Shape:
    """Return a shape as a tuple; the product is what HiGHS can count."""
    if not isinstance(shape, tuple | list):
        return (_checks.integer("shape", shape, 1, _MOST_VARIABLES),)
    axes = tuple(_checks.integer("shape", size, 1, _MOST_VARIABLES) for size in shape)
    if math.prod(axes) > _MOST_VARIABLES:
        raise ParameterError(
            f"shape is {_checks.shown(axes)}; at most {_MOST_VARIABLES} variables are taken."
        )
    return axes
