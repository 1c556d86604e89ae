"""The exact proof that a noise function, given as integers, is private, and what it spends.

`dpopt.verify` checks every multiset of the reduction theorem: in floats with a bound on their
rounding error, then in exact arithmetic where the floats are inconclusive. For Delta > 0 there are
O(K^4) multisets, so `CornerValues` first screens all of them at once, and `dpopt.verify` decides
those that the screen leaves open.

Rounding error of the screen. Let u = 2^-53. p and 1 - p are each rounded once from their exact
values. One step T = p T1 + (1 - p) T0 with |T| <= 1 then adds at most 3 u (1 + 2 u) to the error;
h itself is rounded once. After K steps the error of T is below (3 K + 2) u (1 + 4 K u), and that of
f = T - R T' below (1 + R) times as much plus 3 u, where R = e^(m epsilon) is itself rounded once.
(4 K + 16) u (1 + R) covers this for K below 10^6. For voters near 0 and 1 the expectations are sums
over at most w values of a binomial variable. Its probabilities come from the same steps, with a
relative error of at most 3 u per voter; a sum of w products adds w u, and there are two such sums,
so 2 w u (1 + R) more covers them.

The privacy cost. Let P and P' be the probabilities of output 1 at a multiset of corners and at the
opposite one. The least e^epsilon is the largest (P - delta) / P' over the reduced set of multisets:
the reduction theorem holds for every ratio. Output 0 adds nothing: replacing every p by 1 - p maps
corners to corners and Pr[0] to Pr[1].
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from copy import copy
from fractions import Fraction
from functools import partial
from itertools import pairwise
from operator import lt

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt.majority.program import CornerValues, row_of
from dpopt.majority.voters import Voters, reduced_size
from dpopt.privacy.cost import DominatingPair, Least, Point, least_of_ratio
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import in_short
from dpopt.table import Table

# Probabilities of 1 by their letter in a corner's name.
_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}
# Work, in voters summed over the multisets that floats leave open: takes a minute, and a moment.
MOST_OPEN, FEW_OPEN = 400_000, 300
# Multisets enumerated in Python's integers, which takes about a minute; the bits of these integers
# beyond those of the least positive probability; and the most of them.
_MOST_POINTS, _SPARE_BITS, _MOST_BITS = 4_000_000, 320, 1 << 15


def certify(setting: Voters, table: Table, most: int = MOST_OPEN) -> Certificate:
    """Prove (m epsilon, delta)-DP of the majority of private voters.

    Args:
        setting: the voters and the target.
        table: Pr[the majority's answer] for each number of votes.
        most: limit on the voters summed over the multisets that floats leave open; beyond it gamma
            is refused, with an excess a little above the rounding error of floats.

    Raises:
        NotPrivateError: naming the voters on both sides, if a constraint fails.
        ParameterError: if the table does not belong to this setting.
    """
    if not isinstance(table, Table) or table.inputs != setting.domain:
        raise ParameterError("table is not one of the votes of these voters.")
    statement = json.dumps(["majority", setting.to_dict()], sort_keys=True)
    return table.proof(statement, partial(_certified, setting, table, most))


def _certified(setting: Voters, table: Table, most: int) -> Certificate:
    ones, zeros = table.weights[::2], table.weights[1::2]
    if not setting.contrary and any(map(lt, ones, zeros)):
        raise ParameterError(
            "table has votes whose majority is the less likely answer; contrary must be True."
        )
    voters, chances = verify.Voters(setting.to_dict(), None), [*zeros[::-1], *ones]
    screened = partial(_screened, setting, voters) if setting.voter_delta else voters.screened
    try:
        decided, close = screened(chances, table.total)
        # Exact arithmetic costs about one step per voter off 0 and 1, and 16 per multiset.
        sizes = [len(ones_at) * (sum(n for _, n in placed) + 16) for _, placed, ones_at in close]
        if sum(sizes) > most:
            slack, placed, ones_at = close[0]
            # Decide one multiset: if it fails by more than rounding, the error states by how much.
            voters.settled(chances, table.total, decided, [(slack, placed, ones_at[:1])])
            missed, at = -Fraction(slack) * Fraction(9, 8), ("corner", ones_at[0], placed)
            raise _refusal(setting, at, missed, "no more than floats leave open at many others")
        verdict = voters.settled(chances, table.total, decided, close)
    except verify.Refused as refusal:
        raise _refusal(setting, refusal.at, Fraction(refusal.missed)) from None
    except verify.Malformed as error:
        raise ParameterError(f"the votes of {setting.voters} voters: {error}.") from None
    one, other = sides_of(setting, verdict.at)
    return Certificate(
        claim=table.inputs.claim(),
        guarantee=setting.guarantee,
        constraints=verdict.rows,
        slack=Fraction(verdict.slack),
        tightest=f"{one}; neighbour: {other}; output 1",
    )


def _screened(
    setting: Voters, voters: verify.Voters, chances: list[int], total: int
) -> tuple[verify.Verdict, list[verify.Close]]:
    """Return what `dpopt.verify.Voters.screened` returns, pricing all multisets at once."""
    values, error = screen(voters)
    budget = Fraction(voters.growth[0]) - 1 + 2 * voters.delta
    # h(l) = 2 Pr[output 1 | L = l] - 1, over l = 0..K.
    h = np.array([(2 * chance - total) / total for chance in chances])
    limits = float(budget - 3 * error), math.nextafter(float(budget + error), math.inf)
    top, worst, multisets = values.reaching(h, *limits, float(error), MOST_OPEN // 16)
    # f is in units of h, so it is twice a difference of probabilities.
    slack, at = (budget - Fraction(top) - error) / 2, row_of(worst)
    if slack >= 0:
        return verify.Verdict(reduced_size(setting), slack, at), []
    if top > limits[1]:
        raise _refusal(setting, at, -slack)
    close = dict[verify.Placed, list[int]]()
    for _, counts in sorted(multisets, key=lambda pair: -pair[0]):
        _, ones, placed = row_of(counts)
        close.setdefault(placed, []).append(ones)
    decided = verify.Verdict(reduced_size(setting), error, at)
    return decided, [(float(slack), placed, ones_at) for placed, ones_at in close.items()]


def screen(voters: verify.Voters) -> tuple[CornerValues, Fraction]:
    """Return the oracle for all left-hand sides, and their rounding error (see the module)."""
    exp_epsilon, voter_delta = voters.growth[0], voters.shift
    # At bc the voter says 1 with b, at cb with c: lower ends of both.
    lower_ends = [voters.chance(corner)[0] for corner in "bc"]
    inner, complement = np.array([[float(p), float(1 - p)] for p in lower_ends]).T
    deltas = float(voter_delta), float(1 - voter_delta)
    values = CornerValues(voters.count, inner, complement, deltas, float(exp_epsilon))
    steps = 4 * voters.count + 16 + 2 * values.width
    return values, Fraction(steps, 1 << 53) * (1 + Fraction(exp_epsilon))


def sides_of(setting: Voters, at: verify.Name) -> tuple[str, str]:
    """Describe in words where the voters sit under each neighbour, at a row of `dpopt.verify`."""
    _, ones, placed = at
    zeros = setting.voters - ones - sum(n for _, n in placed)
    one, other = (
        ", ".join(
            f"{count} voters at {name}"
            for count, name in [(n, _WORDS[kind[side]]) for kind, n in placed]
            + [(ones, "1"), (zeros, "0")]
            if count
        )
        for side in (0, 1)
    )
    return one, other


def _refusal(setting: Voters, at: verify.Name, missed: Fraction, why: str = "") -> NotPrivateError:
    """Return the error for a violated constraint, or for one that ``why`` leaves unproved."""
    sides, guarantee = sides_of(setting, at), setting.guarantee
    where, by = f"{sides[0]}; neighbour: {sides[1]}", roughly(missed)
    promise = in_short(guarantee)
    # Rounding moves each gamma(l) by at most 2^-54 + 2^-62, and Pr[output 1] by half of it, under
    # both neighbours: a smaller excess may be due to it.
    if missed <= (1 + Fraction(setting.ratio)) / (1 << 54):
        why = why or "no more than the rounding of gamma itself explains"
    message = f"gamma breaks {promise} at output 1 by {by}: {where}."
    if why:
        message = (
            f"gamma is not proved {promise}: at output 1 it misses by {by}, {why}: {where}. The "
            "repair gives one that is private."
        )
    excess = float(missed) or math.ulp(0.0)
    return NotPrivateError(message, inputs=sides, output="1", excess=excess)


class Chances:
    """Pr[1] under both neighbours at all multisets of corners, as integers over 2^bits.

    Each is off by at most ``error`` units: a step adds one unit for the rounding of a voter's p and
    one for its own rounding. No positive probability is below 2^240 units.
    """

    def __init__(self, setting: Voters, table: Table) -> None:
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
        self.voters, self.total = verify.Voters(setting.one_query.to_dict(), None), table.total
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


def least_of_gamma(setting: Voters, table: Table, delta: float | None) -> Least:
    """Return bounds on the least epsilon of a gamma for a given delta.

    Its e^epsilon is the largest (P - delta) / P', or 1 if that is below: privacy does not constrain
    ratios below 1. It is infinite where P > delta and P' is 0.
    """
    exact = Fraction(_checks.real("delta", delta, 0.0, 1.0, open_upper=True))
    chances, largest, at = Chances(setting, table), (1, 1), (0, ())
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


def dominating(setting: Voters, table: Table) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query."""
    chances = Chances(setting, table)
    error, unit = chances.error, chances.unit

    def points() -> Iterator[Point]:
        for _, _, p_one, p_other in chances:
            # So small a chance is 0.
            above = 0 if p_one <= error else min(p_one + error, unit)
            yield max(p_other - error, 0), above

    return DominatingPair.of_points(points(), unit)
