"""The paper's whole corner set against its definition in fractions, and its program."""

import math
from dataclasses import replace
from fractions import Fraction as F
from math import comb
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Majority, NotPrivateError, majority, solve
from experiments.majority.full_set import check_design, check_full, full_problem, full_size
from tests.majority.brute import pmfs, worst_excess


def setting_of(voters: int, r: F, shift: F, target: F, delta: F) -> Majority:
    epsilon = math.log(r)
    return Majority(voters, epsilon, math.log(target) / epsilon, float(shift), float(delta))


@pytest.mark.parametrize(
    ("upper", "r", "shift", "target", "delta"),
    [
        ([F(1, 3), F(1)], F(5, 4), F(0), F(3, 2), F(0)),
        ([F(1, 2), F(0)], F(5, 4), F(1, 50), F(3, 2), F(1, 20)),
        ([F(1, 7), F(1), F(2, 3)], F(9, 4), F(0), F(2), F(0)),
        ([F(0), F(0)], F(9, 4), F(1, 5), F(9, 4), F(1, 4)),
    ],
)
def test_excess_is_the_definition_s(upper: list[F], r: F, shift: F, target: F, delta: F) -> None:
    gamma = [*upper[::-1], *upper]
    voters = len(gamma) - 1
    exact = worst_excess(gamma, r, shift, target, delta)
    setting = setting_of(voters, r, shift, target, delta)
    found = check_full(setting, np.array([float(g) for g in gamma]))
    assert found.excess == pytest.approx(float(exact), abs=found.rounding)
    assert full_size(setting) == comb(voters + (7 if shift else 3), 7 if shift else 3)


def test_epsilon_spent_is_where_the_excess_vanishes() -> None:
    gamma = np.array([0.9, 0.4, 0.4, 0.9])
    spent = check_full(Majority(3, 0.5, 2.0, 0.01, 0.02), gamma).epsilon
    at = Majority(3, 0.5, spent / 0.5, 0.01, 0.02)
    assert check_full(at, gamma).excess == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("objective", ["mean", "surrogate"])
@pytest.mark.parametrize("shift", [0.0, 1e-5])
def test_a_design_is_private_over_the_paper_s_whole_set(objective: Any, shift: float) -> None:
    setting = Majority(11, 0.1, 3, shift, 3 * shift, objective=objective)
    check = check_design(dpopt.design(setting))
    assert check is not None
    assert check.excess <= check.rounding
    large = replace(setting, voters=25, voter_delta=1e-5, delta=3e-5)
    assert check_design(dpopt.design(large)) is None


def test_a_broken_gamma_breaks_it_by_what_the_proof_says() -> None:
    broken = majority.assess(Majority(3, 0.5, 1), np.ones(4))
    check = check_design(broken)
    assert check is not None
    with pytest.raises(NotPrivateError) as caught:
        broken._require_private()
    assert check.excess == pytest.approx(caught.value.excess, rel=1e-12)
    assert check.excess > 0.01


@pytest.mark.parametrize(
    ("voters", "r", "shift", "target", "delta"),
    [
        (5, F(9, 4), F(0), F(2), F(1, 50)),
        (3, F(5, 4), F(1, 20), F(3, 2), F(1, 20)),
    ],
)
def test_rows_are_those_of_the_definition(voters: int, r: F, shift: F, target: F, delta: F) -> None:
    setting = setting_of(voters, r, shift, target, delta)
    model = full_problem(setting, np.ones(setting.middle)).assemble().rows
    found = model.matrix.toarray()
    assert found.shape == (full_size(setting), setting.middle)
    exact = []
    for here, there in pmfs(voters, r, shift):
        f = [a - target * b for a, b in zip(here, there, strict=True)]
        upper = [f[i] - f[voters - i] for i in range(setting.middle, voters + 1)]
        exact.append([float(x / (target - 1 + 2 * delta)) for x in upper])
    # Each multiset has its own row, in an order that means nothing: rows are matched.
    apart = np.abs(found[:, None, :] - np.array(exact)[None, :, :]).max(axis=2)
    assert apart.min(axis=1).max() < 1e-12
    assert apart.min(axis=0).max() < 1e-12


@pytest.mark.parametrize(("voters", "m", "shift"), [(9, 2, 0.0), (3, 1, 1e-2), (5, 2, 1e-3)])
def test_the_optimum_is_private_and_that_of_the_family(voters: int, m: int, shift: float) -> None:
    setting = Majority(voters, 0.3, m, shift, m * shift)
    weights = majority.surrogate_weights(voters).values
    found = solve(full_problem(setting, weights))
    family = solve(majority.gamma_problem(setting, weights))
    assert found.objective == pytest.approx(family.objective, abs=1e-9)
    upper = found["gamma"]
    check = check_full(setting, np.concatenate([upper[::-1], upper]))
    assert check.excess <= 1e-9 * setting.budget + check.rounding
