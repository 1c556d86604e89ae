import math
from fractions import Fraction as F
from math import comb

import numpy as np
import pytest

from dpopt import majority
from dpopt.majority import MajoritySetting, check_full, full_size
from tests.majority.brute import worst_excess


def setting_of(voters: int, r: F, shift: F, target: F, delta: F) -> MajoritySetting:
    epsilon = math.log(r)
    return MajoritySetting(voters, epsilon, math.log(target) / epsilon, float(shift), float(delta))


@pytest.mark.parametrize(
    ("upper", "r", "shift", "target", "delta"),
    [
        ([F(1, 3), F(1)], F(5, 4), F(0), F(3, 2), F(0)),
        ([F(1), F(1)], F(5, 4), F(0), F(3, 2), F(0)),
        ([F(1, 2), F(0)], F(5, 4), F(1, 50), F(3, 2), F(1, 20)),
        ([F(1, 7), F(6, 7)], F(9, 4), F(1, 5), F(9, 4), F(1, 4)),
        ([F(1, 7), F(1), F(2, 3)], F(9, 4), F(0), F(2), F(0)),
        ([F(0), F(0)], F(9, 4), F(1, 5), F(9, 4), F(1, 4)),
    ],
)
def test_excess_is_the_definition_s(upper: list[F], r: F, shift: F, target: F, delta: F) -> None:
    gamma = [*upper[::-1], *upper]
    voters = len(gamma) - 1
    exact = worst_excess(gamma, r, shift, target, delta)
    found = check_full(
        setting_of(voters, r, shift, target, delta), np.array([float(g) for g in gamma])
    )
    assert found.excess == pytest.approx(float(exact), abs=found.rounding)
    assert found.constraints_checked == comb(voters + (7 if shift else 3), 7 if shift else 3)
    assert sum(found.worst.values()) == voters


def test_epsilon_spent_is_where_the_excess_vanishes() -> None:
    gamma = np.array([0.9, 0.4, 0.4, 0.9])
    setting = MajoritySetting(3, 0.5, 2.0, 0.01, 0.02)
    spent = check_full(setting, gamma).epsilon
    assert spent is not None
    at = MajoritySetting(3, 0.5, spent / 0.5, 0.01, 0.02)
    assert check_full(at, gamma).excess == pytest.approx(0, abs=1e-13)


def test_majority_itself_spends_k_epsilon_for_k_voters_at_most() -> None:
    setting = MajoritySetting(5, 0.3, 5)
    check = check_full(setting, np.ones(6))
    assert check.excess == 0.0
    assert check.epsilon is not None
    assert check.epsilon < 5 * 0.3


def test_a_broken_gamma_is_refused_and_the_voters_named() -> None:
    setting = MajoritySetting(3, 0.5, 1)
    broken = majority.assess(setting, np.ones(4))
    assert not broken.private
    assert broken.check is not None
    assert broken.check.excess == pytest.approx(broken.worst_violation, rel=1e-12)
    assert broken.worst_violation is not None
    assert broken.worst_violation > 0.01
    assert sum(broken.check.worst.values()) == 3


def test_sizes_of_the_paper_s_set() -> None:
    assert full_size(MajoritySetting(11, 0.1, 3, 1e-5, 1e-5)) == 31_824
    assert full_size(MajoritySetting(41, 0.1, 3, 1e-5, 1e-5)) == 73_629_072
    assert full_size(MajoritySetting(101, 0.1, 3)) == 182_104
