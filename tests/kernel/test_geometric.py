"""Optima on paths and grids without a program, against programs, fractions and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpopt import Kernel
from dpopt.kernel.geometric import crosses_once
from tests.kernel import brute
from tests.kernel.brute import Array, least_loss, optimal, sure


def of_distance(rng: np.random.Generator, n: int) -> Array:
    """For each input, any nondecreasing function of the distance, ties included."""
    steps = np.cumsum(rng.integers(0, 3, size=(n, n)), axis=1)
    x = np.arange(n)
    return steps[x[:, None], np.abs(x[:, None] - x)].astype(float)


def falling(rng: np.random.Generator, n: int) -> Array:
    """Differences of outputs that fall in x throughout; one output more than inputs."""
    table = -np.cumsum(np.cumsum(rng.random((n, n + 1)), axis=0), axis=1)
    return table + 3.0 * rng.random((n, 1)) + 3.0 * rng.random((1, n + 1))


def crossing(rng: np.random.Generator, n: int) -> Array:
    """Small integers of any form that the theorem allows, three outputs."""
    while True:
        table = rng.integers(-2, 3, size=(n, 3)).astype(float)
        if crosses_once(table):
            return table


def certainly_optimal(loss: list[list[int]], prior: list[Fraction], a: Fraction) -> bool:
    """Whether no private column has a negative reduced cost, for all 2^(n - 1) rays, in fractions.

    Levels l with <l, g_i> = V(i) = min_y <c_y, g_i> make sum l the loss of the best answers.
    """
    n, outputs = len(loss), range(len(loss[0]))
    cost = [[prior[x] * loss[x][y] for x in range(n)] for y in outputs]
    column = [[a ** abs(x - i) for x in range(n)] for i in range(n)]

    def dot(one: list[Fraction], two: list[Fraction]) -> Fraction:
        return sum((p * q for p, q in zip(one, two, strict=True)), Fraction(0))

    v = [min(dot(cost[y], column[i]) for y in outputs) for i in range(n)]
    level = [
        (1 + a * a) * v[i] - a * sum(v[max(i - 1, 0) : i] + v[i + 1 : i + 2]) for i in range(n)
    ]
    level[0], level[-1] = v[0] - a * v[1], v[-1] - a * v[-2]
    level = [value / (1 - a * a) for value in level]
    assert [dot(level, g) for g in column] == v
    for signs in product((a, 1 / a), repeat=n - 1):
        ray = [Fraction(1)]
        for sign in signs:
            ray.append(ray[-1] * sign)
        if any(dot(cost[y], ray) < dot(level, ray) for y in outputs):
            return False
    return True


def test_the_theorem_in_fractions() -> None:
    """240 losses of three kinds; every ray of up to five inputs is written down."""
    rng = np.random.default_rng(1)
    for trial in range(240):
        n = int(rng.integers(2, 6))
        loss = (of_distance, crossing)[trial % 2](rng, n).astype(int).tolist()
        prior = [Fraction(int(p)) for p in rng.integers(0, 5, size=n)]
        assert certainly_optimal(loss, prior, Fraction(int(rng.integers(1, 10)), 10))


def test_the_condition_is_needed() -> None:
    """(0, 1, 0) against (1, 0, 1): inputs 0 and 2 are told from 1, which no noisy value does."""
    loss = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert not crosses_once(loss)
    prior = np.full(3, 1 / 3)
    assert not certainly_optimal([[0, 1], [1, 0], [0, 1]], [Fraction(1)] * 3, Fraction(1, 3))
    assert (
        least_loss(loss, brute.path(3), 1.0, prior=prior) < brute.remapped(loss, 1.0, prior) - 1e-2
    )
    found = optimal(loss, epsilon=1.0, graph="path")
    assert found.solution is not None
    assert found.value == pytest.approx(least_loss(loss, brute.path(3), 1.0, prior=prior), abs=1e-9)


def test_which_differences_cross_once_by_definition() -> None:
    rng, kinds = np.random.default_rng(3), set()
    for _ in range(300):
        table = rng.integers(-1, 2, size=(4, 3)).astype(float)
        expected = all(
            not (table[x, y] < table[x, z] and table[later, y] > table[later, z])
            for z in range(3)
            for y in range(z + 1, 3)
            for x in range(4)
            for later in range(x + 1, 4)
        )
        assert crosses_once(table) == expected
        kinds.add(expected)
    assert kinds == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [of_distance, falling, crossing])
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_random_losses_reach_the_program(kind: Any, objective: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        n = int(rng.integers(3, 7))
        loss, epsilon = kind(rng, n), float(rng.choice([0.2, 0.7, 1.5]))
        prior = rng.dirichlet(np.full(n, 0.7)) if objective == "mean" else None
        found = optimal(loss, epsilon=epsilon, graph="path", objective=objective, prior=prior)
        expected = least_loss(loss, brute.path(n), epsilon, prior=prior)
        assert found.solution is None
        assert found.value == pytest.approx(expected, abs=2e-8)
        assert sure(found.bound) <= expected + 1e-12
        assert 0 <= sure(found.gap) <= 2e-8
        assert brute.private(found, brute.path(n))


def test_numbering_and_sense_do_not_matter() -> None:
    """Inputs in any order along edges of one's own, outputs in any order, a utility."""
    rng = np.random.default_rng(5)
    for objective in ("mean", "worst-case"):
        asked: dict[str, Any] = {"epsilon": 0.8, "objective": objective}
        plain = optimal(brute.distances(9), graph="path", **asked)
        order, outputs = rng.permutation(9), rng.permutation(9)
        place = np.argsort(order)
        edges = np.stack([place[:-1], place[1:]], axis=1)
        utility = 5.0 - brute.distances(9)[order][:, outputs]
        found = optimal(utility, graph=edges, sense="maximise", **asked)
        assert found.solution is None
        assert found.value == pytest.approx(5.0 - plain.value, abs=1e-9)
        assert 0 <= sure(found.gap) <= 1e-8
        assert brute.private(found, [*map(tuple, [*edges, *edges[:, ::-1]])])


