import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import Guarantee, Majority, ParameterError, SolverError, majority, solve, verify
from dpopt.majority import UniformPrior
from experiments.majority import baselines


@pytest.mark.parametrize(
    ("k", "m", "surrogate", "ours", "double", "sub"),
    [
        (11, 3, 0.0377, 0.0154, 0.0673, 0.0952),
        (11, 1, 0.131, 0.121, 0.131, 0.131),
        (11, 5, 0.00098, 0.00015, 0.0209, 0.0673),
        (35, 10, 0.0035, 0.000045, 0.0558, 0.1003),
        (101, 10, 0.0348, 0.0065, 0.1149, 0.140),
        (101, 20, 0.0037, 0.0000020, 0.079, None),
    ],
)
def test_reference_errors_under_the_uniform_prior(
    k: int, m: int, surrogate: float, ours: float, double: float, sub: float | None
) -> None:
    setting = Majority(k, 0.1, m, prior=UniformPrior())
    found = [
        (surrogate, dpopt.design(replace(setting, objective="surrogate"))),
        (ours, dpopt.design(setting)),
        (double, majority.assess(setting, baselines.double_subsampling(k, m))),
        (sub, majority.assess(setting, baselines.subsampling(k, m))),
    ]
    for error, design in found:
        assert error is None or design.expected_error == pytest.approx(error, rel=0.03)


@pytest.mark.slow
@given(st.floats(0.05, 1.5), st.floats(0.3, 4.0), st.floats(1.0, 1.5))
def test_the_optimum_grows_with_the_allowance(epsilon: float, m: float, factor: float) -> None:
    less, more = (
        dpopt.design(Majority(7, epsilon, allowance, objective="surrogate"))
        for allowance in (m, m * factor)
    )
    assert more.value >= less.value - 1e-9
    assert less.private


@pytest.mark.parametrize(("epsilon", "m"), [(1e-4, 1.0), (5.0, 2.0), (30.0, 11.0), (0.5, 0.01)])
def test_extreme_parameters_are_solved_and_private(epsilon: float, m: float) -> None:
    design = dpopt.design(dpopt.Majority(11, epsilon, m))
    assert design.private
    assert np.all(design.gamma >= 0)
    assert np.all(design.gamma <= 1)


def test_own_weights() -> None:
    weights = [0.0, 1.0, 0.0]
    design = dpopt.design(
        dpopt.Majority(5, np.log(9 / 4), np.log(2) / np.log(9 / 4), coefficients=weights)
    )
    assert design.value == pytest.approx(0.9354298401, abs=1e-9)


def test_own_program_with_monotone_gamma() -> None:
    setting = Majority(11, 0.1, 3)
    problem = majority.gamma_problem(setting, majority.surrogate_weights(11).values)
    problem.add_rows("monotone", {"gamma": np.diff(np.eye(6), axis=0)}, lower=0.0)
    solution = solve(problem)
    assert solution.objective < 0.424366
    design = majority.assess(setting, solution["gamma"], repair=True)
    assert design.private
    assert np.all(np.diff(design.gamma[6:]) >= -1e-9)


def test_repair_scales_a_broken_gamma_to_the_edge() -> None:
    setting = Majority(3, 0.5, 1)
    repaired = majority.assess(setting, np.ones(4), repair=True)
    assert repaired.certificate is not None
    assert 0 <= float(repaired.certificate.slack) < 1e-14
    assert 0 < repaired.gamma[0] < 1
    np.testing.assert_allclose(repaired.gamma, repaired.gamma[0], rtol=1e-15)


@pytest.mark.parametrize(("allowance", "delta"), [(1e-300, 0.0), (1e-12, 1e-20), (1e-19, 5e-324)])
def test_repair_of_a_target_below_the_units_of_gamma_is_a_fair_coin(
    allowance: float, delta: float
) -> None:
    repaired = majority.assess(Majority(3, 0.5, allowance, 0.0, delta), [1, 1], repair=True)
    assert repaired.private
    # One unit of 2^-62 is more than such a target allows; a smaller allowance, all the more.
    assert max(repaired.gamma) <= 4 * allowance


def test_a_time_limit_raises() -> None:
    with pytest.raises(SolverError) as caught:
        dpopt.design(dpopt.Majority(11, 0.1, 3), time_limit=0.0)
    assert caught.value.status == "time_limit"


def test_derived_numbers() -> None:
    setting = Majority(11, 0.1, 3, 1e-3, 2e-3)
    assert setting.middle == 6
    assert setting.guarantee == Guarantee(0.1 * 3, 2e-3)
    assert setting.budget == pytest.approx(math.exp(0.3) - 1 + 4e-3, rel=1e-14)


def test_corners_are_extreme_points_of_both_privacy_constraints() -> None:
    setting, r = Majority(3, 0.7, 1, 0.05, 0.05), math.exp(0.7)
    b, c = setting.corner("bc")
    assert b + c == pytest.approx(1, abs=1e-15)
    assert b == pytest.approx(r * c + 0.05, rel=1e-14)
    corners = [setting.corner(name) for name in ("cb", "1m", "0D")]
    assert corners == [(c, b), (1.0, 0.95), (0.0, 0.05)]


@pytest.mark.parametrize(
    ("voters", "shift", "most"), [(4003, 0.0, 4001), (503, 1e-6, 501)], ids=["pure", "Delta"]
)
def test_more_voters_than_can_be_decided_are_refused(voters: int, shift: float, most: int) -> None:
    setting = Majority(most, 0.1, 3, shift, shift)
    with pytest.raises(ParameterError, match=f"voters is {voters}; every constraint"):
        Majority(voters, 0.1, 3, shift, shift)
    with pytest.raises(verify.Malformed):
        verify.allowed("majority", {**setting.to_dict(), "voters": voters})
