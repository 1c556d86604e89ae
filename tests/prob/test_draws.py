"""Hockey-sticks of samples drawn record by record, against rationals and the sums over counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpopt.prob import draws, logarithms
from dpopt.smoothed import sampling
from dpopt.smoothed.mechanisms import SamplingHistogram


def rational(epsilon: float) -> Fraction:
    """E^epsilon as the pair of floats that the package sums with."""
    return sum(map(Fraction, logarithms.exponential(epsilon)), Fraction(0))


def hypergeometric(n: int, held: int, drawn: int, k: int) -> Fraction:
    if k < 0 or drawn < k:
        return Fraction(0)
    return Fraction(math.comb(held, k) * math.comb(n - held, drawn - k), math.comb(n, drawn))


def stick(size: int, held: int, drawn: int, ratio: Fraction) -> Fraction:
    """D_t from both distributions of the count, as it is defined."""
    return sum(
        (
            max(
                Fraction(0),
                hypergeometric(size, held, drawn, k)
                - ratio * hypergeometric(size, held - 1, drawn, k),
            )
            for k in range(drawn + 1)
        ),
        Fraction(0),
    )


def averaged(n: int, drawn: int, size: int, held: int, ratio: Fraction) -> Fraction:
    return sum(
        (
            hypergeometric(n, size, drawn, count) * stick(size, held, count, ratio)
            for count in range(min(drawn, size) + 1)
        ),
        Fraction(0),
    )


def log_of(value: Fraction) -> float:
    if not value:
        return -math.inf
    with mp.workdps(30):
        return float(mp.log(mpf(value.numerator) / value.denominator))


def stick_of(pool: draws.Pool, epsilon: float) -> float:
    """Return the average with the tail sums of the binary mechanism for its first value."""

    def tail(drawn: int) -> float:
        mechanism = SamplingHistogram(pool.size, drawn)
        return float(sampling.log_divergence(mechanism, epsilon, np.array([pool.held - 1]))[0])

    return draws.average(pool, tail)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, math.log(2), 1.0, 4.0, 40.0])
def test_gains_are_the_steps_of_the_definition(epsilon: float) -> None:
    ratio, factor = rational(epsilon), logarithms.exponential(epsilon)
    for size in range(1, 10):
        for held in range(1, size + 1):
            pool = draws.Pool(size, size, size, held, factor)
            found = pool.log_gain(np.arange(size))
            covers = pool.log_cover(np.arange(1, size + 1))
            sums = [stick(size, held, t, ratio) for t in range(size + 1)]
            for t in range(size):
                exact = sums[t + 1] - sums[t]
                assert exact >= 0
                assert math.exp(found[t]) == pytest.approx(float(exact), rel=1e-12, abs=1e-16)
                assert log_of(sums[t + 1]) <= covers[t] + 1e-12


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(("whole", "epsilon"), [(0, 0.0), (512, 0.3), (0, 1.5), (512, 6.0)])
def test_averages_against_the_definition(
    monkeypatch: pytest.MonkeyPatch, whole: int, epsilon: float
) -> None:
    monkeypatch.setattr(draws, "_WHOLE", whole)
    monkeypatch.setattr(draws, "_GRID", 3)
    monkeypatch.setattr(draws, "_BLOCK", 3)
    ratio, factor = rational(epsilon), logarithms.exponential(epsilon)
    for n, drawn in [(2, 1), (7, 7), (9, 4), (11, 9)]:
        for size in range(1, n):
            for held in {1, (size + 1) // 2, size}:
                found = stick_of(draws.Pool(n, drawn, size, held, factor), epsilon)
                exact = log_of(averaged(n, drawn, size, held, ratio))
                assert found == exact or abs(found - exact) < 1e-12, (n, drawn, size, held)


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "drawn", "size", "held", "epsilon"),
    [
        (1200, 600, 800, 350, 0.0), (1200, 600, 800, 350, 0.4), (3000, 2900, 2500, 2400, 1.0),
        (5000, 100, 4000, 30, 0.02), (5000, 4990, 1000, 400, 0.0), (1400, 700, 1399, 700, 2.0),
    ],
)  # fmt: skip
def test_moderate_sizes_against_mpmath(
    n: int, drawn: int, size: int, held: int, epsilon: float
) -> None:
    """Every T' and every count, summed with 40 digits from the two distributions of the counts."""
    with mp.workdps(40):
        ratio, zeros = mp.exp(mpf(epsilon)), size - held
        total, least = mpf(0), max(0, drawn - (n - size))
        mass = mp.binomial(size, least) * mp.binomial(n - size, drawn - least)
        mass /= mp.binomial(n, drawn)
        for count in range(least, min(drawn, size) + 1):
            total += mass * tail_of_counts(size, held, zeros, count, ratio)
            mass = mass * (size - count) * (drawn - count)
            mass /= (count + 1) * (n - size - drawn + count + 1)
        exact = float(mp.log(total))
    pool = draws.Pool(n, drawn, size, held, logarithms.exponential(epsilon))
    assert stick_of(pool, epsilon) == pytest.approx(exact, rel=0, abs=2e-12)


def tail_of_counts(size: int, held: int, zeros: int, drawn: int, ratio: mpf) -> mpf:
    """Sum P - e^epsilon Q from the largest count down, while it is above 0 and counts."""
    total, top = mpf(0), min(drawn, held)
    p = mp.binomial(held, top) * mp.binomial(zeros, drawn - top) / mp.binomial(size, drawn)
    for k in range(top, max(0, drawn - zeros) - 1, -1):
        term = p * (1 - ratio * (held - k) * (zeros + 1) / (held * (zeros + 1 - drawn + k)))
        if term <= 0 or (total > 0 and term < total * mpf(10) ** -30):
            break
        total += term
        p = p * k * (zeros - drawn + k) / ((held - k + 1) * (drawn - k + 1))
    return total


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("lost_share", "epsilon"), [(0.002, 0.0), (0.5, 0.05), (0.9, 0.0)])
def test_large_pools_as_tail_sums_of_every_number_drawn(lost_share: float, epsilon: float) -> None:
    """The sum over T' of whole tail sums, pruned by their being monotone: another way."""
    n = 20_000
    mechanism = SamplingHistogram(n, n - int(lost_share * n), 3)
    for size, held in [(12_000, 5000), (12_000, 11_000), (300, 7), (19_000, 9500)]:
        pool = draws.Pool(n, mechanism.drawn, size, held, logarithms.exponential(epsilon))
        wanted = sampling.pooled_log_divergence(mechanism, epsilon, size, np.array([held - 1]))
        found = stick_of(pool, epsilon)
        assert found == wanted[0] or abs(found - wanted[0]) < 5e-12


def test_what_is_left_out_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for epsilon in (0.0, 0.05, 1.0):
        pool = draws.Pool(9000, 4000, 6000, 2500, logarithms.exponential(epsilon))
        found = stick_of(pool, epsilon)
        with monkeypatch.context() as patch:
            patch.setattr(draws, "_WHOLE", 10**6)
            assert found == pytest.approx(stick_of(pool, epsilon), rel=0, abs=1e-13)
