"""The reduced set of DaRRM's corner multisets, walked once in integers rounded outward.

Constants are rounded outward once: b up to a multiple of 2^-128 (with c = 1 - b), Delta up, and
e^(m epsilon) down. Larger b and Delta make a larger polygon, whose hull holds the true one, so
what is proved for the rounded voters holds for the true ones.

The multisets are those of the reduction theorem (see the separation module, which this one does
not use). E h(L) follows a recursion in integers of 256 fractional bits, rounded down at every
step; one voter costs at most one unit, and the bound is added back. Large sets for Delta > 0 are
screened in double precision first, see the screen module. What this leaves undecided is settled
by exact laws.
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
from dpopt._progress import track
from dpopt.majority.reduction import walk_size
from dpopt.majority.setting import Axis, MajoritySetting

BITS = 62
CORNER, RATIO, FIXED = 128, 128, 256
MOST_LISTED = 1 << 20
_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}

Weights = tuple[int, ...]
"""gamma's upper half as integers over 2^BITS, l = (K + 1) / 2..K."""


@dataclass(frozen=True)
class Multiset:
    """Voters by corner: for each pair of opposite corners how many, and which of the two."""

    counts: tuple[int, ...]
    family: tuple[int, ...]
    ones: int


class Arithmetic:
    """The integers of one setting."""

    def __init__(self, setting: MajoritySetting) -> None:
        self.voters = setting.mechanisms
        self.sizes = tuple(group.size for group in setting.voters)
        self.axes = setting.axes
        self.pure = setting.mechanism_delta == 0.0
        # [axis][choice] -> p; the other choice is p'.
        self.chances = tuple(_chances(setting, a) for a in self.axes)
        self.ratio = setting.ratio_below(RATIO)
        self.ratio_scaled = int(self.ratio * (1 << RATIO))
        self.budget = self.ratio - 1 + 2 * Fraction(setting.delta)
        # What rounding p outward and the ratio down can take from a slack: each voter's p moves
        # by less than 2^-CORNER and E h by twice that, the ratio by two units of 2^-RATIO.
        self.rounding = Fraction(2 * self.voters + 4, 1 << CORNER) * (1 + self.ratio)

    def describe(self, at: Multiset, side: int) -> str:
        """Return the voters' probabilities in words, on one side of the pair."""
        parts = []
        for axis, count, choice in zip(self.axes, at.counts, at.family, strict=True):
            kind, _, group = axis.names[choice].partition("@")
            name = _WORDS[kind[side]] + (f" (group {group})" if group else "")
            parts.append((count, name))
        parts += [(at.ones, "1"), (self.voters - sum(at.counts) - at.ones, "0")]
        return ", ".join(f"{count} voters at {name}" for count, name in parts if count)

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
        low, width = at.ones, 0
        for p, count in self.voters_at(at, side):
            if p == 1 << CORNER:
                low += count
            elif p > 0:
                width += count
        window = sign[low : low + width + 1]
        return window[0] if window.count(window[0]) == len(window) else None

    def voters_at(self, at: Multiset, side: int) -> Iterator[tuple[int, int]]:
        """Yield (p over 2^CORNER, count) of the voters that are not at 00 or 11."""
        for pair, count, choice in zip(self.chances, at.counts, at.family, strict=True):
            yield pair[choice ^ side], count

    def scale(self, at: Multiset) -> int:
        """Return the exponent of the denominator of a multiset's laws."""
        return CORNER * sum(at.counts)

    def laws(self, at: Multiset) -> list[list[int]]:
        """Return the laws of L on both sides over 2^scale, as integers on 0..K."""
        found = []
        for side in (0, 1):
            law = fmpz_poly([0] * at.ones + [1])
            for p, count in self.voters_at(at, side):
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
        self.surely_broken += ceil(arithmetic.rounding * scale)
        shift = FIXED - BITS
        self.h = np.array([h << shift for h in arithmetic.signed(weights)], dtype=object)

    def run(self) -> Sweep:
        """Walk the set; see `Sweep`."""
        count, best, place = 0, None, None
        near: list[Multiset] = []
        a = self.arithmetic
        walk = track(self._walk(), "proof over corner multisets", walk_size(a.axes, a.sizes))
        for counts, values in walk:
            count += values.size
            slack = self.limit - int(values.max())
            if best is None or slack < best:
                index = np.unravel_index(int(np.argmax(values)), values.shape)
                best, place = slack, _at(counts, index)
            if slack <= self.reach and len(near) < MOST_LISTED:
                doubtful = (values >= self.limit - self.reach) & (values <= self.surely_broken)
                found = np.nonzero(doubtful)
                near.extend(_at(counts, index) for index in zip(*found, strict=True))
        if best is None or place is None:
            raise NotPrivateError("there is no multiset to check.")
        return Sweep(count, best, place, near)

    def _walk(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield upper bounds of f over (family, ones) for each choice of counts, none twice."""
        start = self.h.reshape(*(1,) * len(self.arithmetic.axes), -1)
        yield from self._deeper(start, (), list(self.arithmetic.sizes))

    def _deeper(
        self,
        table: Any,  # noqa: ANN401
        counts: tuple[int, ...],
        left: list[int],
    ) -> Iterator[tuple[tuple[int, ...], Any]]:
        a, place = self.arithmetic, len(counts)
        if place == len(a.axes):
            error = sum(counts) << RATIO
            opposite = np.flip(table, axis=tuple(range(place)))
            yield counts, (table * (1 << RATIO)) - a.ratio_scaled * opposite + error
            return
        shape = [1] * table.ndim
        shape[place] = 2
        p = np.array(a.chances[place], dtype=object).reshape(shape)
        group = a.axes[place].group
        for n in range(left[group] + 1):
            if n:
                table = _one_more(table, p)
            fewer = [size - n * (g == group) for g, size in enumerate(left)]
            yield from self._deeper(table, (*counts, n), fewer)


def _at(counts: tuple[int, ...], index: tuple[Any, ...]) -> Multiset:
    *family, ones = (int(part) for part in index)
    return Multiset(counts, tuple(family), ones)


def _chances(setting: MajoritySetting, axis: Axis) -> tuple[int, int]:
    """Return p of an axis's two corners over 2^CORNER, rounded outward."""
    group = setting.voters[axis.group]
    unit, kind = 1 << CORNER, axis.names[0][0]
    delta = Fraction(group.mechanism_delta)
    shift = min(unit, ceil(delta * unit))
    if kind == "D":
        return shift, 0
    if kind == "1":
        return unit, unit - shift
    r = setting.voter_ratio_above(group, 2 * CORNER)
    b = min(unit, ceil((r + delta) / (r + 1) * unit))
    return b, unit - b


def _one_more(table: Any, p: Any) -> Any:  # noqa: ANN401
    """Return the table with one more voter at p / 2^CORNER, rounded down by less than a unit."""
    unit = 1 << CORNER
    return (p * table[..., 1:] + (unit - p) * table[..., :-1]) >> CORNER
