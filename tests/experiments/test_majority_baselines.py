import math
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest

from dpopt import Majority
from experiments.majority import baselines
from experiments.majority.full_set import check_full


def by_subsets(k: int, size: int) -> list[float]:
    """2 Pr[majority of a random subset is 1] - 1 above the middle, by listing the subsets."""
    gamma = []
    for ones in range(k + 1):
        votes = [1] * ones + [0] * (k - ones)
        wins = F(0)
        subsets = list(combinations(votes, size))
        for subset in subsets:
            wins += F(1) if 2 * sum(subset) > size else F(2 * sum(subset) == size, 2)
        gamma.append(float(abs(2 * wins / len(subsets) - 1)))
    return gamma


@pytest.mark.parametrize(("k", "size"), [(5, s) for s in range(1, 6)] + [(9, 3), (9, 4), (11, 6)])
def test_subsampling_is_the_majority_of_a_subset(k: int, size: int) -> None:
    np.testing.assert_allclose(baselines.subsampling(k, size), by_subsets(k, size), atol=1e-14)


def test_double_subsampling_takes_2m_minus_1() -> None:
    np.testing.assert_array_equal(baselines.double_subsampling(11, 3), baselines.subsampling(11, 5))
    np.testing.assert_array_equal(baselines.double_subsampling(11, 6), np.ones(12))
    np.testing.assert_array_equal(baselines.double_subsampling(11, 9), np.ones(12))


@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_baselines_are_private_over_the_paper_s_set(m: int, epsilon: float) -> None:
    setting = Majority(11, epsilon, m)
    for gamma in (
        baselines.subsampling(11, m),
        baselines.double_subsampling(11, m),
        baselines.constant(setting),
    ):
        check = check_full(setting, gamma)
        assert check.excess <= check.rounding


def test_constant_is_the_printed_formula() -> None:
    setting = Majority(11, 0.1, 3, 1e-5, 3e-5)
    tau, lam, r = 14.0328, 0.1003, math.exp(0.3)
    t = math.exp(tau * 0.1)
    printed = (r - 1 + 2 * 3e-5) / (2 * (t - r + (1 + r) * lam) / (t + 1) + r - 1)
    assert baselines.constant(setting, tau, lam)[0] == pytest.approx(printed, rel=1e-13)
    assert np.ptp(baselines.constant(setting)) == 0.0
