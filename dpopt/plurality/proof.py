"""The judge: exact proofs that a choice of one class is private, from integers and sizes alone.

- a table, a row of integers for each sorted histogram: every inequality between neighbouring
  histograms is decided in integers (`prove_table`). Relabelling the classes maps neighbours to
  neighbours, so that one pair of each kind decides all;
- a step s of permute-and-flip or of the exponential mechanism, whose privacy for every number of
  records and classes is a theorem: s^2 <= e^epsilon is decided in rationals (`prove_step`).

A replaced record changes the difference of two counts by 2 at most. So a class of gap g, taken
with chance s^-g in random order, has its probability multiplied by s^2 at most (McKenna, Sheldon
2020), and so has one that is drawn in proportion to s^count (McSherry, Talwar 2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from dpopt._errors import NotPrivateError
from dpopt._numbers import roughly
from dpopt.ballots import Partitions, scale, worst
from dpopt.ballots.table import Units
from dpopt.privacy.dominating import DominatingPair, Point, likelihood_tests, upper_hull
from dpopt.privacy.exact import Certificate, decisive_ratio
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.least import Least, least_of_ratio

Laws = tuple[str, str, list[int], list[int]]
"""Two neighbouring histograms in words, and their laws with classes that change alike as one."""

NAMES = {
    "optimal": "the best plurality",
    "ladder": "the ladder",
    "permute-and-flip": "permute-and-flip",
    "exponential": "the exponential mechanism",
}

THEOREMS = {
    "permute-and-flip": "McKenna, Sheldon 2020",
    "exponential": "McSherry, Talwar 2007",
}


def prove_table(
    partitions: Partitions, units: Units, guarantee: Guarantee, bits: int, rule: str
) -> Certificate:
    """Prove that a table is epsilon-DP between all histograms that differ in one replaced record.

    Args:
        partitions: K and C.
        units: a row of integers for each sorted histogram, over `dpopt.ballots.scale`.
        guarantee: epsilon; delta is 0.
        bits: of the scale.
        rule: one of `NAMES`, for the claim.

    Raises:
        NotPrivateError: naming two histograms and the class, if an inequality fails.
    """
    weights = [weight for row in units for weight in row]
    first, second = (side.tolist() for side in partitions.neighbours)
    taken, given = first + second, second + first

    @cache
    def worst_at(ratio: Fraction) -> tuple[int, int, int]:
        """Return the least numerator of r k[w] - k[v], and v, w."""
        top, bottom = ratio.numerator, ratio.denominator
        up, down = [top * weight for weight in weights], [bottom * weight for weight in weights]
        slacks = (up[w] - down[v] for v, w in zip(taken, given, strict=True))
        return min(zip(slacks, taken, given, strict=True))

    ratio = decisive_ratio(guarantee, None, lambda r: Fraction(worst_at(r)[0]))
    least, v, w = worst_at(ratio)
    slack = Fraction(least, ratio.denominator * scale(partitions.classes, bits))
    sides = _side(partitions, v), _side(partitions, w)
    if least < 0:
        raise NotPrivateError(
            f"{NAMES[rule]} is not {guarantee.epsilon:g}-DP: a class goes from {sides[1]} to "
            f"{sides[0]}, and is above e^epsilon times as likely by {roughly(-slack)}.",
            inputs=(sides[1], sides[0]),
            output="that class",
            excess=float(-slack) or math.ulp(0.0),
        )
    alone = "; of these sizes alone" if rule == "ladder" else ""
    return Certificate(
        claim=f"{NAMES[rule]} is private between all neighbouring histograms of "
        f"{partitions.voters} records over {partitions.classes} classes, each pair "
        f"decided{alone}",
        guarantee=guarantee,
        ratio=ratio,
        constraints=len(taken),
        slack=slack,
        tightest=f"a class that goes from {sides[1]} to {sides[0]}",
        arithmetic="exact integers",
        bits=0,
    )


def prove_step(
    rule: str, step: Fraction, guarantee: Guarantee, records: int, classes: int
) -> Certificate:
    """Prove a rule of step s by its theorem: s^2 <= e^epsilon.

    Args:
        rule: "permute-and-flip" or "exponential".
        step: s, at least 1.
        guarantee: epsilon; delta is 0.
        records: K, for the claim; the theorem holds for each.
        classes: C, likewise.

    Raises:
        NotPrivateError: if s^2 is above e^epsilon.
    """
    square = step * step
    ratio = decisive_ratio(guarantee, None, lambda r: r - square)
    if square > ratio:
        raise NotPrivateError(
            f"{NAMES[rule]} is not {guarantee.epsilon:g}-DP by theorem: the square of its step is "
            f"above e^epsilon by {roughly(square - ratio)}.",
            excess=float(square - ratio) or math.ulp(0.0),
        )
    return Certificate(
        claim=f"{NAMES[rule]} of step s is private by theorem ({THEOREMS[rule]}), for {records} "
        f"records over {classes} classes as for all, since s^2 <= e^epsilon",
        guarantee=guarantee,
        ratio=ratio,
        constraints=1,
        slack=ratio - square,
        tightest="s^2 <= e^epsilon",
        arithmetic="exact rationals",
        bits=0,
    )


def least_of_table(partitions: Partitions, units: Units) -> Least:
    """Return the least epsilon of a table for delta = 0, enclosed: its worst ratio is attained."""
    try:
        found = worst(partitions, units)
    except NotPrivateError:
        return least_of_ratio(None, ("a class that can be output", "a neighbour's cannot"), (0,))
    words = [
        f"count {histogram[found.place]} in counts {_told(tuple(sorted(histogram, reverse=True)))}"
        for histogram in (found.first, found.second)
    ]
    return least_of_ratio(found.ratio, (words[0], words[1]), (0,))


def dominating_of_table(partitions: Partitions, units: Units, bits: int) -> DominatingPair:
    """Return the tight dominating pair over all neighbouring histograms."""
    total = scale(partitions.classes, bits)
    points: Iterator[Point] = (
        point
        for _, _, row, other in laws_of_neighbours(partitions, units)
        for one, two in ((row, other), (other, row))
        for point in likelihood_tests(one, two, total.bit_length())
    )
    return DominatingPair.of_points(upper_hull(points), total)


def laws_of_neighbours(partitions: Partitions, units: Units) -> Iterator[Laws]:
    """Yield the laws of neighbouring histograms, one pair of each kind.

    A record moves from a class of one count to a class of another, or of the same. The two stand
    for themselves; the other classes of each count are one outcome.
    """
    last = partitions.classes - 1
    for state, histogram in enumerate(partitions.states):
        levels = partitions.levels[state]
        own = dict(zip((count for count, _ in levels), units[state], strict=True))
        for i, (loser, many) in enumerate(levels):
            if loser == 0:
                continue
            for j, (gainer, _) in enumerate(levels):
                if i == j and many < 2:
                    continue
                changed = list(histogram)
                changed[histogram.index(loser)] -= 1
                # Another class of the same count stands further right.
                changed[last - histogram[::-1].index(gainer)] += 1
                after = tuple(sorted(changed, reverse=True))
                to = partitions.place[after]
                its = {
                    count: weight
                    for (count, _), weight in zip(partitions.levels[to], units[to], strict=True)
                }
                row, other = [own[loser], own[gainer]], [its[loser - 1], its[gainer + 1]]
                for h, (count, present) in enumerate(levels):
                    rest = present - (h == i) - (h == j)
                    if rest:
                        row.append(rest * own[count])
                        other.append(rest * its[count])
                yield f"counts {_told(histogram)}", f"counts {_told(after)}", row, other


def _side(partitions: Partitions, variable: int) -> str:
    histogram = partitions.states[int(partitions.state_of[variable])]
    return f"count {int(partitions.counts[variable])} in counts {_told(histogram)}"


def _told(histogram: tuple[int, ...]) -> str:
    """Return a histogram in words, its zeros counted."""
    positive = [str(count) for count in histogram if count]
    zeros = len(histogram) - len(positive)
    return ", ".join(positive) + (f" and {zeros} of 0" if zeros else "")
