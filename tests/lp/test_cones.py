"""Bounds from dual vectors of cone programs: never above the optimum, and at it for good ones."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from dpopt import InfeasibleError, ParameterError, SolverError, solve
from dpopt.lp import make_rows
from dpopt.lp.cones import Cone, ConeProgram, cone_bound, implied_box

CONES = [
    Cone("zero", slice(0, 1)),
    Cone("nonnegative", slice(1, 3)),
    Cone("second-order", slice(3, 6)),
    Cone("semidefinite", slice(6, 12), size=3, upper=True, off_diagonal=math.sqrt(2.0)),
    Cone("semidefinite", slice(12, 15), size=2, upper=False, off_diagonal=1.0),
    Cone("exponential", slice(15, 18), order=(2, 0, 1)),
    Cone("power", slice(18, 21), powers=(0.3, 0.7)),
    Cone("power", slice(21, 25), powers=(0.2, 0.3, 0.5)),
]
ROWS = 25


def triangle(matrix: np.ndarray, cone: Cone) -> np.ndarray:
    """The triangle column by column, written out."""
    side, entries = cone.size, []
    for column in range(side):
        rows = range(column + 1) if cone.upper else range(column, side)
        entries += [matrix[r, column] * (1 if r == column else cone.off_diagonal) for r in rows]
    return np.array(entries)


def inside(cone: Cone, rng: np.random.Generator) -> np.ndarray:
    """A point of a cone."""
    size = cone.rows.stop - cone.rows.start
    if cone.kind == "zero":
        return np.zeros(size)
    if cone.kind == "nonnegative":
        return rng.random(size)
    if cone.kind == "second-order":
        u = rng.normal(size=size - 1)
        return np.append(np.linalg.norm(u) + rng.random(), u)
    if cone.kind == "semidefinite":
        factor = rng.normal(size=(cone.size, cone.size))
        return triangle(factor @ factor.T, cone)
    if cone.kind == "exponential":
        x, y = rng.normal(), rng.random() + 0.1
        point = np.empty(3)
        point[list(cone.order)] = x, y, y * math.exp(x / y) + rng.random()
        return point
    u = rng.random(size - 1)
    return np.append(u, rng.uniform(-1, 1) * np.prod(u ** np.array(cone.powers)))


@pytest.mark.parametrize("cone", CONES, ids=lambda cone: f"{cone.kind} {cone.rows.start}")
def test_what_is_moved_into_a_dual_cone_is_there(cone: Cone) -> None:
    rng = np.random.default_rng(cone.rows.start)
    points = [inside(cone, rng) for _ in range(40)]
    for scale in (1e-6, 1.0, 30.0):
        for _ in range(40):
            z = scale * rng.normal(size=cone.rows.stop - cone.rows.start)
            moved = cone.into_dual(z)
            for s in points:
                size = float(np.linalg.norm(moved) * np.linalg.norm(s))
                assert float(moved @ s) >= -1e-12 * size
            again = cone.into_dual(moved)
            np.testing.assert_allclose(again, moved, rtol=1e-9, atol=1e-12 * scale)
    assert all(cone.violation(s) < 1e-9 for s in points)


@pytest.mark.parametrize("cone", CONES[2:], ids=lambda cone: f"{cone.kind} {cone.rows.start}")
def test_what_is_outside_is_seen(cone: Cone) -> None:
    rng = np.random.default_rng(1)
    outside = [-inside(cone, rng) - 0.1 * np.ones(cone.rows.stop - cone.rows.start)]
    assert all(cone.violation(s) > 1e-3 for s in outside)


def random_program(seed: int) -> ConeProgram:
    """A program over every cone, with a point in all of them and a box around it."""
    rng = np.random.default_rng(seed)
    variables = 6
    matrix = rng.normal(size=(ROWS, variables))
    point = rng.uniform(-1, 1, size=variables)
    limits = matrix @ point + np.concatenate([inside(cone, rng) for cone in CONES])
    quadratic = None
    if seed % 2:
        half = rng.normal(size=(2, variables))
        quadratic = sp.csr_array(half.T @ half)
    box = np.full(variables, 2.0)
    cost = rng.normal(size=variables)
    return ConeProgram(cost, quadratic, sp.csr_array(matrix), limits, tuple(CONES), -box, box)


def modelled(program: ConeProgram) -> tuple[float, np.ndarray]:
    """Optimum and point from cvxpy, the cones written in its own words."""
    x = cp.Variable(program.cost.size)
    slack = program.limits - program.matrix @ x
    constraints: list[Any] = [x >= program.lower, x <= program.upper]
    for cone in program.cones:
        s = slack[cone.rows]
        if cone.kind == "zero":
            constraints.append(s == 0)
        elif cone.kind == "nonnegative":
            constraints.append(s >= 0)
        elif cone.kind == "second-order":
            constraints.append(cp.norm(s[1:]) <= s[0])
        elif cone.kind == "semidefinite":
            matrix = cp.Variable((cone.size, cone.size), symmetric=True)
            entries, place = [], 0
            for column in range(cone.size):
                rows = range(column + 1) if cone.upper else range(column, cone.size)
                for row in rows:
                    scale = 1.0 if row == column else cone.off_diagonal
                    entries.append(scale * matrix[row, column] == s[place])
                    place += 1
            constraints += [matrix >> 0, *entries]
        elif cone.kind == "exponential":
            first, second, last = (s[i] for i in cone.order)
            constraints.append(cp.ExpCone(first, second, last))
        else:
            # cvxpy does not take cones of several sizes in one problem.
            if len(cone.powers) == 2:
                constraints.append(cp.PowCone3D(s[0], s[1], s[2], cone.powers[0]))
            else:
                constraints.append(cp.PowConeND(s[:-1], s[-1], np.array(cone.powers)))
    value = program.cost @ x
    if program.quadratic is not None:
        value = value + 0.5 * cp.quad_form(x, cp.psd_wrap(program.quadratic.toarray()))
    problem: Any = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value), np.asarray(x.value)


@pytest.mark.parametrize("seed", range(8))
def test_a_bound_is_never_above_the_optimum(seed: int) -> None:
    program = random_program(seed)
    optimum, point = modelled(program)
    assert program.violation(point) < 1e-6
    rng = np.random.default_rng(seed)
    best = -math.inf
    for scale in (0.0, 1e-6, 1e-2, 0.3, 3.0):
        for _ in range(30):
            z = scale * rng.normal(size=ROWS)
            near = point + scale * rng.normal(size=point.size)
            bound = cone_bound(program, z, near)
            assert math.isfinite(bound)
            assert bound <= optimum + 1e-6
            best = max(best, bound)
    assert best > -math.inf


def posed(objective: Any, *constraints: Any) -> Any:
    """A problem; cvxpy's types take a comparison for a bool."""
    return cp.Problem(objective, list(constraints))


