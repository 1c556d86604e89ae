"""Long paths: kernels whose entries fall by many powers of ten along the graph."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpopt import Kernel, solve
from dpopt.lp.solution import dual_bound
from tests.kernel import brute
from tests.kernel.brute import optimal, sure


def power(inputs: int, exponent: int) -> brute.Array:
    """The loss |x - y|^exponent; for 0 the loss 1 unless x = y."""
    x = np.arange(inputs, dtype=float)
    return np.abs(x[:, None] - x) ** exponent if exponent else 1.0 - np.eye(inputs)


def test_the_duals_are_those_of_the_rows_in_the_problem() -> None:
    """Their signs fit, their bound is the optimum, and slack rows have no price."""
    signs: dict[Any, float] = {"minimise": 1.0, "maximise": -1.0}
    for sense, sign in signs.items():
        setting = Kernel(sign * power(12, 1), 0.7, graph="path", sense=sense)
        problem = setting.problem()
        found = solve(problem)
        model = problem.assemble()
        y = sign * np.concatenate([found.duals[name] for name in model.blocks])
        assert np.all(y[model.blocks["privacy"]] <= 0)
        low = dual_bound(model, y)
        assert low == pytest.approx(sign * found.objective, abs=1e-8)
        assert low <= sign * found.objective
        slack = model.rows.upper - model.rows.matrix @ found.x
        assert np.abs(y * slack)[model.blocks["privacy"]].max() <= 1e-9


def test_the_prices_of_rows_are_changes_of_the_optimum() -> None:
    loss, cap, step = power(9, 1), np.zeros((1, 81)), 1e-4
    cap[0, 40] = 1.0

    def solved(limit: float) -> Any:
        rows = [("cap", cap, None, limit)]
        return optimal(loss, epsilon=1.0, graph="path", objective="worst-case", constraints=rows)

    found = solved(0.3)
    change = (solved(0.3 + step).value - solved(0.3 - step).value) / (2 * step)
    assert found.residuals["cap"] <= 1e-9
    assert change < -1e-3
    assert float(sure(found.solution).duals["cap"][0]) == pytest.approx(change, rel=1e-5)


def test_the_bound_is_below_the_exact_value_of_its_sum() -> None:
    """Weak duality's sum in fractions, for duals of no meaning."""
    setting = Kernel(power(5, 1), 1.0, graph="path")
    model = setting.problem().assemble()
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


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 30.0, 300.0])
def test_extreme_epsilons_on_a_path(epsilon: float) -> None:
    loss = power(15, 1)
    prior = np.full(15, 1 / 15)
    found = optimal(loss, epsilon=epsilon, graph="path")
    expected = brute.remapped(loss, epsilon, prior) if epsilon else loss.mean(axis=0).min()
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert sure(found.certificate).slack >= 0


@pytest.mark.slow
def test_entries_below_the_solvers_tolerance_are_raised_to_what_their_neighbours_ask() -> None:
    """On a cycle of 60, what is told far from the input is e^-30; repair costs next to nothing."""
    found = optimal("absolute", epsilon=1.0, graph="cycle", inputs=60)
    assert 0 <= sure(found.gap) <= 1e-8 * found.value
