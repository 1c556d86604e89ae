"""The exact distribution of a batch: T of N integers drawn without replacement, and their sum.

The distribution counts the T-subsets by their sum: the coefficients of z^T y^s in prod_i (1 + z
y^(v_i)). For the values 0, 1, 1 and T = 2 the sums 1 and 2 have 2 and 1 subsets. Records are
inserted one at a time, A_t[s] += A_(t-1)[s - v_i], so every number is a sum of positive ones and no
digit is lost: after N insertions the relative error of each count is below N 2^-53. Counts carry
one factor 2^-k, which is exact; below 2^53 they are exact integers.

`leave_one_out` gives the counts without each of the records, and `HockeySticks` compares the
distribution with those of all vectors x' in which one of the values is replaced by another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector, frozen

LARGEST_SUBSETS_BITS = 1000
"""Counts span the range of a double up to this many bits; C(1000, 500) has 995."""

LARGEST_VALUE = 1 << 40
"""Sums of values up to here stay exact in 64 bits."""
_LARGEST_TABLE = 50_000_000
_LARGEST_WORK = 2 * 10**11
_LARGEST_MOVES = 50_000_000

FROM_DATABASE = "d(x, x')"
FROM_NEIGHBOUR = "d(x', x)"


@dataclass(frozen=True)
class BatchDistribution:
    """The distribution of an integer output of a batch.

    Attributes:
        lowest: the output that the first probability belongs to.
        probabilities: shape (outputs,), of ``lowest``, ``lowest`` + 1 and so on; read-only.
    """

    lowest: int
    probabilities: Vector

    @property
    def outputs(self) -> IntVector:
        """The outputs, consecutive integers."""
        return self.lowest + np.arange(self.probabilities.size)

    def over(self, first: int, count: int) -> Vector:
        """Return the probabilities of ``count`` outputs from ``first`` on, its own among them."""
        pmf = np.zeros(count)
        pmf[self.outputs - first] = self.probabilities
        return pmf


def batch_distribution(
    values: npt.ArrayLike, drawn: int, *, rounded: bool = False
) -> BatchDistribution:
    """Return the distribution of the sum of ``drawn`` of the values, drawn without replacement.

    Takes N T S additions, S = T (max - min) + 1.

    Args:
        values: N integers.
        drawn: T, from 1 to N.
        rounded: whether the output is the mean, rounded to the nearest integer, halves upwards:
            floor(s / T + 1/2).

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
    half = drawn // 2
    outputs = (sums.size - 1 + half) // drawn + 1
    padded = np.zeros(outputs * drawn)
    padded[half : half + sums.size] = sums
    return BatchDistribution(least, frozen(padded.reshape(outputs, drawn).sum(axis=1)))


def leave_one_out(
    values: IntVector, drawn: int, wanted: Collection[int] | None = None
) -> Iterator[tuple[int, Vector, Vector]]:
    """Yield, for each distinct value, the counts by sum without one record of that value.

    Division by 1 + z y^v subtracts and loses digits where a sum hardly occurs without v. Instead
    the values are halved again and again, each half receiving the records of the other, and only
    the rows that still reach T - 1 or T are carried: log2(distinct values) times the work of the
    distribution at most, and again only sums of positive numbers.

    Args:
        values: shape (N,), the least of them 0, N at least ``drawn``; checked by the caller.
        drawn: T.
        wanted: the values asked for; all if None.

    Yields:
        The value; the counts of T-subsets of the other records; the counts of (T-1)-subsets of
        them; by sum from 0, both with the factor of `subsets`.
    """
    distinct, copies = np.unique(values, return_counts=True)
    table = start(values, drawn)
    most = (drawn - 1) * int(distinct[-1] - distinct[0])
    kept = set(distinct.tolist() if wanted is None else wanted)
    for value, rows in _halve(table, distinct, copies, kept):
        yield value, rows[-1], rows[-2, : most + 1]


def _halve(
    table: Matrix, distinct: IntVector, copies: IntVector, wanted: set[int]
) -> Iterator[tuple[int, Matrix]]:
    """Yield the tables of the distinct values, given the counts over all other records."""
    if wanted.isdisjoint(distinct.tolist()):
        return
    # The R - 1 insertions to come move a count up by R - 1 rows at most, towards T - 1 and T.
    table = table[-(int(copies.sum()) + 1) :]
    if distinct.size == 1:
        yield int(distinct[0]), _insert(table, np.repeat(distinct, copies - 1))
        return
    middle = distinct.size // 2
    low, high = slice(None, middle), slice(middle, None)
    for kept, inserted in ((low, high), (high, low)):
        inserted_table = _insert(table, np.repeat(distinct[inserted], copies[inserted]))
        yield from _halve(inserted_table, distinct[kept], copies[kept], wanted)


