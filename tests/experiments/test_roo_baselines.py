"""SubRR against ROO and its definition; the projection against its conditions and a program."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from dpopt import roo
from experiments.roo.baselines import noisy_pmfs, project_to_simplex, subrr
from tests.oracles import neighbours
from tests.roo.brute import histograms


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "bound"),
    [(1000, 10, 0.1, 0.0825688073), (1000, 9, 0.1, 8 / 108), (50, 3, 2.0, 2 / 102)],
)
def test_the_published_bound(n: int, k: int, epsilon: float, bound: float) -> None:
    sampler = subrr(n, k, epsilon)
    q = sampler.obscuring(0)
    assert q * (1 - 1 / k) == pytest.approx(bound, rel=1e-9)
    assert sampler.private
    assert 1 + k * (1 / q - 1) == pytest.approx(n * epsilon, rel=1e-9)
    assert float(sampler.audit.worst_ratio or 0) == pytest.approx(1 + epsilon - 1 / n, rel=1e-9)


@pytest.mark.parametrize(("n", "k", "epsilon"), [(4, 3, 0.7), (5, 2, 0.1), (3, 4, 2.0)])
def test_the_distribution_is_randomised_response_of_a_random_record(
    n: int, k: int, epsilon: float
) -> None:
    sampler = subrr(n, k, epsilon)
    q, r = Fraction(sampler.table[0], 2**62), sampler.setting.ratio
    keep = q / k + 1 - q
    for counts in histograms(n, k):
        found = sampler.output_distribution(counts)
        records = [category for category, count in enumerate(counts) for _ in range(count)]
        pmf = [sum(keep if x == y else q / k for x in records) / n for y in range(k)]
        assert found == pytest.approx([float(p) for p in pmf], rel=1e-14)
        for moved in neighbours(counts):
            after = [q / k + (1 - q) * Fraction(c, n) for c in moved]
            assert all(b <= r * a for a, b in zip(pmf, after, strict=True))


def test_too_little_for_the_published_bound_leaves_a_uniform_category() -> None:
    sampler = subrr(5, 4, 0.1)
    assert sampler.output_distribution([5, 0, 0, 0]).tolist() == [0.25] * 4
    assert sampler.obscuring(0) == 1.0


@given(arrays(np.float64, st.integers(1, 7), elements=st.floats(-2, 2)))
def test_the_projection_is_nearest_in_both_norms(point: np.ndarray) -> None:
    found, k = project_to_simplex(point), point.size
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    # The point minus the answer is one number on the support, and no more elsewhere.
    gap = point - found
    level = gap[found > 0]
    assert np.ptp(level) <= 1e-12
    assert np.all(gap[found == 0] <= level.max() + 1e-12)
    # Variables p and t >= |p - v|.
    eye = np.eye(k)
    program = linprog(
        np.r_[np.zeros(k), np.ones(k)],
        A_ub=np.block([[eye, -eye], [-eye, -eye]]),
        b_ub=np.r_[point, -point],
        A_eq=np.r_[np.ones(k), np.zeros(k)][None],
        b_eq=[1.0],
        bounds=(0, None),
    )
    assert np.abs(found - point).sum() == pytest.approx(program.fun, abs=1e-7)


def test_projections_of_many_points_are_those_of_each() -> None:
    points = np.random.default_rng(5).normal(size=(4, 3, 6))
    found = project_to_simplex(points)
    for place in np.ndindex(4, 3):
        assert np.array_equal(found[place], project_to_simplex(points[place]))


def test_two_categories_of_laplace_noise_have_a_distribution_in_closed_form() -> None:
    setting = roo.RooSetting(20, 2, 0.3)
    pmfs = noisy_pmfs(setting, [18, 2], np.random.default_rng(2), draws=200_000)
    # The projection is 1/2 + (v_0 - v_1) / 2, clipped; the difference of two Laplace variables
    # has density (1 + |x| / b) exp(-|x| / b) / (4 b).
    b = 2 / (20 * 0.3)
    x = np.linspace(-60 * b, 60 * b, 2_000_001)
    density = (1 + np.abs(x) / b) * np.exp(-np.abs(x) / b) / (4 * b)
    expected = np.trapezoid(density * np.clip(0.5 + (0.8 + x) / 2, 0, 1), x)
    assert abs(pmfs[:, 0].mean() - expected) <= 6 * pmfs[:, 0].std() / math.sqrt(200_000)
