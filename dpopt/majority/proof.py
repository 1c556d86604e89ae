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

Groups are walked so. For voters who are alike the shifted module finds the places (s, o) that can
be near their limit, and there it sums up binomial laws over at most w ones. Their masses are made
by the same steps, each off by at most 3 u of itself for every voter; a sum of w products adds w u,
and there are two: 2 w u (1 + e^(m epsilon)) more covers them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import compress
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz_poly

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._progress import track
from dpopt.majority.raising import Limits, Pair, paired, plus
from dpopt.majority.shifted import ShiftedRows
from dpopt.majority.ties import raising, sign
from dpopt.majority.voters import (
    BITS,
    Axis,
    Multiset,
    Units,
    Voters,
    by_axis,
    float_tables,
    reduced_size,
    require_priceable,
    require_voters,
    walk,
    walk_size,
)
from dpopt.privacy.dominating import DominatingPair, Point, upper_hull
from dpopt.privacy.exact import Certificate, shrink_to_budget

CORNER, RATIO, FIXED = 128, 128, 256
MOST_LISTED, MOST_UNDECIDED = 1 << 20, 20_000
_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}
# By how many units of 2^-BITS a weight may be raised, round after round, to use up the slack left.
_UNITS = tuple(1 << power for power in (24, 28, 32, 36))
_LAST_UNITS = tuple(1 << power for power in (8, 16, 24, 32, 36))
# What rounds leave of a slack, in units, to weights of coefficients below its share of them all:
# else a constraint would stop these at its limit, though they hardly move it.
_SPARE = 2.0**-44
# Rounds of the last units are started again so often; what a round may hold at a time.
_MOST_CLIMBS, _MOST_NEAR, _MOST_COEFFICIENTS = 4, 1 << 18, 5_000_000
# Coefficients that rounds share; a round may be of so many times fewer units by what floats say.
_MOST_SHARED, _CLEARLY = 1 << 21, 1 << 10
_FLOATS_FROM = 15
_MOST_INTEGERS = 4_000_000
_MOST_POINTS, _MOST_BITS = 4_000_000, 1 << 15

