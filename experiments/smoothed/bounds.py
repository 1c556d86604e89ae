"""Bounds of the sampling-histogram's smoothed delta: lower, published, proven.

Distributions are pmfs of one record, shape (l, m); epsilon is in nats.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from dpopt.prob.histograms import checked_distributions
from dpopt.smoothed import SamplingHistogram, log_exposure


def log_lower_bound(mechanism: SamplingHistogram, distributions: npt.ArrayLike) -> float:
    """Return the logarithm of a lower bound of the smoothed delta that holds at every epsilon.

    r Pr[Bin(n, f) <= 1] = r (1 - f)^(n - 1) (1 + (n - 1) f), f the smallest share of a category
    in any of the distributions. Let all records come from that distribution: the category occurs
    at most once with this probability, and delta(x) = r there (`log_exposure`). As f falls the
    rate in n is f to first order, the order of Theorem 3 (i).

    The proof of Theorem 3 (ii) takes unanimous databases and states Pr[x] <= f^n, where it needs
    Pr[x] >= f^n, which is true. Its bound r f^n is below this one, as f <= 1/2.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (ii).
    """
    share = float(checked_distributions(distributions, mechanism.categories).min())
    rest = mechanism.records - 1
    rare = rest * math.log1p(-share) + math.log1p(rest * share)
    return log_exposure(mechanism) + min(0.0, rare)


def published_log_bound(
    mechanism: SamplingHistogram, epsilon: float, distributions: npt.ArrayLike
) -> float:
    """Return ln(exp(-g f n / 6) + m exp(-f n / 8)), Remark 8 of the paper. See where it holds.

    g = ((1 - e^-epsilon) / eta - 1)^2 with eta = T/n, and f the smallest share of a category.

    It holds for T/n >= 1/sqrt(6) = 0.408: delta(x) <= exp(-K min_i H_i) with K as in
    `log_upper_bound`, K >= 2 (1 - e^-epsilon - eta)^2 = 2 eta^2 g by Pinsker, which is at least
    g/3 then; and min_i H_i < f n / 2 has probability at most m exp(-f n / 8). It also holds where
    K >= g/3 or 1 - e^-K >= 1/8. It does not hold in all of its stated range: the proof's Chernoff
    bound exp(-a^2 mu / 3) is for a <= 1 and has mu = H_i instead of the mean eta H_i. For n = 200,
    T = 4, e^epsilon = 26/25 and fair coins the smoothed delta is 1.9e-4 and the bound 8.1e-6; on
    the grid that we searched, it failed up to T/n = 0.1. "Support" must mean all
    categories: for a point mass (f = 1 on its support) delta is T/n.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (i), Remark 8 and Appendix E.
    """
    share = float(checked_distributions(distributions, mechanism.categories).min())
    if mechanism.replacement or mechanism.lost == 0:
        raise ParameterError("mechanism must draw fewer records than n, without replacement.")
    if share == 0.0:
        raise ParameterError("distributions hold a share of 0; every share must be positive.")
    rate = mechanism.drawn / mechanism.records
    threshold = -math.log1p(-rate)
    if not epsilon > threshold:
        raise ParameterError(f"epsilon is {epsilon:g}; it must be above {threshold:g}.")
    growth = (-math.expm1(-epsilon) / rate - 1.0) ** 2
    size = share * mechanism.records
    return float(np.logaddexp(-growth * size / 6, math.log(mechanism.categories) - size / 8))


def log_upper_bound(
    mechanism: SamplingHistogram, epsilon: float, distributions: npt.ArrayLike
) -> float:
    """Return the logarithm of an upper bound of the smoothed delta that holds everywhere.

    min(r, s sum_i (1 - f_i (1 - q))^n), with f_i the smallest share of category i and r DP's
    delta (`log_exposure`). Without replacement s = 1, q = e^-K, K = b ln(b/eta) + (1 - b)
    ln((1 - b)/(1 - eta)) for b = 1 - e^-epsilon above eta = T/n, and K = 0 below. With
    replacement s = 1, q = eT/n for epsilon >= 1, and s = 1/q, q = (2 e T/(epsilon n))^epsilon
    below; r alone where q >= 1.

    Proof. Let x' have one record of category i less than x, and c >= 1 records of i be in x.
    Without replacement Pr[h | x'] / Pr[h | x] >= 1 - h_i/c, so that d(x, x') <= Pr[h_i > b c].
    Draw the positions of i instead: h_i is the number of T marked positions among c drawn of n, and
    Hoeffding's bound gives Pr <= e^(-K c). With replacement the ratio is at least (1 - 1/c)^h_i:
    d(x, x') <= Pr[Bin(T, c/n) > epsilon (c - 1)]. From Pr[Bin(T, p) >= k] <= C(T, k) p^k <=
    (e T p / k)^k, for epsilon >= 1 that is at most (e T/n)^c (k = c), and for less, with c <= 2
    (c - 1) unless c = 1, at most q^(c - 1). Either database may be x: c is H_i or H_i + 1, so
    delta(x) <= s max_i q^H_i <= s sum_i q^H_i, and E q^H_i is the product over the records of
    1 - pi_j(i) (1 - q), at most (1 - f_i (1 - q))^n.

    So Theorem 5's claim holds for every fixed epsilon > 0, where it has 1 + 2T/n; with 2T/n alone
    it would be false: for T = 1 and epsilon = 2/n delta falls as n^-1.5 for fair coins.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorems 3 (i) and 5. Hoeffding 1963,
        Theorems 1 and 4.
    """
    shares = checked_distributions(distributions, mechanism.categories).min(axis=0)
    log_ratio, log_factor = _decay(mechanism, epsilon)
    exposure = log_exposure(mechanism)
    if log_ratio >= 0.0:
        return exposure
    terms = mechanism.records * np.log1p(shares * math.expm1(log_ratio))
    return min(exposure, log_factor + float(np.logaddexp.reduce(terms)))


def _decay(mechanism: SamplingHistogram, epsilon: float) -> tuple[float, float]:
    """Return (ln q, ln s) of the bound delta(x) <= s max_i q^H_i; q >= 1 gives no bound."""
    rate = mechanism.drawn / mechanism.records
    if not mechanism.replacement:
        return -_relative_entropy(epsilon, rate), 0.0
    if epsilon >= 1.0:
        return 1.0 + math.log(rate), 0.0
    if epsilon == 0.0:
        return 0.0, 0.0
    log_ratio = epsilon * (1.0 + math.log(2.0 * rate / epsilon))
    return log_ratio, -log_ratio


def _relative_entropy(epsilon: float, rate: float) -> float:
    """Return K, the relative entropy of Bernoulli(1 - e^-epsilon) to Bernoulli(rate), or 0."""
    share = -math.expm1(-epsilon)
    if rate == 1.0 or share <= rate:
        return 0.0
    lost = math.exp(-epsilon) * (epsilon + math.log1p(-rate))
    return max(0.0, share * math.log1p((share - rate) / rate) - lost)
