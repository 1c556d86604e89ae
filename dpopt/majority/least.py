"""The privacy cost of a gamma: its least epsilon, and its tight dominating pair.

Let P and P' be the probabilities of output 1 at a multiset of corners and at the opposite one. The
least e^epsilon is the largest (P - delta) / P' over the reduced set of multisets: the reduction
theorem of the program module holds for every ratio. Output 0 adds nothing: replacing every p by
1 - p maps corners to corners and Pr[0] to Pr[1].
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
from dpopt._types import Json
from dpopt.majority.judge import sides_of
from dpopt.majority.voters import Voters, reduced_size
from dpopt.privacy.dominating import DominatingPair, Point
from dpopt.privacy.least import Least, least_of_ratio
from dpopt.table import Table

# Multisets enumerated in Python's integers, which takes about a minute; and the bits of these
# integers: at first, and at most.
_MOST_POINTS, _FIRST_BITS, _MOST_BITS = 4_000_000, 256, 1 << 15
# Absolute: an excess below this is not distinguished from 0.
_NOTHING = Fraction(1, 1 << 200)


class Chances:
    """Pr[1] under both neighbours at all multisets of corners, as integers over 2^bits.

    Each is off by at most ``error`` units. A step adds one unit for the rounding of a voter's p and
    one for its own rounding.
    """

    def __init__(self, setting: Voters, parameters: Json, table: Table, bits: int) -> None:
        if reduced_size(setting) > _MOST_POINTS:
            raise ParameterError(
                f"voters is {setting.voters}; the privacy loss is found over at most "
                f"{_MOST_POINTS:,} choices of corners, and these are {reduced_size(setting):,}."
            )
        if bits > _MOST_BITS:
            raise ParameterError(
                f"voters is {setting.voters} and epsilon {setting.epsilon:g}; "
                f"probabilities of output 1 that are below 2^-{_MOST_BITS // 2} are taken as equal."
            )
        self.bits, self.unit, self.error = bits, 1 << bits, 2 * setting.voters + 1
        self.voters, self.total = verify.Voters(parameters, None), table.total
        self.voters.fine(bits + verify.BITS)
        self.ones = [*table.weights[1::2][::-1], *table.weights[::2]]

    def __iter__(self) -> Iterator[tuple[int, verify.Placed, int, int]]:
        """Yield the voters at 11, the other voters' corners, and Pr[1] under both neighbours."""
        p_of = {kind[0]: self.voters.chance(kind[0])[0] for pair in verify.AXES for kind in pair}
        chances = {name: int(p * self.unit) for name, p in p_of.items()}

        def step(values: list[int], name: str) -> list[int]:
            """Add a voter who says 1 with p: T'(o) = p T(o + 1) + (1 - p) T(o), rounded down."""
            p, q = chances[name], self.unit - chances[name]
            return [(p * b + q * a) >> self.bits for a, b in pairwise(values)]

        start = [one * self.unit // self.total for one in self.ones]
        for placed, up, down in self.voters.walk(start, step):
            for ones, (p_one, p_other) in enumerate(zip(up, down, strict=True)):
                yield ones, placed, p_one, p_other

    def impossible(self, ones: int, placed: verify.Placed, side: int) -> bool:
        """Whether output 1 cannot occur at a corner."""
        certain = ones + sum(n for kind, n in placed if kind[side] == "1")
        free = sum(n for kind, n in placed if kind[side] not in "01")
        return not any(self.ones[certain : certain + free + 1])

    def exceeds(self, ones: int, placed: verify.Placed, delta: Fraction) -> bool:
        """Whether P > delta at a multiset where P' is 0, in exact arithmetic."""
        checker = copy(self.voters)
        checker.delta = delta
        low, high = checker.slack(self.ones, self.total, ones, placed)
        return high < 0 or (low < 0 and checker.broken(self.ones, self.total, ones, placed))


def least_of_gamma(setting: Voters, parameters: Json, table: Table, delta: float | None) -> Least:
    """Return bounds on the least epsilon of a gamma for a given delta."""
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    search = partial(_largest_ratio, delta=Fraction(delta))
    upper, lower, at = _closely(setting, parameters, table, search)
    ratio = None if upper is None else 1 + upper
    return least_of_ratio(ratio, sides_of(setting, at), (1,), delta, lower=1 + lower)


def _closely(
    setting: Voters, parameters: Json, table: Table, search: Callable[[Chances], Extreme | None]
) -> tuple[Fraction | None, Fraction, verify.Name]:
    """Run a search, doubling the bits until its two ends are close."""
    bits = _FIRST_BITS + 2 * math.ceil(setting.epsilon)
    while True:
        extreme = search(Chances(setting, parameters, table, bits))
        if extreme is not None:
            upper, lower, at = extreme
            # Largest relative distance between the lower and the upper end: less than a float's
            # ulp.
            if upper is None or upper - lower <= max(Fraction(1, 1 << 56) * upper, _NOTHING):
                return upper, lower, ("corner", *at)
        bits *= 2


Extreme = tuple[Fraction | None, Fraction, tuple[int, verify.Placed]]
"""Upper and lower end, and a multiset; the upper end is None if it is infinite."""


def _largest_ratio(chances: Chances, delta: Fraction) -> Extreme | None:
    """Return the largest (P - delta) / P' - 1, or 0 if that is negative, and where it is attained.

    Privacy does not constrain ratios below 1. None if the bits do not show whether some P' is 0.
    """
    error, largest, at = chances.error, (1, 1), (0, ())
    if len(set(chances.ones)) == 1:
        # The output does not depend on the votes.
        return Fraction(0), Fraction(0), at
    delta_units = math.floor(delta * chances.unit)
    for ones, placed, p_one, p_other in chances:
        numerator, denominator = p_one + error - delta_units, p_other - error
        if numerator * largest[1] <= denominator * largest[0] or numerator <= 0:
            continue
        if denominator > 0:
            largest, at = (numerator, denominator), (ones, placed)
        elif not chances.impossible(ones, placed, 1):
            return None
        elif not chances.impossible(ones, placed, 0) and chances.exceeds(ones, placed, delta):
            return None, Fraction(0), (ones, placed)
    upper = Fraction(*largest) - 1
    lower = Fraction(largest[0] - 2 * error - 1, largest[1] + 2 * error) - 1
    return upper, min(max(lower, Fraction(0)), upper), at


def dominating(setting: Voters, parameters: Json, table: Table) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query."""
    bits = _FIRST_BITS
    if not setting.voter_delta:
        # Enough bits that no positive probability rounds to 0, which would be an infinite loss.
        bits += setting.voters * math.ceil(setting.epsilon / math.log(2) + 1)
    chances = Chances(setting, parameters, table, bits)

    def points() -> Iterator[Point]:
        for ones, placed, p_one, p_other in chances:
            impossible = p_one <= chances.error and chances.impossible(ones, placed, 0)
            p_one = 0 if impossible else min(p_one + chances.error, chances.unit)
            yield max(p_other - chances.error, 0), p_one

    return DominatingPair.of_points(points(), chances.unit)
