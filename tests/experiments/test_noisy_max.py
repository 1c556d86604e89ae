"""GNMax against the paper's table, integrals, exact pmfs, and the theorem in many digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from dpopt import Guarantee, ParameterError
from experiments.majority.noisy_max import (
    SENSITIVITY,
    calibrate_gnmax,
    data_dependent_rdp,
    gaussian_rdp,
    label_epsilon,
    label_probabilities,
    label_sigma,
    variance_at_order,
)
from experiments.majority.renyi import gaussian_rho, rho_epsilon

MODEST = settings(max_examples=60, deadline=None, derandomize=True)
# Privacy loss, printed lambda, printed sigma (table 4), least sigma's lambda.
TABLE_4 = [(0.2676, 34.31, 21.46, 62.12), (0.2556, 35.74, 22.46, 64.97)]


@pytest.mark.parametrize(("epsilon", "printed_order", "sigma", "order"), TABLE_4)
def test_table_4(epsilon: float, printed_order: float, sigma: float, order: float) -> None:
    guarantee = Guarantee(epsilon, 3e-4)
    found = calibrate_gnmax(guarantee)
    assert round(found[0], 2) == sigma
    assert found[1] == pytest.approx(order, abs=5e-3)
    # The paper's grid: steps of 0.5 from the least possible order up to 500.
    least = 1 + math.log(1 / 3e-4) / epsilon
    grid = np.arange(least, 500, 0.5)[1:]
    variances = variance_at_order(guarantee, grid)
    assert round(float(np.sqrt(variances.min())), 2) == sigma
    assert abs(grid[np.argmin(variances)] - order) <= 0.5
    # The printed order does not give the printed sigma; it is the least possible order plus 3.
    assert float(np.sqrt(variance_at_order(guarantee, [printed_order])[0])) > 1.7 * sigma
    assert round(least + 3, 2) == printed_order


@MODEST
@given(
    epsilon=st.floats(-6, 3).map(lambda power: 10.0**power),
    delta=st.floats(-100, -0.01).map(lambda power: 10.0**power),
)
def test_rdp_calibration_spends_epsilon_at_its_order(epsilon: float, delta: float) -> None:
    sigma, order = calibrate_gnmax(Guarantee(epsilon, delta))
    spent = rho_epsilon(gaussian_rho(sigma, SENSITIVITY), delta)
    assert spent == pytest.approx(epsilon, rel=1e-9)
    around = variance_at_order(Guarantee(epsilon, delta), [order, order * 1.01])
    assert around[0] == pytest.approx(sigma**2, rel=1e-6)
    assert around[1] >= around[0]


def label_delta(voters: int, sigma: float, epsilon: float) -> mpmath.mpf:
    """The largest excess over all counts, both neighbours and both labels."""
    with mpmath.workdps(40):
        t = mpmath.mpf(sigma) * mpmath.sqrt(2)
        one = [mpmath.ncdf((2 * n - voters) / t) for n in range(voters + 1)]
        pmfs = [(p, 1 - p) for p in one]
        r = mpmath.exp(epsilon)
        return max(
            pmfs[n][label] - r * pmfs[m][label]
            for n in range(voters + 1)
            for m in (n - 1, n + 1)
            if 0 <= m <= voters
            for label in (0, 1)
        )


@pytest.mark.sample(20)
@pytest.mark.parametrize("voters", [1, 2, 11, 40])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 7.68, 21.46, 300.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 3e-4, 0.05])
def test_label_epsilon_over_all_neighbours(voters: int, sigma: float, delta: float) -> None:
    epsilon = label_epsilon(voters, sigma, delta)
    found = label_delta(voters, sigma, epsilon)
    if epsilon > 0:
        assert float(found) == pytest.approx(delta, rel=1e-9, abs=1e-14)
    else:
        assert found <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.2676, 3e-4, 7.6834), (0.2556, 3e-4, 7.9227), (1.0, 0.0, None), (0.0, 0.01, None)],
)
def test_label_sigma_is_the_least(epsilon: float, delta: float, sigma: float | None) -> None:
    found = label_sigma(11, Guarantee(epsilon, delta))
    assert sigma is None or found == pytest.approx(sigma, abs=5e-5)
    assert label_delta(11, found, epsilon) <= delta + 1e-15
    grid = np.linspace(0.01, found * 0.9999, 2_000)
    assert all(label_epsilon(11, s, delta) > epsilon for s in grid)


def test_extreme_noise() -> None:
    assert label_epsilon(11, 1e-300) == math.inf
    assert label_epsilon(1, 1e-300, 0.5) == math.inf
    assert label_probabilities(7, 1e-310).tolist() == [0.0] * 4 + [1.0] * 4
    assert label_epsilon(11, 1e300) == pytest.approx(0.0, abs=1e-15)


def pmf_by_integral(votes: Sequence[int], sigma: float) -> np.ndarray:
    """Pr[i wins] = E prod_(j != i) Phi(Z + (n_i - n_j) / sigma)."""
    z = np.arange(-240, 241) * 0.05
    gaps = [(n - np.delete(votes, i)) / sigma for i, n in enumerate(votes)]
    return np.array([0.05 * norm.pdf(z) @ ndtr(z[:, None] + g).prod(axis=1) for g in gaps])


@pytest.mark.parametrize("sigma", [0.8, 5.0, 21.46])
def test_distribution_of_two_classes(sigma: float) -> None:
    found = label_probabilities(11, sigma)
    for ones in (0, 3, 5, 6, 11):
        pmf = pmf_by_integral([11 - ones, ones], sigma)
        assert found[ones] == pytest.approx(pmf[1], abs=1e-13)


def bound(counts: list[int], sigma: float, order: float) -> float:
    """The smaller of both bounds."""
    gaussian, found = gaussian_rdp(sigma, order), data_dependent_rdp(counts, sigma, order)
    return gaussian if found is None else min(gaussian, found)


def theorem_6(counts: list[int], sigma: float, order: float) -> mpmath.mpf | None:
    """Papernot et al. (2018): propositions 7 and 10, theorem 6, as published, in 60 digits."""
    with mpmath.workdps(60):
        s, lam = mpmath.mpf(sigma), mpmath.mpf(order)
        best, *others = sorted(counts, reverse=True)
        q = min(
            sum(mpmath.erfc((best - n) / (2 * s)) for n in others) / 2,
            1 - mpmath.mpf(1) / len(counts),
        )
        mu2 = s * mpmath.sqrt(mpmath.log(1 / q))
        mu1 = mu2 + 1
        e1, e2 = mu1 / s**2, mu2 / s**2
        if not (lam <= mu1 and mu2 > 1):
            return None
        if q > mpmath.exp((mu2 - 1) * e2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
            return None
        a = (1 - q) / (1 - (q * mpmath.exp(e2)) ** ((mu2 - 1) / mu2))
        b = mpmath.exp(e1) / q ** (1 / (mu1 - 1))
        return mpmath.log((1 - q) * a ** (lam - 1) + q * b ** (lam - 1)) / (lam - 1)


@pytest.mark.sample(8)
@pytest.mark.parametrize("sigma", [1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("counts", [[11, 0], [6, 5], [30, 0], [250, 0], [60, 5, 3], [150, 60, 40]])
def test_the_bound_is_theorem_6(counts: list[int], sigma: float) -> None:
    for order in (1.01, 2.0, 5.0, 20.0, 62.1):
        found, expected = data_dependent_rdp(counts, sigma, order), theorem_6(counts, sigma, order)
        assert gaussian_rdp(sigma, order) == pytest.approx(order / sigma**2)
        assert found == (None if expected is None else pytest.approx(float(expected), rel=1e-9))


@pytest.mark.parametrize(
    ("counts", "sigma"),
    [([39, 0], 5.0), ([40, 5, 3], 6.0), ([25, 2, 2, 1], 4.0), ([20, 8, 2], 3.0)],
)
def test_the_bound_holds_for_the_exact_distribution(counts: list[int], sigma: float) -> None:
    pmf = pmf_by_integral(counts, sigma)
    for order in (1.5, 3.0, 6.0):
        found = data_dependent_rdp(counts, sigma, order)
        assert found is not None
        for source, target in permutations(np.eye(len(counts), dtype=int), 2):
            other = pmf_by_integral((counts + target - source).tolist(), sigma)
            exact = math.log((pmf**order * other ** (1 - order)).sum()) / (order - 1)
            assert exact <= min(found, gaussian_rdp(sigma, order)) * (1 + 1e-9)


@pytest.mark.parametrize(("printed_order", "sigma", "order"), [row[1:] for row in TABLE_4])
def test_the_paper_s_remark_on_11_voters(printed_order: float, sigma: float, order: float) -> None:
    for tried in (printed_order, order):
        for ones in range(12):
            assert data_dependent_rdp([ones, 11 - ones], sigma, tried) is None
    # At no order does it help, though for MNIST its conditions hold below mu_1 = 22.7.
    orders = np.geomspace(1.01, 500, 200)
    found = [data_dependent_rdp([11, 0], sigma, o) for o in orders]
    assert (found.count(None) < 200) == (sigma == 21.46)
    assert all(bound([11, 0], sigma, o) == gaussian_rdp(sigma, o) for o in orders)


def test_smallest_and_largest_gaps() -> None:
    assert data_dependent_rdp([5, 5, 5], 1.0, 2.0) is None
    assert data_dependent_rdp([10**9, 0], 1.0, 2.0) == 0.0
    assert data_dependent_rdp([1, 0], 1e-3, 1e9) is None
    with pytest.raises(ParameterError, match="^sigma is 1e-160"):
        gaussian_rdp(1e-160, 2.0)
    assert bound([11, 0], 1e6, 2.0) == pytest.approx(2e-12)
