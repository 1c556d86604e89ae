"""A linear program as arrays, the form in which backends receive it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import MatrixLike, SparseMatrix, Vector, frozen

Shape = tuple[int, ...]
"""Shape of a group of variables; () for one number."""

ByIndex = Mapping[Any, float]
"""Coefficients by index: ``{(0, 3): 1.0, (1, 3): -2.0}``, and ``{3: 1.0}`` for one axis."""

Coefficients: TypeAlias = MatrixLike | ByIndex | Sequence[ByIndex]
"""Rows over one group of variables; see `rows_over` for the forms."""


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
        """Return by how much each row is violated at ``x``: shape (rows,), zero where it holds."""
        values = self.matrix @ x
        return np.maximum(0.0, np.maximum(self.lower - values, values - self.upper))

    def take(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64] | slice) -> Rows:
        """Return the rows marked by ``chosen``, or of these indices."""
        at = np.arange(self.count)[chosen]
        return Rows(self.matrix[at], self.lower[at], self.upper[at])


def as_matrix(matrix: MatrixLike) -> Any:  # noqa: ANN401
    """Return a scipy sparse matrix as it is, and anything else as a two-dimensional array.

    Raises:
        ParameterError: if it is neither.
    """
    if sp.issparse(matrix):
        return matrix
    array = np.atleast_2d(_checks.floats("matrix", cast(npt.ArrayLike, matrix)))
    if array.ndim != 2:
        raise ParameterError(f"matrix has {array.ndim} axes; it must have two.")
    return array


def make_rows(
    matrix: MatrixLike,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
) -> Rows:
    """Build `Rows`, broadcasting scalar limits; at least one of the limits must be given.

    Raises:
        ParameterError: if shapes differ, an entry is not finite, or ``lower > upper`` in a row.
    """
    if lower is None and upper is None:
        raise ParameterError("lower and upper are both None; a block of rows needs one of them.")
    csr = sp.csr_array(as_matrix(matrix), copy=True).astype(np.float64)
    csr.sum_duplicates()
    if not np.all(np.isfinite(csr.data)):
        raise ParameterError("matrix holds a value that is not finite; every entry must be.")
    return Rows(csr, *make_limits((csr.shape[0],), lower, upper, "row"))


def make_limits(
    shape: Shape, lower: npt.ArrayLike | None, upper: npt.ArrayLike | None, what: str
) -> tuple[Vector, Vector]:
    """Return lower and upper limits, broadcast to a shape and flattened; None is no limit."""
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
        raise ParameterError(
            f"lower is {digits(limits[0][first])} and upper {digits(limits[1][first])} in {what} "
            f"{_index(first, shape)}; lower must not exceed upper."
        )
    return limits[0], limits[1]


def _broadcasts(given: Shape, shape: Shape) -> bool:
    # A single limit in brackets would fit every shape: it is a mistake more often than a number.
    if len(shape) == 1:
        return given == shape
    try:
        return np.broadcast_shapes(given, shape) == shape
    except ValueError:
        return False


def rows_over(name: str, shape: Shape, given: Coefficients) -> sp.coo_array:
    """Return rows over one group of variables, shape (rows, size) in C order.

    An array of the group's own shape, or a flat one, is one row; one with another axis in front
    holds a row in each line. No array fits two of these and means different rows. A mapping from
    indices to coefficients is one row, a list of them several.

    Raises:
        ParameterError: if it fits none of these forms, or an index is outside.
    """
    size = math.prod(shape)
    if isinstance(given, Mapping):
        return _by_index(name, shape, [given])
    if isinstance(given, list | tuple) and given and isinstance(given[0], Mapping):
        return _by_index(name, shape, cast(Sequence[ByIndex], given))
    sparse = sp.issparse(given)
    array: Any = sp.coo_array(given) if sparse else _checks.floats(f"matrix for {name!r}", given)
    if array.shape in (shape, (size,)):
        return sp.coo_array(array.reshape((1, size)))
    if array.ndim and array.shape[1:] in (shape, (size,)):
        return sp.coo_array(array.reshape((array.shape[0], size)))
    forms = [(size,), shape] if len(shape) > 1 else [(size,)]
    raise ParameterError(
        f"the matrix for {name!r} has shape {array.shape}; it must be "
        f"{' or '.join(map(str, forms))} for one row, or "
        f"{' or '.join(_with_rows(form) for form in forms)}."
    )


def _with_rows(shape: Shape) -> str:
    return f"(rows, {', '.join(map(str, shape))})"


def _by_index(name: str, shape: Shape, rows: Sequence[ByIndex]) -> sp.coo_array:
    height, width, values = [], [], []
    for row, entries in enumerate(rows):
        if not isinstance(entries, Mapping):
            raise ParameterError(
                f"row {row} for {name!r} is {_checks.shown(entries)}; every row must be a mapping "
                "from indices to coefficients, as the first one is."
            )
        width += [place_of(name, shape, index) for index in entries]
        values += list(entries.values())
        height += [row] * len(entries)
    data = _checks.floats(f"matrix for {name!r}", values)
    if data.ndim != 1:
        raise ParameterError(f"the coefficients for {name!r} must be numbers, one for each index.")
    return sp.coo_array((data, (height, width)), shape=(len(rows), math.prod(shape)))


def place_of(name: str, shape: Shape, index: object) -> int:
    """Return the place of an index in C order; an integer will do where there is one axis.

    Raises:
        ParameterError: if there is no such entry; indices count from 0, none from the end.
    """
    indices = cast(tuple[int, ...], index if isinstance(index, tuple) else (index,))
    if len(indices) != len(shape) or not all(
        isinstance(i, Integral) and not isinstance(i, bool) and 0 <= i < n
        for i, n in zip(indices, shape, strict=True)
    ):
        raise ParameterError(
            f"{name!r} has no entry {_checks.shown(index)}; its shape is {shape}, and indices "
            "count from 0."
        )
    place = 0
    for i, n in zip(indices, shape, strict=True):
        place = place * n + int(i)
    return place


def _index(place: int, shape: Shape) -> str:
    """Return an index as users write it: 3, or (0, 3)."""
    indices = tuple(int(i) for i in np.unravel_index(place, shape)) if shape else ()
    return str(indices[0]) if len(indices) == 1 else str(indices)


def stack(blocks: list[Rows], columns: int) -> Rows:
    """Put blocks on top of each other, padding each to ``columns`` variables with zeros."""
    if not blocks:
        return Rows(sp.csr_array((0, columns)), np.empty(0), np.empty(0))
    if len(blocks) == 1 and blocks[0].matrix.shape[1] == columns:
        return blocks[0]
    padded = []
    for block in blocks:
        matrix = block.matrix
        if matrix.shape[1] != columns:
            matrix = matrix.copy()
            matrix.resize((matrix.shape[0], columns))
        padded.append(matrix)
    return Rows(
        sp.csr_array(sp.vstack(padded, format="csr")),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


def objective_size(cost: Vector, x: Vector) -> float:
    """Return the unit of gaps: sum |c x| or the largest |c|, whichever is more."""
    return max(float(np.sum(np.abs(cost * x))), float(np.max(np.abs(cost), initial=0.0))) or 1.0


@dataclass(frozen=True)
class Separation:
    """What a family's oracle says of a point.

    Attributes:
        rows: violated rows worth adding, over the variables that the family is declared for;
            empty if there are none.
        worst: an upper bound on the violation of any row of the family at the point; infinite if
            the oracle stopped early because it had found violated rows.
        checked: number of constraints that the bound covers.
    """

    rows: Rows
    worst: float
    checked: int


Oracle = Callable[[Vector], Separation]
"""Takes a point (the family's variables) and returns a `Separation`."""


@dataclass(frozen=True)
class Model:
    """Minimise ``cost @ x`` subject to ``rows`` and ``lower <= x <= upper``.

    Attributes:
        cost: shape (variables,); already negated if the problem maximises.
        lower: shape (variables,).
        upper: shape (variables,).
        rows: all rows, block after block.
        variables: name of each group of variables and its place in x.
        blocks: name of each block and its place in the rows.
        shapes: shape of each group of variables; one axis for those that are left out.
    """

    cost: Vector
    lower: Vector
    upper: Vector
    rows: Rows
    variables: Mapping[str, slice]
    blocks: Mapping[str, slice]
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def by_name(self, x: Vector) -> dict[str, Vector]:
        """Return a point by name of the variables, in their shapes, read-only."""
        return {
            name: frozen(x[part].reshape(self.shapes.get(name, -1)))
            for name, part in self.variables.items()
        }
