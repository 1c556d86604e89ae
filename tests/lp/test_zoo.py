"""Programs with known answers, through every backend, and random ones judged by scipy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Kernel, Problem, Solution, Status, solve
from dpopt.lp.solution import dual_bound
from tests.lp.zoo import ZOO, Case, random_program

EXACT = ("highs", "cvxpy")


def shortfall(problem: Problem, bound: float, optimum: float) -> float:
    """By how much the bound lies on the valid side of the optimum."""
    return bound - optimum if problem.maximising else optimum - bound


def sign_of_limits(problem: Problem, solution: Solution, block: str) -> None:
    """A dual of one sign belongs to one limit, and only to a limit that is active."""
    model, duals = problem.assemble(), solution.duals[block]
    place = model.blocks[block]
    lower, upper = model.rows.lower[place], model.rows.upper[place]
    values = (model.rows.matrix @ solution.x)[place]
    at_lower = duals < -1e-7 if problem.maximising else duals > 1e-7
    at_upper = duals > 1e-7 if problem.maximising else duals < -1e-7
    assert np.all(np.abs(values - lower)[at_lower] <= 1e-6 * (1 + np.abs(values[at_lower])))
    assert np.all(np.abs(values - upper)[at_upper] <= 1e-6 * (1 + np.abs(values[at_upper])))


@pytest.mark.parametrize("case", ZOO, ids=lambda case: case.name)
@pytest.mark.parametrize("backend", [*EXACT, "cvxpy:CLARABEL"])
def test_known_answer_bound_and_duals(case: Case, backend: str) -> None:
    problem, size, exact = case.build(), 1 + abs(case.objective), backend in EXACT
    solution, close = solve(problem, backend), 1e-8 if exact else 1e-5
    assert solution.status is Status.OPTIMAL
    assert abs(solution.objective - case.objective) <= (1e-8 if exact else 1e-6) * size
    assert shortfall(problem, solution.bound, case.objective) >= -1e-9 * size
    assert abs(solution.gap) <= close * size
    if case.x is not None:
        np.testing.assert_allclose(solution.x, case.x, rtol=close, atol=close)
    for block, duals in case.duals.items():
        rtol = close if exact else 1e-4
        np.testing.assert_allclose(solution.duals[block], duals, rtol=rtol, atol=close)
    if exact:
        difference = solution.bound - solution.objective
        assert solution.gap == (difference if problem.maximising else -difference)
        assert solution.residual <= 1e-9 * size
        assert set(solution.duals) == set(problem.blocks)
        for block in problem.blocks:
            sign_of_limits(problem, solution, block)


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("backend", EXACT)
def test_random_programs_match_scipy(seed: int, backend: str) -> None:
    program = random_program(seed)
    optimum, problem = program.optimum(), program.problem()
    solution = solve(problem, backend)
    assert solution.objective == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    assert solution.objective == pytest.approx(program.cost @ solution.x, rel=1e-12, abs=1e-12)
    assert shortfall(problem, solution.bound, optimum) >= -1e-9 * (1 + abs(optimum))
    assert abs(solution.gap) <= 1e-8 * (1 + abs(optimum))
    sign_of_limits(problem, solution, "rows")
    sign = -1.0 if program.maximising else 1.0
    model = problem.assemble()
    bound = sign * dual_bound(model, sign * solution.duals["rows"])
    assert bound == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    inside = solve(problem, "cvxpy:CLARABEL")
    assert inside.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_any_dual_vector_gives_a_valid_bound(seed: int, data: st.DataObject) -> None:
    program = random_program(seed, integral=True)
    model = program.problem().assemble()
    count = program.lower.size
    multiplier = st.floats(-100, 100, allow_subnormal=False)
    y = np.array(data.draw(st.lists(multiplier, min_size=count, max_size=count)))
    sign = -1.0 if program.maximising else 1.0
    optimum = sign * program.optimum()
    assert dual_bound(model, y) <= optimum + 1e-9 * (1 + abs(optimum))


def test_the_bound_is_below_the_exact_value_of_its_sum() -> None:
    """Weak duality's sum in fractions, for duals of no meaning."""
    model = Kernel("absolute", 1.0, inputs=5, graph="path").problem().assemble()
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = np.where(model.rows.lower == 1.0, 1.0, -1.0) * rng.random(model.rows.count)
        dense = model.rows.matrix.toarray()
        exact = sum((Fraction(v) for v, r in zip(y, model.rows.lower, strict=True) if r == 1.0))
        for j, cost in enumerate(model.cost):
            inner = sum(Fraction(a) * Fraction(v) for a, v in zip(dense[:, j], y, strict=True))
            exact += min(Fraction(cost) - inner, Fraction(0))
        found = dual_bound(model, y)
        assert found <= exact
        assert found >= float(exact) - 1e-13


def test_bound_by_hand() -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=[0.0, -1.0], upper=[1.0, 2.0])
    problem.add_rows("rows", [[1.0, 1.0], [1.0, -1.0]], lower=[1.0, -np.inf], upper=[np.inf, 3.0])
    problem.minimise([1.0, 2.0])
    model = problem.assemble()
    # 2 * 1 - 1 * 3, then costs (1, 2) - (2, 2) + (1, -1) = (0, -1) over the box.
    assert dual_bound(model, np.array([2.0, -1.0])) == pytest.approx(-3.0, abs=1e-13)
    # Both multipliers point at infinite limits: only the box counts.
    assert dual_bound(model, np.array([-5.0, 7.0])) == pytest.approx(-2.0, abs=1e-13)


def test_bound_is_infinite_where_a_free_variable_keeps_a_reduced_cost() -> None:
    problem = Problem()
    problem.add_variables("x", 1, lower=-np.inf, upper=0.0)
    problem.add_rows("floor", [[1.0]], lower=-1.0)
    problem.minimise([1.0])
    model = problem.assemble()
    assert dual_bound(model, np.array([0.5])) == -np.inf
    assert dual_bound(model, np.array([1.0])) == pytest.approx(-1.0, abs=1e-13)
