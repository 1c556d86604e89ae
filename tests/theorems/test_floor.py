"""The smooth floor: its theorems against all data sets and all neighbours, in fractions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

from tests.oracles import compositions, neighbours

Table = Callable[[int], int]


def table_of(steps: list[int], least: int, unit: int) -> Table | None:
    """W with these first steps, then c * unit; None if the steps do not meet that line."""
    values = [least]
    for step in steps:
        values.append(values[-1] + step)
    last = len(steps)
    if values[-1] != last * unit:
        return None
    return lambda c: values[c] if c <= last else c * unit


def tables(draw: random.Random) -> Iterator[Table]:
    """Convex tables that no growth has made."""
    while True:
        unit, last = draw.choice([3, 10, 64]), draw.randrange(1, 6)
        steps = sorted(draw.randrange(unit + 1) for _ in range(last))
        least = last * unit - sum(steps)
        found = table_of(steps, least, unit)
        if least > 0 and found is not None:
            yield found


def worst_by_definition(w: Table, n: int, k: int) -> Fraction:
    """The largest K(y | x') / K(y | x)."""
    worst = Fraction(1)
    for x in compositions(n, k):
        for other in neighbours(x):
            z, z_other = sum(map(w, x)), sum(map(w, other))
            for c, c_other in zip(x, other, strict=True):
                worst = max(worst, Fraction(w(c_other) * z, w(c) * z_other))
    return worst


def sums(w: Table, categories: int, records: int) -> list[int]:
    if categories == 0:
        return [0] if records == 0 else []
    return [sum(map(w, x)) for x in compositions(records, categories)]


def ratio_of_row(w: Table, n: int, k: int, c: int, d: int) -> Fraction | None:
    """The ratio that row (2) of the page limits; None if no data set has these counts."""
    others = sums(w, k - 2, n - c - d)
    if not others:
        return None
    change = (w(c + 1) - w(c)) - (w(d) - w(d - 1))
    z = w(c) + w(d) + (min(others) if change <= 0 else max(others))
    return Fraction(w(c + 1) * z, w(c) * (z + change))


def looked_at(n: int, k: int, last: int, c: int) -> set[int]:
    """The d that the page leaves."""
    even = (n - c) // (k - 1)
    return {
        max(even, last + 1) if d == last + 1 else d
        for d in range(max(1, min(even, last + 1)), min(n - c, last + 1) + 1)
    }


def test_the_rows_decide_and_few_of_them_are_enough() -> None:
    draw = random.Random(3)
    made = tables(draw)
    for _ in range(150):
        w, (n, k) = next(made), draw.choice([(1, 2), (4, 2), (7, 2), (1, 3), (6, 3), (5, 4)])
        # c* is the first count from which all steps are the last one.
        unit = w(101) - w(100)
        last = next(c for c in range(100) if all(w(a) == a * unit for a in range(c, 100)))
        everything = worst_by_definition(w, n, k)
        rows = {
            (c, d): ratio
            for c in range(n)
            for d in range(1, n - c + 1)
            if (ratio := ratio_of_row(w, n, k, c, d)) is not None
        }
        assert max(1, *rows.values()) == everything
        few = [rows[c, d] for c in range(n) for d in looked_at(n, k, last, c)]
        assert max(1, *few) == everything
        assert all(rows[c, d] <= Fraction(c + 1, c) for c, d in rows if c >= last > 0)
