"""The programs against the closed forms, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpopt
from dpopt import Problem, PublicPrior, design, solve
from dpopt._types import Vector
from dpopt.public_prior import minimax_utility
from dpopt.table import Graph, probabilities_of
from tests.public_prior.closed_forms import algorithm_one, leximin_diagonal, priors

REFERENCE = np.array([0.05, 0.1, 0.15, 0.2, 0.5])
EPSILONS = [0.1, 0.7, 1.0, 4.0, 8.0, 16.0]


def program(q: Vector, epsilon: float) -> Problem:
    return PublicPrior(q, epsilon).problem()


def leximin_values(q: Vector, epsilon: float) -> Vector:
    setting = PublicPrior(q, epsilon, objective="leximin")
    return design(setting, backend="highs").diagonal


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_optimum_is_that_of_algorithm_one(epsilon: float) -> None:
    for q in [*priors(3, 8, 12), np.ones(1)]:
        solution = solve(program(q, epsilon))
        algorithm = 1 - float(np.diag(algorithm_one(q, epsilon)).min())
        assert solution.objective == pytest.approx(algorithm, abs=1e-9)
        assert solution.objective == pytest.approx(minimax_utility(q, epsilon), abs=1e-9)
        # The dual bound proves that no kernel does better, whatever the solver's point.
        assert solution.bound == pytest.approx(algorithm, abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_kernel_read_back_is_private_and_keeps_the_prior(epsilon: float) -> None:
    for q in [*priors(4, 4, 8), REFERENCE]:
        setting = PublicPrior(q, epsilon)
        solution = solve(setting.problem())
        read = probabilities_of(Graph(q.size, q.size), setting.guarantee, solution)
        assert setting.point(solution) == pytest.approx(read)
        kernel = read.reshape(q.size, q.size)
        assert kernel.sum(axis=1) == pytest.approx(np.ones(q.size), abs=1e-9)
        assert q @ kernel == pytest.approx(q, abs=1e-8)
        assert np.all(kernel.max(axis=0) * math.exp(-epsilon) <= kernel.min(axis=0) + 1e-9)
        assert 1 - np.diag(kernel).min() == pytest.approx(solution.objective, abs=1e-8)


def test_rows_of_the_program() -> None:
    problem = program(np.full(7, 1 / 7), 2.0)
    assert problem.blocks["privacy"].count == 7 * 7
    assert set(problem.blocks) == {"sums", "privacy", "invariance", "losses"}


def test_the_program_holds_the_kernel_of_algorithm_1() -> None:
    """It is feasible, and that of a larger epsilon is not."""
    epsilon = 1.0

    def violation(made_for: float) -> float:
        kernel = algorithm_one(REFERENCE, made_for)
        cap = kernel.max(axis=0)
        problem = program(REFERENCE, epsilon)
        worst = 1 - np.diag(kernel).min()
        parts = {
            "ceiling": cap,
            "excess": (kernel - math.exp(-epsilon) * cap).ravel(),
            "worst": np.array([worst]),
        }
        x = np.concatenate([parts[name] for name in problem.variables])
        model = problem.assemble()
        outside = np.maximum(model.lower - x, x - model.upper)
        return float(max(model.rows.violation(x).max(), outside.max()))

    assert violation(1.0) < 1e-12
    assert violation(1.2) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_objectives_in_order_give_the_leximin_diagonal(epsilon: float) -> None:
    for q in priors(6, 8, 9):
        values = leximin_values(q, epsilon)
        assert values == pytest.approx(leximin_diagonal(q, epsilon), abs=1e-7)
        assert values == pytest.approx(
            np.diag(dpopt.design(dpopt.PublicPrior(q, epsilon, objective="leximin")).kernel),
            abs=1e-7,
        )
        minimax = np.sort(np.diag(algorithm_one(q, epsilon)))
        first = np.flatnonzero(np.abs(np.sort(values) - minimax) > 1e-7)
        assert first.size == 0 or np.sort(values)[first[0]] > minimax[first[0]]


def test_labels_keep_the_callers_order() -> None:
    order = np.array([3, 0, 4, 1, 2])
    shuffled: Vector = leximin_values(REFERENCE[order], 1.0)
    assert shuffled == pytest.approx(leximin_values(REFERENCE, 1.0)[order], abs=1e-8)
    assert not shuffled.flags.writeable
