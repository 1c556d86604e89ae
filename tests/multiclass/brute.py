"""A plurality judged in integers over every corner of every voter, in order: nothing reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np

from dpopt.privacy.exact import exp_lower, exp_upper
from dpopt.table import SortedHistograms, Table
from tests.multiclass.pairs import corners
from tests.oracles import compositions, counts_of_votes

BITS = 160
ONE = 1 << BITS

Pmf = tuple[int, ...]
"""Chances of the classes, over 2^BITS."""


def corner_pairs(classes: int, epsilon: float) -> list[tuple[Pmf, Pmf]]:
    """The C^2 extreme pairs: both pmfs at y, or b at y and c at z against the other way round."""
    ratio = exp_upper(epsilon, 400)
    b = int(ratio / (1 + ratio) * ONE)
    pairs = corners(classes, Fraction(b, ONE - b))
    return [(scaled(one), scaled(other)) for one, other in pairs]


def scaled(pmf: Sequence[Fraction]) -> Pmf:
    return tuple(int(p * ONE) for p in pmf)


def told(known: Callable[[Pmf], Sequence[int]], pmfs: Sequence[Pmf]) -> list[int]:
    """The weights of the outputs where voter i votes by distributions[i]: a sum over all counts."""
    sums = [0] * len(pmfs[0])
    for histogram, mass in counts_of_votes(pmfs).items():
        for y, weight in enumerate(known(histogram)):
            sums[y] += mass * weight
    return sums


def weights_of(table: Table) -> Callable[[Pmf], list[int]]:
    """The weights of all classes by histogram."""
    inputs = table.inputs
    assert isinstance(inputs, SortedHistograms)
    every = compositions(inputs.records, inputs.categories)
    known = {h: table.row(np.array(h)) for h in every}
    return lambda histogram: known[histogram]


def choices(table: Table, epsilon: float) -> Iterator[tuple[list[int], list[int]]]:
    """Weights of the outputs on both sides, for all choices of corners of all voters, in order."""
    known, inputs = weights_of(table), table.inputs
    assert isinstance(inputs, SortedHistograms)
    for chosen in product(corner_pairs(inputs.categories, epsilon), repeat=inputs.records):
        yield told(known, [one for one, _ in chosen]), told(known, [other for _, other in chosen])


def largest_excess(
    table: Table, epsilon: float, exponent: Fraction, *, sets: bool = False
) -> Fraction:
    """The largest P(S) - e^exponent P'(S) of all choices: of single outputs, or of all sets."""
    inputs = table.inputs
    assert isinstance(inputs, SortedHistograms)
    budget, classes = exp_lower(exponent), range(inputs.categories)
    sizes = range(1, inputs.categories) if sets else range(1, 2)
    subsets = list(chain.from_iterable(combinations(classes, size) for size in sizes))
    whole = table.total << (BITS * inputs.records)
    most = max(
        sum(one[y] for y in subset) * budget.denominator
        - sum(other[y] for y in subset) * budget.numerator
        for one, other in choices(table, epsilon)
        for subset in subsets
    )
    return Fraction(most, whole * budget.denominator)
