"""What must be so after the cells of ``workload.ipynb``."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np


def after_K(it: Any) -> None:
    assert np.allclose(it.K.sum(axis=1), 1)
    assert np.allclose(it.q @ it.K, it.q)
    assert np.all(it.K.max(axis=0) <= math.exp(it.epsilon) * it.K.min(axis=0) * (1 + 1e-12))


def least_variance(queries: np.ndarray, epsilon: float, prior: np.ndarray) -> float:
    """The program over all patterns by another solver."""
    n = len(prior)
    bits = (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1
    patterns = np.where(bits > 0, math.exp(epsilon), 1.0)
    theta = cp.Variable(len(patterns), nonneg=True)
    weights = 1 / (patterns @ prior)
    matrix = patterns.T @ cp.diag(cp.multiply(theta, weights)) @ patterns
    cost = sum(cp.matrix_frac(row, matrix) for row in queries)
    problem = cp.Problem(cp.Minimize(cost), [patterns.T @ theta == 1])
    problem.solve(solver=cp.CLARABEL)
    value: Any = problem.value
    return value - float(prior @ (queries**2).sum(axis=0))


def after_design(it: Any) -> None:
    assert it.design.proof == "enumeration"
    assert 0 <= it.design.gap < 1e-8
    assert np.allclose(it.queries.cumsum(axis=0)[0], np.eye(it.n)[0])
    by_another = least_variance(it.queries, it.epsilon, it.q)
    assert math.isclose(it.design.variance, by_another, rel_tol=1e-6)


def after_accepted(it: Any) -> None:
    assert it.accepted == 0


def after_compared(it: Any) -> None:
    assert math.isclose(it.compared["this"], it.compared["bound"], rel_tol=1e-8)
    assert it.decoded > it.design.variance
    assert min(it.compared.values()) == it.compared["bound"]
    # Of its letters, decoded for people of q: each person adds a variance of its own.
    v = it.queries @ np.linalg.inv(it.K.T)
    spread = (v**2).sum(axis=0) @ it.K.T - (it.queries**2).sum(axis=0)
    assert math.isclose(it.q @ spread, it.decoded, rel_tol=1e-9)


def after_estimate(it: Any) -> None:
    assert it.estimate.unbiased
    assert it.estimate.people == it.people
    assert it.truth[-1] == it.people
    off = np.abs(it.estimate.values - it.truth)
    assert np.all(off <= 6 * it.estimate.standard_errors + 1e-6)
    # What is stated of the error is what is predicted for these people.
    predicted = it.design.letter_variances[it.letters].sum()
    assert math.isclose(np.sum(it.estimate.standard_errors**2), predicted, rel_tol=0.05)


def after_unbiased(it: Any) -> None:
    expected = it.queries @ (np.bincount(it.letters, minlength=it.n) @ it.K)
    assert np.abs(it.raw - expected).max() < 6 * math.sqrt(it.people / 4)
    assert np.abs(it.raw - it.truth).max() > 0.3 * it.people
    v = it.queries @ np.linalg.inv(it.K.T)
    total = it.people * it.decoded * 10
    assert np.allclose(v @ it.told, it.unbiased)
    assert np.sum((it.unbiased - it.truth) ** 2) < 6 * total


def after_made(it: Any) -> None:
    means = {name: it.q @ each.letter_variances for name, each in it.made.items()}
    assert min(means, key=lambda name: means[name]) == "for the prior"
    most = {name: each.letter_variances.max() for name, each in it.made.items()}
    assert min(most, key=lambda name: most[name]) == "for the worst"
    assert np.allclose(np.ptp(it.worst.letter_variances), 0, atol=1e-5)
