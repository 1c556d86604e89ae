"""Claims of a solver without a point: confirmed by our own arithmetic, or not passed on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpopt import InfeasibleError, Problem, solve
from dpopt.lp.certificates import surely_infeasible, surely_unbounded
from tests.lp.zoo import ZOO, by_scipy, random_program


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", ZOO, ids=lambda case: case.name)
def test_programs_with_an_optimum_are_neither(case: object) -> None:
    model = case.build().assemble()  # type: ignore[attr-defined]
    assert not surely_infeasible(model)
    assert not surely_unbounded(model)


def shifted(seed: int, by: float) -> tuple[Problem, float]:
    """Return a random program with one row moved away, and its least worst violation."""
    program = random_program(seed)
    lower, upper = program.lower.copy(), program.upper.copy()
    row = seed % lower.size
    reach = np.abs(program.matrix[row]) @ np.abs(program.box).max(axis=1)
    lower[row] = upper[row] = reach + by
    # lower - violation <= matrix @ x <= upper + violation
    ones, none = np.ones((lower.size, 1)), np.full(lower.size, np.inf)
    least = by_scipy(
        np.append(np.zeros(program.cost.size), 1.0),
        np.block([[program.matrix, -ones], [program.matrix, ones]]),
        np.append(-none, lower),
        np.append(upper, none),
        [*program.box.tolist(), (0, None)],
    )
    return replace(program, lower=lower, upper=upper).problem(), least


@pytest.mark.slow
@pytest.mark.parametrize("by", [1e-6, 1e-3, 1.0])
def test_rows_beyond_the_reach_of_the_box(by: float) -> None:
    for seed in range(20):
        problem, least = shifted(seed, by)
        assert least > by / 100
        assert surely_infeasible(problem.assemble())
        with pytest.raises(InfeasibleError):
            solve(problem)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e6])
def test_a_conflict_is_told_from_a_tie_at_any_scale(scale: float) -> None:
    """x <= a and x >= a is feasible; with a gap of 1e-3 between them it is not."""
    for gap, right in ((0.0, False), (1e-3, True)):
        problem = Problem()
        problem.add_variables("x", 2, lower=0.0, upper=scale)
        problem.add_rows("below", [[1.0, 1.0]], upper=scale / 3)
        problem.add_rows("above", [[1.0, 1.0]], lower=scale / 3 * (1 + gap))
        assert surely_infeasible(problem.assemble()) == right


def test_the_ray_is_farkas_s_in_fractions() -> None:
    """Whenever a small program is called infeasible, exact elimination agrees."""
    rng = np.random.default_rng(3)
    verdicts = [0, 0]
    for _ in range(150):
        rows = rng.integers(-3, 4, (3, 2))
        right = rng.integers(-4, 5, 3)
        problem = Problem()
        problem.add_variables("x", 2, lower=-2.0, upper=2.0)
        problem.add_rows("rows", rows.astype(float), upper=right.astype(float))
        found = surely_infeasible(problem.assemble())
        assert found == (not feasible_in_fractions(rows, right))
        verdicts[found] += 1
    assert min(verdicts) > 20


def feasible_in_fractions(rows: np.ndarray, right: np.ndarray) -> bool:
    """Whether a vertex of the lines, box included, satisfies all: the box is compact."""
    lines = [(*map(int, row), int(b)) for row, b in zip(rows, right, strict=True)]
    lines += [(1, 0, 2), (-1, 0, 2), (0, 1, 2), (0, -1, 2)]
    for i, (a, b, c) in enumerate(lines):
        for d, e, f in lines[:i]:
            det = a * e - b * d
            if det == 0:
                continue
            x, y = Fraction(c * e - b * f, det), Fraction(a * f - c * d, det)
            if all(p * x + q * y <= r for p, q, r in lines):
                return True
    return False


def test_directions() -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=np.inf)
    problem.add_rows("slope", [[1.0, -1.0]], upper=1.0)
    problem.maximise([1.0, 0.0])
    assert surely_unbounded(problem.assemble())
    problem.minimise([1.0, 0.0])
    assert not surely_unbounded(problem.assemble())
    problem.maximise([1.0, -1.0])
    assert not surely_unbounded(problem.assemble())


def test_a_direction_counts_by_its_own_costs_and_rows() -> None:
    """A free variable beside one of large cost; and one that tiny entries hold."""
    for entry, right in ((0.0, True), (1e-8, False)):
        problem = Problem()
        problem.add_variables("x", 1, lower=-np.inf, upper=np.inf)
        problem.add_variables("y", 1, lower=0.0, upper=np.inf)
        # y >= entry |x|: at entry 1e-8 the cost of y outweighs that of x.
        problem.add_rows("cone", [[entry, 1.0], [-entry, 1.0]], lower=0.0)
        problem.minimise([0.5, 1e9])
        assert surely_unbounded(problem.assemble()) == right
