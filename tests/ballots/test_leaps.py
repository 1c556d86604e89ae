"""The ladder at counts of any size: its bounds, its draw, and privacy by brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2

from dpopt.ballots import (
    Partitions,
    ladder,
    ladder_bounds,
    ladder_draw,
    ladder_leaps,
    proved_for_any_number,
    surely_broken,
)


class Scripted:
    """Words that a test chose, in order; how many were taken."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words, self.taken = list(words), 0

    def __call__(self) -> int:
        self.taken += 1
        return self.words[self.taken - 1]


@pytest.mark.parametrize("ratio", ["21/20", "3/2", "7"])
@pytest.mark.parametrize(("voters", "classes"), [(25, 2), (14, 3), (11, 4), (10, 5)])
def test_bounds_hold_the_fractions_and_meet(voters: int, classes: int, ratio: str) -> None:
    r = Fraction(ratio)
    for state in Partitions(voters, classes).states:
        exact = ladder(state, r)
        for bits in (5, 64, 128):
            bounds = ladder_bounds(state, r, bits)
            for share, (low, high) in zip(exact, bounds, strict=True):
                assert 0 <= low <= share * 2**bits <= high <= 2**bits
                # Powers lose some units of 2^-bits each, x^k at most a few / (r - 1).
                assert high - low <= 40 * (1 + 1 / (r - 1))


@pytest.mark.parametrize("counts", [(900, 500, 0), (600, 590, 585, 3), (100, 99, 98, 97, 0)])
def test_bounds_of_large_gaps(counts: tuple[int, ...]) -> None:
    r = Fraction(5, 4)
    exact = ladder_leaps(counts, r)
    for bits in (16, 64, 320):
        for share, (low, high) in zip(exact, ladder_bounds(counts, r, bits), strict=True):
            assert low <= share * 2**bits <= high
            assert high - low <= 200


def test_bounds_of_a_billion() -> None:
    few = ladder((12, 10, 9), Fraction(2))
    many = ladder_bounds((0, 10**9 + 2, 10**9, 5, 10**9 - 1), Fraction(2), 64)
    assert many[0] == many[3] == (0, 1)
    for share, (low, high) in zip(few, (many[1], many[2], many[4]), strict=True):
        assert low <= share * 2**64 <= high


@pytest.mark.parametrize("shift", [0, 10**6, 10**9])
@pytest.mark.parametrize("counts", [(5, 3, 3, 0), (3, 4), (10, 2, 8, 8, 10)])
def test_the_class_is_the_first_above_a_uniform_number(counts: tuple[int, ...], shift: int) -> None:
    """U next to each sum of shares, on both sides, in words of which the first do not decide."""
    r = Fraction(5, 3)
    exact, counts = ladder(counts, r), tuple(count + shift for count in counts)
    for place in range(len(counts) - 1):
        threshold = math.floor(sum(exact[: place + 1], Fraction(0)) * 2**192)
        for u, expected in ((threshold - 1, place), (threshold + 1, place + 1)):
            script = Scripted([u >> 128, u >> 64 & (1 << 64) - 1, u & (1 << 64) - 1, 0, 0])
            assert ladder_draw(counts, r, script) == expected
            assert script.taken > 1
    # Anywhere else one word is enough.
    for word, expected in ((1, 0), ((1 << 64) - (1 << 20), len(counts) - 1)):
        script = Scripted([word])
        assert ladder_draw(counts, r, script) == expected


def test_a_number_on_a_sum_itself_is_of_the_next_class() -> None:
    """Two tied classes: F = 1/2, and U = 1/2 is not below it, to the first bit."""
    assert ladder_draw((3, 3), Fraction(2), Scripted([1 << 63])) == 1
    assert ladder_draw((3, 3), Fraction(2), Scripted([(1 << 63) - 1])) == 0


@pytest.mark.parametrize("counts", [(3, 1, 0), (6, 5, 5, 2, 0), (5_000, 4_998, 4_995)])
def test_frequencies_are_those_of_the_exact_law(counts: tuple[int, ...]) -> None:
    r, rng, draws = Fraction(3, 2), np.random.default_rng(11), 8_000
    law = np.array([float(share) for share in ladder_leaps(counts, r)])
    found = [
        ladder_draw(counts, r, lambda: int(rng.integers(1 << 64, dtype=np.uint64)))
        for _ in range(draws)
    ]
    observed = np.bincount(found, minlength=len(counts))

    def statistic(shares: np.ndarray) -> float:
        return float(((observed - draws * shares) ** 2 / (draws * shares)).sum())

    limit = chi2.isf(1e-6, len(counts) - 1)
    assert statistic(law) < limit
    # The test has power: the law of another r fails.
    other = np.array([float(share) for share in ladder_leaps(counts, Fraction(2))])
    assert statistic(other) > limit


