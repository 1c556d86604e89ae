"""Designs on which solves stalled, cycled or missed their optimum; and a part of the random sweep.

Where a number of such a design is compared, it comes from cvxpy's interface to HiGHS, which
builds the whole program anew in every round.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

import dpopt
from dpopt import majority
from tests.robustness.sweep_designs import LARGEST_GAP, ROUNDING, Case, cases, fault_of


def case(
    voters: int,
    *numbers: float,
    objective: str = "expected-error",
    prior: str = "uniform:0,1",
) -> Case:
    epsilon, allowance, shift, delta = (*numbers, 0.0, 0.0)[:4]
    setting = majority.MajoritySetting(voters, epsilon, allowance, shift, delta)
    return Case(setting, objective, prior)


COMMON = "common-uniform:0,1"
# Each once failed: stalled on rows that the solver already had, cycled in the simplex, or was
# taken with a gap above 1e-7.
HARD = (
    case(51, 0.3299871825232927, 3.0, 1e-3, 1e-3),
    case(41, 0.04755633357154968, 0.5, 1e-3, 1e-3),
    case(51, 0.021578925587707066, 0.5, 1e-3, 0.01),
    case(51, 0.05179131086860103, 0.5, 1e-3, 1e-3, prior=COMMON),
    case(41, 0.003066628908875724, 0.5, objective="worst-case", prior=COMMON),
    case(15, 0.03, 2.0, 1e-3, 1e-3, objective="worst-case", prior=COMMON),
    case(31, 1.0, 1.0, 1e-3, 0.01, objective="worst-case", prior=COMMON),
    case(31, 0.059150723595382, 0.5, 0.0, 0.01, objective="worst-case", prior="common-beta:2,3"),
    case(31, 0.059150723595382, 0.5, 1e-3, 0.01, objective="worst-case", prior="common-beta:2,3"),
    case(111, 0.1, 1.0),
    # Their second programs, among the optima, are at the limit of double precision.
    case(45, 0.00570927016371915, 0.5, 1e-3, 1e-3, objective="worst-case", prior=COMMON),
    case(
        *(49, 0.00100021444836094, 0.5, 2.8919026671590315e-06, 2.8919026671590315e-06),
        objective="worst-case",
        prior=COMMON,
    ),
)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("hard", HARD, ids=str)
def test_designs_that_once_failed(hard: Case) -> None:
    assert fault_of(hard)[0] == ""


@pytest.mark.slow
@pytest.mark.parametrize("hard", [HARD[1], HARD[5], HARD[7], HARD[9]], ids=str)
def test_another_interface_finds_the_same_optimum(hard: Case) -> None:
    ours, theirs = (
        dpopt.design(replace(hard.setting, **hard.told), backend=backend)
        for backend in ("highs", "cvxpy")
    )
    assert ours.value is not None
    assert theirs.value is not None
    assert theirs.bound is not None
    assert ours.value == pytest.approx(theirs.value, abs=LARGEST_GAP)
    assert ours.value <= theirs.bound + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 6))
def test_a_part_of_the_sweep(start: int) -> None:
    for drawn in islice(cases(11, largest=31), start, start + 6):
        assert fault_of(drawn)[0] == "", drawn
