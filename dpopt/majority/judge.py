"""The proof that a noise function of integers is private for all voters.

`dpopt.verify` decides it: every multiset of the reduction theorem, in floats within a bound of
their rounding, and in exact arithmetic where these cannot tell. There are O(K^4) multisets for
Delta > 0. So those of many voters are first looked at all at once, by `CornerValues`, and
`dpopt.verify` settles what that leaves open.

The bound. With u = 2^-53, p and 1 - p are each rounded once from their exact values. One step of
T = p T1 + (1 - p) T0 with |T| <= 1 then adds at most 3 u (1 + 2 u) to the error; h itself is
rounded once. After K steps T is off by less than (3 K + 2) u (1 + 4 K u), and f = T - R T' by
(1 + R) times that and 3 u more, with R = e^(m epsilon), itself rounded once.
(4 K + 16) u (1 + R) covers it, for K below 10^6. For voters near 0 and 1, binomial distributions
are summed up over at most w ones. Their masses are made by the same steps, each off by at most 3 u
of itself for every voter; a sum of w products adds w u, and there are two: 2 w u (1 + R) more
covers them.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial
from operator import lt

import numpy as np

from dpopt import verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._types import Json
from dpopt.majority.program import row_of
from dpopt.majority.shifted import CornerValues
from dpopt.majority.voters import Voters, reduced_size
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import in_short
from dpopt.table import Table

_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}
# Voters at corners of all multisets together that floats leave open: a minute's, and a moment's.
MOST_OPEN, FEW_OPEN = 400_000, 300


def certify(setting: Voters, parameters: Json, table: Table, most: int = MOST_OPEN) -> Certificate:
    """Prove (m epsilon, delta)-DP of the majority of private voters.

    Args:
        setting: the voters and the target.
        parameters: of the setting, as a file has them.
        table: Pr[the majority's answer] for each number of votes.
        most: voters of the multisets that floats leave open; where there are more, these count as
            broken, by a little more than floats may be off.

    Raises:
        NotPrivateError: naming the voters on both sides, if a constraint fails.
        ParameterError: if it is no table of this setting.
    """
    if not isinstance(table, Table) or table.inputs != setting.domain:
        raise ParameterError("table is not one of the votes of these voters.")
    asked = json.dumps(["majority", parameters], sort_keys=True)
    return table.proof(asked, partial(_certified, setting, parameters, table, most))


def _certified(setting: Voters, parameters: Json, table: Table, most: int) -> Certificate:
    ones, zeros = table.weights[::2], table.weights[1::2]
    if not setting.contrary and any(map(lt, ones, zeros)):
        raise ParameterError(
            "table has votes whose majority is the less likely answer; contrary must be True."
        )
    voters, chances = verify.Voters(parameters, None), [*zeros[::-1], *ones]
    screened = partial(_screened, setting, voters) if setting.voter_delta else voters.screened
    try:
        others, close = screened(chances, table.total)
        sizes = [len(near) * (sum(n for _, n in placed) + 16) for _, placed, near in close]
        if sum(sizes) > most:
            slack, placed, near = close[0]
            # One that is broken by more than rounding tells by how much.
            voters.settled(chances, table.total, others, [(slack, placed, near[:1])])
            missed, at = -Fraction(slack) * Fraction(9, 8), ("corner", near[0], placed)
            raise _refusal(setting, at, missed, "no more than floats leave open at many others")
        verdict = voters.settled(chances, table.total, others, close)
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
    """Return what `dpopt.verify.Voters.screened` does, of very many multisets looked at at once."""
    values, error = screen(voters)
    budget = Fraction(voters.growth[0]) - 1 + 2 * voters.delta
    h = np.array([(2 * chance - total) / total for chance in chances])
    limits = float(budget - 3 * error), math.nextafter(float(budget + error), math.inf)
    reached = values.reaching(h, *limits, float(error), MOST_OPEN // 16)
    # f is twice what it is in probability.
    slack, at = (budget - Fraction(reached.top) - error) / 2, row_of(reached.worst)
    if slack >= 0:
        return verify.Verdict(reduced_size(setting), slack, at), []
    if reached.top > limits[1]:
        raise _refusal(setting, at, -slack)
    close = dict[verify.Placed, list[int]]()
    for _, counts in sorted(reached.near, key=lambda pair: -pair[0]):
        _, ones, placed = row_of(counts)
        close.setdefault(placed, []).append(ones)
    others, worst = verify.Verdict(reduced_size(setting), error, at), float(slack)
    return others, [(worst, placed, near) for placed, near in close.items()]


def screen(voters: verify.Voters) -> tuple[CornerValues, Fraction]:
    """Return the left sides of all rows, and the bound on their rounding; see the module."""
    ratio, shift = voters.growth[0], voters.shift
    chances = [voters.chance(letter)[0] for letter in "bc"]
    inner, rest = np.array([[float(p), float(1 - p)] for p in chances]).T
    shifts = float(shift), float(1 - shift)
    values = CornerValues(voters.count, inner, rest, shifts, float(ratio))
    steps = 4 * voters.count + 16 + 2 * values.width
    return values, Fraction(steps, 1 << 53) * (1 + Fraction(ratio))


def sides_of(setting: Voters, at: verify.Name) -> tuple[str, str]:
    """Return the voters of both neighbours at a row of `dpopt.verify`, in words."""
    _, ones, placed = at
    rest = setting.voters - ones - sum(n for _, n in placed)
    one, other = (
        ", ".join(
            f"{count} voters at {name}"
            for count, name in [(n, _WORDS[kind[side]]) for kind, n in placed]
            + [(ones, "1"), (rest, "0")]
            if count
        )
        for side in (0, 1)
    )
    return one, other


def _refusal(setting: Voters, at: verify.Name, missed: Fraction, why: str = "") -> NotPrivateError:
    """Return what says that a constraint is broken, or why it is only not proved."""
    sides, guarantee = sides_of(setting, at), setting.guarantee
    where, by = f"{sides[0]}; neighbour: {sides[1]}", roughly(missed)
    promise = in_short(guarantee)
    # Each value moves by 2^-54 and 2^-62 at most, Pr[output 1] by half of that, on both sides.
    if missed <= (1 + Fraction(setting.ratio)) / (1 << 54):
        why = why or "no more than the rounding of gamma itself explains"
    told = f"gamma breaks {promise} at output 1 by {by}: {where}."
    if why:
        told = (
            f"gamma is not proved {promise}: at output 1 it misses by {by}, {why}: {where}. The "
            "repair gives one that is private."
        )
    excess = float(missed) or math.ulp(0.0)
    return NotPrivateError(told, inputs=sides, output="1", excess=excess)
