"""The relative mollifier against solvers, root finding and the program of appendix A.8."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import rel_entr

from dpopt import Mollifier, solve
from dpopt._types import Matrix, Vector
from dpopt.prob import total_variation
from dpopt.public_prior import mollify
from experiments.public_prior.accuracy import mollifier_tv
from tests.public_prior.closed_forms import priors

EPSILONS = [0.1, 1.0, 4.0, 12.0]


def users(seed: int, labels: int, count: int) -> Matrix:
    """Distributions from nearly uniform to nearly a point, a third with zeros, and all points."""
    rng = np.random.default_rng(seed)
    pmfs = np.vstack([rng.dirichlet(np.full(labels, a), size=count) for a in (0.2, 1.0, 5.0)])
    pmfs[::3] = np.where(pmfs[::3] < 1.0 / labels, 0.0, pmfs[::3])
    return np.vstack([pmfs / pmfs.sum(axis=1, keepdims=True), np.eye(labels)])


def limits(q: Vector, epsilon: float) -> tuple[Vector, Vector]:
    return q * math.exp(-epsilon / 2), q * math.exp(epsilon / 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_distributions_within_the_limits_that_sum_to_one(epsilon: float) -> None:
    for q in priors(11, 10, 30):
        found = mollify(q, users(12, q.size, 20), epsilon)
        low, high = limits(q, epsilon)
        assert np.all(found >= low * (1 - 1e-14))
        assert np.all(found <= high * (1 + 1e-14))
        assert found.sum(axis=1) == pytest.approx(np.ones(found.shape[0]), abs=1e-14)
        assert not found.flags.writeable


def excess(c: float, pmf: Vector, low: Vector, high: Vector) -> float:
    return float(np.clip(pmf / c, low, high).sum()) - 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_root_finding_gives_the_same_distributions(epsilon: float) -> None:
    """Equation 3 with C from a root finder, for users without zeros."""
    for q in priors(13, 8, 12):
        p = np.random.default_rng(14).dirichlet(np.full(q.size, 2.0), size=10)
        low, high = limits(q, epsilon)
        for pmf, found in zip(p, mollify(q, p, epsilon), strict=True):
            c = brentq(excess, 1e-12, 1e12, (pmf, low, high), xtol=1e-300, rtol=1e-14, maxiter=1000)
            assert found == pytest.approx(np.clip(pmf / c, low, high), abs=1e-10)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_distribution_within_the_limits_is_nearer_in_kl(epsilon: float) -> None:
    for q in priors(15, 4, 5):
        p = users(16, q.size, 2)
        found = rel_entr(p, mollify(q, p, epsilon)).sum(axis=1)
        low, high = limits(q, epsilon)
        for pmf, value in zip(p, found, strict=True):
            nearest = cp.Variable(q.size)
            held = [nearest >= low, nearest <= high, cp.sum(nearest) == 1]
            problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(pmf, nearest))), held)
            assert problem.solve(solver=cp.CLARABEL) == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_total_variation_is_the_program_s_and_the_projection_attains_it(epsilon: float) -> None:
    for q in priors(17, 8, 9):
        p = users(18, q.size, 4)
        values = mollifier_tv(q, p, epsilon)
        assert total_variation(p, mollify(q, p, epsilon)) == pytest.approx(values, abs=1e-12)
        for pmf, value in zip(p, values, strict=True):
            solution = solve(Mollifier(q, epsilon, pmf).problem())
            assert solution.objective == pytest.approx(float(value), abs=1e-9)
            assert total_variation(pmf, solution["pmf"]) == pytest.approx(float(value), abs=1e-9)


def test_appendix_program_in_scipy() -> None:
    """The program as printed, through another interface."""
    for q in priors(19, 5, 6):
        n, (low, high) = q.size, limits(q, 1.5)
        p = users(20, n, 3)
        for pmf, value in zip(p, mollifier_tv(q, p, 1.5), strict=True):
            found = linprog(
                np.concatenate([np.zeros(n), np.ones(n)]),
                A_ub=-np.hstack([np.eye(n), np.eye(n)]),
                b_ub=-pmf,
                A_eq=np.concatenate([np.ones(n), np.zeros(n)])[None, :],
                b_eq=[1.0],
                bounds=[*zip(low, np.minimum(high, 1.0), strict=True), *[(0.0, None)] * n],
            )
            assert found.fun == pytest.approx(float(value), abs=1e-8)


def test_a_rare_category_alone_leaves_the_rest_in_proportion_to_the_prior() -> None:
    q = np.array([0.01, 0.09, 0.3, 0.6])
    found = mollify(q, [1.0, 0.0, 0.0, 0.0], 2.0)
    top = 0.01 * math.e
    assert found == pytest.approx([top, *(q[1:] * (1 - top) / 0.99)])


def test_users_and_labels_are_treated_alike() -> None:
    q = priors(21, 1, 9)[0]
    p = users(22, q.size, 5)
    together, order = mollify(q, p, 1.0), np.random.default_rng(23).permutation(q.size)
    for pmf, found in zip(p, together, strict=True):
        assert mollify(q, pmf, 1.0) == pytest.approx(found, abs=1e-15)
        moved = mollify(q[order], pmf[order], 1.0)
        assert moved == pytest.approx(found[order], abs=1e-14)


@pytest.mark.parametrize("epsilon", [1e-9, 600.0])
def test_ends_of_the_range(epsilon: float) -> None:
    q = np.array([1e-9, 0.4, 0.6 - 1e-9])
    p = np.array([[0.0, 0.5, 0.5], [1e-300, 0.3, 0.7], [1.0, 0.0, 0.0]])
    found = mollify(q, p, epsilon)
    expected = np.array([q] * 3) if epsilon < 1 else p
    assert found == pytest.approx(expected, abs=1e-8)


def test_many_users_are_projected_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    q = priors(24, 1, 6)[0]
    p = users(25, q.size, 30)
    whole = mollify(q, p, 1.0)
    monkeypatch.setattr("dpopt.public_prior.mollifier._CHUNK", 7 * q.size)
    assert np.array_equal(mollify(q, p, 1.0), whole)