PROVED = [(2, "3/2"), (3, "4/3"), (4, "2"), (5, "5/2"), (6, "3")]


@pytest.mark.parametrize(("classes", "ratio"), PROVED)
def test_private_between_neighbours_of_large_counts(classes: int, ratio: str) -> None:
    """Random counts of millions, gaps small, middling and large: every class, every move."""
    r, rng = Fraction(ratio), np.random.default_rng(5)
    proof = proved_for_any_number(classes, r)
    assert proof is not None
    assert proof.private
    for _ in range(6):
        spread = int(rng.choice([3, 8, 30, 90]))
        base = 10**6 + rng.integers(spread, size=classes)
        one = ladder_leaps(base.tolist(), r)
        assert sum(one) == 1
        for loser, gainer in permutations(range(classes), 2):
            moved = base.copy()
            moved[loser] -= 1
            moved[gainer] += 1
            two = ladder_leaps(moved.tolist(), r)
            for share, other in zip(one, two, strict=True):
                assert share <= r * other
                assert other <= r * share


def test_the_proof_takes_the_shortest_reach_that_is_enough() -> None:
    found = proved_for_any_number(5, Fraction(5, 2))
    assert found is not None
    assert (found.reach, found.states) == (7, 1_001)
    # Too few vectors, or one of the pairs that break it.
    assert proved_for_any_number(5, Fraction(5, 2), 500) is None
    assert proved_for_any_number(7, Fraction(6, 5)) is None


def quartic(c: int, r: Fraction) -> Fraction:
    return (
        12 * r**4 + (25 - c) * r**3 - (c * c - 7 * c + 18) * r**2 - (c * c - 7 * c + 16) * r + c - 3
    )


@pytest.mark.parametrize("classes", [4, 7, 12, 13, 14, 18, 24])
def test_the_second_pair_asks_for_more_from_13_classes_on(classes: int) -> None:
    """u_y <= r u_y' and T(l) <= T(m) are q(r) >= 0, in fractions on both sides of its root."""
    one, two = (3, 3, *[1] * (classes - 3), 0), (3, 2, *[1] * (classes - 2))
    for r in (Fraction(n, 10) for n in (11, 15, 20, 24, 26, 28, 30, 31, 32, 44, 45, 63, 64, 80)):
        first, second = ladder(one, r), ladder(two, r)
        kept = quartic(classes, r) >= 0
        assert (first[1] <= r * second[1]) == kept
        assert (second[0] >= first[0]) == kept
        assert kept or surely_broken(classes, r)
    # At (C - 2) / 4, where the first pair is just private, the second is so up to 12 classes only.
    least = Fraction(classes - 2, 4)
    assert (quartic(classes, least) < 0) == (classes >= 13)
    roots = {12: 2.49357, 13: 2.80682, 14: 3.12284, 18: 4.40601, 24: 6.36239}
    if classes in roots:
        root, little = Fraction(roots[classes]), Fraction(1, 10**4)
        assert quartic(classes, root - little) < 0 < quartic(classes, root + little)


@pytest.mark.parametrize(
    ("counts", "ratio", "top"),
    [((6, *[0] * 19), "11/10", -0.0063), ((4, *[0] * 29), "3/2", -0.074)],
)
def test_the_ladder_of_many_classes_is_no_law(
    counts: tuple[int, ...], ratio: str, top: float
) -> None:
    share = ladder(counts, Fraction(ratio))[0]
    assert float(share) == pytest.approx(top, rel=0.01)
    assert surely_broken(len(counts), Fraction(ratio))


def test_both_pairs_break_what_is_said_to_be_broken() -> None:
    """`surely_broken` tells of no pair that is private, for all small C and r."""
    for classes, tenths in product(range(3, 16), range(11, 45, 3)):
        r = Fraction(tenths, 10)
        pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]
        pairs = [((3, 3, *[1] * (classes - 2)), (3, 2, 2, *[1] * (classes - 3)))]
        if classes >= 4:
            pairs.append(((3, 3, *[1] * (classes - 3), 0), (3, 2, *[1] * (classes - 2))))
        broken = any(ladder(one, r)[1] > r * ladder(two, r)[1] for one, two in pairs)
        assert broken == surely_broken(classes, r)
