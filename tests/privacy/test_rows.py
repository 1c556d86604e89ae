"""Privacy as rows: optima of small design problems with closed forms."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from dpopt import Problem, Solution, solve
from dpopt.lp import Rows
from dpopt.privacy import (
    column_minimum_rows,
    complete_graph,
    hockey_stick_rows,
    ratio_rows,
    stochastic_rows,
)

SIZES = pytest.mark.parametrize("k", [2, 3, 5])
EPSILONS = pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])


def kernel_problem(inputs: int, outputs: int) -> Problem:
    problem = Problem("mechanism")
    problem.add_variables("kernel", inputs * outputs, lower=0.0, upper=1.0)
    problem.add_rows("stochastic", stochastic_rows(inputs, outputs))
    return problem


def kernel_of(solution: Solution, inputs: int) -> np.ndarray:
    return solution["kernel"].reshape(inputs, -1)


def worst_ratio(kernel: np.ndarray, pairs: npt.NDArray[np.int64], epsilon: float) -> float:
    return float(np.max(kernel[pairs[:, 0]] - math.exp(epsilon) * kernel[pairs[:, 1]]))


@SIZES
@EPSILONS
def test_column_minima_give_the_same_optimum(k: int, epsilon: float) -> None:
    problem = kernel_problem(k, k)
    problem.add_variables("least", k, lower=0.0, upper=1.0)
    problem.add_rows("privacy", column_minimum_rows(k, k, epsilon))
    problem.maximise({"kernel": np.eye(k).reshape(-1) / k})
    solution = solve(problem)
    accuracy = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    assert solution.objective == pytest.approx(accuracy, rel=1e-8)
    kernel, least = kernel_of(solution, k), solution["least"]
    assert worst_ratio(kernel, complete_graph(k), epsilon) <= 1e-8
    assert np.all(kernel >= least - 1e-8)


def binary_problem(epsilon: float, delta: float) -> Problem:
    problem = kernel_problem(2, 2)
    problem.add_variables("excess", 4, lower=0.0, upper=1.0)
    problem.add_rows("privacy", hockey_stick_rows([[0, 1], [1, 0]], 2, 2, epsilon, delta))
    problem.maximise({"kernel": np.eye(2).reshape(-1) / 2})
    return problem


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1, 0.7])
def test_binary_response_with_delta(epsilon: float, delta: float) -> None:
    solution = solve(binary_problem(epsilon, delta))
    expected = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    assert solution.objective == pytest.approx(expected, rel=1e-8)
    kernel = kernel_of(solution, 2)
    for first, second in ((0, 1), (1, 0)):
        excess = np.maximum(0.0, kernel[first] - math.exp(epsilon) * kernel[second])
        assert excess.sum() <= delta + 1e-8


def same_rows(rows: Rows, matrix: list[list[int]], upper: list[float]) -> None:
    np.testing.assert_allclose(rows.matrix.toarray(), matrix, rtol=1e-15)
    np.testing.assert_allclose(rows.upper, upper, rtol=1e-15)
    assert np.all(rows.lower == -np.inf)


def test_ratio_rows_by_hand() -> None:
    rows = ratio_rows([[0, 1]], 2, 2, math.log(3))
    same_rows(rows, [[1, 0, -3, 0], [0, 1, 0, -3]], [0, 0])


def test_column_minimum_rows_by_hand() -> None:
    rows = column_minimum_rows(2, 1, math.log(3))
    same_rows(rows, [[-1, 0, 1], [0, -1, 1], [1, 0, -3], [0, 1, -3]], [0] * 4)


def test_hockey_stick_rows_by_hand() -> None:
    rows = hockey_stick_rows([[1, 0]], 2, 2, math.log(3), 0.125)
    matrix = [[-3, 0, 1, 0, -1, 0], [0, -3, 0, 1, 0, -1], [0, 0, 0, 0, 1, 1]]
    same_rows(rows, matrix, [0, 0, 0.125])


def test_no_pairs_give_no_ratio_rows() -> None:
    assert ratio_rows(complete_graph(1), 1, 3, 1.0).count == 0
