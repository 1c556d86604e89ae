"""The smooth floor: its theorems against all data sets and all neighbours, in fractions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate

from tests.oracles import compositions
from tests.roo.brute import floor_ratio, floored

Table = Callable[[int], int]


def tables(draw: random.Random) -> Iterator[tuple[list[int], int]]:
    """Convex tables that no growth has made: W(0) up to the first multiple of the last step."""
    while True:
        unit, last = draw.choice([3, 10, 64]), draw.randrange(1, 6)
        steps = sorted(draw.randrange(unit + 1) for _ in range(last))
        table = [*accumulate(steps, initial=last * unit - sum(steps))]
        if table[0] > 0:
            yield table, unit


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


SIZES = [(1, 2), (4, 2), (7, 2), (1, 3), (6, 3), (5, 4)]


def test_the_rows_decide_and_few_of_them_are_enough() -> None:
    draw = random.Random(3)
    made = tables(draw)
    for _ in range(150):
        (table, unit), (n, k) = next(made), draw.choice(SIZES)
        # c* is the first count from which all steps are the last one.
        last = next(c for c, weight in enumerate(table) if weight == c * unit)
        everything = floor_ratio(n, k, table, unit)

        def w(c: int, table: list[int] = table, unit: int = unit) -> int:
            return floored(table, unit, [c])[0]

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
