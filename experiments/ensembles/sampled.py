r"""What the plurality of a sample of private voters spends, exactly.

M of K voters are drawn without replacement, and the class that most of them vote for is told; a
fair draw decides between classes that share the largest count. For two classes and epsilon-DP
voters this spends ceil(M / 2) epsilon (double subsampling): 2 m - 1 voters spend m epsilon. **For
more classes it spends more.** With K = 11 and C = 3 it is 1, 1, 2, 2.2039, 3, 4, 4, 5, 6, 6 and 7
epsilon for M = 1, ..., 11, at epsilon = 0.1; at M = 4 it depends on epsilon.

For M = C t it spends at least (C - 1) t epsilon: the theorem and its proof are on the page
docs/findings/votes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm

import numpy as np

from dpopt import ParameterError
from dpopt.table import SortedHistograms
from dpopt.verify import corner_count

Edges = tuple[int, ...]
Table = dict[tuple[int, ...], int]
MOST_CHOICES = 200_000


@dataclass(frozen=True)
class Spent:
    """The voters at which one output's probability changes most.

    Attributes:
        ratio: Pr[output 0 | P] / Pr[output 0 | P'], exactly.
        edges: number of voters that vote y with chance b and z with c under P, the other way round
            under P', by (y, z).
        loops: number of voters that always vote y, by y.
    """

    ratio: Fraction
    edges: dict[tuple[int, int], int]
    loops: tuple[int, ...]


def spent(inputs: SortedHistograms, kernel: Sequence[Fraction], ratio: Fraction) -> Spent:
    """Return the largest ratio of class 0's probabilities over all private voters, exactly.

    Over the corners that theorem 2 leaves, in integers: the tables of all loops at once, one voter
    more on an edge at a time.

    Args:
        inputs: the sorted histograms of K votes over C classes.
        kernel: k[lambda, c] by variable.
        ratio: r = e^epsilon of each voter, above 1.
    """
    voters, classes = inputs.records, inputs.categories
    if corner_count(voters, classes) > MOST_CHOICES:
        raise ParameterError(
            f"{voters} voters over {classes} classes have {corner_count(voters, classes):,} "
            f"choices of corners; at most {MOST_CHOICES:,} are walked over."
        )
    exact, shares = Fraction(ratio), [Fraction(share) for share in kernel]
    whole = lcm(*(share.denominator for share in shares))
    every = product(range(voters + 1), repeat=classes)
    histograms = [histogram for histogram in every if sum(histogram) == voters]
    told = inputs.variables_of(np.array(histograms))[:, 0].tolist()
    table = {h: int(whole * shares[v]) for h, v in zip(histograms, told, strict=True)}
    pairs, best = list(combinations(range(classes), 2)), Spent(Fraction(0), {}, ())
    # Level by level: signed numbers of voters on each pair of classes -> E a over the loops, times
    # a number of the level, which the two sides share.
    level: dict[Edges, Table] = {(0,) * len(pairs): table}
    for edges in range(voters + 1):
        for signed, values in level.items():
            other = level[tuple(-s for s in signed)]
            for loops, value in values.items():
                # Both distributions have the same support: 0 here is 0 there.
                if value * best.ratio.denominator > best.ratio.numerator * other[loops]:
                    named = {
                        (y, z) if s > 0 else (z, y): abs(s)
                        for (y, z), s in zip(pairs, signed, strict=True)
                        if s
                    }
                    best = Spent(Fraction(value, other[loops]), named, loops)
        if edges < voters:
            level = _grown(level, pairs, exact)
    return best


def _grown(
    level: dict[Edges, Table], pairs: Sequence[tuple[int, int]], ratio: Fraction
) -> dict[Edges, Table]:
    """Return the tables with one voter more on an edge: p T(n + e_y) + q T(n + e_z), r = p / q."""
    grown: dict[Edges, Table] = {}
    p, q = ratio.numerator, ratio.denominator
    for signed, values in level.items():
        for at, pair in enumerate(pairs):
            for sign in (1, -1):
                more = (*signed[:at], signed[at] + sign, *signed[at + 1 :])
                # No voters on both directions of a pair; and each choice is reached once.
                if signed[at] * sign < 0 or more in grown:
                    continue
                y, z = pair[::sign]
                loops = {(*n[:y], n[y] - 1, *n[y + 1 :]) for n in values if n[y]}
                grown[more] = {n: p * values[_up(n, y)] + q * values[_up(n, z)] for n in loops}
    return grown


def _up(counts: tuple[int, ...], y: int) -> tuple[int, ...]:
    return (*counts[:y], counts[y] + 1, *counts[y + 1 :])
