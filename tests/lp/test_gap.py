"""Rounds with a strictly feasible point against the program written out, solved by scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dpopt
from dpopt import Problem, ProgressEvent, majority, reporting, solve
from dpopt.lp import Progress, Separation, make_rows
from experiments.majority import baselines
from tests.lp.zoo import by_scipy, disc


def listed(matrix: np.ndarray, most: int) -> Callable[[np.ndarray], Separation]:
    """Separate from matrix @ x <= 1, by the most violated rows, a few at a time."""

    def separate(x: np.ndarray) -> Separation:
        over = matrix @ x - 1.0
        worst = np.argsort(-over)[:most]
        rows = make_rows(matrix[worst[over[worst] > 0.0]], upper=1.0)
        return Separation(rows, max(0.0, float(over.max())), over.size)

    return separate


def packing(seed: int, size: int = 12, rows: int = 300) -> tuple[Problem, float]:
    """Return a program with a family and a written row, and its optimum by scipy."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0.3, 1.0, (rows, size))
    cost = rng.uniform(0.1, 1.0, size)
    lower = rng.uniform(-0.2, 0.0, size)
    problem = Problem("packing")
    problem.add_variables("x", size, lower=lower, upper=1.0)
    problem.add_rows("budget", np.ones((1, size)), lower=-3.0, upper=0.4 * size)
    problem.add_family("listed", listed(matrix, 5), over="x")
    problem.maximise({"x": cost})
    problem.set_inside({"x": 0.0}, slack=1.0)
    least, most = np.append(np.full(rows, -np.inf), -3.0), np.append(np.ones(rows), 0.4 * size)
    every = np.vstack([matrix, np.ones(size)])
    return problem, -by_scipy(-cost, every, least, most, [(low, 1.0) for low in lower])


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", range(8))
def test_value_is_that_of_all_rows(seed: int) -> None:
    problem, best = packing(seed)
    solution = solve(problem)
    assert solution.objective == pytest.approx(best, rel=1e-9)
    assert solution.bound >= best - 1e-9
    assert solution.residual <= 1e-9
    assert solution.gap <= 1e-9 * max(1.0, best)
    assert solution.duals["listed"].size == solution.cuts["listed"].count
    again = solve(problem, start=solution)
    assert again.objective == pytest.approx(best, rel=1e-9)
    assert again.rounds < solution.rounds
    # A wrong claim of room is not believed.
    problem.set_inside({"x": 0.0}, slack=50.0)
    solution = solve(problem)
    assert solution.objective == pytest.approx(best, rel=1e-8)
    assert solution.residual <= 1e-9


def test_every_round_has_a_gap_that_holds() -> None:
    problem, best = packing(3)
    events: list[ProgressEvent] = []
    with reporting(events.append):
        solve(problem)
    told = [event for event in events if isinstance(event, Progress)]
    assert len(told) > 5
    for progress in told:
        assert progress.bound >= best - 1e-9
        assert progress.bound - progress.gap <= best + 1e-9
    gaps = [progress.gap for progress in told]
    assert gaps == sorted(gaps, reverse=True)
    assert 0.0 < gaps[0] < np.inf


@pytest.mark.parametrize("seed", range(3))
def test_stopping_at_a_gap(seed: int) -> None:
    problem, best = packing(seed)
    solution, full = solve(problem, stop_at_gap=0.05), solve(problem)
    unit = max(1.0, float(np.abs(solution["x"]).sum()))
    assert best - 0.05 * unit <= solution.objective <= best + 1e-9
    assert best - 1e-9 <= solution.bound
    assert solution.residual <= 1e-9
    # In so small a program the last of the rounds may be the first that is near enough.
    assert solution.rounds <= full.rounds


@pytest.mark.slow
def test_rows_to_begin_with_are_of_the_reduced_set() -> None:
    """Each is a row that every private noise function keeps, such as subsampling's."""
    setting = dpopt.Majority(301, 0.1, 20)
    rows = majority.CornerOracle(setting).spread()
    private = np.asarray(baselines.subsampling(301, 20))[151:]
    assert rows.count > 50
    assert np.max(rows.matrix @ private - rows.upper) <= 1e-9
    # With them or without, the optimum is the same.
    problem = majority.gamma_problem(setting, majority.surrogate_weights(301).values)
    bare = Problem("without")
    bare.add_variables("gamma", 151, lower=0.0, upper=1.0)
    bare.maximise({"gamma": majority.surrogate_weights(301).values})
    bare.add_family("corners", majority.CornerOracle(setting), over="gamma")
    assert solve(problem).objective == pytest.approx(solve(bare).objective, abs=1e-9)


@pytest.mark.parametrize("later", ["bounds", "rows"])
def test_a_strictly_feasible_point_that_later_limits_exclude_is_not_used(later: str) -> None:
    """On the disc with x_0 >= 0.9 the best of 4 x_1 - x_0 is at (0.9, 0.43589)."""
    problem, events = Problem("cap"), list[ProgressEvent]()
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    problem.add_family("disc", disc)
    problem.maximise([-1.0, 4.0])
    problem.set_inside({"x": 0.0}, slack=1.0)
    if later == "bounds":
        problem.set_bounds("x", lower=[0.9, -2.0])
    else:
        problem.add_rows("late", np.eye(2), lower=[0.9, -2.0])
    with reporting(events.append):
        solution = solve(problem, stop_at_gap=0.9)
    best = 4 * np.sqrt(0.19) - 0.9
    assert solution.x[0] >= 0.9 - 1e-9
    assert solution.objective <= best + 1e-8
    for progress in [event for event in events if isinstance(event, Progress)]:
        assert progress.bound - progress.gap <= best + 1e-8


def test_only_what_ends_early_says_so() -> None:
    """Without a strictly feasible point a solve goes on to the optimum, with no gap until then."""
    problem, events = Problem("disc"), list[ProgressEvent]()
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    problem.maximise([3.0, 4.0])
    problem.set_inside({"x": 0.0}, slack=1.0)
    at_once = solve(problem, stop_at_gap=0.9)
    assert at_once.status == dpopt.Status.OPTIMAL
    assert at_once.basis is not None
    assert at_once.basis.variables
    problem = Problem("disc")
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    problem.maximise([3.0, 4.0])
    problem.add_family("disc", disc)
    with reporting(events.append):
        assert solve(problem, stop_at_gap=0.9).status == dpopt.Status.OPTIMAL
    gaps = [event.gap for event in events if isinstance(event, Progress)]
    assert gaps[:-1] == [np.inf] * (len(gaps) - 1)
    assert gaps[-1] == pytest.approx(0.0, abs=1e-7)
    problem.set_inside({"x": [0.3, 0.0]}, slack=0.7)
    for share in (0.9, 1e-3):
        early = solve(problem, stop_at_gap=share)
        assert early.status == dpopt.Status.GAP
        assert 1e-7 < early.gap <= share * 5.0
        assert np.linalg.norm(early.x) <= 1.0


def test_a_wrong_claim_of_room_ends_nothing_early() -> None:
    problem, best = packing(2)
    problem.set_inside({"x": 0.0}, slack=50.0)
    solution = solve(problem, stop_at_gap=0.5)
    assert solution.residual <= 1e-9
    assert solution.objective <= best + 1e-9
