from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest

from dpopt.prob import poisson_binomial_pmf
from experiments.majority.objective import grid_limit, printed_factor, sampled_weights


def margins(p: tuple[float, ...]) -> np.ndarray:
    pmf, middle = poisson_binomial_pmf(p), (len(p) + 1) // 2
    return 0.5 * np.array([pmf[i] - pmf[len(p) - i] for i in range(middle, len(p) + 1)])


@pytest.mark.parametrize("points", [1, 2, 5])
def test_the_limit_is_the_mean_over_the_whole_grid(points: int) -> None:
    grid = [0.5 + 0.5 * i / points for i in range(points)]
    for k in (1, 3):
        whole = np.mean([margins(p) for p in product(grid, repeat=k)], axis=0)
        assert grid_limit(k, points) == pytest.approx(whole, abs=1e-15)


def test_the_factor_is_a_product_and_counts_repeats_too_often() -> None:
    """K! for every multiset is too many where values repeat."""
    for k, points in ((1, 7), (3, 5), (11, 50)):
        assert printed_factor(k, points) == prod(1 + Fraction(i, points) for i in range(k))
    multisets = list(combinations_with_replacement(range(5), 3))
    assert printed_factor(3, 5) == Fraction(len(multisets) * factorial(3), 5**3)
    assert printed_factor(1, 50) == 1


def test_sampled_means_and_errors_are_those_of_the_draws() -> None:
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    mean, error = sampled_weights(3, 200, rng, 4)
    found = np.array([margins(p) for p in 0.5 + 0.125 * again.integers(0, 4, (200, 3))])
    assert mean == pytest.approx(found.mean(axis=0), abs=1e-14)
    assert error == pytest.approx(found.std(axis=0) / np.sqrt(200), abs=1e-12)


def test_both_algorithms_come_near_their_limits() -> None:
    # No grid: that of ever more points.
    for k, (points, limit) in product((3, 11), ((50, 50), (None, 10**9))):
        mean, error = sampled_weights(k, 40_000, np.random.default_rng(7), points)
        assert np.all(np.abs(mean - grid_limit(k, limit)) <= 5.0 * error + 1e-12)
