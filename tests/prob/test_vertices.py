"""The maximum over compositions against sums over all databases, record by record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob import histograms as module
from dpopt.prob.histograms import histogram_count, largest_expectation
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import general_log_profile
from tests import oracles
from tests.smoothed import pmfs


def pmfs_from(seed: int, count: int, m: int) -> list[list[Fraction]]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 9, size=(count, m)) + np.eye(count, m, dtype=int)
    weights[:, -1] += 1
    return [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]


def as_floats(rows: Sequence[Sequence[Fraction]]) -> npt.NDArray[np.float64]:
    return np.array([[float(p) for p in row] for row in rows])


@given(
    st.integers(1, 4),
    st.integers(2, 3),
    st.integers(1, 3),
    st.sampled_from([1, 40, 400]),
    st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=50)
def test_against_all_databases(n: int, m: int, count: int, range_: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    powers = rng.integers(-range_, 1, size=histogram_count(n, m)).tolist()
    zeros = rng.random(len(powers)) < 0.2
    rows = list(oracles.compositions(n, m))
    values = {
        row: Fraction(0) if zero else Fraction(10) ** power
        for row, power, zero in zip(rows, powers, zeros, strict=True)
    }
    logs = [pmfs.log_of(values[row]) for row in rows]
    vertices = pmfs_from(seed, count, m)
    exact = pmfs.means(values, vertices, n)
    found = largest_expectation(logs, n, m, as_floats(vertices))
    best = pmfs.log_of(max(exact.values()))
    assert found.evaluated == len(exact)
    if best == -math.inf:
        assert found.log_value == best
        return
    assert found.log_value == pytest.approx(best, abs=1e-11)
    assert pmfs.log_of(exact[found.composition]) == pytest.approx(best, abs=1e-11)


def test_both_recursions_agree_where_both_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    n, m = 25, 3
    logs = general_log_profile(SamplingHistogram(n, 20, m), 0.5)
    vertices = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3], [0.1, 0.8, 0.1]]
    linear = largest_expectation(logs, n, m, vertices)
    monkeypatch.setattr(module, "_DOUBLE_RANGE", 0.0)
    logarithmic = largest_expectation(logs, n, m, vertices)
    assert linear.log_value == pytest.approx(logarithmic.log_value, abs=1e-11)
    assert linear.composition == logarithmic.composition
    assert sum(linear.composition) == n


def test_values_beyond_doubles_come_back() -> None:
    n = 12
    logs = np.full(n + 1, -5000.0)
    logs[0] = -1.0
    certain = largest_expectation(logs, n, 2, [[1.0, 0.0], [0.5, 0.5]])
    assert certain.composition == (0, n)
    assert certain.log_value == pytest.approx(-1.0 - n * math.log(2), rel=1e-13)
    alone = largest_expectation(logs, n, 2, [[1.0, 0.0]])
    assert alone.log_value == pytest.approx(-5000.0, rel=1e-13)
    shifted = largest_expectation(logs - 10**5, n, 2, [[1.0, 0.0], [0.5, 0.5]])
    assert shifted.log_value == pytest.approx(certain.log_value - 10**5, rel=1e-13)
    nothing = largest_expectation(np.full(n + 1, -np.inf), n, 2, [[0.5, 0.5], [0.1, 0.9]])
    assert (nothing.log_value, nothing.composition, nothing.rounding) == (-math.inf, (n, 0), 0.0)
