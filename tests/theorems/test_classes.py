"""No circle of three voters decides a plurality: the identity, and all configurations."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations, product

import pytest

from dpopt.multiclass import corners as walk

Edge = tuple[int, int]
Pmf = tuple[Fraction, ...]


def pmfs(edge: Edge, b: Fraction, classes: int) -> tuple[Pmf, Pmf]:
    """Both sides of a voter on y -> z; a loop is y -> y."""
    sides = []
    for chance in (b, 1 - b):
        pmf = [Fraction(0)] * classes
        pmf[edge[0]] += chance
        pmf[edge[1]] += 1 - chance
        sides.append(tuple(pmf))
    return sides[0], sides[1]


@cache
def counts(voters: tuple[Pmf, ...]) -> dict[tuple[int, ...], Fraction]:
    """The distribution of the counts, over all outcomes."""
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for votes in product(range(len(voters[0])), repeat=len(voters)):
        mass = Fraction(1)
        for pmf, vote in zip(voters, votes, strict=True):
            mass *= pmf[vote]
        if mass:
            found[tuple(votes.count(y) for y in range(len(voters[0])))] += mass
    return found


def both(edges: tuple[Edge, ...], b: Fraction, classes: int) -> tuple[dict, dict]:
    sides = zip(*(pmfs(edge, b, classes) for edge in edges), strict=True)
    one, other = (counts(tuple(sorted(side))) for side in sides)
    return one, other


@pytest.mark.parametrize("b", [Fraction(1, 2), Fraction(2, 3), Fraction(10, 11), Fraction(1)])
def test_three_voters_on_a_circle_are_a_mixture(b: Fraction) -> None:
    """For Delta > 0 b is (r + Delta) / (1 + r): any number from 1/2 to 1."""
    c = 1 - b
    parts = {((0, 0), (1, 1), (2, 2)): b**3 + c**3}
    for y, z, w in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        parts[(y, y), (y, y), (z, w)] = b * c
    assert sum(parts.values()) == 1
    for side in (0, 1):
        mixed: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for edges, share in parts.items():
            for n, mass in both(edges, b, 3)[side].items():
                mixed[n] += share * mass
        circle = both(((0, 1), (1, 2), (2, 0)), b, 3)[side]
        assert {n: m for n, m in mixed.items() if m} == circle


def kept(edges: tuple[Edge, ...]) -> bool:
    """Whether no two voters are on opposite edges, and no three on a circle."""
    used = {edge for edge in edges if edge[0] != edge[1]}
    if any((z, y) in used for y, z in used):
        return False
    nodes = {y for edge in used for y in edge}
    return not any({(y, z), (z, w), (w, y)} <= used for y, z, w in permutations(nodes, 3))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("voters", "classes"), [(3, 3), (4, 3), (3, 4)])
def test_configurations_without_circles_have_the_largest_excess(voters: int, classes: int) -> None:
    draw = random.Random(10 * voters + classes)
    edges = [(y, z) for y in range(classes) for z in range(classes)]
    everything = list(combinations_with_replacement(edges, voters))
    for _ in range(3):
        r = 1 + Fraction(draw.randrange(1, 30), 10)
        b, t = r / (1 + r), r ** draw.choice([1, 2])
        value = {
            n: draw.choice([0, 1, draw.randrange(100)])
            for n in product(range(voters + 1), repeat=classes)
            if sum(n) == voters
        }
        excess = {}
        for chosen in everything:
            one, other = both(chosen, b, classes)
            excess[chosen] = sum(m * value[n] for n, m in one.items()) - t * sum(
                m * value[n] for n, m in other.items()
            )
        best = max(excess.values())
        assert max(f for chosen, f in excess.items() if kept(chosen)) == best
    # The walk goes through as many.
    levels = walk.configurations(voters, classes).levels
    loops = [len(walk.histograms(voters - edges, classes)) for edges in range(len(levels))]
    # Those with edges are walked in both directions at once.
    walked = sum(
        (1 + (edges > 0)) * len(signed) * loops[edges] for edges, (signed, _) in enumerate(levels)
    )
    assert sum(map(kept, everything)) == walked
