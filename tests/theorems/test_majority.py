"""Statements of the DaRRM paper on majorities, proved or refuted in exact arithmetic.

For Delta = 0, an integer m and a rational gamma, every privacy row of DaRRM is a polynomial in
r = e^epsilon once it is multiplied by r + 1 for each voter at b = r / (r + 1) or c = 1 - b. If no
coefficient in t = r - 1 is negative, the row holds for every epsilon >= 0.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import ceil, comb, exp, lcm, log, prod, sqrt

import numpy as np
import pytest
from flint import fmpz_poly
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import dpopt
from dpopt import majority
from dpopt.privacy import Guarantee
from experiments.majority.voters import harmonic, printed_constant

RATIOS = [Fraction(101, 100), Fraction(11, 10), Fraction(8, 5), Fraction(2), Fraction(50)]
Pair = tuple[Fraction, Fraction]


def corner_pairs(r: Fraction, shift: Fraction = Fraction(0)) -> list[Pair]:
    """The polygon's corners from its inequalities: where two of its edges meet."""
    edges = [  # a p + b q = c, each with <= for feasible points
        (Fraction(1), -r, shift),
        (-r, Fraction(1), shift),
        (-Fraction(1), r, r - 1 + shift),
        (r, -Fraction(1), r - 1 + shift),
        (Fraction(-1), Fraction(0), Fraction(0)),
        (Fraction(1), Fraction(0), Fraction(1)),
        (Fraction(0), Fraction(-1), Fraction(0)),
        (Fraction(0), Fraction(1), Fraction(1)),
    ]
    found = set()
    for i, (a, b, c) in enumerate(edges):
        for d, e, f in edges[:i]:
            if (det := a * e - b * d) != 0:
                p, q = (c * e - b * f) / det, (a * f - c * d) / det
                if all(x * p + y * q <= z for x, y, z in edges):
                    found.add((p, q))
    return sorted(found)


def output_one(gamma: Sequence[Fraction], p: Sequence[Fraction]) -> Fraction:
    """Pr[DaRRM outputs 1], over all outcomes of the votes and of the two coins."""
    total = Fraction(0)
    for votes in product((0, 1), repeat=len(p)):
        chance = prod((q if v else 1 - q for q, v in zip(p, votes, strict=True)), start=Fraction(1))
        keep = gamma[sum(votes)]
        total += chance * (keep * (2 * sum(votes) > len(p)) + (1 - keep) / 2)
    return total


def worst_ratio(gamma: Sequence[Fraction], pairs: Sequence[Pair]) -> Fraction:
    """Largest Pr[o | p] / Pr[o | p'] over all voters at the given pairs and both outputs."""
    found = []
    for voters in combinations_with_replacement(pairs, len(gamma) - 1):
        one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
        for here, there in ((one, other), (1 - one, 1 - other)):
            assert there > 0 or here == 0
            if there > 0:
                found.append(here / there)
    return max(found)


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


def majority_of_sample(voters: int, size: int) -> list[Fraction]:
    """Pr[majority of ``size`` of the voters is 1 | l] on 0..K; a tie counts half."""
    found = []
    for ones in range(voters + 1):
        ways = Fraction(0)
        for j in range(size + 1):
            share = Fraction(1, 2) if 2 * j == size else Fraction(int(2 * j > size))
            ways += share * comb(ones, j) * comb(voters - ones, size - j)
        found.append(ways / comb(voters, size))
    return found


def test_the_corners_are_those_of_lemma_5_1() -> None:
    r = Fraction(3, 2)
    b, c = r / (r + 1), 1 / (r + 1)
    assert set(corner_pairs(r)) == {(0, 0), (1, 1), (b, c), (c, b)}
    assert len(corner_pairs(r, Fraction(1, 50))) == 8


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("r", RATIOS)
def test_the_noise_function_that_refutes_lemma_3_2_is_private(r: Fraction) -> None:
    third, one = Fraction(1, 3), Fraction(1)
    gamma = [third, one, one, third]
    assert worst_ratio(gamma, corner_pairs(r)) == r
    for p, error, bound in (
        ((one, one, 0 * one), Fraction(0), Fraction(1, 3)),
        ((Fraction(3, 4), Fraction(3, 4), Fraction(1, 4)), Fraction(1, 32), Fraction(7, 96)),
    ):
        truth = output_one([one] * 4, p)
        assert abs(truth - output_one(gamma, p)) == error
        assert abs(truth - sum(p) / 3) == bound


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
    assert worst_ratio([one] * 4, corner_pairs(Fraction(2))) == 4


