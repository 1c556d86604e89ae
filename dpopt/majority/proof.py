"""The proof that a noise function of integers is private, and the moves that make it so.

The multisets of the reduction theorem are walked once; neither the program nor a solution is used.
Constants are rounded outward once: b up to a multiple of 2^-128 (with c = 1 - b), Delta up, and
e^(m epsilon) down. Larger b and Delta make a larger polygon, whose hull holds the true one, so
what is proved for the rounded voters holds for the true ones.

E h(L) follows a recursion in integers of 256 fractional bits, rounded down at every step; one
voter costs at most one unit, and the bound is added back. What this leaves undecided is settled by
exact laws, and what is a tie there by the ties module.

Large sets for Delta > 0 are first looked at in double precision, with a bound on its rounding:
which multisets certainly hold, which certainly fail, and which are for exact laws. With u = 2^-53,
p and 1 - p are each rounded once from their exact values. One step of T = p T1 + (1 - p) T0 with
|T| <= 1 then adds at most 3 u (1 + 2 u) to the error; h itself is rounded once. After K steps T is
off by less than (3 K + 2) u (1 + 4 K u), and f = T - e^(m epsilon) T' by (1 + e^(m epsilon)) times
that and 3 u more. (4 K + 16) u (1 + e^(m epsilon)) covers it with room, for K below 10^6.

The shifted module does this: it finds the places (s, o) that can be near their limit, and there it
sums up binomial laws over at most w ones. Their masses are made by the same steps, each off by at
most 3 u of itself for every voter; a sum of w products adds w u, and there are two:
2 w u (1 + e^(m epsilon)) more covers them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import ceil, floor
from typing import Any

import numpy as np
from flint import fmpz_poly

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._progress import track
from dpopt.majority.shifted import ShiftedRows
from dpopt.majority.ties import sign
from dpopt.majority.voters import (
    BITS,
    Axis,
    Multiset,
    Units,
    Voters,
    by_axis,
    reduced_size,
    require_priceable,
    require_voters,
    walk,
    walk_size,
)
from dpopt.privacy.dominating import DominatingPair, Point, upper_hull
from dpopt.privacy.exact import Certificate, shrink_to_budget
from dpopt.privacy.exponential import exp_upper

CORNER, RATIO, FIXED = 128, 128, 256
MOST_LISTED, MOST_UNDECIDED = 1 << 20, 20_000
_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}
# Up to so many constraints within rounding are left to exact laws by the repair; more it clears.
_MOST_SETTLED = 64
_FLOATS_FROM = 15
_MOST_INTEGERS = 4_000_000
_MOST_POINTS, _MOST_BITS = 4_000_000, 1 << 15


class Arithmetic:
    """The integers of one setting.

    Args:
        setting: the voters and the target.
        corner: bits of the voters' probabilities at their corners; 128 if None.
    """

    def __init__(self, setting: Voters, corner: int | None = None) -> None:
        self.corner = corner = CORNER if corner is None else corner
        self.setting = setting
        self.voters = setting.mechanisms
        self.axes = setting.axes
        self.pure = setting.mechanism_delta == 0.0
        # [axis][choice] -> p; the other choice is p'.
        self.chances = tuple(_chances(setting, a, corner) for a in self.axes)
        self.ratio = setting.ratio_below(RATIO)
        self.ratio_scaled = int(self.ratio * (1 << RATIO))
        self.budget = self.ratio - 1 + 2 * Fraction(setting.delta)
        # What rounding p outward and the ratio down can take from a slack: each voter's p moves
        # by less than 2^-corner and E h by twice that, the ratio by two units of 2^-RATIO.
        self.rounding = Fraction(2 * self.voters + 4, 1 << corner) * (1 + self.ratio)

    def describe(self, at: Multiset, side: int) -> str:
        """Return the voters' probabilities in words, on one side of the pair."""
        parts = [
            (count, _WORDS[axis.names[choice][side]])
            for axis, count, choice in zip(self.axes, at.counts, at.family, strict=True)
        ]
        parts += [(at.ones, "1"), (self.voters - sum(at.counts) - at.ones, "0")]
        return ", ".join(f"{count} voters at {name}" for count, name in parts if count)

    def signed(self, weights: Units) -> list[int]:
        """Return h over 2^BITS."""
        return [-w for w in reversed(weights)] + list(weights)

    def exact_slack(self, weights: Units, at: Multiset) -> Fraction:
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
            if p == 1 << self.corner:
                low += count
            elif p > 0:
                width += count
        window = sign[low : low + width + 1]
        return window[0] if window.count(window[0]) == len(window) else None

    def voters_at(self, at: Multiset, side: int) -> Iterator[tuple[int, int]]:
        """Yield (p over 2^corner, count) of the voters that are not at 00 or 11."""
        for pair, count, choice in zip(self.chances, at.counts, at.family, strict=True):
            yield pair[choice ^ side], count

    def scale(self, at: Multiset) -> int:
        """Return the exponent of the denominator of a multiset's laws."""
        return self.corner * sum(at.counts)

    def laws(self, at: Multiset) -> list[list[int]]:
        """Return the laws of L on both sides over 2^scale, as integers on 0..K."""
        both = []
        for side in (0, 1):
            law = fmpz_poly([0] * at.ones + [1])
            for p, count in self.voters_at(at, side):
                law *= fmpz_poly([(1 << self.corner) - p, p]) ** count
            masses = [int(mass) for mass in law.coeffs()]
            both.append(masses + [0] * (self.voters + 1 - len(masses)))
        return both

    def tables(self, h: Any) -> Iterator[tuple[tuple[int, ...], Any]]:  # noqa: ANN401
        """Walk over all axes: yield the counts and E h(L) in integers, rounded down.

        Each voter costs less than a unit of h.

        Args:
            h: integers on 0..K, as objects.

        Yields:
            Tables over the choice of corner on each axis, of length 1 where nobody stands on it,
            and the voters at 11.
        """
        dims, unit = len(self.axes) + 1, 1 << self.corner
        chances = [by_axis(place, dims, pair, object) for place, pair in enumerate(self.chances)]

        def add(place: int, table: Any) -> Any:  # noqa: ANN401
            p = chances[place]
            return (p * table[..., 1:] + (unit - p) * table[..., :-1]) >> self.corner

        return walk(self.axes, self.voters, h.reshape(*(1,) * len(self.axes), -1), add)


