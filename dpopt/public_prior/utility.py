"""Utility bounds for private kernels that keep the public distribution: Theorem 1, Lemmas 1, 3."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.public_prior.prior import PublicLike, public_distribution

DIVERGENCES = ("tv", "kl", "chi-square")
"""Names of the divergences that `minimax_utility` accepts."""

Divergence = str | Callable[[Vector], Vector]
"""A name among `DIVERGENCES`, or f: convex, f(1) = 0, elementwise on positive ratios."""


def minimax_utility(public: PublicLike, epsilon: float, divergence: Divergence = "tv") -> float:
    """Return Gamma_f(q, epsilon), the least worst-case f-divergence (Theorem 1).

    Gamma_f = min over K of max over p of D_f(p || p K), over epsilon-LDP kernels with q K = q.
    With d = e^epsilon q_min + 1 - q_min and x = e^epsilon q_min / d,

        Gamma_f = (1 - x) f(0) + x f(1 / x),

    which is (1 - q_min) / d for total variation, log(1 / x) for KL and (1 - x) / x for
    chi-square.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        epsilon: above 0, in nats, at most 600.
        divergence: "tv", "kl", "chi-square", or the function f of an f-divergence
            sum_x q(x) f(p(x) / q(x)); f(0) must be its limit at 0, possibly infinite.

    Returns:
        The divergence, in nats for "kl"; infinite if f(0) is.

    Raises:
        ParameterError: if an argument is out of range, or f(1) is not 0.
    """
    q = public_distribution(public).masses
    smallest = float(q.min())
    # The odds (1 - x) / x, with x the bound of Lemma 3, computed without cancellation.
    return _from_odds((1.0 - smallest) / smallest * math.exp(-_privacy(epsilon)), divergence)


def point_mass_divergence(kept: float, divergence: Divergence = "tv") -> float:
    """Return g(x) = f(0) (1 - x) + x f(1 / x): D_f of a point mass at i from row i, with x = K_ii.

    By Lemma 1, max over all p of D_f(p || p K) = g(min_i K_ii): point masses are the worst
    distributions.

    Args:
        kept: x = K_ii, in (0, 1].
        divergence: see `minimax_utility`.

    Raises:
        ParameterError: if an argument is out of range, or f(1) is not 0.
    """
    x = _checks.real("kept", kept, 0.0, 1.0, open_lower=True)
    return _from_odds((1.0 - x) / x, divergence)


def diagonal_bounds(public: PublicLike, epsilon: float) -> Vector:
    """Return upper bounds on K_ii: e^epsilon q_i / (e^epsilon q_i + 1 - q_i) (Lemma 3).

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        epsilon: above 0, in nats, at most 600.

    Returns:
        Shape (n,), read-only.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_distribution(public).masses
    return frozen(q / (q + (1.0 - q) * math.exp(-_privacy(epsilon))))


def _privacy(epsilon: float) -> float:
    return _checks.real("epsilon", epsilon, 0.0, 600.0, open_lower=True)


def _from_odds(odds: float, divergence: Divergence) -> float:
    """Return g(x) for (1 - x) / x = odds."""
    if callable(divergence):
        return _generic(odds, divergence)
    _checks.choice("divergence", divergence, DIVERGENCES)
    if divergence == "tv":
        # The odds overflow to infinity if the mass is below the normal range of floats.
        return 1.0 if math.isinf(odds) else odds / (1.0 + odds)
    return math.log1p(odds) if divergence == "kl" else odds


def _generic(odds: float, f: Callable[[Vector], Vector]) -> float:
    one, ratio = _value(f, 1.0), 1.0 + odds
    if not abs(one) <= 1e-12:
        raise ParameterError(f"divergence is a function f with f(1) = {one:g}; it must be 0.")
    zero = _value(f, 0.0)
    if math.isnan(zero) or zero == -math.inf:
        raise ParameterError(
            f"divergence is a function f with f(0) = {zero:g}; it must be the limit of f(t) for "
            "t -> 0, a number or infinity."
        )
    at_zero = 0.0 if odds == 0.0 else odds / ratio * zero
    return at_zero + _value(f, ratio) / ratio


def _value(f: Callable[[Vector], Vector], ratio: float) -> float:
    with np.errstate(all="ignore"):
        values = _checks.floats("the value of divergence", f(np.array([ratio])))
    if values.shape != (1,):
        raise ParameterError(
            f"divergence returned shape {values.shape} for shape (1,); it must work elementwise."
        )
    return float(values[0])
