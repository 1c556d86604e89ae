"""The leximin kernel against its definition: linear programs, one category after another."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from tests.public_prior.closed_forms import all_kernels, kernel_for, leximin_kernel

REFERENCE = [0.05, 0.1, 0.15, 0.2, 0.5]


def leximin_by_programs(q: np.ndarray, epsilon: float) -> np.ndarray:
    """Raise the smallest free K_ii, fix the categories that cannot rise, repeat."""
    kernel, held = all_kernels(q, epsilon)
    diagonal, least, free = cp.diag(kernel), np.zeros(q.size), list(range(q.size))

    def best(raised: list[int], limits: np.ndarray) -> float:
        """The largest t with K_ii >= t over ``raised``."""
        lowest = cp.Maximize(cp.min(diagonal[raised]))
        return cp.Problem(lowest, [*held, diagonal >= limits - 1e-10]).solve(solver=cp.HIGHS)  # type: ignore[return-value]

    while free:
        level = best(free, least)
        limits = np.where(np.isin(range(q.size), free), level, least)
        stuck = [i for i in free if best([i], limits) < level + 1e-7]
        assert stuck
        least[stuck], free = level, [i for i in free if i not in stuck]
    return least


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
    assert kernel_for(q, epsilon, "leximin").diagonal == pytest.approx(expected, abs=1e-6)


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("n", [2, 7, 60])
def test_matrix_is_the_formula(n: int, epsilon: float) -> None:
    q = np.random.default_rng(n).dirichlet(np.ones(n))
    kernel, expected = kernel_for(q, epsilon, "leximin"), leximin_kernel(q, epsilon)
    assert kernel.diagonal == pytest.approx(np.diag(expected), abs=1e-12)
    assert kernel.kernel == pytest.approx(expected, abs=1e-10)


def test_large_epsilon_keeps_its_small_entries() -> None:
    q = np.array([1e-12, 3e-9, 0.02, 0.3, 0.679999996999])
    kernel = kernel_for(q / q.sum(), 50.0, "leximin")
    table = kernel.setting.written(kernel.table)
    exact = np.array([weight / table.total for weight in table.weights]).reshape(5, 5)
    assert kernel.kernel == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.3])
def test_rounding_among_equal_masses_beside_a_rare_category(epsilon: float) -> None:
    """None reached its level in floats, all were taken to be at it, and rows summed to 2/3."""
    for rare in (1e-10 / 2, 1e-12, 3e-7):
        kernel = kernel_for(np.array([rare, 0.5, 0.5]) / (1 + rare), epsilon, "leximin")
        assert kernel.kernel.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-13)
    q = [4.9999999997500004e-11, 0.49999999997500005, 0.49999999997500005]
    kernel = kernel_for(q, epsilon, "leximin")
    exact = kernel.setting.written(kernel.table)
    assert kernel.kernel == pytest.approx(exact.matrix(), abs=1e-11)
