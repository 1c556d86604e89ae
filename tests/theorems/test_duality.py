"""Weak duality: the bound of any multipliers against every point of small programs, exactly."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

from dpopt import verify
from tests.solved import solved

Point = dict[tuple[str, int], Fraction]


def within(draw: random.Random, ends: tuple[Fraction, Fraction]) -> Fraction:
    """A number of an enclosure, often an end."""
    return ends[0] + Fraction(draw.choice([0, 1, 2, 3]), 3) * (ends[1] - ends[0])


def enclosure(draw: random.Random) -> tuple[Fraction, Fraction]:
    low = Fraction(draw.randrange(-12, 13), 4)
    return low, low + Fraction(draw.choice([0, 0, 1, 3]), 8)


def random_point(draw: random.Random) -> Point:
    """Two distributions of three and two variables, of masses 1 and 2, and three boxes."""
    found: Point = {}
    for start, size, mass in ((0, 3, 1), (3, 2, 2)):
        parts = [draw.choice([0, 0, 1, 4]) for _ in range(size)]
        parts[draw.randrange(size)] += 1
        found |= {("v", start + i): Fraction(mass * p, sum(parts)) for i, p in enumerate(parts)}
    for i, (low, high) in enumerate(BOXES):
        found["w", i] = within(draw, (low, high))
    return found


BOXES = [(Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(3)), (Fraction(-2), Fraction(1))]
VARIABLES = [*(("v", i) for i in range(5)), *(("w", i) for i in range(3))]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("maximise", [False, True])
def test_no_point_passes_the_bound_of_any_multipliers(maximise: bool) -> None:
    draw = random.Random(7)
    for _ in range(400):
        point = random_point(draw)
        cost = {v: Fraction(draw.randrange(-9, 10), 2) for v in VARIABLES}
        rows = {}
        for i in range(4):
            terms = {v: enclosure(draw) for v in draw.sample(VARIABLES, 5)}
            true = sum((within(draw, ends) * point[v] for v, ends in terms.items()), Fraction(0))
            # The point satisfies the row with coefficients and a limit inside of the enclosures.
            equality = draw.random() < 0.4
            at = true if equality else true + draw.choice([0, 0, 1, 5])
            limit = (at - Fraction(draw.choice([0, 1]), 9), at + Fraction(draw.choice([0, 1]), 9))
            rows["row", i] = verify.Row(dict(terms), limit, equality)
        program = verify.Program(
            [([("v", 0), ("v", 1), ("v", 2)], 1), ([("v", 3), ("v", 4)], 2)],
            {("w", i): box for i, box in enumerate(BOXES)},
            cost,
            lambda rows=rows: rows,
            lambda name, rows=rows: rows[name],
            maximise=maximise,
            point=dict(point),
        )
        for _ in range(10):
            multipliers = []
            for name, row in rows.items():
                y = Fraction(draw.choice([0, 0, 1, 3, 17]), 8)
                sign = draw.choice([1, -1]) if row.equality else 1
                multipliers += [(name, sign * y)] * draw.choice([1, 1, 2])
            found = verify.bound(program, multipliers)
            assert program.value <= found if maximise else program.value >= found


@pytest.mark.parametrize("kind", sorted({*verify.KINDS} - {"table"}))
def test_each_kind_displays_a_program_as_the_theorem_asks(kind: str, tmp_path: Path) -> None:
    """Each variable in one distribution or one box, and enclosures with their lower end first."""
    solved(kind).save(tmp_path / "x.json")
    body = verify.read(str(tmp_path / "x.json"))["body"]
    program = verify.KINDS[kind](body["setting"], body["table"], None, {})
    inside = Counter(v for variables, _ in program.pmfs for v in variables)
    inside.update(list(program.boxes))
    assert inside
    assert set(inside.values()) == {1}
    assert all(mass >= 0 for _, mass in program.pmfs)
    assert all(low <= high for low, high in program.boxes.values())
    assert set(program.point) <= set(inside)
    for name in islice(program.names(), 500):
        for coefficient in program.row(name).terms.values():
            low, high = verify.ends(coefficient)
            assert low <= high
