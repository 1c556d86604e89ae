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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.privacy.limbs import CHUNK, Integers, Limbs, where
from dpopt.privacy.release import Source, count_at_most, random_words

_WORD, _MANTISSA = 64, 53
_LEAST_REST, _HELD = 2.0**-500, 900
# Draws made at once: bounds the memory that they take, and many are sorted together.
_CHUNK = 1 << 18


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
    def _floats(self) -> tuple[Vector, Vector]:
        """For draws: where layers end and shares begin, and the letters' sums, in floats.

        Returns:
            For each row base / T, (base + extra) / T, (S_i / S) / (rest / T) and start / S, shape
            (n, 4), S the sum of all shares; and the cumulative base weights over T, then 1 more
            than the cumulative shares over S, shape (2 n,). Each is the rational number, up to a
            few roundings.
        """
        unit, whole, tables = 1 << self.bits, self.share_sums[self.size] or 1, list[Matrix]()
        for part in self.parts():
            rest, start = part.rest, self.share_sums[self.size] - part.total
            left = _shares_of(rest, unit)
            slope = np.full(left.size, math.inf)
            # What is never drawn in practice is left to integers, before floats underflow.
            kept = left > _LEAST_REST
            slope[kept] = (_shares_of(part.total, whole) + np.zeros(left.size))[kept] / left[kept]
            base, own = _shares_of(unit - rest - part.extra, unit), _shares_of(unit - rest, unit)
            begin = np.broadcast_to(_shares_of(start, whole), left.shape)
            tables.append(np.column_stack([base, own, slope, begin]))
        bases, shares = (
            np.concatenate([_shares_of(part, of) for part in sums.parts()])[1:]
            for sums, of in ((self.base_sums, unit), (self.share_sums, whole))
        )
        return frozen(np.concatenate(tables)), frozen(np.concatenate([bases, 1 + shares]))

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
        # u / T is at most 2^-53 more, a weight is one of T, and each number is a few roundings off.
        margin = 2.0**-48 + 2.0**-self.bits
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
        first, end = (i + 1, i) if self.staircase else (0, self.size)
        base, start = self.base_sums[end], self.share_sums[first]
        if u < base:
            return bisect_right(self.base_sums, u) - 1
        past, rest = u - base - self.extra[i], (1 << self.bits) - base - self.extra[i]
        if past < 0:
            return i
        # floor(rest C / S) <= x exactly where C <= ((x + 1) S - 1) // rest.
        mark = ((past + 1) * (self.share_sums[self.size] - start) - 1) // rest
        return bisect_right(self.share_sums, start + mark) - 1


_ZERO = Limbs.one(0)


def _shares_of(numbers: Limbs, whole: int) -> Vector:
    """Return numbers over a whole as floats, up to a few units of their last place."""
    # Far more bits than a float has are kept, and far fewer than it can hold.
    shift = max(0, whole.bit_length() - _HELD)
    return (numbers >> shift).floats() / float(whole >> shift)
