"""The largest error over all p that a prior allows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import Majority, majority, solve
from dpopt.majority import (
    BetaPrior,
    CommonPrior,
    PointPrior,
    Prior,
    SamplePrior,
    UniformPrior,
    WorstCase,
)
from dpopt.prob import poisson_binomial_pmf
from experiments.majority import baselines
from tests.majority.brute import fold, listed_rows


def largest_error(upper: np.ndarray, p: np.ndarray) -> float:
    """max |Pr[DaRRM = 1] - Pr[majority = 1]| from algorithm 1, for gamma above the middle."""
    gamma = np.concatenate([upper[::-1], upper])
    majority_is_one = 2 * np.arange(gamma.size) > gamma.size - 1
    chance = gamma * majority_is_one + (1 - gamma) * 0.5
    return float(np.abs(poisson_binomial_pmf(p) @ (chance - majority_is_one)).max())


def boxes(k: int, prior: UniformPrior, per_interval: int) -> np.ndarray:
    """A grid of p's over all intervals, ends included."""
    line = np.concatenate([np.linspace(a, b, per_interval) for a, b in prior.intervals])
    return np.stack(np.meshgrid(*[line] * k), axis=-1).reshape(-1, k)


BOXES = [
    UniformPrior(),
    UniformPrior(((0.2, 0.9),)),
    UniformPrior(((0.0, 0.3), (0.7, 1.0))),
    UniformPrior(((0.55, 0.8),)),
    UniformPrior(((0.1, 0.4),)),
]


