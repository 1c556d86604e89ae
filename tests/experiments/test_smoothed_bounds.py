"""The bounds against exact fractions, and what the paper's theorems get wrong."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.smoothed import SamplingHistogram, log_exposure
from experiments.smoothed.bounds import log_lower_bound, log_upper_bound, published_log_bound
from tests import oracles
from tests.smoothed import pmfs
from tests.smoothed.pmfs import log_of as log

HALF = Fraction(1, 2)
GROWTHS = [Fraction(1), Fraction(11, 10), Fraction(27, 10), Fraction(28, 10), Fraction(50)]


def coins(records: int, drawn: int, growth: Fraction) -> Fraction:
    """Smoothed delta of one distribution, a fair coin, without replacement."""
    pmf = partial(oracles.hypergeometric, drawn=drawn)
    half = [oracles.delta(pmf, (h, records - h), growth) for h in range(records // 2 + 1)]
    total = sum(math.comb(records, h) * half[min(h, records - h)] for h in range(records + 1))
    return Fraction(total) / 2**records


def floats(distributions: list[list[Fraction]]) -> list[list[float]]:
    return [[float(share) for share in row] for row in distributions]


BINARY = [
    [[HALF, HALF]],
    [[Fraction(1, 10), Fraction(9, 10)], [Fraction(3, 5), Fraction(2, 5)]],
    [[Fraction(0), Fraction(1)], [HALF, HALF]],
]
TERNARY = [
    [[Fraction(1, 3)] * 3],
    [
        [Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)],
        [Fraction(1, 10), Fraction(1, 2), Fraction(2, 5)],
    ],
]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("growth", GROWTHS)
def test_the_bounds_hold_for_every_composition(growth: Fraction, replacement: bool) -> None:
    sizes = [(n, 2, BINARY) for n in (1, 2, 3, 6, 9)] + [(n, 3, TERNARY) for n in (2, 4)]
    for n, m, sets in sizes:
        for drawn in sorted({1, 2, (n + 1) // 2, n}):
            if drawn > n:
                continue
            mechanism = SamplingHistogram(n, drawn, m, replacement)
            profile = pmfs.profile(n, drawn, m, growth, replacement)
            for distributions in sets:
                exact = log(max(pmfs.means(profile, distributions, n).values()))
                low = log_lower_bound(mechanism, floats(distributions))
                high = log_upper_bound(mechanism, log(growth), floats(distributions))
                assert low - 1e-12 <= exact <= high + 1e-12


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(9, 8), Fraction(3), Fraction(1000)])
@pytest.mark.parametrize("replacement", [False, True])
def test_the_exposure_is_the_worst_delta_and_where(growth: Fraction, replacement: bool) -> None:
    for n, m in ((1, 2), (2, 2), (5, 2), (8, 2), (3, 3), (4, 3)):
        for drawn in range(1, (n + 3 if replacement else n) + 1):
            if m == 3 and drawn > 4:
                continue
            mechanism = SamplingHistogram(n, drawn, m, replacement)
            exposure = 1 - Fraction(n - 1, n) ** drawn if replacement else Fraction(drawn, n)
            assert log_exposure(mechanism) == pytest.approx(log(exposure), abs=1e-14)
            profile = pmfs.profile(n, drawn, m, growth, replacement)
            assert max(profile.values()) == exposure
            for counts, value in profile.items():
                if min(counts) <= 1:
                    assert value == exposure


def test_the_upper_bound_by_its_formula() -> None:
    shares, n = [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]], 300
    smallest = (0.2, 0.3, 0.2)

    def total(q: float) -> float:
        return sum((1 - f * (1 - q)) ** n for f in smallest)

    b, eta = 1 - math.exp(-1.5), 0.4
    entropy = b * math.log(b / eta) + (1 - b) * math.log((1 - b) / (1 - eta))
    found = log_upper_bound(SamplingHistogram(n, 120, 3), 1.5, shares)
    assert found == pytest.approx(math.log(total(math.exp(-entropy))), rel=1e-12)
    few = SamplingHistogram(n, 6, 3, True)
    q = math.e * 6 / n
    for epsilon in (1.0, 2.0):
        found = log_upper_bound(few, epsilon, shares)
        assert found == pytest.approx(math.log(total(q)), rel=1e-12)
    q = (2 * math.e * 6 / (0.9 * n)) ** 0.9
    found = log_upper_bound(few, 0.9, shares)
    assert found == pytest.approx(math.log(total(q) / q), rel=1e-12)


def test_the_upper_bound_is_the_exposure_where_the_proof_tells_nothing() -> None:
    fair = [[0.5, 0.5]]
    threshold = -math.log1p(-0.4)
    for mechanism, epsilon in (
        (SamplingHistogram(10**6, 4 * 10**5), 0.99 * threshold),
        (SamplingHistogram(10**6, 4 * 10**5), 0.0),
        (SamplingHistogram(100, 100), 5.0),
        (SamplingHistogram(10**6, 4 * 10**5, 2, True), 3.0),
        (SamplingHistogram(10**6, 10, 2, True), 1e-5),
        (SamplingHistogram(10**6, 10, 2, True), 0.0),
    ):
        assert log_upper_bound(mechanism, epsilon, fair) == log_exposure(mechanism)
    assert log_upper_bound(SamplingHistogram(10**6, 4 * 10**5), 1.1 * threshold, fair) < -100


def test_remark_8_by_its_formula() -> None:
    mechanism = SamplingHistogram(40, 20, 3)
    eta, f, n, epsilon = 0.5, 0.2, 40, 1.5
    g = ((1 - math.exp(-epsilon)) / eta - 1) ** 2
    wanted = math.exp(-g * f * n / 6) + 3 * math.exp(-f * n / 8)
    found = published_log_bound(mechanism, epsilon, [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])
    assert found == pytest.approx(math.log(wanted), rel=1e-14)


def test_remark_8_is_false_for_small_samples() -> None:
    for n, drawn, growth in ((127, 1, Fraction(66, 65)), (200, 4, Fraction(26, 25))):
        epsilon = math.log(growth)
        assert epsilon > -math.log1p(-drawn / n)
        mechanism = SamplingHistogram(n, drawn)
        exact = log(coins(n, drawn, growth))
        assert exact > published_log_bound(mechanism, epsilon, [[0.5, 0.5]]) + 0.01
        assert exact <= log_upper_bound(mechanism, epsilon, [[0.5, 0.5]])
    assert exact == pytest.approx(math.log(1.9e-4), abs=0.05)


def test_remark_8_holds_from_two_fifths_drawn_on() -> None:
    """The range in which the docstring proves it: T/n >= 1/sqrt(6), epsilon barely above."""
    settings = 0
    for n in (5, 12, 25, 40):
        for drawn in sorted({math.ceil(n / math.sqrt(6)), n // 2 + 1, n - 1}):
            for factor in (Fraction(1001, 1000), Fraction(3, 2), Fraction(4)):
                growth = Fraction(n, n - drawn) * factor
                exact = log(coins(n, drawn, growth))
                mechanism = SamplingHistogram(n, drawn)
                assert exact <= published_log_bound(mechanism, log(growth), [[0.5, 0.5]])
                settings += 1
    assert settings >= 30


def test_the_lower_bound_is_above_the_papers() -> None:
    for n, share in ((10, 0.5), (1000, 0.3), (10**6, 1e-4)):
        mechanism = SamplingHistogram(n, max(1, n // 2))
        found = log_lower_bound(mechanism, [[share, 1 - share]])
        assert found > log_exposure(mechanism) + n * math.log(share)
        assert found >= log_exposure(mechanism) + n * math.log1p(-share)
    small = SamplingHistogram(3, 2)
    wanted = Fraction(2, 3) * (Fraction(27, 64) + 3 * Fraction(9, 64))  # Pr[Bin(3, 1/4) <= 1]
    found = log_lower_bound(small, [[0.25, 0.75]])
    assert found == pytest.approx(log(wanted), rel=1e-14)


def average_delta(data: tuple[int, ...], drawn: int, levels: int, growth: Fraction) -> Fraction:
    """delta(x) of the average of T of the values in 0..levels-1, over all replaced records."""

    def pmf(values: tuple[int, ...]) -> Counter[int]:
        return Counter(sum(part) for part in itertools.combinations(values, drawn))

    own, best = pmf(data), Fraction(0)
    for place, value in itertools.product(range(len(data)), range(levels)):
        other = pmf((*data[:place], value, *data[place + 1 :]))
        best = max(best, oracles.stick(own, other, growth), oracles.stick(other, own, growth))
    return best / math.comb(len(data), drawn)


@pytest.mark.slow
def test_theorem_4_is_the_limit_of_fine_grids() -> None:
    n, drawn, growth = 6, 3, Fraction(5)
    points = np.random.default_rng(4).random(n)
    found = []
    for levels in (2, 4, 8, 32, 512):
        data = tuple(int(v) for v in np.floor(points * levels))
        found.append(average_delta(data, drawn, levels, growth))
    assert found[0] < found[-1] == HALF
    assert all(value <= HALF for value in found)


def test_what_the_bounds_do_not_cover_is_refused() -> None:
    fair = [[0.5, 0.5]]
    with pytest.raises(ParameterError, match="epsilon"):
        published_log_bound(SamplingHistogram(10, 5), -math.log1p(-0.5), fair)
    for mechanism in (SamplingHistogram(10, 10), SamplingHistogram(10, 5, 2, True)):
        with pytest.raises(ParameterError, match="mechanism"):
            published_log_bound(mechanism, 1.0, fair)
    with pytest.raises(ParameterError, match="categories"):
        log_lower_bound(SamplingHistogram(10, 5, 3), fair)
    # delta of equal records is T / n, which no bound by the other shares reaches.
    with pytest.raises(ParameterError, match="share of 0"):
        published_log_bound(SamplingHistogram(40, 20), 2.0, [[1.0, 0.0]])
