from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import (
    NotPrivateError,
    SolverError,
    Status,
    majority,
    solve,
)
from dpopt.majority import MajoritySetting, UniformPrior


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
    setting = MajoritySetting(k, 0.1, m, prior=UniformPrior())
    found = {
        surrogate: dpopt.design(replace(setting, objective="surrogate")).expected_error,
        ours: dpopt.design(setting).expected_error,
        double: majority.assess(setting, majority.double_subsampling(k, m)).expected_error,
    }
    if sub is not None:
        found[sub] = majority.assess(setting, majority.subsampling(k, m)).expected_error
    for known, value in found.items():
        assert value == pytest.approx(known, rel=0.03)


@pytest.mark.parametrize("objective", ["expected-error", "surrogate"])
@pytest.mark.parametrize("shift", [0.0, 1e-5])
def test_a_design_is_private_and_optimal(objective: str, shift: float) -> None:
    design = majority.design(
        11, 0.1, 3, mechanism_delta=shift, delta=3 * shift, objective=objective
    )
    assert design.private
    assert design.gap is not None
    assert abs(design.gap) < 1e-9
    assert design.solution is not None
    assert design.solution.status is Status.OPTIMAL


def test_the_reduced_set_is_decided_and_counted() -> None:
    design = majority.design(25, 0.1, 3, mechanism_delta=1e-5, delta=3e-5)
    assert design.certificate is not None
    assert design.certificate.constraints == majority.reduced_size(design.setting)


@pytest.mark.slow
@given(st.floats(0.05, 1.5), st.floats(0.3, 4.0), st.floats(1.0, 1.5))
def test_the_optimum_grows_with_the_allowance(epsilon: float, m: float, factor: float) -> None:
    less = majority.design(7, epsilon, m, objective="surrogate")
    more = majority.design(7, epsilon, m * factor, objective="surrogate")
    assert less.value is not None
    assert more.value is not None
    assert more.value >= less.value - 1e-9
    assert less.private


@pytest.mark.parametrize(("epsilon", "m"), [(1e-4, 1.0), (5.0, 2.0), (30.0, 11.0), (0.5, 0.01)])
def test_extreme_parameters_are_solved_and_private(epsilon: float, m: float) -> None:
    design = majority.design(11, epsilon, m)
    assert design.private
    assert np.all(design.gamma >= 0)
    assert np.all(design.gamma <= 1)


def test_own_weights() -> None:
    weights = [0.0, 1.0, 0.0]
    design = majority.design(5, np.log(9 / 4), np.log(2) / np.log(9 / 4), coefficients=weights)
    assert design.value == pytest.approx(0.9354298401, abs=1e-9)


def test_own_program_with_monotone_gamma() -> None:
    setting = MajoritySetting(11, 0.1, 3)
    problem = majority.gamma_problem(setting, majority.surrogate_weights(11).values)
    problem.add_rows("monotone", {"gamma": np.diff(np.eye(6), axis=0)}, lower=0.0)
    solution = solve(problem)
    assert solution.objective < 0.424366
    design = majority.assess(setting, solution["gamma"], repair=True)
    assert design.private
    assert np.all(np.diff(design.gamma[6:]) >= -1e-9)


def test_repair_scales_a_broken_gamma_to_the_edge() -> None:
    setting = MajoritySetting(3, 0.5, 1)
    repaired = majority.assess(setting, np.ones(4), repair=True)
    assert repaired.certificate is not None
    assert 0 <= float(repaired.certificate.slack) < 1e-14
    assert 0 < repaired.gamma[0] < 1
    np.testing.assert_allclose(repaired.gamma, repaired.gamma[0], rtol=1e-15)


@pytest.mark.parametrize(("allowance", "delta"), [(1e-300, 0.0), (1e-12, 1e-20), (1e-19, 5e-324)])
def test_repair_of_a_target_below_the_units_of_gamma_is_a_fair_coin(
    allowance: float, delta: float
) -> None:
    repaired = majority.assess(MajoritySetting(3, 0.5, allowance, 0.0, delta), [1, 1], repair=True)
    assert repaired.verdict == "private"
    # One unit of 2^-62 is more than such a target allows; a smaller allowance, all the more.
    assert max(repaired.gamma) <= 4 * allowance


def test_release_of_one_query_is_an_int() -> None:
    design = majority.design(3, 0.5, 2)
    assert design.release([1, 1, 0]) in (0, 1)
    assert isinstance(design.release([1, 1, 0]), int)
    assert isinstance(design.simulate([1, 1, 0], np.random.default_rng(0)), int)


def test_release_refuses_a_gamma_that_is_not_private() -> None:
    broken = majority.assess(MajoritySetting(3, 0.5, 1), np.ones(4))
    with pytest.raises(NotPrivateError, match="voters at b") as caught:
        broken.release([1, 1, 0])
    assert caught.value.output == "1"
    assert caught.value.excess > 0.1
    assert len(caught.value.inputs) == 2


def test_a_time_limit_raises() -> None:
    with pytest.raises(SolverError) as caught:
        majority.design(11, 0.1, 3, time_limit=0.0)
    assert caught.value.status == "time_limit"
