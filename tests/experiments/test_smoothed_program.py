"""The linear programs against closed sums, their duals, and enumeration of all databases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpopt import smoothed, solve
from dpopt.prob.histograms import histogram_count, histograms, neighbours
from dpopt.smoothed.mechanisms import SamplingHistogram
from experiments.smoothed import program
from tests.smoothed.pmfs import KernelMechanism, means

RNG = np.random.default_rng


def random_kernel(records: int, categories: int, outputs: int, seed: int) -> KernelMechanism:
    rng = RNG(seed)
    rows = rng.dirichlet(np.full(outputs, 0.5), size=histogram_count(records, categories))
    return KernelMechanism(records, categories, rows)


def hockey_stick(p: Any, q: Any, epsilon: float) -> Any:
    with np.errstate(over="ignore"):
        return np.maximum(0.0, p - np.where(q > 0, np.exp(epsilon) * q, 0.0)).sum(axis=-1)


def closed_profile(
    mechanism: SamplingHistogram | KernelMechanism, epsilon: float
) -> dict[tuple[int, ...], float]:
    """delta(x) of each database by the sums of the definition."""
    found = {}
    for row in histograms(mechanism.records, mechanism.categories):
        pmf = mechanism.pmfs([row])[0]
        others = mechanism.pmfs(neighbours(row))
        both = [hockey_stick(pmf, others, epsilon), hockey_stick(others, pmf, epsilon)]
        found[tuple(row.tolist())] = float(np.max(both))
    return found


@pytest.mark.sample(10)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 2.0, 40.0, 700.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_test_and_its_dual_are_the_hockey_stick(epsilon: float, seed: int) -> None:
    p, q = RNG(seed).dirichlet(np.full(7, 0.4), size=2)
    if seed > 2:
        q[seed] = 0.0
    wanted = float(hockey_stick(p, q, epsilon))
    best = solve(program.best_test_problem(p, q, epsilon))
    gains = program.gains_of(p, q, epsilon)[None]
    dual = solve(program.sticks_problem("excess mass", gains, np.array([0])))
    assert best.objective == pytest.approx(wanted, abs=1e-9)
    assert dual.objective == pytest.approx(wanted, abs=1e-9)
    test = (p > math.exp(epsilon) * q).astype(float)
    assert best["test"] == pytest.approx(test, abs=1e-9)
    assert dual.duals["tests"] == pytest.approx(test, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_the_profile_is_one_program(epsilon: float) -> None:
    for mechanism in (
        SamplingHistogram(4, 2, 3),
        SamplingHistogram(3, 4, 3, replacement=True),
        random_kernel(3, 3, 5, 1),
        # Of a delta of 0 at all but the first epsilon.
        KernelMechanism(1, 2, np.array([[0.5, 0.5], [0.45, 0.55]])),
    ):
        found = smoothed.privacy_profile(mechanism, epsilon)
        solved = solve(program.profile_problem(mechanism, epsilon, found.histograms))
        assert solved["delta"] == pytest.approx(found.delta, abs=1e-9)
        wanted = closed_profile(mechanism, epsilon)
        assert found.delta == pytest.approx(list(wanted.values()), abs=1e-12)


@pytest.mark.parametrize(
    "step",
    [
        {"values": [0, 0, 1, 3, 4], "drawn": 2, "epsilons": [0.2, 1.5, 0.7]},
        {"values": [0, 1, 1, 3], "drawn": 2, "epsilons": [0.1, 2.0], "rounded": False},
        {"values": [0, 1, 2, 3], "drawn": 3, "epsilons": 0.2},
    ],
)
def test_one_step_is_one_program(step: dict[str, Any]) -> None:
    found = smoothed.sgd_profile(**step, lowest=-2, highest=5)
    solved = solve(program.step_problem(found))
    assert solved["delta"] == pytest.approx(found.delta, abs=1e-9)


CASES = [
    (SamplingHistogram(5, 3), [[0.3, 0.7], [0.6, 0.4]], 300.0),
    (SamplingHistogram(6, 4), [[0.3, 0.7], [0.6, 0.4]], 0.3),
    (SamplingHistogram(5, 5), [[0.3, 0.7], [0.6, 0.4]], 1.0),
    (SamplingHistogram(6, 3, 2, True), [[0.2, 0.8], [0.9, 0.1]], 0.7),
    (SamplingHistogram(6, 2, 3), [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.1, 0.8, 0.1]], 0.5),
    (random_kernel(5, 2, 4, 3), [[0.2, 0.8], [0.9, 0.1]], 0.4),
    (random_kernel(1, 2, 3, 7), [[0.4, 0.6], [0.6, 0.4]], 0.1),
    (random_kernel(3, 3, 4, 4), [[0.2, 0.3, 0.5], [0.5, 0.5, 0.0]], 0.0),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("mechanism", "distributions", "epsilon"), CASES)
def test_the_smoothed_delta_is_the_best_composition_and_its_dual_attains_it(
    mechanism: SamplingHistogram | KernelMechanism,
    distributions: list[list[float]],
    epsilon: float,
) -> None:
    profile = closed_profile(mechanism, epsilon)
    wanted = means(profile, distributions, mechanism.records)
    best = max(wanted.values())
    closed = smoothed.smoothed_delta(mechanism, epsilon, distributions)
    assert closed.delta == pytest.approx(best, rel=1e-12)
    instance = program.smoothed_instance(mechanism, epsilon, distributions)
    low, high = program.smoothed_problem(instance), program.adversary_problem(instance)
    solution, dual = solve(low), solve(high)
    assert solution.objective == pytest.approx(best, abs=1e-9)
    assert solution.bound <= best + 1e-12
    assert solution.gap == pytest.approx(0.0, abs=1e-9)
    assert dual.objective == pytest.approx(best, abs=1e-9)
    # Each is the other's dual, by name: the duals satisfy the rows of the adversary.
    assert set(low.blocks) == set(high.variables)
    for name, rows in low.blocks.items():
        assert rows.count == high.variables[name].stop - high.variables[name].start
    point = np.concatenate([solution.duals[name] for name in high.variables])
    model = high.assemble()
    assert float(np.max(model.rows.violation(point))) <= 1e-9
    assert -float(model.cost @ point) == pytest.approx(solution.objective, abs=1e-9)
    # They are a mixture of compositions, and tests with the probability that they answer with.
    weights = solution.duals["weights"]
    composition = instance.compositions[int(np.argmax(weights))]
    assert wanted[tuple(composition.tolist())] == pytest.approx(best, abs=1e-9)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    pmfs = mechanism.pmfs(histograms(mechanism.records, mechanism.categories))
    first, second = pmfs[instance.pairs[:, 0]], pmfs[instance.pairs[:, 1]]
    gains = np.stack(
        [first - math.exp(epsilon) * second, second - math.exp(epsilon) * first], axis=1
    )
    sides = solution.duals["sides"].reshape(len(instance.pairs), 2, 2)
    tests = solution.duals["tests"].reshape(gains.shape)
    assert np.all(tests >= -1e-9)
    assert np.all(tests <= sides.sum(axis=2)[:, :, None] + 1e-9)
    spent = np.zeros(len(pmfs))
    for pair, ends in zip(instance.pairs, sides, strict=True):
        spent[pair] += ends.sum(axis=0)
    assert np.all(spent <= weights @ instance.databases + 1e-9)
    assert float(np.sum(tests * gains)) == pytest.approx(best, abs=1e-9)