@pytest.mark.slow
@pytest.mark.parametrize("prior", BOXES, ids=str)
@pytest.mark.parametrize(("k", "points"), [(3, 21), (5, 7)])
def test_over_a_box_it_is_the_largest_of_a_grid(k: int, points: int, prior: UniformPrior) -> None:
    grid = boxes(k, prior, points)
    worst = WorstCase(k, prior)
    rng = np.random.default_rng(k)
    for _ in range(20):
        upper = rng.random((k + 1) // 2)
        assert worst.value(upper) == pytest.approx(largest_error(upper, grid), abs=1e-12)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("k", [3, 5, 11, 41])
@pytest.mark.parametrize(
    "base",
    [UniformPrior(), UniformPrior(((0.1, 0.35), (0.6, 0.9))), BetaPrior(2.0, 3.0)],
    ids=str,
)
def test_for_a_common_p_it_is_the_largest_of_a_very_fine_grid(
    k: int, base: UniformPrior | BetaPrior
) -> None:
    pieces = base.intervals if isinstance(base, UniformPrior) else ((0.0, 1.0),)
    line = np.concatenate([np.linspace(a, b, 20_001) for a, b in pieces])
    grid = np.repeat(line[:, None], k, axis=1)
    worst = WorstCase(k, CommonPrior(base))
    rng = np.random.default_rng(k)
    for _ in range(20):
        upper = rng.random((k + 1) // 2) * (rng.random((k + 1) // 2) < 0.7)
        largest = largest_error(upper, grid)
        assert largest <= worst.value(upper) + 1e-10
        assert worst.value(upper) <= largest + 1e-6


def test_points_and_samples_are_themselves() -> None:
    upper, rows = np.array([0.2, 0.9]), np.random.default_rng(0).random((7, 3))
    for prior, p in (
        (SamplePrior(rows), rows),
        (PointPrior((0.2, 0.5, 0.7)), np.array([[0.2, 0.5, 0.7]])),
        (PointPrior((0.3,)), np.full((1, 3), 0.3)),
    ):
        assert WorstCase(3, prior).value(upper) == pytest.approx(largest_error(upper, p))


SETTINGS = [Majority(3, 0.5, 1.0), Majority(5, 0.3, 1.4, 0.01, 0.02), Majority(5, 0.9, 1.0)]


@pytest.mark.parametrize("prior", [*BOXES, CommonPrior(UniformPrior())], ids=str)
@pytest.mark.parametrize("setting", SETTINGS[:2], ids=str)
def test_the_rows_are_broken_and_valid(setting: Majority, prior: Prior) -> None:
    """Every row holds at (gamma, its worst case), and the worst is cut off below it."""
    k = setting.voters
    worst = WorstCase(k, prior)
    rng = np.random.default_rng(1)
    upper = rng.random(setting.middle)
    value = worst.value(upper)
    found = worst(np.append(upper, value / 2))
    assert found.worst == pytest.approx(value / 2, abs=1e-12)
    assert found.rows.count > 0
    for _ in range(20):
        other = rng.random(setting.middle)
        assert found.rows.violation(np.append(other, worst.value(other))).max() <= 1e-12
    assert worst(np.append(upper, value)).worst <= 1e-12


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("prior", BOXES, ids=str)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_optimum_is_that_of_all_rows_written_out(
    setting: Majority, prior: UniformPrior
) -> None:
    k, middle = setting.voters, setting.middle
    dense = listed_rows(setting)
    vertices = boxes(k, UniformPrior((prior.reach,)), 2)
    margins = 0.5 * fold(poisson_binomial_pmf(vertices))
    signed = np.vstack([margins, -margins])
    flat = [np.zeros((len(dense), 1)), -np.ones((len(signed), 1))]
    matrix = np.hstack([np.vstack([dense, -signed]), np.vstack(flat)])
    right = np.append(np.ones(len(dense)), -signed.sum(axis=1))
    cost = np.append(np.zeros(middle), 1.0)
    listed = linprog(cost, A_ub=matrix, b_ub=right, bounds=(0, 1), method="highs")
    setting = replace(setting, objective="worst-case", prior=prior)
    assert solve(setting.problem()).objective == pytest.approx(-listed.fun, abs=1e-9)
    design = dpopt.design(setting)
    assert design.value == pytest.approx(-listed.fun, abs=3e-9)
    assert design.bound is not None
    assert design.bound >= -listed.fun - 1e-9
    assert design.gap == pytest.approx(design.bound - design.value, abs=1e-15)
    assert -design.value == pytest.approx(largest_error(design.gamma[middle:], vertices), abs=1e-12)
    assert design.private


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", [SETTINGS[0], Majority(11, 0.1, 3), Majority(11, 0.1, 3, 1e-5, 3e-5)], ids=str
)
def test_for_any_p_it_is_the_largest_private_minimum_of_gamma(setting: Majority) -> None:
    dense, middle = listed_rows(setting), setting.middle
    # Maximise t with t <= gamma(l) and gamma private.
    flat = np.append(np.zeros(len(dense)), np.ones(middle))
    matrix = np.column_stack([np.vstack([dense, -np.eye(middle)]), flat])
    best = linprog([0.0] * middle + [-1.0], A_ub=matrix, b_ub=1.0 - flat, bounds=(0, 1))
    design = dpopt.design(replace(setting, objective="worst-case", prior=UniformPrior()))
    assert design.value == pytest.approx(-(1 + best.fun) / 2, abs=3e-9)
    assert 1 - 2 * -(design.value or 0.0) == pytest.approx(design.gamma.min(), abs=1e-12)
    # No constant gamma can do better, and the best one attains it or less.
    level = min(1.0, 1.0 / dense.sum(axis=1).max())
    assert design.gamma.min() >= level - 3e-9
    if setting.voter_delta == 0.0:
        assert design.gamma.min() >= baselines.constant(setting).min() - 3e-9


@pytest.mark.parametrize("prior", [BOXES[0], CommonPrior(UniformPrior())], ids=str)
def test_ties_are_broken_by_the_expected_error(prior: Prior) -> None:
    setting = Majority(11, 0.1, 3)
    of_worst = replace(setting, objective="worst-case", prior=prior)
    worst, expected = dpopt.design(of_worst), dpopt.design(replace(setting, prior=prior))
    first = solve(of_worst.problem())["gamma"]
    assert expected.expected_error <= worst.expected_error + 1e-12
    weights = majority.expected_error_weights(11, prior).values
    assert worst.expected_error <= weights @ (1 - first) + 1e-8
    assert -worst.value <= WorstCase(11, prior).value(expected.gamma[6:]) + 1e-8
    # Of all gammas with this worst case, by a program of its own.
    dense = listed_rows(setting)
    if isinstance(prior, UniformPrior):
        floor = (1 + 2 * worst.value) - 1e-9
        listed = linprog(-weights, A_ub=dense, b_ub=np.ones(len(dense)), bounds=(floor, 1))
        assert weights @ worst.gamma[6:] == pytest.approx(-listed.fun, abs=1e-7)


def test_no_prior_allows_all_p() -> None:
    setting = Majority(11, 0.1, 3, objective="worst-case")
    asked, common = (
        dpopt.design(replace(setting, prior=name)) for name in ("uniform:0,1", "common-uniform:0,1")
    )
    assert dpopt.design(setting).value == asked.value < common.value - 0.01


@pytest.mark.nightly
@pytest.mark.slow
def test_where_no_room_is_left_for_the_choice_any_optimum_is_taken() -> None:
    """The second program was reported infeasible, although the first one's optimum is in it."""
    prior = "common-uniform:0,1"
    design = dpopt.design(Majority(101, 0.1, 10, objective="worst-case", prior=prior))
    assert design.private
    assert design.bound is not None
    assert design.value is not None
    assert abs(design.bound - design.value) < 1e-8


def test_a_loose_proof_is_there_if_it_is_asked_for() -> None:
    """The rows that are tight at this gamma prove less than the solver's duals say."""
    setting = Majority(
        *(7, 0.42521526806995075, 3.5335068862630323, 0.0, 9.380716763738204e-05),
        objective="worst-case",
        prior="common-uniform:0,1",
    )
    found = dpopt.design(setting)
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert found.bound is not None
    assert found.bound.how == "float"
    proof = found.optimality
    assert proof is not None
    assert proof.gap > 1e-8
    assert found.bound == proof.as_float()
