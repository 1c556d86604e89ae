"""Definitions of the DaRRM paper written out, in exact rationals where asked."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from dpopt.majority import MajoritySetting


def corners(r: Fraction, shift: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Vertices of a voter's polygon for e^epsilon = r (lemma 5.1)."""
    zero, one = Fraction(0), Fraction(1)
    b, c = (r + shift) / (r + 1), (1 - shift) / (r + 1)
    found = [(zero, zero), (one, one), (b, c), (c, b)]
    if shift:
        found += [(zero, shift), (shift, zero), (one, 1 - shift), (1 - shift, one)]
    return found


def law(p: tuple[Fraction, ...]) -> list[Fraction]:
    """Law of the number of ones, by summing over all outcomes."""
    found = [Fraction(0)] * (len(p) + 1)
    for outcome in product((0, 1), repeat=len(p)):
        chance = Fraction(1)
        for q, bit in zip(p, outcome, strict=True):
            chance *= q if bit else 1 - q
        found[sum(outcome)] += chance
    return found


def chance_of_one(p: tuple[Fraction, ...], gamma: list[Fraction]) -> Fraction:
    """Pr[DaRRM outputs 1], from algorithm 1."""
    half = Fraction(1, 2)
    total = Fraction(0)
    for ones, weight in enumerate(law(p)):
        majority = 1 if 2 * ones > len(p) else 0
        total += weight * (gamma[ones] * majority + (1 - gamma[ones]) * half)
    return total


def all_pairs(
    voters: int, r: Fraction, shift: Fraction
) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """Every multiset of corners, as the vectors p and p'."""
    for chosen in combinations_with_replacement(corners(r, shift), voters):
        yield tuple(pair[0] for pair in chosen), tuple(pair[1] for pair in chosen)


def worst_excess(
    gamma: list[Fraction], r: Fraction, shift: Fraction, target: Fraction, delta: Fraction
) -> Fraction:
    """Largest Pr[o | p] - target Pr[o | p'] - delta over both outputs and every multiset."""
    found = []
    for p, q in all_pairs(len(gamma) - 1, r, shift):
        one, other = chance_of_one(p, gamma), chance_of_one(q, gamma)
        found.append(one - target * other - delta)
        found.append((1 - one) - target * (1 - other) - delta)
    return max(found)


def reduced_multisets(setting: MajoritySetting) -> list[tuple[tuple[str, int], ...]]:
    """List the reduced set of the theorem, counts by corner, by trying all counts."""
    k, axes = setting.mechanisms, setting.axes
    found: dict[tuple[tuple[str, int], ...], None] = {}
    for counts in np.ndindex(*(setting.voters[axis.group].size + 1 for axis in axes), k + 1):
        *inner, ones = counts
        rest = k - sum(counts)
        used = [0] * len(setting.voters)
        for axis, n in zip(axes, inner, strict=True):
            used[axis.group] += n
        if rest < 0 or any(u > g.size for u, g in zip(used, setting.voters, strict=True)):
            continue
        for family in product(*(axis.names for axis in axes)):
            pairs = (*zip(family, inner, strict=True), ("11", ones), ("00", rest))
            found[tuple((name, int(n)) for name, n in pairs if n)] = None
    return list(found)
