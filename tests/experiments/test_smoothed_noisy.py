"""The noisy sampling-histogram: its pmf, its profile, and Table 1's (eta epsilon, 0)-DP."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf

from dpopt import ParameterError
from dpopt.prob.histograms import histogram_count, histograms
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import general_log_profile
from experiments.smoothed.noisy import (
    NoisyHistogram,
    coordinate_pmf,
    least_epsilon,
    noisy_guarantee,
)
from tests import oracles
from tests.smoothed.pmfs import KernelMechanism


def noisy_pmf(histogram: oracles.Counts, drawn: int, r: Fraction) -> oracles.Pmf:
    """Return Pr[y] for a rational r; a coordinate's outputs from T on are one: a geometric tail."""
    pmf: oracles.Pmf = {}
    for h, p in oracles.hypergeometric(histogram, drawn).items():
        scale = [(1 - r) / (1 + r - r ** (count + 1)) for count in h]
        for y in product(range(drawn + 1), repeat=len(h)):
            weight = math.prod(
                (z * r ** abs(a - b) for z, a, b in zip(scale, h, y, strict=True)), start=p
            )
            pmf[y] = pmf.get(y, Fraction(0)) + weight / (1 - r) ** y.count(drawn)
    return pmf


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("drawn", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 100.0])
def test_one_coordinate_is_a_truncated_geometric(drawn: int, epsilon: float) -> None:
    pmf = coordinate_pmf(drawn, epsilon)
    with mp.workdps(30):
        r = mp.exp(-mpf(epsilon) / 4)
        for h in range(drawn + 1):
            total = mp.fsum(r ** abs(h - y) for y in range(h + 4000))
            assert mp.almosteq(total, (1 + r - r ** (h + 1)) / (1 - r), 1e-25)
            exact = [float(r ** abs(h - y) / total) for y in range(drawn)]
            tail = float(r ** (drawn - h) / (1 - r) / total)
            np.testing.assert_allclose(pmf[h], [*exact, tail], rtol=1e-13)


@pytest.mark.parametrize(
    ("histogram", "drawn"), [((3, 4), 5), ((0, 6), 2), ((2, 1, 2), 3), ((1, 0, 0), 1)]
)
def test_distributions_against_exact_rationals(histogram: oracles.Counts, drawn: int) -> None:
    n, m, r = sum(histogram), len(histogram), Fraction(3, 5)
    mechanism = NoisyHistogram(n, drawn, -4 * math.log(r), m)
    exact = noisy_pmf(histogram, drawn, r)
    assert sum(exact.values()) == 1
    pmf = mechanism.pmfs([histogram])[0]
    assert mechanism.outputs == pmf.size == (drawn + 1) ** m
    wanted = [float(exact[y]) for y in product(range(drawn + 1), repeat=m)]
    np.testing.assert_allclose(pmf, wanted, rtol=1e-13)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("n", "drawn", "m"), [(7, 4, 2), (6, 6, 2), (5, 3, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_the_exact_profile(n: int, drawn: int, m: int, epsilon: float) -> None:
    r, ratio = Fraction(2, 3), oracles.exponential(epsilon)
    mechanism = NoisyHistogram(n, drawn, -4 * math.log(r), m)
    table = {row: noisy_pmf(row, drawn, r) for row in oracles.compositions(n, m)}
    exact = [float(oracles.delta(table.__getitem__, row, ratio)) for row in table]
    found = np.exp(general_log_profile(mechanism, epsilon))
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-15)
    plain = np.exp(general_log_profile(SamplingHistogram(n, drawn, m), epsilon))
    assert np.all(found <= plain + 1e-15)
    assert found.max() < plain.max()


@pytest.mark.sample(30)
@pytest.mark.parametrize(
    ("n", "drawn"), [(8, 1), (8, 2), (8, 4), (8, 6), (8, 7), (8, 8), (30, 2), (3, 1)]
)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0])
@pytest.mark.parametrize("m", [2, 3])
def test_closed_forms_against_all_outputs(n: int, drawn: int, epsilon: float, m: int) -> None:
    if m == 3 and (drawn > 4 or n > 8):
        return
    mechanism = NoisyHistogram(n, drawn, epsilon, m)
    found = least_epsilon(mechanism)
    guarantee, exact = noisy_guarantee(mechanism), float(found.max())
    tolerance = 1e-12 * (1 + epsilon)
    assert guarantee.attained - tolerance <= exact <= guarantee.amplified + tolerance
    # In the last database all records are equal.
    at_equal = found[-1]
    assert at_equal >= guarantee.attained - tolerance
    if m == 2:
        assert at_equal == pytest.approx(guarantee.attained, rel=1e-11)
    if drawn in (1, n):
        assert exact == pytest.approx(guarantee.amplified, rel=1e-11)
    if guarantee.holds is not None:
        assert (exact <= guarantee.claimed + tolerance) == guarantee.holds
    assert guarantee.claimed == pytest.approx(epsilon * drawn / n, rel=1e-15)


