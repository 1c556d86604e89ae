"""The ladder for any number of ballots: each step of its proof against fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import inf

import pytest

from dpopt import NotPrivateError, ParameterError
from dpopt.ballots import Ladder, Partitions, ladder, ladder_leaps
from dpopt.ballots.unbounded import BITS, Gaps, from_ratio, listed, spent_by_any_number

Histogram = tuple[int, ...]


def moved(histogram: Histogram, loser: int, gainer: int) -> Histogram:
    counts = list(histogram)
    counts[loser] -= 1
    counts[gainer] += 1
    return tuple(counts)


def pairs(voters: int, classes: int) -> Iterator[tuple[Histogram, Histogram, int, int]]:
    """All neighbours up to the order of the first one's classes."""
    for state in Partitions(voters, classes).states:
        for loser, gainer in permutations(range(classes), 2):
            if state[loser]:
                yield state, moved(state, loser, gainer), loser, gainer


def on_top(histogram: Histogram, y: int) -> bool:
    return histogram[y] == max(histogram)


SIZES = [(7, 3, "11/10"), (6, 4, "3/2"), (5, 5, "2")]


@pytest.mark.parametrize(("voters", "classes", "ratio"), SIZES)
def test_lemma_1_and_what_is_left_of_the_ratios(voters: int, classes: int, ratio: str) -> None:
    r = Fraction(ratio)
    law = Ladder(r).law
    for one, two, a, b in pairs(voters, classes):
        for y in range(classes):
            first, second = law(one)[y], law(two)[y]
            if not on_top(one, y) and not on_top(two, y):
                tops = [t for t in range(classes) if on_top(one, t) and on_top(two, t)]
                if tops:
                    nearer = moved(one, tops[0], y), moved(two, tops[0], y)
                    assert r * first == law(nearer[0])[y]
                    assert r * second == law(nearer[1])[y]
                else:
                    assert first == second
                    assert (one[a], one[b]) == (two[b], two[a])
            elif on_top(one, y) and not on_top(two, y):
                if y == a and on_top(two, b):
                    assert first == r * second
                elif y == a:
                    t = next(t for t in range(classes) if t != y and on_top(one, t))
                    assert on_top(two, t)
                    assert one[b] <= one[t] - 2
                    assert r * second == law(moved(one, t, b))[y]
                else:
                    assert on_top(one, b)
                    assert r * second == law(moved(one, a, y))[y]


@pytest.mark.parametrize(
    ("voters", "classes", "ratio"), [*SIZES, (11, 7, "11/10"), (11, 7, "5/4"), (12, 8, "29/20")]
)
def test_private_exactly_if_a_and_b_hold(voters: int, classes: int, ratio: str) -> None:
    """For one K: A and B of its pairs are the ratios of its pairs."""
    r = Fraction(ratio)
    law = Ladder(r).law
    private, conditions = True, True
    for one, two, a, b in pairs(voters, classes):
        for y in range(classes):
            first, second = law(one)[y], law(two)[y]
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


@pytest.mark.parametrize(("voters", "classes"), [(14, 2), (12, 3), (10, 4), (9, 5), (12, 6)])
def test_leaps_are_the_ladder(voters: int, classes: int) -> None:
    rungs = Ladder(Fraction(3, 2))
    for state in Partitions(voters, classes).states:
        assert ladder_leaps(state, Fraction(3, 2)) == rungs.law(state)
    # Of a billion ballots only the gaps count; classes keep their places.
    assert ladder_leaps((10**9 - 3, 10**9, 10**9 - 7), Fraction(2)) == ladder(
        (4, 7, 0), Fraction(2)
    )


def near_and_far() -> Iterator[tuple[Histogram, Histogram]]:
    """Histograms with far classes, and the same without them."""
    for near in [(0,), (0, 0), (0, 1), (0, 3), (0, 6), (0, 2, 5), (0, 0, 4), (0, 6, 6)]:
        for far in [(7,), (8, 8), (7, 12), (15, 16, 30)]:
            for shift in (0, 1):
                yield (
                    tuple(40 - gap for gap in near) + tuple(40 - gap - shift for gap in far),
                    tuple(40 - gap for gap in near),
                )


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


