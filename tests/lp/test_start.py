"""Starting from another solution: the same answer as from nothing, with less work."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpopt import InfeasibleError, Problem, Solution, solve
from dpopt.lp import Separation, make_rows
from dpopt.lp.solution import vertex
from tests.lp.zoo import by_scipy, disc, disc_problem

Change = Callable[[Problem, np.random.Generator], None]


def random_program(rng: np.random.Generator) -> Problem:
    """A box, rows through a point inside, and an equality: always feasible and bounded."""
    problem = Problem("random")
    problem.add_variables("x", (3, 4), lower=0.0, upper=1.0)
    problem.add_variables("y", 5, lower=-1.0, upper=rng.random(5))
    matrix = rng.normal(size=(8, 17)) * (rng.random((8, 17)) < 0.6)
    problem.add_rows("first", matrix, upper=matrix @ np.full(17, 0.1) + rng.random(8))
    problem.add_rows("even", {"x": np.ones((3, 4)), "y": np.ones(5)}, lower=1.0, upper=1.0)
    problem.minimise({"x": rng.normal(size=(3, 4)), "y": rng.normal(size=5)})
    return problem


def optimum(problem: Problem) -> float:
    """The value by scipy's linprog, from the assembled arrays."""
    model = problem.assemble()
    rows, box = model.rows, np.stack([model.lower, model.upper], axis=1)
    least = by_scipy(model.cost, rows.matrix.toarray(), rows.lower, rows.upper, box)
    return -least if problem.maximising else least


def other_costs(problem: Problem, rng: np.random.Generator) -> None:
    problem.maximise({"x": rng.normal(size=(3, 4)), "y": rng.normal(size=5)})


def other_limits(problem: Problem, rng: np.random.Generator) -> None:
    matrix = problem.blocks["first"].matrix
    problem.replace_rows("first", matrix, upper=matrix @ np.full(17, 0.1) + rng.random(8))


def other_entries(problem: Problem, rng: np.random.Generator) -> None:
    matrix = problem.blocks["first"].matrix + 0.1 * rng.normal(size=(8, 17))
    problem.replace_rows("first", matrix, upper=matrix @ np.full(17, 0.1) + rng.random(8))


def fewer_rows(problem: Problem, rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(3, 17))
    problem.replace_rows("first", matrix, upper=matrix @ np.full(17, 0.1) + rng.random(3))


def other_bounds(problem: Problem, rng: np.random.Generator) -> None:
    problem.set_bounds("y", lower=-np.inf, upper=rng.random(5))
    problem.set_bounds("x", upper=1 + rng.random((3, 4)))
    problem.add_rows("kept finite", {"y": np.eye(5)}, lower=-3.0)


def more_of_all(problem: Problem, rng: np.random.Generator) -> None:
    problem.add_variables("z", (2, 2), lower=-1.0, upper=1.0)
    problem.add_rows("late", {"z": rng.normal(size=(4, 2, 2)), "y": np.ones((4, 5))}, upper=2.0)
    problem.minimise({"x": rng.normal(size=(3, 4)), "z": rng.normal(size=(2, 2)), "y": 0.3})


def rows_and_slacks(problem: Problem, rng: np.random.Generator) -> None:
    problem.add_variables("slack", 6, lower=0.0, upper=1.0)
    rows = {"x": rng.normal(size=(6, 3, 4)), "y": rng.normal(size=(6, 5)), "slack": -np.eye(6)}
    problem.add_rows("late", rows, upper=0.5)


CHANGES = (
    *(other_costs, other_entries, fewer_rows, other_bounds),
    *(more_of_all, rows_and_slacks, other_limits),
)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_warm_as_cold_as_linprog(change: Change) -> None:
    for seed in range(12):
        rng = np.random.default_rng([seed, CHANGES.index(change)])
        problem = random_program(rng)
        start = solve(problem)
        assert start.objective == pytest.approx(optimum(problem), abs=1e-8)
        change(problem, rng)
        warm, cold = solve(problem, start=start), solve(problem)
        assert warm.objective == pytest.approx(optimum(problem), abs=1e-8)
        assert warm.objective == pytest.approx(cold.objective, abs=1e-9)
        assert warm.bound == pytest.approx(cold.bound, abs=1e-9)
        assert warm.residual <= 1e-9


def test_a_start_that_became_infeasible_is_said_to_be() -> None:
    problem = random_program(np.random.default_rng(3))
    start = solve(problem)
    problem.replace_rows("even", {"x": np.ones((3, 4))}, lower=13.0)
    with pytest.raises(InfeasibleError) as caught:
        solve(problem, start=start)
    assert set(caught.value.blocks) == {"even", "bounds of x"}


