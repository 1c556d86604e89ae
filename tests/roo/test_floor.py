"""The smooth floor against its definition, and its proof against all neighbouring data sets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import dpopt
from dpopt import NotPrivateError, roo, verify
from dpopt.roo.floor import SmoothFloor, floor_of
from dpopt.shape import design, made
from tests.roo.brute import floor_ratio, floored


def grown(epsilon: float) -> Fraction:
    return Fraction(verify.exp(epsilon)[0])


CASES = [
    (n, k, epsilon)
    for k in (2, 3, 4, 5)
    for n in (1, 2, 3, 5, 8, 12)
    for epsilon in (0.1, 0.35, 1.0, 3.0)
    if epsilon > math.log1p(1 / n) and (k < 5 or n < 12)
]


@pytest.mark.sample(24)
@pytest.mark.parametrize(("n", "k", "epsilon"), [*CASES, (20, 4, 0.1)])
def test_no_larger_rate_is_private(n: int, k: int, epsilon: float) -> None:
    sampler = dpopt.design(dpopt.SmoothFloor(n, k, epsilon))
    (bits, weights), largest = sampler.table, grown(epsilon)
    assert sampler.private
    assert floor_ratio(n, k, weights, 1 << bits) == sampler.worst_ratio <= largest
    mantissa, exponent = math.frexp(sampler.growth)
    assert (mantissa * 2.0**41).is_integer()
    for units in (1, 2**30):
        larger = floor_of(sampler.growth + units * 2.0 ** (exponent - 40))[1]
        assert floor_ratio(n, k, larger, 1 << bits) > largest


@given(
    st.integers(2, 9),
    st.integers(2, 4),
    st.floats(0.01, 3.0),
    st.one_of(st.floats(0.01, 1.2), st.just(None)),
)
@settings(deadline=None, max_examples=30)
def test_the_audit_finds_the_largest_ratio_there_is(
    n: int, k: int, epsilon: float, share: float | None
) -> None:
    assume(epsilon > math.log1p(1 / n) * 1.001)
    setting = SmoothFloor(n, k, epsilon)
    growth = setting.growth if share is None else math.expm1(share * epsilon)
    table = floor_of(growth)
    worst = floor_ratio(n, k, table[1], 1 << table[0])
    assert setting.report(table)["worst_ratio"]() == worst
    try:
        setting.judge(table)
        assert worst <= grown(epsilon)
    except NotPrivateError:
        assert worst > grown(epsilon)
        assert share is not None


def test_the_rate_epsilon_itself_is_not_private() -> None:
    table = floor_of(math.expm1(0.5))
    worst = floor_ratio(20, 3, table[1], 1 << table[0])
    assert worst > grown(0.5)
    with pytest.raises(NotPrivateError, match=r"not 0\.5-DP") as caught:
        SmoothFloor(20, 3, 0.5).judge(table)
    assert caught.value.excess == pytest.approx(float(worst) / math.exp(0.5) - 1)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1, 0.37, math.log(2), 1.0, 5.0, 100.0])
def test_weights_are_the_maximum_of_the_definition(rate: float) -> None:
    growth = math.expm1(rate)
    bits, weights = floor_of(growth)
    last = len(weights)
    with mp.workprec(400):
        step = 1 + mpf(growth)
        assert last == math.ceil(1 / mpf(growth))
        for c in {0, 1, 2, last // 3, last // 2, last - 1, last, last + 5}:
            exact = max(j * step ** (c - j) for j in range(c, last + 10)) * mpf(2) ** bits
            found = weights[c] if c < last else c << bits
            assert 0 <= found - exact <= max(last - c, 0)


@given(st.floats(1e-3, 30.0))
@settings(deadline=None, max_examples=50)
def test_weights_are_convex_and_grow_by_at_most_the_step(rate: float) -> None:
    growth = math.expm1(rate)
    bits, weights = floor_of(growth)
    table = [*weights] + [c << bits for c in range(len(weights), len(weights) + 3)]
    steps = [b - a for a, b in pairwise(table)]
    assert table[0] > 0
    assert steps == sorted(steps)
    assert steps[0] >= 0
    assert steps[-1] == 1 << bits
    below = pairwise(table[: len(weights) + 1])
    assert all(b <= a * (1 + Fraction(growth)) for a, b in below)
    assert all(w >= c << bits for c, w in enumerate(table))


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 0.1), (50, 0.4), (10**6, 1e-3), (10**9, 2.0)])
def test_the_rate_solves_the_equation_where_categories_are_few(n: int, epsilon: float) -> None:
    sampler = dpopt.design(dpopt.SmoothFloor(n, 10 if n > 50 else 3, epsilon))
    a, floor = sampler.rate, sampler.floor[0]
    value = math.exp(a) * (n + floor) / (n + floor * math.exp(a) - 1)
    assert math.log(value) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon - math.log1p(1 / n) < a < epsilon


@given(
    st.integers(2, 9),
    st.integers(2, 4),
    st.lists(st.integers(0, 64), min_size=1, max_size=5),
)
@example(5, 3, [22, 36])
@settings(deadline=None, max_examples=150)
def test_any_convex_weights_are_bounded(n: int, k: int, steps: list[int]) -> None:
    weights = [len(steps) << 6]
    for step in sorted(steps, reverse=True):
        weights.append(weights[-1] - step)
    table = tuple(reversed(weights[1:]))
    assume(table[0] > 0)
    floor, worst = verify.Floor(n, k, [*table], 1 << 6), floor_ratio(n, k, table, 1 << 6)
    assert floor.worst()[0] == worst
    assert floor.decide(worst).slack == 0
    with pytest.raises(verify.Refused, match="not private"):
        floor.decide(worst * (1 - Fraction(1, 10**15)))


def test_no_bias_where_every_count_is_above_the_floor() -> None:
    sampler = dpopt.design(dpopt.SmoothFloor(1000, 4, 0.1))
    counts = np.array([700, 250, 30, 20])
    assert len(sampler.floor) <= 20
    assert np.array_equal(sampler.output_distribution(counts), counts / 1000)
    floored_pmf = sampler.output_distribution([980, 20, 0, 0])
    bits, table = sampler.table
    weights = floored(table, 1 << bits, [980, 20, 0, 0])
    exact = [float(Fraction(weight, sum(weights))) for weight in weights]
    assert floored_pmf == pytest.approx(exact, rel=1e-14)
    assert not floored_pmf.flags.writeable


def test_every_drawn_integer_gives_its_category() -> None:
    small = made(SmoothFloor(6, 4, 0.5), (2, (4, 6, 9)), strict=False)
    data = roo.Tally.of_counts([0, 4, 2, 0], 4)

    def drawn(*integers: int) -> int:
        """The category for a weight among all 33, and a place among those alike."""
        given = iter(integers)
        return small.setting.drawn(small.table, data, lambda n: next(given).to_bytes(n, "little"))

    # Two categories of count 0 share 8 of the weights: each is drawn from half of them.
    lowest = [drawn(value, index) for value in range(8) for index in range(2)]
    others = [drawn(value, 0) for value in range(8, 33)]
    assert np.bincount(lowest, minlength=4).tolist() == [8, 0, 0, 8]
    assert np.bincount(others, minlength=4).tolist() == [0, 16, 9, 0]
    assert small.setting.output_weights(small.table, data) == [4, 16, 9, 4]


@pytest.mark.slow
def test_a_thousand_million_records_and_a_million_categories() -> None:
    n, k = 10**9, 10**6
    sampler = dpopt.design(dpopt.SmoothFloor(n, k, 1e-2))
    counts = np.random.default_rng(2).multinomial(n - 5, np.ones(k) / k)
    counts[0] += 5
    assert sampler.private
    assert sampler.release(roo.Tally.of_counts(counts, k)) in range(k)
    assert sampler.output_distribution(counts).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [20.0, 50.0, 600.0])
def test_large_epsilon_keeps_its_tiny_weights(epsilon: float) -> None:
    sampler = dpopt.design(dpopt.SmoothFloor(20, 3, epsilon))
    assert sampler.private
    assert sampler.rate == pytest.approx(epsilon, rel=1e-9)
    assert math.log(sampler.floor[0]) == pytest.approx(-epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "k", "epsilon"), [(12, 3, 0.3), (100, 4, 0.05), (20, 3, 13.0), (20, 3, 0.5)]
)
@pytest.mark.parametrize("backend", ["highs", "cvxpy"])
def test_the_table_solves_its_program(n: int, k: int, epsilon: float, backend: str) -> None:
    setting = SmoothFloor(n, k, epsilon)
    table, solved = design(setting), design(setting, backend=backend)
    assert solved.value == pytest.approx(table.value, rel=1e-10)
    assert solved.bound == pytest.approx(table.value, rel=1e-9)
    assert solved.private
    assert table.private
    assert all(a >= b for a, b in zip(solved.table[1], table.table[1], strict=True))
    assert table.growth == setting.growth
    lift = sum(w - c for c, w in enumerate(table.floor))
    assert table.value == pytest.approx(lift, rel=1e-12)


def test_no_block_has_a_larger_ratio_than_its_bound() -> None:
    """Random convex weights: all blocks, and all (c, d) in them that have to be checked."""
    rng, checked = np.random.default_rng(3), 0
    for _ in range(60):
        n, k, last, unit = (int(rng.integers(a, b)) for a, b in ((1, 9), (2, 6), (1, 5), (1, 9)))
        steps = sorted(rng.integers(0, unit + 1, last).tolist())
        weights = [last * unit - sum(steps[c:]) for c in range(last)]
        if weights[0] <= 0:
            continue
        floor = verify.Floor(n, k, weights, unit)
        rises = list(combinations_with_replacement(range(min(last, n - 1) + 1), 2))
        falls = list(combinations_with_replacement(range(1, min(n, last + 1) + 1), 2))
        for (c1, c2), (d1, d2) in product(rises, falls):
            over, under = floor.bound(c1, c2, d1, d2)
            for c, d in product(range(c1, c2 + 1), range(d1, d2 + 1)):
                other = max(d, floor.even(c)) if d > last else d
                if d >= min(floor.even(c), last + 1) and (
                    c + other == n if k == 2 else c + other <= n
                ):
                    _, a, b = floor.ratio(c, d)
                    assert a * under <= over * b
                    checked += 1
    assert checked > 5000