@pytest.mark.parametrize("root", [Fraction(19, 20), Fraction(3, 4), Fraction(1, 2)])
def test_lemma_2(root: Fraction) -> None:
    law = Ladder(1 / root**2).law
    for whole, near in near_and_far():
        far = whole[len(near) :]
        h = max(whole) - max(far)
        alone = (Fraction(1),) if len(near) == 1 else law(near)
        gaps = tuple(near[0] - count for count in near)
        assert abs(law(whole)[0] - alone[0]) <= len(far) * root**h * phi(gaps, root)


@pytest.mark.parametrize("root", [Fraction(19, 20), Fraction(1, 2)])
def test_bounds_in_integers_hold_shares_and_phi(root: Fraction) -> None:
    one = 1 << BITS
    # The root of the upper x, rounded up, for the interval x^2 .. root^2.
    for low, high in ((root**2, root**2), (root**4, root**2)):
        x = (int(low * one), -int(-high * one))
        law = Ladder(1 / root**2).law
        known = listed(4, 7, x, int(root * one) + 1)
        assert len(known) == 120
        for gaps, levels in known.items():
            share = law(tuple(-gap for gap in gaps))
            for gap, bounds in levels.items():
                assert bounds.low <= share[gaps.index(gap)] * one <= bounds.high
            exact = phi(gaps, root) * one
            assert exact <= levels[0].phi
            if low == high:
                assert levels[0].phi <= exact * (1 + Fraction(1, 10**20))
                assert levels[0].high - levels[0].low < 1 << 20


@pytest.mark.parametrize(
    ("classes", "ratio", "reach"),
    [(2, "3/2", 14), (3, "3/2", 26), (3, "4", 8), (4, "2", 16), (5, "3", 9), (6, "4", 7)],
)
def test_proved_for_any_number_of_ballots(classes: int, ratio: str, reach: int) -> None:
    r = Fraction(ratio)
    found = spent_by_any_number(classes, r, reach)
    assert found.private
    assert found.first is found.second is None
    law = Ladder(r).law
    for one, two, _, _ in pairs(2 * classes, classes):
        for first, second in zip(law(one), law(two), strict=True):
            assert first <= r * second


@pytest.mark.parametrize("classes", [7, 8])
def test_not_private_below_its_least_ratio(classes: int) -> None:
    """(r - 1)^2 (4 r - (C - 2)) < 0: the pair of the docstring, in fractions."""
    least = Fraction(classes - 2, 4)
    for r, private in ((least, True), (least * Fraction(99, 100), False)):
        one = (3, 3, *[1] * (classes - 2))
        two = (3, 2, 2, *[1] * (classes - 3))
        assert (ladder(one, r)[1] <= r * ladder(two, r)[1]) == private
        difference = ladder(two, r)[0] - ladder(one, r)[0]
        assert (difference >= 0) == private
    # Where it fails, nothing is proved.
    assert not spent_by_any_number(classes, Fraction(11, 10), 4).private


def test_all_ratios_from_one_on(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = from_ratio(3, Fraction(3, 2))
    assert all(proof.private and proof.classes == 3 for proof in proofs)
    assert spent_by_any_number(3, Fraction(5), 6, above=inf).private
    # Gaps that are too short prove nothing.
    monkeypatch.setattr("dpopt.ballots.unbounded.reach_for", lambda *_: 3)
    with pytest.raises(NotPrivateError, match="not proved private"):
        from_ratio(3, Fraction(11, 10))


@pytest.mark.parametrize(
    ("classes", "ratio", "reach"),
    [
        *((3, "10/9", 120), (4, "1.35", 33), (5, "1.65", 19), (6, "2.25", 10)),
        *((7, "2.75", 8), (8, "3.4", 7), (9, "4.1", 7), (10, "5", 6)),
    ],
)
def test_the_least_ratios_of_the_page_of_findings(classes: int, ratio: str, reach: int) -> None:
    """`from_ratio` goes on from there."""
    assert spent_by_any_number(classes, Fraction(ratio), reach).private


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="ratio is"):
        spent_by_any_number(3, Fraction(1), 6)
    with pytest.raises(ParameterError, match="ratio is"):
        spent_by_any_number(3, Fraction(3), 6, above=Fraction(2))
    with pytest.raises(ParameterError, match="gap vectors"):
        spent_by_any_number(10, Fraction(3), 60)
    with pytest.raises(ParameterError, match="reach is"):
        spent_by_any_number(3, Fraction(3), 2)
