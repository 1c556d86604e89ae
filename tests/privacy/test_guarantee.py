"""Composition of guarantees against printed numbers and many-digit arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Guarantee, ParameterError
from dpopt.privacy import general_composition, simple_composition


@pytest.mark.parametrize(
    ("folds", "ratio", "delta"),
    [
        *((10, 6.4521, 0.1001), (13, 7.5742, 0.1001), (15, 8.2708, 0.1001)),
        *((20, 9.8823, 0.1002), (35, 14.0328, 0.1003)),
    ],
)
def test_printed_values_with_large_slack(folds: int, ratio: float, delta: float) -> None:
    found = general_composition(Guarantee(0.1, 1e-5), folds, 0.1)
    assert found.epsilon / 0.1 == pytest.approx(ratio, abs=5.01e-5)
    assert found.delta == pytest.approx(delta, abs=5.01e-5)


def printed_formula(
    epsilon: float, delta: float, k: int, slack: float
) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The theorem as it is printed, without the rewriting that saves digits."""
    e, d, s = mpmath.mpf(epsilon), mpmath.mpf(delta), mpmath.mpf(slack)
    base = k * e * (mpmath.exp(e) - 1) / (mpmath.exp(e) + 1)
    first = base + e * mpmath.sqrt(2 * k * mpmath.log(mpmath.e + mpmath.sqrt(k * e**2) / s))
    second = base + e * mpmath.sqrt(2 * k * mpmath.log(1 / s))
    return min(k * e, first, second), 1 - (1 - d) ** k * (1 - s)


@given(
    epsilon=st.one_of(
        st.floats(0.0, 20.0),
        st.floats(0.0, 1e-30),
        st.floats(-10, 1.5).map(lambda power: 10.0**power),
    ),
    delta=st.floats(0.0, 0.01) | st.floats(-300, -1).map(lambda power: 10.0**power),
    folds=st.one_of(st.integers(1, 100), st.integers(1, 2**53)),
    slack=st.floats(1e-300, 0.5),
)
def test_compositions_are_never_below_the_theorems(
    epsilon: float, delta: float, folds: int, slack: float
) -> None:
    guarantee = Guarantee(epsilon, delta)
    exact = folds * Fraction(epsilon), folds * Fraction(delta)
    if exact[1] < 1 - Fraction(1, 2**53):
        simple = simple_composition(guarantee, folds)
        for found, true in zip((simple.epsilon, simple.delta), exact, strict=True):
            assert Fraction(found) >= true
            assert found == 0.0 or Fraction(math.nextafter(found, -1.0)) < true
    with mpmath.workdps(400):
        general = printed_formula(epsilon, delta, folds, slack)
        if general[1] < 1 - mpmath.mpf(2) ** -53:
            found = general_composition(guarantee, folds, slack)
            assert mpmath.mpf(found.epsilon) >= general[0]
            assert mpmath.mpf(found.delta) >= general[1]
            assert mpmath.mpf(found.epsilon) <= general[0] * (1 + 1e-14) + 5e-324
            assert mpmath.mpf(math.nextafter(found.delta, 0.0)) < general[1]


def test_large_epsilon_falls_back_to_addition() -> None:
    assert general_composition(Guarantee(800.0), 3, 1e-6).epsilon == 2400.0


def test_simple_composition_that_promises_nothing() -> None:
    with pytest.raises(ParameterError, match="delta"):
        simple_composition(Guarantee(0.1, 0.1), 10)
