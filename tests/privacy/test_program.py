"""Privacy as rows over any variable: against linprog, written pair by pair, and formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpopt import ParameterError, Problem, solve
from tests.kernel.brute import Edges, complete, distances, grid, least_loss, path

INPUTS, OUTPUTS = 4, 3


def by_linprog(loss: np.ndarray, pairs: Edges, epsilon: float, delta: float = 0.0) -> float:
    """min <loss, K> over kernels, with a row for every pair and every set of outputs."""
    return least_loss(loss, pairs, epsilon, delta, prior=np.ones(len(loss)))


def program(loss: np.ndarray, before: int = 0, after: int = 0) -> Problem:
    """A kernel called "K" somewhere among other variables, which want to be 1."""
    problem = Problem()
    if before:
        problem.add_variables("before", (before, 2), lower=0.0, upper=1.0)
    problem.add_variables("K", loss.shape, lower=0.0, upper=1.0)
    if after:
        problem.add_variables("after", after, lower=0.0, upper=1.0)
    problem.add_pmf("sums", "K")
    others = {name: -1.0 for name in ("before", "after") if name in problem.variables}
    problem.minimise({"K": loss, **others})
    return problem


@pytest.mark.parametrize("delta", [0.0, 0.07])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 0), (2, 5)])
def test_random_graphs_and_a_grid_against_linprog(delta: float, before: int, after: int) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, before])
        loss, epsilon = rng.normal(size=(INPUTS, OUTPUTS)), 2 * rng.random()
        edges = [pair for pair in itertools.combinations(range(INPUTS), 2) if rng.random() < 0.5]
        edges = edges or [(0, 1)]
        both = edges + [(z, x) for x, z in edges]
        for graph, shape, pairs in ((edges, None, both), ("grid", (2, 2), grid((2, 2)))):
            problem = program(loss, before, after)
            problem.add_private(
                *("private", "K"), epsilon=epsilon, delta=delta, graph=graph, shape=shape
            )
            solution = solve(problem)
            value = by_linprog(loss, pairs, epsilon, delta) - 2 * before - after
            assert solution.objective == pytest.approx(value, abs=1e-8)
            assert ("private:delta" in problem.blocks) == (delta > 0)


@pytest.mark.parametrize("inputs", [2, 3, 5])
def test_the_complete_graph(inputs: int) -> None:
    rng = np.random.default_rng(inputs)
    loss = rng.normal(size=(inputs, OUTPUTS))
    problem = program(loss, before=2)
    problem.add_private("private", "K", epsilon=0.8)
    value = by_linprog(loss, complete(inputs), 0.8)
    assert solve(problem).objective == pytest.approx(value - 4.0, abs=1e-8)
    assert ("private:ceiling" in problem.variables) == (inputs > 3)
    if inputs > 3:
        assert problem.blocks["private"].count == 2 * inputs * OUTPUTS


def test_two_kernels_one_after_the_other_need_a_graph_each() -> None:
    problem = Problem()
    for name, graph in (("A", "path"), ("B", "complete")):
        problem.add_variables(name, (4, 4), lower=0.0, upper=1.0)
        problem.add_pmf(f"distribution of {name}", name)
        problem.add_private(f"private {name}", name, epsilon=1.0, graph=graph)
    problem.minimise({"A": distances(4), "B": 1 - np.eye(4)})
    expected = by_linprog(distances(4), path(4), 1.0) + 12 / (math.e + 3)
    assert solve(problem).objective == pytest.approx(expected, abs=1e-8)


def test_ceilings_follow_the_bounds() -> None:
    problem = Problem()
    problem.add_variables("K", (4, 2), lower=0.0, upper=1.0)
    problem.add_private("private", "K", epsilon=math.log(2))
    problem.set_bounds("K", upper=[[8.0, 8.0], [8.0, 8.0], [8.0, 8.0], [3.0, 8.0]])
    problem.maximise({"K": 1.0})
    # The entry of at most 3 holds the others of its column below 6.
    np.testing.assert_allclose(solve(problem)["K"][:, 0], [6.0, 6.0, 6.0, 3.0], atol=1e-8)


def test_more_rows_than_are_taken() -> None:
    problem = Problem()
    problem.add_variables("K", (300, 40), lower=0.0, upper=1.0)
    with pytest.raises(ParameterError, match="at least 3,588,000 privacy rows; at most 2,000,000"):
        problem.add_private("private", "K", epsilon=1.0, delta=0.1)
    assert list(problem.variables) == ["K"]
