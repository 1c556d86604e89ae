"""Adaptive composition against its recursion over all histories, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpopt.composition import adaptive_delta, adaptive_epsilon
from tests.oracles import by_histories, corners
from tests.robustness.hostile import more

Masses = tuple[Fraction, ...]
Pairs = list[tuple[Masses, Masses]]


def random_pairs(rng: np.random.Generator) -> Pairs:
    """One or two pairs over two to four outputs, some with mass 0."""
    pairs, outputs = [], int(rng.integers(2, 5))
    for _ in range(rng.integers(1, 3)):
        sides = rng.integers(0, 12, (2, outputs))
        sides[0, 0] += 1
        sides[1, -1] += 1
        one, other = (tuple(Fraction(int(w), int(side.sum())) for w in side) for side in sides)
        pairs.append((one, other))
    return pairs


def floats(pairs: Pairs) -> list[tuple[list[float], list[float]]]:
    return [(list(map(float, one)), list(map(float, other))) for one, other in pairs]


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(50))
def test_recursion(seed: int) -> None:
    """Never below the recursion over true ratios, nor more than 1e-3 above it."""
    rng = np.random.default_rng(seed)
    for _ in range(more(4)):
        pairs, releases = random_pairs(rng), int(rng.integers(1, 5))
        growth = Fraction(int(rng.integers(8, 40)), 8)
        both = pairs + [(other, one) for one, other in pairs]
        exact = by_histories([both] * releases, growth)
        found = adaptive_delta(floats(pairs), releases, math.log(growth))
        # The float of log(e), and of each probability, is rounded.
        assert found.lower <= float(exact) * (1 + 1e-12)
        assert float(exact) * (1 - 1e-12) <= found.upper <= float(exact) * (1 + 1.1e-3) + 1e-12


def test_randomised_response() -> None:
    """The specification's value, ratio 1.5 and 20 releases, which binomials give as well."""
    found = adaptive_delta([([0.6, 0.4], [0.4, 0.6])], 20, 3.0, accuracy=1e-9)
    assert abs(found.upper - 0.1201400938138) < 1e-10
    binomial = sum(
        math.comb(20, i)
        * max(0.0, 0.6 ** (20 - i) * 0.4**i - math.exp(3) * 0.4 ** (20 - i) * 0.6**i)
        for i in range(21)
    )
    assert found.lower - 1e-10 <= binomial <= found.upper + 1e-10


@pytest.mark.nightly
@pytest.mark.slow
def test_twenty_labels() -> None:
    """The bare majority of 11 voters of epsilon 0.1, 20 labels, epsilon 5.3868."""
    found = adaptive_delta(corners(11, 0.1, [1.0] * 12), 20, 5.3868)
    assert 3.9991e-6 < found.upper < 4.004e-6
    assert found.lower < 3.99996e-6


def test_gaussian() -> None:
    """k draws of a fine discrete Gaussian have about the delta of one of variance sigma^2 / k."""
    x = np.arange(-300, 301)
    noise = np.exp(-((x / 30.0) ** 2) / 2)
    noise /= noise.sum()
    found = adaptive_delta([(np.append(noise, 0.0), np.append(0.0, noise))], 4, 0.1)
    mu = 2 / 30.0

    def normal(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    exact = normal(-0.1 / mu + mu / 2) - math.exp(0.1) * normal(-0.1 / mu - mu / 2)
    assert abs(found.upper / exact - 1) < 2e-3


def test_epsilon_inverts_delta() -> None:
    """The least epsilon for a delta, both ends checked by `adaptive_delta`."""
    pairs = [([0.6, 0.4], [0.4, 0.6])]
    found = adaptive_epsilon(pairs, 20, 1e-3)
    assert found.upper - found.lower <= 1e-4
    assert adaptive_delta(pairs, 20, found.upper, accuracy=1e-6).upper <= 1e-3
    assert adaptive_delta(pairs, 20, found.lower, accuracy=1e-6).lower > 1e-3 - 1e-9
    assert adaptive_epsilon(pairs, 1, 0.5).upper == 0.0
