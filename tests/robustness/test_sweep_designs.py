"""Designs on which solves stalled, cycled or missed their optimum; and random ones, more at night.

Each must be found, certified, and within 1e-8 of the upper bound that its dual vector proves.
Objectives are sums of probabilities of at most 1, so the gap is absolute. Where a number is
compared, it comes from cvxpy's interface to HiGHS, which builds the whole program in every round.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import dpopt
from dpopt import Majority
from tests.robustness.hostile import more

LARGEST_GAP = 1e-8
# What adding up the objective in doubles may take the value above the bound.
ROUNDING = 1e-12
# Designs of a part of the random ones.
PART = 6
COMMON: Any = "common-uniform:0,1"
SKEWED: Any = "common-beta:2,3"
# K, epsilon, m, and the voters' and the design's delta. Each once failed: stalled on rows that the
# solver already had, cycled in the simplex, or was taken with a gap above 1e-7.
HARD = (
    Majority(51, 0.3299871825232927, 3.0, 1e-3, 1e-3),
    Majority(41, 0.04755633357154968, 0.5, 1e-3, 1e-3),
    Majority(51, 0.021578925587707066, 0.5, 1e-3, 0.01),
    Majority(51, 0.05179131086860103, 0.5, 1e-3, 1e-3, prior=COMMON),
    Majority(41, 0.003066628908875724, 0.5, objective="worst-case", prior=COMMON),
    Majority(15, 0.03, 2.0, 1e-3, 1e-3, objective="worst-case", prior=COMMON),
    Majority(31, 1.0, 1.0, 1e-3, 0.01, objective="worst-case", prior=COMMON),
    *(
        Majority(
            *(31, 0.059150723595382, 0.5, shift, 0.01),
            objective="worst-case",
            prior=SKEWED,
        )
        for shift in (0.0, 1e-3)
    ),
    Majority(111, 0.1, 1.0),
    # Their second programs, among the optima, are at the limit of double precision.
    Majority(45, 0.00570927016371915, 0.5, 1e-3, 1e-3, objective="worst-case", prior=COMMON),
    Majority(
        *(49, 0.00100021444836094, 0.5, 2.8919026671590315e-06, 2.8919026671590315e-06),
        objective="worst-case",
        prior=COMMON,
    ),
)
PRIORS = (
    *("uniform:0,1", "uniform:0.5,1", "uniform:0.1,0.4,0.6,0.9", "beta:2,3", COMMON),
    *("common-uniform:0.3,0.9", SKEWED, "point:0.7"),
)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def settings(seed: int, largest: int) -> Iterator[Majority]:
    """Draw designs for ever: K odd, epsilon over four decades, all objectives and priors."""
    rng = random.Random(seed)
    while True:
        k = rng.randrange(1, largest + 1, 2)
        epsilon = log_uniform(rng, 1e-3, 10.0)
        allowance = rng.choice(
            [rng.uniform(0.0, k), log_uniform(rng, 0.01, k), float(rng.randint(1, k)), 0.5]
        )
        shift = rng.choice([0.0, log_uniform(rng, 1e-6, 1e-3)])
        delta = shift + rng.choice([0.0, log_uniform(rng, 1e-6, 1e-1)])
        objective = rng.choice(("mean", "surrogate", "worst-case", "least-regret"))
        belief: dict[str, Any] = {"prior": rng.choice(PRIORS)}
        if objective == "least-regret":
            belief = {"priors": ";".join(rng.sample(PRIORS, rng.randint(2, 4)))}
        allowance = min(max(allowance, 0.01), float(k))
        yield Majority(k, epsilon, allowance, shift, delta, objective=objective, **belief)


def check(setting: Majority) -> None:
    found = dpopt.design(setting)
    assert found.certificate is not None
    assert found.gap is not None
    assert -ROUNDING <= found.gap <= LARGEST_GAP


@pytest.mark.every_case
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("setting", HARD, ids=str)
def test_designs_that_once_failed(setting: Majority) -> None:
    check(setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [HARD[1], HARD[5]], ids=str)
def test_another_interface_finds_the_same_optimum(setting: Majority) -> None:
    ours, theirs = (dpopt.design(setting, backend=backend) for backend in ("highs", "cvxpy"))
    assert theirs.bound is not None
    assert ours.value == pytest.approx(theirs.value, abs=LARGEST_GAP)
    assert ours.value <= theirs.bound + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, more(3 * PART), PART))
def test_random_designs(start: int) -> None:
    for setting in islice(settings(11, 31), start, start + PART):
        check(setting)


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, 600, PART))
def test_large_random_designs(start: int) -> None:
    for setting in islice(settings(0, 51), start, start + PART):
        check(setting)