@pytest.mark.slow
@given(
    st.lists(st.fractions(0, 1, max_denominator=20), min_size=3, max_size=3),
    st.integers(1, 3),
    st.fractions(1, 5, max_denominator=7),
)
def test_what_the_polynomials_prove_holds(upper: list[Fraction], m: int, r: Fraction) -> None:
    gamma, pairs = [*reversed(upper), *upper], corner_pairs(r)
    voters = [pairs[i % len(pairs)] for i in (0, 1, 2, 2, 3)]
    one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
    if is_private_for_every_epsilon(upper, m, full=True):
        assert one <= r**m * other


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("k", [3, 11, 21, 31])
def test_theorem_4_1_holds_for_unequal_voters(k: int) -> None:
    for m in range(1, (k + 1) // 2 + 1):
        chances = majority_of_sample(k, min(2 * m - 1, k))
        upper = [2 * chance - 1 for chance in chances[(k + 1) // 2 :]]
        np.testing.assert_allclose(
            majority.double_subsampling(k, m)[(k + 1) // 2 :], [float(u) for u in upper], atol=1e-14
        )
        assert is_private_for_every_epsilon(upper, m)


@pytest.mark.slow
@given(
    st.integers(1, 3).flatmap(
        lambda m: st.tuples(
            st.just(m),
            st.lists(
                st.tuples(st.fractions(0, 1, max_denominator=9), st.fractions(0, 1)),
                min_size=2 * m - 1,
                max_size=2 * m - 1,
            ),
        )
    ),
    st.fractions(1, 4, max_denominator=9),
    st.sampled_from([Fraction(0), Fraction(1, 10)]),
)
def test_a_majority_of_2m_less_1_spends_m_epsilon(
    voters: tuple[int, list[Pair]], r: Fraction, shift: Fraction
) -> None:
    """Only p <= r p' + Delta is used, which is half of what privacy gives."""
    m, draws = voters
    p = [first for first, _ in draws]
    # Any p' between (p - Delta) / r and 1.
    lowest = [max(x - shift, Fraction(0)) / r for x in p]
    q = [low + share * (1 - low) for low, (_, share) in zip(lowest, draws, strict=True)]
    ones = [Fraction(1)] * (2 * m)
    allowed = 1 - (1 - shift) ** (2 * m - 1)
    assert output_one(ones, p) <= r**m * output_one(ones, q) + allowed


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("k", "r"), list(product([3, 5], [Fraction(11, 10), Fraction(3)])))
def test_sampling_spends_exactly_half_rounded_up(k: int, r: Fraction) -> None:
    for size in range(1, k + 1):
        gamma = [abs(2 * chance - 1) for chance in majority_of_sample(k, size)]
        assert worst_ratio(gamma, corner_pairs(r)) == r ** ceil(size / 2)
        np.testing.assert_allclose(
            [float(g) for g in gamma], majority.subsampling(k, size), atol=1e-15
        )


@pytest.mark.slow
def test_three_corners_are_not_enough_by_another_solver_and_in_fractions() -> None:
    r, target = Fraction(9, 4), Fraction(2)
    pairs = corner_pairs(r)
    b, c = r / (r + 1), 1 / (r + 1)
    # f is linear in gamma: read its coefficients off unit noise functions.
    units = [[Fraction(int(min(n, 5 - n) == i)) for n in range(6)] for i in (2, 1, 0)]
    optima = []
    for allowed in ([pair for pair in pairs if pair != (c, b)], pairs):
        rows = []
        for voters in combinations_with_replacement(allowed, 5):
            sides = [[2 * output_one(u, [v[s] for v in voters]) - 1 for u in units] for s in (0, 1)]
            rows.append([float(x - target * y) for x, y in zip(*sides, strict=True)])
        optima.append(linprog([0, -1, 0], A_ub=rows, b_ub=np.ones(len(rows)), bounds=(0, 1)).x)
    assert optima[0][1] == pytest.approx(0.9408553251, abs=1e-9)
    assert optima[1][1] == pytest.approx(0.9354298401, abs=1e-9)
    upper = [Fraction(float(x)) for x in optima[0]]
    voters = [(0 * b, 0 * b)] * 4 + [(c, b)]
    gamma = [*reversed(upper), *upper]
    one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
    assert one - target * other > Fraction(1, 200)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [1, 2])
def test_the_largest_constant_by_brute_force(m: int) -> None:
    r, target = Fraction(exp(0.1)), Fraction(exp(0.1 * m))
    largest = Fraction(1)
    for voters in combinations_with_replacement(corner_pairs(r), 5):
        one, other = (output_one([Fraction(1)] * 6, [v[s] for v in voters]) for s in (0, 1))
        f = (2 * one - 1) - target * (2 * other - 1)
        if f > 0:
            largest = min(largest, (target - 1) / f)
    setting = dpopt.Majority(5, 0.1, m)
    found = float(majority.assess(setting, np.ones(6), repair=True).gamma[0])
    assert found == pytest.approx(float(largest), rel=1e-12)
    assert majority.constant(setting)[0] < found


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
    assert g >= 1
    # Output 1 from 18 voters at b or at c, the others at 0: a ratio of e^(18 epsilon).
    r = Fraction(exp(epsilon))
    b, c = r / (r + 1), 1 / (r + 1)
    assert b**18 > r**16 * c**18


def test_queries_to_voters_trained_once_do_not_compose() -> None:
    """The paper's own gamma in its own range: 12 labels at epsilon 0.5 each spend over 6."""
    design = dpopt.design(dpopt.Majority(41, 0.5, 1, objective="surrogate"))
    # Rational voters with p / p' below e^(1/2): 1.6487 < sqrt(e) = 1.64872...
    r = Fraction(16487, 10000)
    assert float(r) < exp(0.5)
    chances = [
        Fraction(design.table.row([1] * ones + [0] * (41 - ones))[1], design.table.total)
        for ones in range(36)
    ]
    up, down = (
        sum(
            comb(35, ones) * p**ones * (1 - p) ** (35 - ones) * chance**12
            for ones, chance in enumerate(chances)
        )
        for p in (r / (r + 1), 1 / (r + 1))
    )
    # e^6 < 403.4287935: the ratio is above it in fractions.
    assert up / down > Fraction(4034287935, 10**7) > Fraction(exp(6))
    assert log(up / down) == pytest.approx(6.048, abs=2e-3)
    # More than the delta' = 0.0001 with which the paper composes.
    assert float(up) - exp(6) * float(down) == pytest.approx(0.0029, abs=1e-4)
