"""Backends, the user's own rows, and the prices of privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import InfeasibleError, Kernel, solve
from dpopt.kernel import directed_pairs
from dpopt.lp import make_rows
from dpopt.lp.backends import get_backend
from tests.kernel import brute
from tests.kernel.brute import optimal, sure


def some_loss(inputs: int, outputs: int, seed: int = 0) -> brute.Array:
    return np.random.default_rng(seed).normal(size=(inputs, outputs))


@pytest.mark.parametrize("backend", ["cvxpy", "cvxpy:CLARABEL"])
def test_cvxpy_agrees(backend: str) -> None:
    loss, q = some_loss(4, 4), (0.1, 0.2, 0.3, 0.4)
    cases: list[dict[str, Any]] = [
        {"objective": "worst-case", "invariant": q},
        {"delta": 0.05, "graph": "path"},
        {"sense": "maximise"},
    ]
    for options in cases:
        ours = optimal(loss, epsilon=1.0, **options)
        theirs = optimal(loss, epsilon=1.0, backend=backend, **options)
        assert theirs.value == pytest.approx(ours.value, abs=1e-7)
        assert sure(theirs.solution).backend.startswith("cvxpy")


def test_residuals_are_what_the_certified_kernel_misses() -> None:
    """A row that forbids what privacy asks for: no table keeps it with room."""
    forbid = np.zeros((1, 4))
    forbid[0, 1] = 1.0
    found = optimal(
        1 - np.eye(2), epsilon=40.0, constraints=[("forbid", forbid, 0.0, 0.0)], graph="path"
    )
    assert found.residuals["forbid"] == found.kernel[0, 1]
    assert found.residuals["forbid"] <= 1e-9
    fixed = np.array([0.6, 0.4, 0.4, 0.6])
    rows: Any = [("fixed", np.eye(4), fixed, fixed)]
    found = optimal(1 - np.eye(2), epsilon=1.0, constraints=rows)
    missed = np.abs(found.kernel.ravel() - fixed).max()
    assert found.residuals["fixed"] == pytest.approx(missed, abs=1e-15)
    assert missed <= 1e-12


def test_infeasible_rows_are_named() -> None:
    rows: Any = [
        ("certain", np.eye(4)[[0]], [0.9], None),
        ("never", np.eye(4)[[2]], None, [0.1]),
        ("idle", np.eye(4)[[1]], None, [1.0]),
    ]
    table = [[0.6, 0.4], [0.4, 0.6]]
    for conflicting in (
        lambda: optimal(1 - np.eye(2), epsilon=1.0, constraints=rows),
        lambda: dpopt.certify(table, 1.0, constraints=rows, tolerance=1.0),
    ):
        with pytest.raises(InfeasibleError, match="certain") as caught:
            conflicting()
        assert {"certain", "never", "privacy"} <= {*caught.value.blocks}
        assert "idle" not in caught.value.blocks
    rare: Any = [("rare", np.eye(4)[1::2], None, 0.1)]
    with pytest.raises(InfeasibleError, match="invariance"):
        optimal(np.eye(2), epsilon=1.0, invariant=[0.5, 0.5], constraints=rare)


def test_duals_of_delta_are_its_price() -> None:
    loss, step = some_loss(4, 3, 5), 1e-5
    found = optimal(loss, epsilon=1.0, delta=0.05, graph="path")
    more, less = (
        optimal(loss, epsilon=1.0, delta=0.05 + change, graph="path").value
        for change in (step, -step)
    )
    prices = sure(found.solution).duals["delta"]
    price = float(prices.sum())
    assert prices.shape == (6,)
    assert price < -1e-3
    assert price == pytest.approx((more - less) / (2 * step), rel=1e-4)


def test_losses_of_every_scale() -> None:
    loss = some_loss(4, 4)
    for objective in ("mean", "worst-case"):
        unit = optimal(loss, epsilon=1.0, objective=objective).value
        for scale in (1e-9, 1e9, 1e90):
            found = optimal(scale * loss, epsilon=1.0, objective=objective)
            assert found.value == pytest.approx(scale * unit, rel=1e-8)
            assert abs(sure(found.gap)) <= 1e-8 * scale
    assert optimal(np.zeros((3, 2)), epsilon=1.0, objective="worst-case").value == 0.0


def ring(inputs: int) -> brute.Edges:
    return [(i, j) for i, j in brute.complete(inputs) if (i - j) % inputs in (1, inputs - 1)]


def test_graphs_are_what_they_say() -> None:
    """None stands for all pairs, where these are those of the graph."""
    cases: list[tuple[Any, Any, brute.Edges]] = [
        *(("path", (n,), brute.path(n)) for n in (3, 6)),
        *(("cycle", (n,), ring(n)) for n in (4, 6)),
        *(("grid", shape, brute.grid(shape)) for shape in ((2, 3), (4,), (3, 1, 2))),
        *(("hamming", shape, brute.hamming(shape)) for shape in ((2, 2, 2), (3, 2), (2, 1, 4))),
        ([(2, 0), (0, 2), (1, 2)], (4,), [(0, 2), (1, 2), (2, 0), (2, 1)]),
    ]
    for graph, shape, edges in cases:
        words = {"shape": shape} if graph in ("grid", "hamming") else {}
        pairs = sure(directed_pairs(graph, math.prod(shape), **words))
        assert [tuple(pair) for pair in pairs.tolist()] == sorted(edges), graph
    for graph, n in (("path", 2), ("cycle", 3), ("complete", 5)):
        assert directed_pairs(graph, n) is None
    assert directed_pairs("hamming", 5, [5]) is None


def test_inputs_without_neighbours_are_not_protected() -> None:
    found = optimal(1 - np.eye(3), epsilon=0.0, graph=[(0, 1)])
    assert found.value == pytest.approx(1 / 3, abs=1e-12)
    assert found.kernel[2, 2] == pytest.approx(1.0)
    assert "along 2 directed edges of 3 inputs" in sure(found.certificate).claim


GRID = {"graph": "grid", "shape": (6, 6)}
PATH = {"graph": "path", "inputs": 50, "objective": "worst-case"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "asked"),
    [(1.0, {**GRID, "objective": "worst-case"}), (1.0, GRID), (0.4, PATH), (1.0, PATH)],
)
def test_grids_and_long_paths_are_solved_by_interior_points(epsilon: float, asked: Any) -> None:
    """Of all but one the closed form, for grids symbol by symbol, is another solver.

    The simplex method takes 1,450 iterations, and 2,300; on a path it stalls on its ties.
    """
    setting = Kernel("absolute", epsilon, **asked)
    problem = setting.problem()
    found = solve(problem)
    assert found.iterations < 300
    assert 0 <= found.gap <= 1e-9
    if asked in (GRID, PATH):
        assert found.objective == pytest.approx(dpopt.design(setting).value, abs=1e-8)
    if "shape" in asked:
        # It ends at a basis.
        assert solve(problem, start=found).iterations == 0
        assert 0 <= sure(dpopt.design(setting, backend="highs").gap) <= 1e-9
    else:
        assert found.rounds == 1


def test_after_a_first_run_another_method_comes_next() -> None:
    """A simplex run that failed might fail again; interior points are tried, then the primal."""
    problem = Kernel("absolute", 0.1, inputs=20, graph="path").problem()

    def iterations(appended: bool) -> list[int]:
        session = get_backend("highs").load(problem.assemble())
        if appended:
            rows = make_rows(np.ones((1, problem.size)), lower=0.0)
            session.append(rows)
        return [session.run(None, way=way).iterations for way in (1, 2)]

    for appended in (False, True):
        first, second = iterations(appended)
        # Interior points take few steps, and the simplex method hundreds.
        assert first < 60 < second
