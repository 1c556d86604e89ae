"""Double-double arithmetic and logarithms against fractions and mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt.prob import logarithms

FLOATS = st.floats(min_value=-1e100, max_value=1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
INTEGERS = np.unique(
    np.concatenate(
        [
            np.arange(1, 70),
            np.array([2**k + d for k in range(7, 34) for d in (-1, 0, 1)]),
            np.random.default_rng(5).integers(1, 10**10, 200),
            np.random.default_rng(6).integers(1, 10**6, 200),
        ]
    )
)


def one(value):
    return np.array([value])


@given(FLOATS, FLOATS)
def test_sum_and_product_lose_nothing(a, b):
    high, low = logarithms.two_sum(one(a), one(b))
    assert Fraction(high[0]) + Fraction(low[0]) == Fraction(a) + Fraction(b)
    high, low = logarithms.two_product(one(a), one(b))
    assert Fraction(high[0]) + Fraction(low[0]) == Fraction(a) * Fraction(b)


@given(FLOATS, FLOATS, FLOATS)
def test_scaling_and_adding_pairs(a, b, c):
    pair = logarithms.two_sum(one(a), one(1e-17 * a))
    exact = Fraction(pair[0][0]) + Fraction(pair[1][0])
    high, low = logarithms.scale(one(b), pair)
    product = Fraction(b) * exact
    assert abs(Fraction(high[0]) + Fraction(low[0]) - product) <= abs(product) / 2**100
    high, low = logarithms.add(pair, (one(c), one(0.0)))
    bound = max(abs(exact), abs(Fraction(c))) / 2**100
    assert abs(Fraction(high[0]) + Fraction(low[0]) - exact - Fraction(c)) <= bound


def test_total_survives_cancellation():
    pairs = [(one(1e17), one(3e-3)), (one(1.0), one(2e-18)), (one(-1e17), one(-3e-3))]
    assert logarithms.total(pairs)[0] == pytest.approx(1.0, rel=1e-15)
    units = [(one(1e17), one(0.0)), (one(1.0), one(2e-18)), (one(-1e17), one(0.0))]
    assert logarithms.total([*units, (one(-1.0), one(0.0))])[0] == 0.0
    assert logarithms.total([(one(1.0), one(2e-18)), (one(-1.0), one(0.0))])[0] == 2e-18


def error(pair, index, exact):
    return abs(float(mpmath.mpf(float(pair[0][index])) + mpmath.mpf(float(pair[1][index])) - exact))


def test_logarithms_of_integers():
    pair = logarithms.log_integer(INTEGERS)
    with mpmath.workdps(60):
        assert max(error(pair, i, mpmath.log(int(v))) for i, v in enumerate(INTEGERS)) < 2e-25


def test_logarithms_of_factorials():
    values = np.concatenate([[0], INTEGERS])
    pair = logarithms.log_factorial(values)
    with mpmath.workdps(60):
        for index, value in enumerate(values):
            exact = mpmath.loggamma(int(value) + 1)
            assert error(pair, index, exact) < 3e-18 + 2e-25 * float(value)


def test_a_table_looks_up_the_same_numbers():
    table = logarithms.factorial_table(20_000)
    values = np.array([0, 1, 15, 16, 8191, 8192, 20_000])
    for looked_up, computed in zip(table(values), logarithms.log_factorial(values), strict=True):
        np.testing.assert_array_equal(looked_up, computed)


@pytest.mark.sample(5)
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-18, 1e-17, 1e-16, 0.3, 1.0, 7.0, 50.0, 700.0])
def test_exponential_in_two_floats(epsilon):
    high, low = logarithms.exponential(epsilon)
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(epsilon))
        assert abs(mpmath.mpf(high) + mpmath.mpf(low) - exact) <= exact * mpmath.mpf(2) ** -104
    with mpmath.workdps(400):
        rise = mpmath.expm1(mpmath.mpf(epsilon))
        assert abs((mpmath.mpf(high) - 1) + mpmath.mpf(low) - rise) <= rise * mpmath.mpf(10) ** -15