def _insert(table: Matrix, values: IntVector) -> Matrix:
    """Return a table of counts by sum after adding one record of each of the values."""
    buffers = np.empty((min(values.size, 2), *table.shape))
    for index, value in enumerate(values.tolist()):
        # Axes: number of records in the subset, their sum; a new record moves both.
        out, width = buffers[index % 2], table.shape[1] - value
        out[0] = table[0]
        out[1:, :value] = table[1:, :value]
        np.add(table[1:, value:], table[:-1, :width], out=out[1:, value:])
        table = out
    return table


def start(values: IntVector, drawn: int) -> Matrix:
    """Return the counts over no records: one empty subset, as 2^-k; shape (T + 1, S)."""
    span = int(values.max() - values.min())
    table = np.zeros((drawn + 1, drawn * span + 1))
    table[0, 0] = math.ldexp(1.0, -_exponent(values.size, drawn))
    return table


def subsets(records: int, drawn: int) -> float:
    """Return C(N, T) 2^-k, the number of batches with the factor of the tables, in [1/2, 1)."""
    return math.comb(records, drawn) / (1 << _exponent(records, drawn))


def _exponent(records: int, drawn: int) -> int:
    return math.comb(records, drawn).bit_length()


def as_values(values: npt.ArrayLike) -> IntVector:
    """Return the values of a database as a read-only integer vector.

    Raises:
        ParameterError: if they are no vector of integers, none, or beyond 2^40.
    """
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
    whole = array.astype(np.int64)
    whole.setflags(write=False)
    return whole


def check_batch(values: IntVector, drawn: int) -> int:
    """Return T after checking that the distribution of a batch fits a table of doubles.

    Raises:
        ParameterError: if T is out of range, there are 2^1000 batches or more, or the table of
            partial sums would exceed 5e7 entries or take 2e11 additions.
    """
    drawn = _checks.integer("drawn", drawn, 1, values.size)
    # C(N, T) >= (N / T)^T settles the large ones without computing them.
    fewer = min(drawn, values.size - drawn)
    large = fewer > 0 and fewer * math.log2(values.size / fewer) > LARGEST_SUBSETS_BITS
    if large or _exponent(values.size, drawn) > LARGEST_SUBSETS_BITS:
        raise ParameterError(
            f"drawn is {drawn} of {values.size} values; there must be fewer than "
            f"2^{LARGEST_SUBSETS_BITS} batches."
        )
    entries = (drawn + 1) * (drawn * int(values.max() - values.min()) + 1)
    if entries > _LARGEST_TABLE:
        raise ParameterError(
            f"drawn is {drawn} and the values span {int(values.max() - values.min())}; the table "
            f"of {entries} partial sums must have at most {_LARGEST_TABLE} entries."
        )
    if entries * values.size > _LARGEST_WORK:
        raise ParameterError(
            f"drawn is {drawn} of {values.size} values that span "
            f"{int(values.max() - values.min())}: {entries * values.size:.1e} additions, more than "
            f"{_LARGEST_WORK:.0e}."
        )
    return drawn


