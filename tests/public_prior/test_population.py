"""The population's kernel against other kernels, another solver and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from dpopt import Design, Population, PublicPrior, SolverError, design, solve
from dpopt._types import Matrix, Vector
from dpopt.privacy import exp_lower
from dpopt.prob import total_variation
from dpopt.public_prior import minimax_utility
from tests.kernel.brute import sure
from tests.public_prior.closed_forms import (
    algorithm_one,
    all_kernels,
    leximin_kernel,
    priors,
)

EPSILONS = [0.1, 1.0, 4.0, 16.0]
PRIOR = np.array([0.05, 0.1, 0.15, 0.2, 0.5])


def users(seed: int, labels: int, count: int) -> Matrix:
    rng = np.random.default_rng(seed)
    pmfs = rng.dirichlet(np.full(labels, 0.5), size=count)
    pmfs[::2] = np.where(pmfs[::2] < 1.0 / labels, 0.0, pmfs[::2])
    return np.asarray(pmfs / pmfs.sum(axis=1, keepdims=True))


def population_kernel(
    q: Any, epsilon: float, users: Any, weights: Any = None, backend: Any = None, **asked: Any
) -> Design:
    return design(Population(q, epsilon, users, weights, **asked), backend=backend)


def mean_tv(weights: Vector, pmfs: Matrix, kernel: Matrix) -> float:
    return float(weights @ total_variation(pmfs, pmfs @ kernel))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_never_worse_on_its_own_users_than_minimax_and_leximin(epsilon: float) -> None:
    for turn, q in enumerate(priors(31, 6, 8)):
        pmfs = users(turn, q.size, 20)
        weights = np.random.default_rng(turn).uniform(size=20)
        weights /= weights.sum()
        found = population_kernel(q, epsilon, pmfs, weights)
        for other in (algorithm_one(q, epsilon), leximin_kernel(q, epsilon)):
            assert sure(found.bound) <= mean_tv(weights, pmfs, other) + 1e-12
            assert found.value <= mean_tv(weights, pmfs, other) + 1e-7
        assert found.worst_tv <= found.gamma_tv + 1e-8
        assert found.gamma_tv == pytest.approx(minimax_utility(q, epsilon), abs=1e-15)
        assert 0.0 <= sure(found.gap) + 1e-12 < 1e-6
        assert found.value == pytest.approx(mean_tv(weights, pmfs, found.kernel), abs=1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("objective", ["mean", "diagonal"])
def test_the_weights_are_private_as_fractions(objective: str, epsilon: float) -> None:
    q = priors(32, 3, 7)[1]
    found = population_kernel(q, epsilon, users(33, q.size, 15), objective=objective)
    ratio, n = exp_lower(epsilon), q.size
    rows = [[Fraction(w, found.table.total) for w in found.table.row(x)] for x in range(n)]
    assert all(sum(row) == 1 for row in rows)
    for column in zip(*rows, strict=True):
        assert max(column) <= ratio * min(column)
    masses = [Fraction(mass) for mass in q.tolist()]
    kept = [sum(map(Fraction.__mul__, masses, column)) for column in zip(*rows, strict=True)]
    moved = sum(abs(k - mass) for k, mass in zip(kept, masses, strict=True)) / 2
    assert found.drift == pytest.approx(float(moved), abs=1e-14)
    assert found.drift < 1e-7
    assert sure(found.certificate).guarantee == found.guarantee
    assert found.guarantee.epsilon == epsilon
    assert found.guarantee.delta == 0.0


def naive_optimum(
    q: Vector, epsilon: float, pmfs: Matrix, weights: Vector, worst: float, objective: str
) -> float:
    """The same optimum with cvxpy."""
    kernel, held = all_kernels(q, epsilon)
    if objective == "mean":
        cost = weights @ cp.sum(cp.abs(pmfs - pmfs @ kernel), axis=1) / 2
    else:
        cost = (weights @ pmfs) @ (1 - cp.diag(kernel))
    problem = cp.Problem(cp.Minimize(cost), [*held, 1 - cp.diag(kernel) <= worst])
    problem.solve(solver=cp.HIGHS)
    return float(np.asarray(problem.value))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("objective", ["mean", "diagonal"])
@pytest.mark.parametrize("slack", [0.05, 0.0, 1.0])
def test_cvxpy_finds_the_same_optimum(objective: str, slack: float) -> None:
    for turn, q in enumerate(priors(34, 4, 6)):
        pmfs = users(35 + turn, q.size, 8)
        weights = np.arange(1.0, 9.0)
        found = population_kernel(q, 1.5, pmfs, weights, slack=slack, objective=objective)
        worst = minimax_utility(q, 1.5) + slack
        expected = naive_optimum(q, 1.5, pmfs, weights / 36.0, worst, objective)
        assert found.value == pytest.approx(expected, abs=1e-6)
        assert found.bound == pytest.approx(expected, abs=1e-6)
        assert found.worst_tv <= worst + 1e-8


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("least", [1e-12, 1e-10, 1e-9, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 9.623328547590642, 15.5])
def test_two_labels_in_closed_form(least: float, epsilon: float) -> None:
    """K = [[1 - a, a], [a s, 1 - a s]], s = q_1 / q_2, has TV(p, p K) = a |p_1 - p_2 s|.

    Privacy asks for a >= 1 / (1 + e^epsilon s) and a >= 1 / (e^epsilon + s), and nothing else.
    Rows of 1e-9 beside rows of 1 were once called infeasible.
    """
    pmfs = np.random.default_rng(5).dirichlet([0.5, 0.5], size=5)
    ratio = least / (1.0 - least)
    a = max(1 / (1 + math.exp(epsilon) * ratio), 1 / (math.exp(epsilon) + ratio))
    found = population_kernel([least, 1.0 - least], epsilon, pmfs)
    expected = a * float(np.mean(np.abs(pmfs[:, 0] - pmfs[:, 1] * ratio)))
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert sure(found.bound) <= expected + 1e-12


@pytest.mark.parametrize("rare", [1e-38, 1e-100, 1e-300])
def test_a_category_that_hardly_occurs_takes_longer_integers(rare: float) -> None:
    found = population_kernel([0.3, 0.7 - rare, rare], 1.0, [[0.3, 0.3, 0.4]])
    usual = population_kernel([0.3, 0.7 - 1e-12, 1e-12], 1.0, [[0.3, 0.3, 0.4]])
    assert usual.table.total.bit_length() <= 127 < found.table.total.bit_length()
    assert found.value == pytest.approx(usual.value, rel=1e-9)
    rows = [[Fraction(w, found.table.total) for w in found.table.row(x)] for x in range(3)]
    r = exp_lower(1.0, 400)
    assert all(a <= r * b for one in rows for two in rows for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("backend", ["highs", "cvxpy", "cvxpy:CLARABEL"])
def test_a_feasible_program_is_never_called_infeasible(backend: str) -> None:
    """HiGHS's presolve calls this one infeasible; the claim is checked before it is passed on."""
    pmfs = [[0.54, 0.46], [0.19, 0.81], [0.17, 0.83], [0.92, 0.08], [0.96, 0.04]]
    pmf = [1e-9, 1 - 1e-9]
    try:
        found = population_kernel(pmf, 9.623328547590642, pmfs, backend=backend)
    except SolverError:
        # That it could not be solved is true of a backend with one way only.
        assert backend == "cvxpy"
        return
    assert found.worst_tv <= found.gamma_tv + 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_point_masses_cost_their_diagonal(epsilon: float) -> None:
    """TV(e_i, e_i K) = 1 - K_ii: the objectives agree, and no user costs more than Gamma_TV."""
    labels = np.eye(PRIOR.size)
    by_tv = population_kernel(PRIOR, epsilon, labels)
    by_diagonal = population_kernel(PRIOR, epsilon, labels, objective="diagonal")
    assert by_tv.value == pytest.approx(by_diagonal.value, abs=1e-9)
    # One user who holds the rarest category: the mean is the worst case, and the program that of
    # the paper.
    rarest = population_kernel(PRIOR, epsilon, labels[:1])
    assert rarest.value == pytest.approx(
        solve(PublicPrior(PRIOR, epsilon).problem()).objective, abs=1e-9
    )


