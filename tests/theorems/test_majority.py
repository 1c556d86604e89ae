"""Statements of the DaRRM paper on majorities, proved or refuted in exact arithmetic.

For Delta = 0, an integer m and a rational gamma, every privacy row of DaRRM is a polynomial in
r = e^epsilon once it is multiplied by r + 1 for each voter at b = r / (r + 1) or c = 1 - b. If no
coefficient in t = r - 1 is negative, the row holds for every epsilon >= 0.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, comb, exp, lcm, log, sqrt

import numpy as np
import pytest
from flint import fmpz_poly

import dpopt
from dpopt import majority
from dpopt.privacy import Guarantee
from experiments.majority import baselines
from experiments.majority.voters import harmonic, printed_constant
from tests.majority import brute
from tests.oracles import majority_of_sample


def chances_of_one(gamma: Sequence[Fraction], r: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """Pr[DaRRM outputs 1] on both sides, by the ones and both coins, of voters at all corners."""
    k = len(gamma) - 1
    chance = [keep * (2 * ones > k) + (1 - keep) / 2 for ones, keep in enumerate(gamma)]
    for sides in brute.pmfs(k, r, Fraction(0)):
        one, other = (sum(map(Fraction.__mul__, pmf, chance), Fraction(0)) for pmf in sides)
        yield one, other


def worst_ratio(gamma: Sequence[Fraction], r: Fraction) -> Fraction:
    """Largest Pr[o | p] / Pr[o | p'] over both outputs."""
    pairs = [pair for p, q in chances_of_one(gamma, r) for pair in ((p, q), (1 - p, 1 - q))]
    assert all(q > 0 or p == 0 for p, q in pairs)
    return max(p / q for p, q in pairs if q)


def slacks(upper: Sequence[Fraction], allowance: int, *, full: bool) -> Iterator[fmpz_poly]:
    """All rows of gamma on l > K / 2, in t = r - 1, times a positive number.

    s voters at b or c, of whom ``high`` are at b first, i at 1, the others at 0; ``full`` takes all
    splits of the s, else those with all at b or all at c.
    """
    unit = lcm(*(value.denominator for value in upper))
    half = [int(value * unit) for value in upper]
    signed = [-value for value in reversed(half)] + half
    k, shift, power = len(signed) - 1, fmpz_poly([1, 1]), fmpz_poly([0, 1]) ** allowance
    for moving in range(k + 1):
        budget = unit * (power - 1) * fmpz_poly([1, 1]) ** moving
        for ones in range(k + 1 - moving):
            for high in range(moving + 1) if full else sorted({0, moving}):
                here, there = (
                    mean(signed, high, moving, ones),
                    mean(signed, moving - high, moving, ones),
                )
                yield (budget - here + power * there)(shift)


def mean(signed: list[int], high: int, moving: int, ones: int) -> fmpz_poly:
    """(r + 1)^moving E signed(ones + Bin(high, b) + Bin(moving - high, c)), in r."""
    low = moving - high
    coefficients = [0] * (moving + 1)
    for i, up in enumerate(binomials(high)):
        for j, down in enumerate(binomials(low)):
            coefficients[i + low - j] += up * down * signed[ones + i + j]
    return fmpz_poly(coefficients)


@cache
def binomials(n: int) -> tuple[int, ...]:
    return tuple(comb(n, i) for i in range(n + 1))


def is_private_for_every_epsilon(
    upper: Sequence[Fraction], allowance: int, *, full: bool = False
) -> bool:
    return all(int(c) >= 0 for row in slacks(upper, allowance, full=full) for c in row.coeffs())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("k", [3, 5, 7, 9, 11, 21, 51])
def test_the_harmonic_noise_function_is_private_for_every_epsilon(k: int) -> None:
    upper = [Fraction(1, 2 * ones - k) for ones in range((k + 1) // 2, k + 1)]
    np.testing.assert_allclose(harmonic(k)[(k + 1) // 2 :], [float(u) for u in upper])
    assert is_private_for_every_epsilon(upper, 1, full=k <= 5)
    # All ones of a bare majority: no error, where the lemma has (K - 1) / (2 K).
    assert upper[0] == 1


def test_the_polynomials_tell_what_is_broken() -> None:
    third, one = Fraction(1, 3), Fraction(1)
    assert len(list(slacks([one, third], 1, full=True))) == comb(6, 3)
    assert is_private_for_every_epsilon([one, third], 1, full=True)
    assert not is_private_for_every_epsilon([one, one], 1)
    assert worst_ratio([one] * 4, Fraction(2)) == 4


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("k", [3, 11, 21, 31])
def test_theorem_4_1_holds_for_unequal_voters(k: int) -> None:
    for m in range(1, (k + 1) // 2 + 1):
        chances = majority_of_sample(k, min(2 * m - 1, k))
        upper = [2 * chance - 1 for chance in chances[(k + 1) // 2 :]]
        doubled = baselines.double_subsampling(k, m)[(k + 1) // 2 :]
        np.testing.assert_allclose(doubled, [float(u) for u in upper], atol=1e-14)
        assert is_private_for_every_epsilon(upper, m)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("k", "r"), list(product([3, 5], [Fraction(11, 10), Fraction(3)])))
def test_sampling_spends_exactly_half_rounded_up(k: int, r: Fraction) -> None:
    for size in range(1, k + 1):
        gamma = [abs(2 * chance - 1) for chance in majority_of_sample(k, size)]
        assert worst_ratio(gamma, r) == r ** ceil(size / 2)
        np.testing.assert_allclose(
            [float(g) for g in gamma], baselines.subsampling(k, size), atol=1e-15
        )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [1, 2])
def test_the_largest_constant_by_brute_force(m: int) -> None:
    r, target = Fraction(exp(0.1)), Fraction(exp(0.1 * m))
    largest = Fraction(1)
    for one, other in chances_of_one([Fraction(1)] * 6, r):
        f = (2 * one - 1) - target * (2 * other - 1)
        if f > 0:
            largest = min(largest, (target - 1) / f)
    setting = dpopt.Majority(5, 0.1, m)
    found = float(majority.assess(setting, np.ones(6), repair=True).gamma[0])
    assert found == pytest.approx(float(largest), rel=1e-12)
    assert baselines.constant(setting)[0] < found


def test_lemma_a_1_fails_below_tau() -> None:
    k, m, epsilon, slack = 35, 16, 0.1, 0.1
    # Theorem 2.3 at delta = 0, written out.
    tau = (exp(epsilon) - 1) * k / (exp(epsilon) + 1) + sqrt(
        2 * k * min(log(np.e + sqrt(k * epsilon**2) / slack), log(1 / slack))
    )
    assert tau < m
    g = (exp(1.6) - 1) / (
        2 * (exp(tau * 0.1) - exp(1.6) + (1 + exp(1.6)) * slack) / (exp(tau * 0.1) + 1)
        + exp(1.6)
        - 1
    )
    setting = dpopt.Majority(k, epsilon, m)
    assert printed_constant(setting, Guarantee(tau * epsilon, slack)) == pytest.approx(g, rel=1e-12)
    # The majority itself spends 18 epsilon.
    assert g >= 1
