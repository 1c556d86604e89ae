"""Extreme pairs of distributions on C classes: the corners, listed and counted.

A voter has the distribution P on C classes under one data set and P' under its neighbour. With r =
e^epsilon it is an *(r, Delta)-pair* if P(S) <= r P'(S) + Delta and P'(S) <= r P(S) + Delta for all
sets S. The theorems on their corners, and on which choices of them decide privacy, are proved on
the page docs/theorems/classes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import comb, perm

from tests.oracles import compositions

Pmf = tuple[Fraction, ...]
Pair = tuple[Pmf, Pmf]


def corners(classes: int, ratio: Fraction, voter_delta: Fraction = Fraction(0)) -> list[Pair]:
    """Return the corners (P, P') of a voter's pairs of distributions, exactly: theorems 1 and 3."""
    r, delta = ratio, voter_delta
    b = r / (1 + r)
    symbols = [delta, (1 - delta) * b, (1 - delta) * (1 - b), Fraction(0)]
    if not delta:
        symbols = symbols[1:3]
    found = []
    for runs in range(1, len(symbols) + 1):
        for more in compositions(len(symbols) - runs, runs):
            for named in permutations(range(classes), runs):
                labels = [y for y, size in zip(named, more, strict=True) for _ in range(1 + size)]
                one, other = (image(classes, labels, side) for side in (symbols, symbols[::-1]))
                found.append((one, other))
    return found


def corner_count(classes: int, *, approximate: bool = False) -> int:
    """Return the number of `corners`: C^2, or that of theorem 3 for Delta > 0."""
    symbols = 4 if approximate else 2
    return sum(comb(symbols - 1, runs - 1) * perm(classes, runs) for runs in range(1, symbols + 1))


def reduced_count(voters: int, classes: int, *, approximate: bool = False) -> int:
    """Return the number of choices of K corners that theorem 2, or 4 for Delta > 0, leaves."""
    couples = (corner_count(classes, approximate=approximate) - classes) // 2
    kinds = couples + classes
    # (1 + x)^q / (1 - x)^(q + C): how many couples are turned, and a multiset of kinds.
    return sum(
        comb(couples, turned) * comb(voters - turned + kinds - 1, kinds - 1)
        for turned in range(min(couples, voters) + 1)
    )


def image(classes: int, labels: Sequence[int], masses: Sequence[Fraction]) -> Pmf:
    """Return the distribution in which each label has the masses that are its own."""
    pmf = [Fraction(0)] * classes
    for label, mass in zip(labels, masses, strict=True):
        pmf[label] += mass
    return tuple(pmf)
