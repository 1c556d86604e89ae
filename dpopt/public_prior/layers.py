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

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from dpopt._types import IntVector
from dpopt.privacy.release import Source


class Letter(NamedTuple):
    """A letter's row and column.

    Attributes:
        base: w.
        extra: e.
        share: k.
        rest: what the row splits over its shares.
        total: the sum of these shares.
    """

    base: int
    extra: int
    share: int
    rest: int
    total: int


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

    def letters(self) -> Iterator[Letter]:
        """Yield the letters in their order."""
        left, after = 1 << self.bits, sum(self.shares)
        if not self.staircase:
            left -= sum(self.base)
        for base, extra, share in zip(self.base, self.extra, self.shares, strict=True):
            if self.staircase:
                after -= share
            yield Letter(base, extra, share, left - extra, after)
            if self.staircase:
                left -= base

    def weights(self) -> list[list[int]]:
        """Return all n^2 weights, rows summing to 2^bits: for small n and for tests."""
        return [self.row(i) for i in range(self.size)]

    def row(self, i: int) -> list[int]:
        """Return the n weights of row i, summing to 2^bits."""
        first, end, rest, total = self._split(i)
        row = [*self.base[:end], *[0] * (self.size - end)]
        row[i] += self.extra[i]
        if total:
            marks = [rest * (c - self.share_sums[first]) // total for c in self.share_sums[first:]]
            for j in range(first, self.size):
                row[j] += marks[j - first + 1] - marks[j - first]
        return row

    def column(self, j: int) -> Iterator[int]:
        """Yield the weights of all rows at letter j, as `row` has them."""
        below, above = self.share_sums[j], self.share_sums[j + 1]
        for i, letter in enumerate(self.letters()):
            weight = self.base[j] if i > j or not self.staircase else 0
            if letter.total and (i < j or not self.staircase):
                start = self.share_sums[-1] - letter.total
                weight += letter.rest * (above - start) // letter.total
                weight -= letter.rest * (below - start) // letter.total
            yield weight + (letter.extra if i == j else 0)

    def _split(self, i: int) -> tuple[int, int, int, int]:
        """Return where row i's shares begin and its base ends, its rest, and the shares' sum."""
        first, end = (i + 1, i) if self.staircase else (0, self.size)
        rest = (1 << self.bits) - self.base_sums[end] - self.extra[i]
        return first, end, rest, self.share_sums[-1] - self.share_sums[first]

    def draw(self, rows: IntVector, source: Source) -> IntVector:
        """Return one letter for each entry of ``rows``, by exactly the row's weights.

        Args:
            rows: shape (draws,), in 0..n-1.
            source: of random bytes, as many for each draw as hold T.

        Returns:
            Letters, shape (draws,).
        """
        size = -(-self.bits // 8)
        data, drop = source(size * rows.size), 8 * size - self.bits
        drawn = (
            self.letter(i, int.from_bytes(data[size * place : size * (place + 1)]) >> drop)
            for place, i in enumerate(rows.tolist())
        )
        return np.fromiter(drawn, np.int64, rows.size)

    def letter(self, i: int, u: int) -> int:
        """Return the letter of row i for an integer u below T."""
        first, end, rest, total = self._split(i)
        past = u - self.base_sums[end] - self.extra[i]
        # All three layers are computed. floor(rest C / S) <= x where C <= ((x + 1) S - 1) // rest.
        mark = ((past + 1) * total - 1) // (rest or 1)
        in_base = bisect_right(self.base_sums, u) - 1
        in_rest = bisect_right(self.share_sums, self.share_sums[first] + mark) - 1
        return in_base if u < self.base_sums[end] else i if past < 0 else in_rest
