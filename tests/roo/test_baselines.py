"""SubRR against ROO and its definition; the projection against a program; published bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from dpopt import ParameterError, roo
from dpopt.roo.baselines import laplace_projection, project_to_simplex, subrr
from tests.roo.brute import histograms, neighbours


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "bound"),
    [(1000, 10, 0.1, 0.0825688073), (1000, 9, 0.1, 8 / 108), (50, 3, 2.0, 2 / 102)],
)
def test_the_published_bound(n: int, k: int, epsilon: float, bound: float) -> None:
    sampler = subrr(n, k, epsilon)
    assert sampler.bound == pytest.approx(bound, rel=1e-9)
    assert sampler.private
    assert math.exp(sampler.response_epsilon) == pytest.approx(n * epsilon, rel=1e-9)
    spent = float(sampler.roo.audit.worst_ratio or 0)
    assert spent == pytest.approx(1 + epsilon - 1 / n, rel=1e-9)


@pytest.mark.parametrize(("n", "k", "epsilon"), [(1000, 10, 0.1), (7, 2, 3.0), (1, 5, 0.2)])
def test_tight_amplification_is_roo(n: int, k: int, epsilon: float) -> None:
    sampler, expected = subrr(n, k, epsilon, amplification="tight"), roo.min_count(n, k, epsilon)
    constant = roo.min_count(n, k, epsilon, "roo")
    assert sampler.roo.weights == constant.weights
    assert sampler.obscuring == constant.obscuring(0) >= expected.obscuring(0)
    assert sampler.bound <= subrr(n, k, epsilon).bound
    assert math.expm1(sampler.response_epsilon) == pytest.approx(n * math.expm1(epsilon))


@pytest.mark.parametrize("amplification", ["published", "tight"])
@pytest.mark.parametrize(("n", "k", "epsilon"), [(4, 3, 0.7), (5, 2, 0.1), (3, 4, 2.0)])
def test_the_law_is_randomised_response_of_a_random_record(
    n: int, k: int, epsilon: float, amplification: str
) -> None:
    sampler = subrr(n, k, epsilon, amplification=amplification)
    q, r = Fraction(sampler.roo.weights[0], 2**62), sampler.setting.ratio
    keep = q / k + 1 - q
    # k-ary randomised response: e^{e_0} times as likely as each of the other letters.
    assert float(keep / (q / k)) == pytest.approx(math.exp(sampler.response_epsilon))
    for counts in histograms(n, k):
        found = sampler.output_distribution(counts)
        records = [letter for letter, count in enumerate(counts) for _ in range(count)]
        law = [sum(keep if x == y else q / k for x in records) / n for y in range(k)]
        assert found == pytest.approx([float(p) for p in law], rel=1e-14)
        for moved in neighbours(counts):
            after = [q / k + (1 - q) * Fraction(c, n) for c in moved]
            assert all(b <= r * a for a, b in zip(law, after, strict=True))


def test_too_little_for_the_published_bound_leaves_a_uniform_letter() -> None:
    sampler = subrr(5, 4, 0.1)
    assert sampler.obscuring == 1.0
    assert sampler.response_epsilon == 0.0
    assert sampler.output_distribution([5, 0, 0, 0]).tolist() == [0.25] * 4
    assert subrr(5, 4, 0.1, amplification="tight").obscuring < 1.0


def test_saved_values_name_the_sampler() -> None:
    values = subrr(10, 3, 1.0).to_dict()
    assert (values["rule"], values["amplification"]) == ("subrr", "published")
    assert values["private"] is True


POINTS = arrays(np.float64, st.integers(1, 7), elements=st.floats(-2, 2))


@given(POINTS)
def test_the_projection_meets_the_optimality_conditions(point: np.ndarray) -> None:
    found = project_to_simplex(point)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    # Nearest: the point minus the answer is one number on the support, and no more elsewhere.
    gap = point - found
    level = gap[found > 0]
    assert np.ptp(level) <= 1e-12
    assert np.all(gap[found == 0] <= level.max() + 1e-12)


@given(POINTS)
def test_the_projection_is_nearest_in_the_1_norm_too(point: np.ndarray) -> None:
    k = point.size
    # Variables p and t >= |p - v|.
    eye = np.eye(k)
    rows = np.block([[eye, -eye], [-eye, -eye]])
    program = linprog(
        np.r_[np.zeros(k), np.ones(k)],
        A_ub=rows,
        b_ub=np.r_[point, -point],
        A_eq=np.r_[np.ones(k), np.zeros(k)][None],
        b_eq=[1.0],
        bounds=(0, None),
    )
    assert np.abs(project_to_simplex(point) - point).sum() == pytest.approx(program.fun, abs=1e-7)


def test_projections_of_many_points_are_those_of_each() -> None:
    points = np.random.default_rng(5).normal(size=(4, 3, 6))
    found = project_to_simplex(points)
    assert found.shape == points.shape
    for place in np.ndindex(4, 3):
        assert np.array_equal(found[place], project_to_simplex(points[place]))
    law = np.array([0.2, 0.5, 0.3])
    assert project_to_simplex(law) == pytest.approx(law, abs=1e-15)
    for bad in (1.0, [], [np.nan, 1.0], [np.inf, 0.0]):
        with pytest.raises(ParameterError, match="points"):
            project_to_simplex(bad)


def test_laplace_noise_of_the_stated_scale() -> None:
    sampler = laplace_projection(1000, 10, 0.1)
    assert sampler.bound == pytest.approx(0.2)
    assert sampler.scale == pytest.approx(0.02)
    assert not hasattr(sampler, "release")
    counts = [100] * 10
    laws = sampler.noisy_laws(counts, np.random.default_rng(1), draws=20_000)
    assert laws.shape == (20_000, 10)
    assert laws.sum(axis=1) == pytest.approx(1.0)
    # Far from the simplex's sides, projecting only takes the mean off the noise.
    deviation = laws.std()
    assert deviation == pytest.approx(0.02 * math.sqrt(2) * math.sqrt(0.9), rel=0.02)


def test_two_letters_of_laplace_noise_have_a_law_in_closed_form() -> None:
    n, epsilon = 20, 0.3
    sampler = laplace_projection(n, 2, epsilon)
    laws = sampler.noisy_laws([18, 2], np.random.default_rng(2), draws=200_000)
    # The projection is 1/2 + (v_0 - v_1) / 2, clipped; the difference of two Laplace variables
    # has density (1 + |x| / b) exp(-|x| / b) / (4 b).
    b = sampler.scale
    x = np.linspace(-60 * b, 60 * b, 2_000_001)
    density = (1 + np.abs(x) / b) * np.exp(-np.abs(x) / b) / (4 * b)
    expected = np.trapezoid(density * np.clip(0.5 + (0.8 + x) / 2, 0, 1), x)
    assert abs(laws[:, 0].mean() - expected) <= 6 * laws[:, 0].std() / math.sqrt(200_000)


def test_laplace_simulation_repeats_and_keeps_labels() -> None:
    sampler = laplace_projection(4, 3, 1.0)
    words = ["c", "a", "a", "b"]
    drawn = [
        [sampler.simulate(words, rng, alphabet=("c", "b", "a")) for _ in range(50)]
        for rng in (np.random.default_rng(7), np.random.default_rng(7))
    ]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {"a", "b", "c"}
    only = laplace_projection(10**8, 3, 1.0).simulate(
        counts=[0, 10**8, 0], rng=np.random.default_rng(1)
    )
    assert only == 1


def test_bad_parameters_are_one_sentence() -> None:
    with pytest.raises(ParameterError, match="amplification is 'loose'"):
        subrr(10, 3, 1.0, amplification="loose")
    with pytest.raises(ParameterError, match="letters is 1"):
        laplace_projection(10, 1, 1.0)
    sampler, rng = laplace_projection(3, 2, 1.0), np.random.default_rng(1)
    with pytest.raises(ParameterError, match="rng is None"):
        sampler.simulate([0, 1, 1])
    with pytest.raises(ParameterError, match="exactly one"):
        sampler.simulate(rng=rng)
    with pytest.raises(ParameterError, match="sum to 2"):
        sampler.simulate([0, 1], rng)
    with pytest.raises(ParameterError, match="draws is 0"):
        sampler.noisy_laws([1, 2], rng, 0)
    with pytest.raises(ParameterError, match="shape"):
        sampler.noisy_laws([1, 1, 1], rng)
