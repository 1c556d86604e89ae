"""Reveal-or-Obscure by its definitions: all data sets, all neighbours, exact rationals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import exp, factorial
from typing import Any

from dpopt.roo.setting import UNIT
from tests.oracles import Counts, neighbours

Transition = tuple[int, int, int, int]
"""Smallest count and a category's count in one data set, and the same two in its neighbour."""


def histograms(records: int, categories: int, most: int | None = None) -> Iterator[Counts]:
    """All counts of ``categories`` categories up to their order, largest first."""
    most = records if most is None else most
    if categories == 1:
        if records <= most:
            yield (records,)
        return
    for largest in range(min(records, most), -1, -1):
        if largest * categories < records:
            return
        for rest in histograms(records - largest, categories - 1, largest):
            yield (largest, *rest)


def obscuring(sampler: Any, m: int) -> Fraction:
    """q_m of a design of a rule in the smallest count, exactly."""
    return Fraction(sampler.setting.obscuring_weight(sampler.table, m), UNIT)


def chance(counts: Counts, p: Sequence[Fraction]) -> Fraction:
    """The multinomial chance of counts under P."""
    weight = Fraction(factorial(sum(counts)))
    for count, share in zip(counts, p, strict=True):
        weight *= share**count / factorial(count)
    return weight


def lower_bound(n: int, k: int, epsilon: float) -> float:
    """max over d categories with j records each of (d j / n) / (1 + d e^{epsilon j} / (k - d))."""
    return max(
        (d * j / n) / (1 + d * exp(epsilon * j) / (k - d))
        for d in range(1, k)
        for j in range(1, n // d + 1)
    )


@cache
def transitions(records: int, categories: int) -> frozenset[Transition]:
    """What neighbours can do to the smallest count and to the count of some category."""
    found = set()
    for before in histograms(records, categories):
        low = min(before)
        for after in neighbours(before):
            new_low = min(after)
            found.update((low, c, new_low, d) for c, d in zip(before, after, strict=True))
    return frozenset(found)


@dataclass(frozen=True)
class Rule:
    """A rule in the smallest count, and the distribution that it gives to a category."""

    records: int
    categories: int
    q: Sequence[Fraction]

    def pmf(self, minimum: int, count: int) -> Fraction:
        """Chance of a category with this count: uniform with probability q, else a record's."""
        q = self.q[minimum]
        return q * Fraction(1, self.categories) + (1 - q) * Fraction(count, self.records)

    @cached_property
    def pairs(self) -> set[tuple[Fraction, Fraction]]:
        """A category's chance in one data set and in its neighbour, for all of them."""
        moved = transitions(self.records, self.categories)
        pmfs = {place: self.pmf(*place) for t in moved for place in (t[:2], t[2:])}
        return {(pmfs[t[:2]], pmfs[t[2:]]) for t in moved}

    def worst_ratio(self) -> Fraction | None:
        """The largest chance after over chance before; None if one becomes possible."""
        worst = Fraction(1)
        for before, after in self.pairs:
            if after > worst * before:
                if not before:
                    return None
                worst = after / before
        return worst

    def least_slack(self, r: Fraction) -> Fraction:
        """The smallest r K(y | x) - K(y | x')."""
        return min(r * before - after for before, after in self.pairs)
