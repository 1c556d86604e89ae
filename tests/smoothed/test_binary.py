"""The binary profile and the adversary's utility against exact sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from experiments.smoothed.utility import log_utility_at
from tests import oracles
from tests.smoothed import pmfs
from tests.smoothed.pmfs import (
    assert_logs,
    divergence_by_definition,
    log_choose,
    log_delta_at,
    log_divergence,
    log_profile,
)

DIGITS = 50
ELECTION_1920 = (16144093, 9139661)


def exact_deltas(records, drawn, epsilon):
    """delta of every database, in fractions; beyond e^700 a ratio makes no difference."""
    ratio = oracles.exponential(min(epsilon, 700.0))
    return pmfs.profile(records, drawn, 2, ratio).values()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("records", [1, 2, 3, 5, 12, 33, 60])
@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 0.1, 1.0, math.log(3), 3.0, 8.0, 700.0, 5000.0])
def test_profile_is_the_largest_hockey_stick_of_all_neighbours(records, epsilon):
    with mpmath.workdps(DIGITS):
        for drawn in sorted({1, records // 2, records - 2, records - 1, records} - {0, -1}):
            logs = log_profile(records, drawn, epsilon)
            assert_logs(logs, exact_deltas(records, drawn, epsilon), 2e-14)
            at = log_delta_at(records, drawn, epsilon, np.arange(records + 1))
            np.testing.assert_allclose(at, logs, rtol=1e-14, atol=1e-14)


def test_a_divergence_is_zero_only_if_no_count_exceeds():
    # G = 2, L = 2, n = 3: all that is left is one count with ratio b/a = k (n + 1 - G)/(G (L+1-k)).
    assert log_divergence(3, 1, 0.69, np.array([1]))[0] > -np.inf
    assert log_divergence(3, 1, 0.70, np.array([1]))[0] == -np.inf


def mean_deviation(records, drawn, ones):
    """D(H + 1 || H) at epsilon = 0 in closed form: the tail sum telescopes to one term."""
    held, lost = ones + 1, records - drawn
    k = held * (lost + 1) // (records + 1)
    if k * (records + 1) == held * (lost + 1) and k > 0:
        k -= 1
    pmf = log_choose(held, k) + log_choose(records + 1 - held, lost + 1 - k)
    pmf -= log_choose(records + 1, lost + 1)
    scale = mpmath.mpf(records + 1) / ((lost + 1) * held * (records + 1 - held))
    return mpmath.exp(pmf) * scale * (held - k) * (lost + 1 - k)


@pytest.mark.parametrize("records", [50, 500_000, 10**9])
@pytest.mark.parametrize("share", [0.5, 0.998])
def test_total_variation_has_a_closed_form(records, share):
    drawn = round(share * records)
    ones = np.array([0, 1, records // 100, records // 4, records // 2, records - 1])
    with mpmath.workdps(DIGITS):
        exact = [mean_deviation(records, drawn, int(h)) for h in ones]
        assert_logs(log_divergence(records, drawn, 0.0, ones), exact, 1e-11)


def delta_by_definition(records, drawn, epsilon, ones):
    near = [ones, records - 1 - ones, ones - 1, records - ones]
    return max(
        divergence_by_definition(records, drawn, epsilon, h) for h in near if 0 <= h < records
    )


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("share", [0.998, 0.9, 0.5, 0.01])
@pytest.mark.parametrize("epsilon", [0.04, 0.5, 2.0, 7.0])
def test_sampled_cells_of_half_a_million_records(share, epsilon):
    records = 500_000
    drawn = round(share * records)
    seed = round(1e4 * share) + round(100 * epsilon)
    drawn_ones = np.random.default_rng(seed).integers(0, records + 1, 2)
    ones = np.concatenate([[0, 1, 700, 125_000, 250_000, 499_999], drawn_ones])
    with mpmath.workdps(DIGITS):
        exact = [delta_by_definition(records, drawn, epsilon, int(h)) for h in ones]
        assert_logs(log_delta_at(records, drawn, epsilon, ones), exact, 1e-11)


def test_logarithms_of_a_hundred_thousand_and_more():
    ones = np.array([200_000, 250_000, 300_000])
    logs = log_delta_at(500_000, 250_000, 2.0, ones)
    assert np.all(logs < -1e5)
    with mpmath.workdps(DIGITS):
        for log_value, h in zip(logs, ones, strict=True):
            exact = mpmath.log(delta_by_definition(500_000, 250_000, 2.0, int(h)))
            assert abs(log_value - exact) <= 2 * np.spacing(abs(log_value))


@pytest.mark.parametrize("records", [10**9, 10**10])
def test_billions_of_records(records):
    drawn, h = records - records // 500, records // 3
    for epsilon in (0.02, 0.3):
        log_value = log_divergence(records, drawn, epsilon, np.array([h]))[0]
        with mpmath.workdps(DIGITS):
            exact = mpmath.log(divergence_by_definition(records, drawn, epsilon, h))
            assert abs(log_value - exact) <= 1e-11 + np.spacing(abs(log_value))


def pair_utility_in_sums(records, drawn, threshold, ones):
    """The adjusted utility of the pair {H, H + 1} from both pmfs, 15 deviations wide, in mpmath."""
    held, lost = ones + 1, records - drawn
    share = held / records
    mean, width = lost * share, 15 * math.sqrt(lost * share * (1 - share)) + 30
    low = max(0, lost - (records - held), math.floor(mean - width))
    high = min(lost, held, math.ceil(mean + width))
    ways = log_choose(records, lost)
    one = mpmath.exp(log_choose(held, low) + log_choose(records - held, lost - low) - ways)
    gains = [mpmath.mpf(0), mpmath.mpf(0)]
    for k in range(low, high + 1):
        zero = one * k * (records - ones) / ((ones + 1) * (lost - k + 1))
        gain = max(one, zero) / (one + zero) - mpmath.mpf(threshold)
        if gain > 0:
            gains[0] += zero * gain
            gains[1] += one * gain
        one *= mpmath.mpf(held - k) * (lost - k)
        one /= mpmath.mpf(k + 1) * (records - held - lost + k + 1)
    return max(gains) / (1 - mpmath.mpf(threshold))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("records", "drawn", "threshold", "ones"),
    [
        (3000, 2700, 0.51, 1000),
        (500_000, 499_000, 0.6, 250_000),
        (500_000, 499_000, 0.75, 400_000),
        (sum(ELECTION_1920), 25233186, 0.51, ELECTION_1920[0]),
    ],
)
def test_utility_of_many_records(records, drawn, threshold, ones):
    with mpmath.workdps(DIGITS):
        pairs = [
            pair_utility_in_sums(records, drawn, threshold, h)
            for g in (ones, records - ones)
            for h in (g - 1, g)
        ]
        # Exchanging ones and zeros changes nothing, hence the middle pairs of both counts agree.
        assert abs(pairs[0] - pairs[3]) <= pairs[3] * mpmath.mpf(10) ** -20
        logs = log_utility_at(records, drawn, threshold, np.array([ones]))
        assert_logs(logs, [max(pairs)], 1e-11)
