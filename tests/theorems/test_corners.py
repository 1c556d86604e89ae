"""Few corners decide a majority: all multisets of all corners in fractions, for any h."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise

import pytest

from tests.oracles import poisson_binomial

Point = tuple[Fraction, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


def corners(r: Fraction, shift: Fraction) -> dict[str, Point]:
    """The pairs (p, p') that the page names."""
    b = (r + shift) / (r + 1)
    at = {"0": ZERO, "1": ONE, "b": b, "c": 1 - b, "D": shift, "m": 1 - shift}
    names = ("00", "11", "bc", "cb", "D0", "0D", "1m", "m1")[: 8 if shift else 4]
    return {name: (at[name[0]], at[name[1]]) for name in names}


def allowed(point: Point, r: Fraction, shift: Fraction) -> bool:
    """Whether a voter's pair is private, by the definition."""
    sides = (point, point[::-1], (1 - point[0], 1 - point[1]), (1 - point[1], 1 - point[0]))
    return 0 <= min(point) <= max(point) <= 1 and all(p <= r * q + shift for p, q in sides)


def expected(chances: tuple[Fraction, ...], h: tuple[int, ...]) -> Fraction:
    """E h(L), voter by voter."""
    pmf = poisson_binomial(chances)
    return sum((mass * value for mass, value in zip(pmf, h, strict=True)), ZERO)


def excess(h: tuple[int, ...], growth: Fraction) -> Callable[[tuple[Point, ...]], Fraction]:
    """f of a choice of pairs."""
    known = cache(lambda chances: expected(chances, h))

    def f(points: tuple[Point, ...]) -> Fraction:
        sides = [tuple(sorted(side)) for side in zip(*points, strict=True)]
        return known(sides[0]) - growth * known(sides[1])

    return f


def reduced(names: tuple[str, ...]) -> bool:
    used = set(names)
    return not any(
        {one, other} <= used for one, other in (("bc", "cb"), ("D0", "0D"), ("1m", "m1"))
    )


def inside(draw: random.Random, r: Fraction, shift: Fraction) -> Point:
    """A private pair that is no corner: the first of some towards (p, p), which is private."""
    p, q = (Fraction(draw.randrange(13), 12) for _ in range(2))
    return next(
        pair
        for share in (1, Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), 0)
        if allowed(pair := (p, p + share * (q - p)), r, shift)
    )


@pytest.mark.parametrize("r", [Fraction(1), Fraction(11, 10), Fraction(2), Fraction(30)])
@pytest.mark.parametrize("shift", [ZERO, Fraction(1, 10), Fraction(2, 3)])
def test_the_polygon_is_the_hull_of_the_named_corners(r: Fraction, shift: Fraction) -> None:
    named = corners(r, shift)
    assert all(allowed(point, r, shift) for point in named.values())
    # Its lower edge, from corner to corner: nothing below it is private.
    lower = [named[name] for name in ("00", "D0", "bc", "1m", "11") if name in named]
    for (p, q), (p2, q2) in pairwise(lower):
        for share in (ZERO, Fraction(1, 3), Fraction(6, 7), ONE):
            x, y = p + share * (p2 - p), q + share * (q2 - q)
            assert allowed((x, y), r, shift)
            if p2 > p:
                assert not allowed((x, y - Fraction(1, 10**9)), r, shift)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("voters", "shift"),
    [*((k, ZERO) for k in (1, 2, 3, 4, 5, 7)), *((k, Fraction(1, 9)) for k in (1, 2, 3, 4))],
)
def test_reduced_multisets_have_the_largest_excess_of_all(voters: int, shift: Fraction) -> None:
    draw = random.Random(voters)
    for _ in range(12):
        r = 1 + Fraction(draw.choice([0, 1, 3, 20]), draw.choice([1, 7]))
        named = corners(r, shift)
        # Neither odd nor monotone: the theorem asks nothing of h, and K may be even.
        h = tuple(draw.choice([-1, 0, 1, draw.randrange(-50, 50)]) for _ in range(voters + 1))
        f = excess(h, Fraction(draw.choice([-1, 0, 1, 2, 9]), draw.choice([1, 4])))
        found = {
            names: f(tuple(named[name] for name in names))
            for names in combinations_with_replacement(named, voters)
        }
        best = max(found.values())
        assert max(value for names, value in found.items() if reduced(names)) == best
        for _ in range(20):
            assert f(tuple(inside(draw, r, shift) for _ in range(voters))) <= best
