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

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector, frozen
from dpopt.privacy.release import Source, count_at_most, random_words

Layer = tuple[int, int, int]
"""Base total of a row, its rest, and the sum of the shares that the rest is split over."""

_WORD, _MANTISSA = 64, 53
_LEAST_REST = 2.0**-500
# Draws made at once: bounds the memory that they take, and many are sorted together.
_CHUNK = 1 << 18


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
    def _floats(self) -> tuple[Vector, Vector]:
        """For draws: where layers end and shares begin, and the letters' sums, in floats.

        Returns:
            For each row base / T, (base + extra) / T, (S_i / S) / (rest / T) and start / S, shape
            (n, 4), S the sum of all shares; and the cumulative base weights over T, then 1 more
            than the cumulative shares over S, shape (2 n,). Each is next to the rational number.
        """
        unit, whole = 1 << self.bits, self.share_sums[-1] or 1
        table = np.empty((self.size, 4))
        for i, (base, rest, share) in enumerate(self.layers()):
            begin = self.share_sums[self._first(i)] / whole
            left = rest / unit
            # What is never drawn in practice is left to integers, before floats underflow.
            slope = share / whole / left if left > _LEAST_REST else math.inf
            table[i] = base / unit, (unit - rest) / unit, slope, begin
        bases = [total / unit for total in self.base_sums[1:]]
        shares = [1 + total / whole for total in self.share_sums[1:]]
        return frozen(table), frozen([*bases, *shares])

    def draw(self, rows: IntVector, source: Source) -> IntVector:
        """Return one letter for each entry of ``rows``, by exactly the row's weights.

        The first 53 bits of a uniform u decide in floats, with a margin for their rounding; the few
        draws that are within it of a border are decided in integers, by as many bits as T has.

        Args:
            rows: shape (draws,), in 0..n-1.
            source: of random bytes.

        Returns:
            Letters, shape (draws,).
        """
        found = np.empty(rows.size, dtype=np.int64)
        for start in range(0, rows.size, _CHUNK):
            part = rows[start : start + _CHUNK]
            words = random_words(part.size, source)
            letters, sure = self._by_floats(part, words)
            for place in np.flatnonzero(~sure):
                first = int(words[place])
                bits = _WORD
                while bits < self.bits:
                    first = first << _WORD | int.from_bytes(source(_WORD // 8), "little")
                    bits += _WORD
                letters[place] = self.letter(int(part[place]), first >> (bits - self.bits))
            found[start : start + _CHUNK] = letters
        return found

    def _by_floats(
        self, rows: IntVector, words: npt.NDArray[np.uint64]
    ) -> tuple[IntVector, npt.NDArray[np.bool_]]:
        """Return letters by the first 53 bits of u / T, and of which of them these are enough."""
        table, sums = self._floats
        base, own, slope, begin = table[rows].T
        u = (words >> np.uint64(_WORD - _MANTISSA)) * 2.0**-_MANTISSA
        # u / T is at most 2^-53 more, a weight is one of T, and each number is rounded once.
        margin = 2.0**-50 + 2.0**-self.bits
        in_base, in_rest = u < base, u >= own
        sure = (np.abs(u - base) > margin) & (np.abs(u - own) > margin)
        # All three layers are computed. A share and 1 more, which ends before 2, lie within
        # margin (slope + 1) of what they are; an infinite slope is never sure.
        with np.errstate(invalid="ignore", over="ignore"):
            mark = begin + (u - own) * slope
            spread = np.where(in_base, margin, margin * (slope + 1))
            value = np.where(in_base, u, 1 + np.clip(np.nan_to_num(mark), 0, 1))
            after = count_at_most(sums, value)
            near = sums[np.maximum(after - 1, 0)], sums[np.minimum(after, sums.size - 1)]
            far = (np.abs(value - near[0]) > spread) & (np.abs(value - near[1]) > spread)
        by_sums = in_base | in_rest
        letters = np.where(in_base, after, np.where(in_rest, after - self.size, rows))
        return letters, sure & (far | ~by_sums)

    def letter(self, i: int, u: int) -> int:
        """Return the letter of row i for an integer u below T, in integers."""
        base, rest, share = self._layer(i)
        if u < base:
            return bisect_right(self.base_sums, u) - 1
        if u < base + self.extra[i]:
            return i
        # floor(rest C / S) <= x exactly where C <= ((x + 1) S - 1) // rest.
        mark = ((u - base - self.extra[i] + 1) * share - 1) // rest
        return bisect_right(self.share_sums, self.share_sums[self._first(i)] + mark) - 1
