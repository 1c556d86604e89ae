"""Distributions of counts against exact fractions, fifty-digit arithmetic and scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob import binomial_pmf, poisson_binomial_pmf, total_variation
from tests.oracles import binomial, poisson_binomial

MODEST = settings(max_examples=40, deadline=None, derandomize=True)
probabilities = st.floats(1e-4, 1 - 1e-4) | st.sampled_from([0.0, 1.0, 0.5, 1e-4, 0.9999])


def worst_relative_error(found: np.ndarray, exact: Sequence[Fraction]) -> float:
    """Largest relative error; infinite where one is zero and the other is not."""
    assert found.shape == (len(exact),)
    errors = [
        (0.0 if value == 0 else math.inf) if pmf == 0 else abs(Fraction(float(value)) / pmf - 1)
        for value, pmf in zip(found, exact, strict=True)
    ]
    return float(max(errors))


@MODEST
@given(n=st.integers(0, 60), p=probabilities)
def test_binomial_is_exact_in_every_entry(n: int, p: float) -> None:
    assert worst_relative_error(binomial_pmf(n, p), binomial(n, Fraction(p))) <= 1e-13


@MODEST
@given(p=st.lists(probabilities, max_size=60))
def test_poisson_binomial_is_exact_in_every_entry(p: list[float]) -> None:
    exact = poisson_binomial(map(Fraction, p))
    assert worst_relative_error(poisson_binomial_pmf(p), exact) <= 1e-13


@MODEST
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8))
def test_half_the_sum_of_the_differences(weights: list[tuple[int, int]]) -> None:
    """Along the last axis; the weight of the last outcome is positive."""
    columns = [[*column, 1] for column in zip(*weights, strict=True)]
    p, q = ([Fraction(weight, sum(column)) for weight in column] for column in columns)
    variation = float(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    both = np.array([p, q], dtype=float)
    expected = np.array([[0.0, variation], [variation, 0.0]])
    np.testing.assert_allclose(total_variation(both[:, None], both), expected, atol=1e-15)


def assert_samples(found: np.ndarray, exact: dict[int, mpmath.mpf]) -> None:
    for k, pmf in exact.items():
        assert abs(mpmath.mpf(float(found[k])) / pmf - 1) <= 1e-11, k


def mp_binomial(n: int, k: int, p: mpmath.mpf) -> mpmath.mpf:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("p", [0.5, 0.3, 0.01, 0.97, 1 / 3])
def test_two_thousand_binomial_trials(p: float) -> None:
    centre = round(2000 * p)
    sampled = {min(max(centre + step, 0), 2000) for step in (-150, -60, -9, 0, 1, 17, 80, 200)}
    with mpmath.workdps(50):
        pmf = {k: mp_binomial(2000, k, mpmath.mpf(p)) for k in sorted(sampled)}
        assert min(pmf.values()) > mpmath.mpf(10) ** -300
        assert_samples(binomial_pmf(2000, p), pmf)


def test_two_thousand_unequal_trials() -> None:
    first, second = 0.37, 0.81
    with mpmath.workdps(50):
        a = [mp_binomial(1000, k, mpmath.mpf(first)) for k in range(1001)]
        b = [mp_binomial(1000, k, mpmath.mpf(second)) for k in range(1001)]
        pmf = {
            k: mpmath.fsum(a[j] * b[k - j] for j in range(max(0, k - 1000), min(k, 1000) + 1))
            for k in (700, 900, 1100, 1180, 1250, 1400, 1600)
        }
        found = poisson_binomial_pmf(np.r_[np.full(1000, first), np.full(1000, second)])
        assert_samples(found, pmf)


@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-17, 1 - 2**-53])
def test_binomial_with_extreme_p(p: float) -> None:
    pmf = binomial_pmf(3, p)
    expected = binomial(3, Fraction(p))
    assert pmf.sum() == pytest.approx(1.0, rel=1e-15)
    for value, exact in zip(pmf, expected, strict=True):
        assert value == pytest.approx(float(exact), rel=1e-13, abs=1e-320)


def test_batch_equals_calls_row_by_row() -> None:
    p = np.random.default_rng(2).uniform(size=(3, 4, 9))
    pmf = poisson_binomial_pmf(p)
    assert pmf.shape == (3, 4, 10)
    for place in np.ndindex(3, 4):
        np.testing.assert_array_equal(pmf[place], poisson_binomial_pmf(p[place]))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_empty_batches(shape: tuple[int, int]) -> None:
    pmf = poisson_binomial_pmf(np.zeros(shape))
    assert pmf.shape == (shape[0], shape[1] + 1)
    assert np.all(pmf[:, 0] == 1.0)
