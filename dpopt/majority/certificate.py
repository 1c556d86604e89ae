"""The proof that a noise function of integer weights is private, and the move that makes it so.

See the sweep module for the arithmetic; neither uses the separation that designs gamma.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import floor

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._progress import track
from dpopt.majority.reduction import reduced_size, require_priceable
from dpopt.majority.screen import Screen
from dpopt.majority.setting import MajoritySetting
from dpopt.majority.sweep import (
    BITS,
    FIXED,
    MOST_LISTED,
    RATIO,
    Arithmetic,
    Multiset,
    Sweep,
    Sweeper,
    Weights,
)
from dpopt.majority.ties import raises, sign
from dpopt.privacy.exact import Certificate, shrink_to_budget

# By how many units of 2^-BITS a weight may be raised, round after round, to use up the slack left.
_UNITS = tuple(1 << power for power in (24, 28, 32, 36))
_MOST_ROWS = 4000
_SCREENED = 15
_MOST_INTEGERS = 4_000_000
_HOW: dict[type, str] = {
    Sweeper: f"integers of {FIXED} fractional bits, rounded outward",
    Screen: "double precision within a bound of its rounding",
}


class GammaProver:
    """Certifies noise functions of one setting, and moves them to where they can be certified.

    Args:
        setting: the voters and the target.
    """

    def __init__(self, setting: MajoritySetting) -> None:
        _checks.instance("setting", setting, MajoritySetting)
        self.setting = setting

    @cached_property
    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(self.setting)

    def certify(self, weights: Weights) -> Certificate:
        """Prove (m epsilon, delta)-DP of a gamma of integer weights.

        Args:
            weights: gamma's upper half over 2^62, each in 0..2^62.

        Raises:
            NotPrivateError: naming the voters on both sides, if a constraint fails.
            ParameterError: if the weights are not (K + 1) / 2 integers in 0..2^62.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        sweeper, sweep = self._sweep(weights, Fraction(0))
        if sweeper.limit - sweep.slack > sweeper.surely_broken:
            raise self._refusal(arithmetic.exact_slack(weights, sweep.place), sweep.place)
        slack, at = self._least(weights, sweep)
        if slack is None:
            slack = Fraction(sweep.slack, 1 << (FIXED + RATIO))
        elif isinstance(sweeper, Screen):
            slack = min(slack, sweeper.sure)
        if slack < 0:
            raise self._refusal(slack, at)
        guarantee = self.setting.guarantee
        return Certificate(
            claim="DaRRM with this gamma is private for all voters (reduced corner set)",
            guarantee=guarantee,
            ratio=arithmetic.ratio,
            constraints=sweep.count,
            slack=slack / 2,
            tightest=f"{arithmetic.describe(at, 0)}; neighbour: "
            f"{arithmetic.describe(at, 1)}; output 1",
            arithmetic=f"{_HOW[type(sweeper)]}; {len(sweep.near)} constraints by exact laws",
            bits=BITS,
        ).about("majority", self.setting, tuple(weights))

    def shrink(self, weights: Weights) -> tuple[Weights, Fraction]:
        """Return private weights next to the given ones, and the factor they were shrunk by.

        gamma <- t gamma with the largest t that leaves every constraint room for rounding down:
        each is linear in gamma, 0 at gamma = 0, and moves by at most (1 + e^(m epsilon)) 2^-62.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        sweeper, sweep = self._sweep(weights, Fraction(0))
        doubtful = sweeper.limit - sweep.slack <= sweeper.surely_broken
        if sweep.slack >= 0 or (doubtful and self._holds(weights, sweep)):
            return weights, Fraction(1)
        worst = arithmetic.budget + Fraction(-sweep.slack, 1 << (FIXED + RATIO))
        room = arithmetic.budget - (1 + arithmetic.ratio) / (1 << BITS)
        # Below the rounding of a weight there is no room for a multiple, but for 0: a fair coin.
        factor = shrink_to_budget(worst, room) if room > 0 else Fraction(0)
        return tuple(floor(w * factor) for w in weights), factor

    def fill(self, weights: Weights) -> Weights:
        """Return private weights raised until no single one could be one unit larger.

        Only where a constraint is within 2^36 units of its limit, which is where an optimal gamma
        is once it has been shrunk, and where at most 4,000 are (K up to about 150); otherwise,
        the weights are returned as they are.
        """
        self._check(weights)
        arithmetic = self._arithmetic
        if all(weight == 1 << BITS for weight in weights):
            return weights
        sweep = self._reachable(weights, _UNITS[0])
        for units, wider in zip(_UNITS, (*_UNITS[1:], 0), strict=True):
            signed = arithmetic.signed(weights)
            # Where h is 1 or -1 throughout, no weight of the multiset can be raised.
            near = [at for at in sweep.near if not _is_full(arithmetic, signed, at)]
            if not near or len(near) >= _MOST_ROWS or len(sweep.near) >= MOST_LISTED:
                break
            weights, stopped = _raise_weights(self._rows(weights, near), weights, units)
            if stopped or not wider:
                break
            sweep = self._reachable(weights, wider)
        return weights

    def _reachable(self, weights: Weights, units: int) -> Sweep:
        """Sweep, listing every constraint that raising all weights by ``units`` could break."""
        reach = Fraction(units, 1 << BITS) * (1 + self._arithmetic.ratio)
        return self._sweep(weights, reach)[1]

    def _sweep(self, weights: Weights, reach: Fraction) -> tuple[Sweeper | Screen, Sweep]:
        """Walk the set: large ones for Delta > 0 in floats, if that decides nearly all."""
        if not self._arithmetic.pure and self.setting.mechanisms > _SCREENED:
            screen = Screen(self._arithmetic, weights, reach)
            sweep = screen.run()
            if sweep is not None:
                return screen, sweep
            if reduced_size(self.setting) > _MOST_INTEGERS:
                raise ParameterError(
                    f"delta is {self.setting.delta:g}; too many constraints are within rounding of "
                    "their limit to be decided one by one. Take delta = 0, or a larger one."
                )
        sweeper = Sweeper(self._arithmetic, weights, reach)
        return sweeper, sweeper.run()

    def _check(self, weights: Weights) -> None:
        whole = isinstance(weights, tuple | list) and all(
            isinstance(w, int) and 0 <= w <= 1 << BITS for w in weights
        )
        if not whole or len(weights) != self.setting.middle:
            raise ParameterError(
                f"weights must be {self.setting.middle} integers in 0..2^{BITS}, no others."
            )
        require_priceable(self.setting)

    def _least(self, weights: Weights, sweep: Sweep) -> tuple[Fraction | None, Multiset]:
        """Return the least slack of the undecided multisets, None if there is none; 0 for a tie.

        If all hold at the corners rounded outward, they hold at the corners within. If some fail
        by no more than that rounding, the corners themselves decide: all that are as near to
        their limit, on either side of it, each by the sign of its sum of exponentials.
        """
        arithmetic, rounding = self._arithmetic, self._arithmetic.rounding
        found = [
            (arithmetic.exact_slack(weights, at), at)
            for at in track(self._few(sweep), "proof by exact laws")
        ]
        slack, at = min(found, key=lambda pair: pair[0], default=(None, sweep.place))
        if slack is None or slack >= 0 or slack < -rounding:
            return slack, at
        wider = self._sweep(weights, rounding)[1]
        for near in track(self._few(wider), "ties"):
            slack = arithmetic.exact_slack(weights, near)
            if slack < -rounding or (slack <= rounding and self._breaks(weights, near)):
                return min(slack, -rounding), near
        return Fraction(0), at

    def _breaks(self, weights: Weights, at: Multiset) -> bool:
        flat = [self._arithmetic.flat(self._arithmetic.signed(weights), at, s) for s in (0, 1)]
        # Where h is the same constant on both sides, Pr[output 1] is too.
        if flat[0] is not None and flat[0] == flat[1]:
            return False
        return sign(self.setting, weights, at) < 0

    def _few(self, sweep: Sweep) -> list[Multiset]:
        if len(sweep.near) >= MOST_LISTED:
            raise NotPrivateError(
                f"{self._not_proved}: too many constraints are within rounding of their limit to "
                "be decided one by one."
            )
        return sweep.near

    def _holds(self, weights: Weights, sweep: Sweep) -> bool:
        if len(sweep.near) >= MOST_LISTED:
            return False
        slack, _ = self._least(weights, sweep)
        return slack is None or slack >= 0

    def _rows(self, weights: Weights, near: list[Multiset]) -> list[list[int]]:
        """Return slacks of multisets, each with its coefficients on the weights, in one unit.

        Where one is a tie, which only the corners themselves decide, all others keep the distance
        of rounding; of a tie: 0, and 1 for a weight that would break it.
        """
        arithmetic, rounding = self._arithmetic, self._arithmetic.rounding
        slacks = [arithmetic.exact_slack(weights, at) for at in near]
        kept = rounding if min(slacks) < 0 else Fraction(0)
        rows = []
        for slack, at in zip(slacks, near, strict=True):
            exponent, coefficients = arithmetic.scale(at) + RATIO, arithmetic.coefficients(at)
            left = floor((slack - kept) * (1 << (exponent + BITS)))
            if left < 0 and -rounding <= slack and not self._breaks(weights, at):
                left, unclear = 0, floor(rounding * (1 << exponent)) + 1
                coefficients = [
                    int(c > unclear or (c >= -unclear and raises(self.setting, place, at)))
                    for place, c in enumerate(coefficients)
                ]
            rows.append([left, *coefficients])
        return rows

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


def gamma_rounding(setting: MajoritySetting) -> float:
    """Return by how much rounding a private gamma to doubles, and to 2^-62, can break it.

    Each value moves by 2^-54 and 2^-62 at most, Pr[output 1] by half of that, on both sides of the
    pair: (1 + e^(m epsilon)) 2^-54 is more. What breaks by less is "not proved": the gamma that was
    meant may be private.
    """
    return (1.0 + setting.ratio) * 2.0**-54


def _is_full(arithmetic: Arithmetic, signed: list[int], at: Multiset) -> bool:
    return all(abs(arithmetic.flat(signed, at, side) or 0) == 1 << BITS for side in (0, 1))


def _raise_weights(rows: list[list[int]], weights: Weights, units: int) -> tuple[Weights, bool]:
    """Raise each weight to where a constraint, 1, or ``units`` stops it; central counts first.

    The flag tells whether it was never ``units`` that stopped one.
    """
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
