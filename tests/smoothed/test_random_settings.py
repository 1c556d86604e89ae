"""Random small settings against the definitions in rationals: profile, smoothed delta, epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpopt import smoothed
from tests import oracles
from tests.smoothed import pmfs as exact


@pytest.mark.sample(30)
@pytest.mark.parametrize("seed", range(120))
def test_smoothed_delta_is_that_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    m = int(rng.integers(2, 5))
    n = int(rng.integers(1, (8, 8, 5)[m - 2]))
    replacement = bool(rng.random() < 0.3)
    drawn = int(rng.integers(1, n + 1))
    epsilon = float(rng.choice([0.0, 1e-3, rng.uniform(0, 3), rng.uniform(0, 3)]))
    tiny = 2.0 ** -int(rng.integers(1, 60))
    given = rng.integers(1, 2**12, (int(rng.integers(1, 4)), m)) / 2**14
    given[:, 0] *= tiny
    given[:, -1] = 0.0
    pmfs = [[*map(Fraction, row[:-1])] for row in given.tolist()]
    pmfs = [[*pmf, 1 - sum(pmf)] for pmf in pmfs]
    mechanism = smoothed.SamplingHistogram(n, drawn, m, replacement)
    profile = exact.profile(n, drawn, m, oracles.exponential(epsilon), replacement)
    found = smoothed.privacy_profile(mechanism, epsilon)
    expected = exact.means(dict(zip(profile, map(Fraction, found.delta), strict=True)), pmfs, n)
    for delta, value in zip(profile.values(), found.log_delta.tolist(), strict=True):
        known = exact.log_of(delta)
        assert value == pytest.approx(known, abs=1e-10) or max(value, known) < -60
    truth = exact.log_of(max(exact.means(profile, pmfs, n).values()))
    answer = smoothed.smoothed_delta(mechanism, epsilon, [[float(x) for x in pmf] for pmf in pmfs])
    assert answer.delta == pytest.approx(float(max(expected.values())), rel=1e-12)
    assert answer.delta == pytest.approx(float(expected[answer.argmax]), rel=1e-12)
    assert answer.certified
    assert answer.certificate.slack >= 0
    assert answer.log_delta == pytest.approx(truth, abs=1e-10) or max(answer.log_delta, truth) < -60
    assert truth <= answer.certificate.log_bound + 1e-10 or truth < -60


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("seed", range(15))
def test_smoothed_epsilon_brackets_the_definition(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    n = int(rng.integers(2, 6))
    mechanism = smoothed.SamplingHistogram(n, int(rng.integers(1, n)))
    shares = [Fraction(int(x), 2**10) for x in rng.integers(1, 2**10, 2)]
    at_zero = smoothed.smoothed_delta(mechanism, 0.0, [float(x) for x in shares]).delta
    found = smoothed.smoothed_epsilon(mechanism, at_zero * 0.9, [float(x) for x in shares])
    for epsilon, suffices in ((found.epsilon, True), (found.lower, False)):
        if not math.isfinite(epsilon) or (epsilon == 0.0 and not suffices):
            continue
        profile = exact.profile(n, mechanism.drawn, 2, oracles.exponential(epsilon))
        value = float(max(exact.means(profile, [[x, 1 - x] for x in shares], n).values()))
        if suffices:
            assert value <= found.target * (1 + 1e-9)
        else:
            assert value > found.target * (1 - 1e-9)
