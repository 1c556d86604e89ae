"""Optima that the literature knows in closed form, and optima by enumeration of all events."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.kernel import brute
from tests.kernel.brute import optimal, sure


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("n", "epsilon"), [(2, 0.5), (3, 1.0), (5, 0.2), (9, 1.0), (60, 4.0)])
@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_count_queries_reach_the_remapped_geometric_mechanism(
    n: int, epsilon: float, power: float
) -> None:
    rng = np.random.default_rng(n)
    for prior in (np.full(n, 1 / n), rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.2))):
        found = optimal(brute.distances(n, power), epsilon=epsilon, graph="path", prior=prior)
        expected = brute.remapped(brute.distances(n, power), epsilon, prior)
        assert found.value == pytest.approx(expected, rel=1e-8)
        assert sure(found.bound) <= expected * (1 + 1e-12)
        assert 0 <= sure(found.gap) <= 1e-8 * expected


@pytest.mark.parametrize(("n", "epsilon"), [(2, 0.5), (4, 1.0), (7, 0.3), (6, 2.0)])
@pytest.mark.parametrize("power", [1, 2])
def test_count_queries_reach_the_randomly_remapped_geometric_mechanism(
    n: int, epsilon: float, power: int
) -> None:
    loss = brute.distances(n, power)
    found = optimal(loss, epsilon=epsilon, graph="path", objective="worst-case")
    assert found.value == pytest.approx(brute.remapped_minimax(loss, epsilon), abs=1e-8)
    if n == 2:
        assert found.value == pytest.approx(1 / (1 + math.exp(epsilon)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-9, 1e-3, 1.0, 8.0, 25.0, 60.0, 600.0])
def test_randomised_response_for_0_1_loss(objective: str, epsilon: float) -> None:
    for k in (2, 3, 7):
        found = optimal(1 - np.eye(k), epsilon=epsilon, objective=objective)
        expected = (k - 1) / (math.exp(epsilon) + k - 1)
        assert found.value == pytest.approx(expected, abs=1e-8)
        assert sure(found.gap) <= 1e-8


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 5.0, 20.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.3, 0.9])
def test_binary_randomised_response_with_delta(epsilon: float, delta: float) -> None:
    for objective in ("mean", "worst-case"):
        found = optimal(np.eye(2), epsilon=epsilon, delta=delta, sense="maximise")
        flipped = optimal(1 - np.eye(2), epsilon=epsilon, delta=delta, objective=objective)
        truth = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        assert found.value == pytest.approx(truth, abs=1e-8)
        assert flipped.value == pytest.approx(1 - truth, abs=1e-8)
        assert brute.private(found, [(0, 1), (1, 0)])


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("q", [(0.05, 0.1, 0.15, 0.2, 0.5), (0.6, 0.01, 0.39), (0.25,) * 4])
def test_the_invariant_minimax_kernel_has_the_loss_of_the_public_prior_theorem(
    epsilon: float, q: tuple[float, ...]
) -> None:
    found = optimal(1 - np.eye(len(q)), epsilon=epsilon, objective="worst-case", invariant=q)
    low = min(q)
    expected = (1 - low) / (math.exp(epsilon) * low + 1 - low)
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert np.abs(np.array(q) @ found.kernel - q).max() <= 1e-12
    assert found.residuals["invariance"] <= 1e-12


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3), (2, 3)])
def test_hamming_loss_over_words_is_randomised_response_at_each_place(
    shape: tuple[int, ...],
) -> None:
    words = np.array(list(np.ndindex(*shape)))
    loss = (words[:, None, :] != words[None, :, :]).sum(axis=2)
    found = optimal(loss, epsilon=1.2, graph="hamming", shape=shape)
    expected = sum((size - 1) / (math.exp(1.2) + size - 1) for size in shape)
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert brute.private(found, brute.hamming(shape))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_losses_against_all_events_written_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    loss, prior = rng.normal(size=(n, m)), rng.dirichlet(np.ones(n))
    ring = [(x, (x + 1) % n) for x in range(n)] if n > 2 else [(0, 1)]
    both = sorted({*ring, *((b, a) for a, b in ring)})
    for graph, edges in (("complete", brute.complete(n)), ("path", brute.path(n)), (ring, both)):
        for epsilon, delta in ((0.7, 0.0), (0.7, 0.1), (0.0, 0.2), (3.0, 0.01)):
            asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "graph": graph}
            bayes = optimal(loss, **asked, prior=prior)
            worst = optimal(-loss, **asked, objective="worst-case", sense="maximise")
            least = brute.least_loss(loss, edges, epsilon, delta, prior=prior)
            assert bayes.value == pytest.approx(least, abs=1e-8)
            least = brute.least_loss(loss, edges, epsilon, delta)
            assert worst.value == pytest.approx(-least, abs=1e-8)
            for found in (bayes, worst):
                assert brute.private(found, edges)
                assert -1e-8 <= sure(found.gap) <= 1e-8
                assert sure(found.certificate).slack >= 0


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("prior", [(0.1, 0.3, 0.6), (0.0, 0.4, 0.6)])
def test_an_invariant_kernel_against_all_events_written_down(prior: Any, delta: float) -> None:
    q, loss = np.array(prior), np.random.default_rng(1).random((3, 3))
    found = optimal(loss, epsilon=1.0, delta=delta, invariant=q, prior=q)
    expected = brute.least_loss(loss, brute.complete(3), 1.0, delta, prior=q, fixed=q)
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert found.residuals["invariance"] <= 1e-12


def test_an_invariant_row_with_a_zero_never_gives_that_output() -> None:
    found = optimal(1 - np.eye(3), epsilon=1.0, objective="worst-case", invariant=(0.0, 0.4, 0.6))
    assert found.value == 1.0
    assert found.kernel[:, 0].tolist() == [0.0] * 3


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 30.0, 300.0])
def test_extreme_epsilons_on_a_path(epsilon: float) -> None:
    loss = brute.distances(15)
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
