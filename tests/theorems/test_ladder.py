"""The ladder for any number of ballots: the steps of its proof against fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import pytest

from dpopt.table import SortedHistograms
from experiments.ensembles.ladder import (
    BITS,
    LEAST,
    Gaps,
    Ladder,
    intervals,
    ladder,
    listed,
    spent_by_any_number,
    surely_broken,
)

Histogram = tuple[int, ...]

# The values of the specification, exact.
LADDER = [
    ((6, 5, 4), "2", "5/9 5/18 1/6"),
    ((9, 6, 0), "2", "475/576 95/576 1/96"),
    (
        (10, 7, 7, 4, 2),
        "3/2",
        "3856543/7381125 1366876/7381125 1366876/7381125 778/10935 656/18225",
    ),
]


@pytest.mark.parametrize(("counts", "ratio", "expected"), LADDER)
def test_ladder_fractions(counts: Histogram, ratio: str, expected: str) -> None:
    assert ladder(counts, Fraction(ratio)) == tuple(map(Fraction, expected.split()))


def moved(histogram: Histogram, loser: int, gainer: int) -> Histogram:
    counts = list(histogram)
    counts[loser] -= 1
    counts[gainer] += 1
    return tuple(counts)


def pairs(voters: int, classes: int) -> Iterator[tuple[Histogram, Histogram, int, int]]:
    """All neighbours up to the order of the first one's classes."""
    for state in SortedHistograms(voters, classes).listed():
        for loser, gainer in permutations(range(classes), 2):
            if state[loser]:
                yield state, moved(state, loser, gainer), loser, gainer


def on_top(histogram: Histogram, y: int) -> bool:
    return histogram[y] == max(histogram)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("voters", "classes", "ratio"),
    [(7, 3, "11/10"), (6, 4, "3/2"), (5, 5, "2"), (11, 7, "11/10"), (11, 7, "5/4")],
)
def test_private_exactly_if_a_and_b_hold(voters: int, classes: int, ratio: str) -> None:
    """For one K: A and B of its pairs are the ratios of its pairs."""
    r = Fraction(ratio)
    pmf = Ladder(r).pmf
    private, conditions = True, True
    for one, two, a, b in pairs(voters, classes):
        for y in range(classes):
            first, second = pmf(one)[y], pmf(two)[y]
            private &= first <= r * second and second <= r * first
            if not (on_top(one, y) and on_top(two, y)):
                continue
            conditions &= first <= r * second and second <= r * first
            shared = b == y and any(on_top(one, z) for z in range(classes) if z not in (y, a))
            moved_down = a != y and b != y and on_top(one, a) and one[b] <= one[a] - 2
            if shared or moved_down:
                conditions &= first <= second
    assert private == conditions
    assert private == (4 * r >= classes - 2)


def phi(gaps: Gaps, root: Fraction) -> Fraction:
    """The recursion of lemma 2, step by step; root is x^(1/2)."""
    x = root**2
    total = Fraction(1)
    for place, gap in enumerate(gaps):
        if gap < 2:
            continue
        counts, weight = [-g for g in gaps], Fraction(1)
        while max(counts) - counts[place] >= 2:
            top = max(counts)
            counts[counts.index(top)] -= 1
            counts[place] += 1
            weight *= x / root ** (top - max(counts))
        if counts[place] < max(counts):
            weight *= x
        total += weight * phi(tuple(max(counts) - count for count in counts), root)
    return total / (gaps.count(0) + gaps.count(1) * x)


@pytest.mark.parametrize("root", [Fraction(19, 20), Fraction(1, 2)])
def test_far_classes_change_the_top_by_lemma_2(root: Fraction) -> None:
    pmf = Ladder(1 / root**2).pmf
    for gaps in [(0,), (0, 0), (0, 3), (0, 6), (0, 2, 5), (0, 0, 4)]:
        for far in [(7,), (8, 8), (7, 12)]:
            whole = tuple(40 - gap for gap in (*gaps, *far))
            alone = pmf(whole[: len(gaps)])[0] if len(gaps) > 1 else Fraction(1)
            bound = len(far) * root ** min(far) * phi(gaps, root)
            assert abs(pmf(whole)[0] - alone) <= bound


@pytest.mark.parametrize("root", [Fraction(19, 20), Fraction(1, 2)])
def test_bounds_in_integers_hold_shares_and_phi(root: Fraction) -> None:
    one = 1 << BITS
    # The root of the upper x, rounded up, for the interval x^2 .. root^2.
    for low, high in ((root**2, root**2), (root**4, root**2)):
        pmf = Ladder(1 / root**2).pmf
        known = listed(4, 7, (int(low * one), -int(-high * one)), int(root * one) + 1)
        assert len(known) == 120
        for gaps, levels in known.items():
            share = pmf(tuple(-gap for gap in gaps))
            for gap, bounds in levels.items():
                assert bounds.low <= share[gaps.index(gap)] * one <= bounds.high
            exact = phi(gaps, root) * one
            assert exact <= levels[0].phi
            if low == high:
                assert levels[0].phi <= exact * (1 + Fraction(1, 10**20))
                assert levels[0].high - levels[0].low < 1 << 20


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_proved() -> None:
    assert spent_by_any_number(5, Fraction(5, 2), 7).states == 1_001
    for classes, reach in ((7, 8),):
        assert spent_by_any_number(classes, Fraction(LEAST[classes]), reach).private
    assert all(proof.private for proof in intervals(3, Fraction(3, 2)))
    # Gaps that are too short prove nothing, and what is not private is not proved.
    assert not spent_by_any_number(3, Fraction(11, 10), 3).private
    assert not spent_by_any_number(7, Fraction(6, 5), 4).private


@pytest.mark.parametrize("classes", range(4, 16))
def test_both_pairs_break_what_is_said_to_be_broken(classes: int) -> None:
    first = (3, 3, *[1] * (classes - 2)), (3, 2, 2, *[1] * (classes - 3))
    second = (3, 3, *[1] * (classes - 3), 0), (3, 2, *[1] * (classes - 2))
    for tenths in (*range(11, 45, 3), Fraction(10 * (classes - 2), 4)):
        r = Fraction(tenths) / 10
        if r > 1:
            broken = any(ladder(one, r)[1] > r * ladder(two, r)[1] for one, two in (first, second))
            assert broken == surely_broken(classes, r)


def test_the_ladder_of_many_classes_is_no_distribution() -> None:
    assert float(ladder((6, *[0] * 19), Fraction(11, 10))[0]) == pytest.approx(-0.0063, rel=0.01)
