"""Linear queries of a histogram: by name, or as a matrix with a row for each query."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, frozen

NAMES = ("histogram", "prefix", "range", "marginals")
MOST_LETTERS, MOST_QUERIES = 256, 100_000


def query_matrix(workload: npt.ArrayLike | str, letters: int | None) -> Matrix:
    """Return W, shape (queries, letters), read-only.

    Args:
        workload: "histogram", a row for each letter; "prefix", for u = 1..n the first u letters, an
            empirical distribution function; "range", all intervals of letters; "marginals", of
            letters that are words of d bits, n = 2^d, every table of every set of bits, 3^d rows;
            or the matrix itself.
        letters: n, in 2..256; of a matrix its number of columns, or None.

    Raises:
        ParameterError: if it is none of these.
    """
    if isinstance(workload, str):
        _checks.choice("workload", workload, NAMES)
        if letters is None:
            raise ParameterError(f"letters is None; {workload!r} needs the number of letters.")
        return frozen(_named(workload, _checks.integer("letters", letters, 2, MOST_LETTERS)))
    matrix = _checks.floats("workload", workload)
    if matrix.ndim != 2 or not 2 <= matrix.shape[1] <= MOST_LETTERS:
        raise ParameterError(
            f"workload has shape {matrix.shape}; it must be a matrix with a row for each query and "
            f"2 to {MOST_LETTERS} columns, one for each letter."
        )
    if len(matrix) > MOST_QUERIES or not np.all(np.isfinite(matrix)):
        raise ParameterError(f"workload must be finite numbers in at most {MOST_QUERIES:,} rows.")
    size = float(np.max(np.abs(matrix), initial=0.0))
    if not 1e-100 <= size <= 1e100:
        raise ParameterError(
            f"workload has {size:g} as its largest entry; it must be in 1e-100..1e100."
        )
    if letters is not None and _checks.integer("letters", letters, 2) != matrix.shape[1]:
        raise ParameterError(f"letters is {letters}; the workload has {matrix.shape[1]} columns.")
    return frozen(matrix)


def _named(workload: str, n: int) -> Matrix:
    if workload == "histogram":
        return np.eye(n)
    if workload == "prefix":
        return np.tril(np.ones((n, n)))
    if workload == "range":
        first, last = np.triu_indices(n)
        place = np.arange(n)
        return np.where((place >= first[:, None]) & (place <= last[:, None]), 1.0, 0.0)
    bits = n.bit_length() - 1
    if n != 1 << bits:
        raise ParameterError(f"letters is {n}; for 'marginals' it must be a power of 2.")
    word = (np.arange(n)[:, None] >> np.arange(bits)) & 1
    # A row asks for some bits, and what they are: 2 stands for a bit that is not asked for.
    asked = np.array(list(product((0, 1, 2), repeat=bits)))
    fits = (asked[:, None, :] == 2) | (asked[:, None, :] == word)
    return np.where(fits.all(axis=-1), 1.0, 0.0)
