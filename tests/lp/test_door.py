"""cvxpy problems through dpopt.solve: cvxpy's own answers, names, bounds and sweeps."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from dpopt import InfeasibleError, Problem, SolverError, privacy_constraints, solve
from dpopt.lp import make_rows
from dpopt.lp.solution import implied_bound, implied_box
from tests.lp.zoo import by_scipy

CLOSE = 2e-6


# Attributes of a matrix of variables, and an entry that it may have throughout.
KINDS: tuple[tuple[dict[str, Any], float], ...] = (
    ({"nonneg": True}, 0.1),
    ({"bounds": [-1.0, 2.0]}, 0.1),
    ({"symmetric": True}, 0.1),
    ({}, 0.1),
    ({"nonpos": True}, -0.1),
)


def random_problem(seed: int) -> Any:
    """A feasible, bounded linear program in matrices, scalars, transposes and offsets."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 6, size=2)
    attributes, entry = KINDS[seed % len(KINDS)]
    shape = (n, n) if "symmetric" in attributes else (n, m)
    matrix: Any = cp.Variable(shape, name="matrix", **attributes)
    vector: Any = cp.Variable(m, name="vector")
    scalar: Any = cp.Variable(name="scalar", nonneg=True)
    left, inside = rng.normal(size=(3, n)), rng.normal(size=(3, shape[1]))
    constraints = [
        (left @ matrix <= inside + 3.0).set_label("left"),
        (-2.0 - rng.random((shape[1], n)) <= matrix.T).set_label("turned"),
        (cp.sum(matrix) + scalar + 0.5 == 1.5 + entry * n * shape[1]).set_label("total"),
        cp.norm(vector, 1) <= 2.0 + scalar,
        cp.abs(vector - 0.25) <= 1.5,
        (scalar <= 4.0).set_label("cap"),
        cp.max(matrix) <= 3.0,
    ]
    cost = rng.normal(size=shape)
    value = cp.sum(cp.multiply(cost, matrix)) + rng.normal(size=m) @ vector + 1.75
    value = value + float(rng.normal()) * scalar
    if seed % 2:
        return cp.Problem(cp.Maximize(value - cp.norm(vector, "inf")), constraints)
    return cp.Problem(cp.Minimize(value + cp.sum_largest(vector, 1)), constraints)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("seed", range(70))
def test_random_programs_agree_with_cvxpy(seed: int) -> None:
    problem = random_problem(seed)
    solver = (cp.HIGHS, cp.CLARABEL)[seed % 3 == 0]
    expected: Any = random_problem(seed)
    expected.solve(solver=solver)
    solution = solve(problem)
    assert solution.objective == pytest.approx(expected.value, abs=CLOSE)
    assert problem.value == solution.objective
    assert problem.status == cp.OPTIMAL
    sign = 1 if seed % 2 == 0 else -1
    assert sign * solution.bound <= sign * expected.value + CLOSE
    assert abs(solution.gap) < 1e-6
    assert solution.residual < 1e-8
    by_name = {variable.name(): variable for variable in problem.variables()}
    for name in ("matrix", "vector", "scalar"):
        assert solution[name].shape == by_name[name].shape
        np.testing.assert_array_equal(solution[name], by_name[name].value)
    assert max(float(np.max(c.violation())) for c in problem.constraints) < 1e-7
    # Complementarity of the labelled inequalities, from the constraints themselves.
    for constraint in problem.constraints:
        if constraint.label and type(constraint).__name__ == "Inequality":
            slack = np.asarray(constraint.args[1].value - constraint.args[0].value)
            dual = np.asarray(solution.duals[constraint.label])
            assert dual.shape == constraint.shape
            assert np.min(dual) >= -1e-9
            assert np.max(np.abs(dual * slack)) < 1e-6


def test_bounds_from_rows_make_the_bound_hold_for_any_dual() -> None:
    x: Any = cp.Variable(3, name="x")
    pmf = [x >= 0, cp.sum(x) == 1]
    boxed = solve(cp.Problem(cp.Minimize(x @ np.array([3.0, 1.0, 2.0]) - 5), pmf))
    assert boxed.objective == pytest.approx(-4.0)
    assert boxed.bound <= boxed.objective + 1e-12
    # What costs no more than the point found is between limits too.
    costly = solve(cp.Problem(cp.Minimize(cp.norm1(x - 1)), [x <= 0.5]))
    assert costly.bound == pytest.approx(1.5)
    y: Any = cp.Variable(3, name="y")
    free = solve(cp.Problem(cp.Minimize(cp.norm1(x - y)), [x <= y - 0.5]))
    assert free.objective == pytest.approx(1.5)
    assert free.bound == pytest.approx(1.5)


