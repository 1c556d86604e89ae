"""What a gamma spends: its least epsilon or delta, and its tight dominating pair.

With P and P' the chances of output 1 at a corner and at the opposite one, the least ratio e^epsilon
is the largest (P - delta) / P', and the least delta the largest P - e^epsilon P', over the reduced
set of corners: the reduction theorem of the program module holds for every ratio. Output 0 adds
nothing: with every p turned to 1 - p, a corner is a corner and Pr[0] is Pr[1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from fractions import Fraction
from functools import partial
from itertools import pairwise

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, float_up
from dpopt._types import Json
from dpopt.majority.judge import sides_of
from dpopt.majority.voters import Voters, reduced_size
from dpopt.privacy.dominating import DominatingPair, Point
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.privacy.least import Least, least_of_ratio
from dpopt.table import Table

# Corners gone through in Python's integers, and bits of these: about a minute's.
_MOST_POINTS, _FIRST_BITS, _MOST_BITS = 4_000_000, 256, 1 << 15
# Lower and upper end differ by at most this part of what is stated: fewer than a float's ulp.
_CLOSE = Fraction(1, 1 << 56)
# What is not told from 0.
_NOTHING = Fraction(1, 1 << 200)


class Chances:
    """Pr[1] of both neighbours at all corners, over 2^bits, each off by at most ``error`` units.

    A voter's p is rounded once; so a step is off by a unit for p and one for its own rounding.
    """

    def __init__(self, setting: Voters, parameters: Json, table: Table, bits: int) -> None:
        if reduced_size(setting) > _MOST_POINTS:
            raise ParameterError(
                f"voters is {setting.voters}; what is spent is found over at most "
                f"{_MOST_POINTS:,} choices of corners, and these are {reduced_size(setting):,}."
            )
        if bits > _MOST_BITS:
            raise ParameterError(
                f"voters is {setting.voters} and epsilon {setting.epsilon:g}; "
                f"probabilities of output 1 that are below 2^-{_MOST_BITS // 2} are not told apart."
            )
        self.bits, self.unit, self.error = bits, 1 << bits, 2 * setting.voters + 1
        self.voters, self.total = verify.Voters(parameters, None), table.total
        self.voters.fine(bits + verify.BITS)
        self.ones = [*table.weights[1::2][::-1], *table.weights[::2]]

    def __iter__(self) -> Iterator[tuple[int, verify.Placed, int, int]]:
        """Yield voters at 1, the others' corners, and Pr[1] on both sides."""
        says = {kind[0]: self.voters.chance(kind[0])[0] for pair in verify.AXES for kind in pair}
        chances = {name: int(p * self.unit) for name, p in says.items()}

        def step(values: list[int], name: str) -> list[int]:
            p, q = chances[name], self.unit - chances[name]
            return [(p * b + q * a) >> self.bits for a, b in pairwise(values)]

        start = [one * self.unit // self.total for one in self.ones]
        for placed, up, down in self.voters.walk(start, step):
            for ones, (here, there) in enumerate(zip(up, down, strict=True)):
                yield ones, placed, here, there

    def impossible(self, ones: int, placed: verify.Placed, side: int) -> bool:
        """Whether output 1 cannot occur at a corner."""
        certain = ones + sum(n for kind, n in placed if kind[side] == "1")
        free = sum(n for kind, n in placed if kind[side] not in "01")
        return not any(self.ones[certain : certain + free + 1])

    def exceeds(self, ones: int, placed: verify.Placed, delta: Fraction) -> bool:
        """Whether P > delta at a corner where P' is 0: decided exactly."""
        tried = copy(self.voters)
        tried.delta = delta
        low, high = tried.slack(self.ones, self.total, ones, placed)
        return high < 0 or (low < 0 and tried.broken(self.ones, self.total, ones, placed))


def least_of_gamma(
    setting: Voters, parameters: Json, table: Table, epsilon: float | None, delta: float | None
) -> Least:
    """Return the least epsilon of a gamma for a delta, or the other way round, enclosed."""
    if epsilon is None:
        given = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
        search = partial(_largest_ratio, delta=Fraction(given))
        upper, lower, at, _ = _closely(setting, parameters, table, search)
        ratio = None if upper is None else 1 + upper
        return least_of_ratio(ratio, sides_of(setting, at), (1,), given, lower=1 + lower)
    given = _checks.real("epsilon", epsilon, 0.0, 600.0)
    search = partial(_largest_excess, epsilon=Fraction(given))
    upper, lower, at, chances = _closely(setting, parameters, table, search)
    if upper is None or (upper <= _NOTHING and _pure(chances, Fraction(given))):
        upper = lower = Fraction(0)
    inputs = sides_of(setting, at)
    return Least("delta", float_down(lower), float_up(upper), given, inputs, (1,))


def _closely(
    setting: Voters, parameters: Json, table: Table, search: Callable[[Chances], Found | None]
) -> tuple[Fraction | None, Fraction, verify.Name, Chances]:
    """Return what a search finds with as many bits as bring both ends next to each other."""
    bits = _FIRST_BITS + 2 * math.ceil(setting.epsilon)
    while True:
        chances = Chances(setting, parameters, table, bits)
        found = search(chances)
        if found is not None:
            upper, lower, at = found
            if upper is None or upper - lower <= max(_CLOSE * upper, _NOTHING):
                return upper, lower, ("corner", *at), chances
        bits *= 2


Found = tuple[Fraction | None, Fraction, tuple[int, verify.Placed]]
"""Upper and lower end, and a corner; the upper end is None if it is infinite."""


def _largest_ratio(chances: Chances, delta: Fraction) -> Found | None:
    """Return the largest (P - delta) / P' less 1, at least 0, and where it is.

    Of the ratios below 1 privacy says nothing. None if the bits do not tell whether a P' is 0.
    """
    error, ends, at = chances.error, (1, 1), (0, ())
    if len(set(chances.ones)) == 1:
        # The output does not depend on the votes.
        return Fraction(0), Fraction(0), at
    less = math.floor(delta * chances.unit)
    for ones, placed, here, there in chances:
        over, under = here + error - less, there - error
        if over * ends[1] <= under * ends[0] or over <= 0:
            continue
        if under > 0:
            ends, at = (over, under), (ones, placed)
        elif not chances.impossible(ones, placed, 1):
            return None
        elif not chances.impossible(ones, placed, 0) and chances.exceeds(ones, placed, delta):
            return None, Fraction(0), (ones, placed)
    upper = Fraction(*ends) - 1
    lower = Fraction(ends[0] - 2 * error - 1, ends[1] + 2 * error) - 1
    return upper, min(max(lower, Fraction(0)), upper), at


def _largest_excess(chances: Chances, epsilon: Fraction) -> Found:
    """Return the largest P - e^epsilon P', at least 0, and where it is."""
    error, unit = chances.error, chances.unit
    low, high = exp_lower(epsilon, chances.bits), exp_upper(epsilon, chances.bits)
    scaled = int(low * unit)

    def excess(found: tuple[int, verify.Placed, int, int]) -> int:
        return found[2] * unit - scaled * found[3]

    ones, placed, here, there = max(chances, key=excess)
    upper = here + error - Fraction(scaled, unit) * (there - error)
    lower = here - error - high * (there + error)
    # P is a probability, whatever its bound is.
    most, least = (min(max(end / unit, Fraction(0)), Fraction(1)) for end in (upper, lower))
    return most, least, (ones, placed)


def _pure(chances: Chances, epsilon: Fraction) -> bool:
    """Whether the gamma is private for an epsilon without any delta."""
    tried = copy(chances.voters)
    tried.target, tried.delta = epsilon, Fraction(0)
    tried.fine(verify.BITS)
    try:
        tried.private(chances.ones, chances.total)
    except verify.Refused:
        return False
    return True


def dominating(setting: Voters, parameters: Json, table: Table) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query.

    Over every choice of corners for the voters (lemma 5.1) up to the reduction theorem, whose proof
    holds at every alpha. Probabilities are rounded outward, which only raises the hull.
    """
    bits = _FIRST_BITS
    if not setting.voter_delta:
        # So many that a positive probability never becomes 0: that would be an infinite loss.
        bits += setting.voters * math.ceil(setting.epsilon / math.log(2) + 1)
    chances = Chances(setting, parameters, table, bits)

    def points() -> Iterator[Point]:
        for ones, placed, here, there in chances:
            none = here <= chances.error and chances.impossible(ones, placed, 0)
            here = 0 if none else min(here + chances.error, chances.unit)
            yield max(there - chances.error, 0), here

    return DominatingPair.of_points(points(), chances.unit)
