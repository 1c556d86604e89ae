"""A first look at a large reduced set in double precision, with a bound on its rounding.

Which multisets certainly hold, which certainly fail, and which are for exact arithmetic.

With u = 2^-53, p and 1 - p are each rounded once from their exact values. One step of
T = p T1 + (1 - p) T0 with |T| <= 1 then adds at most 3 u (1 + 2 u) to the error; h itself is
rounded once. After K steps T is off by less than (3 K + 2) u (1 + 4 K u), and
f = T - e^(m epsilon) T' by (1 + e^(m epsilon)) times that and 3 u more. (4 K + 16) u
(1 + e^(m epsilon)) covers it with room, for K below 10^6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._progress import track
from dpopt.majority.reduction import walk_size
from dpopt.majority.sweep import (
    BITS,
    CORNER,
    FIXED,
    RATIO,
    Arithmetic,
    Multiset,
    Sweep,
    Weights,
)

Floats = npt.NDArray[np.float64]

MOST_UNDECIDED = 20_000


class Screen:
    """Walks the reduced set once in floats; see `Sweeper`, whose answers it gives.

    Args:
        arithmetic: integers of the setting.
        weights: gamma's upper half over 2^62.
        reach: list also the multisets whose slack is below this.
    """

    def __init__(self, arithmetic: Arithmetic, weights: Weights, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        ratio = arithmetic.ratio
        self._error = (4 * arithmetic.voters + 16) * Fraction(1, 1 << 53) * (1 + ratio)
        self._error += arithmetic.rounding
        self._scale = 1 << (FIXED + RATIO)
        self.limit = math.floor(arithmetic.budget * self._scale)
        self.surely_broken = self.limit + math.ceil(2 * self._error * self._scale)
        # What is not listed has a slack of at least this.
        self.sure = 2 * self._error
        lowest = arithmetic.budget - reach - self.sure - self._error
        self._low = math.nextafter(float(lowest), -math.inf)
        self._high = math.nextafter(float(arithmetic.budget + self._error), math.inf)
        self._h = np.array([h / (1 << BITS) for h in arithmetic.signed(weights)])
        self._ratio = float(ratio)
        unit = 1 << CORNER
        self._p = [np.array([p / unit for p in pair]) for pair in arithmetic.chances]
        self._q = [np.array([(unit - p) / unit for p in pair]) for pair in arithmetic.chances]

    def run(self) -> Sweep | None:
        """Return the sweep, or None if more is undecided than exact laws can settle."""
        count, best = 0, None
        near: list[Multiset] = []
        a = self.arithmetic
        walk = track(self._walk(), "proof over corner multisets", walk_size(a.axes[:-1], a.sizes))
        for counts, values in walk:
            count += self._distinct(values)
            top = float(values.max())
            if best is None or top > best[0]:
                best = (top, _place(counts, np.unravel_index(int(np.argmax(values)), values.shape)))
            if top >= self._low:
                found = np.nonzero((values >= self._low) & (values <= self._high))
                near.extend(_place(counts, index) for index in zip(*found, strict=True))
                if len(near) > MOST_UNDECIDED:
                    return None
        if best is None:
            return None
        worst = math.ceil((Fraction(best[0]) + self._error) * self._scale)
        return Sweep(count, self.limit - worst, best[1], near)

    @staticmethod
    def _distinct(values: Floats) -> int:
        """Count the multisets of a slice over (family, s, ones): s = 0 has one inner family."""
        families = math.prod(values.shape[:-3])
        s, ones = values.shape[-2:]
        left = ones - 1
        pairs = sum(max(left - n + 1, 0) for n in range(1, s))
        return families * (values.shape[-3] * pairs + left + 1)

    def _walk(self) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """Yield f over (family of each pair, s, ones) for each choice of the outer counts.

        Where a pair has no voters its axis has length one; s + ones beyond the voters left,
        and the second family at s = 0, are -inf.
        """
        a = self.arithmetic
        last = a.axes[-1].group
        p, q = self._p[-1][:, None], self._q[-1][:, None]
        size = a.sizes[last]
        base = np.zeros((2, size + 1, a.voters + 1))
        base[:, 0] = self._h
        for s in range(1, size + 1):
            before = base[:, s - 1, : a.voters + 2 - s]
            base[:, s, : a.voters + 1 - s] = p * before[:, 1:] + q * before[:, :-1]
        table = base.reshape(*(1,) * (len(a.axes) - 1), *base.shape)
        yield from self._deeper(table, (), list(a.sizes))

    def _deeper(
        self, table: Floats, counts: tuple[int, ...], left: list[int]
    ) -> Iterator[tuple[tuple[int, ...], Floats]]:
        a, place = self.arithmetic, len(counts)
        if place == len(a.axes) - 1:
            yield counts, self._values(table)
            return
        shape = [1] * table.ndim
        shape[place] = 2
        p, q = self._p[place].reshape(shape), self._q[place].reshape(shape)
        group = a.axes[place].group
        rows = -1 if group == a.axes[-1].group else None
        for n in range(left[group] + 1):
            if n:
                table = p * table[..., :rows, 1:] + q * table[..., :rows, :-1]
            fewer = [size - n * (g == group) for g, size in enumerate(left)]
            yield from self._deeper(table, (*counts, n), fewer)

    def _values(self, table: Floats) -> Floats:
        opposite = np.flip(table, axis=tuple(range(table.ndim - 2)))
        values = table - self._ratio * opposite
        s, ones = values.shape[-2:]
        values[..., np.add.outer(np.arange(s), np.arange(ones)) >= ones] = -np.inf
        values[..., 1, 0, :] = -np.inf
        return values


def _place(counts: tuple[int, ...], index: tuple[Any, ...]) -> Multiset:
    *family, s, ones = (int(part) for part in index)
    return Multiset((*counts, s), tuple(family), ones)
