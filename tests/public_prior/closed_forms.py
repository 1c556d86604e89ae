"""Kernels that keep a public prior, from their definitions: in floats or, exactly, in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

from dpopt import Design, PublicPrior, design
from dpopt._types import Matrix, Vector

over_objectives = pytest.mark.parametrize("objective", ["minimax", "leximin"])


def kernel_for(q: npt.ArrayLike, epsilon: float, objective: Any = "minimax") -> Design:
    """The package's design for a prior."""
    return design(PublicPrior(q, epsilon, objective=objective))


def recursion(q: Sequence[Any], r: Any) -> list[list[Any]]:
    """Algorithm 1 as the paper prints it, block by block, for an ascending prior."""
    if len(q) == 1:
        return [[1]]
    d, others = r * q[0] + 1 - q[0], sum(q[1:])
    inner = recursion([mass / others for mass in q[1:]], r)
    scale = 1 - q[0] / d
    top = [r * q[0] / d, *(mass / d for mass in q[1:])]
    return [top, *([q[0] / d, *(scale * entry for entry in row)] for row in inner)]


def leximin(q: Sequence[Any], r: Any) -> tuple[list[Any], list[list[Any]]]:
    """The diagonal and the kernel of the page, M from the ascending b one after the other."""
    n, b = len(q), [r * mass / (1 + (r - 1) * mass) for mass in q]
    level = r
    for first in range(n + 1):
        # The first categories are at their b, the others at M.
        level = (r - sum(b[:first])) / (r - 1 + n - first)
        if first == n or b[first] >= level:
            break
    d = [min(value, level) for value in b]
    u, rho = [value / r for value in d], [(r - 1) * (level - value) / r for value in d]
    kappa = [mass - low * (1 + (r - 1) * mass) for mass, low in zip(q, u, strict=True)]
    total = sum(kappa)
    kernel = [
        [
            u[j] * (r if i == j else 1) + (rho[i] * kappa[j] / total if total else 0)
            for j in range(n)
        ]
        for i in range(n)
    ]
    return d, kernel


def algorithm_one(prior: Vector, epsilon: float) -> Matrix:
    """Algorithm 1 in the caller's order of categories."""
    return _in_order(prior, recursion(np.sort(prior).tolist(), math.exp(epsilon)))


def leximin_kernel(prior: Vector, epsilon: float) -> Matrix:
    """The leximin kernel in the caller's order of categories."""
    return _in_order(prior, leximin(np.sort(prior).tolist(), math.exp(epsilon))[1])


def _in_order(prior: Vector, ascending: list[list[float]]) -> Matrix:
    order = np.argsort(prior, kind="stable")
    kernel = np.empty((prior.size, prior.size))
    kernel[np.ix_(order, order)] = ascending
    return kernel


def all_kernels(q: Vector, epsilon: float) -> tuple[cp.Variable, list[cp.Constraint]]:
    """Any private kernel that keeps q, in cvxpy, every privacy row written out."""
    kernel = cp.Variable((q.size, q.size), bounds=[0, 1])
    held = [cp.sum(kernel, axis=1) == 1, q @ kernel == q]
    held += [kernel[i] <= math.exp(epsilon) * kernel[j] for i, j in permutations(range(q.size), 2)]
    return kernel, held


def priors(seed: int, count: int, most: int) -> list[Vector]:
    """Random priors of 2 to ``most`` categories, every third with ties, none below 1e-3."""
    rng = np.random.default_rng(seed)
    found = []
    for turn in range(count):
        n = int(rng.integers(2, most + 1))
        masses = rng.integers(1, 4, size=n) if turn % 3 == 0 else rng.uniform(0.02, 1.0, size=n)
        found.append(masses / masses.sum())
    return found