@pytest.mark.sample(8)
@pytest.mark.parametrize("drawn", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0, 10.0])
def test_the_noise_alone(drawn: int, epsilon: float) -> None:
    pmf = coordinate_pmf(drawn, epsilon)
    gaps = [
        np.abs(np.log(pmf[h] / pmf[h + 1])).max() for h in range(drawn)
    ]  # of one coordinate, upward or downward
    pairs = [
        np.log(pmf[h] / pmf[h - 1]).max() + np.log(pmf[g] / pmf[g + 1]).max()
        for h in range(1, drawn + 1)
        for g in range(drawn + 1 - h)
    ]
    noise = noisy_guarantee(NoisyHistogram(drawn, drawn, epsilon)).noise
    assert noise == pytest.approx(max(pairs), rel=1e-11)
    assert noise <= 2 * max(gaps) + 1e-12
    assert epsilon / 2 * (1 - 1e-12) <= noise <= 0.75 * epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 5.0, 50.0, 600.0])
def test_half_the_records_or_more_make_the_claim_right(epsilon: float) -> None:
    for n, drawn in [(2, 1), (1000, 998), (10**6, 10**6), (10**9, 5 * 10**8), (7, 4)]:
        assert noisy_guarantee(NoisyHistogram(n, drawn, epsilon)).holds is True


@pytest.mark.sample(5)
@pytest.mark.parametrize("n", [10**3, 10**9])
@pytest.mark.parametrize(
    ("share", "fails"), [(0.05, 4), (0.2, 5), (0.4, 10), (0.45, 25), (0.49, 80)]
)
def test_fewer_make_it_wrong_from_some_epsilon_on(n: int, share: float, fails: float) -> None:
    drawn = int(share * n)
    for epsilon in (0.01, 0.5, 1.3):
        assert noisy_guarantee(NoisyHistogram(n, drawn, epsilon)).holds is True
    for epsilon in (fails, 2.0 * fails, 600.0):
        assert noisy_guarantee(NoisyHistogram(n, drawn, epsilon)).holds is False


def test_certificate_at_large_sizes() -> None:
    # M(x') and M(x) of the docstring in 60 digits, n = 10^6, eta = 1/5, epsilon = 12.
    n, drawn, epsilon = 10**6, 200_000, 12.0
    with mp.workdps(60):
        r, eta = mp.exp(-mpf(epsilon) / 4), mpf(drawn) / n

        def z(h: int) -> mpf:
            return (1 + r - r ** (h + 1)) / (1 - r)

        # At y = (0, 1): weights r^T r against r^(T-1), normalised.
        of_equal = r**drawn * r / (z(drawn) * z(0))
        of_drawn = r ** (drawn - 1) / (z(drawn - 1) * z(1))
        ratio = (eta * of_drawn + (1 - eta) * of_equal) / of_equal
        attained, claimed = float(mp.log(ratio)), float(eta * epsilon)
    guarantee = noisy_guarantee(NoisyHistogram(n, drawn, epsilon))
    assert guarantee.attained == pytest.approx(attained, rel=1e-13)
    assert attained > claimed + 1.9
    assert guarantee.holds is False


def test_large_tables_and_foreign_histograms_are_refused() -> None:
    mechanism = NoisyHistogram(6, 3, 1.0)
    assert mechanism.pmfs(histograms(6, 2)).sum(axis=1) == pytest.approx(np.ones(7), rel=1e-14)
    with pytest.raises(ParameterError, match="6 records over 2"):
        mechanism.pmfs([[3, 4]])
    with pytest.raises(ParameterError, match="table of the noise"):
        NoisyHistogram(2000, 1000, 1.0).pmfs([[1000, 1000]])


def test_the_least_epsilon_without_delta() -> None:
    rng = np.random.default_rng(4)
    kernel = rng.dirichlet(np.ones(4), size=histogram_count(4, 3))
    mechanism = KernelMechanism(4, 3, kernel)
    rows = histograms(4, 3)
    found = least_epsilon(mechanism)
    pmf = dict(zip(map(tuple, rows.tolist()), kernel, strict=True))
    for row, value in zip(map(tuple, rows.tolist()), found.tolist(), strict=True):
        gaps = [np.abs(np.log(pmf[row] / pmf[other])).max() for other in oracles.neighbours(row)]
        assert value == pytest.approx(max(gaps), rel=1e-13)
        above = general_log_profile(mechanism, value * (1 + 1e-12) + 1e-14, row)
        below = general_log_profile(mechanism, value * (1 - 1e-6), row)
        assert above[0] == -np.inf
        assert below[0] > -np.inf
    twice = (kernel[:, :, None] * kernel[:, None, :]).reshape(len(kernel), -1)
    doubled = least_epsilon(KernelMechanism(4, 3, twice))
    np.testing.assert_allclose(doubled, 2 * found, rtol=1e-13)
    assert np.all(least_epsilon(SamplingHistogram(4, 2)) == np.inf)
    same = KernelMechanism(2, 2, np.full((3, 2), 0.5))
    assert least_epsilon(same).tolist() == [0.0] * 3
