"""Renyi curves against integrals, many digits, brute force, and another library's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from dpopt import Guarantee, ParameterError
from experiments.majority.renyi import (
    CONVERSIONS,
    ConcentratedGuarantee,
    concentrated_composition,
    convert_renyi,
    gaussian_concentrated,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    least_feasible,
    renyi_epsilon,
)

MODEST = settings(max_examples=80, deadline=None, derandomize=True)


def by_definition(
    order: mpmath.mpf, divergence: mpmath.mpf, delta: float, conversion: str
) -> mpmath.mpf:
    a, d = mpmath.mpf(order), mpmath.mpf(delta)
    if conversion == "classical":
        return divergence + mpmath.log(1 / d) / (a - 1)
    return divergence + mpmath.log((a - 1) / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)


@MODEST
@given(
    order=st.floats(-6, 6).map(lambda power: 1 + 10.0**power),
    divergence=st.floats(0, 50),
    delta=st.floats(-250, -0.001).map(lambda power: 10.0**power),
)
def test_conversion_to_many_digits(order: float, divergence: float, delta: float) -> None:
    found = {c: renyi_epsilon(order, divergence, delta, c) for c in CONVERSIONS}
    with mpmath.workdps(40):
        for conversion, value in found.items():
            expected = max(0.0, float(by_definition(order, divergence, delta, conversion)))
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert 0.0 <= found["improved"] <= found["classical"]


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize(
    ("rho", "delta"), [(0.00217, 3e-4), (0.5, 1e-5), (3.0, 1e-9), (40.0, 0.2), (1e-9, 1e-12)]
)
def test_least_over_a_grid_of_orders(rho: float, delta: float, conversion: str) -> None:
    found = ConcentratedGuarantee(rho).convert(delta, conversion)
    grid = 1.0 + np.geomspace(1e-4, 1e9, 20_001)
    values = [renyi_epsilon(o, rho * o, delta, conversion) for o in grid]
    assert found.epsilon <= min(values) * (1 + 1e-12)
    assert found.epsilon == pytest.approx(min(values), rel=1e-5)
    at_order = renyi_epsilon(found.order, rho * found.order, delta, conversion)
    assert at_order == pytest.approx(found.epsilon, rel=1e-10)
    assert found.guarantee == Guarantee(found.epsilon, delta)


@MODEST
@given(
    rho=st.floats(-12, 3).map(lambda power: 10.0**power),
    delta=st.floats(-100, -0.01).map(lambda power: 10.0**power),
)
def test_search_finds_the_closed_form(rho: float, delta: float) -> None:
    closed = ConcentratedGuarantee(rho).convert(delta)
    searched = convert_renyi(ConcentratedGuarantee(rho).divergence, delta)
    assert closed.epsilon == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / delta)))
    assert searched.epsilon == pytest.approx(closed.epsilon, rel=1e-10)
    assert searched.order - 1 == pytest.approx(closed.order - 1, rel=1e-5)


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
    found = ConcentratedGuarantee(rho).convert(delta, "improved").epsilon
    assert found == pytest.approx(epsilon, abs=1.5e-8 * max(1.0, epsilon))


@MODEST
@given(
    sigma=st.floats(-2, 3).map(lambda power: 10.0**power),
    delta=st.floats(-12, -0.5).map(lambda power: 10.0**power),
)
def test_exact_below_improved_below_classical(sigma: float, delta: float) -> None:
    curve = gaussian_concentrated(sigma)
    exact = gaussian_epsilon(delta, sigma)
    improved = curve.convert(delta, "improved").epsilon
    assert exact <= improved * (1 + 1e-9) + 1e-15
    assert improved <= curve.convert(delta).epsilon


def randomised_response(epsilon: float) -> Callable[[float], float]:
    p = 1 / (1 + math.exp(-epsilon))

    def curve(order: float) -> float:
        first = order * math.log(p) + (1 - order) * math.log1p(-p)
        second = order * math.log1p(-p) + (1 - order) * math.log(p)
        return float(np.logaddexp(first, second)) / (order - 1)

    return curve


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6])
def test_conversion_of_a_curve_that_is_not_linear(delta: float, conversion: str) -> None:
    curve = randomised_response(1.5)
    found = convert_renyi(curve, delta, conversion)
    grid = 1.0 + np.geomspace(1e-3, 1e6, 5_001)
    best = min(renyi_epsilon(o, max(0.0, curve(o)), delta, conversion) for o in grid)
    assert found.epsilon == pytest.approx(best, rel=1e-5, abs=1e-12)
    # The exact delta of randomised response at this epsilon.
    p = 1 / (1 + math.exp(-1.5))
    assert max(0.0, p - math.exp(found.epsilon) * (1 - p)) <= delta * (1 + 1e-6)


def test_a_curve_that_ends_is_searched_where_it_is() -> None:
    found = convert_renyi(lambda order: 0.1 * order if order <= 5 else math.inf, 1e-6)
    assert found.order == pytest.approx(5.0, abs=1e-6)
    assert found.epsilon == pytest.approx(0.5 + math.log(1e6) / 4, rel=1e-6)
    with pytest.raises(ParameterError, match="infinite"):
        convert_renyi(lambda _: math.inf, 1e-6)
    for wrong in (-1.0, math.nan):
        with pytest.raises(ParameterError, match="^curve is"):
            convert_renyi(lambda _, w=wrong: w, 1e-6)


def exact_delta(epsilon: float, ratio: float) -> mpmath.mpf:
    # erfc of 400 digits: the difference of the two terms is 1e-100 of them at times.
    with mpmath.workdps(400):
        e, r = mpmath.mpf(epsilon), mpmath.mpf(ratio)
        root = mpmath.sqrt(2)
        first = mpmath.erfc((e / r - r / 2) / root) / 2
        return first - mpmath.exp(e) * mpmath.erfc((e / r + r / 2) / root) / 2


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 1.0, 5.0, 40.0, 800.0])
@pytest.mark.parametrize("sigma", [0.02, 0.3, 1.0, 7.0, 60.0])
def test_delta_to_many_digits(epsilon: float, sigma: float) -> None:
    expected = float(exact_delta(epsilon, 1 / sigma))
    assert gaussian_delta(epsilon, sigma) == pytest.approx(expected, rel=1e-9, abs=1e-290)


def test_nothing_overflows() -> None:
    assert gaussian_delta(1e300, 1e-300) == 1.0
    assert gaussian_delta(1e300, 1e300) == 0.0
    assert gaussian_delta(1e6, 1e-3) == pytest.approx(0.0, abs=1e-300)
    assert gaussian_delta(1.0, 1.0, 0.0) == 0.0
    assert gaussian_concentrated(1e-100).convert(1e-300).epsilon == pytest.approx(5e199)
    assert gaussian_concentrated(1e150).convert(1e-5).order == pytest.approx(
        math.sqrt(2 * math.log(1e5)) * 1e150
    )
    assert ConcentratedGuarantee(0.0).convert(1e-5).epsilon == 0.0
    assert math.isinf(ConcentratedGuarantee(0.0).convert(1e-5, "improved").order)


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
        with mpmath.workdps(60):
            ratio = 1 / mpmath.mpf(sigma)

            def exact(at: float, ratio: Any = ratio) -> Any:
                high, low = ratio / 2 - at / ratio, -ratio / 2 - at / ratio
                return mpmath.ncdf(high) - mpmath.exp(at) * mpmath.ncdf(low)

            assert exact(mpmath.mpf(epsilon)) <= delta
            # Not by more than is lost in rounding.
            assert exact(mpmath.mpf(epsilon) * (1 - 1e-11) - 1e-12) > delta or epsilon == 0


def test_least_feasible_is_the_neighbouring_float() -> None:
    for start in (1e-3, 1.0, 1e9):
        found = least_feasible(lambda x: x * x >= 2.0, start)
        assert found * found >= 2.0
        assert math.nextafter(found, 0.0) ** 2 < 2.0
    with pytest.raises(ParameterError, match="no number"):
        least_feasible(lambda _: False, 1.0)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 7.3, 30.0])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1.0), (2.5, math.sqrt(2)), (0.7, 0.3)])
def test_gaussian_curve_is_the_integral(order: float, sigma: float, sensitivity: float) -> None:
    ratio = sensitivity / sigma

    def power(z: float) -> float:
        return math.exp(-0.5 * order * (z - ratio) ** 2 + 0.5 * (order - 1) * z**2)

    middle = order * ratio
    moment, _ = integrate.quad(power, middle - 40, middle + 40, points=[middle], limit=200)
    divergence = math.log(moment / math.sqrt(2 * math.pi)) / (order - 1)
    found = gaussian_concentrated(sigma, sensitivity).divergence(order)
    assert found == pytest.approx(divergence, rel=1e-9)


def test_composition_is_one_gaussian_on_all_answers() -> None:
    one = gaussian_concentrated(3.0, 2.0)
    whole = concentrated_composition(*[one] * 25)
    assert whole.rho == pytest.approx(gaussian_concentrated(3.0, 10.0).rho, rel=1e-15)
    mixed = concentrated_composition(one, gaussian_concentrated(5.0, 1.0))
    joint = gaussian_concentrated(1.0, math.hypot(2 / 3, 1 / 5))
    assert mixed.rho == pytest.approx(joint.rho, rel=1e-15)
    assert concentrated_composition() == ConcentratedGuarantee(0.0)
