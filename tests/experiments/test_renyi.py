"""Renyi curves against integrals, many digits, brute force, and another library's numbers."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from dpopt import Guarantee, ParameterError
from experiments.majority.renyi import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_rho,
    gaussian_sigma,
    improved_epsilon,
    least_feasible,
    rho_epsilon,
)

MODEST = settings(max_examples=80, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("rho", "delta"), [(0.00217, 3e-4), (0.5, 1e-5), (3.0, 1e-9), (40.0, 0.2), (1e-9, 1e-12)]
)
def test_least_over_a_grid_of_orders(rho: float, delta: float) -> None:
    orders = 1.0 + np.geomspace(1e-4, 1e9, 20_001)
    classical = rho * orders + math.log(1 / delta) / (orders - 1)
    improved = classical + np.log1p(-1 / orders) - np.log(orders) / (orders - 1)
    for found, values in ((rho_epsilon, classical), (improved_epsilon, improved)):
        least = max(0.0, values.min())
        assert found(rho, delta) <= least * (1 + 1e-12)
        assert found(rho, delta) == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [
        (0.5, 1e-5, 4.728386985),
        (3.0, 1e-9, 17.949061531),
        (1 / 21.46**2, 3e-4, 0.173070425),
        (0.01, 0.1, 0.0),
    ],
)
def test_improved_conversion_has_dp_accounting_s_values(
    rho: float, delta: float, epsilon: float
) -> None:
    # dp-accounting 0.6.0, compute_epsilon over 40,000 orders.
    found = improved_epsilon(rho, delta)
    assert found == pytest.approx(epsilon, abs=1.5e-8 * max(1.0, epsilon))


def test_sigma_has_dp_accounting_s_value() -> None:
    sigma = gaussian_sigma(Guarantee(0.2676, 3e-4), math.sqrt(2.0))
    assert sigma == pytest.approx(12.90386962105448, rel=1e-12)  # dp-accounting 0.6.0


def exact_delta(epsilon: Any, sigma: float) -> Any:
    # erfc of 400 digits: the difference of the two terms is 1e-100 of them at times.
    with mpmath.workdps(400):
        e, r = mpmath.mpf(epsilon), 1 / mpmath.mpf(sigma)
        root = mpmath.sqrt(2)
        first = mpmath.erfc((e / r - r / 2) / root) / 2
        return first - mpmath.exp(e) * mpmath.erfc((e / r + r / 2) / root) / 2


@pytest.mark.sample(12)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 1.0, 5.0, 40.0, 800.0])
@pytest.mark.parametrize("sigma", [0.02, 0.3, 1.0, 7.0, 60.0])
def test_delta_to_many_digits(epsilon: float, sigma: float) -> None:
    expected = float(exact_delta(epsilon, sigma))
    assert gaussian_delta(epsilon, sigma) == pytest.approx(expected, rel=1e-9, abs=1e-290)


def test_nothing_overflows() -> None:
    assert gaussian_delta(1e300, 1e-300) == 1.0
    assert gaussian_delta(1e300, 1e300) == 0.0
    assert gaussian_delta(1e6, 1e-3) == pytest.approx(0.0, abs=1e-300)
    assert gaussian_delta(1.0, 1.0, 0.0) == 0.0
    assert rho_epsilon(gaussian_rho(1e-100), 1e-300) == pytest.approx(5e199)
    assert rho_epsilon(0.0, 1e-5) == improved_epsilon(0.0, 1e-5) == 0.0


@MODEST
@given(
    epsilon=st.floats(-4, 2).map(lambda power: 10.0**power) | st.just(0.0),
    delta=st.floats(-12, -0.1).map(lambda power: 10.0**power),
    sensitivity=st.floats(0.01, 100),
)
def test_sigma_meets_the_guarantee_and_a_smaller_one_does_not(
    epsilon: float, delta: float, sensitivity: float
) -> None:
    sigma = gaussian_sigma(Guarantee(epsilon, delta), sensitivity)
    assert gaussian_delta(epsilon, sigma, sensitivity) <= delta
    assert gaussian_delta(epsilon, sigma * (1 - 1e-6), sensitivity) > delta
    assert gaussian_epsilon(delta, sigma, sensitivity) == pytest.approx(epsilon, rel=1e-4, abs=1e-8)


def test_epsilon_of_gaussian_noise_is_never_below_the_truth() -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        sigma, delta = 10 ** rng.uniform(-1.5, 3), 10 ** rng.uniform(-12, -1)
        epsilon = gaussian_epsilon(delta, sigma)
        assert exact_delta(epsilon, sigma) <= delta
        # Not by more than is lost in rounding.
        below = epsilon * (1 - 1e-11) - 1e-12
        assert exact_delta(below, sigma) > delta or epsilon == 0


def test_least_feasible_is_the_neighbouring_float() -> None:
    for start in (1e-3, 1.0, 1e9):
        found = least_feasible(lambda x: x * x >= 2.0, start)
        assert found * found >= 2.0
        assert math.nextafter(found, 0.0) ** 2 < 2.0
    with pytest.raises(ParameterError, match="no number"):
        least_feasible(lambda _: False, 1.0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 7.3, 30.0])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1.0), (2.5, math.sqrt(2)), (0.7, 0.3)])
def test_gaussian_curve_is_the_integral(order: float, sigma: float, sensitivity: float) -> None:
    ratio = sensitivity / sigma

    def power(z: float) -> float:
        return math.exp(-0.5 * order * (z - ratio) ** 2 + 0.5 * (order - 1) * z**2)

    middle = order * ratio
    moment, _ = integrate.quad(power, middle - 40, middle + 40, points=[middle], limit=200)
    divergence = math.log(moment / math.sqrt(2 * math.pi)) / (order - 1)
    found = gaussian_rho(sigma, sensitivity) * order
    assert found == pytest.approx(divergence, rel=1e-9)
