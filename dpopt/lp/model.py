"""Linear programs as arrays: the form that backends receive."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import MatrixLike, SparseMatrix, Vector

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
