"""The proof that a noise function of integer weights is private, and the move that makes it so.

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
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpz_poly

from dpopt._errors import NotPrivateError
from dpopt.mechanisms.majority.setting import MajoritySetting
from dpopt.privacy.exact import Certificate, exp_lower, exp_upper, shrink_to_budget

BITS = 62
_CORNER, _RATIO, _FIXED = 128, 128, 256
# By how many units of 2^-BITS a weight may be raised, round after round, to use up the slack left.
_UNITS = tuple(1 << power for power in (24, 28, 32, 36))
_MOST_ROWS, _MOST_LISTED = 4000, 1 << 20

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


class _Arithmetic:
    """The integers of one setting."""

    def __init__(self, setting: MajoritySetting) -> None:
        self.voters = setting.mechanisms
        self.pure = setting.mechanism_delta == 0.0
        delta = Fraction(setting.mechanism_delta)
        r = exp_upper(setting.epsilon, 2 * _CORNER)
        unit = 1 << _CORNER
        b = min(unit, _ceil((r + delta) / (r + 1) * unit))
        shift = min(unit, _ceil(delta * unit))
        # [corner family's choice] -> p; the other choice is p'.
        self.p_shifted, self.p_mirrored = (shift, 0), (unit, unit - shift)
        self.p_inner = (b, unit - b)
        exponent = min(
            Fraction(setting.allowance) * Fraction(setting.epsilon),
            Fraction(setting.guarantee.epsilon),
        )
        self.ratio = exp_lower(exponent, _RATIO)
        self.ratio_scaled = int(self.ratio * (1 << _RATIO))
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
            if p == 1 << _CORNER:
                low += count
            elif p > 0:
                width += count
        window = sign[low : low + width + 1]
        return window[0] if window.count(window[0]) == len(window) else None

    def scale(self, at: Multiset) -> int:
        """Return the exponent of the denominator of a multiset's laws."""
        return _CORNER * (at.shifted + at.mirrored + at.inner)

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
                law *= fmpz_poly([(1 << _CORNER) - p, p]) ** count
            masses = [int(mass) for mass in law.coeffs()]
            found.append(masses + [0] * (self.voters + 1 - len(masses)))
        return found

    def coefficients(self, at: Multiset) -> list[int]:
        """Return f's coefficients on the weights, over 2^(scale + BITS + _RATIO)."""
        law, other = self.laws(at)
        f = [(p << _RATIO) - self.ratio_scaled * q for p, q in zip(law, other, strict=True)]
        half = len(f) // 2
        return [f[half + i] - f[half - 1 - i] for i in range(half)]


@dataclass(frozen=True)
class _Sweep:
    """All multisets at one gamma: number, worst, and those in reach of the limit, not beyond it.

    Slacks are lower bounds, in units of 2^-(_FIXED + _RATIO).
    """

    count: int
    slack: int
    place: Multiset
    near: list[Multiset]


