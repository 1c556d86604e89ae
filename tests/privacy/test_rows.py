"""Privacy as rows: by hand, and the optimum of a small design problem in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpopt import Problem, solve
from dpopt.privacy import complete_graph, ratio_rows, stochastic_rows


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_rows_of_ratios_give_randomised_response(k: int, epsilon: float) -> None:
    problem = Problem("mechanism")
    problem.add_variables("kernel", k * k, lower=0.0, upper=1.0)
    problem.add_rows("stochastic", stochastic_rows(k, k))
    problem.add_rows("privacy", ratio_rows(complete_graph(k), k, k, epsilon))
    problem.maximise({"kernel": np.eye(k).reshape(-1) / k})
    accuracy = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    assert solve(problem).objective == pytest.approx(accuracy, rel=1e-8)


def test_ratio_rows_by_hand() -> None:
    rows = ratio_rows([[0, 1]], 2, 2, math.log(3))
    matrix = [[1, 0, -3, 0], [0, 1, 0, -3]]
    np.testing.assert_allclose(rows.matrix.toarray(), matrix, rtol=1e-15)
    assert rows.upper.tolist() == [0, 0]
    assert np.all(rows.lower == -np.inf)


def test_no_pairs_give_no_ratio_rows() -> None:
    assert ratio_rows(complete_graph(1), 1, 3, 1.0).count == 0
