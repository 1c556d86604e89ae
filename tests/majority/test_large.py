"""Large majorities: optima against those without initial rows, and designs that are proved."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpopt
from dpopt import Majority
from dpopt.lp import loop, solve
from tests.majority.brute import ONE, chances, voters, weights

Numbers = tuple[int, float, float, float, float]

# Optima of the program over all rows by HiGHS's dual simplex, to a duality gap of 1e-11.
REFERENCES = [
    pytest.param(501, 1, 0.25000013757340506, marks=pytest.mark.nightly),
    (501, 10, 0.49950780022442937),
    (501, 100, 0.5000000025579272),
]


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "allowance", "best"), REFERENCES)
def test_values_are_those_without_initial_rows(voters: int, allowance: float, best: float) -> None:
    setting = Majority(voters, 0.1, allowance, objective="surrogate")
    solution = solve(setting.problem())
    assert solution.objective == pytest.approx(best, abs=1e-9)
    assert solution.gap <= 1e-9
    assert solution.residual <= 1e-9


@pytest.mark.parametrize("objective", ["mean", "surrogate"])
def test_initial_rows_change_no_optimum(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Majority(101, 0.1, 3, objective=objective)  # pyright: ignore[reportArgumentType]
    without = solve(setting.problem())
    monkeypatch.setattr(loop, "_LEAST_INITIAL", 1)
    found = solve(setting.problem())
    assert found.objective == pytest.approx(without.objective, abs=1e-9)
    assert found.rounds < without.rounds


# (K, epsilon, m, Delta, delta): their optima have thousands of constraints within rounding, or rows
# that the solver holds up to rounding while others are not priced yet.
SHIFTED = [
    (75, 2.0, 3.0, 1e-5, 1e-5),
    (75, 2.0, 1.5, 1e-6, 2.5e-5),
    (75, 0.5, 2.0, 1e-10, 1e-10),
    (75, 0.1, 5.0, 1e-10, 1e-10),
    (101, 2.0, 2.0, 1e-6, 2e-6),
    (151, 1.0, 7.5568, 0.01, 0.01),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(numbers, marks=[pytest.mark.nightly] * (i > 2))
        for i, numbers in enumerate(SHIFTED)
    ],
    ids=str,
)
def test_voters_with_delta_are_designed_and_proved(numbers: Numbers) -> None:
    design = dpopt.design(Majority(*numbers))
    assert design.certificate is not None
    assert design.certificate.slack >= 0
    assert design.gap is not None
    assert abs(design.gap) < 1e-9


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("numbers", SHIFTED[:1], ids=str)
def test_no_multiset_of_the_walk_is_beyond_the_budget(numbers: Numbers) -> None:
    """Every multiset one by one, which neither the solve nor the screen looks at."""
    design = dpopt.design(Majority(*numbers))
    verdict = voters(design.setting).private(chances(weights(design.table)), 2 * ONE)
    assert design.certificate is not None
    assert verdict.rows == design.certificate.constraints
    assert 0 <= design.certificate.slack <= verdict.slack + Fraction(1, 10**12)


@pytest.mark.parametrize(("k", "epsilon", "m"), [(201, 2.0, 50.0), (501, 2.0, 50.0)])
def test_targets_beyond_the_bits_of_gamma(k: int, epsilon: float, m: float) -> None:
    """Rows of e^-100 are below a unit of the table, whose totals are exact all the same."""
    design = dpopt.design(dpopt.Majority(k, epsilon, m))
    assert design.certificate is not None
    assert design.gamma.min() >= 1 - 1e-9
