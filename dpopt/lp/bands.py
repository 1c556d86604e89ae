"""Dense rows of which each is zero but for a short stretch: products that leave the zeros out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector

Matrix = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Entries of this share of the largest of their row are no more than its rounding.
_NOTHING = 2.0**-60
# Rows of a block at most; by how much its stretch may be wider than the first row's, and as a share
# of all columns.
_MOST_ROWS, _WIDER, _SHARE = 256, 1.25, 0.02


@dataclass(frozen=True)
class _Block:
    """Rows that are zero outside of the same columns."""

    rows: Places
    columns: slice
    entries: Matrix


def stretches(matrix: Matrix) -> npt.NDArray[np.int64]:
    """Return the first column of each row that counts, and the one after the last; shape (2, m)."""
    sizes = np.abs(matrix)
    counts = sizes > _NOTHING * np.max(sizes, axis=1, initial=0.0)[:, None]
    some = np.any(counts, axis=1)
    first = np.where(some, np.argmax(counts, axis=1), 0)
    last = np.where(some, matrix.shape[1] - np.argmax(counts[:, ::-1], axis=1), 0)
    return np.array([first, last], dtype=np.int64)


class Bands:
    """A matrix in blocks of rows with nearly the same stretch.

    A binomial law over the number of ones of s voters out of K has about 9 sqrt(s) entries that
    count: the products are sums over blocks of that width.

    Args:
        matrix: shape (rows, columns).
        stretch: what `stretches` says of it.
    """

    def __init__(self, matrix: Matrix, stretch: npt.NDArray[np.int64]) -> None:
        self.shape = matrix.shape
        first, last = stretch
        width = last - first
        # Rows of like widths, and of these those that begin near to each other.
        kind = np.ceil(2.0 * np.log2(np.maximum(width, 1))).astype(np.int64)
        order = np.lexsort((first, kind))
        self._blocks: list[_Block] = []
        begin, count = 0, order.size
        spare = _SHARE * matrix.shape[1]
        while begin < count:
            some = order[begin : begin + _MOST_ROWS]
            low = np.minimum.accumulate(first[some])
            high = np.maximum.accumulate(last[some])
            fits = (high - low <= _WIDER * width[some[0]] + spare) & (kind[some] == kind[some[0]])
            size = some.size if np.all(fits) else int(np.argmin(fits))
            rows, columns = some[:size], slice(int(low[size - 1]), int(high[size - 1]))
            self._blocks.append(_Block(rows, columns, matrix[rows, columns]))
            begin += size

    def times(self, x: Vector) -> Vector:
        """Return the matrix times x."""
        out = np.zeros(self.shape[0])
        for block in self._blocks:
            out[block.rows] = block.entries @ x[block.columns]
        return out

    def transposed(self, y: Vector) -> Vector:
        """Return the transposed matrix times y."""
        out = np.zeros(self.shape[1])
        for block in self._blocks:
            out[block.columns] += y[block.rows] @ block.entries
        return out

    def square(self, weights: Vector) -> Matrix:
        """Return A' diag(weights) A for weights of at least 0."""
        out = np.zeros((self.shape[1], self.shape[1]))
        roots = np.sqrt(weights)
        for block in self._blocks:
            entries = block.entries * roots[block.rows, None]
            out[block.columns, block.columns] += entries.T @ entries
        return out
