"""Published bounds against formulas in many digits, and the records at which they are met."""

from __future__ import annotations

import mpmath
import pytest

from dpopt import ParameterError, roo
from experiments.roo import published

REFERENCE = roo.RooSetting(1000, 10, 0.1)


def test_bounds_have_the_reference_values() -> None:
    assert roo.roo_bound(REFERENCE) == pytest.approx(0.078144727422, abs=5e-13)
    assert published.subrr_bound(REFERENCE) == pytest.approx(0.0825688073, abs=5e-11)
    assert published.laplace_bound(REFERENCE) == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.003])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.05), (10, 0.1), (30, 1.5)])
def test_sample_sizes_are_where_the_bounds_cross_alpha(
    alpha: float, k: int, epsilon: float
) -> None:
    bounds = {
        "laplace": published.laplace_bound,
        "subrr": published.subrr_bound,
        "roo": roo.roo_bound,
    }
    sizes = {}
    for method in published.METHODS:
        n = sizes[method] = published.records_needed(method, alpha, k, epsilon)
        assert bounds[method](roo.RooSetting(n, k, epsilon)) <= alpha * (1 + 1e-12)
        if n > 1:
            assert bounds[method](roo.RooSetting(n - 1, k, epsilon)) > alpha * (1 - 1e-12)
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
                    journal = roo.min_count(n, k, epsilon, "journal")
                    assert journal.obscuring(rate.minimum) == 0.0
                    assert roo.ds_roo_bound(journal, 1 / k).value <= rate.value * (1 + 1e-9)
    assert applied > 30


@pytest.mark.parametrize("gamma", [0.02, 0.06, 0.1])
@pytest.mark.parametrize("rule", ["journal", "exact"])
def test_ds_roo_records_are_where_the_bound_crosses(gamma: float, rule: str) -> None:
    n = published.ds_roo_records(0.02, 10, 0.2, gamma, rule)
    assert n <= published.records_needed("roo", 0.02, 10, 0.2)
    values = [
        roo.ds_roo_bound(roo.min_count(size, 10, 0.2, rule), gamma).value for size in (n, n - 1)
    ]
    assert values[0] <= 0.02 * (1 + 1e-9) < values[1] * (1 + 2e-9)


def test_lower_bound_records() -> None:
    for alpha, k, epsilon in [(0.1, 3, 1.0), (0.01, 10, 0.1), (0.4, 2, 0.01)]:
        n = published.lower_bound_records(alpha, k, epsilon)
        assert roo.lower_bound(roo.RooSetting(n, k, epsilon)).value <= alpha
        if n > 1:
            assert roo.lower_bound(roo.RooSetting(n - 1, k, epsilon)).value > alpha
        assert n <= published.records_needed("roo", alpha, k, epsilon)
    with pytest.raises(ParameterError, match="more than 1e15"):
        published.lower_bound_records(1e-10, 1000, 1e-6)
