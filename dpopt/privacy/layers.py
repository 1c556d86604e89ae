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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.release import Words, at_most, to_words

Layer = tuple[int, int, int]
"""Base total of a row, its rest, and the sum of the shares that the rest is split over."""

_WORD = 64
# Draws made at once: bounds the memory that their integers take.
_CHUNK = 1 << 16


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
    base: tuple[int, ...]
    extra: tuple[int, ...]
    shares: tuple[int, ...]
    staircase: bool

    @property
    def size(self) -> int:
        """Number of letters, n."""
        return len(self.base)

    @cached_property
    def base_sums(self) -> list[int]:
        """Cumulative base weights from 0, n + 1 integers."""
        return list(accumulate(self.base, initial=0))

    @cached_property
    def share_sums(self) -> list[int]:
        """Cumulative shares from 0, n + 1 integers."""
        return list(accumulate(self.shares, initial=0))

    def layers(self) -> Iterator[Layer]:
        """Yield the layers' totals, row by row."""
        return map(self._layer, range(self.size))

    def _first(self, row: int) -> int:
        return row + 1 if self.staircase else 0

    def weights(self) -> list[list[int]]:
        """Return all n^2 weights, rows summing to 2^bits: for small n and for tests."""
        return [self.row(i) for i in range(self.size)]

    def _layer(self, i: int) -> Layer:
        base = self.base_sums[i if self.staircase else self.size]
        rest = (1 << self.bits) - base - self.extra[i]
        return base, rest, self.share_sums[-1] - self.share_sums[self._first(i)]

    def row(self, i: int) -> list[int]:
        """Return the n weights of row i, summing to 2^bits."""
        _, rest, total = self._layer(i)
        end = i if self.staircase else self.size
        row = [w if j < end else 0 for j, w in enumerate(self.base)]
        row[i] += self.extra[i]
        first = self._first(i)
        if total:
            start = self.share_sums[first]
            marks = [rest * (c - start) // total for c in self.share_sums[first:]]
            for j in range(first, self.size):
                row[j] += marks[j - first + 1] - marks[j - first]
        return row

    def entry(self, i: int, j: int) -> int:
        """Return the weight of row i at letter j, as `row` has it."""
        _, rest, total = self._layer(i)
        weight = self.extra[i] if i == j else 0
        weight += self.base[j] if j < (i if self.staircase else self.size) else 0
        first = self._first(i)
        if total and j >= first:
            below, above = (c - self.share_sums[first] for c in self.share_sums[j : j + 2])
            weight += rest * above // total - rest * below // total
        return weight

    @cached_property
    def _words(self) -> tuple[Words, Words]:
        return to_words(self.base_sums[1:], self.bits), to_words(self.share_sums[1:], self.bits)

    @cached_property
    def _table(self) -> tuple[npt.NDArray[np.object_], ...]:
        columns = (self.base_sums, self.share_sums, self.extra)
        return tuple(np.array(column, dtype=object) for column in columns)

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
        base_sums, share_sums, extras = self._table
        base = base_sums[rows if self.staircase else np.full_like(rows, self.size)]
        start = share_sums[rows + 1 if self.staircase else np.zeros_like(rows)]
        past, extra = from_words(drawn) - base, extras[rows]
        left = past - extra
        in_base = (past < 0).astype(bool)
        in_rest = (left >= 0).astype(bool)
        # floor(rest C / S) <= x exactly where C <= ((x + 1) S - 1) // rest; drawn into the other
        # layers, the same is computed with x = 0 and not used.
        left[~in_rest] = 0
        rest = np.maximum((1 << self.bits) - base - extra, 1)
        mark = start + ((left + 1) * np.maximum(share_sums[-1] - start, 1) - 1) // rest
        below = count_at_most(bases, drawn)
        above = count_at_most(shares, to_words(mark, self.bits))
        return np.where(in_base, below, np.where(in_rest, above, rows))


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