@dataclass(frozen=True)
class Outputs:
    """Which sums make one output; sums and values are relative to the least of the values x.

    Output b is published for the sums from b W - h to b W - h + W - 1: W = T and h = floor(T / 2)
    for the rounded mean, W = 1 and h = 0 for the sum.

    Attributes:
        width: W.
        half: h.
        first: the least output of any neighbour.
        count: number of outputs from there on.
        low: least replacement.
        high: largest replacement.
    """

    width: int
    half: int
    first: int
    count: int
    low: int
    high: int

    @classmethod
    def of(cls, drawn: int, span: int, low: int, high: int, rounded: bool) -> Outputs:
        """Return the outputs of T of N values in 0..span and one replacement in low..high.

        Raises:
            ParameterError: if there are more than 5e7 pairs of a replacement and an output.
        """
        width, half = (drawn, drawn // 2) if rounded else (1, 0)
        first = (low + half) // width
        last = ((drawn - 1) * span + high + half) // width
        moves = (high - low + 1) * (last - first + 1)
        if moves > _LARGEST_MOVES:
            raise ParameterError(
                f"highest is {high - low:,} above lowest, with {last - first + 1:,} outputs: a "
                f"table of {moves:,} entries; it may have at most {_LARGEST_MOVES:,}."
            )
        return cls(width, half, first, last - first + 1, low, high)

    @property
    def replacements(self) -> int:
        """Number of values that a record can be replaced by."""
        return self.high - self.low + 1

    def fixed(self, counts: Vector) -> Vector:
        """Return counts by sum as counts by output, shape (count,)."""
        padded = np.zeros(self.count * self.width)
        offset = self.half - self.first * self.width
        padded[offset : offset + counts.size] = counts
        return padded.reshape(self.count, self.width).sum(axis=1)

    def shifted(self, counts: Vector) -> Matrix:
        """Return counts by output after adding w to every sum, for every w: a view.

        Shape (W, ceil(R / W), count) for R replacements; the place of w is `place_of`.
        """
        width, groups = self.width, -(-self.replacements // self.width)
        columns = self.count + groups - 1
        padded = np.zeros(columns * width + width - 1)
        place = self.half + self.high - self.first * width
        padded[place : place + counts.size] = counts
        sums = np.zeros(columns * width)
        for offset in range(width):
            sums += padded[offset : offset + sums.size]
        rows = np.ascontiguousarray(sums.reshape(columns, width).T)
        # rows[residue, group]: w falls by one from row to row and by W from column to column, so
        # each w is a window of one row.
        step, item = rows.strides
        return np.lib.stride_tricks.as_strided(
            rows, (width, groups, self.count), (step, item, item), writeable=False
        )

    def place_of(self, value: int) -> tuple[int, int]:
        """Return where `shifted` holds the outputs after adding ``value``."""
        group, residue = divmod(self.high - value, self.width)
        return residue, group

    def by_value(self, sums: Matrix) -> Vector:
        """Return numbers of shape (W, groups) for the replacements high, high - 1, ..., low."""
        return sums.T.reshape(-1)[: self.replacements]


class HockeySticks:
    """The largest hockey-stick so far, for each epsilon, in the counts' own scale."""

    def __init__(self, outputs: Outputs, epsilons: Vector) -> None:
        self._outputs = outputs
        self._factors = [(math.exp(e), math.expm1(e)) for e in epsilons.tolist()]
        self.best: list[tuple[float, int, int, str]] = [(0.0, 0, 0, "")] * epsilons.size
        """The value, the record replaced, its replacement, the direction; for each epsilon."""

    def add(
        self, value: int, without: Vector, others: Vector, replacements: Sequence[int] | None
    ) -> None:
        """Compare x with its neighbours in which one record of ``value`` is replaced.

        Args:
            value: a.
            without: L, counts of T-subsets of the other records, by sum from 0.
            others: M, counts of (T-1)-subsets of the other records, by sum from 0.
            replacements: which w; all if None.
        """
        outputs = self._outputs
        targets = range(outputs.high, outputs.low - 1, -1) if replacements is None else replacements
        fixed, moved = outputs.fixed(without), outputs.shifted(others)
        own = moved[outputs.place_of(value)]
        scratch = np.empty(moved.shape)
        for index, (factor, excess) in enumerate(self._factors):
            covered = excess * fixed
            rest = own - covered
            # No neighbour covers less than one that never makes the outputs of the batches with a.
            if np.maximum(rest, 0.0).sum() > self.best[index][0]:
                np.multiply(moved, -factor, out=scratch)
                scratch += rest
                self._keep(index, value, targets, scratch, FROM_DATABASE)
            np.subtract(moved, covered + factor * own, out=scratch)
            self._keep(index, value, targets, scratch, FROM_NEIGHBOUR)

    def _keep(
        self, index: int, value: int, targets: Sequence[int], excess: Matrix, direction: str
    ) -> None:
        """Sum the positive parts for each replacement, and keep the largest of the targets."""
        np.maximum(excess, 0.0, out=excess)
        sums = self._outputs.by_value(excess.sum(axis=-1))
        among = sums[[self._outputs.high - w for w in targets]]
        largest = int(np.argmax(among))
        if among[largest] > self.best[index][0]:
            self.best[index] = (float(among[largest]), value, targets[largest], direction)
