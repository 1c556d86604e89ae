"""Distributional DP by linear program, against a program over ordered records and all events."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import hypergeom

from dpopt import smoothed
from experiments.smoothed.program import distributional_delta
from tests.smoothed.pmfs import KernelMechanism

PMFS = [[0.3, 0.7], [0.6, 0.4]]


def by_events(n: int, drawn: int, epsilon: float, pmfs: list[list[float]]) -> float:
    """Least delta over simulators of ordered records, one row for every event."""
    ordered, factor = list(product(range(2), repeat=n - 1)), math.exp(epsilon)
    ones = np.array([sum(x) for x in ordered])
    table = hypergeom.pmf(np.arange(drawn + 1), n, np.arange(n + 1)[:, None], drawn)
    rows, limits = [], []
    for chosen in product(pmfs, repeat=n - 1):
        chance = np.array(
            [math.prod(pmf[v] for pmf, v in zip(chosen, x, strict=True)) for x in ordered]
        )
        for value, event in product(range(2), product((0.0, 1.0), repeat=drawn + 1)):
            simulated = np.outer(chance, event).ravel()
            known = chance @ table[ones + value] @ event
            rows += [[*-factor * simulated, -1.0], [*simulated, -1.0]]
            limits += [-known, factor * known]
    whole = np.kron(np.eye(len(ordered)), np.ones(drawn + 1))
    whole = np.column_stack([whole, np.zeros(len(ordered))])
    cost = np.eye(1, whole.shape[1], whole.shape[1] - 1)[0]
    found = linprog(cost, np.array(rows), limits, whole, np.ones(len(ordered)), (0, 1))
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize(("n", "drawn"), [(2, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_equals_the_program_over_ordered_records(n: int, drawn: int, epsilon: float) -> None:
    mechanism = smoothed.SamplingHistogram(n, drawn)
    found = distributional_delta(mechanism, epsilon, PMFS)
    assert found.objective == pytest.approx(by_events(n, drawn, epsilon, PMFS), abs=1e-8)
    assert abs(found.gap) < 1e-8
    assert found["simulator"].reshape(n, drawn + 1).sum(axis=1) == pytest.approx(
        np.ones(n), abs=1e-8
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_smoothed_implies_distributional(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(4):
        kernel = rng.dirichlet(np.ones(3), size=15)
        mechanism = KernelMechanism(4, 3, kernel)
        pmfs = rng.dirichlet(np.ones(3), size=2)
        apart = distributional_delta(mechanism, epsilon, pmfs)
        found = smoothed.smoothed_delta(mechanism, epsilon, pmfs)
        assert apart.objective <= found.delta + 1e-9
        assert found.delta <= found.dp_delta * (1 + 1e-12)
