"""Two hundred private programs as a user would write them in cvxpy: solved, proved, judged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import dpopt
from tests.kernel.brute import complete, path, private, rows_of, sure

COUNT = 200


def exact_mean(loss: np.ndarray, prior: np.ndarray | None, rows: Any, total: int) -> Fraction:
    """The mean loss, or the largest one without a prior, in fractions."""
    losses = [
        sum((Fraction(c) * w for c, w in zip(line, row, strict=True)), Fraction(0)) / total
        for line, row in zip(loss.tolist(), rows, strict=True)
    ]
    if prior is None:
        return max(losses)
    return sum((Fraction(p) * v for p, v in zip(prior.tolist(), losses, strict=True)), Fraction(0))


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_program_of_a_user(seed: int) -> None:
    """Random loss, graph, delta, invariance and own rows, which a constant kernel keeps."""
    rng = np.random.default_rng([16, seed])
    n = int(rng.integers(2, 5))
    keeps = rng.random() < 0.3
    m = n if keeps else int(rng.integers(2, 5))
    epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0]))
    delta = float(rng.choice([0.0, 0.0, 0.01, 0.2]))
    graph: Any = rng.choice(["complete", "path", "edges"])
    edges = complete(n) if graph == "complete" else path(n)
    if graph == "edges":
        # A star: every input is a neighbour of input 0.
        graph = [(0, x) for x in range(1, n)]
        edges = [pair for x in range(1, n) for pair in ((0, x), (x, 0))]
    loss, q = rng.random((n, m)), rng.dirichlet(np.full(m, 2.0))
    kernel = cp.Variable((n, m), nonneg=True, name="K")
    own = []
    for number in range(int(rng.integers(0, 3))):
        signs = rng.normal(size=(n, m))
        # What the constant kernel 1 q^T gives, and some room.
        limit = float(np.sum(signs @ q)) + 0.05
        row: Any = cp.sum(cp.multiply(signs, kernel)) <= limit
        own.append(row.set_label(f"own {number}"))
    if keeps:
        own.append((q @ kernel == q).set_label("invariance"))
    prior = rng.dirichlet(np.ones(n)) if rng.random() < 0.5 else None
    losses = cp.sum(cp.multiply(loss, kernel), axis=1)
    objective = cp.max(losses) if prior is None else prior @ losses
    privacy = dpopt.privacy_constraints(kernel, epsilon, delta, graph=graph)
    rules = [cp.sum(kernel, axis=1) == 1, *own, *privacy]
    problem: Any = cp.Problem(cp.Minimize(objective), rules)

    accurate = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    optimum = float(problem.solve(solver=cp.HIGHS, **accurate))
    interior = float(problem.solve(solver=cp.CLARABEL))
    solution = dpopt.solve(problem)
    assert solution.objective == pytest.approx(interior, abs=1e-6)
    assert solution.objective == pytest.approx(optimum, abs=1e-8)
    assert sure(solution.bound) <= optimum + 1e-9
    assert 0 <= solution.objective - sure(solution.bound) + 1e-9 <= 1e-7
    assert np.array_equal(sure(kernel.value), solution["K"])

    design = dpopt.certify(kernel, epsilon, delta, graph=graph, constraints=own)
    assert private(design, edges)
    value = float(exact_mean(loss, prior, rows_of(design), design.table.total))
    # Equalities hold up to their residual, and what that saves is bounded by it.
    slack = 1e-9 + 10 * max(design.residuals.values(), default=0.0)
    assert optimum - slack <= value <= optimum + 1e-4
    for label, missed in design.residuals.items():
        assert label == "invariance" or missed == 0.0
    assert design.release(0) in range(m)
