"""Logarithms rounded up, found by bisection over the floats."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Guarantee
from dpopt.privacy import ExactKernel
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exponential import least_float, log_near, log_upper

TINY = 5e-324


def true_log(ratio: Fraction) -> mpmath.mpf:
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


FAR = [
    Fraction(1 + 2**300, 2**300),
    Fraction(1 + 2**1000, 2**1000),
    Fraction(1 + 2**5000, 2**5000),
    Fraction(2**15_000 + 1, 3),
    Fraction(3),
    Fraction(2),
    Fraction(2**53 + 1, 2**53),
]


@pytest.mark.parametrize("ratio", FAR, ids=lambda ratio: f"{float(log_near(ratio)):g}")
def test_the_logarithm_of_any_ratio_is_found_at_once(ratio: Fraction) -> None:
    # A walk from float to float would take 1e17 steps for the first ones.
    found = log_upper(ratio)
    with mpmath.workprec(12_000):
        exact = true_log(ratio)
        assert exact <= mpmath.mpf(found)
        assert mpmath.mpf(found) <= max(exact * (1 + mpmath.mpf(2) ** -50), mpmath.mpf(TINY))


@given(st.fractions(min_value=1, max_value=10**30, max_denominator=10**40))
def test_it_is_above_the_logarithm_by_a_few_floats(ratio: Fraction) -> None:
    found = log_upper(ratio)
    with mpmath.workdps(120):
        exact = true_log(ratio)
        assert exact <= mpmath.mpf(found) <= exact * (1 + mpmath.mpf(2) ** -49)
    assert log_upper(Fraction(1)) == 0.0


@given(st.floats(0.0, 1e300), st.floats(0.0, 1e300))
def test_the_least_float_is_found(limit: float, start: float) -> None:
    calls = []

    def reached(value: float) -> bool:
        calls.append(value)
        return value >= limit

    assert least_float(reached, start) == max(limit, start)
    assert len(calls) < 150


def test_losses_of_laws_that_hardly_differ() -> None:
    one = 1 << 400
    rows = [[one // 2 + 1, one // 2 - 1], [one // 2 - 1, one // 2 + 1]]
    kernel = ExactKernel.make(rows, 400, Guarantee(1e-100))
    pair = DominatingPair(kernel.weights[0], kernel.weights[1], one)
    # log((1 + x) / (1 - x)) = 2 x + ... with x = 2^-399.
    assert pair.largest_loss == pytest.approx(math.ldexp(2.0, -399), rel=1e-15)
    assert pair.to_records()[0]["loss"] == pytest.approx(math.ldexp(2.0, -399), rel=1e-15)
    assert pair.to_records()[1]["loss"] == pytest.approx(-math.ldexp(2.0, -399), rel=1e-15)
