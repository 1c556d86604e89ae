"""Benchmarks beside OpenDP and dp-accounting: what they compare is the same, by other means."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from experiments.benchmarks import suite_accounting, suite_release
from experiments.benchmarks.spec import Benchmark


def composed_delta(count: int, epsilon: float, total: float) -> float:
    """The delta of k randomised responses at an epsilon, summed over the number of lies."""
    with mpmath.workdps(60):
        right = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        terms = (
            mpmath.binomial(count, lies)
            * right ** (count - lies)
            * (1 - right) ** lies
            * max(mpmath.mpf(0), 1 - mpmath.exp(mpmath.mpf(total) - (count - 2 * lies) * epsilon))
            for lies in range(count + 1)
        )
        return float(sum(terms))


@pytest.mark.parametrize("count", [50, 200])
def test_composed_releases_spend_what_the_sum_says(count: int) -> None:
    asked = suite_accounting.ballots(count)
    value = suite_accounting.compose(asked).value
    assert composed_delta(count, 0.1, value) <= 1e-6
    assert composed_delta(count, 0.1, value * (1 - 1e-9)) > 1e-6


@pytest.mark.parametrize("count", [50, 1000])
def test_dp_accounting_is_on_the_safe_side_of_it(count: int) -> None:
    pytest.importorskip("dp_accounting")
    best = suite_accounting.compose(suite_accounting.ballots(count)).value
    near = suite_accounting.convolve_on_the_grid(count).value
    rounded = suite_accounting.convolve(count).value
    assert near == pytest.approx(best, rel=1e-9)
    # Each loss is rounded up by less than two steps of its grid.
    assert best <= rounded <= best + 2 * count * 1e-4


def test_the_kernel_of_counts_is_geometric_noise_cut_off() -> None:
    noise = np.arange(-800, 801)
    masses = math.tanh(0.5) * np.exp(-np.abs(noise, dtype=float))
    kernel = suite_release.noisy_counts()
    for count in (0, 1, 20, 63):
        pmf = np.bincount(np.clip(count + noise, 0, 63), masses, 64)
        assert kernel[count] == pytest.approx(pmf, abs=1e-14)


@pytest.mark.parametrize("benchmark", [suite_release.COUNTS, suite_release.CATEGORIES])
def test_releases_keep_as_many(benchmark: Benchmark) -> None:
    kept = math.tanh(0.5) if benchmark is suite_release.COUNTS else math.e / (math.e + 63)
    for contender in benchmark.contenders:
        if contender.needs is not None:
            pytest.importorskip(contender.needs[0])
        found = contender.run(contender.prepare(2000))
        assert found.value == pytest.approx(kept, abs=6 * found.error)
