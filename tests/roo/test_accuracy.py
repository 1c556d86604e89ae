"""Bounds against formulas in many digits; exact expectations against enumeration and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import dpopt
from dpopt import roo
from experiments.roo import accuracy, published
from tests.oracles import compositions
from tests.roo.brute import chance, lower_bound, obscuring

MODEST = settings(max_examples=30, deadline=None, derandomize=True)


def enumerated(sampler: Any, p: list[Fraction]) -> tuple[list[Fraction], Fraction]:
    """Return the differences, and E[q_M], over all outcomes of the multinomial."""
    n, k = sampler.setting.records, sampler.setting.categories
    differences, mean = [Fraction(0)] * k, Fraction(0)
    for counts in compositions(n, k):
        part = chance(counts, p) * obscuring(sampler, min(counts))
        mean += part
        for y, count in enumerate(counts):
            differences[y] += part * (Fraction(1, k) - Fraction(count, n))
    return differences, mean


def test_lower_bound_is_the_maximum_over_all_d_and_j() -> None:
    cases = [(20, 3, 0.3), (1000, 10, 0.1), (6, 5, 2.0), (3, 9, 0.7), (40, 7, 0.05), (100, 2, 0.2)]
    for n, k, epsilon in [*cases, (1, 2, 0.1), (300, 40, 1.0), (12, 4, 8.0)]:
        found = accuracy.lower_bound(roo.RooSetting(n, k, epsilon))
        assert found.value == pytest.approx(lower_bound(n, k, epsilon), rel=1e-12)
        d, j = found.categories, found.records
        assert d * j <= n
        again = (d * j / n) / (1 + d * math.exp(epsilon * j) / (k - d))
        assert again == pytest.approx(found.value, rel=1e-12)


def test_lower_bound_of_large_settings() -> None:
    """With real d and j the bound is max over x of (k / (n epsilon)) x / (1 + e^(x/2))^2."""
    x = np.linspace(0.5, 3, 100_001)
    limit = float((x / (1 + np.exp(x / 2)) ** 2).max())
    for n, k, epsilon in [(10**9, 10**4, 1e-3), (10**12, 10**7, 1e-3)]:
        found = accuracy.lower_bound(roo.RooSetting(n, k, epsilon)).value
        assert found == pytest.approx(limit * k / (n * epsilon), rel=1e-5)
        assert found <= limit * k / (n * epsilon) * (1 + 1e-12)
    assert 0 < accuracy.lower_bound(roo.RooSetting(10, 3, 600.0)).value < 1e-250


@pytest.mark.sample(12)
@pytest.mark.parametrize("rule", [*roo.RULES, "smooth floor"])
@pytest.mark.parametrize(
    ("n", "k", "epsilon"),
    [(7, 3, 0.3), (9, 2, 0.15), (5, 4, 0.8), (2, 4, 1.0), (1, 2, 1.0), (7, 4, 0.3), (12, 2, 2.0)],
)
def test_worst_case_is_that_of_all_data_sets(n: int, k: int, epsilon: float, rule: Any) -> None:
    floor = rule == "smooth floor"
    sampler = dpopt.design(
        dpopt.SmoothFloor(n, k, epsilon) if floor else dpopt.RevealOrObscure(n, k, epsilon, rule)
    )
    each = [
        np.abs(sampler.output_distribution(c) - np.array(c) / n).sum() / 2
        for c in compositions(n, k)
    ]
    assert sampler.worst_case == pytest.approx(max(each), rel=1e-13)


PMFS = [
    (6, 3, 0.3, [0.25, 0.25, 0.5]),
    (12, 3, 0.2, [0.125, 0.375, 0.5]),
    (9, 2, 0.1, [0.5, 0.5]),
    (15, 3, 0.3, [2**-10, 0.5 - 2**-10, 0.5]),
    (1, 2, 0.5, [0.25, 0.75]),
    (3, 5, 0.5, [0.25, 0.25, 0.25, 0.125, 0.125]),
    (20, 2, 0.5, [0.0625, 0.9375]),
    (14, 4, 0.4, [0.125, 0.125, 0.25, 0.5]),
    (8, 3, 0.4, [0.0, 0.25, 0.75]),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("rule", ["exact", "journal", "conference", "roo"])
@pytest.mark.parametrize(("n", "k", "epsilon", "p"), PMFS)
def test_expected_output_is_that_of_all_outcomes(
    n: int, k: int, epsilon: float, p: list[float], rule: Any
) -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
    found = accuracy.expected_output(sampler, p)
    differences, mean = enumerated(sampler, [Fraction(share) for share in p])
    assert found.mean_obscuring == pytest.approx(float(mean), rel=1e-13)
    known = [float(value) for value in differences]
    assert found.difference == pytest.approx(known, abs=1e-15 * float(mean))
    assert found.pmf == pytest.approx([a + b for a, b in zip(p, known, strict=True)], abs=1e-15)
    assert found.total_variation == pytest.approx(sum(map(abs, known)) / 2, abs=1e-15)
    assert not found.difference.flags.writeable


def direct(sampler: Any, p: list[float]) -> tuple[np.ndarray, float]:
    """Return the same from Pr(all counts >= m), one after the other, by conditional binomials."""
    n, k = sampler.setting.records, sampler.setting.categories

    def at_least(total: int, least: list[int]) -> float:
        reach, left = np.zeros(total + 1), 1.0
        reach[0] = 1.0
        for share, low in zip(p, least, strict=True):
            moved = np.zeros(total + 1)
            for used in np.flatnonzero(reach):
                count = np.arange(low, total - used + 1)
                rest = min(1.0, share / left)
                moved[used + count] += reach[used] * binom.pmf(count, total - used, rest)
            reach, left = moved, left - share
        return float(reach[total])

    q = [sampler.obscuring(m) for m in range(n // k + 2)]
    steps = [q[0], *np.diff(q)]
    differences, mean = np.zeros(k), 0.0
    # q_M is the sum over m <= M of q_m - q_{m-1}.
    for m, step in enumerate(steps):
        both = at_least(n, [m] * k)
        mean += step * both
        for y in range(k):
            least = [m - (z == y) if m else 0 for z in range(k)]
            differences[y] += step * (both / k - p[y] * at_least(n - 1, least))
    return differences, mean


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "p"),
    [
        (50, 0.2, [0.05, 0.1, 0.15, 0.3, 0.4]),
        (60, 0.2, [0.2, 0.2, 0.3, 0.3]),
        (60, 0.05, [0.1, 0.9]),
    ],
)
def test_expected_output_agrees_with_conditional_binomials(
    n: int, epsilon: float, p: list[float]
) -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(n, len(p), epsilon))
    found = accuracy.expected_output(sampler, p)
    differences, mean = direct(sampler, p)
    assert found.mean_obscuring == pytest.approx(mean, rel=1e-9, abs=1e-13)
    assert found.difference == pytest.approx(differences, rel=1e-7, abs=1e-13)


def test_expected_output_of_many_records_is_between_bonferronis_bounds() -> None:
    n, k, gamma = 100_000, 10, 5e-4
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, 0.1))
    found = accuracy.expected_output(sampler, [gamma] * 9 + [1 - 9 * gamma])
    m = np.arange(sampler.q.size)
    pmf = binom.pmf(m, n, gamma)
    single = 9 * float(sampler.q @ pmf)
    # Counts of a multinomial are negatively associated: pairs are rarer than independent ones.
    pairs = 36 * sampler.q[0] * float(pmf.sum()) ** 2
    assert 1e-12 < found.mean_obscuring < 1e-9
    assert pairs < 1e-5 * single
    assert single - pairs <= found.mean_obscuring * (1 + 1e-10) <= single * (1 + 2e-10)
    assert abs(found.difference.sum()) < 1e-9 * found.mean_obscuring


def test_uniform_and_far_away_distributions() -> None:
    uniform = accuracy.expected_output(
        dpopt.design(dpopt.RevealOrObscure(1000, 10, 0.1)), np.full(10, 0.1)
    )
    assert uniform.total_variation < 1e-30
    assert 0 < uniform.mean_obscuring < 1e-20
    far = accuracy.expected_output(
        dpopt.design(dpopt.RevealOrObscure(10**6, 10, 0.1)), np.full(10, 0.1)
    )
    assert far.mean_obscuring == 0.0
    assert not far.difference.any()
    p = np.array([0.7, 0.2, 0.1])
    fixed = accuracy.expected_output(dpopt.design(dpopt.RevealOrObscure(40, 3, 0.2, "roo")), p)
    q = published.least_obscuring(roo.RooSetting(40, 3, 0.2))
    assert fixed.total_variation == pytest.approx(q * np.abs(p - 1 / 3).sum() / 2, rel=1e-12)


@MODEST
@given(st.data())
def test_expected_output_is_equivariant_and_below_every_bound(data: st.DataObject) -> None:
    k = data.draw(st.integers(2, 6))
    n = data.draw(st.integers(k, 300))
    epsilon = data.draw(st.floats(0.02, 2.0))
    raw = np.array(data.draw(st.lists(st.integers(1, 30), min_size=k, max_size=k)), dtype=float)
    p = raw / raw.sum()
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon))
    found = accuracy.expected_output(sampler, p)
    order = np.array(data.draw(st.permutations(range(k))))
    moved = accuracy.expected_output(sampler, p[order])
    assert moved.difference == pytest.approx(found.difference[order], abs=1e-14)
    assert abs(found.difference.sum()) < 1e-13
    gamma = min(float(p.min()), 1 / k)
    value = found.total_variation
    binomial = published.ds_roo_binomial_bound(sampler, gamma)
    assert value <= binomial * (1 + 1e-9)
    assert value <= published.ds_roo_bound(sampler, gamma).value * (1 + 1e-9)
    assert value <= sampler.worst_case * (1 + 1e-9)
    assert binomial <= published.roo_bound(sampler.setting) * (1 + 1e-12)