Floats = npt.NDArray[np.float64]


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
        self.sizes = tuple(group.size for group in setting.voters)
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
        parts = []
        for axis, count, choice in zip(self.axes, at.counts, at.family, strict=True):
            kind, _, group = axis.names[choice].partition("@")
            name = _WORDS[kind[side]] + (f" (group {group})" if group else "")
            parts.append((count, name))
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

    def difference(self, counts: tuple[int, ...], family: tuple[int, ...]) -> list[int]:
        """Return f's coefficients on h(ones), h(ones + 1), ... of multisets that differ in ones.

        Over 2^(FIXED + RATIO), each off by less than 3 (K + 2) (1 + e^(m epsilon)) 2^-FIXED: a
        law's entries are rounded down for each voter and each axis.
        """
        laws = []
        for side in (0, 1):
            law: list[int] | None = None
            for count, choice, pair in zip(counts, family, self.chances, strict=True):
                if count:
                    own = self._binomial(pair, choice ^ side, count)
                    law = own if law is None else _multiplied(law, own)
            law = law or [1 << FIXED]
            laws.append(law + [0] * (sum(counts) + 1 - len(law)))
        ratio = self.ratio_scaled
        return [(p << RATIO) - ratio * q for p, q in zip(*laws, strict=True)]

    def _binomial(self, pair: tuple[int, int], choice: int, count: int) -> list[int]:
        """Return the law of the ones among voters at a corner, over 2^FIXED, rounded down."""
        unit = 1 << self.corner
        if choice and sum(pair) == unit:
            # The zeros at 1 - p are the ones at p.
            return self._binomial(pair, 0, count)[::-1]
        p = pair[choice]

        def longer(law: Any, times: int) -> Any:  # noqa: ANN401
            for _ in range(times):
                law = np.concatenate([[0], law, [0]])
                law = (p * law[:-1] + (unit - p) * law[1:]) >> self.corner
            return law

        # Of many voters only every so many laws are kept.
        stride = 1 + self.voters**2 // _MOST_SHARED
        known = self._binomials.setdefault(p, [np.array([1 << FIXED], dtype=object)])
        while len(known) <= count // stride:
            known.append(longer(known[-1], stride))
        return longer(known[count // stride], count % stride).tolist()

    @cached_property
    def _binomials(self) -> dict[int, list[Any]]:
        return {}

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

        return walk(self.axes, self.sizes, h.reshape(*(1,) * len(self.axes), -1), add)


@dataclass(frozen=True)
class Walked:
    """All multisets at one gamma: number, worst, and those in reach of the limit, not beyond it.

    Slacks are lower bounds, in units of 2^-(FIXED + RATIO).
    """

    count: int
    slack: int
    place: Multiset
    near: list[Multiset]


@dataclass(frozen=True)
class Reached:
    """Multisets near their limit that differ in their voters at 11 only.

    Attributes:
        counts: voters on each axis.
        family: corner on each axis.
        ones: voters at 11 of each.
        lowest: lower bounds of the slacks, in units of 2^-62; -inf if none is known.
    """

    counts: tuple[int, ...]
    family: tuple[int, ...]
    ones: npt.NDArray[np.int64]
    lowest: Floats

    def at(self, place: int) -> Multiset:
        """Return one of them."""
        return Multiset(self.counts, self.family, int(self.ones[place]))

    def take(self, kept: npt.NDArray[np.bool_]) -> Reached:
        """Return those of a mask."""
        return Reached(self.counts, self.family, self.ones[kept], self.lowest[kept])


class IntegerWalk:
    """Walks the reduced set once in integers, rounded outward.

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
        shift = FIXED - BITS
        self.h = np.array([h << shift for h in arithmetic.signed(weights)], dtype=object)

    def run(self) -> Walked:
        """Walk the set; see `Walked`."""
        a = self.arithmetic
        low, total = self.limit - self.reach, walk_size(a.axes, a.sizes)
        count, top, at, near = _searched(self._walk(), total, low, self.surely_broken)
        return Walked(count, self.limit - int(top), at, near)

    def _walk(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield upper bounds of f over (family, ones) for each choice of counts, none twice."""
        a = self.arithmetic
        for counts, table in a.tables(self.h):
            # Turned around on every axis, each voter is at the opposite corner: E' h.
            error = sum(counts) << RATIO
            opposite = np.flip(table, axis=tuple(range(len(counts))))
            yield counts, (table * (1 << RATIO)) - a.ratio_scaled * opposite + error


def _searched(
    tables: Iterator[tuple[tuple[int, ...], Any]],
    total: int,
    low: Any,  # noqa: ANN401
    high: Any,  # noqa: ANN401
) -> tuple[int, Any, Multiset, list[Multiset]]:
    """Return how many values of f there are, the largest and where, and where one is low..high.

    No more than `MOST_LISTED` are listed, and of floats `MOST_UNDECIDED`; -inf is no value.
    """
    count, largest, worst = 0, None, Multiset((), (), 0)
    near: list[Multiset] = []
    for counts, values in track(tables, "proof over corner multisets", total):
        exact, top = values.dtype == object, values.max()
        count += values.size if exact else int(np.count_nonzero(values != -np.inf))
        if largest is None or top > largest:
            index = np.unravel_index(int(np.argmax(values)), values.shape)
            largest, worst = top, multiset_at(counts, index)
        if top >= low and len(near) < MOST_LISTED:
            doubtful = np.nonzero((values >= low) & (values <= high))
            near.extend(multiset_at(counts, index) for index in zip(*doubtful, strict=True))
            if not exact and len(near) > MOST_UNDECIDED:
                break
    return count, largest, worst, near


def multiset_at(counts: tuple[int, ...], index: tuple[Any, ...]) -> Multiset:
    """Return the multiset at a place of a table: (family, ones), or (family, s, ones).

    s are the voters on the last axis, where that is a dimension of the table.
    """
    axes = (len(counts) + len(index)) // 2
    *inside, ones = (int(place) for place in index)
    return Multiset((*counts, *inside[axes:]), tuple(inside[:axes]), ones)


def _multiplied(law: list[int], other: list[int]) -> list[int]:
    """Return the law of a sum, all over 2^FIXED, rounded down."""
    wide = (fmpz_poly(law) * fmpz_poly(other)).coeffs()
    return [int(mass) >> FIXED for mass in wide] + [0] * (len(law) + len(other) - 1 - len(wide))


def _chances(setting: Voters, axis: Axis, bits: int) -> tuple[int, int]:
    """Return p of an axis's two corners over 2^bits, rounded outward."""
    group = setting.voters[axis.group]
    unit, kind = 1 << bits, axis.names[0][0]
    delta = Fraction(group.mechanism_delta)
    shift = min(unit, ceil(delta * unit))
    if kind == "D":
        return shift, 0
    if kind == "1":
        return unit, unit - shift
    r = setting.voter_ratio_above(group, 2 * bits)
    b = min(unit, ceil((r + delta) / (r + 1) * unit))
    return b, unit - b


class FloatWalk:
    """Walks the reduced set once in floats; arguments and answers are those of `IntegerWalk`."""

    def __init__(self, arithmetic: Arithmetic, weights: Units, reach: Fraction) -> None:
        self.arithmetic = arithmetic
        ratio, unit = arithmetic.ratio, 1 << arithmetic.corner
        self._h = np.array([h / (1 << BITS) for h in arithmetic.signed(weights)])
        self._ratio = float(ratio)
        self._p = [np.array([p / unit for p in pair]) for pair in arithmetic.chances]
        self._q = [np.array([(unit - p) / unit for p in pair]) for pair in arithmetic.chances]
        self._rows, steps = None, 4 * arithmetic.voters + 16
        if len(arithmetic.sizes) == 1 and not arithmetic.pure:
            shift = float(self._p[0][0]), float(self._q[0][0])
            self._rows = ShiftedRows(
                arithmetic.voters, self._p[-1], self._q[-1], shift, self._ratio
            )
            steps += 2 * self._rows.width
        self._error = steps * Fraction(1, 1 << 53) * (1 + ratio)
        self._error += arithmetic.rounding
        self._scale = 1 << (FIXED + RATIO)
        self.limit = math.floor(arithmetic.budget * self._scale)
        self.surely_broken = self.limit + math.ceil(2 * self._error * self._scale)
        # What is not listed has a slack of at least this.
        self.sure = 2 * self._error
        lowest = arithmetic.budget - reach - self.sure - self._error
        self._low = math.nextafter(float(lowest), -math.inf)
        self._high = math.nextafter(float(arithmetic.budget + self._error), math.inf)

    def run(self) -> Walked | None:
        """Return what was found, or None if more is undecided than exact laws can settle."""
        a = self.arithmetic
        if self._rows is not None:
            low, high, error = self._low, self._high, float(self._error)
            found = self._rows.reaching(self._h, low, high, error, MOST_UNDECIDED)
            count, near = reduced_size(a.setting), [at for _, at in found.near]
            return self._settled(count, found.top, found.worst, near)
        total = walk_size(a.axes[:-1], a.sizes)
        return self._settled(*_searched(self._walk(), total, self._low, self._high))

    def _settled(self, count: int, top: float, at: Multiset, near: list[Multiset]) -> Walked | None:
        worst = math.ceil((Fraction(top) + self._error) * self._scale)
        settled = len(near) <= MOST_UNDECIDED
        return Walked(count, self.limit - worst, at, near) if settled else None

    def reached(self, units: float) -> list[Reached]:
        """Return what a walk of one group finds in reach, for Delta = 0.

        Args:
            units: 2^-62, or what else slacks are to be counted in.
        """
        found, limit = list[Reached](), float(self.arithmetic.budget - self._error)
        p, q = self._p[0][:, None], self._q[0][:, None]
        table = np.broadcast_to(self._h, (2, self._h.size))
        for count in range(self.arithmetic.voters + 1):
            if count:
                table = p * table[:, 1:] + q * table[:, :-1]
            values = table - self._ratio * table[::-1]
            for choice in range(1 + (count > 0)):
                (ones,) = np.nonzero(values[choice] >= self._low)
                if ones.size:
                    lowest = (limit - values[choice, ones]) / units
                    found.append(Reached((count,), (choice,), ones, lowest))
        return found

    def _walk(self) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """Yield f over (family of each axis, s, ones) for each choice of the outer counts.

        Where an axis has no voters its dimension has length one; s + ones beyond the voters left,
        and the second family at s = 0, are -inf.
        """
        a = self.arithmetic
        # p and 1 - p are each rounded once: the module's bound on the rounding needs it.
        for counts, table in float_tables(a.axes, a.sizes, self._h, self._p, self._q):
            # Turned around on every axis, each voter is at the opposite corner: E' h.
            opposite = np.flip(table, axis=tuple(range(table.ndim - 2)))
            values = table - self._ratio * opposite
            s, ones = values.shape[-2:]
            values[..., np.add.outer(np.arange(s), np.arange(ones)) >= ones] = -np.inf
            values[..., 1, 0, :] = -np.inf
            yield counts, values


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
        self._shared = 0

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
        slack, at = self._least(weights, walked)
        if slack is None:
            slack = Fraction(walked.slack, 1 << (FIXED + RATIO))
        elif isinstance(walker, FloatWalk):
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
            arithmetic=f"{_HOW[type(walker)]}; {len(walked.near)} constraints by exact laws",
            bits=BITS,
        ).about(*self.setting.subject(tuple(weights)))

    def shrink(self, weights: Units) -> tuple[Units, Fraction]:
        """Return private weights next to the given ones, and the factor they were shrunk by.

        gamma <- t gamma with the largest t that leaves every constraint room for rounding down:
        each is linear in gamma, 0 at gamma = 0, and moves by at most (1 + e^(m epsilon)) 2^-62.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        walker, walked = self._walked(weights, Fraction(0))
        doubtful = walker.limit - walked.slack <= walker.surely_broken
        if walked.slack >= 0 or (doubtful and self._holds(weights, walked)):
            return weights, Fraction(1)
        worst = arithmetic.budget + Fraction(-walked.slack, 1 << (FIXED + RATIO))
        room = arithmetic.budget - (1 + arithmetic.ratio) / (1 << BITS)
        # Below the rounding of a weight there is no room for a multiple, but for 0: a fair coin.
        factor = shrink_to_budget(worst, room) if room > 0 else Fraction(0)
        return tuple(floor(w * factor) for w in weights), factor

    def fill(self, weights: Units) -> Units:
        """Return private weights raised until no single one could be one unit larger.

        That is up to what moves no constraint by more than 2^-120. Only where a constraint is
        within 2^36 units of its limit, which is where an optimal gamma is once it has been shrunk.
        """
        self._check(weights)
        if all(weight == 1 << BITS for weight in weights):
            return weights
        weights, _ = self._climbed(weights, _UNITS, _SPARE)
        for _ in range(_MOST_CLIMBS):
            # The first of these rounds is of few units, and so decides each weight's last one.
            before = weights
            weights, rounds = self._climbed(weights, _LAST_UNITS, 0.0)
            if rounds <= 1 or weights == before:
                break
        return weights

    def _climbed(self, weights: Units, rounds: tuple[int, ...], spare: float) -> tuple[Units, int]:
        """Return weights raised in rounds of more and more units, and how many rounds there were.

        What a constraint stopped in one round stays in the next.
        """
        free = list(range(len(weights)))
        for before, units in enumerate(rounds):
            found = self._raised(weights, free, units, spare) if free else None
            if found is None:
                return weights, before
            weights, free = found
        return weights, len(rounds)

    def _raised(
        self, weights: Units, free: list[int], units: int, spare: float
    ) -> tuple[Units, list[int]] | None:
        """Return weights of which some were raised by at most so many units each.

        And those of the free ones that nothing else stopped. None if no constraint is near, too
        many are, or one does not hold.
        """
        near = self._reachable(weights, units)
        if near is None:
            return None
        free = [place for place in free if weights[place] < 1 << BITS]
        found = self._limits(weights, near, free, units) if free else None
        if found is None:
            return None
        limits, units = found
        steps = limits.raised([(1 << BITS) - weights[place] for place in free], units, spare)
        raised = list(weights)
        for place, step in zip(free, steps, strict=True):
            raised[place] += step
        return tuple(raised), [p for p, step in zip(free, steps, strict=True) if step == units]

    def _reachable(self, weights: Units, units: int) -> list[Reached] | None:
        """Return every constraint that raising all weights by ``units`` could break.

        Of one group with Delta = 0 those that are so by floats, within their rounding. Where h is 1
        or -1 throughout, no weight of the multiset can be raised. None if there are too many.
        """
        arithmetic = self._arithmetic
        h = np.array(arithmetic.signed(weights), dtype=np.int64)
        ends = _run_ends(h)
        ends[abs(h) < 1 << BITS] = -1
        reach = Fraction(units, 1 << BITS) * (1 + arithmetic.ratio)
        if arithmetic.pure and len(arithmetic.axes) == 1:
            walker = FloatWalk(arithmetic, weights, reach)
            near = self._open(walker.reached(2.0**-BITS), ends)
            if sum(group.ones.size for group in near) < _MOST_NEAR:
                return near
            surely = float((reach - walker.sure) * (1 << BITS))
            if sum(np.count_nonzero(group.lowest <= surely) for group in near) >= _MOST_NEAR:
                return None
            walked = IntegerWalk(arithmetic, weights, reach).run()
        else:
            walked = self._walked(weights, reach)[1]
        if len(walked.near) >= min(_MOST_NEAR, MOST_LISTED):
            return None
        return self._open(_alike(walked.near), ends)

    def _open(self, near: list[Reached], ends: npt.NDArray[np.int64]) -> list[Reached]:
        """Return all but the multisets where h is 1 or -1 throughout."""
        left = [group.take(~self._full(group, ends)) for group in near]
        return [group for group in left if group.ones.size]

    def _full(self, group: Reached, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return of which multisets h is 1 or -1 throughout, by the ends of such runs, or -1."""
        full = np.ones(group.ones.size, dtype=bool)
        for side in (0, 1):
            chances = list(self._arithmetic.voters_at(group.at(0), side))
            sure = sum(count for p, count in chances if p == 1 << self._arithmetic.corner)
            wide = sum(count for p, count in chances if 0 < p < 1 << self._arithmetic.corner)
            full &= ends[group.ones + sure] >= group.ones + sure + wide
        return full

    def _walked(self, weights: Units, reach: Fraction) -> tuple[IntegerWalk | FloatWalk, Walked]:
        """Walk the set: large ones for Delta > 0 in floats, if that decides nearly all."""
        if not self._arithmetic.pure and self.setting.mechanisms > _FLOATS_FROM:
            walker = FloatWalk(self._arithmetic, weights, reach)
            walked = walker.run()
            if walked is not None:
                return walker, walked
            if reduced_size(self.setting) > _MOST_INTEGERS:
                raise ParameterError(
                    f"delta is {self.setting.delta:g}; too many constraints are within rounding of "
                    "their limit to be decided one by one. Take delta = 0, or a larger one."
                )
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

    def _least(self, weights: Units, walked: Walked) -> tuple[Fraction | None, Multiset]:
        """Return the least slack of the undecided multisets, None if there is none; 0 for a tie.

        If all hold at the corners rounded outward, they hold at the corners within. If some fail
        by no more than that rounding, the corners themselves decide: all that are as near to
        their limit, on either side of it, each by the sign of its sum of exponentials.
        """
        arithmetic, rounding = self._arithmetic, self._arithmetic.rounding
        slacks = [
            (arithmetic.exact_slack(weights, at), at)
            for at in track(self._few(walked), "proof by exact laws")
        ]
        slack, at = min(slacks, key=lambda pair: pair[0], default=(None, walked.place))
        if slack is None or slack >= 0 or slack < -rounding:
            return slack, at
        wider = self._walked(weights, rounding)[1]
        for near in track(self._few(wider), "ties"):
            slack = arithmetic.exact_slack(weights, near)
            if slack < -rounding or (slack <= rounding and self._breaks(weights, near)):
                return min(slack, -rounding), near
        return Fraction(0), at

    def _breaks(self, weights: Units, at: Multiset) -> bool:
        flat = [self._arithmetic.flat(self._arithmetic.signed(weights), at, s) for s in (0, 1)]
        # Where h is the same constant on both sides, Pr[output 1] is too.
        if flat[0] is not None and flat[0] == flat[1]:
            return False
        return sign(self.setting, weights, at) < 0

    def _few(self, walked: Walked) -> list[Multiset]:
        if len(walked.near) >= MOST_LISTED:
            raise NotPrivateError(
                f"{self._not_proved}: too many constraints are within rounding of their limit to "
                "be decided one by one."
            )
        return walked.near

    def _holds(self, weights: Units, walked: Walked) -> bool:
        if len(walked.near) >= MOST_LISTED:
            return False
        slack, _ = self._least(weights, walked)
        return slack is None or slack >= 0

    def _limits(
        self, weights: Units, near: list[Reached], free: list[int], units: int
    ) -> tuple[Limits, int] | None:
        """Return the constraints at multisets that can stop free weights, and for how many units.

        Those are fewer than the given ones where more constraints than fit into memory could stop
        weights. None if there are no constraints, or one does not hold.

        Where one is a tie, which only the corners themselves decide, all others keep the distance
        of rounding; of a tie: 0, and 1 for a weight that would break it.
        """
        arithmetic, columns = self._arithmetic, np.array(free)
        most = _MOST_COEFFICIENTS // len(free)
        least = float(1 + arithmetic.ratio) * 2.0**-60
        # By how much one unit more of all weights together can lower a slack.
        reaches = [self._reaches(group, columns) + least for group in near]
        needed = [(group.lowest - 1.0) / reach for group, reach in zip(near, reaches, strict=True)]
        fits = _fitting(needed, most)
        if fits >= units / _CLEARLY:
            units = min(units, int(min(fits, units)))
        masks = [line <= units for line in needed]
        near = [group.take(mask) for group, mask in zip(near, masks, strict=True)]
        reaches = [reach[mask] for reach, mask in zip(reaches, masks, strict=True)]
        # From here on by exact slacks.
        slacks = self._slacks(weights, near)
        rounding = ceil(arithmetic.rounding * (1 << (FIXED + BITS)))
        if not any(slacks) or min(map(min, filter(None, slacks))) < -rounding:
            return None
        needed = [
            (paired(own, -FIXED)[0] - 1.0) / reach
            for own, reach in zip(slacks, reaches, strict=True)
        ]
        units = min(units, int(max(min(_fitting(needed, most), units), 0.0)))
        masks = [line <= units for line in needed]
        chosen = sum(int(np.count_nonzero(mask)) for mask in masks)
        if not units or not 0 < chosen <= most:
            return None
        near = [group.take(mask) for group, mask in zip(near, masks, strict=True)]
        left = [s for own, mask in zip(slacks, masks, strict=True) for s in compress(own, mask)]
        high, low = np.empty((len(free), chosen)), np.empty((len(free), chosen))
        end = 0
        for group in near:
            start, end = end, end + group.ones.size
            if start < end:
                rows = self._folded(self._row(group).pair, group, columns)
                high[:, start:end], low[:, start:end] = rows[0].T, rows[1].T
        kept = rounding if min(left) < 0 else 0
        places = (group.at(place) for group in near for place in range(group.ones.size))
        for row, (slack, place) in enumerate(zip(left, places, strict=True)):
            if slack >= kept:
                left[row] = slack - kept
            elif self._breaks(weights, place):
                return None
            else:
                left[row], unclear = 0, 2.0 * float(arithmetic.rounding)
                doubtful = columns[abs(high[:, row]) <= unclear].tolist()
                high[:, row], low[:, row] = high[:, row] > unclear, 0.0
                high[np.isin(columns, raising(self.setting, doubtful, place)), row] = 1.0
        return Limits(paired(left, -FIXED), (high, low)), units

    @cached_property
    def _rows(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], _Row]:
        """Coefficients that the rounds of `fill` share, as they depend on no weights."""
        return {}

    def _row(self, group: Reached) -> _Row:
        """Return the coefficients that multisets share."""
        key = group.counts, group.family
        found = self._rows.get(key)
        if found is None:
            values = self._arithmetic.difference(*key)
            found = _Row(
                paired(values, -(FIXED + RATIO)),
                fmpz_poly([value >> RATIO for value in reversed(values)]),
            )
            if self._shared + len(values) <= _MOST_SHARED:
                self._rows[key], self._shared = found, self._shared + len(values)
        return found

    def _slacks(self, weights: Units, near: list[Reached]) -> list[list[int]]:
        """Return the slacks of groups of multisets over 2^(FIXED + BITS)."""
        limit = floor(self._arithmetic.budget * (1 << (FIXED + BITS)))
        signed = fmpz_poly(self._arithmetic.signed(weights))
        found = list[list[int]]()
        for group in near:
            if not group.ones.size:
                found.append([])
                continue
            sums, first = signed * self._row(group).turned, sum(group.counts)
            found.append([limit - int(sums[ones + first]) for ones in group.ones.tolist()])
        return found

    def _reaches(self, group: Reached, columns: npt.NDArray[np.int64]) -> Floats:
        """Return the sums of the positive coefficients on weights, to about 2^-50."""
        return np.maximum(self._folded(self._row(group).pair[:1], group, columns)[0], 0.0).sum(1)

    def _folded(
        self, parts: tuple[Floats, ...], group: Reached, columns: npt.NDArray[np.int64]
    ) -> tuple[Floats, ...]:
        """Return coefficients on weights, a line for each multiset.

        Args:
            parts: the coefficients on h, as doubles or as a pair.
            group: the multisets.
            columns: places of the weights.
        """
        middle = self.setting.middle
        padding = np.zeros(2 * middle)
        # h(0) of a multiset is as many places before its first coefficient as it has ones.
        starts = 2 * middle - group.ones[:, None]
        padded = [np.concatenate([padding, part, padding]) for part in parts]
        upper = [part[starts + (middle + columns)] for part in padded]
        lower = [-part[starts + (middle - 1 - columns)] for part in padded]
        if len(parts) == 1:
            return (upper[0] + lower[0],)
        return plus((upper[0], upper[1]), (lower[0], lower[1]))

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


@dataclass(frozen=True)
class _Row:
    """Coefficients on h(ones), h(ones + 1), ...: as a pair, and turned around over 2^FIXED."""

    pair: Pair
    turned: fmpz_poly


def _alike(near: list[Multiset]) -> list[Reached]:
    """Return multisets grouped by all but their voters at 11."""
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for at in near:
        alike.setdefault((at.counts, at.family), []).append(at.ones)
    return [
        Reached(*key, np.array(ones), np.full(len(ones), -np.inf)) for key, ones in alike.items()
    ]


def _run_ends(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each place the last one of its run of equal values."""
    ends = np.append(np.flatnonzero(np.diff(values)), values.size - 1)
    return ends[np.searchsorted(ends, np.arange(values.size))]


def _fitting(needed: list[Floats], most: int) -> float:
    """Return up to how many units no more than ``most`` constraints are needed."""
    joined = np.concatenate([np.empty(0), *needed])
    return float(np.partition(joined, most)[most]) if joined.size > most else math.inf


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