def test_apply_on_users_it_was_not_designed_for() -> None:
    pmfs, others = users(38, PRIOR.size, 40), users(39, PRIOR.size, 300)
    found = population_kernel(PRIOR, 1.0, pmfs)
    assert found.apply(others) == pytest.approx(others @ found.kernel, abs=1e-15)
    assert total_variation(pmfs, found.apply(pmfs)).mean() == pytest.approx(found.value, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "slack"), [(0.3, 0.0), (1.0, 0.05), (3.0, 0.0)])
def test_many_users_have_the_optimum_of_the_simplex_method(epsilon: float, slack: float) -> None:
    pmfs = users(61, 8, 500)
    weights = np.random.default_rng(62).uniform(0.5, 1.0, size=500)
    q = np.random.default_rng(63).dirichlet(np.full(8, 3.0))
    setting = Population(q, epsilon, pmfs, weights, slack)
    found = design(setting)
    assert found.solution is not None
    assert found.solution.iterations < 100
    known = solve(setting.problem())
    assert found.value == pytest.approx(known.objective, abs=1e-8)
    assert found.bound == pytest.approx(known.objective, abs=1e-8)
    assert found.worst_tv <= found.gamma_tv + slack + 1e-8
    assert found.drift < 1e-7


def test_a_small_optimum_is_bounded_closely() -> None:
    # At epsilon 12 the optimum is 1e-4: rounding of the bound's many terms must not hide the gap.
    users = np.random.default_rng(0).dirichlet(np.ones(12), size=300)
    found = population_kernel(users.mean(axis=0), 12.0, users)
    assert found.solution is not None
    assert found.solution.iterations < 100
    assert found.bound is not None
    assert 0 <= found.value - found.bound < 1e-6 * found.value
    other = solve(found.setting.problem(), "highs").objective
    assert found.value == pytest.approx(other, rel=1e-6)
