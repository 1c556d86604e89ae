from fractions import Fraction as F
from math import sqrt

import numpy as np
import pytest
from scipy.integrate import dblquad

from dpopt import ParameterError, Problem, majority, solve
from dpopt.lp import Separation, make_rows
from dpopt.majority import (
    MajoritySetting,
    UniformPrior,
    expected_error_weights,
    surrogate_weights,
)
from dpopt.prob import poisson_binomial_pmf
from tests.majority.brute import fold


def test_surrogate_weights_are_a_binomial_s() -> None:
    weights = surrogate_weights(3).values
    # Binomial(3, 3/4): 1/64, 9/64, 27/64, 27/64.
    np.testing.assert_allclose(weights, [float(F(18, 128)), float(F(26, 128))], rtol=1e-14)


def test_surrogate_weights_are_the_mean_over_samples() -> None:
    rng = np.random.default_rng(5)
    margins = 0.5 * fold(poisson_binomial_pmf(rng.uniform(0.5, 1, (200_000, 7))))
    error = margins.std(axis=0) / sqrt(len(margins))
    assert np.all(np.abs(margins.mean(axis=0) - surrogate_weights(7).values) < 5 * error)


def signed_moment(a: int, b: int) -> float:
    """E[sign(p1 + p2 + p3 - 3/2) p1 .. (1 - p3)], a factors p and b factors 1 - p, by cubature."""

    def factor(index: int, p: float) -> float:
        return p if index < a else 1 - p

    def primitive(p: float) -> float:
        return p * p / 2 if a == 3 else p - p * p / 2

    def inner(y: float, x: float) -> float:
        cut = min(max(1.5 - x - y, 0.0), 1.0)
        signed = primitive(1.0) + primitive(0.0) - 2 * primitive(cut)
        return factor(0, x) * factor(1, y) * signed

    assert a + b == 3
    total = 0.0
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        for first, second in (
            (lambda _: 0.0, lambda x: max(0.0, 0.5 - x)),
            (lambda x: max(0.0, 0.5 - x), lambda x: min(1.0, 1.5 - x)),
            (lambda x: min(1.0, 1.5 - x), lambda _: 1.0),
        ):
            total += dblquad(inner, low, high, first, second, epsabs=1e-13)[0]
    return total


def test_expected_error_weights_by_cubature_for_three_voters() -> None:
    by_count = [(1, 3, 3, 1)[ones] * signed_moment(ones, 3 - ones) for ones in range(4)]
    weights = expected_error_weights(3, UniformPrior())
    np.testing.assert_allclose(weights.values, 0.5 * fold(np.array(by_count)), atol=1e-12)
    assert weights.error < 1e-15


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("k", "prior"),
    [
        (5, UniformPrior()),
        (11, UniformPrior()),
        (35, UniformPrior()),
        (7, UniformPrior(((0.0, 0.3), (0.7, 1.0)))),
        (7, UniformPrior(((0.2, 0.9),))),
        (9, UniformPrior(((0.05, 0.2), (0.4, 0.55), (0.9, 1.0)))),
        (7, UniformPrior(((0.6, 0.9),))),
        (7, UniformPrior(((0.1, 0.4),))),
        (1, UniformPrior(((0.1, 0.8),))),
    ],
)
def test_expected_error_weights_are_the_mean_over_samples(k: int, prior: UniformPrior) -> None:
    p = prior.sample((200_000, k), np.random.default_rng(k))
    margins = 0.5 * np.sign(p.sum(axis=1) - k / 2)[:, None] * fold(poisson_binomial_pmf(p))
    error = margins.std(axis=0) / sqrt(len(margins)) + 1e-12
    weights = expected_error_weights(k, prior)
    assert np.all(np.abs(margins.mean(axis=0) - weights.values) < 5 * error)
    assert weights.error < 1e-12


def sample_optimum(setting: MajoritySetting, p: np.ndarray) -> np.ndarray:
    """Minimiser of the mean absolute error over given p's: the exact program over samples."""
    margins = 0.5 * fold(poisson_binomial_pmf(p))

    def oracle(x: np.ndarray) -> Separation:
        noise, level = 1 - x[:-1], x[-1]
        slopes = (np.sign(margins @ noise)[:, None] * margins).mean(axis=0)
        worst = float(slopes @ noise) - level
        row = make_rows(np.append(-slopes, -1.0), upper=-slopes.sum())
        return Separation(row, max(worst, 0.0), len(p))

    problem = Problem("error over samples")
    problem.add_variables("gamma", setting.middle, lower=0, upper=1)
    problem.add_variables("error", 1, lower=0, upper=1)
    problem.add_family("corners", majority.CornerOracle(setting), over="gamma")
    problem.add_family("mean error", oracle)
    problem.minimise({"error": 1.0})
    return solve(problem)["gamma"]


@pytest.mark.parametrize(("k", "m"), [(3, 1), (11, 3)])
def test_the_linear_weights_lose_little_to_the_exact_program_over_samples(k: int, m: int) -> None:
    setting = MajoritySetting(k, 0.1, m)
    p = np.random.default_rng(1).random((20_000, k))
    margins = 0.5 * fold(poisson_binomial_pmf(p))

    def error(upper: np.ndarray) -> float:
        return float(np.abs(margins @ (1 - upper)).mean())

    weights = expected_error_weights(k, UniformPrior()).values
    linear = error(solve(majority.gamma_problem(setting, weights))["gamma"])
    exact = error(sample_optimum(setting, p))
    assert exact <= linear + 1e-9
    assert linear <= exact * 1.02


def test_sampled_and_linear_error_agree() -> None:
    design = majority.design(11, 0.1, 3, prior="uniform:0,1")
    mean, spread = design.sampled_error(np.random.default_rng(3), 50_000)
    assert abs(mean - design.expected_error) < 5 * spread


def test_samples_stay_inside_the_intervals() -> None:
    prior = UniformPrior(((0.0, 0.3), (0.7, 1.0)))
    p = prior.sample((10_000,), np.random.default_rng(0))
    assert np.all((p <= 0.3) | (p >= 0.7))
    assert abs(np.mean(p < 0.5) - 0.5) < 0.03


@pytest.mark.parametrize(("k", "width"), [(3, 1e-8), (101, 1e-12)])
def test_a_prior_too_narrow_for_the_quadrature_is_refused(k: int, width: float) -> None:
    with pytest.raises(ParameterError, match="too narrow"):
        expected_error_weights(k, UniformPrior(((0.0, width), (1.0 - width, 1.0))))
