"""Objectives in order, against programs that are solved one after the other by scipy."""

from __future__ import annotations

import numpy as np
import pytest

from dpopt import Problem, Status, solve
from dpopt.lp import Model
from dpopt.lp.backends import RawSolution
from dpopt.lp.backends.highs import Highs
from tests.lp.zoo import Script, by_scipy, disc_problem

EVERY = pytest.mark.parametrize("backend", ["highs", "cvxpy", "cvxpy:CLARABEL"])


def shares() -> Problem:
    """Three shares of one or two wholes: of all in use, the least first and the most second."""
    problem = Problem("shares")
    problem.add_variables("x", 3, lower=0.0, upper=1.0)
    problem.add_rows("sum", [[1.0, 1.0, 1.0]], lower=1.0, upper=2.0)
    problem.maximise([1.0, 1.0, 1.0])
    problem.then_minimise([1.0, 0.0, 0.0])
    problem.then_maximise({"x": {1: 1.0}})
    return problem


@EVERY
def test_each_objective_chooses_among_the_optima_before(backend: str) -> None:
    problem = shares()
    solution = solve(problem, backend)
    np.testing.assert_allclose(solution["x"], [0.0, 1.0, 1.0], atol=1e-6)
    # Value, bound and prices are those of the first objective.
    assert solution.objective == pytest.approx(2.0, abs=1e-6)
    assert solution.bound == pytest.approx(2.0, abs=1e-6)
    assert solution.gap == solution.bound - solution.objective
    assert solution.duals["sum"] == pytest.approx([1.0], abs=1e-5)
    assert (solution.rounds, solution.note) == (3, "")
    assert list(problem.blocks) == ["sum"]
    problem.minimise([1.0, 1.0, 1.0])
    assert solve(problem, backend).objective == pytest.approx(1.0, abs=1e-6)


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_match_scipy(seed: int) -> None:
    """Small whole coefficients, so that optima are many."""
    rng = np.random.default_rng(seed)
    size, rows = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    matrix = rng.integers(-1, 3, (rows, size)).astype(float)
    upper = matrix.clip(min=0.0).sum(axis=1) - 0.5
    costs = rng.integers(-1, 2, (3, size)).astype(float)
    problem = Problem()
    problem.add_variables("x", size, lower=0.0, upper=1.0)
    problem.add_rows("rows", matrix, upper=upper)
    problem.minimise(costs[0])
    problem.then_minimise(costs[1])
    problem.then_maximise(costs[2])
    solution = solve(problem)
    for cost in (costs[0], costs[1], -costs[2]):
        best = by_scipy(cost, matrix, np.full(upper.size, -np.inf), upper, (0, 1))
        assert cost @ solution.x == pytest.approx(best, abs=1e-8)
        matrix, upper = np.vstack([matrix, cost]), np.append(upper, best + 1e-12)


@pytest.mark.slow
@EVERY
def test_a_family_holds_for_every_objective(backend: str) -> None:
    problem = disc_problem((0.0, 0.0))
    problem.add_variables("y", 1, lower=0.0, upper=1.0)
    problem.maximise({"y": 1.0})
    problem.then_maximise({"x": [3.0, 4.0]})
    solution = solve(problem, backend)
    np.testing.assert_allclose(solution["x"], [0.6, 0.8], atol=1e-3)
    assert solution["x"] @ [3.0, 4.0] == pytest.approx(5.0, abs=1e-6)
    assert solution.residual <= 1e-6
    assert solution["y"] == pytest.approx([1.0], abs=1e-6)


def test_a_block_may_be_called_as_the_rows_of_an_objective() -> None:
    problem = shares()
    problem.add_rows("objective", {"x": {1: 1.0}}, upper=0.5)
    np.testing.assert_allclose(solve(problem)["x"], [0.5, 0.5, 1.0], atol=1e-9)


@pytest.mark.parametrize("status", [Status.NUMERICAL, Status.TIME_LIMIT, Status.INFEASIBLE])
def test_a_later_objective_without_an_answer_is_said(status: Status) -> None:
    """Of the first program HiGHS knows the answer."""

    def answer(way: int, model: Model) -> RawSolution:
        if model.rows.count > 1:
            return RawSolution(status, None, None, 0, "ended")
        return Highs().load(model).run(None, way=way)

    solution = solve(shares(), Script(answer))
    assert solution.objective == pytest.approx(2.0, abs=1e-9)
    assert solution.gap <= 1e-9
    assert solution.note == "objective 2 was not reached."
