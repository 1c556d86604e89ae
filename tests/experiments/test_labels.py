"""Many labels at one budget: errors, regrets and parameters against computations of our own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

import dpopt
from dpopt.composition import adaptive_delta
from experiments.majority.labels import (
    COIN,
    CURVE,
    EQUAL,
    EXACT,
    EXPONENTIAL,
    GNMAX,
    GNMAX_LABEL,
    Config,
    general_allowance,
    run,
)
from experiments.registry import Outcome
from tests.experiments.comparing import ran
from tests.experiments.test_noisy_max import pmf_by_integral
from tests.oracles import corners, in_floats

SMALL = Config(
    labels=(1, 2, 20),
    ballot_labels=(2, 12),
    ballots=5,
    ballot_epsilon=2.0,
    ballot_delta=1e-3,
)
COUNTS = [n for n in product(range(6), repeat=3) if sum(n) == 5]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(run, SMALL)


def row_of(outcome: Outcome, table: str, labels: int, way: str) -> dict[str, Any]:
    (row,) = outcome.tables[table].select(labels=labels, way=way).records
    return row


# --- private voters ------------------------------------------------------------------------------


def test_equal_shares_are_one_label_of_that_epsilon(outcome: Outcome) -> None:
    row = row_of(outcome, "voters", 20, EQUAL)
    assert row["m"] == pytest.approx(3.5246 / 20 / 0.1, rel=1e-14)
    assert row["error"] == dpopt.design(dpopt.Majority(11, 0.1, row["m"])).expected_error
    # At two labels a share is above what the majority itself spends.
    assert row_of(outcome, "voters", 2, EQUAL)["error"] == pytest.approx(0.0, abs=1e-12)


def test_a_random_label_is_a_fair_coin(outcome: Outcome) -> None:
    error, _ = quad(lambda p: abs(binom.sf(5, 11, p) - 0.5), 0.0, 1.0, points=[0.5])
    assert row_of(outcome, "voters", 1, COIN)["error"] == pytest.approx(error, rel=1e-9)


def theorem(epsilon: float, labels: int, slack: float) -> float:
    """Theorem 2.3 of the DaRRM paper."""
    base = labels * epsilon * math.tanh(epsilon / 2)
    tails = math.log(math.e + math.sqrt(labels) * epsilon / slack), math.log(1 / slack)
    return min(labels * epsilon, base + epsilon * math.sqrt(2 * labels * min(tails)))


@pytest.mark.parametrize("labels", [20, 50, 400])
def test_general_composition_uses_up_the_total(labels: int) -> None:
    config = replace(SMALL, labels=(labels,))
    m = general_allowance(config, labels)
    assert theorem(0.1 * m, labels, 1e-5) == pytest.approx(3.5246, rel=1e-9)
    assert m >= 3.5246 / labels / 0.1 * (1 - 1e-12)
    assert general_allowance(config, 2) == 11.0


def test_one_label_composed_exactly_uses_up_the_total(outcome: Outcome) -> None:
    m = row_of(outcome, "voters", 20, EXACT)["m"]
    for factor, within in ((1.0, True), (1.001, False)):
        design = dpopt.design(dpopt.Majority(11, 0.1, factor * m))
        spent = adaptive_delta(design.setting.output_pairs(design.table), 20, 3.5246)
        assert (spent.upper <= 1e-5) is within
        assert (spent.lower > 1e-5) is not within


@pytest.mark.slow
def test_two_labels_of_three_voters_by_brute_force() -> None:
    """All corners of the voters, and the second label's chosen after the first label."""
    voters: dict[str, Any] = {"voters": 3, "epsilon": 0.5, "total_epsilon": 1.0}
    ballots: dict[str, Any] = {"ballot_labels": (2,), "ballots": 2, "classes": 2}
    outcome = ran(run, Config(labels=(2,), total_delta=0.01, **voters, **ballots))
    m = row_of(outcome, "voters", 2, EXACT)["m"]
    assert row_of(outcome, "voters", 2, EQUAL)["m"] < m < 3
    spent = [
        in_floats(corners(3, 0.5, dpopt.design(dpopt.Majority(3, 0.5, x)).gamma), 2, 1.0)
        for x in (m, 1.001 * m)
    ]
    assert spent[0] <= 0.01 < spent[1]


# --- plain ballots -------------------------------------------------------------------------------


def weighed(counts: Sequence[int], epsilon: float) -> list[float]:
    weights = [math.exp(epsilon * n / 2) for n in counts]
    return [w / sum(weights) for w in weights]


def regret_of(shares: Mapping[tuple[int, ...], Any]) -> float:
    """The largest count minus that of the label, in the mean over equally likely counts."""
    lost = [sum((max(n) - c) * p for c, p in zip(n, shares[n], strict=True)) for n in shares]
    return math.fsum(lost) / len(lost)


def spent_on_two(shares: Mapping[tuple[int, ...], Any], epsilon: float) -> float:
    """Delta of two labels over all neighbours, in floats."""
    neighbours = [p for p in permutations(shares, 2) if np.abs(np.subtract(*p)).sum() == 2]
    pairs = [(shares[n], shares[other]) for n, other in neighbours]
    assert len(pairs) == 90
    return in_floats(pairs, 2, epsilon)


def test_noise_on_counts_is_gaussian_noise_on_all_counts_at_once(outcome: Outcome) -> None:
    for labels in SMALL.ballot_labels:
        sigma = row_of(outcome, "ballots", labels, GNMAX)["parameter"]
        mu = math.sqrt(2 * labels) / sigma
        delta = norm.cdf(mu / 2 - 2 / mu) - math.exp(2) * norm.cdf(-mu / 2 - 2 / mu)
        assert delta == pytest.approx(1e-3, rel=1e-9)
        shares = {n: pmf_by_integral(n, sigma) for n in COUNTS}
        regret = row_of(outcome, "ballots", labels, GNMAX)["regret"]
        assert regret == pytest.approx(regret_of(shares), rel=1e-9)


@pytest.mark.parametrize(("way", "share"), [(GNMAX_LABEL, pmf_by_integral), (EXPONENTIAL, weighed)])
def test_two_labels_composed_exactly_by_brute_force(outcome: Outcome, way: str, share: Any) -> None:
    row = row_of(outcome, "ballots", 2, way)
    shares = {n: share(n, row["parameter"]) for n in COUNTS}
    assert row["regret"] == pytest.approx(regret_of(shares), rel=1e-8)
    assert 0.97e-3 < spent_on_two(shares, 2.0) <= 1e-3


def test_equal_shares_and_coins_of_ballots(outcome: Outcome) -> None:
    for labels in SMALL.ballot_labels:
        share = row_of(outcome, "ballots", labels, EQUAL)
        assert share["parameter"] == 2.0 / labels
        assert row_of(outcome, "ballots", labels, CURVE)["regret"] <= share["regret"] + 1e-6
    even = regret_of({n: [1 / 3] * 3 for n in COUNTS})
    assert row_of(outcome, "ballots", 2, COIN)["regret"] == pytest.approx(even, rel=1e-12)
