"""Profiles, smoothed delta, its inverse and DP, through the public names."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpopt import smoothed
from dpopt.prob.histograms import dropping_loss
from dpopt.smoothed import delta as delta_module
from experiments.smoothed.utility import adversary_utility
from tests.smoothed.pmfs import KernelMechanism

DC, NE_3 = 18586 / 335909, 222179 / 288033
DISTRICTS = [DC, 0.4666, NE_3]


@pytest.mark.parametrize(
    ("n", "drawn", "epsilon", "ones", "known"),
    [
        (200, 160, 1.0, 100, 4.993893946215e-05),
        (1000, 998, 1.0, 500, 2.497497497497e-01),
        (10000, 9980, 0.5, 5000, 3.641183721535e-02),
        (500000, 499000, 2.0, 250000, 3.258418755669e-147),
        (500000, 499000, 2.0, 125000, 1.864391603702e-72),
    ],
)
def test_reference_profiles(n: int, drawn: int, epsilon: float, ones: int, known: float) -> None:
    mechanism = smoothed.SamplingHistogram(n, drawn)
    one = smoothed.privacy_profile(mechanism, epsilon, (ones, n - ones))
    assert one.delta[0] == pytest.approx(known, rel=5e-13)
    assert one.log10_delta[0] == pytest.approx(math.log10(known), abs=1e-12)


def test_the_elections_of_2020_and_1920() -> None:
    epsilon = math.log(51 / 49)
    mechanism = smoothed.SamplingHistogram.of_lost_rate(155485078, "0.002")
    assert mechanism.drawn == round(0.998 * 155485078)
    votes = (81268924, 74216154)
    one = smoothed.privacy_profile(mechanism, epsilon, votes)
    assert one.delta[0] == pytest.approx(1.207812712909e-32, rel=1e-12)
    utility = adversary_utility(mechanism, 0.51, votes)
    assert math.exp(utility) == pytest.approx(1.123258997447e-32, rel=1e-12)
    votes = (16144093, 9139661)
    mechanism = smoothed.SamplingHistogram(sum(votes), round(0.998 * sum(votes)))
    one = smoothed.privacy_profile(mechanism, epsilon, votes)
    assert one.delta[0] == pytest.approx(1.638398645075e-08, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "epsilon", "known"),
    [(100_000, 1.0, 1.90155846356e-03), (500_000, 2.0, 1.25696234591e-17)],
)
def test_reference_smoothed_deltas(n: int, epsilon: float, known: float) -> None:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(n, 0.002)
    found = smoothed.smoothed_delta(mechanism, epsilon, DISTRICTS)
    assert found.delta == pytest.approx(known, rel=2e-11)
    assert found.certified
    assert found.argmax[1] == 0
    assert sum(found.argmax) == n
    assert found.dp_delta == pytest.approx(0.998, rel=1e-15)
    assert found.certificate.log_bound >= found.log_delta
    assert found.certificate.slack >= 0.0
    assert found.certificate.compositions == n + 1


def test_the_maximum_may_lie_inside() -> None:
    mechanism = smoothed.SamplingHistogram(36, 34)
    found = smoothed.smoothed_delta(mechanism, 0.0, [0.6, 0.4])
    assert found.argmax == (18, 18)
    assert found.certified
    assert found.delta == pytest.approx(0.478070349009, abs=1e-12)
    end = smoothed.smoothed_delta(mechanism, 0.0, [0.6])
    assert end.delta == pytest.approx(0.477756536586, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
def test_no_delta_is_above_one(epsilon: float) -> None:
    """Of 1,000 draws of four records nearly every one shows all of them."""
    mechanism = smoothed.SamplingHistogram(4, 1000, 3, replacement=True)
    for asked in ((0, 1, 3), None):
        found = smoothed.privacy_profile(mechanism, epsilon, asked).log_delta
        assert np.all(found <= 0.0)
        assert found == pytest.approx(0.0, abs=1e-11)


def test_no_epsilon_suffices_where_a_category_may_be_absent() -> None:
    mechanism = smoothed.SamplingHistogram(5, 4)
    found = smoothed.smoothed_epsilon(mechanism, 1e-6, [0.5])
    assert (found.epsilon, found.lower, found.at.epsilon) == (math.inf, 700.0, 700.0)
    at_once = smoothed.smoothed_epsilon(mechanism, 0.9, [0.5])
    assert (at_once.epsilon, at_once.lower, at_once.at.epsilon) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("delta", "tolerance", "bracket"),
    # It is 2.0172 for 1e-3.
    [(1e-3, 0.5, (2.0, 2.5)), (1e-3, 0.4, (2.0, 2.25)), (1e-3, 4.0, (2.0, 4.0))],
)
def test_the_bracket_is_halved_down_to_the_tolerance(
    delta: float, tolerance: float, bracket: tuple[float, float]
) -> None:
    mechanism = smoothed.SamplingHistogram(records=100, drawn=80)
    found = smoothed.smoothed_epsilon(mechanism, delta, [0.3, 0.5], tolerance=tolerance)
    assert (found.lower, found.epsilon) == bracket
    assert found.at.epsilon == found.epsilon
    least = smoothed.smoothed_epsilon(mechanism, delta, [0.3, 0.5], tolerance=1e-12)
    assert bracket[0] < least.lower < least.epsilon <= least.lower + 1e-12
    assert least.at.delta <= delta < smoothed.smoothed_delta(mechanism, 2.0, [0.3, 0.5]).delta


def test_a_delta_of_exactly_the_target_suffices() -> None:
    found = smoothed.smoothed_delta(smoothed.SamplingHistogram(5, 4), 0.1, [0.5])
    for shift, suffices in ((0.0, True), (1e-12, False)):
        value = math.log(0.25) + shift
        proof = replace(found.certificate, log_value=value, log_bound=value)
        assert delta_module._suffices(replace(found, certificate=proof), 0.25) == suffices


def test_a_bound_that_is_the_maximum_is_certified() -> None:
    found = smoothed.smoothed_delta(smoothed.SamplingHistogram(5, 4), 0.1, [0.5])
    for above, certified in ((0.0, True), (1e-9, False)):
        bound = found.log_delta + above
        proof = replace(found.certificate, log_bound=bound, rounding=0.0)
        assert replace(found, certificate=proof).certified == certified


def test_delta_of_a_kernel_for_its_worst_database() -> None:
    response = np.array([[0.75, 0.25], [0.5, 0.5], [0.4, 0.6]])
    mechanism = KernelMechanism(2, 2, response)
    found = smoothed.smoothed_delta(mechanism, 0.0, [0.0, 0.1])
    assert found.dp_delta == pytest.approx(0.25)


def test_only_a_distribution_that_is_dropped_costs() -> None:
    mechanism, corners = smoothed.SamplingHistogram(4, 3, 3), np.eye(3) * 0.5 + 1 / 6
    certificates = [
        smoothed.smoothed_delta(mechanism, 0.3, pmfs).certificate
        for pmfs in (corners, [*corners, corners.mean(axis=0)])
    ]
    plain, dropped = (proof.rounding for proof in certificates)
    assert dropped == plain + dropping_loss(4)
    # A pmf that is left out may be a factor of 1 + 2^-50 above the others, for each record.
    assert dropped - plain == pytest.approx(4 * math.log1p(2.0**-50), rel=0.05, abs=0.0)
    assert certificates[1].log_bound == certificates[1].log_value + dropped


def test_lost_rate_is_read_as_a_decimal() -> None:
    assert smoothed.SamplingHistogram.of_lost_rate(1000, 0.002).drawn == 998
    assert smoothed.SamplingHistogram.of_lost_rate(1000, Fraction(1, 3)).drawn == 667
    assert smoothed.SamplingHistogram.of_lost_rate(7, "0.5").lost == 3
