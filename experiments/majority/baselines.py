"""Noise functions in closed form: subsampling, double subsampling, randomised response."""

from __future__ import annotations

import math
from math import comb

import numpy as np

import dpopt
from dpopt import _checks, majority
from dpopt._types import Vector, frozen
from dpopt.majority.voters import Voters, full_gamma, odd, require_voters, signed


def baseline(
    setting: dpopt.Majority,
    name: str,
    size: int = 0,
    tau: float | None = None,
    lam: float | None = None,
) -> dpopt.Design:
    """Return the design of one of the noise functions below, lowered by what its proof asks for.

    At m = 1 subsampling spends the whole budget: to round its gamma may break the proof.

    Args:
        setting: the voters and the target.
        name: "subsampling", "double" or "constant".
        size: of the sample, or the m of "double".
        tau: of `constant`.
        lam: of `constant`.
    """
    if name == "constant":
        gamma = constant(setting, tau, lam)
    else:
        gamma = (subsampling if name == "subsampling" else double_subsampling)(setting.voters, size)
    return majority.assess(setting, gamma, repair=True)


def chances_of(gamma: Vector) -> Vector:
    """Return Pr[output 1 | L = l] = 1/2 +- gamma(l) / 2 on 0..K, shape (K + 1,)."""
    return 0.5 + 0.5 * signed(gamma)


def subsampling(voters: int, size: int) -> Vector:
    """Return gamma_Sub: the majority of ``size`` voters drawn without replacement (lemma 3.1).

    gamma(l) = 2 Pr[majority of the sample is 1 | L = l] - 1 for l >= (K + 1) / 2, with ties of an
    even sample broken by a fair coin, and gamma(K - l) = gamma(l).

    Args:
        voters: K, odd.
        size: number of voters drawn, in 1..K; size = m gives (m epsilon, m Delta)-DP.

    Returns:
        gamma on 0..K, shape (K + 1,), read-only.
    """
    k = odd(voters)
    size = _checks.integer("size", size, 1, k)
    # Twice as many samples as there are, of which a tie counts once for either majority.
    samples = 2 * comb(k, size)
    upper = []
    for ones in range(k // 2 + 1, k + 1):
        drawn = (comb(ones, s) * comb(k - ones, size - s) for s in range(size + 1))
        won = sum(n * (1 + (2 * s > size) - (2 * s < size)) for s, n in enumerate(drawn))
        upper.append((2 * won - samples) / samples)
    return frozen(full_gamma(np.array(upper)))


def double_subsampling(voters: int, allowance: int) -> Vector:
    """Return gamma_DSub: the majority of 2m - 1 voters, or of all if m >= (K + 1) / 2.

    It is m epsilon-DP for pure epsilon-DP voters with equal p_i (theorem 4.1).

    Args:
        voters: K, odd.
        allowance: m, an integer in 1..K.

    Returns:
        gamma on 0..K, shape (K + 1,), read-only.
    """
    k = odd(voters)
    m = _checks.integer("allowance", allowance, 1, k)
    return subsampling(k, min(2 * m - 1, k))


def constant(setting: Voters, tau: float | None = None, lam: float | None = None) -> Vector:
    """Return gamma_const: randomised response on the majority (lemma A.1).

    For a majority that is itself (tau eps, lambda)-DP, gamma is the constant min(1, B / (A + R -
    1)) with R = e^{m eps}, B = R - 1 + 2 delta and A = 2 (e^{tau eps} - R + (1 + R) lambda) /
    (e^{tau eps} + 1). A is raised to 2 lambda where it is smaller, which happens only for tau < m:
    lemma A.1 leaves out that corner of the polygon, and its gamma is not private there.

    Args:
        setting: the voters and the target.
        tau: above 0; None for K, by simple composition.
        lam: lambda, in [0, 1]; None for min(K Delta, 1), by simple composition.

    Returns:
        gamma on 0..K, shape (K + 1,), read-only.
    """
    require_voters(setting)
    k, r = setting.voters, setting.ratio
    tau = float(k) if tau is None else _checks.real("tau", tau, 0.0, open_lower=True)
    lam = min(k * setting.voter_delta, 1.0) if lam is None else _checks.real("lam", lam, 0.0, 1.0)
    # Numerator and denominator of A times e^{-tau eps}, so that large tau eps cannot overflow.
    shrink = math.exp(-tau * setting.epsilon)
    loss = 2.0 * (1.0 - r * shrink + (1.0 + r) * lam * shrink) / (1.0 + shrink)
    loss = max(loss, 2.0 * lam)
    value = setting.budget / (loss + math.expm1(setting.allowance * setting.epsilon))
    return frozen(np.full(k + 1, min(value, 1.0)))
