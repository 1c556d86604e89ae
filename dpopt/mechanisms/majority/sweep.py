"""The reduced set of DaRRM's corner multisets, walked once in integers rounded outward.

Constants are rounded outward once: b up to a multiple of 2^-128 (with c = 1 - b), Delta up, and
e^(m epsilon) down. Larger b and Delta make a larger polygon, whose hull holds the true one, so
what is proved for the rounded voters holds for the true ones.

The multisets are those of the reduction theorem (see the separation module, which this one does
not use). E h(L) follows a recursion in integers of 256 fractional bits, rounded down at every
step; one voter costs at most one unit, and the bound is added back. Rows that this leaves
undecided are settled by exact laws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from flint import fmpz_poly

from dpopt._errors import NotPrivateError
from dpopt.mechanisms.majority.setting import MajoritySetting
from dpopt.privacy.exact import exp_lower, exp_upper

BITS = 62
CORNER, RATIO, FIXED = 128, 128, 256
MOST_LISTED = 1 << 20

Weights = tuple[int, ...]
"""gamma's upper half as integers over 2^BITS, l = (K + 1) / 2..K."""


@dataclass(frozen=True)
class Multiset:
    """Voters by corner: family (i, j, k) of (D0 or 0D, 1m or m1, bc or cb) and their counts."""

    family: tuple[int, int, int]
    shifted: int
    mirrored: int
    inner: int
    ones: int

    def describe(self, voters: int, side: int) -> str:
        """Return the voters' probabilities in words, on one side of the pair."""
        i, j, k = self.family
        zeros = voters - self.shifted - self.mirrored - self.inner - self.ones
        parts = (
            (self.shifted, ("Delta", "0")[i ^ side]),
            (self.mirrored, ("1", "1 - Delta")[j ^ side]),
            (self.inner, ("b", "c")[k ^ side]),
            (self.ones, "1"),
            (zeros, "0"),
        )
        return ", ".join(f"{count} voters at {value}" for count, value in parts if count)


class Arithmetic:
    """The integers of one setting."""

    def __init__(self, setting: MajoritySetting) -> None:
        self.voters = setting.mechanisms
        self.pure = setting.mechanism_delta == 0.0
        delta = Fraction(setting.mechanism_delta)
        r = exp_upper(setting.epsilon, 2 * CORNER)
        unit = 1 << CORNER
        b = min(unit, ceil((r + delta) / (r + 1) * unit))
        shift = min(unit, ceil(delta * unit))
        # [corner family's choice] -> p; the other choice is p'.
        self.p_shifted, self.p_mirrored = (shift, 0), (unit, unit - shift)
        self.p_inner = (b, unit - b)
        exponent = min(
            Fraction(setting.allowance) * Fraction(setting.epsilon),
            Fraction(setting.guarantee.epsilon),
        )
        self.ratio = exp_lower(exponent, RATIO)
        self.ratio_scaled = int(self.ratio * (1 << RATIO))
        self.budget = self.ratio - 1 + 2 * Fraction(setting.delta)

    def signed(self, weights: Weights) -> list[int]:
        """Return h over 2^BITS."""
        return [-w for w in reversed(weights)] + list(weights)

    def exact_slack(self, weights: Weights, at: Multiset) -> Fraction:
        """Return budget - f at a multiset, without any rounding."""
        sign, total = self.signed(weights), Fraction(0)
        flat = [self.flat(sign, at, side) for side in (0, 1)]
        if flat[0] is not None and flat[1] is not None:
            return self.budget - (flat[0] - self.ratio * flat[1]) / (1 << BITS)
        for law, factor in zip(self.laws(at), (Fraction(1), -self.ratio), strict=True):
            value = sum(int(mass) * h for mass, h in zip(law, sign, strict=True))
            total += factor * Fraction(value, 1 << (self.scale(at) + BITS))
        return self.budget - total

    def flat(self, sign: list[int], at: Multiset, side: int) -> int | None:
        """Return h where it is the same at every L that a multiset can give; else None.

        Such multisets are ties by the thousand where gamma is 1: settled without their laws.
        """
        i, j, k = (choice ^ side for choice in at.family)
        low, width = at.ones, 0
        for p, count in (
            (self.p_shifted[i], at.shifted),
            (self.p_mirrored[j], at.mirrored),
            (self.p_inner[k], at.inner),
        ):
            if p == 1 << CORNER:
                low += count
            elif p > 0:
                width += count
        window = sign[low : low + width + 1]
        return window[0] if window.count(window[0]) == len(window) else None

    def scale(self, at: Multiset) -> int:
        """Return the exponent of the denominator of a multiset's laws."""
        return CORNER * (at.shifted + at.mirrored + at.inner)

    def laws(self, at: Multiset) -> list[list[int]]:
        """Return the laws of L on both sides over 2^scale, as integers on 0..K."""
        found = []
        for side in (0, 1):
            i, j, k = (choice ^ side for choice in at.family)
            law = fmpz_poly([0] * at.ones + [1])
            for p, count in (
                (self.p_shifted[i], at.shifted),
                (self.p_mirrored[j], at.mirrored),
                (self.p_inner[k], at.inner),
            ):
                law *= fmpz_poly([(1 << CORNER) - p, p]) ** count
            masses = [int(mass) for mass in law.coeffs()]
            found.append(masses + [0] * (self.voters + 1 - len(masses)))
        return found

    def coefficients(self, at: Multiset) -> list[int]:
        """Return f's coefficients on the weights, over 2^(scale + BITS + RATIO)."""
        law, other = self.laws(at)
        f = [(p << RATIO) - self.ratio_scaled * q for p, q in zip(law, other, strict=True)]
        half = len(f) // 2
        return [f[half + i] - f[half - 1 - i] for i in range(half)]


