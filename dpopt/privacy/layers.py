"""Kernels of n letters kept as O(n) integers: their rows and draws from them.

Row i of such a kernel is made of three layers, integers over T = 2^bits:

- a base weight w_j, the same in every row, for j < i (a staircase) or for all j (flat);
- an extra weight e_i at the row's own letter;
- the rest of T, split over the letters j > i (a staircase) or all j (flat) in proportion to
  shares k_j: letter j gets floor(rest_i C_{j+1} / S_i) - floor(rest_i C_j / S_i), where C are the
  cumulative shares of these letters and S_i is their sum.

So each row sums to T exactly, without any rounding left over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.limbs import CHUNK, Integers, Limbs, where
from dpopt.privacy.release import Words, at_most, to_words

_WORD = 64
# Draws made at once: bounds the memory that their integers take.
_CHUNK = 1 << 16


class Part(NamedTuple):
    """Some rows of a kernel, and the columns of the same letters.

    Attributes:
        start: the first letter.
        base: w.
        extra: e.
        shares: k.
        rest: what a row splits over its shares.
        total: the sum of these shares.
    """

    start: int
    base: Limbs
    extra: Limbs
    shares: Limbs
    rest: Limbs
    total: Limbs


@dataclass(frozen=True, eq=False)
class LayeredRows:
    """The integers of a kernel in layers; see the module.

    Attributes:
        bits: T = 2^bits.
        base: w_j, at least 0, n integers.
        extra: e_i, at least 0, n integers.
        shares: k_j, at least 0, n integers.
        staircase: whether the base ends before and the shares begin after the row's letter.
    """

    bits: int
    base: Sequence[int]
    extra: Sequence[int]
    shares: Sequence[int]
    staircase: bool

    def __post_init__(self) -> None:
        """Keep the integers as vectors."""
        for name in ("base", "extra", "shares"):
            values = getattr(self, name)
            kept = values if isinstance(values, Integers) else Integers.of(values)
            object.__setattr__(self, name, kept)

    @property
    def size(self) -> int:
        """Number of letters, n."""
        return len(self.base)

    @cached_property
    def base_sums(self) -> Integers:
        """Cumulative base weights from 0, n + 1 integers."""
        return Integers.of(self.base).sums()

    @cached_property
    def share_sums(self) -> Integers:
        """Cumulative shares from 0, n + 1 integers."""
        return Integers.of(self.shares).sums()

    def parts(self) -> Iterator[Part]:
        """Yield the rows and columns of the kernel, chunk by chunk."""
        spent, split, n = self.base_sums, self.share_sums, self.size
        whole, shares = (1 << self.bits), split[n]
        for start in range(0, n, CHUNK):
            end = min(start + CHUNK, n)
            columns = (
                Integers.of(values).limbs(start, end)
                for values in (self.base, self.extra, self.shares)
            )
            base, extra, own = columns
            if self.staircase:
                before, total = spent.limbs(start, end), shares - split.limbs(start + 1, end + 1)
            else:
                before, total = spent[n], Limbs.one(shares)
            yield Part(start, base, extra, own, whole - extra - before, total)

    def weights(self) -> list[list[int]]:
        """Return all n^2 weights, rows summing to 2^bits: for small n and for tests."""
        return [self.row(i) for i in range(self.size)]

    def row(self, i: int) -> list[int]:
        """Return the n weights of row i, summing to 2^bits."""
        first, end = (i + 1, i) if self.staircase else (0, self.size)
        sums, extra = self.share_sums, self.extra[i]
        start, rest = sums[first], (1 << self.bits) - self.base_sums[end] - extra
        total = sums[self.size] - start
        row = [*self.base[:end], *[0] * (self.size - end)]
        row[i] += extra
        if total:
            marks = [rest * (c - start) // total for c in sums[first:]]
            for j in range(first, self.size):
                row[j] += marks[j - first + 1] - marks[j - first]
        return row

    def column(self, j: int) -> Iterator[Limbs]:
        """Yield the weights of all rows at letter j, as `row` has them, chunk by chunk."""
        base, extra = Limbs.one(self.base[j]), Limbs.one(self.extra[j])
        below, above = self.share_sums[j], self.share_sums[j + 1]
        for part in self.parts():
            rows = np.arange(part.start, part.start + part.extra.size)
            split = ~part.total.zero & (rows < j if self.staircase else True)
            first = self.share_sums[self.size] - part.total
            # Rows without a split are given one that is not used.
            total, rest = where(split, part.total, Limbs.one(1)), where(split, part.rest, _ZERO)
            upto = (where(split, end - first, _ZERO) for end in (above, below))
            to_j, before = (rest * mark // total for mark in upto)
            in_base = rows > j if self.staircase else np.ones(rows.size, dtype=bool)
            yield where(in_base, base, _ZERO) + where(rows == j, extra, _ZERO) + (to_j - before)

    @cached_property
    def _words(self) -> tuple[Words, Words]:
        count = -(-(self.bits + 1) // _WORD)
        return _highest_first(self.base_sums, count), _highest_first(self.share_sums, count)

    def draw(self, rows: IntVector, drawn: Words) -> IntVector:
        """Return one letter for each entry of ``rows``, from uniform integers already drawn.

        Args:
            rows: shape (draws,), in 0..n-1.
            drawn: integers below 2^bits as words, highest first, shape (words, draws).

        Returns:
            Letters, shape (draws,).
        """
        found = np.empty(rows.size, dtype=np.int64)
        # By row, so that a large table is read in its own order.
        by_row = np.argsort(rows, kind="stable")
        for start in range(0, rows.size, _CHUNK):
            part = by_row[start : start + _CHUNK]
            found[part] = self._draw(rows[part], drawn[:, part])
        return found

    def _draw(self, rows: IntVector, drawn: Words) -> IntVector:
        bases, shares = self._words
        base = _objects(self.base_sums, rows if self.staircase else np.full_like(rows, self.size))
        start = _objects(self.share_sums, rows + 1 if self.staircase else np.zeros_like(rows))
        extra = _objects(self.extra, rows)
        past, shared = from_words(drawn) - base, self.share_sums[self.size]
        left = past - extra
        in_base = (past < 0).astype(bool)
        in_rest = (left >= 0).astype(bool)
        # floor(rest C / S) <= x exactly where C <= ((x + 1) S - 1) // rest; drawn into the other
        # layers, the same is computed with x = 0 and not used.
        left[~in_rest] = 0
        rest = np.maximum((1 << self.bits) - base - extra, 1)
        mark = start + ((left + 1) * np.maximum(shared - start, 1) - 1) // rest
        below = count_at_most(bases, drawn)
        above = count_at_most(shares, to_words(mark, self.bits))
        return np.where(in_base, below, np.where(in_rest, above, rows))


_ZERO = Limbs.one(0)


def _highest_first(sums: Integers, count: int) -> Words:
    """Return cumulative sums, without the first, as so many words."""
    words = sums.words[:count, 1:][::-1]
    missing = count - len(words)
    return np.concatenate([np.zeros((missing, words.shape[1]), dtype=np.uint64), words])


def _objects(values: Sequence[int], places: IntVector) -> npt.NDArray[np.object_]:
    """Return the integers at some places, for numpy to calculate with one by one."""
    return np.array([*Integers.of(values)[places]], dtype=object)


def from_words(words: Words) -> npt.NDArray[np.object_]:
    """Return words, highest first, as Python integers, shape (values,)."""
    whole = words[0].astype(object)
    for word in words[1:]:
        whole = (whole << _WORD) | word.astype(object)
    return whole


def count_at_most(sums: Words, values: Words) -> IntVector:
    """Return how many of the ascending ``sums`` are at most each value, in exact arithmetic.

    Highest words first; where they tie, by bisection over all words.

    Args:
        sums: shape (words, n).
        values: shape (words, draws).
    """
    first = np.searchsorted(sums[0], values[0], side="left")
    last = np.searchsorted(sums[0], values[0], side="right")
    tied = np.flatnonzero(first < last)
    if tied.size:
        last[tied] = _bisect(sums, values[:, tied])
    return last.astype(np.int64)


def _bisect(sums: Words, values: Words) -> IntVector:
    n = sums.shape[1]
    low = np.zeros(values.shape[1], dtype=np.int64)
    step = 1 << n.bit_length()
    while step := step >> 1:
        reach = low + step
        probe = sums[:, np.minimum(reach, n) - 1]
        low = np.where(at_most(probe, values) & (reach <= n), reach, low)
    return low