def on_a_grid(side: int, backend: str) -> Any:
    """Solve for the least largest mean distance of a kernel on a grid, by a free variable."""
    places = np.array(list(np.ndindex(side, side)))
    distances = np.abs(places[:, None] - places).sum(axis=2)
    kernel: Any = cp.Variable(distances.shape, nonneg=True)
    rows: list[Any] = [cp.sum(kernel, axis=1) == 1]
    rows += [kernel[x] <= math.e * kernel[z] for x, z in np.argwhere(distances == 1)]
    largest = cp.max(cp.sum(cp.multiply(distances, kernel), axis=1))
    return solve(cp.Problem(cp.Minimize(largest), rows), backend)


def test_a_free_variable_of_an_interior_point_has_a_bound() -> None:
    """Its reduced cost is not 0; of the optimum, rows and objective limit it."""
    found, exact = on_a_grid(3, "cvxpy:CLARABEL"), on_a_grid(3, "highs")
    assert exact.bound - 1e-7 <= found.bound <= exact.objective + 1e-12
    assert 0 <= found.gap <= 1e-7


@pytest.mark.parametrize("seed", range(6))
def test_an_implied_bound_is_below_the_optimum(seed: int) -> None:
    """For any multipliers, and any cost that points are cut off above."""
    rng = np.random.default_rng(seed)
    matrix, limits = rng.normal(size=(12, 3)), rng.normal(size=12)
    problem = Problem("height of a maximum")
    problem.add_variables("x", 3, lower=-np.inf, upper=np.inf)
    problem.add_variables("height", 1, lower=-np.inf, upper=np.inf)
    problem.add_rows("maximum", {"x": matrix, "height": -np.ones((12, 1))}, upper=limits)
    problem.add_rows("sizes", {"x": np.vstack([np.eye(3), -np.eye(3)])}, upper=1.0)
    problem.minimise({"height": 1.0})
    best, model = solve(problem), problem.assemble()
    y = np.concatenate(list(best.duals.values()))
    assert implied_bound(model, y, best.objective) == pytest.approx(best.objective, abs=1e-9)
    for value in best.objective + np.array([-1.0, 0.0, 0.5, 3.0]):
        for size in (1e-9, 1e-3, 1.0):
            other = y + size * rng.normal(size=y.size)
            assert -np.inf < implied_bound(model, other, value) <= best.objective + 1e-12


def test_names() -> None:
    first: Any = cp.Variable(2, name="x", nonneg=True)
    second: Any = cp.Variable(name="x", nonneg=True)
    unnamed = cp.Variable(3, nonneg=True)
    rows: list[Any] = [cp.sum(first) >= 1, second >= 2, cp.sum(unnamed) >= second]
    rows[0].set_label("row")
    rows[1].set_label("row")
    problem = cp.Problem(cp.Minimize(cp.sum(first) + second + 2 * cp.sum(unnamed)), rows)
    solution = solve(problem)
    assert set(solution.values) == {"x", "x (2)", unnamed.name()}
    assert solution["x"].shape == (2,)
    assert solution["x (2)"].shape == ()
    assert set(solution.duals) == {"row", "row (2)", "constraint 2"}
    assert float(solution.duals["row (2)"]) == pytest.approx(3.0)
    assert solution.objective == pytest.approx(7.0)
    assert sum(len(column) for column in solution.columns().values()) == 4 * (6 + 3)


def test_a_conflict_has_the_labels_of_the_user() -> None:
    x: Any = cp.Variable(3, name="x", nonneg=True)
    rows: list[Any] = [cp.sum(x) <= 1, cp.norm(x, "inf") <= 5, cp.abs(x[0] - 4) <= 1]
    for row, label in zip(rows, ("budget", "idle", "near 4"), strict=True):
        row.set_label(label)
    problem = cp.Problem(cp.Minimize(x[2]), rows)
    with pytest.raises(InfeasibleError, match="budget, near 4, bounds of x") as caught:
        solve(problem)
    assert caught.value.blocks == ("budget", "near 4", "bounds of x")
    assert problem.status == cp.INFEASIBLE
    assert x.value is None


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("capped", [True, False])
@pytest.mark.parametrize(
    ("large", "small"), [(1e9, 0.5), (1.0, 1e-10), (1e3, 1e-7), (1e6, 5e-4), (1.0, 1e-17)]
)
def test_a_small_cost_of_a_free_variable_is_no_noise(
    large: float, small: float, capped: bool
) -> None:
    x: Any = cp.Variable(name="x")
    y: Any = cp.Variable(name="y")
    above = [y <= 1] if capped else []
    for objective in (cp.Minimize(large * y + small * x), cp.Maximize(small * x - large * y)):
        problem = cp.Problem(objective, [y >= 0, *above])
        with pytest.raises(SolverError) as caught:
            solve(problem)
        assert caught.value.status == "unbounded"
    # The same costs where there is an optimum.
    bounded = solve(cp.Problem(cp.Minimize(large * y + small * x), [y >= 0, *above, x >= y - 1]))
    assert bounded.objective == pytest.approx(-small, rel=1e-6)
    assert bounded.bound == pytest.approx(-small, rel=1e-6, abs=1e-12 * large)


