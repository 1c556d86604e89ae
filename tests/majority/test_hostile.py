"""Malformed arguments of the public functions: one sentence each, never another error."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpopt import majority
from dpopt.majority import (
    BetaPrior,
    CommonPrior,
    UniformPrior,
)


def test_narrow_intervals_keep_their_weights() -> None:
    # At p = 1/2, C(3, 2) / 8 = C(3, 3) / 8 * 3: the weights' slope in p, from the binomial.
    width = 1e-8
    prior = CommonPrior(UniformPrior(((0.5, 0.5 + width),)))
    values = majority.expected_error_weights(3, prior).values
    slope = np.array([1.5, 1.5]) / 4  # d/dp of 1/2 (alpha_l - alpha_{3-l}) at 1/2, over 2
    np.testing.assert_allclose(values, slope * width, rtol=1e-6)
    assert majority.design(3, 0.1, 1, prior=prior).expected_error > 0


@pytest.mark.parametrize("shape", [99.0, 101.0, 600.0, 1e4])
def test_peaked_beta_priors(shape: float) -> None:
    weights = majority.expected_error_weights(11, BetaPrior(shape, shape))
    assert np.all(np.isfinite(weights.values))
    # With (alpha_l - alpha_{K-l}) / 2 linear in sum p - K/2 next to p = 1/2: a normal's mean.
    deviation = np.sqrt(11 / (4 * (2 * shape + 1)))
    chance = Fraction(sum((2 * ones - 11) * comb(11, ones) for ones in range(6, 12)), 11 * 2**10)
    expected = float(chance) * np.sqrt(2 / np.pi) * deviation
    assert weights.values.sum() == pytest.approx(expected, rel=0.02)
