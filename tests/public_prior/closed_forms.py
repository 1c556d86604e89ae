"""The paper's recursion and the leximin closed form, written from their definitions."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dpopt._types import Matrix, Vector


def algorithm_one(prior: Vector, epsilon: float) -> Matrix:
    """Algorithm 1 block by block, in the caller's order of categories."""
    order = np.argsort(prior, kind="stable")
    kernel = np.empty((prior.size, prior.size))
    kernel[np.ix_(order, order)] = _block(prior[order], math.exp(epsilon))
    return kernel


def _block(q: Vector, e: float) -> Matrix:
    if q.size == 1:
        return np.ones((1, 1))
    d = e * q[0] + 1 - q[0]
    kernel = np.empty((q.size, q.size))
    kernel[0, 0], kernel[0, 1:], kernel[1:, 0] = e * q[0] / d, q[1:] / d, q[0] / d
    if q.size == 2:
        kernel[1, 1] = ((e - 1) * q[0] + 1 - q[0]) / d
    else:
        kernel[1:, 1:] = (1 - q[0] / d) * _block(q[1:] / q[1:].sum(), e)
    return kernel


def leximin_diagonal(prior: Vector, epsilon: float) -> Vector:
    """min(b, M), where M solves (e - 1) M + sum_j min(b_j, M) = e."""
    e = math.exp(epsilon)
    b = e * prior / (e * prior + 1 - prior)
    level = brentq(lambda m: (e - 1) * m + np.minimum(b, m).sum() - e, 0.0, 2.0, xtol=1e-15)
    return np.minimum(b, level)


def priors(seed: int, count: int, most: int) -> list[Vector]:
    """Random priors of 2 to ``most`` categories, every third with ties, none below 1e-3."""
    rng = np.random.default_rng(seed)
    found = []
    for turn in range(count):
        n = int(rng.integers(2, most + 1))
        masses = rng.integers(1, 4, size=n) if turn % 3 == 0 else rng.uniform(0.02, 1.0, size=n)
        found.append(masses / masses.sum())
    return found
