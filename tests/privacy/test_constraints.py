"""Privacy as constraints of cvxpy: closed forms, the kernel's own program, and plain fractions."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest

import dpopt
from dpopt import ParameterError, privacy_constraints, solve
from dpopt.privacy import directed_pairs
from dpopt.privacy.graph import all_pairs
from tests.kernel.brute import distances


def pmf_of(kernel_: Any) -> Any:
    pmf: Any = cp.sum(kernel_, axis=1) == 1
    return pmf.set_label("pmf")


def least_loss(inputs: int, *privacy: Any, **how: Any) -> tuple[float, npt.NDArray[np.float64]]:
    K = cp.Variable((inputs, inputs), name="K", nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(distances(inputs), K)) / inputs),
        [pmf_of(K), *privacy_constraints(K, *privacy, **how)],
    )
    solution = solve(problem)
    return solution.objective, solution["K"]


def excess(K: npt.NDArray[np.float64], epsilon: float, pairs: npt.NDArray[np.int64]) -> float:
    """The largest sum_y max(0, K[x, y] - e^epsilon K[x', y])."""
    first, second = pairs.T
    return float(np.max(np.sum(np.maximum(K[first] - math.exp(epsilon) * K[second], 0), axis=1)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-3, 0.2, 1.0])
def test_randomised_response_with_delta(epsilon: float, delta: float) -> None:
    K = cp.Variable((2, 2), nonneg=True)
    rows = [pmf_of(K), *privacy_constraints(K, epsilon, delta)]
    best = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    solution = solve(cp.Problem(cp.Maximize(cp.trace(K) / 2), rows))
    assert solution.objective == pytest.approx(min(best, 1.0), abs=1e-9)


@pytest.mark.sample(6)
@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize(
    ("graph", "shape"),
    [
        ("complete", None),
        ("path", None),
        ("cycle", None),
        ("grid", (2, 3)),
        ("hamming", (2, 3)),
        ([[0, 1], [4, 2], [5, 3]], None),
    ],
)
def test_the_kernels_of_graphs(graph: Any, shape: Any, delta: float) -> None:
    value, K = least_loss(6, 0.8, delta, graph, shape=shape)
    pairs = all_pairs(directed_pairs(graph, 6, shape), 6)
    assert excess(K, 0.8, pairs) <= delta + 1e-8
    setting = dpopt.Kernel(distances(6), 0.8, delta=delta, graph=graph, shape=shape)
    assert value == pytest.approx(solve(setting.problem()).objective, abs=1e-8)


def test_an_expression_is_a_kernel_too() -> None:
    half = cp.Variable((3, 2), nonneg=True)
    K = cp.vstack([half.T, cp.reshape(cp.Constant([0.2, 0.3, 0.5]), (1, 3), order="F")])
    solution = solve(
        cp.Problem(cp.Maximize(K[0, 0] - K[1, 0]), [pmf_of(K), *privacy_constraints(K, 0.5)])
    )
    values = np.asarray(K.value)
    assert excess(values, 0.5, all_pairs(None, 3)) < 1e-9
    assert solution.objective == pytest.approx(best_difference(0.5), abs=1e-9)


def best_difference(epsilon: float) -> float:
    """Of K[0, 0] - K[1, 0] with K[2] = (0.2, 0.3, 0.5), by the extreme ratios.

    K[0, 0] = a and K[1, 0] = b with a <= e^eps b, 1 - b <= e^eps (1 - a), and either within
    e^eps of 0.2, and so for the rest of 0.8: the largest a - b is at a corner of these lines.
    """
    r = math.exp(epsilon)
    low, high = max(0.2 / r, 1 - 0.8 * r), min(0.2 * r, 1 - 0.8 / r)
    least, most = max(low, high / r, 1 - r * (1 - high)), min(high, r * low, 1 - (1 - low) / r)
    return max(high - least, most - low)


def test_parameters_are_disciplined_and_change() -> None:
    epsilon = cp.Parameter(nonneg=True, name="epsilon", value=1.0)
    delta = cp.Parameter(nonneg=True, name="delta", value=0.1)
    K = cp.Variable((4, 4), name="K", nonneg=True)
    for rows in (
        privacy_constraints(K, epsilon),
        privacy_constraints(K, epsilon, delta, "path"),
        privacy_constraints(K, 2 * epsilon, graph="cycle"),
    ):
        problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(distances(4), K))), [pmf_of(K), *rows])
        assert problem.is_dpp()
    assert len(rows) == 1
    for number in (0.5, 2.0):
        epsilon.value, delta.value = number, number / 10
        value, _ = least_loss(4, number, number / 10, "path")
        swept, _ = least_loss(4, epsilon, delta, "path")
        assert swept == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("name", ["epsilon", "delta", None])
def test_a_parameter_without_a_value_has_its_own_name(name: str | None) -> None:
    given: Any = cp.Parameter(nonneg=True) if name is None else cp.Parameter(nonneg=True, name=name)
    K: Any = cp.Variable((2, 2), name="K", nonneg=True)
    twice = cp.Parameter(nonneg=True, value=0.5) + 2 * given
    asked = [(1.0, given)] if name == "delta" else [(given,), (twice,)]
    for privacy in asked:
        rows = [pmf_of(K), *privacy_constraints(K, *privacy)]
        problem = cp.Problem(cp.Maximize(cp.trace(K)), rows)
        with pytest.raises(ParameterError, match=f"parameter '{given.name()}' has no value"):
            solve(problem)
        given.value = 0.25
        assert 1.0 < solve(problem).objective < 2.0
        given.value = None
