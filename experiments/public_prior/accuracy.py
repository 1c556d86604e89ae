"""How near private distributions can be: of the relative mollifier, and by theorem 1."""

from __future__ import annotations

import math

import numpy as np


def mollifier_tv(prior: np.ndarray, pmfs: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the least total variation between each user's pmf and the relative mollifier.

    It is max{sum_x (q(x) e^(-epsilon/2) - p(x))_+, sum_x (p(x) - q(x) e^(epsilon/2))_+}: every pmf
    within the limits is at least that far from p, and the difference of the two sums can be moved
    without raising the larger one.
    """
    half = math.exp(epsilon / 2)
    below, above = np.maximum(0.0, prior / half - pmfs), np.maximum(0.0, pmfs - prior * half)
    return np.asarray(np.maximum(below.sum(axis=-1), above.sum(axis=-1)))


def least_divergences(prior: np.ndarray, epsilon: float) -> dict[str, float]:
    """Return Gamma_f of theorem 1, (1 - x) f(0) + x f(1 / x), for three divergences.

    x is the largest possible min_i K_ii, and (1 - x) / x = e^-epsilon (1 - q_min) / q_min.
    """
    least = float(prior.min())
    odds = (1 - least) / least * math.exp(-epsilon)
    return {"tv": odds / (1 + odds), "kl": math.log1p(odds), "chi-square": odds}
