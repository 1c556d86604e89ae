"""Published bounds against formulas in many digits, and the records at which they are met."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import dpopt
from dpopt import ParameterError, roo
from experiments.roo import published
from experiments.roo.accuracy import lower_bound
from tests.oracles import compositions
from tests.roo.brute import chance, obscuring

REFERENCE = roo.RooSetting(1000, 10, 0.1)


def test_bounds_have_the_reference_values() -> None:
    assert published.roo_bound(REFERENCE) == pytest.approx(0.078144727422, abs=5e-13)
    assert published.subrr_bound(REFERENCE) == pytest.approx(0.0825688073, abs=5e-11)
    assert published.laplace_bound(REFERENCE) == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.003])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.05), (10, 0.1), (30, 1.5)])
def test_sample_sizes_are_where_the_bounds_cross_alpha(
    alpha: float, k: int, epsilon: float
) -> None:
    sizes = {}
    for method, bound in published.BOUNDS.items():
        n = sizes[method] = published.records_needed(method, alpha, k, epsilon)
        assert bound(roo.RooSetting(n, k, epsilon)) <= alpha * (1 + 1e-12)
        assert n == 1 or bound(roo.RooSetting(n - 1, k, epsilon)) > alpha * (1 - 1e-12)
    # Lemma 1 of the journal paper.
    assert sizes["roo"] <= sizes["subrr"]
    assert sizes["roo"] < sizes["laplace"]


def test_the_rate_is_theorem_3_in_many_digits() -> None:
    for n, k, epsilon, gamma in [(1000, 10, 0.1, 0.1), (400, 3, 0.5, 0.2), (60, 2, 2.0, 0.5)]:
        found = published.ds_roo_rate(roo.RooSetting(n, k, epsilon), gamma)
        with mpmath.workdps(30):
            e = mpmath.mpf(epsilon)
            g = mpmath.mpf(gamma)
            inside = mpmath.e / e - mpmath.e + 1
            first = 1 + mpmath.log(inside) / e if inside > 0 else mpmath.mpf(0)
            m = int(mpmath.ceil(max(first, 2 / mpmath.expm1(e))))
            q = 1 / (1 + mpmath.mpf(n) / k * mpmath.expm1(e))
            value = q * (k - 1) * mpmath.exp(-2 * n * (g - mpmath.mpf(m) / n) ** 2)
            leading = q * (k - 1) * mpmath.exp(-2 * n * g**2 + 4 * g * m)
            gain = mpmath.expm1(e) ** 2
            size = (k - 1 + mpmath.sqrt((k - 1) ** 2 + 4 * k * gain)) / (2 * gain)
            applies = n >= max(m / g, size, 2 * k)
        assert found.minimum == m
        assert found.value == pytest.approx(float(value), rel=1e-10)
        assert found.leading == pytest.approx(float(leading), rel=1e-10)
        assert found.applies is bool(applies)


def test_q_is_0_where_theorem_3_says_so() -> None:
    applied = 0
    for k in (2, 3, 10):
        for epsilon in (0.05, 0.1, 0.5, 1.0, 2.0):
            for n in (2 * k, 50, 300, 2000, 20000):
                if n < 2 * k:
                    continue
                rate = published.ds_roo_rate(roo.RooSetting(n, k, epsilon), 1 / k)
                if rate.applies:
                    applied += 1
                    journal = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, "journal"))
                    assert journal.obscuring(rate.minimum) == 0.0
                    assert published.ds_roo_bound(journal, 1 / k).value <= rate.value * (1 + 1e-9)
    assert applied > 30


@pytest.mark.parametrize("gamma", [0.02, 0.06, 0.1])
@pytest.mark.parametrize("rule", ["journal", "exact"])
def test_ds_roo_records_are_where_the_bound_crosses(gamma: float, rule: Any) -> None:
    n = published.ds_roo_records(0.02, 10, 0.2, gamma, rule)
    assert n <= published.records_needed("roo", 0.02, 10, 0.2)
    values = [
        published.ds_roo_bound(
            dpopt.design(dpopt.RevealOrObscure(size, 10, 0.2, rule)), gamma
        ).value
        for size in (n, n - 1)
    ]
    assert values[0] <= 0.02 * (1 + 1e-9) < values[1] * (1 + 2e-9)


def test_lower_bound_records() -> None:
    for alpha, k, epsilon in [(0.1, 3, 1.0), (0.01, 10, 0.1), (0.4, 2, 0.01)]:
        n = published.lower_bound_records(alpha, k, epsilon)
        assert lower_bound(roo.RooSetting(n, k, epsilon)).value <= alpha
        assert n == 1 or lower_bound(roo.RooSetting(n - 1, k, epsilon)).value > alpha
        assert n <= published.records_needed("roo", alpha, k, epsilon)
    with pytest.raises(ParameterError, match="more than 1e15"):
        published.lower_bound_records(1e-10, 1000, 1e-6)


@pytest.mark.sample(6)
@pytest.mark.parametrize("rule", ["journal", "exact", "conference", "roo"])
@pytest.mark.parametrize(
    ("n", "k", "epsilon", "gamma"),
    [(1000, 10, 0.1, 0.1), (1000, 10, 0.1, 0.05), (50, 3, 0.3, 0.2), (9, 2, 0.5, 0.5)],
)
def test_ds_roo_bound_is_50_in_many_digits(
    n: int, k: int, epsilon: float, gamma: float, rule: Any
) -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
    found = published.ds_roo_bound(sampler, gamma)
    with mpmath.workdps(30):
        exact = (obscuring(sampler, m) for m in range(n // k + 1))
        q = [mpmath.mpf(x.numerator) / x.denominator for x in exact]
        share, first = 1 - mpmath.mpf(1) / k, q[0] * (1 - mpmath.mpf(1) / k)
        each = {
            m: (q[m] + q[0] * k * mpmath.exp(-2 * n * (gamma - mpmath.mpf(m) / n) ** 2)) * share
            for m in range(1, n // k + 1)
            if m < n * gamma
        }
    assert found.value == pytest.approx(float(min([first, *each.values()])), rel=1e-12)
    reached = first if found.minimum is None else each[found.minimum]
    assert float(reached) == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize(("gamma", "better"), [(Fraction(1, 64), False), (Fraction(5, 16), True)])
def test_binomial_bound_is_its_formula(gamma: Fraction, better: bool) -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(40, 3, 0.2))
    mean = sum(
        obscuring(sampler, m) * math.comb(40, m) * gamma**m * (1 - gamma) ** (40 - m)
        for m in range(14)
    )
    first = obscuring(sampler, 0) * Fraction(2, 3)
    assert (2 * mean < first) is better
    bound = published.ds_roo_binomial_bound(sampler, float(gamma))
    assert bound == pytest.approx(float(min(2 * mean, first)), rel=1e-12)
    fixed = dpopt.design(dpopt.RevealOrObscure(40, 3, 0.2, "roo"))
    assert published.ds_roo_binomial_bound(fixed, float(gamma)) == pytest.approx(
        published.roo_bound(fixed.setting), rel=1e-12
    )


@pytest.mark.parametrize(
    ("n", "epsilon", "p"), [(30, 0.7, [0.25, 0.25, 0.5]), (12, 0.5, [0.2, 0.8])]
)
def test_the_smooth_floors_bound_holds(n: int, epsilon: float, p: list[float]) -> None:
    sampler = dpopt.design(dpopt.SmoothFloor(n, len(p), epsilon))
    shares = [Fraction(share) for share in p]
    pmf = np.zeros(len(p))
    for counts in compositions(n, len(p)):
        pmf += float(chance(counts, shares)) * sampler.output_distribution(counts)
    exact = np.abs(pmf - p).sum() / 2
    bound = published.smooth_floor_binomial_bound(sampler, min(p))
    lifts = [
        binom.pmf(c, n, min(p)) * (sampler.floor[c] - c) for c in range(min(len(sampler.floor), n))
    ]
    assert bound == pytest.approx(len(p) / n * sum(lifts), rel=1e-12)
    assert 0 < exact <= bound < 1
