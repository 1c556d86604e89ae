"""Reveal-or-Obscure by its definitions: all data sets, all neighbours, exact rationals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import exp, factorial, floor
from typing import Any

from dpopt import roo
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


def full_weights(setting: roo.RooSetting, rule: str) -> list[int]:
    """q_0..q_M over 2^62, those left out included."""
    weights, size = roo.rule_weights(setting, rule), setting.largest_minimum + 1
    return [*weights] * size if rule == "roo" else [*weights, *[0] * (size - len(weights))]


def floored(table: Sequence[int], unit: int, counts: Sequence[int]) -> list[int]:
    """The weights of counts: of a table, and beyond it their multiples of a unit."""
    return [table[count] if count < len(table) else count * unit for count in counts]


def floor_ratio(n: int, k: int, table: Sequence[int], unit: int) -> Fraction:
    """The largest ratio over all neighbours and all categories."""
    worst = (0, 1)
    for counts in histograms(n, k):
        before = floored(table, unit, counts)
        for moved in neighbours(counts):
            after = floored(table, unit, moved)
            for a, b in zip(before, after, strict=True):
                if b * sum(before) * worst[1] > worst[0] * a * sum(after):
                    worst = (b * sum(before), a * sum(after))
    return Fraction(*worst)


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


@dataclass(frozen=True)
class Case:
    """One setting, e in the place of e^epsilon, and the recursion of one of the papers at it."""

    n: int
    k: int
    e: Fraction
    # Whether the recursion is the conference paper's, without u', v' and w'.
    conference: bool = False

    @property
    def last(self) -> int:
        """M = floor(n / k)."""
        return self.n // self.k

    @property
    def free(self) -> int:
        """The largest m that lemma 2 is about: floor(1 / (e - 1)), at most M."""
        return min(self.last, floor(1 / (self.e - 1)))

    def u(self, m: int) -> Fraction:
        """u_m, (65)."""
        return Fraction(1, self.k) - Fraction(m + 1, self.n)

    def v(self, m: int) -> Fraction:
        """v_m, (66)."""
        return self.e * (Fraction(1, self.k) - Fraction(m, self.n))

    def w(self, m: int) -> Fraction:
        """w_m, (67)."""
        return (m * self.e - m - 1) / self.n

    def t(self, m: int) -> Fraction:
        """w_m / (u_m - v_m), (83)."""
        return self.w(m) / (self.u(m) - self.v(m))

    @cached_property
    def primed(self) -> tuple[Fraction, Fraction, Fraction]:
        """u', v' and w', (62) to (64)."""
        part = Fraction(1, self.k) - 1
        return part - Fraction(1, self.n), self.e * part, self.e - 1 - Fraction(1, self.n)

    def first(self, m: int) -> Fraction:
        """f_1(m, q_{m-1}), for m < n / k."""
        return (self.u(m) * self.q[m - 1] - self.w(m)) / self.v(m)

    def second(self, m: int) -> Fraction:
        """f_2(q_{m-1})."""
        u, v, w = self.primed
        return (v * self.q[m - 1] + w) / u

    @cached_property
    def q(self) -> list[Fraction]:
        """q_0, ..., q_M by algorithm 2."""
        n, k = self.n, self.k
        q = [1 / (1 + Fraction(n, k) * (self.e - 1))]
        u, v, w = self.primed
        for m in range(1, self.last + 1):
            terms = [Fraction(0)]
            if m * k < n:
                terms.append((self.u(m) * q[-1] - self.w(m)) / self.v(m))
            if not self.conference:
                terms.append((v * q[-1] + w) / u)
            q.append(max(terms))
        return q