@dataclass(frozen=True)
class Walked:
    """All multisets at one gamma: number, worst, and those in reach of the limit, not beyond it.

    Slacks are lower bounds, in units of 2^-(FIXED + RATIO). Of more than the walk's ``most`` in
    reach, only some are listed, but more than that.
    """

    count: int
    slack: int
    place: Multiset
    near: list[Multiset]


class IntegerWalk:
    """Walks the reduced set once in integers, rounded outward.

    Attributes:
        limit: the budget, rounded down.
        surely_broken: a larger value of f is beyond the budget.
        band: a multiset with more slack than this is in no walk's reach of 0.
        most: how many multisets in reach are listed.

    Args:
        arithmetic: integers of the setting.
        weights: gamma's upper half over 2^62.
        reach: list also the multisets whose slack is below this.
    """

    def __init__(self, arithmetic: Arithmetic, weights: Units, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        scale = 1 << (FIXED + RATIO)
        self.limit = floor(arithmetic.budget * scale)
        self.reach = floor(reach * scale)
        # Both tables are low by less than a unit for each voter; the bound adds one of the two.
        units = (1 << RATIO) + arithmetic.ratio_scaled
        self.surely_broken = self.limit + arithmetic.voters * units
        self.surely_broken += ceil(arithmetic.rounding * scale)
        self.band, self.most = Fraction(self.surely_broken - self.limit, scale), MOST_LISTED
        shift = FIXED - BITS
        self.h = np.array([h << shift for h in arithmetic.signed(weights)], dtype=object)

    def run(self) -> Walked:
        """Walk the set; see `Walked`."""
        a, low, high = self.arithmetic, self.limit - self.reach, self.surely_broken
        count, top, worst, near = 0, 0, Multiset((), (), 0), list[Multiset]()
        total = walk_size(a.axes, a.voters)
        for counts, values in track(self._walk(), "proof over corner multisets", total):
            most = values.max()
            if not count or most > top:
                index = np.unravel_index(int(np.argmax(values)), values.shape)
                top, worst = int(most), multiset_at(counts, index)
            count += values.size
            if most >= low and len(near) <= self.most:
                doubtful = np.nonzero((values >= low) & (values <= high))
                near += [multiset_at(counts, index) for index in zip(*doubtful, strict=True)]
        return Walked(count, self.limit - top, worst, near)

    def _walk(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield upper bounds of f over (family, ones) for each choice of counts, none twice."""
        a = self.arithmetic
        for counts, table in a.tables(self.h):
            # Turned around on every axis, each voter is at the opposite corner: E' h.
            error = sum(counts) << RATIO
            opposite = np.flip(table, axis=tuple(range(len(counts))))
            yield counts, (table * (1 << RATIO)) - a.ratio_scaled * opposite + error


def multiset_at(counts: tuple[int, ...], index: tuple[Any, ...]) -> Multiset:
    """Return the multiset at a place of a table, (family, ones)."""
    *family, ones = (int(place) for place in index)
    return Multiset(counts, tuple(family), ones)


def _chances(setting: Voters, axis: Axis, bits: int) -> tuple[int, int]:
    """Return p of an axis's two corners over 2^bits, rounded outward."""
    unit, kind = 1 << bits, axis.names[0][0]
    delta = Fraction(setting.mechanism_delta)
    shift = min(unit, ceil(delta * unit))
    if kind == "D":
        return shift, 0
    if kind == "1":
        return unit, unit - shift
    r = exp_upper(setting.epsilon, 2 * bits)
    b = min(unit, ceil((r + delta) / (r + 1) * unit))
    return b, unit - b


class FloatWalk:
    """Walks the reduced set once in floats, where Delta > 0.

    Arguments and answers are those of `IntegerWalk`.
    """

    def __init__(self, arithmetic: Arithmetic, weights: Units, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        ratio, unit = arithmetic.ratio, 1 << arithmetic.corner
        self._h = np.array([h / (1 << BITS) for h in arithmetic.signed(weights)])
        # p and 1 - p are each rounded once: the module's bound on the rounding needs it.
        inner, rest = (
            np.array([p / unit for p in pair])
            for pair in (arithmetic.chances[-1], [unit - p for p in arithmetic.chances[-1]])
        )
        near0 = arithmetic.chances[0][0]
        shift = near0 / unit, (unit - near0) / unit
        self._rows = ShiftedRows(arithmetic.voters, inner, rest, shift, float(ratio))
        steps = 4 * arithmetic.voters + 16 + 2 * self._rows.width
        self._error = steps * Fraction(1, 1 << 53) * (1 + ratio)
        self._error += arithmetic.rounding
        self._scale = 1 << (FIXED + RATIO)
        self.limit = math.floor(arithmetic.budget * self._scale)
        self.surely_broken = self.limit + math.ceil(2 * self._error * self._scale)
        # What is not listed has a slack of at least this.
        self.sure = 2 * self._error
        self.band, self.most = 5 * self._error, MOST_UNDECIDED
        lowest = arithmetic.budget - reach - self.sure - self._error
        self._low = math.nextafter(float(lowest), -math.inf)
        self._high = math.nextafter(float(arithmetic.budget + self._error), math.inf)

    def run(self) -> Walked:
        """Walk the set; see `Walked`."""
        found = self._rows.reaching(self._h, self._low, self._high, float(self._error), self.most)
        worst = math.ceil((Fraction(found.top) + self._error) * self._scale)
        near = [place for _, place in found.near]
        count = reduced_size(self.arithmetic.setting)
        return Walked(count, self.limit - worst, found.worst, near)


_HOW: dict[type, str] = {
    IntegerWalk: f"integers of {FIXED} fractional bits, rounded outward",
    FloatWalk: "double precision within a bound of its rounding",
}


class GammaProver:
    """Certifies noise functions of one setting, and moves them to where they can be certified.

    Args:
        setting: the voters and the target.
    """

    def __init__(self, setting: Voters) -> None:
        require_voters(setting)
        self.setting = setting

    @cached_property
    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(self.setting)

    def certify(self, weights: Units) -> Certificate:
        """Prove (m epsilon, delta)-DP of a gamma of integer weights.

        Args:
            weights: gamma's upper half over 2^62, each in 0..2^62.

        Raises:
            NotPrivateError: naming the voters on both sides, if a constraint fails.
            ParameterError: if the weights are not (K + 1) / 2 integers in 0..2^62.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        walker, walked = self._walked(weights, Fraction(0))
        if walker.limit - walked.slack > walker.surely_broken:
            raise self._refusal(arithmetic.exact_slack(weights, walked.place), walked.place)
        slack, at, exact = Fraction(walked.slack, 1 << (FIXED + RATIO)), walked.place, 0
        if slack < 0:
            slack, at = self._least(walker, weights, walked)
            exact = len(walked.near)
            if isinstance(walker, FloatWalk):
                slack = min(slack, walker.sure)
        if slack < 0:
            raise self._refusal(slack, at)
        guarantee = self.setting.guarantee
        return Certificate(
            claim="DaRRM with this gamma is private for all voters (reduced corner set)",
            guarantee=guarantee,
            ratio=arithmetic.ratio,
            constraints=walked.count,
            slack=slack / 2,
            tightest=f"{arithmetic.describe(at, 0)}; neighbour: "
            f"{arithmetic.describe(at, 1)}; output 1",
            arithmetic=f"{_HOW[type(walker)]}; {exact} constraints by exact laws",
            bits=BITS,
        ).about(*self.setting.subject(tuple(weights)))

    def shrink(self, weights: Units) -> tuple[Units, Fraction]:
        """Return private weights next to the given ones, and the factor they were shrunk by.

        gamma <- t gamma with the largest t that leaves every constraint room for rounding down:
        each is linear in gamma, 0 at gamma = 0, and moves by at most (1 + e^(m epsilon)) 2^-62.
        And room for the walk to be sure of it, without exact laws: of doubles, about
        4 K 2^-50 (1 + e^(m epsilon)), where Delta > 0 and there are more than 15 voters.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        walker, walked = self._walked(weights, Fraction(0), screened=True)
        if walked.slack >= 0 or self._holds(walker, weights, walked):
            return weights, Fraction(1)
        worst = arithmetic.budget + Fraction(-walked.slack, 1 << (FIXED + RATIO))
        room = arithmetic.budget - walker.band - (1 + arithmetic.ratio) / (1 << BITS)
        # Below the rounding of a weight there is no room for a multiple, but for 0: a fair coin.
        factor = shrink_to_budget(worst, room) if room > 0 else Fraction(0)
        return tuple(floor(w * factor) for w in weights), factor

    def _walked(
        self, weights: Units, reach: Fraction, *, screened: bool = False
    ) -> tuple[IntegerWalk | FloatWalk, Walked]:
        """Walk the set: large ones for Delta > 0 in floats, if that decides nearly all.

        Args:
            weights: gamma's upper half over 2^62.
            reach: list also the multisets whose slack is below this.
            screened: stay with floats, whatever they decide.
        """
        if not self._arithmetic.pure and self.setting.mechanisms > _FLOATS_FROM:
            walker = FloatWalk(self._arithmetic, weights, reach)
            walked, size = walker.run(), reduced_size(self.setting)
            if screened or len(walked.near) <= walker.most or size > _MOST_INTEGERS:
                return walker, walked
        walker = IntegerWalk(self._arithmetic, weights, reach)
        return walker, walker.run()

    def _check(self, weights: Units) -> None:
        whole = isinstance(weights, tuple | list) and all(
            isinstance(w, int) and 0 <= w <= 1 << BITS for w in weights
        )
        if not whole or len(weights) != self.setting.middle:
            raise ParameterError(
                f"weights must be {self.setting.middle} integers in 0..2^{BITS}, no others."
            )
        require_priceable(self.setting)

    def _least(
        self, walker: IntegerWalk | FloatWalk, weights: Units, walked: Walked
    ) -> tuple[Fraction, Multiset]:
        """Return the least slack of the undecided multisets, of which there are; 0 for a tie.

        If all hold at the corners rounded outward, they hold at the corners within. If some fail
        by no more than that rounding, the corners themselves decide: all that are as near to
        their limit, on either side of it, each by the sign of its sum of exponentials.
        """
        arithmetic, rounding = self._arithmetic, self._arithmetic.rounding
        slacks = [
            (arithmetic.exact_slack(weights, at), at)
            for at in track(self._few(walker, walked), "proof by exact laws")
        ]
        slack, at = min(slacks, key=lambda pair: pair[0])
        if slack >= 0 or slack < -rounding:
            return slack, at
        for near in track(self._few(*self._walked(weights, rounding)), "ties"):
            slack = arithmetic.exact_slack(weights, near)
            if slack < -rounding or (slack <= rounding and self._breaks(weights, near)):
                return min(slack, -rounding), near
        return Fraction(0), at

    def _breaks(self, weights: Units, at: Multiset) -> bool:
        signed = self._arithmetic.signed(weights)
        return not self._constant(signed, at) and sign(self.setting, weights, at) < 0

    def _constant(self, signed: list[int], at: Multiset) -> bool:
        """Whether h is the same constant on both sides: then Pr[output 1] is the same, too."""
        flat = [self._arithmetic.flat(signed, at, side) for side in (0, 1)]
        return flat[0] is not None and flat[0] == flat[1]

    def _few(self, walker: IntegerWalk | FloatWalk, walked: Walked) -> list[Multiset]:
        if len(walked.near) > walker.most:
            raise NotPrivateError(
                f"{self._not_proved}: too many constraints are within rounding of their limit to "
                "be decided one by one. The repair gives one that is private."
            )
        return walked.near

    def _holds(self, walker: IntegerWalk | FloatWalk, weights: Units, walked: Walked) -> bool:
        """Whether weights are private though the walk cannot tell; False if that takes long."""
        broken = walker.limit - walked.slack > walker.surely_broken
        if broken or len(walked.near) > walker.most:
            return False
        signed = self._arithmetic.signed(weights)
        slow = (at for at in walked.near if not self._constant(signed, at))
        if len(list(islice(slow, _MOST_SETTLED + 1))) > _MOST_SETTLED:
            return False
        return self._least(walker, weights, walked)[0] >= 0

    @property
    def _not_proved(self) -> str:
        guarantee = self.setting.guarantee
        return f"gamma is not proved ({guarantee.epsilon:g}, {guarantee.delta:g})-DP"

    def _refusal(self, slack: Fraction, at: Multiset) -> NotPrivateError:
        guarantee, excess = self.setting.guarantee, float(-slack / 2)
        sides = (self._arithmetic.describe(at, 0), self._arithmetic.describe(at, 1))
        where = f"{sides[0]}; neighbour: {sides[1]}"
        why = (
            f"gamma breaks ({guarantee.epsilon:g}, {guarantee.delta:g})-DP at output 1 by "
            f"{roughly(-slack / 2)}: {where}."
        )
        if excess <= gamma_rounding(self.setting):
            why = (
                f"{self._not_proved}: at output 1 it misses by {excess:.3g}, no more than the "
                f"rounding of gamma itself explains: {where}. The repair gives one that is private."
            )
        return NotPrivateError(why, inputs=sides, output="1", excess=excess)


def gamma_rounding(setting: Voters) -> float:
    """Return by how much rounding a private gamma to doubles, and to 2^-62, can break it.

    Each value moves by 2^-54 and 2^-62 at most, Pr[output 1] by half of that, on both sides of the
    pair: (1 + e^(m epsilon)) 2^-54 is more. What breaks by less is "not proved": the gamma that was
    meant may be private.
    """
    return (1.0 + setting.ratio) * 2.0**-54


def dominating(setting: Voters, units: Units) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query.

    Over every choice of corners for the voters (lemma 5.1) up to the reduction theorem, whose proof
    holds at every alpha. Irrational probabilities are rounded outward, which only raises the hull.

    Raises:
        ParameterError: if there are too many multisets, or too long integers.
    """
    if reduced_size(setting) > _MOST_POINTS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; the privacy loss is found from at most "
            f"{_MOST_POINTS:.0e} events, and these are {reduced_size(setting):.1e}."
        )
    arithmetic = Arithmetic(setting)
    bits = 2 * CORNER
    if arithmetic.pure:
        # So many that a positive probability never becomes 0: that would be an infinite loss.
        least = min(p for pair in arithmetic.chances for p in pair if p)
        bits += setting.mechanisms * (CORNER - least.bit_length() + 1)
    if bits > _MOST_BITS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms} and epsilon {setting.epsilon:g}; their product is "
            "too large for the privacy loss to be found."
        )
    half = 1 << BITS
    ones = [(half + h) << (bits - BITS - 1) for h in arithmetic.signed(units)]
    points = _points(arithmetic, np.array(ones, dtype=object), 1 << bits)
    return DominatingPair.of_points(upper_hull(points), 1 << bits)


def _points(arithmetic: Arithmetic, ones: Any, scale: int) -> Iterator[Point]:  # noqa: ANN401
    """Yield (Pr[1 | p'] rounded down, Pr[1 | p] rounded up) of all multisets, over ``scale``.

    Output 0 adds nothing: with every p turned to 1 - p, a corner is a corner and Pr[0] is Pr[1].
    """
    for counts, table in arithmetic.tables(ones):
        opposite, error = np.flip(table, axis=tuple(range(len(counts)))), sum(counts)
        for a, b in zip(table.ravel().tolist(), opposite.ravel().tolist(), strict=True):
            yield b, min(scale, a + error if a else error * (not arithmetic.pure))
