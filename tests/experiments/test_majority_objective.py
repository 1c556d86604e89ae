from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest

from dpopt.prob import poisson_binomial_pmf
from experiments.majority.objective import (
    Config,
    grid_limit,
    grid_weights,
    interval_weights,
    printed_factor,
)

SMALL = Config(voters=(3, 5), allowance=(1.0, 2.0), points=4, draws=300, repeats=3)


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
    config = replace(SMALL, draws=200)
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    mean, error = grid_weights(3, config, rng)
    found = np.array([margins(p) for p in 0.5 + 0.125 * again.integers(0, 4, (200, 3))])
    assert mean == pytest.approx(found.mean(axis=0), abs=1e-14)
    assert error == pytest.approx(found.std(axis=0) / np.sqrt(200), abs=1e-12)


def test_both_algorithms_come_near_their_limits() -> None:
    config = replace(SMALL, draws=40_000, points=50)
    for k in (3, 11):
        for (mean, error), limit in (
            (grid_weights(k, config, np.random.default_rng(7)), grid_limit(k, 50)),
            # No grid: that of ever more points.
            (interval_weights(k, 40_000, np.random.default_rng(8)), grid_limit(k, 10**9)),
        ):
            assert np.all(np.abs(mean - limit) <= 5.0 * error + 1e-12)