# A dozen programs with an optimum that a formula gives.

X: Any = cp.Variable(3, name="x")
V = np.array([1.0, 2.0, -2.0])
MATRIX = np.array([[2.0, -1.0, 0.5], [-1.0, 1.0, 0.0], [0.5, 0.0, -3.0]])
PSD: Any = cp.Variable((3, 3), PSD=True, name="X")
SIX = math.log(6.0)


def zoo() -> dict[str, tuple[Any, float]]:
    ball: Any = cp.norm(X) <= 2
    return {
        "ball": (cp.Problem(cp.Minimize(V @ X + 4), [ball]), 4 - 6.0),
        "ball from above": (cp.Problem(cp.Maximize(V @ X - 1), [ball]), 6.0 - 1),
        "distance": (posed(cp.Minimize(cp.norm(X - V)), cp.sum(X) <= -2), 3 / 3**0.5),
        "projection": (
            posed(cp.Minimize(cp.sum_squares(X - V)), cp.sum(X) <= -2),
            9 / 3,
        ),
        "projection in a box": (
            cp.Problem(cp.Minimize(cp.sum_squares(X - V) + 1), [X >= 0, X <= 1]),
            0 + 1 + 4 + 1,
        ),
        "eigenvalue": (
            posed(cp.Minimize(cp.trace(MATRIX @ PSD)), cp.trace(PSD) == 1),
            float(np.linalg.eigvalsh(MATRIX)[0]),
        ),
        "largest eigenvalue": (
            posed(cp.Minimize(cp.lambda_max(MATRIX + cp.diag(X))), cp.sum(X) == 0, X == 0),
            float(np.linalg.eigvalsh(MATRIX)[-1]),
        ),
        "entropy": (
            posed(cp.Maximize(cp.sum(cp.entr(X))), cp.sum(X) == 1),
            math.log(3),
        ),
        "exponentials": (
            posed(cp.Minimize(cp.sum(cp.exp(X))), cp.sum(X) == 3 * SIX),
            18.0,
        ),
        "logarithms": (
            posed(cp.Maximize(cp.sum(cp.log(X))), cp.sum(X) <= 6),
            3 * math.log(2),
        ),
        "geometric mean": (posed(cp.Maximize(cp.geo_mean(X)), cp.sum(X) <= 6), 2.0),
        "power": (
            posed(cp.Minimize(cp.sum(cp.power(X, 3))), X >= 0, cp.sum(X) == 6),
            24.0,
        ),
    }


