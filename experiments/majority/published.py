"""A constant that the DaRRM paper prints, and a noise function that its statements meet."""

from __future__ import annotations

import numpy as np

import dpopt
from dpopt._types import Vector
from dpopt.privacy import Guarantee


def harmonic(voters: int) -> Vector:
    """Return gamma(l) = 1 / |2 l - K| on 0..K, which is epsilon-DP at m = 1."""
    return 1.0 / np.abs(2.0 * np.arange(voters + 1) - voters)


def printed_constant(setting: dpopt.Majority, whole: Guarantee) -> float:
    """Return the right side of (4) in lemma A.1, infinite if its denominator is not above 0."""
    grown, r = float(np.exp(whole.epsilon)), setting.ratio
    loss = 2.0 * (grown - r + (1.0 + r) * whole.delta) / (grown + 1.0) + r - 1.0
    return setting.budget / loss if loss > 0.0 else float("inf")
