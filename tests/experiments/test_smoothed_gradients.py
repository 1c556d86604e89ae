"""Random databases of quantised gradients, and Monte Carlo estimates of their delta."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from dpopt.smoothed.sgd import sgd_profile
from experiments.smoothed import sgd, sgd_estimates
from experiments.smoothed.gradients import QuantisedGradient, drawn_counts, monte_carlo_delta

INDEX = np.arange(225)
REFERENCE = ((37 * INDEX**2 + 11 * INDEX) % 181) - 90


@pytest.mark.parametrize("mean", [0.0, 0.2, -0.3])
@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_quantised_gradients_are_the_definition(family: str, mean: float) -> None:
    gradient = QuantisedGradient(mean, 0.12, family)
    pmf = (
        scipy.stats.norm(mean, 0.12)
        if family == "gaussian"
        else scipy.stats.laplace(mean, 0.12 / math.sqrt(2))
    )
    total = pmf.cdf(0.5) - pmf.cdf(-0.5)
    expected = [(pmf.cdf((i - 127) / 256) - pmf.cdf((i - 128) / 256)) / total for i in range(256)]
    np.testing.assert_allclose(gradient.probabilities, expected, rtol=1e-9, atol=1e-15)
    assert gradient.values.tolist() == list(range(-127, 129))
    assert gradient.probabilities.sum() == pytest.approx(1.0, abs=1e-14)
    assert pmf.std() == pytest.approx(0.12)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_far_tails_keep_their_digits(family: str) -> None:
    """A distribution moved by one value has its masses moved by one, in both tails."""
    low, high = QuantisedGradient(-0.25, 0.01, family), QuantisedGradient(0.25, 0.01, family)
    np.testing.assert_allclose(low.probabilities, high.probabilities[::-1], rtol=1e-11, atol=0)
    assert np.all(low.probabilities[:100] > 0)


def test_databases_follow_their_composition() -> None:
    near, far = QuantisedGradient(-0.25, 0.01), QuantisedGradient(0.25, 0.01)
    rng = np.random.default_rng(5)
    database = sgd.database((near, far), 30, 42, rng)
    assert database.size == 42
    assert np.count_nonzero(database < 0) == 30
    large = QuantisedGradient(0.1, 0.1).sample(100_000, rng)
    counts = np.bincount(large + 127, minlength=256)
    expected = QuantisedGradient(0.1, 0.1).probabilities * 100_000
    kept = expected > 20
    assert (
        scipy.stats.chisquare(
            [*counts[kept], counts[~kept].sum()], [*expected[kept], expected[~kept].sum()]
        ).pvalue
        > 1e-4
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_monte_carlo_draws_batches() -> None:
    """Its mean equals that of drawing the batches themselves, for the same two neighbours."""
    values, drawn, factor, draws, runs = [-3, -1, 0, 0, 2, 4], 3, math.exp(0.3), 40, 4000
    rng = np.random.default_rng(17)
    step = {"lowest": -4, "highest": 5, "rounded": False}
    counts = [drawn_counts(np.array(values), drawn, draws, rng, **step) for _ in range(runs)]
    fast = [monte_carlo_delta(each, 0.3, draws) for each in counts]

    def frequencies(x: list[int]) -> np.ndarray:
        order = rng.random((draws, len(x))).argsort(axis=1)[:, :drawn]
        return np.bincount(np.array(x)[order].sum(axis=1) + 30, minlength=60) / draws

    slow = []
    for _ in range(runs):
        own, largest = frequencies(values), 0.0
        for moved in ([5, -1, 0, 0, 2, 4], [-3, -1, 0, 0, 2, -4]):
            other = frequencies(moved)
            for one, two in ((own, other), (other, own)):
                largest = max(largest, float(np.maximum(one - factor * two, 0).sum()))
        slow.append(largest)
    spread = math.hypot(np.std(fast), np.std(slow)) / math.sqrt(runs)
    assert abs(np.mean(fast) - np.mean(slow)) < 5 * spread


@pytest.mark.nightly
@pytest.mark.slow
def test_monte_carlo_is_biased_upwards_and_the_more_so_the_larger_epsilon() -> None:
    rng = np.random.default_rng(2)

    def estimate(epsilon: float, draws: int) -> float:
        counts = drawn_counts(REFERENCE, 15, draws, rng)
        return monte_carlo_delta(counts, epsilon, draws)

    factors = []
    for epsilon in (0.5, 1.0, 2.0):
        exact = sgd_profile(REFERENCE, 15, epsilon).delta[0]
        runs = [estimate(epsilon, 10**6) for _ in range(30)]
        factors.append(np.mean(runs) / exact)
    assert factors[0] > 2
    assert factors[1] > 10 * factors[0]
    assert factors[2] > 10 * factors[1]
    many = estimate(0.5, 10**13)
    assert many == pytest.approx(sgd_profile(REFERENCE, 15, 0.5).delta[0], rel=1e-2)


def test_the_interval_is_clopper_and_pearsons() -> None:
    # Beta quantiles, as in their paper; each of two probabilities has half the error.
    low, high = sgd_estimates.interval(3, 50, 0.99)
    assert low == pytest.approx(scipy.stats.beta.ppf(0.0025, 3, 48), rel=1e-9)
    assert high == pytest.approx(scipy.stats.beta.isf(0.0025, 4, 47), rel=1e-9)
    # By hand: 30 against 2 of 100 at the first output, 1 against 0 at the last.
    counts = np.array([[30, 69, 1], [2, 98, 0]])
    found = sgd_estimates.estimate(counts, math.log(2), 100, 0.99)
    (p, q), (r, s) = (sgd_estimates.interval(hits, 100, 0.99) for hits in (31, 2))
    assert found == pytest.approx(((31 - 2 * 2) / 100, max(0.0, p - 2 * s), q - 2 * r))
