"""Thousands of random designs: the verdict of each certificate against plain fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from dpopt import Guarantee, NotPrivateError, roo
from dpopt.majority import MajoritySetting
from tests.majority.brute import all_pairs, table, worst_excess
from tests.majority.brute import weights as weights_of
from tests.oracles import exponential, poisson_binomial
from tests.robustness.hostile import more
from tests.roo.brute import transitions
from tests.table.rows import certify

UNIT = 1 << 62
# Where e^epsilon is known to 1e-60 only, a slack smaller than this is not decided here.
UNDECIDED = Fraction(1, 10**50)
KERNELS, RULES, DESIGNS = more(1000), more(500), {1: more(200), 3: more(100), 5: more(50)}
SCALE = 1 << 220


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


def slack_of_rule(records: int, letters: int, q: list[Fraction], r: Fraction) -> Fraction:
    """Return the smallest e^epsilon K(x') - K(x) over all neighbours and letters."""

    def chance(least: int, count: int) -> Fraction:
        obscured = q[least] if least < len(q) else Fraction(0)
        return obscured / letters + (1 - obscured) * Fraction(count, records)

    slack = Fraction(1)
    for least, count, new_least, new_count in transitions(records, letters):
        slack = min(slack, r * chance(least, count) - chance(new_least, new_count))
    return slack


@pytest.mark.slow
def test_rules_of_the_smallest_count() -> None:
    rng, counts = random.Random(2), [0, 0]
    for _ in range(RULES):
        letters = rng.choice([2, 2, 3, 4])
        records = rng.randint(1, {2: 12, 3: 8, 4: 6}[letters])
        epsilon = rng.choice([0.05, 0.3, math.log(2), 1.0, 2.5])
        setting = roo.RooSetting(records, letters, epsilon)
        rule = rng.choice(["exact", "exact", "journal", "journal-repaired", "conference"])
        weights = list(roo.rule_weights(setting, rule))
        for _ in range(rng.randint(0, 2)):
            place = rng.randrange(len(weights))
            step = rng.choice([-1, 1, -2, 2, -(1 << 40), 1 << 40, -weights[place]])
            weights[place] = min(UNIT, max(0, weights[place] + step))
        sampler = roo.from_weights(setting, rule, tuple(weights))
        r = exponential(Fraction(epsilon))
        q = [Fraction(weight, UNIT) for weight in weights]
        right = verdict(slack_of_rule(records, letters, q, r))
        if right is None:
            continue
        assert sampler.private == right, (records, letters, epsilon, weights)
        assert (sampler.certificate is not None) == right
        counts[right] += 1
    assert min(counts) > RULES / 10


def test_constant_rules() -> None:
    rng = random.Random(3)
    for _ in range(300):
        letters, records = rng.choice([2, 3]), rng.randint(1, 7)
        setting = roo.RooSetting(records, letters, rng.choice([0.1, 1.0, 2.5]))
        (least,) = roo.rule_weights(setting, "roo")
        weight = max(0, least + rng.choice([-(1 << 30), -2, -1, 0, 1, 2, 1 << 30]))
        sampler = roo.from_weights(setting, "roo", (weight,))
        q = [Fraction(weight, UNIT)] * (records + 1)
        slack = slack_of_rule(records, letters, q, exponential(Fraction(setting.epsilon)))
        right = verdict(slack)
        assert right is None or sampler.private == right


@cache
def laws(voters: int, epsilon: float, shift: float) -> list[tuple[list[int], list[int]]]:
    """Return the laws of the number of ones at every multiset of corners, over 2^220, rounded."""
    found = []
    for pair in all_pairs(voters, exponential(Fraction(epsilon)), Fraction(shift)):
        one, other = ([round(chance * SCALE) for chance in poisson_binomial(side)] for side in pair)
        found.append((one, other))
    return found


def slack_of_gamma(setting: MajoritySetting, weights: tuple[int, ...]) -> Fraction:
    """Return the smallest e^(m epsilon) Pr[o | p'] + delta - Pr[o | p], from definition 2.1.

    Output 1 has probability sum_l law(l) (1/2 + h(l) / 2), h = gamma with the sign of the majority.
    """
    chances = [UNIT - w for w in weights[::-1]] + [UNIT + w for w in weights]
    whole = 2 * UNIT * SCALE
    # Integers over 2^220 throughout: fractions would be reduced after every step.
    # m epsilon itself, which the guarantee's float is rounded up from.
    product = Fraction(setting.allowance) * Fraction(setting.epsilon)
    assert product <= Fraction(setting.guarantee.epsilon)
    target = round(exponential(product) * SCALE)
    granted = round(Fraction(setting.delta) * SCALE) * whole
    slack = whole * SCALE
    for law, other in laws(setting.mechanisms, setting.epsilon, setting.mechanism_delta):
        one = sum(a * b for a, b in zip(law, chances, strict=True))
        two = sum(a * b for a, b in zip(other, chances, strict=True))
        for p, q in ((one, two), (whole - one, whole - two)):
            slack = min(slack, target * q + granted - p * SCALE)
    return Fraction(slack, whole * SCALE)


def gamma_at_limit(rng: random.Random, setting: MajoritySetting) -> tuple[int, ...]:
    """Return random weights, scaled close to the limit by bisection, or a bit off it."""
    half = [rng.random() for _ in range(setting.middle)]

    def scaled(scale: float) -> tuple[int, ...]:
        return tuple(min(UNIT, math.floor(Fraction(scale * g) * UNIT)) for g in half)

    low, high = 0.0, 1.0 / max(half)
    if slack_of_gamma(setting, scaled(high)) < 0:
        for _ in range(rng.choice([3, 8, 30])):
            middle = (low + high) / 2
            outside = slack_of_gamma(setting, scaled(middle)) < 0
            low, high = (low, middle) if outside else (middle, high)
    weights = scaled(rng.choice([low, high, (low + high) / 2, 0.9 * low]))
    return tuple(min(UNIT, max(0, weight + rng.choice([-1, 0, 0, 1]))) for weight in weights)


def test_laws_are_those_of_the_definition() -> None:
    """The fast judge against the slow one, which multiplies out every outcome."""
    rng = random.Random(5)
    for voters, shift in ((1, 0.05), (3, 0.0), (3, 0.01)):
        setting = MajoritySetting(voters, 0.3, 1.0, shift, 2 * shift)
        for _ in range(3):
            weights = tuple(rng.randrange(UNIT) for _ in range(setting.middle))
            half = [Fraction(weight, UNIT) for weight in weights]
            exact = (exponential(Fraction(0.3)), Fraction(shift), exponential(Fraction(0.3)))
            slow = -worst_excess([*half[::-1], *half], *exact, Fraction(2 * shift))
            assert abs(slack_of_gamma(setting, weights) - slow) < Fraction(1, 10**55)


@pytest.mark.slow
@pytest.mark.parametrize("voters", [1, 3, 5])
def test_noise_functions(voters: int) -> None:
    rng, counts = random.Random(voters), [0, 0]
    tried = DESIGNS[voters]
    for number in range(tried):
        shift = rng.choice([0.0, 0.0, 1e-3, 0.05]) if voters < 5 else 0.0
        epsilon = rng.choice([0.05, 0.3, 1.0])
        m = rng.choice([0.5, 1.0, voters / 2, float(voters)])
        delta = shift + rng.choice([0.0, 0.01])
        setting = MajoritySetting(voters, epsilon, min(m, float(voters)), shift, delta)
        weights = gamma_at_limit(rng, setting)
        right = verdict(slack_of_gamma(setting, weights))
        if right is None:
            continue
        found = accepted(setting.judge, table(setting, weights))
        assert found == right, (number, setting, weights)
        counts[found] += 1
    assert sum(counts) > 0.5 * tried
    assert voters == 1 or min(counts) > tried / 20


def test_gammas_a_unit_from_the_limit() -> None:
    """The repair's own largest multiple is private in fractions; its neighbours are as it says."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        epsilon, m = float(rng.choice([0.1, 0.5, 1.0])), float(rng.choice([0.7, 1.0, 1.5]))
        setting = MajoritySetting(3, epsilon, m)
        weights = weights_of(setting.table(rng.random(2)))
        for step in (-2, -1, 0, 1, 2, 64, -64):
            moved = tuple(min(UNIT, max(0, weight + step)) for weight in weights)
            right = verdict(slack_of_gamma(setting, moved))
            if right is not None:
                assert accepted(setting.judge, table(setting, moved)) == right
