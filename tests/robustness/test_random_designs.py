"""Thousands of random designs: the verdict of each certificate against plain fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from dpopt import Guarantee, Majority, NotPrivateError, RevealOrObscure, roo
from dpopt.shape import made
from tests.majority.brute import at_the_limit, judged, table
from tests.oracles import exponential
from tests.robustness.hostile import more
from tests.roo.brute import Rule
from tests.table.rows import certify

UNIT = 1 << 62
# Where e^epsilon is known to 1e-60 only, a slack smaller than this is not decided here.
UNDECIDED = Fraction(1, 10**50)
KERNELS, RULES = more(1000), more(500)


def verdict(slack: Fraction) -> bool | None:
    return None if abs(slack) <= UNDECIDED else slack > 0


def accepted(check: object, *arguments: object, **more: object) -> bool:
    try:
        check(*arguments, **more)  # type: ignore[operator]
    except NotPrivateError:
        return False
    return True


def random_row(rng: random.Random, outputs: int, total: int) -> list[int]:
    cuts = sorted(rng.randint(0, total) for _ in range(outputs - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]


def near(rng: random.Random, row: list[int], r: Fraction, bits: int) -> list[int]:
    """Return a row whose ratios to another are at the limit, or a unit or two off it."""
    found = list(row)
    give, take = rng.sample(range(len(row)), 2)
    room = min(found[give], math.floor((r - 1) * found[take]) + rng.randint(-2, 2))
    moved = max(0, min(room, (1 << bits) - found[take]))
    found[give] -= moved
    found[take] += moved
    return found


def kernel_is_private(
    rows: list[list[int]], bits: int, r: Fraction, delta: Fraction, pairs: list[tuple[int, int]]
) -> bool | None:
    """By definition: over every event, that is, the sum of the positive excesses."""
    worst = Fraction(-1)
    for x, y in pairs:
        excess = [Fraction(a) - r * b for a, b in zip(rows[x], rows[y], strict=True)]
        # With delta = 0 the largest single excess decides, and its sign is that of the sum.
        total = sum((e for e in excess if e > 0), Fraction(0))
        worst = max(worst, (total if total > 0 else max(excess)) / (1 << bits) - delta)
    return verdict(-worst)


@pytest.mark.slow
def test_kernels() -> None:
    rng, undecided = random.Random(1), 0
    counts = [0, 0]
    for _ in range(KERNELS):
        inputs, outputs = rng.randint(2, 4), rng.randint(2, 4)
        bits = rng.choice([3, 6, 20, 62])
        epsilon = rng.choice([0.0, 0.1, math.log(2), 1.0, 3.0])
        delta = rng.choice([0.0, 0.0, 0.01, 0.25])
        r = exponential(Fraction(epsilon))
        base = random_row(rng, outputs, 1 << bits)
        rows = [near(rng, base, r, bits) if rng.random() < 0.8 else list(base)]
        rows += [rng.choice([base, near(rng, base, r, bits)]) for _ in range(inputs - 1)]
        every = [(x, y) for x, y in product(range(inputs), repeat=2) if x != y]
        edges = [(x, y) for x, y in every if x < y]
        some = rng.sample(edges, rng.randint(1, len(edges)))
        pairs = None if rng.random() < 0.5 else [*some, *((y, x) for x, y in some)]
        right = kernel_is_private(rows, bits, r, Fraction(delta), pairs or every)
        if right is None:
            undecided += 1
            continue
        target = Guarantee(epsilon, delta)
        found = accepted(certify, rows, target, pairs)
        assert found == right, (rows, bits, epsilon, delta, pairs)
        counts[found] += 1
    assert min(counts) > KERNELS / 10
    assert undecided < KERNELS / 2


def slack_of_rule(records: int, categories: int, q: list[Fraction], r: Fraction) -> Fraction:
    """Return the smallest e^epsilon K(x') - K(x) over all neighbours and categories."""
    beyond = [Fraction(0)] * (records // categories + 1 - len(q))
    return min(Fraction(1), Rule(records, categories, [*q, *beyond]).least_slack(r))


@pytest.mark.slow
def test_rules_of_the_smallest_count() -> None:
    rng, counts = random.Random(2), [0, 0]
    for _ in range(RULES):
        categories = rng.choice([2, 2, 3, 4])
        records = rng.randint(1, {2: 12, 3: 8, 4: 6}[categories])
        epsilon = rng.choice([0.05, 0.3, math.log(2), 1.0, 2.5])
        rules: Any = ["exact", "exact", "journal", "journal-repaired", "conference", "roo"]
        rule = rng.choice(rules)
        setting = RevealOrObscure(records, categories, epsilon, rule)
        weights = list(roo.rule_weights(setting, rule))
        for _ in range(rng.randint(0, 2)):
            place = rng.randrange(len(weights))
            step = rng.choice([-1, 1, -2, 2, -(1 << 40), 1 << 40, -weights[place]])
            weights[place] = min(UNIT, max(0, weights[place] + step))
        sampler = made(setting, tuple(weights), strict=False, float_bound=None)
        r = exponential(Fraction(epsilon))
        # The rule "roo" has one q for all smallest counts.
        q = [Fraction(weight, UNIT) for weight in weights] * (records + 1 if rule == "roo" else 1)
        right = verdict(slack_of_rule(records, categories, q, r))
        if right is None:
            continue
        assert sampler.private == right, (records, categories, epsilon, weights)
        assert (sampler.certificate is not None) == right
        counts[right] += 1
    assert min(counts) > RULES / 10


@pytest.mark.slow
def test_gammas_a_unit_from_the_limit() -> None:
    """The largest multiple that is private in fractions, and others some units from it."""
    rng, counts = random.Random(4), [0, 0]
    for _ in range(more(60)):
        voters = rng.choice([1, 3, 3, 5])
        shift = rng.choice([0.0, 0.0, 1e-3, 0.05]) if voters < 5 else 0.0
        m = min(rng.choice([0.5, 0.7, 1.0, voters / 2, float(voters)]), float(voters))
        delta = shift + rng.choice([0.0, 0.01])
        setting = Majority(voters, rng.choice([0.05, 0.3, 1.0]), m, shift, delta)
        limit = at_the_limit(setting, tuple(rng.randrange(UNIT) for _ in range(setting.middle)))
        for step in (0, *rng.sample((-64, -2, -1, 1, 2, 64, 1 << 40), 2)):
            weights = tuple(min(UNIT, max(0, weight + step)) for weight in limit)
            right = verdict(-judged(setting, weights))
            if right is not None:
                assert accepted(setting.judge, table(setting, weights)) == right
                counts[right] += 1
    assert min(counts) > 20
