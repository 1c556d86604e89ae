"""Constraint sets given by an oracle: a disc, seen only through its tangents."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dpopt import Problem, ProgressEvent, reporting, solve
from dpopt.lp import Progress, Separation, make_rows
from tests.lp.zoo import disc, disc_problem

EXACT = pytest.mark.parametrize("backend", ["highs", "cvxpy"])
COSTS = pytest.mark.parametrize("cost", [(3.0, 4.0), (1.0, 0.0), (-1.0, 0.3), (1e-3, -2e-3)])


@pytest.mark.slow_after(2)
@EXACT
@COSTS
def test_linear_function_over_a_disc(backend: str, cost: tuple[float, float]) -> None:
    problem = disc_problem(cost)
    solution, length = solve(problem, backend), np.hypot(*cost)
    assert solution.objective == pytest.approx(length, rel=1e-8)
    assert np.linalg.norm(solution.x) <= 1 + 1e-8
    assert solution.bound >= length * (1 - 1e-12)
    assert abs(solution.gap) <= 1e-8 * (1 + length)
    assert solution.residual <= 1e-9
    # Cuts are tangents, and their duals carry the optimum.
    cuts, duals = solution.cuts["disc"], solution.duals["disc"]
    assert cuts.count == duals.size == solution.rows_used
    np.testing.assert_allclose(np.linalg.norm(cuts.matrix.toarray(), axis=1), 1.0, rtol=1e-12)
    assert np.all(duals >= -1e-9)
    np.testing.assert_allclose(cuts.matrix.T @ duals, cost, atol=1e-7)
    assert duals.sum() == pytest.approx(length, abs=1e-6)
    assert solution.constraints_checked == 1
    # The problem is as it was.
    assert (problem.assemble().rows.count, list(problem.families)) == (0, ["disc"])
    again = solve(problem, backend)
    np.testing.assert_array_equal(again.x, solution.x)
    assert (again.objective, again.rounds) == (solution.objective, solution.rounds)
    problem.minimise(cost)
    least = solve(problem, backend)
    assert least.objective == pytest.approx(-length, rel=1e-8)
    assert least.bound <= -length * (1 - 1e-12)


def test_tolerance_is_the_violation_allowed() -> None:
    loose = solve(disc_problem((3.0, 4.0)), tolerance=1e-2)
    tight = solve(disc_problem((3.0, 4.0)), tolerance=1e-9)
    assert loose.rounds < tight.rounds
    assert 1.0 < np.linalg.norm(loose.x) <= 1 + 1e-2


@EXACT
def test_family_over_one_group_of_two(backend: str) -> None:
    seen = []

    def oracle(x: np.ndarray) -> Separation:
        seen.append(x.size)
        return disc(x)

    problem = Problem()
    problem.add_variables("other", 3, lower=0.0, upper=1.0)
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    problem.add_rows("link", {"other": [[1.0, 1.0, 1.0]], "x": [[-1.0, 0.0]]}, upper=0.5)
    problem.maximise({"other": 1.0, "x": [2.0, 4.0]})
    problem.add_family("disc", oracle, over="x")
    solution = solve(problem, backend)
    # sum(other) = 1/2 + x_0 at the optimum, so the objective is 1/2 + (3, 4) . x.
    assert solution.objective == pytest.approx(5.5, rel=1e-8)
    np.testing.assert_allclose(solution["x"], [0.6, 0.8], atol=1e-4)
    assert set(seen) == {2}
    assert solution.cuts["disc"].matrix.shape[1] == problem.size
    assert solution.cuts["disc"].matrix[:, :3].nnz == 0


def test_family_declared_before_later_variables_sees_the_earlier_ones() -> None:
    problem = disc_problem((1.0, 0.0))
    problem.add_variables("late", 1, lower=0.0, upper=1.0)
    problem.maximise({"x": [3.0, 4.0], "late": 1.0})
    assert solve(problem).objective == pytest.approx(6.0, rel=1e-8)


@EXACT
def test_two_families_and_a_block(backend: str) -> None:
    def shifted(x: np.ndarray) -> Separation:
        away = x - np.array([1.0, 0.0])
        length = float(np.linalg.norm(away))
        normal = away / max(length, 1e-12)
        rows = make_rows(normal[None, :], upper=1.0 + normal[0])
        empty = make_rows(np.zeros((0, 2)), upper=1.0)
        return Separation(rows if length > 1 else empty, max(0.0, length - 1.0), 5)

    problem = disc_problem((0.0, 1.0))
    problem.add_family("shifted", shifted)
    problem.add_rows("idle", [[1.0, 1.0]], upper=10.0)
    solution = solve(problem, backend)
    # The discs around (0, 0) and (1, 0) meet at (1/2, sqrt(3)/2).
    assert solution.objective == pytest.approx(np.sqrt(0.75), rel=1e-8)
    assert solution.x == pytest.approx([0.5, np.sqrt(0.75)], abs=1e-7)
    assert set(solution.cuts) == {"disc", "shifted"}
    assert set(solution.duals) == {"idle", "disc", "shifted"}
    assert solution.constraints_checked == 1 + 1 + 5
    for name, centre in (("disc", 0.0), ("shifted", 1.0)):
        cuts = solution.cuts[name]
        limit = 1.0 + centre * cuts.matrix[:, [0]].toarray().ravel()
        np.testing.assert_allclose(cuts.upper, limit, rtol=1e-12)
    assert sum(cuts.count for cuts in solution.cuts.values()) + 1 == solution.rows_used


def test_a_listener_hears_of_every_round() -> None:
    events: list[ProgressEvent] = []
    with reporting(events.append):
        solution = solve(disc_problem((3.0, 4.0)))
    told = [event for event in events if isinstance(event, Progress)]
    rounds = [progress.done for progress in told]
    assert rounds[0] == 1
    assert rounds == sorted(set(rounds))
    assert len(rounds) > 3
    assert solution.rounds >= rounds[-1]
    objectives = [progress.objective for progress in told]
    assert objectives[0] == pytest.approx(14.0, abs=1e-9)
    assert all(a >= b - 1e-8 for a, b in pairwise(objectives))
    assert told[0].worst == pytest.approx(np.sqrt(8.0) - 1.0, rel=1e-9)
    assert told[-1].worst <= 1e-9
    assert told[-1].message.startswith("disc: objective 5, worst violation ")
    assert (events[0].done, events[-1].done, events[-1].total) == (
        0,
        solution.rounds,
        solution.rounds,
    )
    rows = [progress.rows for progress in told]
    assert rows[0] == 0
    assert rows == sorted(rows)
    assert rows[-1] <= solution.rows_used


def test_family_that_is_never_violated_adds_nothing() -> None:
    problem = disc_problem((3.0, 4.0))
    problem.add_rows("inside", np.vstack([np.eye(2), -np.eye(2)]), upper=0.5)
    solution = solve(problem)
    assert solution.objective == pytest.approx(3.5, abs=1e-9)
    assert solution.rounds == 1
    assert solution.cuts["disc"].count == 0
    assert solution.duals["disc"].size == 0
