"""The binary profile with replacement against exact sums."""

from __future__ import annotations

import itertools
import math
from functools import partial

import mpmath
import numpy as np
import pytest

from tests.smoothed import laws
from tests.smoothed.laws import assert_logs

DIGITS = 50

log_delta_at = partial(laws.log_delta_at, again=True)
log_divergence = partial(laws.log_divergence, again=True)
log_profile = partial(laws.log_profile, again=True)


def binomial_weights(records, drawn, ones):
    """n^T Pr[h], h = 0, ..., T, as integers."""
    zeros = records - ones
    return [math.comb(drawn, h) * ones**h * zeros ** (drawn - h) for h in range(drawn + 1)]


def hockey_stick(p, q, factor):
    return mpmath.fsum(a - factor * b for a, b in zip(p, q, strict=True) if a > factor * b)


def profile_by_definition(records, drawn, epsilon):
    factor = mpmath.exp(mpmath.mpf(epsilon)) if epsilon else 1
    laws = [binomial_weights(records, drawn, h) for h in range(records + 1)]
    pairs = [
        max(hockey_stick(p, q, factor), hockey_stick(q, p, factor))
        for p, q in itertools.pairwise(laws)
    ]
    scale = mpmath.mpf(records) ** drawn
    edges = zip([*pairs, mpmath.mpf(0)], [mpmath.mpf(0), *pairs], strict=True)
    return [max(edge) / scale for edge in edges]


@pytest.mark.parametrize("records", [1, 2, 3, 4, 9, 24, 60])
@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 0.05, 0.5, math.log(2), 3.0, 40.0, 1000.0])
def test_profile_is_the_largest_hockey_stick_of_all_neighbours(records, epsilon):
    with mpmath.workdps(DIGITS):
        for drawn in sorted({1, (records + 1) // 2, records}):
            exact = profile_by_definition(records, drawn, epsilon)
            logs = log_profile(records, drawn, epsilon)
            assert_logs(logs, exact, 2e-14)
            at = log_delta_at(records, drawn, epsilon, np.arange(records + 1))
            np.testing.assert_allclose(at, logs, rtol=1e-14, atol=1e-14)


def test_more_draws_than_records():
    with mpmath.workdps(DIGITS):
        for epsilon in (0.0, 1.0, 10.0):
            exact = profile_by_definition(5, 83, epsilon)
            assert_logs(log_profile(5, 83, epsilon), exact, 2e-14)


def test_divergence_is_one_direction():
    records, drawn, epsilon = 21, 13, 0.4
    with mpmath.workdps(DIGITS):
        factor, scale = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(records) ** drawn
        laws = [binomial_weights(records, drawn, h) for h in range(records + 1)]
        ahead = [hockey_stick(laws[h + 1], laws[h], factor) / scale for h in range(records)]
        back = [hockey_stick(laws[h], laws[h + 1], factor) / scale for h in range(records)]
        logs = log_divergence(records, drawn, epsilon, np.arange(records))
        assert_logs(logs, ahead, 2e-14)
        assert_logs(logs[::-1], back, 2e-14)


def divergence_by_definition(records, drawn, epsilon, ones):
    """D(H + 1 || H) from both laws at every count from the threshold up, in mpmath."""
    p, q = mpmath.mpf(ones + 1) / records, mpmath.mpf(ones) / records
    factor = mpmath.exp(mpmath.mpf(epsilon))
    fall = mpmath.log((1 - q) / (1 - p))
    h = max(0, int(mpmath.floor((epsilon + drawn * fall) / (fall + mpmath.log(p / q)))) - 1)
    if h > drawn:
        return mpmath.mpf(0)
    ways = mpmath.loggamma(drawn + 1) - mpmath.loggamma(h + 1) - mpmath.loggamma(drawn - h + 1)
    first = mpmath.exp(ways + h * mpmath.log(p) + (drawn - h) * mpmath.log(1 - p))
    other = mpmath.exp(ways + h * mpmath.log(q) + (drawn - h) * mpmath.log(1 - q))
    total = mpmath.mpf(0)
    while h <= drawn:
        if first > factor * other:
            total += first - factor * other
            if first * drawn < total * mpmath.mpf(10) ** -15:
                break
        first *= p / (1 - p) * (drawn - h) / (h + 1)
        other *= q / (1 - q) * (drawn - h) / (h + 1)
        h += 1
    return total


@pytest.mark.parametrize("drawn", [1000, 250_000, 600_000])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.04, 0.5])
def test_sampled_cells_of_half_a_million_records(drawn, epsilon):
    records = 500_000
    ones = np.array([1, 30, 5_000, 250_000, 499_998])
    with mpmath.workdps(DIGITS):
        exact = [divergence_by_definition(records, drawn, epsilon, int(h)) for h in ones]
        assert_logs(log_divergence(records, drawn, epsilon, ones), exact, 1e-11)


def test_ten_million_records():
    ones = np.array([20_000, 5_000_000])
    with mpmath.workdps(DIGITS):
        exact = [divergence_by_definition(10**7, 10**7, 1e-3, int(h)) for h in ones]
        assert_logs(log_divergence(10**7, 10**7, 1e-3, ones), exact, 1e-11)


@pytest.mark.parametrize(("records", "drawn"), [(1, 1), (7, 3), (1000, 998), (10**9, 10**7)])
@pytest.mark.parametrize("epsilon", [0.0, 2.0, 800.0])
def test_a_single_category_is_given_away_by_the_record_s_own_draws(records, drawn, epsilon):
    delta = math.exp(log_delta_at(records, drawn, epsilon, np.array([0]))[0])
    chance = 1.0 if records == 1 else -math.expm1(drawn * math.log1p(-1 / records))
    assert delta == pytest.approx(chance, rel=1e-13)
