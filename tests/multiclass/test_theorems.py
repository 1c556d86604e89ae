"""Extreme pairs of pmfs and the reduction of their choices, against enumeration in fractions."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product
from math import comb

import pytest
from flint import fmpq, fmpq_mat

from tests.multiclass.pairs import Pair, Pmf, corner_count, corners, image, reduced_count
from tests.oracles import compositions, counts_of_votes

Known = Callable[[tuple[Pmf, ...]], Fraction]

ZERO, ONE = Fraction(0), Fraction(1)
TENTH = Fraction(1, 10)


def rows(classes: int, ratio: Fraction, delta: Fraction) -> list[list[Fraction]]:
    """The inequalities row . (P, P', 1) >= 0 of the definition."""
    found = []
    if delta:
        subsets = chain.from_iterable(combinations(range(classes), n) for n in range(1, classes))
    else:
        subsets = ((y,) for y in range(classes))
    for subset in subsets:
        inside = [ONE if y in subset else ZERO for y in range(classes)]
        high, low = [ratio * x for x in inside], [-x for x in inside]
        found += [[*low, *high, delta], [*high, *low, delta]]
    if delta:
        found += [
            [ONE if i == j else ZERO for j in range(2 * classes + 1)] for i in range(2 * classes)
        ]
    return found


def solved(system: list[list[Fraction]]) -> list[Fraction] | None:
    """The only solution of a square system [A | b], or None."""
    rational = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in system])
    table, rank = rational.rref()
    n = len(system)
    if rank < n or any(table[i, i] != 1 for i in range(n)):
        return None
    return [Fraction(int(table[i, n].p), int(table[i, n].q)) for i in range(n)]


def vertices(classes: int, ratio: Fraction, delta: Fraction) -> set[Pair]:
    """Every point where enough inequalities are equalities, and all hold."""
    bounds, found = rows(classes, ratio, delta), set()
    sums = [
        [ONE] * classes + [ZERO] * classes + [ONE],
        [ZERO] * classes + [ONE] * classes + [ONE],
    ]
    for active in combinations(bounds, 2 * classes - 2):
        point = solved(sums + [[*row[:-1], -row[-1]] for row in active])
        if point is None:
            continue
        if all(sum(map(lambda a, x: a * x, row, [*point, ONE])) >= 0 for row in bounds):
            found.add((tuple(point[:classes]), tuple(point[classes:])))
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("ratio", [Fraction(11, 10), Fraction(2), Fraction(20)])
def test_theorem_1_corners_are_the_vertices(classes: int, ratio: Fraction) -> None:
    found = corners(classes, ratio)
    assert len(found) == len(set(found)) == corner_count(classes) == classes**2
    assert set(found) == vertices(classes, ratio, ZERO)


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "ratio", "delta"),
    [(2, Fraction(2), TENTH), (2, Fraction(11, 10), Fraction(1, 2)), (3, Fraction(2), TENTH)],
)
def test_theorem_3_corners_are_the_vertices(classes: int, ratio: Fraction, delta: Fraction) -> None:
    found = corners(classes, ratio, delta)
    assert len(found) == len(set(found)) == corner_count(classes, approximate=True)
    assert set(found) == vertices(classes, ratio, delta)


def test_theorem_3_counts() -> None:
    assert [corner_count(c, approximate=True) for c in (2, 3, 4)] == [8, 39, 136]
    # Every map of the four symbols is a private pair; those left out are no corners.
    b, c, delta = Fraction(2, 3) * (1 - TENTH), Fraction(1, 3) * (1 - TENTH), TENTH
    sides = ((delta, b, c, ZERO), (ZERO, c, b, delta))
    images = {
        tuple(image(3, labels, masses) for masses in sides)
        for labels in product(range(3), repeat=4)
    }
    assert len(images) == 3**4
    bounds = rows(3, Fraction(2), delta)
    assert all(
        sum(a * x for a, x in zip(row, [*p, *q, ONE], strict=True)) >= 0
        for row in bounds
        for p, q in images
    )
    assert set(corners(3, Fraction(2), delta)) < images


