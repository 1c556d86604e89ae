"""Renyi differential privacy of Gaussian noise: conversion to (epsilon, delta), exact values.

M is (alpha, D)-RDP if D_alpha(M(x) || M(x')) <= D for all neighbours x, x', where D_alpha(P || Q)
= log E_Q[(dP / dQ)^alpha] / (alpha - 1). The curve rho * alpha is rho-zCDP (Bun, Steinke 2016):
it is the exact privacy loss of Gaussian noise. Such rho add up, also if a mechanism is chosen from
earlier answers (Mironov 2017, proposition 1). The numbers are floats; they are no proof.

Throughout, sigma is above 0, the sensitivity Delta_2 and rho at least 0, and delta lies in (0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar
from scipy.special import erfcx, ndtr

from dpopt import ParameterError
from dpopt.privacy.guarantee import Guarantee

# Orders minus 1 between which a conversion searches.
_SMALLEST, _LARGEST = 1e-9, 1e15
# Relative rounding error of the two terms of a Gaussian's delta, over (1 + far)^2.
_ROUNDING = 2.0**-47


def gaussian_rho(sigma: float, sensitivity: float = 1.0) -> float:
    """Return the rho of noise N(0, sigma^2 I) on a vector: Delta_2^2 / (2 sigma^2).

    The curve rho * alpha is the divergence itself, not a bound on it.

    References:
        Mironov (2017), corollary 3.
    """
    ratio = _ratio(sigma, sensitivity)
    if not ratio < 1e150:
        raise ParameterError(f"sigma is {sigma}; it must be at least 1e-150 times sensitivity.")
    return 0.5 * ratio * ratio


def rho_epsilon(rho: float, delta: float) -> float:
    """Return the least D + log(1 / delta) / (alpha - 1), D = rho alpha, over the orders alpha.

    It is rho + 2 sqrt(rho log(1 / delta)), at alpha = 1 + sqrt(log(1 / delta) / rho).

    References:
        Mironov (2017), proposition 3, which is theorem D.1 of the DaRRM paper.
    """
    # Two roots, so that a tiny rho does not overflow.
    return rho + 2.0 * math.sqrt(rho) * math.sqrt(-math.log(delta))


def improved_epsilon(rho: float, delta: float) -> float:
    """Return the least epsilon over the orders by the improved conversion, at least 0.

    D + log((alpha - 1) / alpha) - (log delta + log alpha) / (alpha - 1), D = rho alpha. Where it is
    at most e is an interval of orders: a bounded search over log(alpha - 1) finds the minimum.

    References:
        Canonne, Kamath, Steinke (2020), proposition 12; Balle, Barthe, Gaboardi, Hsu, Sato (2020).
    """
    if rho == 0.0:
        return 0.0
    loss = -math.log(delta)

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)
        log_order = math.log1p(excess)
        divergence = rho * (1.0 + excess)
        return divergence + math.log(excess) - log_order + (loss - log_order) / excess

    ends = math.log(_SMALLEST), math.log(_LARGEST)
    best = minimize_scalar(epsilon, bounds=ends, method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(best.fun))


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta for which Gaussian noise is (epsilon, delta)-DP: exact, no bound.

    Phi(r/2 - epsilon/r) - e^epsilon Phi(-r/2 - epsilon/r) with r = Delta_2 / sigma. Since
    e^epsilon times the normal density at the second point is the density at the first, no
    exponential grows.

    References:
        Balle, Wang (2018), theorem 8.
    """
    ratio = _ratio(sigma, sensitivity)
    if ratio == 0.0:
        return 0.0
    near, far = ratio / 2.0 - epsilon / ratio, ratio / 2.0 + epsilon / ratio
    scale = 0.5 * math.exp(-0.5 * near * near)
    tail = float(erfcx(far / math.sqrt(2.0)))
    if near > 0.0:
        return max(0.0, float(ndtr(near)) - scale * tail)
    return max(0.0, scale * (float(erfcx(-near / math.sqrt(2.0))) - tail))


def gaussian_epsilon(delta: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the smallest epsilon for which Gaussian noise is (epsilon, delta)-DP, rounded up.

    By bisection of `gaussian_delta` and a bound on its rounding, below the classical conversion.
    """
    ratio = _ratio(sigma, sensitivity)

    def enough(epsilon: float) -> bool:
        exact = gaussian_delta(epsilon, sigma, sensitivity)
        far = min(ratio / 2.0 + epsilon / ratio, 1e100) if ratio else 0.0
        off = ratio - far
        # The smaller of the two terms, by the tail of the other, and what each may be off.
        smaller = 0.5 * math.exp(-0.5 * off * off) * float(erfcx(far / math.sqrt(2.0)))
        return exact + _ROUNDING * (1.0 + far) ** 2 * (exact + 2.0 * smaller) <= delta

    if enough(0.0):
        return 0.0
    start = rho_epsilon(gaussian_rho(sigma, sensitivity), delta)
    return least_feasible(enough, start)


def gaussian_sigma(guarantee: Guarantee, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation for which Gaussian noise meets a guarantee.

    References:
        Balle, Wang (2018), section 3.

    Example:
        >>> from dpopt import Guarantee
        >>> from experiments.majority.renyi import gaussian_sigma
        >>> round(gaussian_sigma(Guarantee(1.0, 1e-5), sensitivity=1.0), 4)
        3.7306
    """
    delta = guarantee.delta
    # delta(0) = erf(r / sqrt 8) <= r / sqrt(2 pi): enough at every epsilon.
    start = min(sensitivity / (delta * math.sqrt(2.0 * math.pi)), 1e300)
    return least_feasible(
        lambda s: gaussian_delta(guarantee.epsilon, s, sensitivity) <= delta, start
    )


def least_feasible(feasible: Callable[[float], bool], start: float) -> float:
    """Return the feasible end of a bisection of (0, start] down to neighbouring floats.

    It is the smallest feasible number if whatever is above a feasible number is feasible too.

    The start is doubled until it is feasible.
    """
    high = start
    while not feasible(high):
        high *= 2.0
        if math.isinf(high):
            raise ParameterError("no number meets the guarantee; epsilon or delta is too small.")
    low = 0.5 * high
    while low > 0.0 and feasible(low):
        low, high = 0.5 * low, low
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high


def _ratio(sigma: float, sensitivity: float) -> float:
    if not (sigma > 0.0 and 0.0 <= sensitivity / sigma < math.inf):
        raise ParameterError(f"sigma is {sigma:g}; it must be above 0, and not too small.")
    return sensitivity / sigma