def test_cuts_of_the_same_oracle_are_not_looked_for_again() -> None:
    asked: list[np.ndarray] = []

    def separate(x: np.ndarray) -> Separation:
        asked.append(x)
        return disc(x)

    start = solve(disc_problem((3.0, 4.0), separate))
    assert start.rounds > 3
    for before in (0, 3):
        asked.clear()
        again = solve(disc_problem((3.0, 4.0), separate, before), start=start)
        assert (again.rounds, len(asked)) == (1, 1)
        assert again.objective == pytest.approx(5.0, rel=1e-8)
        assert again.cuts["disc"].count == start.cuts["disc"].count


def test_cuts_of_another_oracle_are_forgotten() -> None:
    def twice(x: np.ndarray) -> Separation:
        answer = disc(x / 2)
        rows = make_rows(answer.rows.matrix, upper=2 * answer.rows.upper)
        return Separation(rows, 2 * answer.worst, answer.checked)

    start = solve(disc_problem((3.0, 4.0)))
    # The old tangents would cut off all but half of it.
    again = solve(disc_problem((3.0, 4.0), twice), start=start)
    assert again.objective == pytest.approx(10.0, rel=1e-8)


def test_new_cuts_on_top_of_old_ones() -> None:
    problem = disc_problem((3.0, 4.0))
    start = solve(problem)
    problem.maximise({"x": (-1.0, 0.5)})
    turned = solve(problem, start=start)
    assert turned.objective == pytest.approx(np.hypot(1.0, 0.5), rel=1e-8)
    assert turned.cuts["disc"].count > start.cuts["disc"].count
    assert turned.duals["disc"].size == turned.cuts["disc"].count


def test_a_pickled_start_keeps_its_basis_and_loses_its_cuts() -> None:
    problem = disc_problem((3.0, 4.0))
    start = solve(problem)
    copied: Solution = pickle.loads(pickle.dumps(start))
    np.testing.assert_array_equal(copied.x, start.x)
    again = solve(problem, start=copied)
    assert again.rounds > 1
    assert again.objective == pytest.approx(5.0, rel=1e-8)
    plain = random_program(np.random.default_rng(5))
    assert solve(plain, start=pickle.loads(pickle.dumps(solve(plain)))).iterations == 0


def test_vertex_of_a_long_chain_against_fractions() -> None:
    # x_0 = 1 and x_i = r x_(i-1): the basis holds powers of r, its inverse too.
    size, ratio = 30, 1.75
    problem = Problem("chain")
    problem.add_variables("x", size, lower=0.0, upper=1e9)
    chain = np.eye(size) - ratio * np.eye(size, k=-1)
    problem.add_rows("chain", chain, lower=np.eye(size)[0], upper=np.eye(size)[0])
    problem.minimise(np.ones(size))
    model = problem.assemble()
    true = [Fraction(ratio) ** place for place in range(size)]
    # Multipliers: y_i - r y_(i+1) = 1, from the end.
    prices = [Fraction(1)]
    for _ in range(size - 1):
        prices.append(1 + Fraction(ratio) * prices[-1])
    rng = np.random.default_rng(8)
    x = np.array([float(value) for value in true]) * (1 + 1e-6 * rng.normal(size=size))
    y = np.array([float(price) for price in prices[::-1]]) * (1 + 1e-6 * rng.normal(size=size))
    statuses = np.ones(size, dtype=np.int8), np.zeros(size, dtype=np.int8)
    refined = vertex(model, *statuses, x, y)
    assert refined is not None
    np.testing.assert_allclose(refined[0], [float(value) for value in true], rtol=1e-13)
    np.testing.assert_allclose(refined[1], [float(price) for price in prices[::-1]], rtol=1e-13)


def test_a_basis_that_determines_nothing() -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("twice", [[1.0, 1.0], [1.0, 1.0]], upper=1.0)
    model = problem.assemble()
    both, upper = np.ones(2, dtype=np.int8), np.full(2, 2, dtype=np.int8)
    assert vertex(model, both, upper, np.zeros(2), np.zeros(2)) is None
    # Not square; and a row at a limit that it does not have.
    assert vertex(model, both, both, np.zeros(2), np.zeros(2)) is None
    assert vertex(model, both, np.zeros(2, dtype=np.int8), np.zeros(2), np.zeros(2)) is None
