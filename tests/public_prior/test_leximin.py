"""The leximin kernel against its definition: linear programs, one category after another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

import dpopt

REFERENCE = [0.05, 0.1, 0.15, 0.2, 0.5]


def constraints(q: np.ndarray, e: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Private kernels that keep q, over K row by row and t: (inequalities, equalities, right)."""
    n = len(q)
    rows = []
    for j in range(n):
        for i in range(n):
            for other in range(n):
                if i != other:
                    row = np.zeros(n * n + 1)
                    row[i * n + j], row[other * n + j] = 1.0, -e
                    rows.append(row)
    equal, right = [], []
    for i in range(n):
        row = np.zeros(n * n + 1)
        row[i * n : (i + 1) * n] = 1.0
        equal.append(row)
        right.append(1.0)
    for j in range(n):
        row = np.zeros(n * n + 1)
        row[j : n * n : n] = q
        equal.append(row)
        right.append(q[j])
    return np.array(rows), np.array(equal), np.array(right)


def leximin_by_programs(q: np.ndarray, epsilon: float) -> np.ndarray:
    """Raise the smallest free K_ii, fix the categories that cannot rise, repeat."""
    n = len(q)
    rows, equal, right = constraints(q, math.exp(epsilon))
    fixed: dict[int, float] = {}
    while len(fixed) < n:
        level = best(rows, equal, right, fixed, [i for i in range(n) if i not in fixed], None)
        free = [i for i in range(n) if i not in fixed]
        stuck = [i for i in free if best(rows, equal, right, fixed, [i], (free, level)) < 1e-7]
        assert stuck
        fixed |= dict.fromkeys(stuck, level)
    return np.array([fixed[i] for i in range(n)])


def best(
    rows: np.ndarray,
    equal: np.ndarray,
    right: np.ndarray,
    fixed: dict[int, float],
    raised: list[int],
    above: tuple[list[int], float] | None,
) -> float:
    """The largest t with K_ii >= t over ``raised``; with ``above``, how far one rises over it."""
    size = rows.shape[1]
    n = math.isqrt(size - 1)
    extra, limits = [], []
    least = dict(fixed) if above is None else fixed | dict.fromkeys(above[0], above[1])
    for i, value in least.items():
        row = np.zeros(size)
        row[i * n + i] = -1.0
        extra.append(row)
        limits.append(-value + 1e-10)
    for i in raised:
        row = np.zeros(size)
        row[i * n + i], row[-1] = -1.0, 1.0
        extra.append(row)
        limits.append(0.0)
    cost = np.zeros(size)
    cost[-1] = -1.0
    found = linprog(
        cost,
        A_ub=np.vstack([rows, *extra]),
        b_ub=np.concatenate([np.zeros(len(rows)), limits]),
        A_eq=equal,
        b_eq=right,
        bounds=[(0, 1)] * size,
    )
    assert found.status == 0
    return -found.fun - (0.0 if above is None else above[1])


@pytest.mark.parametrize(
    ("q", "epsilon"),
    [
        (REFERENCE, 1.0),
        ([0.1, 0.2, 0.3, 0.4], 0.5),
        ([0.1, 0.45, 0.45], 2.0),
        ([0.02, 0.32, 0.33, 0.33], 3.0),
        ([0.3, 0.7], 1.0),
    ],
)
def test_diagonal_is_that_of_successive_programs(q: list[float], epsilon: float) -> None:
    expected = leximin_by_programs(np.array(q), epsilon)
    assert dpopt.design(
        dpopt.PublicPrior(q, epsilon, objective="leximin")
    ).diagonal == pytest.approx(expected, abs=1e-6)


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("n", [2, 7, 60])
def test_matrix_is_the_formula(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    q, e = rng.dirichlet(np.ones(n)), math.exp(epsilon)
    bounds = e * q / (e * q + 1 - q)
    level = brentq(lambda m: (e - 1) * m + np.minimum(bounds, m).sum() - e, 0, 1.1, xtol=1e-15)
    d = np.minimum(bounds, level)
    u = d / e
    rest = (e - 1) * (level - d) / e
    shares = q - u * (1 + (e - 1) * q)
    expected = (
        np.outer(np.ones(n), u) + (e - 1) * np.diag(u) + np.outer(rest, shares / shares.sum())
    )
    kernel = dpopt.design(dpopt.PublicPrior(q, epsilon, objective="leximin"))
    assert kernel.diagonal.max() == pytest.approx(level, abs=1e-12)
    assert kernel.kernel == pytest.approx(expected, abs=1e-10)


def test_sorted_diagonal_is_at_least_that_of_algorithm_1() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        q, epsilon = rng.dirichlet(np.ones(8)), rng.uniform(0.1, 9.0)
        ours = np.sort(dpopt.design(dpopt.PublicPrior(q, epsilon, objective="leximin")).diagonal)
        theirs = np.sort(dpopt.design(dpopt.PublicPrior(q, epsilon)).diagonal)
        differ = np.flatnonzero(abs(ours - theirs) > 1e-12)
        assert differ.size
        assert ours[differ[0]] > theirs[differ[0]]


def test_large_epsilon_keeps_its_small_entries() -> None:
    q = np.array([1e-12, 3e-9, 0.02, 0.3, 0.679999996999])
    kernel = dpopt.design(dpopt.PublicPrior(q / q.sum(), 50.0, objective="leximin"))
    table = kernel.setting.written(kernel.table)
    exact = np.array([weight / table.total for weight in table.weights]).reshape(5, 5)
    assert kernel.kernel == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.3])
def test_rounding_among_equal_masses_beside_a_rare_category(epsilon: float) -> None:
    """None reached its level in floats, all were taken to be at it, and rows summed to 2/3."""
    for rare in (1e-10 / 2, 1e-12, 3e-7):
        kernel = dpopt.design(
            dpopt.PublicPrior(np.array([rare, 0.5, 0.5]) / (1 + rare), epsilon, objective="leximin")
        )
        assert kernel.kernel.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-13)
    q = [4.9999999997500004e-11, 0.49999999997500005, 0.49999999997500005]
    kernel = dpopt.design(dpopt.PublicPrior(q, epsilon, objective="leximin"))
    exact = kernel.setting.written(kernel.table)
    assert kernel.kernel == pytest.approx(exact.matrix(), abs=1e-11)
