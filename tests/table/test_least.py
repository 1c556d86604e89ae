"""The least epsilon and delta of a table, against all events in fractions and closed forms."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest

from dpopt import Guarantee, NotPrivateError
from dpopt.privacy import directed_pairs
from dpopt.privacy.exact import log_enclosed
from tests.kernel.brute import events
from tests.table.rows import certify, least_delta, least_epsilon

Rows = list[list[int]]
Edges = list[tuple[int, int]]


def random_tables(count: int) -> list[tuple[Rows, Any, Edges]]:
    """Tables of integers, with zeros, equal rows and rare outputs, and their neighbours."""
    rng, found = random.Random(7), list[Any]()
    while len(found) < count:
        n, m = rng.randint(2, 5), rng.randint(1, 4)
        rows = [
            [rng.choice([0, 1, 2, 7, rng.randint(1, 10**6), 10**30]) for _ in range(m)]
            for _ in range(n)
        ]
        if rng.random() < 0.5:
            rows = [[weight + 1 for weight in row] for row in rows]
        if min(map(sum, rows)) == 0:
            continue
        graph = rng.choice(["complete", "path", "cycle"])
        pairs = directed_pairs(graph, n)
        edges = list(permutations(range(n), 2)) if pairs is None else pairs.tolist()
        found.append((rows, pairs, [(x, other) for x, other in edges]))
    return found


def brute_ratio(rows: Rows, edges: Edges, delta: float) -> Fraction | None:
    """The largest (K(S | x) - delta) / K(S | x') of all events, at least 1; None if infinite."""
    best = Fraction(1)
    pmfs = [[Fraction(weight, sum(row)) for weight in row] for row in rows]
    for x, other in edges:
        for event in events(len(rows[0])):
            over = sum(pmfs[x][y] for y in event) - Fraction(delta)
            under = sum(pmfs[other][y] for y in event)
            if over > 0 and under == 0:
                return None
            best = max(best, over / under) if over > 0 else best
    return best


def logarithm(ratio: Fraction) -> Any:
    with mpmath.workdps(60):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("delta", [0.0, 1e-20, 0.01, 0.3])
def test_least_epsilon_is_that_of_all_events(delta: float) -> None:
    for rows, pairs, edges in random_tables(120):
        least = least_epsilon(rows, delta, pairs=pairs)
        ratio = brute_ratio(rows, edges, delta)
        if ratio is None:
            assert (least.lower, least.upper) == (math.inf, math.inf)
            continue
        assert least.lower <= logarithm(ratio) <= least.upper
        assert least.upper - least.lower <= 3 * math.ulp(least.upper)
        if ratio > 1:
            # The event that is named needs exactly this much.
            x, other = map(int, least.inputs)
            over, under = (
                Fraction(sum(rows[z][int(y)] for y in least.outputs), sum(rows[z]))
                for z in (x, other)
            )
            assert (x, other) in edges
            assert over - Fraction(delta) == ratio * under


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0, 5.0])
def test_least_delta_is_that_of_all_events(epsilon: float) -> None:
    for rows, pairs, edges in random_tables(120):
        least = least_delta(rows, epsilon, pairs=pairs)
        with mpmath.workdps(60):
            ratio = mpmath.exp(mpmath.mpf(epsilon))
            pmfs = [[mpmath.mpf(w) / sum(row) for w in row] for row in rows]
            largest = max(
                sum(pmfs[x][y] - ratio * pmfs[other][y] for y in event)
                for x, other in edges
                for event in events(len(rows[0]))
            )
            if largest <= mpmath.mpf(10) ** -50:
                assert least.lower == 0.0
                assert least.upper < 1e-40
                continue
            assert least.lower <= largest <= least.upper
            assert least.upper - least.lower <= 2 * math.ulp(least.upper)


def test_the_judge_agrees_on_either_side() -> None:
    rows = [[11, 3, 2], [5, 6, 5], [2, 3, 11]]
    for delta in (0.0, 0.05):
        least = least_epsilon(rows, delta)
        assert certify(rows, Guarantee(least.upper, delta)).slack >= 0
        with pytest.raises(NotPrivateError):
            certify(rows, Guarantee(math.nextafter(least.lower, 0.0), delta))
    least = least_delta(rows, 0.5)
    assert certify(rows, Guarantee(0.5, least.upper)).slack >= 0
    with pytest.raises(NotPrivateError):
        certify(rows, Guarantee(0.5, math.nextafter(least.lower, 0.0)))


@pytest.mark.parametrize(
    "ratio",
    [Fraction(1), 1 + Fraction(1, 10**300), Fraction(3, 2), Fraction(10**5000), Fraction(2)],
)
def test_a_logarithm_is_enclosed(ratio: Fraction) -> None:
    lower, upper = log_enclosed(ratio)
    with mpmath.workdps(400):
        true = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert lower <= true <= upper
    assert upper - lower <= 3 * math.ulp(upper)


def test_many_pairs_are_screened_and_the_worst_is_kept() -> None:
    """Floats leave out most pairs; the answer is that of all of them, one by one."""
    rng = np.random.default_rng(3)
    rows = rng.integers(1, 2**40, size=(12, 9)).tolist()
    every = [least_epsilon([a, b], 0.01).upper for a, b in permutations(rows, 2)]
    assert least_epsilon(rows, 0.01).upper == max(every)
    every = [least_delta([a, b], 0.7).upper for a, b in permutations(rows, 2)]
    assert least_delta(rows, 0.7).upper == max(every)
