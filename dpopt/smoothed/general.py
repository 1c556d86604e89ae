"""Profile of any anonymous mechanism, from the laws of its output (Algorithm 1, step 3)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histogram,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.smoothed.description import AnonymousMechanism
from dpopt.smoothed.histogram import SamplingHistogram
from dpopt.smoothed.sampling import as_anonymous

_HELD_ENTRIES = 1 << 24
_LARGEST_OUTPUTS = 10**7
_LARGEST_WORK = 10**11
_LARGEST_EPSILON = 700.0

Divergence = Callable[[Matrix, Matrix], Vector]
"""Of the laws in the rows of two arrays, at least 0."""


def general_log_profile(
    mechanism: SamplingHistogram | AnonymousMechanism,
    epsilon: float,
    histogram: npt.ArrayLike | None = None,
) -> Vector:
    """Return log delta of all databases, or of one, from the laws of the output.

    delta(x) = max over x' that replaces one record of x, and both orders, of
    sum over outputs of (P - e^epsilon P')_+.

    The terms are added pairwise, so that log delta is wrong by a few rounding errors and the
    relative error of the laws, times P(S) / delta with S the outputs where P > e^epsilon P'. That
    factor is large only where P is hardly above e^epsilon P' on all of S. Probabilities that
    underflow (below 1e-308) count as 0.

    Args:
        mechanism: the laws; a `SamplingHistogram` also works, slowly.
        epsilon: from 0 to 700.
        histogram: counts of the m categories of one database, shape (m,); all if None.

    Returns:
        Natural logarithms, -inf for delta = 0; shape (N,) in the order of `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there are too many outputs or databases.
    """
    inner = as_anonymous(mechanism)
    factor = math.exp(_checks.real("epsilon", epsilon, 0.0, _LARGEST_EPSILON))

    def stick(p: Matrix, q: Matrix) -> Vector:
        return np.maximum(0.0, p - factor * q).sum(axis=1)

    with np.errstate(divide="ignore"):
        return np.log(_largest(inner, stick, histogram))


def general_epsilon(
    mechanism: SamplingHistogram | AnonymousMechanism, histogram: npt.ArrayLike | None = None
) -> Vector:
    """Return the least epsilon with delta = 0, for all databases or one: pure DP.

    max over x' that replaces one record of x, and over outputs, of |ln(P / P')|; infinite where an
    output is possible for one database only. The maximum over databases is the epsilon of
    (epsilon, 0)-DP.

    Args:
        mechanism: the laws; a `SamplingHistogram` also works, slowly.
        histogram: counts of the m categories of one database, shape (m,); all if None.

    Returns:
        Shape (N,) in the order of `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there are too many outputs or databases.
    """

    def ratio(p: Matrix, q: Matrix) -> Vector:
        quotient = np.divide(p, q, out=np.where(p > 0.0, np.inf, 1.0), where=q > 0.0)
        return np.log(np.maximum(quotient.max(axis=1), 1.0))

    return _largest(as_anonymous(mechanism), ratio, histogram)


def _largest(
    mechanism: AnonymousMechanism, divergence: Divergence, histogram: npt.ArrayLike | None
) -> Vector:
    """Return the largest divergence between each database and its neighbours, in both orders."""
    if mechanism.outputs > _LARGEST_OUTPUTS:
        raise ParameterError(
            f"mechanism has {mechanism.outputs:,} outputs; the general profile takes at most "
            f"{_LARGEST_OUTPUTS:,}."
        )
    if histogram is None:
        n, m = mechanism.records, mechanism.categories
        pairs = histogram_count(n - 1, m) * m * (m - 1) // 2
        if pairs * mechanism.outputs > _LARGEST_WORK:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: "
                f"{pairs:,} pairs of neighbours, more than {_LARGEST_WORK:.0e} terms in all. Give "
                "one histogram."
            )
        table = histograms(mechanism.records, mechanism.categories)
        return _over_pairs(mechanism, divergence, table, replacements(table))
    one = checked_histogram(histogram, mechanism.records, mechanism.categories)
    table = np.concatenate([one[None], neighbours(one)])
    pairs = np.zeros((table.shape[0] - 1, 2), dtype=np.int64)
    pairs[:, 1] = np.arange(1, table.shape[0])
    return _over_pairs(mechanism, divergence, table, pairs)[:1]


def _over_pairs(
    mechanism: AnonymousMechanism, divergence: Divergence, table: IntMatrix, pairs: IntMatrix
) -> Vector:
    """Return the largest divergence at each row of the table over its pairs, laws in portions."""
    found = np.zeros(table.shape[0])
    order = np.argsort(pairs[:, 0], kind="stable")
    rows = max(2, _HELD_ENTRIES // mechanism.outputs)
    step = order.size if table.shape[0] <= rows else max(1, rows // 2)
    for start in range(0, order.size, max(1, step)):
        part = pairs[order[start : start + step]]
        used, places = np.unique(part, return_inverse=True)
        laws = mechanism.laws(table[used])
        largest = _both_orders(laws, places.reshape(part.shape), divergence)
        np.maximum.at(found, part[:, 0], largest)
        np.maximum.at(found, part[:, 1], largest)
    return found


def _both_orders(laws: Matrix, pairs: IntMatrix, divergence: Divergence) -> Vector:
    """Return the larger divergence of each pair of rows, shape (pairs,)."""
    found = np.empty(pairs.shape[0])
    step = max(1, (_HELD_ENTRIES >> 3) // laws.shape[1])
    for start in range(0, pairs.shape[0], step):
        part = slice(start, start + step)
        left, right = laws[pairs[part, 0]], laws[pairs[part, 1]]
        found[part] = np.maximum(divergence(left, right), divergence(right, left))
    return found
