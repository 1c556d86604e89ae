"""Gamma_f against the distributions and kernels that it bounds, and against printed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import xlogy

from dpopt._types import Matrix, Vector
from dpopt.public_prior import diagonal_bounds, minimax_utility
from experiments.public_prior.accuracy import least_divergences
from tests.public_prior.closed_forms import algorithm_one, leximin_kernel, priors


def f_divergence(
    p: Matrix, q: Matrix, f: Callable[[Vector], Vector], at_zero: float, slope: float
) -> Matrix:
    """sum_x q f(p / q), with q f(0) where p = 0 and p times the slope at infinity where q = 0."""
    p, q = np.broadcast_arrays(p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * f(p / q), p * slope)
        terms = np.where((p == 0) & (q > 0), q * at_zero, np.where((p == 0) & (q == 0), 0.0, terms))
    return terms.sum(axis=-1)


REFERENCE = (0.05, 0.1, 0.15, 0.2, 0.5)

# f, f(0), slope at infinity.
FUNCTIONS: dict[str, tuple[Callable[[Vector], Vector], float, float]] = {
    "tv": (lambda t: np.abs(t - 1) / 2, 0.5, 0.5),
    "kl": (lambda t: xlogy(t, t), 0.0, math.inf),
    "chi-square": (lambda t: (t - 1) ** 2, 1.0, math.inf),
    "squared Hellinger": (lambda t: (np.sqrt(t) - 1) ** 2, 1.0, 1.0),
    "Le Cam": (lambda t: (t - 1) ** 2 / (t + 1), 1.0, 1.0),
}


def test_reference_values() -> None:
    assert minimax_utility(REFERENCE, 1.0) == pytest.approx(0.874839002002, abs=1e-12)
    assert minimax_utility(REFERENCE, 4.0) == pytest.approx(0.258158662839, abs=1e-12)
    assert diagonal_bounds(REFERENCE, 1.0)[0] == pytest.approx(0.125160997998, abs=1e-12)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_worst_distribution_is_a_point_mass_and_algorithm_one_attains_gamma(
    name: str, epsilon: float
) -> None:
    f, zero, slope = FUNCTIONS[name]
    rng = np.random.default_rng(5)

    def worst(pmfs: Matrix, kernel: Matrix) -> float:
        found = f_divergence(pmfs, pmfs @ kernel, f, zero, slope)
        return float(np.max(found))

    def of_point_mass(kept: float) -> float:
        return (1 - kept) * zero + kept * float(f(np.array(1 / kept)))

    for q in priors(1, 12, 9):
        gamma = of_point_mass(float(diagonal_bounds(q, epsilon).min()))
        if name in ("tv", "kl", "chi-square"):
            assert least_divergences(q, epsilon)[name] == pytest.approx(gamma, rel=1e-9)
        kernel = algorithm_one(q, epsilon)
        labels = np.eye(q.size)
        assert worst(labels, kernel) == pytest.approx(gamma, rel=1e-9)
        pmfs = np.vstack([rng.dirichlet(np.full(q.size, a), size=100) for a in (0.1, 1.0)])
        assert worst(pmfs, kernel) <= gamma * (1 + 1e-9)
        # Any other private kernel with q K = q: Gamma is a lower bound for it.
        weaker = 0.7 * kernel + 0.3 * q
        kept = float(np.diag(weaker).min())
        assert worst(labels, weaker) >= gamma
        assert worst(labels, weaker) == pytest.approx(of_point_mass(kept), rel=1e-9)
        assert worst(pmfs, weaker) <= worst(labels, weaker) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
def test_no_kernel_has_a_diagonal_above_the_bounds(epsilon: float) -> None:
    for q in priors(2, 20, 12):
        bounds = diagonal_bounds(q, epsilon)
        assert np.all(np.diag(algorithm_one(q, epsilon)) <= bounds * (1 + 1e-12))
        assert np.all(np.diag(leximin_kernel(q, epsilon)) <= bounds * (1 + 1e-12))
        assert 1 - bounds.min() == pytest.approx(minimax_utility(q, epsilon), abs=1e-14)


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 16.0, 100.0])
@pytest.mark.parametrize("least", [1e-9, 1e-3, 0.3])
def test_sixty_digits_give_the_same(least: float, epsilon: float) -> None:
    q = np.array([least, 1 - least])
    with localcontext() as context:
        context.prec = 60
        mass, e = Decimal(float(q.min())), Decimal(epsilon).exp()
        d = e * mass + 1 - mass
        exact = {
            "tv": (1 - mass) / d,
            "kl": (d / (e * mass)).ln(),
            "chi-square": (1 - mass) / (e * mass),
        }
    least_of = least_divergences(q, epsilon)
    for name, value in exact.items():
        assert least_of[name] == pytest.approx(float(value), rel=1e-12)
    assert minimax_utility(q, epsilon) == pytest.approx(float(exact["tv"]), rel=1e-12)


def test_a_kernel_of_one_category_loses_nothing() -> None:
    assert minimax_utility([1.0], 1.0) == 0.0
