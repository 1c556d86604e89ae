"""Random small settings of all rules against all neighbours in rationals."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpopt import roo
from dpopt.roo.setting import UNIT
from tests.roo.brute import histograms, neighbours

Pair = tuple[tuple[int, ...], tuple[int, ...]]


@cache
def pairs(n: int, k: int) -> tuple[Pair, ...]:
    return tuple((x, moved) for x in histograms(n, k) for moved in neighbours(x))


def worst(q: list[Fraction], n: int, k: int) -> Fraction:
    """Return the largest ratio of a rule over all neighbours and letters, by its definition."""

    def chance(counts: tuple[int, ...], y: int) -> Fraction:
        each = q[min(counts)]
        return each / k + (1 - each) * Fraction(counts[y], n)

    found = Fraction(0)
    for x, moved in pairs(n, k):
        for y in range(k):
            before, after = chance(x, y), chance(moved, y)
            if before == 0 and after > 0:
                return Fraction(10**12)
            found = max(found, after / before if before else Fraction(0))
    return found


def padded(weights: tuple[int, ...], n: int, k: int) -> list[Fraction]:
    return [Fraction(w, UNIT) for w in weights] + [Fraction(0)] * (n // k + 2 - len(weights))


@pytest.mark.parametrize("seed", range(60))
def test_every_audit_is_that_of_all_neighbours(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    k = int(rng.integers(2, 5))
    n = int(rng.integers(1, 12 if k < 4 else 9))
    epsilon = float(10 ** rng.uniform(-3, 1))
    r = roo.RooSetting(n, k, epsilon).ratio
    for rule in roo.RULES:
        found = roo.min_count(n, k, epsilon, rule)
        q = [Fraction(found.weights[0], UNIT)] * (n // k + 2)
        largest = worst(q if rule == "roo" else padded(found.weights, n, k), n, k)
        assert found.audit.worst_ratio == largest
        assert found.private == (largest <= r)
        assert found.private or rule in ("journal", "conference")
    # Weights of no rule at all, too few of them as well.
    many = int(rng.integers(1, n // k + 2))
    weights = tuple(int(w) for w in rng.integers(0, UNIT, many, endpoint=True))
    audit = roo.from_weights(roo.RooSetting(n, k, epsilon), "exact", weights).audit
    largest = worst(padded(weights, n, k), n, k)
    assert audit.worst_ratio == largest or (audit.worst_ratio is None and largest == 10**12)
    assert audit.private == (largest <= r)


@pytest.mark.parametrize("seed", range(40))
def test_no_value_of_the_exact_rule_can_be_less(seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    k = int(rng.integers(2, 5))
    n = int(rng.integers(2, 12 if k < 4 else 9))
    found = roo.min_count(n, k, float(10 ** rng.uniform(-2, 0.7)))
    for m, weight in enumerate(found.weights):
        if weight > 2**20:
            q = padded(found.weights, n, k)
            q[m] = Fraction(weight - 2**20, UNIT)
            assert worst(q, n, k) > found.setting.ratio