class _Sweeper:
    """Walks the reduced set once."""

    def __init__(self, arithmetic: _Arithmetic, weights: Weights, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        scale = 1 << (_FIXED + _RATIO)
        self.limit = _floor(arithmetic.budget * scale)
        self.reach = _floor(reach * scale)
        # Both tables are low by less than a unit for each voter; the bound adds one of the two.
        units = (1 << _RATIO) + arithmetic.ratio_scaled
        self.surely_broken = self.limit + arithmetic.voters * units
        shift = _FIXED - BITS
        self.h = np.array([h << shift for h in arithmetic.signed(weights)], dtype=object)

    def run(self) -> _Sweep:
        count, best, place = 0, None, None
        near: list[Multiset] = []
        for shifted, mirrored, inner, values in self._walk():
            count += values.size
            slack = self.limit - int(values.max())
            if best is None or slack < best:
                index = np.unravel_index(int(np.argmax(values)), values.shape)
                best, place = slack, self._at(shifted, mirrored, inner, index)
            if slack <= self.reach and len(near) < _MOST_LISTED:
                doubtful = (values >= self.limit - self.reach) & (values <= self.surely_broken)
                found = np.nonzero(doubtful)
                near.extend(
                    self._at(shifted, mirrored, inner, index) for index in zip(*found, strict=True)
                )
        if best is None or place is None:
            raise NotPrivateError("there is no multiset to check.")
        return _Sweep(count, best, place, near)

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
            error = (shifted + mirrored + s) << _RATIO
            opposite = table[::-1, ::-1, ::-1]
            values = (table * (1 << _RATIO)) - a.ratio_scaled * opposite + error
            yield shifted, mirrored, s, values[some]


def _one_more(table: Any, p: Any) -> Any:  # noqa: ANN401
    """Return the table with one more voter at p / 2^_CORNER, rounded down by less than a unit."""
    unit = 1 << _CORNER
    return (p * table[..., 1:] + (unit - p) * table[..., :-1]) >> _CORNER


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


class GammaProver:
    """Certifies noise functions of one setting, and moves them to where they can be certified.

    Args:
        setting: the voters and the target.
    """

    def __init__(self, setting: MajoritySetting) -> None:
        self.setting = setting

    @cached_property
    def _arithmetic(self) -> _Arithmetic:
        return _Arithmetic(self.setting)

    def certify(self, weights: Weights) -> Certificate:
        """Prove (m epsilon, delta)-DP of a gamma of integer weights.

        Args:
            weights: gamma's upper half over 2^62, each in 0..2^62.

        Raises:
            NotPrivateError: naming the voters on both sides, if a constraint fails.
        """
        arithmetic = self._arithmetic
        sweeper = _Sweeper(arithmetic, weights, Fraction(0))
        sweep = sweeper.run()
        if sweeper.limit - sweep.slack > sweeper.surely_broken:
            raise self._refusal(arithmetic.exact_slack(weights, sweep.place), sweep.place)
        undecided = [(arithmetic.exact_slack(weights, at), at) for at in sweep.near]
        slack, at = min(undecided, key=lambda found: found[0], default=(None, sweep.place))
        if slack is None:
            slack = Fraction(sweep.slack, 1 << (_FIXED + _RATIO))
        if slack < 0 or len(undecided) >= _MOST_LISTED:
            raise self._refusal(slack, at)
        guarantee = self.setting.guarantee
        return Certificate(
            claim="DaRRM with this gamma is private for all voters (reduced corner set)",
            guarantee=guarantee,
            ratio=arithmetic.ratio,
            constraints=sweep.count,
            slack=slack / 2,
            tightest=f"{at.describe(arithmetic.voters, 0)}; neighbour: "
            f"{at.describe(arithmetic.voters, 1)}; output 1",
            arithmetic=f"integers of {_FIXED} fractional bits, rounded outward; "
            f"{len(undecided)} constraints by exact laws",
            bits=BITS,
        )

    def shrink(self, weights: Weights) -> tuple[Weights, Fraction]:
        """Return private weights next to the given ones, and the factor they were shrunk by.

        gamma <- t gamma with the largest t that leaves every constraint room for rounding down:
        each is linear in gamma, 0 at gamma = 0, and moves by at most (1 + e^(m epsilon)) 2^-62.
        """
        arithmetic = self._arithmetic
        sweeper = _Sweeper(arithmetic, weights, Fraction(0))
        sweep = sweeper.run()
        doubtful = sweeper.limit - sweep.slack <= sweeper.surely_broken
        if sweep.slack >= 0 or (doubtful and _only_ties(arithmetic, weights, sweep.near)):
            return weights, Fraction(1)
        worst = arithmetic.budget + Fraction(-sweep.slack, 1 << (_FIXED + _RATIO))
        rounding = (1 + arithmetic.ratio) / (1 << BITS)
        factor = shrink_to_budget(worst, arithmetic.budget - rounding)
        return tuple(_floor(w * factor) for w in weights), factor

    def fill(self, weights: Weights) -> Weights:
        """Return private weights raised until no single one could be one unit larger.

        Only where a constraint is within 2^36 units of its limit, which is where an optimal gamma
        is once it has been shrunk, and where at most 4,000 are (K up to about 150); otherwise,
        the weights are returned as they are.
        """
        arithmetic = self._arithmetic
        if all(weight == 1 << BITS for weight in weights):
            return weights
        sweep = self._reachable(weights, _UNITS[0])
        for units, wider in zip(_UNITS, (*_UNITS[1:], 0), strict=True):
            sign = arithmetic.signed(weights)
            # Where h is 1 or -1 throughout, no weight of the multiset can be raised.
            near = [at for at in sweep.near if not _is_full(arithmetic, sign, at)]
            if not near or max(len(near), len(sweep.near) - _MOST_LISTED) >= _MOST_ROWS:
                break
            weights, stopped = _raise_weights(arithmetic, weights, near, units)
            if stopped or not wider:
                break
            sweep = self._reachable(weights, wider)
        return weights

    def _reachable(self, weights: Weights, units: int) -> _Sweep:
        """Sweep, listing every constraint that raising all weights by ``units`` could break."""
        reach = Fraction(units, 1 << BITS) * (1 + self._arithmetic.ratio)
        return _Sweeper(self._arithmetic, weights, reach).run()

    def _refusal(self, slack: Fraction, at: Multiset) -> NotPrivateError:
        voters, guarantee = self._arithmetic.voters, self.setting.guarantee
        sides = (at.describe(voters, 0), at.describe(voters, 1))
        return NotPrivateError(
            f"gamma breaks ({guarantee.epsilon:g}, {guarantee.delta:g})-DP at output 1 by "
            f"{float(-slack / 2):.3g}: {sides[0]}; neighbour: {sides[1]}.",
            inputs=sides,
            output="1",
            excess=float(-slack / 2),
        )


def _only_ties(arithmetic: _Arithmetic, weights: Weights, near: list[Multiset]) -> bool:
    """Whether all undecided multisets have a constant h on both sides, and hold."""
    sign = arithmetic.signed(weights)
    flat = all(arithmetic.flat(sign, at, side) is not None for at in near for side in (0, 1))
    return flat and all(arithmetic.exact_slack(weights, at) >= 0 for at in near)


def _is_full(arithmetic: _Arithmetic, sign: list[int], at: Multiset) -> bool:
    return all(abs(arithmetic.flat(sign, at, side) or 0) == 1 << BITS for side in (0, 1))


def _raise_weights(
    arithmetic: _Arithmetic, weights: Weights, near: list[Multiset], units: int
) -> tuple[Weights, bool]:
    """Raise each weight to where a constraint, 1, or ``units`` stops it; central counts first.

    The flag tells whether it was never ``units`` that stopped one.
    """
    rows = []
    for at in near:
        scale = 1 << (arithmetic.scale(at) + BITS + _RATIO)
        slack = _floor(arithmetic.exact_slack(weights, at) * scale)
        rows.append([slack, *arithmetic.coefficients(at)])
    if min(row[0] for row in rows) < 0:
        return weights, True
    raised, left = list(weights), [units] * len(weights)
    moved = True
    while moved:
        moved = False
        for place in range(len(raised)):
            room = min(left[place], (1 << BITS) - raised[place])
            for row in rows:
                if row[place + 1] > 0:
                    room = min(room, row[0] // row[place + 1])
            if room > 0:
                moved = True
                raised[place] += room
                left[place] -= room
                for row in rows:
                    row[0] -= room * row[place + 1]
    return tuple(raised), min(left) > 0
