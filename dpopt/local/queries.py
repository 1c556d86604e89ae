"""Linear queries of a histogram: named workloads, or a matrix with a row for each query."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, frozen

# The largest sizes: time and memory of the design fix them.
MOST_CATEGORIES, MOST_QUERIES = 256, 100_000


def query_matrix(queries: npt.ArrayLike | str, categories: int | None) -> Matrix:
    """Return the matrix W of linear queries, shape (queries, categories), read-only.

    Args:
        queries: "histogram", the count of each category; "prefix", the count of the first u
            categories for u = 1..n (an empirical distribution function); "range", the count of
            every interval of categories; "marginals", for categories that are words of d bits,
            n = 2^d, every marginal table of every set of bits, 3^d rows; or the matrix itself.
        categories: n, in 2..256; for a matrix its number of columns, or None.

    Raises:
        ParameterError: if ``queries`` is none of these, or a size or entry is out of range.
    """
    if isinstance(queries, str):
        _checks.choice("queries", queries, ("histogram", "prefix", "range", "marginals"))
        if categories is None:
            raise ParameterError(f"categories is None; {queries!r} needs the number of categories.")
        return frozen(
            _named(queries, _checks.integer("categories", categories, 2, MOST_CATEGORIES))
        )
    matrix = _checks.floats("queries", queries)
    if matrix.ndim != 2 or not 2 <= matrix.shape[1] <= MOST_CATEGORIES:
        raise ParameterError(
            f"queries has shape {matrix.shape}; it must be a matrix with a row for each query and "
            f"2 to {MOST_CATEGORIES} columns, one for each category."
        )
    if len(matrix) > MOST_QUERIES or not np.all(np.isfinite(matrix)):
        raise ParameterError(f"queries must be finite numbers in at most {MOST_QUERIES:,} rows.")
    size = float(np.max(np.abs(matrix), initial=0.0))
    if not 1e-100 <= size <= 1e100:
        raise ParameterError(
            f"queries has {size:g} as its largest entry; it must be in 1e-100..1e100."
        )
    if categories is not None and _checks.integer("categories", categories, 2) != matrix.shape[1]:
        raise ParameterError(f"categories is {categories}; queries have {matrix.shape[1]} columns.")
    return frozen(matrix)


def _named(queries: str, n: int) -> Matrix:
    if queries == "histogram":
        return np.eye(n)
    if queries == "prefix":
        return np.tril(np.ones((n, n)))
    if queries == "range":
        first, last = np.triu_indices(n)
        category = np.arange(n)
        return np.where((category >= first[:, None]) & (category <= last[:, None]), 1.0, 0.0)
    bits = n.bit_length() - 1
    if n != 1 << bits:
        raise ParameterError(f"categories is {n}; for 'marginals' it must be a power of 2.")
    word = (np.arange(n)[:, None] >> np.arange(bits)) & 1
    # A query fixes some bits to 0 or 1; 2 stands for a bit that is summed over.
    cells = np.array(list(product((0, 1, 2), repeat=bits)))
    fits = (cells[:, None, :] == 2) | (cells[:, None, :] == word)
    return np.where(fits.all(axis=-1), 1.0, 0.0)
