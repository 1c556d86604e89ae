"""For which epsilon, or which delta, a gamma is private: enclosed, from its integers alone.

With P and P' the chances of output 1 at a corner and at the opposite one, the least ratio e^epsilon
is the largest (P - delta) / P', and the least delta the largest P - e^epsilon P', over the reduced
set of corners: the reduction theorem of the program module holds for every ratio. Output 0 adds
nothing: with every p turned to 1 - p, a corner is a corner and Pr[0] is Pr[1].

P and P' are walked in integers of B fractional bits, rounded down at every step, with the voters'
corners rounded outward: a larger polygon, so that what is largest over it is an upper bound. A
corner moves by less than two units, and E h(L) by twice that for each voter; so the worst multiset
is also worth a lower bound, and B is doubled until both are next to each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, float_up
from dpopt.majority.proof import Arithmetic, multiset_at
from dpopt.majority.ties import sign
from dpopt.majority.voters import BITS, Multiset, Units, Voters, reduced_size
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.privacy.least import Least, least_of_ratio

_MOST_POINTS, _FIRST_BITS, _MOST_BITS = 4_000_000, 256, 1 << 15
# Lower and upper end differ by at most this part of what is told: fewer than a float's ulp.
_CLOSE = Fraction(1, 1 << 56)
# Of a least delta that is not told from 0.
_NOTHING = Fraction(1, 1 << 200)
_NOWHERE = Multiset((), (), 0)


def least_of_gamma(
    setting: Voters, weights: Units, epsilon: float | None, delta: float | None
) -> Least:
    """Return the least epsilon of a gamma for a delta, or its least delta for an epsilon.

    Args:
        setting: the voters; its target plays no part.
        weights: gamma's upper half over 2^62.
        epsilon: of the majority, in [0, 600]; None asks for the least one.
        delta: in [0, 1), where epsilon is None.

    Raises:
        ParameterError: for more than 4,000,000 multisets, or numbers that are out of range.
    """
    size = reduced_size(setting)
    if size > _MOST_POINTS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; a least epsilon is found over at most "
            f"{_MOST_POINTS:,} multisets of corners, and these are {size:,}."
        )
    if epsilon is None:
        return _least_epsilon(
            setting, weights, _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
        )
    return _least_delta(setting, weights, _checks.real("epsilon", epsilon, 0.0, 600.0))


def _least_epsilon(setting: Voters, weights: Units, delta: float) -> Least:
    walk = _Walk(setting, weights, _FIRST_BITS)
    if not any(weights):
        # A fair coin.
        return least_of_ratio(Fraction(1), walk.told(_NOWHERE), (1,), delta)
    while True:
        found = walk.largest_ratio(delta)
        if found is not None:
            upper, lower, at = found
            if upper is None or upper == 1 or upper - lower <= _CLOSE * (upper - 1):
                inputs = walk.told(at)
                return least_of_ratio(upper, inputs, (1,), delta, lower=lower)
        walk = walk.finer()


def _least_delta(setting: Voters, weights: Units, epsilon: float) -> Least:
    walk = _Walk(setting, weights, _FIRST_BITS)
    while True:
        upper, lower, at = walk.largest_excess(epsilon)
        if lower <= 0 and epsilon >= _least_epsilon(setting, weights, 0.0).upper:
            upper = Fraction(0)
        if upper - lower <= _CLOSE * upper or upper <= _NOTHING:
            ends = float_down(max(lower, Fraction(0))), float_up(max(upper, Fraction(0)))
            return Least("delta", *ends, epsilon, walk.told(at), (1,))
        walk = walk.finer()


class _Walk:
    """The reduced set in integers of a number of bits: 1 + E h, which is 2 Pr[1], on both sides."""

    def __init__(self, setting: Voters, weights: Units, bits: int) -> None:
        if bits > _MOST_BITS:
            raise ParameterError(
                f"mechanisms is {setting.mechanisms} and epsilon {setting.epsilon:g}; "
                f"probabilities of output 1 that are below 2^-{_MOST_BITS // 2} are not told apart."
            )
        self.setting, self.weights, self.bits = setting, weights, bits
        # So many more that no corner is rounded to 0 or 1.
        spare = 2 * math.ceil(setting.epsilon)
        self.arithmetic = Arithmetic(setting, bits + spare)
        self.unit = 1 << (bits + spare)
        self.signed = self.arithmetic.signed(weights)
        self.h = np.array([h * (self.unit >> BITS) for h in self.signed], dtype=object)
        # By what a value of a multiset can be off, in units, on either side of the pair.
        self.error = 6 * setting.mechanisms + 8

    def finer(self) -> _Walk:
        """Return the walk of twice the bits."""
        return _Walk(self.setting, self.weights, 2 * self.bits)

    def told(self, at: Multiset) -> tuple[str, str]:
        """Return the voters of both neighbours in words."""
        if at is _NOWHERE:
            voters = f"{self.setting.mechanisms} voters at 0"
            return voters, voters
        return self.arithmetic.describe(at, 0), self.arithmetic.describe(at, 1)

    def _tables(self) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
        """Yield counts, an upper bound of 1 + E h and a lower one of 1 + E' h, in units."""
        for counts, table in self.arithmetic.tables(self.h):
            # Turned around on every axis, each voter is at the opposite corner.
            opposite = np.flip(table, axis=tuple(range(len(counts))))
            yield counts, table + (self.unit + sum(counts)), opposite + self.unit

    def largest_ratio(self, delta: float) -> tuple[Fraction | None, Fraction, Multiset] | None:
        """Return an upper and a lower bound of the largest (P - delta) / P', and where it is.

        The upper one is None if it is infinite. At least 1: for the ratios below, privacy says
        nothing. All is None if these bits do not tell whether a P' is 0.
        """
        given = math.floor(2 * Fraction(delta) * self.unit)
        best, at = (1, 1), _NOWHERE
        for counts, above, below in self._tables():
            over = above - given
            for index in np.argwhere((below <= 0) & (over > 0)):
                place = multiset_at(counts, tuple(index))
                infinite = self._is_infinite(place, over[tuple(index)], delta)
                if infinite is None:
                    return None
                if infinite:
                    return None, Fraction(1), place
            told = np.where(below > 0, over, -1)
            while True:
                # Positive where the ratio is larger than the largest so far.
                gain = told * best[1] - below * best[0]
                gain[below <= 0] = -1
                index = np.unravel_index(int(np.argmax(gain)), gain.shape)
                if gain[index] <= 0:
                    break
                best, at = (int(told[index]), int(below[index])), multiset_at(counts, index)
        lower = Fraction(best[0] - self.error, best[1] + self.error)
        return Fraction(*best), max(Fraction(1), lower), at

    def _is_infinite(self, at: Multiset, over: int, delta: float) -> bool | None:
        """Return whether P > delta where P' is at most the error; None if that is not told.

        A P' is 0 exactly where h is -1 at every number of ones that the multiset can give.
        """
        never = -(1 << BITS)
        if self.arithmetic.flat(self.signed, at, 1) != never:
            return None
        if self.arithmetic.flat(self.signed, at, 0) == never:
            return False
        if over > self.error:
            return True
        # P is a tie with delta up to the error. With P' = 0 the target's epsilon does not matter.
        return sign(self.setting, self.weights, at, delta) < 0

    def largest_excess(self, epsilon: float) -> tuple[Fraction, Fraction, Multiset]:
        """Return an upper and a lower bound of the largest P - e^epsilon P', and where it is."""
        shift = self.unit.bit_length() - 1
        low, high = exp_lower(epsilon, shift), exp_upper(epsilon, shift)
        scaled = int(low * self.unit)
        best, at, ends = None, _NOWHERE, (0, 0)
        for counts, above, below in self._tables():
            excess = above * self.unit - scaled * below
            index = np.unravel_index(int(np.argmax(excess)), excess.shape)
            if best is None or excess[index] > best:
                best, at = int(excess[index]), multiset_at(counts, index)
                ends = int(above[index]), int(below[index])
        # P is a probability, whatever its upper bound is.
        upper = min(Fraction(best or 0, 2 * self.unit * self.unit), Fraction(1))
        under = (ends[0] - self.error) - high * (ends[1] + self.error)
        return upper, under / (2 * self.unit), at
