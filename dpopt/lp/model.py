"""A linear program as arrays, the form in which backends receive it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import MatrixLike, SparseMatrix, Vector


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

    def take(self, chosen: npt.NDArray[np.bool_]) -> Rows:
        """Return the rows marked by ``chosen``."""
        return Rows(self.matrix[np.flatnonzero(chosen)], self.lower[chosen], self.upper[chosen])


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
    count = csr.shape[0]
    limits = []
    for name, value, missing in (("lower", lower, -np.inf), ("upper", upper, np.inf)):
        array = _checks.floats(name, missing if value is None else value)
        if array.ndim > 1 or (array.ndim == 1 and array.size != count):
            raise ParameterError(
                f"{name} has shape {array.shape}; it must be a number or of shape ({count},)."
            )
        limits.append(np.broadcast_to(array, (count,)).copy())
        if np.any(np.isnan(array)) or np.any(array == -missing):
            raise ParameterError(
                f"{name} holds NaN or {-missing}; it must hold numbers, or {missing} for no limit."
            )
    if np.any(limits[0] > limits[1]):
        row = int(np.argmax(limits[0] > limits[1]))
        raise ParameterError(
            f"lower is {digits(limits[0][row])} and upper {digits(limits[1][row])} in row {row}; "
            "lower must not exceed upper."
        )
    return Rows(csr, limits[0], limits[1])


def stack(blocks: list[Rows], columns: int) -> Rows:
    """Put blocks on top of each other, padding each to ``columns`` variables with zeros."""
    if not blocks:
        return Rows(sp.csr_array((0, columns)), np.empty(0), np.empty(0))
    padded = []
    for block in blocks:
        matrix = block.matrix.copy()
        matrix.resize((matrix.shape[0], columns))
        padded.append(matrix)
    return Rows(
        sp.csr_array(sp.vstack(padded, format="csr")),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


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
    """

    cost: Vector
    lower: Vector
    upper: Vector
    rows: Rows
    variables: Mapping[str, slice]
    blocks: Mapping[str, slice]

    def column_names(self) -> list[str]:
        """Return one name per variable, such as ``gamma[3]``."""
        return _labels(self.variables)

    def row_names(self) -> list[str]:
        """Return one name per row, such as ``corners[0]``."""
        return _labels(self.blocks)


def _labels(groups: Mapping[str, slice]) -> list[str]:
    return [f"{name}[{i}]" for name, part in groups.items() for i in range(part.stop - part.start)]
