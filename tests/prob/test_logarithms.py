"""Logarithms and exponentials in pairs of floats against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpopt.prob import logarithms

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