def random_pmf(draw: random.Random, classes: int) -> Pmf:
    weights = [draw.choice([0, 0, 1, 2, 5, 11]) for _ in range(classes)]
    weights[draw.randrange(classes)] += 1
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def mixed(shares: list[tuple[Fraction, Pmf]]) -> Pmf:
    return tuple(sum((s * pmf[y] for s, pmf in shares), ZERO) for y in range(len(shares[0][1])))


def random_pair(draw: random.Random, classes: int, ratio: Fraction, delta: Fraction) -> Pair:
    """A private pair found without the theorem: a random one drawn together until it is private."""
    p, q = random_pmf(draw, classes), random_pmf(draw, classes)
    bounds = rows(classes, ratio, delta)
    share: Fraction = ONE
    for row in bounds:
        apart = sum((a * x for a, x in zip(row, [*p, *q, ONE], strict=True)), ZERO)
        # The pair (p, p) is private: the row is linear along the way from there.
        together = sum((a * x for a, x in zip(row, [*p, *p, ONE], strict=True)), ZERO)
        if apart < 0:
            share = min(share, together / (together - apart))
    return p, mixed([(1 - share, p), (share, q)])


def expected(pmfs: list[Pmf], values: dict[tuple[int, ...], int]) -> Fraction:
    """E a(counts of the votes), voter by voter."""
    return sum((mass * values[counts] for counts, mass in counts_of_votes(pmfs).items()), ZERO)


def is_reduced(chosen: tuple[Pair, ...]) -> bool:
    """Whether no corner that is not a loop meets its mirror image."""
    kinds = set(chosen)
    return not any(p != q and (q, p) in kinds for p, q in kinds)


def check_reduction(voters: int, ratio: Fraction, delta: Fraction, kernels: int) -> None:
    found, draw = corners(3, ratio, delta), random.Random(voters)
    everything = list(combinations_with_replacement(found, voters))
    reduced = [chosen for chosen in everything if is_reduced(chosen)]
    assert len(everything) == comb(voters + len(found) - 1, voters)
    assert len(reduced) == reduced_count(voters, 3, approximate=bool(delta))
    for _ in range(kernels):
        # Neither private nor equivariant: the theorem asks nothing of the values.
        values = {h: draw.choice([0, 1, 5, draw.randrange(1000)]) for h in compositions(voters, 3)}
        t = Fraction(draw.choice([1, 2, 3]), draw.choice([1, 2]))
        known = cache(lambda pmfs, values=values: expected(list(pmfs), values))

        def f(pairs: tuple[Pair, ...], t: Fraction = t, known: Known = known) -> Fraction:
            sides = [tuple(sorted(side)) for side in zip(*pairs, strict=True)]
            return known(sides[0]) - t * known(sides[1])

        best = max(map(f, everything))
        assert max(map(f, reduced)) == best
        inside = tuple(random_pair(draw, 3, ratio, delta) for _ in range(voters))
        assert f(inside) <= best


@pytest.mark.parametrize(("voters", "sizes"), [(2, (45, 42)), (3, (165, 138)), (4, (495, 363))])
def test_theorem_2_no_corner_meets_its_mirror_image(voters: int, sizes: tuple[int, int]) -> None:
    assert (comb(voters + 8, voters), reduced_count(voters, 3)) == sizes
    check_reduction(voters, Fraction(2), ZERO, kernels={2: 40, 3: 10, 4: 2}[voters])


def test_theorem_4_no_corner_meets_its_mirror_image() -> None:
    assert (comb(2 + 38, 2), reduced_count(2, 3, approximate=True)) == (780, 762)
    check_reduction(2, Fraction(2), TENTH, kernels=8)