@dataclass(frozen=True)
class Sweep:
    """All multisets at one gamma: number, worst, and those in reach of the limit, not beyond it.

    Slacks are lower bounds, in units of 2^-(FIXED + RATIO).
    """

    count: int
    slack: int
    place: Multiset
    near: list[Multiset]


class Sweeper:
    """Walks the reduced set once."""

    def __init__(self, arithmetic: Arithmetic, weights: Weights, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        scale = 1 << (FIXED + RATIO)
        self.limit = floor(arithmetic.budget * scale)
        self.reach = floor(reach * scale)
        # Both tables are low by less than a unit for each voter; the bound adds one of the two.
        units = (1 << RATIO) + arithmetic.ratio_scaled
        self.surely_broken = self.limit + arithmetic.voters * units
        shift = FIXED - BITS
        self.h = np.array([h << shift for h in arithmetic.signed(weights)], dtype=object)

    def run(self) -> Sweep:
        """Walk the set; see `Sweep`."""
        count, best, place = 0, None, None
        near: list[Multiset] = []
        for shifted, mirrored, inner, values in self._walk():
            count += values.size
            slack = self.limit - int(values.max())
            if best is None or slack < best:
                index = np.unravel_index(int(np.argmax(values)), values.shape)
                best, place = slack, self._at(shifted, mirrored, inner, index)
            if slack <= self.reach and len(near) < MOST_LISTED:
                doubtful = (values >= self.limit - self.reach) & (values <= self.surely_broken)
                found = np.nonzero(doubtful)
                near.extend(
                    self._at(shifted, mirrored, inner, index) for index in zip(*found, strict=True)
                )
        if best is None or place is None:
            raise NotPrivateError("there is no multiset to check.")
        return Sweep(count, best, place, near)

    @staticmethod
    def _at(shifted: int, mirrored: int, inner: int, index: tuple[Any, ...]) -> Multiset:
        i, j, k, ones = (int(part) for part in index)
        return Multiset((i, j, k), shifted, mirrored, inner, ones)

    def _walk(self) -> Iterator[tuple[int, int, int, Any]]:
        """Yield upper bounds of f over (i, j, k, ones) for each (n_D, n_M, s), none twice."""
        a, k = self.arithmetic, self.arithmetic.voters
        start = self.h.reshape(1, 1, 1, -1)
        if a.pure:
            yield from self._inner(0, 0, start)
            return
        outer = np.broadcast_to(start, (2, 2, 1, k + 1))
        p_shifted = np.array(a.p_shifted, dtype=object).reshape(2, 1, 1, 1)
        p_mirrored = np.array(a.p_mirrored, dtype=object).reshape(1, 2, 1, 1)
        for shifted in range(k + 1):
            if shifted:
                outer = _one_more(outer, p_shifted)
            table = outer
            for mirrored in range(k + 1 - shifted):
                if mirrored:
                    table = _one_more(table, p_mirrored)
                yield from self._inner(shifted, mirrored, table)

    def _inner(
        self,
        shifted: int,
        mirrored: int,
        table: Any,  # noqa: ANN401
    ) -> Iterator[tuple[int, int, int, Any]]:
        a = self.arithmetic
        p_inner = np.array(a.p_inner, dtype=object).reshape(1, 1, 2, 1)
        some = (slice(2 if shifted else 1), slice(2 if mirrored else 1))
        for s in range(a.voters - shifted - mirrored + 1):
            if s:
                table = _one_more(table, p_inner)
            error = (shifted + mirrored + s) << RATIO
            opposite = table[::-1, ::-1, ::-1]
            values = (table * (1 << RATIO)) - a.ratio_scaled * opposite + error
            yield shifted, mirrored, s, values[some]


def _one_more(table: Any, p: Any) -> Any:  # noqa: ANN401
    """Return the table with one more voter at p / 2^CORNER, rounded down by less than a unit."""
    unit = 1 << CORNER
    return (p * table[..., 1:] + (unit - p) * table[..., :-1]) >> CORNER