@pytest.mark.parametrize("backend", ["highs", "cvxpy:SCS"])
@pytest.mark.parametrize("name", list(zoo()))
def test_known_optima(name: str, backend: str) -> None:
    problem, optimum = zoo()[name]
    solution = solve(problem, backend)
    sign = -1 if isinstance(problem.objective, cp.Maximize) else 1
    assert solution.objective == pytest.approx(optimum, abs=2e-5)
    assert sign * solution.bound <= sign * optimum + 1e-7
    if backend == "highs":
        assert solution.backend == "cvxpy:CLARABEL"
        assert abs(solution.gap) < 1e-6
        assert solution.bound == pytest.approx(optimum, abs=1e-6)
        assert problem.value == solution.objective
    assert math.isfinite(solution.bound) or solution.note.startswith("no dual bound")


def test_duals_and_values_are_those_of_cvxpy() -> None:
    x: Any = cp.Variable((2, 2), name="x")
    ball: Any = cp.SOC(2.0 + 0.1 * x[0, 0], cp.vec(x, order="F")).set_label("ball")
    total: Any = cp.sum(x) >= 1
    total.set_label("total")
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(np.array([[1, 2], [3, 4]]), x))), [ball, total]
    )
    solution = solve(problem)
    mine = [np.array(solution.duals[name]) for name in ("total", "ball", "ball:1")]
    values = solution["x"]
    assert np.linalg.norm(values) <= 2.0 + 0.1 * values[0, 0] + 1e-8
    problem.solve(solver=cp.CLARABEL)
    theirs = [total.dual_value, *ball.dual_value]
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(np.ravel(one), np.ravel(np.asarray(other)), atol=2e-4)
    np.testing.assert_allclose(solution["x"], x.value, atol=2e-4)


def test_a_quadratic_solver_has_a_bound_too() -> None:
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X - V)), [X >= 0, X <= 1])
    solution = solve(problem, "cvxpy:OSQP")
    assert solution.objective == pytest.approx(5.0, abs=1e-5)
    assert solution.bound <= 5.0 + 1e-9
    assert solution.bound == pytest.approx(5.0, abs=1e-3)
    assert solution.note == ""


def label(constraint: Any, name: str) -> Any:
    return constraint.set_label(name)


@pytest.mark.parametrize(
    ("constraints", "names"),
    [
        ([label(cp.norm(X) <= 1, "ball"), label(cp.sum(X) >= 3, "far")], "ball, far"),
        ([label(cp.exp(X[0]) <= 1, "low"), label(X[0] >= 1, "high")], "low, high"),
        (
            [label(PSD >> np.eye(3), "wide"), label(cp.trace(PSD) <= 1, "small")],
            "wide, small",
        ),
    ],
)
def test_a_conflict_is_proved_and_named(constraints: list[Any], names: str) -> None:
    problem = cp.Problem(cp.Minimize(cp.norm(X)), constraints)
    with pytest.raises(InfeasibleError, match=f"combines: {names}\\.") as caught:
        solve(problem)
    assert ", ".join(caught.value.blocks) == names
    assert problem.status == cp.INFEASIBLE


def test_what_cvxpy_approximates_has_no_bound() -> None:
    rough = cp.Maximize(cp.sum(cp.power(X, math.pi / 10, max_denom=8)))
    solution = solve(posed(rough, cp.sum(X) <= 6))
    assert solution.note.startswith("no dual bound: cvxpy approximates")
    assert solution.bound == math.inf
    exact = cp.Maximize(cp.sum(cp.power(X, 0.25)))
    solution = solve(posed(exact, cp.sum(X) <= 6))
    assert solution.objective == pytest.approx(3 * 2**0.25, abs=1e-7)
    assert solution.bound == pytest.approx(3 * 2**0.25, abs=1e-6)


