"""The audit: never above what was certified, above it when a sampler is broken."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from dpopt.privacy.release import seeded
from dpopt.table import Table
from tests.auditing import audit_epsilon
from tests.privacy.known import response
from tests.table.rows import of_rows

Sample = npt.NDArray[np.int64]


def draws(table: Table, x: int, seed: int, count: int = 100_000) -> Sample:
    return table.drawn(np.full(count, x), seeded(np.random.default_rng(seed)))[0]


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_a_certified_kernel_passes(k: int, epsilon: float) -> None:
    kernel = response(k, epsilon)
    for seed in range(10):
        found = audit_epsilon(draws(kernel, 0, 2 * seed), draws(kernel, 1, 2 * seed + 1), k)
        assert 0 <= found.epsilon <= epsilon
        assert (found.output is None) == (found.epsilon == 0)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_many_draws_come_close_to_the_truth(epsilon: float) -> None:
    kernel = response(2, epsilon)
    found = audit_epsilon(draws(kernel, 0, 1, 10**6), draws(kernel, 1, 2, 10**6), 2)
    assert epsilon - 0.05 < found.epsilon <= epsilon


def test_a_certified_kernel_with_delta_passes() -> None:
    kernel = of_rows([[16, 24, 24], [0, 32, 32]])
    first, second = draws(kernel, 0, 1), draws(kernel, 1, 2)
    assert audit_epsilon(first, second, 3, delta=0.3).epsilon <= 0.2
    assert audit_epsilon(first, second, 3, delta=0.24).epsilon > 1.0
    assert audit_epsilon(first, second, 3).epsilon > 7.0


def test_an_output_that_the_neighbour_never_gives_is_found() -> None:
    kernel = of_rows([[8, 28, 28], [0, 32, 32]])
    one, other = draws(kernel, 0, 1), draws(kernel, 1, 2)
    found, turned = audit_epsilon(one, other, 3), audit_epsilon(other, one, 3)
    assert found.epsilon > 6.0
    assert (found.output, found.reversed) == (0, False)
    assert (turned.epsilon, turned.output, turned.reversed) == (found.epsilon, 0, True)


def interval(count: int, total: int, level: float) -> tuple[float, float]:
    """Clopper-Pearson with error probability ``level`` on each side."""
    found = binomtest(count, total).proportion_ci(confidence_level=1 - 2 * level, method="exact")
    return float(found.low), float(found.high)


def reference(
    first: list[int], second: list[int], outputs: int, delta: float, confidence: float
) -> float:
    level = (1 - confidence) / (4 * outputs)
    best = 0.0
    for one, other in ((first, second), (second, first)):
        for y in range(outputs):
            low, _ = interval(one.count(y), len(one), level)
            _, high = interval(other.count(y), len(other), level)
            if low > delta:
                best = max(best, math.log((low - delta) / high))
    return best


@pytest.mark.slow
@given(data=st.data(), outputs=st.integers(1, 4), confidence=st.sampled_from([0.5, 0.95, 0.999]))
def test_bounds_are_those_of_clopper_and_pearson(
    data: st.DataObject, outputs: int, confidence: float
) -> None:
    shares = st.lists(st.integers(0, 60), min_size=outputs, max_size=outputs).filter(any)
    first, second = (
        [y for y, count in enumerate(data.draw(shares)) for _ in range(count)] for _ in range(2)
    )
    delta = data.draw(st.sampled_from([0.0, 0.01, 0.3]))
    found = audit_epsilon(first, second, outputs, delta=delta, confidence=confidence)
    expected = reference(first, second, outputs, delta, confidence)
    assert found.epsilon == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert (found.delta, found.confidence) == (delta, confidence)


def test_samples_of_different_sizes_and_types() -> None:
    found = audit_epsilon(np.zeros(1000, np.uint8), np.ones(100, np.int32), 2, confidence=0.9)
    level = 0.1 / 8
    low, _ = interval(100, 100, level)
    _, high = interval(0, 1000, level)
    # Output 1 shows more than output 0: the upper bound near 0 gains more from many draws.
    assert (found.output, found.reversed) == (1, True)
    assert found.epsilon == pytest.approx(math.log(low / high), rel=1e-9)
