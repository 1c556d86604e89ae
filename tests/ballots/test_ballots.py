"""Sorted histograms, their neighbours, and the laws of the rules, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.ballots import (
    Partitions,
    checked,
    exponential,
    flat,
    law,
    partition_count,
    permute_and_flip,
    quantised,
    scale,
)


@pytest.mark.parametrize(("voters", "classes"), [(1, 2), (5, 3), (6, 4), (4, 6)])
def test_partitions_are_the_sorted_histograms(voters: int, classes: int) -> None:
    partitions = Partitions(voters, classes)
    histograms = [h for h in product(range(voters + 1), repeat=classes) if sum(h) == voters]
    expected = {tuple(sorted(h, reverse=True)) for h in histograms}
    assert set(partitions.states) == expected
    assert len(partitions.states) == partition_count(voters, classes) == len(expected)
    assert list(partitions.states) == sorted(expected, reverse=True)
    assert sum(partitions.orders) == comb(voters + classes - 1, classes - 1) == len(histograms)


@pytest.mark.parametrize(("voters", "classes"), [(1, 3), (4, 3), (5, 4), (3, 5)])
def test_neighbours_are_those_of_all_histograms(voters: int, classes: int) -> None:
    partitions, expected = Partitions(voters, classes), set()
    for h in product(range(voters + 1), repeat=classes):
        if sum(h) != voters:
            continue
        for a, b in permutations(range(classes), 2):
            if h[a] == 0:
                continue
            moved = list(h)
            moved[a] -= 1
            moved[b] += 1
            for v, w in zip(partitions.classes_of(h), partitions.classes_of(moved), strict=True):
                if v != w:
                    expected.add((min(v, w), max(v, w)))
    first, second = partitions.neighbours
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected


def flipped(counts: tuple[int, ...], step: Fraction) -> list[Fraction]:
    """Permute-and-flip by its definition: every order of the classes."""
    found = [Fraction(0)] * len(counts)
    for order in permutations(range(len(counts))):
        left = Fraction(1, factorial(len(counts)))
        for y in order:
            chance = 1 / step ** (max(counts) - counts[y])
            found[y] += left * chance
            left *= 1 - chance
    return found


@pytest.mark.parametrize("counts", [(3, 1), (4, 4, 1), (5, 3, 3, 0), (2, 2, 2, 1, 0)])
def test_permute_and_flip_by_definition(counts: tuple[int, ...]) -> None:
    step = Fraction(5, 4)
    assert list(permute_and_flip(counts, step)) == flipped(counts, step)
    weights = [step**count for count in counts]
    assert list(exponential(counts, step)) == [w / sum(weights) for w in weights]


@pytest.mark.parametrize(("voters", "classes"), [(7, 3), (6, 4), (12, 6)])
def test_units_keep_ties_and_sums(voters: int, classes: int) -> None:
    partitions = Partitions(voters, classes)
    shares = [
        dict(zip(state, permute_and_flip(state, Fraction(3, 2)), strict=True))
        for state in partitions.states
    ]
    point = [
        shares[s][c] for s, c in zip(partitions.state_of, partitions.counts.tolist(), strict=True)
    ]
    units = quantised(partitions, point)
    assert checked(partitions, units) == units
    assert np.allclose(flat(partitions, units), np.array(point, dtype=float), rtol=1e-15, atol=0)
    histogram = [0, *[1] * (classes - 2), voters - classes + 2]
    weights = law(partitions, units, histogram)
    assert sum(weights) == scale(classes)
    assert len(set(weights[1:-1])) == 1
    with pytest.raises(ParameterError, match="does not add up"):
        checked(partitions, ((units[0][0] + 1, *units[0][1:]), *units[1:]))


def test_too_many_histograms_are_refused_with_their_number() -> None:
    with pytest.raises(ParameterError, match=r"200 ballots over 10 classes have [\d,]+ sorted"):
        Partitions(200, 10)


@pytest.mark.parametrize(
    "point",
    [
        None,
        0.5,
        [0.5, 0.5],
        ["0.5", "0.5", "0.5"],
        [0.5, 0.5, float("nan")],
        [0.5, 0.5, float("inf")],
        [-0.5, 1.5, 0.5],
        [0.0, 0.0, 0.5],
        np.full((3, 1), 0.5),
        [Fraction(1, 2), Fraction(1, 2)],
    ],
    ids=str,
)
def test_a_point_that_is_no_kernel_is_refused(point: Any) -> None:
    """Two ballots over two classes have the three variables (2, 0), (0, 2) and (1, 1)."""
    assert quantised(Partitions(2, 2), [0.5, 0.5, 0.5])
    with pytest.raises(ParameterError, match="point ") as caught:
        quantised(Partitions(2, 2), point)
    assert str(caught.value).count(". ") == 0
