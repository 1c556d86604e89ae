"""Divergences against fractions, numbers by hand and brute force over events."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob import total_variation

MODEST = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def pairs_of_pmfs(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """Two distributions over at most eight outcomes, zeros included."""
    n = draw(st.integers(1, 8))
    pmfs = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(0, 50), min_size=n, max_size=n).filter(any))
        pmfs.append([Fraction(weight, sum(weights)) for weight in weights])
    return pmfs[0], pmfs[1]


def floats(pmf: list[Fraction]) -> np.ndarray:
    return np.array([float(value) for value in pmf])


@MODEST
@given(pmfs=pairs_of_pmfs())
def test_half_the_sum_of_the_differences(pmfs: tuple[list[Fraction], list[Fraction]]) -> None:
    (p, q), found = pmfs, (floats(pmfs[0]), floats(pmfs[1]))
    pairs = list(zip(p, q, strict=True))
    variation = float(sum(abs(a - b) for a, b in pairs) / 2)
    assert total_variation(*found) == pytest.approx(variation, abs=1e-15)


def test_last_axis_and_broadcasting() -> None:
    fixed = np.array([0.25, 0.25, 0.5])
    first = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    np.testing.assert_allclose(total_variation(first, fixed), [0.5, 0.0], atol=1e-15)
    grid = total_variation(first[:, None, :], first[None, :, :])
    np.testing.assert_allclose(grid, [[0.0, 0.5], [0.5, 0.0]], atol=1e-15)