def on_grid(shape: tuple[int, ...], exponent: int) -> Array:
    words = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1).astype(float)
    return np.sum(np.abs(words[:, None] - words) ** exponent, axis=2)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
@pytest.mark.parametrize("exponent", [1, 2])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)])
def test_grids_reach_the_program(shape: tuple[int, ...], exponent: int, objective: str) -> None:
    loss, prior = on_grid(shape, exponent), None
    if objective == "mean":
        pmfs = [np.random.default_rng(k).dirichlet(np.ones(k)) for k in shape]
        prior = np.array([math.prod(map(float, word)) for word in product(*pmfs)])
    found = optimal(loss, epsilon=0.6, graph="grid", shape=shape, prior=prior, objective=objective)
    assert found.solution is None
    assert found.value == pytest.approx(
        least_loss(loss, brute.grid(shape), 0.6, prior=prior), abs=1e-8
    )
    assert 0 <= sure(found.gap) <= 1e-9
    assert brute.private(found, brute.grid(shape))


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_a_grid_of_12_by_12_has_twice_the_loss_of_a_path(objective: str) -> None:
    loss = on_grid((12, 12), 1)
    grid = optimal(loss, epsilon=1.0, graph="grid", shape=(12, 12), objective=objective)
    line = optimal(
        brute.distances(12, 1), epsilon=1.0, graph="path", objective=objective, backend="highs"
    )
    assert grid.value == pytest.approx(2.0 * line.value, rel=1e-8)
    assert 0 <= sure(grid.gap) <= 1e-9
    assert brute.private(grid, brute.grid((12, 12)))


def test_a_grid_that_is_not_made_of_symbols_is_left_to_the_program() -> None:
    shape, loss = (3, 3), on_grid((3, 3), 1)
    uneven = np.arange(1.0, 10.0)
    asked: dict[str, Any] = {"epsilon": 1.0, "graph": "grid", "shape": shape}
    for table, prior in ((loss, uneven), (np.sqrt(on_grid(shape, 2)), None)):
        found = optimal(table, prior=prior, **asked)
        pmf = uneven / 45.0 if prior is not None else np.full(9, 1 / 9)
        assert found.solution is not None
        assert found.value == pytest.approx(
            least_loss(table, brute.grid(shape), 1.0, prior=pmf), abs=1e-8
        )


def test_other_settings_have_no_closed_form() -> None:
    loss, q = brute.distances(4), np.full(4, 0.25)
    for asked in (
        {"graph": "cycle"},
        {"graph": "complete"},
        {"graph": [(0, 1), (1, 2)]},
        {"graph": "path", "delta": 0.1},
        {"graph": "path", "invariant": q},
        {"graph": "path", "epsilon": 0.0},
    ):
        given: Any = {"epsilon": 1.0} | asked
        assert Kernel(loss, **given).closed_form() is None
    cap = np.zeros((1, 16))
    cap[0, 5] = 1.0
    found = optimal(loss, epsilon=1.0, graph="path", constraints=[("cap", cap, None, 0.3)])
    assert found.solution is not None
    assert found.kernel[1, 1] <= 0.3