def test_parameters_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from cvxpy.reductions.dcp2cone import cone_matrix_stuffing

    def fail(*_: object) -> None:
        raise AssertionError("compiled again")

    epsilon, answers = cp.Parameter(nonneg=True, name="epsilon", value=1.0), []
    problem = path_problem(epsilon)
    solve(problem)
    with monkeypatch.context() as patch:
        patch.setattr(cone_matrix_stuffing.ConeMatrixStuffing, "apply", fail)
        for epsilon.value in (0.5, 2.0, 3.0):
            answers.append(solve(problem).objective)
    fresh = [solve(path_problem(value)).objective for value in (0.5, 2.0, 3.0)]
    assert answers == pytest.approx(fresh, abs=1e-10)


def path_problem(epsilon: float | cp.Parameter) -> cp.Problem:
    kernel: Any = cp.Variable((6, 6), name="K", nonneg=True)
    loss = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    rows = [cp.sum(kernel, axis=1) == 1, *privacy_constraints(kernel, epsilon, graph="path")]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss, kernel)) / 6), rows)


def test_a_program_whose_parameters_are_not_disciplined_is_solved_without_a_warning() -> None:
    a, b = cp.Parameter(value=2.0, nonneg=True), cp.Parameter(value=3.0, nonneg=True)
    x: Any = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x), [x >= a * b])
    assert solve(problem).objective == pytest.approx(6.0)
    a.value = 4.0
    assert solve(problem).objective == pytest.approx(12.0)


@pytest.mark.filterwarnings("ignore::cvxpy.utilities.warn.CvxpyDeprecationWarning")
def test_constraints_of_every_class() -> None:
    x: Any = cp.Variable((2, 2), name="x", bounds=[-4, 4])
    rows = [
        cp.NonPos(x[0] - np.array([1.0, 2.0])).set_label("turned over"),
        cp.NonNeg(x[1] + 3).set_label("not"),
        cp.Zero(x[0, 0] - x[1, 1]).set_label("equal"),
    ]
    answers = []
    for ours in (True, False):
        problem: Any = cp.Problem(cp.Maximize(cp.sum(x[0]) - cp.sum(3 * x[1])), rows)
        solve(problem) if ours else problem.solve(solver=cp.HIGHS)
        answers.append([problem.value, *(row.dual_value for row in rows)])
    for mine, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)
    tight = cp.Problem(cp.Minimize(0), [*rows, x[0, 1] >= 3])
    with pytest.raises(InfeasibleError) as caught:
        solve(tight)
    assert caught.value.blocks == ("turned over", "constraint 3")


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(12))
def test_an_implied_box_holds_every_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 5
    matrix = rng.integers(-2, 3, size=(6, size)).astype(float)
    upper = matrix @ rng.uniform(-1, 1, size=size) + rng.random(6)
    lower = np.where(rng.random(6) < 0.5, upper - 3.0, -np.inf)
    own_lower = np.where(rng.random(size) < 0.6, -1.5, -np.inf)
    own_upper = np.where(rng.random(size) < 0.6, 1.5, np.inf)
    box = implied_box(make_rows(matrix, lower, upper), own_lower, own_upper)
    assert np.all(box[0] >= own_lower)
    assert np.all(box[1] <= own_upper)
    own = [*zip(own_lower, own_upper, strict=True)]
    for cost, bound in zip([*np.eye(size), *-np.eye(size)], [*box[0], *-box[1]], strict=True):
        if np.isfinite(bound):
            assert by_scipy(cost, matrix, lower, upper, own) >= bound - 1e-7


def test_attributes() -> None:
    spread = cp.Variable((3, 3), name="spread", diag=True)
    held = cp.Variable((2, 2), name="held", bounds=[np.zeros((2, 2)), np.arange(4).reshape(2, 2)])
    thin = cp.Variable((3, 3), name="thin", sparsity=[(0, 1), (2, 0)])
    objective = cp.Maximize(cp.trace(spread) + cp.sum(held) + cp.sum(thin))
    solution = solve(cp.Problem(objective, [spread <= np.eye(3), thin <= 2]))
    np.testing.assert_allclose(solution["spread"], np.eye(3))
    np.testing.assert_allclose(solution["held"], [[0, 1], [2, 3]])
    np.testing.assert_allclose(solution["thin"], [[0, 0, 2], [2, 0, 0], [0, 0, 0]])
    assert solution.objective == pytest.approx(3 + 6 + 4)


def test_small_ones() -> None:
    x: Any = cp.Variable(name="x", bounds=[1, 2])
    assert solve(cp.Problem(cp.Minimize(x))).objective == 1.0
    assert solve(cp.Problem(cp.Minimize(0), [x >= 1.5])).objective == 0.0
    empty = cp.Variable((0, 2), name="empty")
    assert solve(cp.Problem(cp.Minimize(x), [empty >= 1])).objective == 1.0
