"""Experiments on linear queries: known numbers, closed forms, and people one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import dpopt
from dpopt import Workload
from experiments.registry import Outcome
from experiments.workload import simulation, table
from experiments.workload.simulation import ELECTION, MADE
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn

pytestmark = pytest.mark.slow

# Stated before this program was written: six digits of the optimum, about four of the others.
MECHANISMS = (table.OURS, "randomised response", "Hadamard response", "subset selection")
KNOWN: Mapping[tuple[str, float], tuple[float, ...]] = {
    ("prefix", 1.0): (74.8086, 279.8, 259.7, 144.4),
    ("range", 1.0): (875.636, 2518, 2431, 1299.9),
    ("histogram", 1.0): (50.9764, 98.7, 95.8, 50.9764),
    ("prefix", 3.0): (4.31905, 6.320, 10.41, 6.320),
    ("range", 3.0): (46.9730, 56.88, 93.7, 56.88),
}


@pytest.fixture(scope="module")
def variances() -> Outcome:
    return ran(table.run, table.Config(tries=1, steps=50))


def digits(value: float) -> float:
    """Half a unit of the last digit of a number as printed."""
    _, _, after = str(value).partition(".")
    return 0.51 * 10.0 ** -len(after if after != "0" else "")


def test_the_table_has_the_known_values(variances: Outcome) -> None:
    rows = variances.tables["variances"]
    for (workload, epsilon), each in KNOWN.items():
        for mechanism, value in zip(MECHANISMS, each, strict=True):
            part = rows.select(workload=workload, epsilon=epsilon, mechanism=mechanism)
            (found,) = part.column("variance")
            assert found == pytest.approx(value, abs=digits(value)), (workload, mechanism)


def test_the_hierarchy_is_the_better_of_two(variances: Outcome) -> None:
    """Its levels one by one: sums of randomised response, and the best decoder by least squares."""
    rows = variances.tables["variances"]
    part = rows.select(workload="prefix", epsilon=1.0, mechanism="hierarchical")
    (found,) = part.column("variance")
    prefixes = np.tril(np.ones((16, 16)))
    by_hand = []
    for branching, levels in ((2, 4), (4, 2)):
        information = np.zeros((16, 16))
        for level in range(levels):
            node = np.arange(16) // branching**level
            size = int(node[-1]) + 1
            told = (1 + (math.e - 1) * np.eye(size))[:, node] / (math.e + size - 1) / levels
            information += told.T @ (told / told.mean(axis=1)[:, None])
        squares = np.trace(np.linalg.solve(information, prefixes.T @ prefixes))
        by_hand.append(float(squares) - 8.5)
    assert by_hand == pytest.approx([177.16, 171.0], abs=6e-3)
    assert found == pytest.approx(min(by_hand), rel=1e-9)


def test_projected_gradient_gains_by_starts_and_steps() -> None:
    config = table.Config(workloads=("prefix",), categories=5, epsilons=(1.0,), tries=1, steps=20)

    def descended(config: table.Config) -> float:
        rows = ran(table.run, config).tables["variances"]
        (found,) = rows.select(mechanism=table.GRADIENT).column("variance")
        return found

    first = descended(config)
    assert descended(replace(config, steps=400)) < first
    assert descended(replace(config, tries=4)) <= first


def test_what_is_seen_is_what_was_predicted() -> None:
    outcome = ran(simulation.run)
    rows = outcome.tables["variances"]
    assert set(rows.column("people")) == {10**k for k in range(3, 8)}
    assert max(map(abs, rows.column("errors_apart"))) < 3
    assert max(row["standard_error"] / row["predicted"] for row in rows.records) < 0.1
    drawn(simulation.run, outcome)


def test_distributions_of_the_simulation() -> None:
    config = simulation.Config(categories=8)
    pmfs = config.pmfs()
    made = 1 / np.arange(1, 9)
    assert pmfs[MADE] == pytest.approx(made / made.sum())
    # 158 million votes were counted for the two; those of Maine and Nebraska once.
    assert pmfs[ELECTION].sum() == pytest.approx(1)
    # California: 0.351 for the second, in the class of 0.35 to 0.4.
    assert pmfs[ELECTION][1] > 17_116_679 / 158e6
    histogram = simulation._histogram(np.array([0.5, 0.3, 0.2]), 7)
    assert histogram.tolist() == [4, 2, 1]


def test_counts_of_outputs_are_those_of_people_one_by_one() -> None:
    """The errors of drawn counts, against the estimates from each person's own release."""
    found = dpopt.design(Workload("prefix", 1.0, 3))
    histogram, runs = np.array([40, 10, 30]), 4_000
    by_counts = simulation._squares(found, histogram, runs, np.random.default_rng(1))
    truth, pmfs = np.cumsum(histogram), found.table.matrix().cumsum(axis=1)
    rng = np.random.default_rng(2)
    one_by_one = []
    for _ in range(runs):
        drawn_outputs = np.concatenate(
            [np.searchsorted(pmfs[u], rng.random(people)) for u, people in enumerate(histogram)]
        )
        one_by_one.append(float(np.sum((found.estimate(drawn_outputs).values - truth) ** 2)))
    first, second = np.array(by_counts), np.array(one_by_one)
    spread = math.hypot(first.std(), second.std()) / math.sqrt(runs)
    assert abs(first.mean() - second.mean()) < 4 * spread
