"""Utility bounds for private kernels that keep the public distribution: Theorem 1, Lemma 3."""

from __future__ import annotations

import math

from dpopt import _checks
from dpopt._types import Vector, frozen
from dpopt.public_prior.prior import PublicLike, public_distribution


def minimax_utility(public: PublicLike, epsilon: float) -> float:
    """Return Gamma_TV(q, epsilon), the least worst-case total variation (Theorem 1).

    Gamma_TV = min over K of max over p of TV(p, p K), over epsilon-LDP kernels with q K = q. It is
    1 - x with x the least of `diagonal_bounds`. For the f-divergence of any convex f with f(1) = 0
    the least worst case is (1 - x) f(0) + x f(1 / x), attained by the same kernels.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        epsilon: above 0, in nats, at most 600.

    Raises:
        ParameterError: if an argument is out of range.
    """
    smallest = float(public_distribution(public).masses.min())
    # The odds (1 - x) / x, computed without cancellation.
    odds = (1.0 - smallest) / smallest * math.exp(-_privacy(epsilon))
    # They overflow to infinity if the mass is below the normal range of floats.
    return 1.0 if math.isinf(odds) else odds / (1.0 + odds)


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