def test_a_point_far_away_is_no_optimum() -> None:
    with pytest.raises(SolverError, match="may be unbounded") as caught:
        solve(cp.Problem(cp.Maximize(cp.log_det(PSD))))
    assert caught.value.status == "numerical"
    # HiGHS, which this backend stands for, has no such cones.
    assert str(caught.value).endswith("or try backend='cvxpy:SCS'.")


@pytest.mark.parametrize("backend", ["highs", "cvxpy:SCS"])
@pytest.mark.parametrize("how", [{}, {"relative_gap": 1e-9}])
def test_a_point_far_from_its_bound_is_no_optimum(backend: str, how: dict[str, Any]) -> None:
    """The optimum is -100, at x[0] = -1e12; solvers stay at 0."""
    x: Any = cp.Variable(2)
    y: Any = cp.Variable()
    inside = [y >= 0, y <= 1, cp.norm(x) <= 1e12]
    for objective in (cp.Minimize(y + 1e-10 * x[0]), cp.Maximize(-y - 1e-10 * x[0])):
        problem = cp.Problem(objective, inside)
        with pytest.raises(SolverError, match=r"fails its dual bound by 1\.0e\+02") as caught:
            solve(problem, backend, **how)
        assert caught.value.status == "numerical"
        assert problem.value is None


def test_the_gap_of_a_cone_program_is_the_users_to_choose() -> None:
    ball = posed(cp.Minimize(V @ X), cp.norm(X) <= 2)
    assert abs(solve(ball, relative_gap=1e-9).gap) < 1e-6 * 6
    with pytest.raises(ParameterError, match="relative_gap is 0"):
        solve(ball, relative_gap=0.0)


def test_our_options_stay_ours() -> None:
    problem = posed(cp.Minimize(V @ X), cp.norm(X) <= 2)
    fresh = posed(cp.Minimize(V @ X), cp.norm(X) <= 2)
    solve(problem)
    problem.solve(solver=cp.CLARABEL)
    fresh.solve(solver=cp.CLARABEL)
    assert problem.value == fresh.value


def test_other_ends() -> None:
    with pytest.raises(ParameterError, match="NaN"):
        solve(posed(cp.Minimize(V @ X), cp.norm(X - np.nan) <= 2))
    free = cp.Problem(cp.Minimize(cp.exp(X[0]) - X[1]))
    with pytest.raises(SolverError, match="unbounded") as caught:
        solve(free)
    assert caught.value.status == "unbounded"
    ball = posed(cp.Minimize(V @ X), cp.norm(X) <= 2)
    with pytest.raises(SolverError, match="time_limit"):
        solve(ball, time_limit=0.0)
    with pytest.raises(ParameterError, match="time_limit is -1"):
        solve(ball, time_limit=-1)
    with pytest.raises(ParameterError, match="cannot take this problem"):
        solve(ball, "cvxpy:OSQP")
    with pytest.raises(ParameterError, match="installed in cvxpy"):
        solve(ball, "cvxpy:NONE")


def test_parameters_of_a_cone_program() -> None:
    radius = cp.Parameter(nonneg=True, value=2.0)
    problem = posed(cp.Minimize(V @ X), cp.norm(X) <= radius)
    for value in (2.0, 1.0, 0.5):
        radius.value = value
        assert solve(problem).objective == pytest.approx(-3.0 * value, abs=1e-6)


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
    x = cp.Variable(size)
    finite = np.isfinite(lower)
    constraints = [matrix @ x <= upper, matrix[finite] @ x >= lower[finite]]
    constraints += [x[j] >= own_lower[j] for j in range(size) if np.isfinite(own_lower[j])]
    constraints += [x[j] <= own_upper[j] for j in range(size) if np.isfinite(own_upper[j])]
    for j in range(size):
        for side, bound in ((-1.0, box[0][j]), (1.0, box[1][j])):
            if np.isfinite(bound):
                problem: Any = cp.Problem(cp.Maximize(side * x[j]), constraints)
                problem.solve(solver=cp.HIGHS)
                assert problem.value <= side * bound + 1e-7


def test_a_law_is_within_one() -> None:
    rows = make_rows(np.vstack([np.ones((1, 4)), np.eye(4)]), [1, 0, 0, 0, 0], [1, *[np.inf] * 4])
    lower, upper = implied_box(rows, np.full(4, -np.inf), np.full(4, np.inf))
    np.testing.assert_allclose(lower, 0.0, atol=1e-14)
    np.testing.assert_allclose(upper, 1.0, atol=1e-14)
