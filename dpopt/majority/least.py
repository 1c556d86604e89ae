"""The privacy cost of a gamma: its least epsilon, and its tight dominating pair.

Let P and P' be the probabilities of output 1 at a multiset of corners and at the opposite one. The
least e^epsilon is the largest (P - delta) / P' over the reduced set of multisets: the reduction
theorem of the program module holds for every ratio. Output 0 adds nothing: replacing every p by
1 - p maps corners to corners and Pr[0] to Pr[1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from fractions import Fraction
from itertools import pairwise

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._types import Json
from dpopt.majority.judge import sides_of
from dpopt.majority.voters import Voters, reduced_size
from dpopt.privacy.cost import DominatingPair, Least, Point, least_of_ratio
from dpopt.table import Table

# Multisets enumerated in Python's integers, which takes about a minute; the bits of these integers
# beyond those of the least positive probability; and the most of them.
_MOST_POINTS, _SPARE_BITS, _MOST_BITS = 4_000_000, 320, 1 << 15


class Chances:
    """Pr[1] under both neighbours at all multisets of corners, as integers over 2^bits.

    Each is off by at most ``error`` units: a step adds one unit for the rounding of a voter's p and
    one for its own rounding. No positive probability is below 2^240 units.
    """

    def __init__(self, setting: Voters, parameters: Json, table: Table) -> None:
        if reduced_size(setting) > _MOST_POINTS:
            raise ParameterError(
                f"voters is {setting.voters}; the privacy loss is found over at most "
                f"{_MOST_POINTS:,} choices of corners, and these are {reduced_size(setting):,}."
            )
        delta = setting.voter_delta
        least = min(math.log1p(-delta) - setting.epsilon - 1, math.log(delta) if delta else 0.0)
        bits = _SPARE_BITS + math.ceil(-setting.voters * least / math.log(2))
        if bits > _MOST_BITS:
            raise ParameterError(
                f"voters is {setting.voters} and epsilon {setting.epsilon:g}; the privacy loss is "
                f"not found for probabilities of output 1 that are below 2^-{_MOST_BITS}."
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

    def exceeds(self, ones: int, placed: verify.Placed, delta: Fraction) -> bool:
        """Whether P > delta at a multiset where P' is 0, in exact arithmetic."""
        checker = copy(self.voters)
        checker.delta = delta
        low, high = checker.slack(self.ones, self.total, ones, placed)
        return high < 0 or (low < 0 and checker.broken(self.ones, self.total, ones, placed))


def least_of_gamma(setting: Voters, parameters: Json, table: Table, delta: float | None) -> Least:
    """Return bounds on the least epsilon of a gamma for a given delta.

    Its e^epsilon is the largest (P - delta) / P', or 1 if that is below: privacy does not constrain
    ratios below 1. It is infinite where P > delta and P' is 0.
    """
    exact = Fraction(_checks.real("delta", delta, 0.0, 1.0, open_upper=True))
    chances, largest, at = Chances(setting, parameters, table), (1, 1), (0, ())
    error, delta_units = chances.error, int(exact * chances.unit)
    # Where the output does not depend on the votes, every ratio is 1.
    for ones, placed, p_one, p_other in chances if len(set(chances.ones)) > 1 else ():
        numerator, denominator = p_one + error - delta_units, p_other - error
        if numerator * largest[1] <= denominator * largest[0] or numerator <= 0:
            continue
        if denominator > 0:
            largest, at = (numerator, denominator), (ones, placed)
        elif chances.exceeds(ones, placed, exact):
            sides = sides_of(setting, ("corner", ones, placed))
            return least_of_ratio(None, sides, (1,), float(exact))
    upper = Fraction(*largest)
    lower = max(Fraction(largest[0] - 2 * error - 1, largest[1] + 2 * error), Fraction(1))
    sides = sides_of(setting, ("corner", *at))
    return least_of_ratio(upper, sides, (1,), float(exact), lower=min(lower, upper))


def dominating(setting: Voters, parameters: Json, table: Table) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query."""
    chances = Chances(setting, parameters, table)
    error, unit = chances.error, chances.unit

    def points() -> Iterator[Point]:
        for _, _, p_one, p_other in chances:
            # So small a chance is 0.
            above = 0 if p_one <= error else min(p_one + error, unit)
            yield max(p_other - error, 0), above

    return DominatingPair.of_points(points(), unit)
