"""Divergences against fractions, numbers by hand and brute force over events."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob import kl_divergence, total_variation

MODEST = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def pairs_of_laws(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """Two laws over at most eight outcomes, zeros included."""
    n = draw(st.integers(1, 8))
    laws = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(0, 50), min_size=n, max_size=n).filter(any))
        laws.append([Fraction(weight, sum(weights)) for weight in weights])
    return laws[0], laws[1]


def floats(law: list[Fraction]) -> np.ndarray:
    return np.array([float(value) for value in law])


@MODEST
@given(laws=pairs_of_laws())
def test_the_named_ones_are_exact(laws: tuple[list[Fraction], list[Fraction]]) -> None:
    (p, q), found = laws, (floats(laws[0]), floats(laws[1]))
    pairs = list(zip(p, q, strict=True))
    variation = float(sum(abs(a - b) for a, b in pairs) / 2)
    assert total_variation(*found) == pytest.approx(variation, abs=1e-15)
    kl = math.inf
    if all(b > 0 for a, b in pairs if a > 0):
        kl = math.fsum(a * math.log(a / b) for a, b in pairs if a)
    assert kl_divergence(*found) == pytest.approx(kl, rel=1e-12, abs=1e-14)


def test_last_axis_and_broadcasting() -> None:
    fixed = np.array([0.25, 0.25, 0.5])
    first = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    np.testing.assert_allclose(total_variation(first, fixed), [0.5, 0.0], atol=1e-15)
    np.testing.assert_allclose(kl_divergence(first, fixed), [math.log(2), 0.0], atol=1e-15)
    grid = total_variation(first[:, None, :], first[None, :, :])
    np.testing.assert_allclose(grid, [[0.0, 0.5], [0.5, 0.0]], atol=1e-15)
