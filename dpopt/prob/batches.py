"""The exact pmf of the sum of a batch: T of N integers drawn without replacement.

T-subsets are counted by their sum s: the coefficients of z^T y^s in prod_i (1 + z y^(v_i)). For the
values 0, 1, 1 and T = 2 the sums 1 and 2 have 2 and 1 subsets. Records are inserted one at a time,
A_t[s] += A_(t-1)[s - v_i]; all terms are positive, so that after N insertions the relative error of
each count is below N 2^-53. Counts are scaled by a common 2^-k, which is exact; below 2^53 they are
exact integers.

`leave_one_out` gives the counts without each of the records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector, frozen

LARGEST_SUBSETS_BITS = 1000
"""Bits of the number of batches; counts then fit into doubles. C(1000, 500) has 995 bits."""

LARGEST_VALUE = 1 << 40
"""Largest absolute value, so that sums of values are exact in 64 bits."""


@dataclass(frozen=True)
class BatchDistribution:
    """The pmf of the integer output of a batch.

    Attributes:
        lowest: output of the first probability.
        probabilities: of the outputs ``lowest``, ``lowest`` + 1, ..., shape (outputs,), read-only.
    """

    lowest: int
    probabilities: Vector

    @property
    def outputs(self) -> IntVector:
        """The outputs, consecutive integers, shape (outputs,)."""
        return self.lowest + np.arange(self.probabilities.size)

    def over(self, first: int, count: int) -> Vector:
        """Return the pmf over ``count`` outputs from ``first`` on, which contain its own."""
        pmf = np.zeros(count)
        pmf[self.outputs - first] = self.probabilities
        return pmf


def batch_distribution(
    values: npt.ArrayLike, drawn: int, *, rounded: bool = False
) -> BatchDistribution:
    """Return the pmf of the sum of ``drawn`` of the values, drawn without replacement.

    It takes N T S additions, with S = T (max - min) + 1 possible sums.

    Args:
        values: N integers.
        drawn: T, from 1 to N.
        rounded: whether the output is the mean rounded to the nearest integer, halves upwards,
            floor(s / T + 1/2), instead of the sum s.

    Raises:
        ParameterError: if a value is no integer, T is out of range, there are 2^1000 batches or
            more, or the table of partial sums would exceed 5e7 entries or take 2e11 additions.
    """
    array, rounded = as_values(values), _checks.flag("rounded", rounded)
    drawn = check_batch(array, drawn)
    least = int(array.min())
    table = _insert(start(array, drawn), array - least)
    sums = table[-1] / subsets(array.size, drawn)
    if not rounded:
        return BatchDistribution(drawn * least, frozen(sums))
    # Output b is published for the T sums s with floor((s + floor(T / 2)) / T) = b.
    half = drawn // 2
    outputs = (sums.size - 1 + half) // drawn + 1
    blocks = padded(sums, half, outputs * drawn).reshape(outputs, drawn)
    return BatchDistribution(least, frozen(blocks.sum(axis=1)))


def padded(counts: Vector, before: int, size: int) -> Vector:
    """Return counts with zeros before and after them."""
    result = np.zeros(size)
    result[before : before + counts.size] = counts
    return result


def leave_one_out(values: IntVector, drawn: int) -> Iterator[tuple[int, Vector, Vector]]:
    """Yield, for each distinct value, the counts by sum without one record of that value.

    Dividing by 1 + z y^v would subtract and lose digits. Instead the distinct values are halved
    recursively: each half is processed with the other half's records inserted, and only rows that
    can still reach T - 1 or T are kept. All terms stay positive, and the work is at most
    log2(distinct values) times that of `batch_distribution`.

    The least value is 0. It yields each value and the counts of T-subsets and of (T-1)-subsets of
    the other records, by sum from 0, both scaled like `subsets`.
    """
    distinct, copies = np.unique(values, return_counts=True)
    table = start(values, drawn)
    largest_sum = (drawn - 1) * int(distinct[-1] - distinct[0])
    for value, rows in _halve(table, distinct, copies):
        yield value, rows[-1], rows[-2, : largest_sum + 1]


def _halve(table: Matrix, distinct: IntVector, copies: IntVector) -> Iterator[tuple[int, Matrix]]:
    """Yield the table of each distinct value, from the counts of all others."""
    # Of R records R - 1 are still inserted, each moving counts up one row: keep what reaches T - 1.
    table = table[-(int(copies.sum()) + 1) :]
    if distinct.size == 1:
        yield int(distinct[0]), _insert(table, np.repeat(distinct, copies - 1))
        return
    middle = distinct.size // 2
    low, high = slice(None, middle), slice(middle, None)
    # Insert the records of one half, and descend into the other.
    for half, others in ((low, high), (high, low)):
        inserted_table = _insert(table, np.repeat(distinct[others], copies[others]))
        yield from _halve(inserted_table, distinct[half], copies[half])


def _insert(table: Matrix, values: IntVector) -> Matrix:
    """Return the table after inserting one record for each of the values."""
    buffers = np.empty((min(values.size, 2), *table.shape))
    for index, value in enumerate(values.tolist()):
        # Axes: size of the subset, its sum; a new record shifts both.
        out, width = buffers[index % 2], table.shape[1] - value
        out[0] = table[0]
        out[1:, :value] = table[1:, :value]
        np.add(table[1:, value:], table[:-1, :width], out=out[1:, value:])
        table = out
    return table


def start(values: IntVector, drawn: int) -> Matrix:
    """Return the counts over no records, shape (T + 1, S): one empty subset, scaled to 2^-k."""
    span = int(values.max() - values.min())
    table = np.zeros((drawn + 1, drawn * span + 1))
    table[0, 0] = math.ldexp(1.0, -_exponent(values.size, drawn))
    return table


def subsets(records: int, drawn: int) -> float:
    """Return C(N, T) 2^-k in [1/2, 1), the number of batches in the scale of the tables."""
    return math.comb(records, drawn) / (1 << _exponent(records, drawn))


def _exponent(records: int, drawn: int) -> int:
    """Return the k with which C(N, T) 2^-k is in [1/2, 1)."""
    return math.comb(records, drawn).bit_length()


def as_values(values: npt.ArrayLike) -> IntVector:
    """Return the values of a database as a read-only integer vector."""
    array = _checks.array("values", values)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(
            f"values has shape {array.shape}; it must be a vector of at least one."
        )
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"values has dtype {array.dtype}; it must hold integers.")
    if not np.all(np.abs(array.astype(float)) <= LARGEST_VALUE):
        raise ParameterError("values holds a number beyond 2^40; integers up to 2^40 are allowed.")
    if np.any(array != np.round(array)):
        raise ParameterError("values holds a number that is no integer; quantise it first.")
    integers = array.astype(np.int64)
    integers.setflags(write=False)
    return integers


def check_batch(values: IntVector, drawn: int) -> int:
    """Return T after checking that the table of partial sums is small enough."""
    drawn = _checks.integer("drawn", drawn, 1, values.size)
    # C(N, T) >= (N / T)^T rejects large numbers without computing them.
    fewer = min(drawn, values.size - drawn)
    large = fewer > 0 and fewer * math.log2(values.size / fewer) > LARGEST_SUBSETS_BITS
    if large or _exponent(values.size, drawn) > LARGEST_SUBSETS_BITS:
        raise ParameterError(
            f"drawn is {drawn} of {values.size} values; there must be fewer than "
            f"2^{LARGEST_SUBSETS_BITS} batches."
        )
    entries = (drawn + 1) * (drawn * int(values.max() - values.min()) + 1)
    # The table of partial sums: 400 MB.
    if entries > 50_000_000:
        raise ParameterError(
            f"drawn is {drawn} and the values span {int(values.max() - values.min())}; the table "
            f"of {entries} partial sums must have at most 50000000 entries."
        )
    # Additions: time fixes them.
    if entries * values.size > 2 * 10**11:
        raise ParameterError(
            f"drawn is {drawn} of {values.size} values that span "
            f"{int(values.max() - values.min())}: {entries * values.size:.1e} additions, more than "
            "2e+11."
        )
    return drawn
