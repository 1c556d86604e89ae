"""De Casteljau's scheme in logarithms: all compositions in O(n^2) positive terms."""

from __future__ import annotations

import math

import numpy as np

from dpopt._types import Vector
from dpopt.prob.sum_law import Share

_LARGEST_EXPONENT = 650.0
_NO_EXPONENT = -(2**50)


def all_compositions(values: Vector, low: Share, high: Share) -> Vector:
    """Return log E_{n1} for n1 = 0..n; see `composition.log_all_compositions`.

    Args:
        values: log V(H), shape (n + 1,).
        low: the smaller share of ones.
        high: the larger one.
    """
    if high.one == 0.0:
        return np.full(values.size, values[0])
    first = subdivide(values, high.zero, high.one)[0]
    ratio = low.exact / high.exact
    return subdivide(first, float(1 - ratio), float(ratio))[1]


def subdivide(log_values: Vector, keep: float, take: float) -> tuple[Vector, Vector]:
    """Return the two halves of de Casteljau's scheme b_j <- keep b_j + take b_{j+1}, in logs.

    Returns:
        Entry k of the first is b_0 after k steps, entry k of the second b_k after n - k steps.
    """
    finite = np.isfinite(log_values)
    if not finite.any():
        return log_values.copy(), log_values.copy()
    if keep == 0.0 or take == 0.0:
        same = np.full_like(log_values, log_values[0 if take == 0.0 else -1])
        return (same, log_values.copy()) if take == 0.0 else (log_values.copy(), same)
    top, bottom = float(log_values[finite].max()), float(log_values[finite].min())
    if finite.all() and top - bottom < _LARGEST_EXPONENT:
        shift = 0.5 * (top + bottom)
        return _plain_scheme(log_values, shift, keep, take)
    return _scaled_scheme(log_values, keep, take)


def _plain_scheme(
    log_values: Vector, shift: float, keep: float, take: float
) -> tuple[Vector, Vector]:
    """Run the scheme in plain floats: averages stay between the extremes, within e^650."""
    b = np.exp(log_values - shift)
    n = b.size - 1
    first, last = np.empty(n + 1), np.empty(n + 1)
    first[0], last[n] = b[0], b[n]
    for k in range(1, n + 1):
        b = keep * b[:-1] + take * b[1:]
        first[k], last[n - k] = b[0], b[-1]
    return np.log(first) + shift, np.log(last) + shift


def _scaled_scheme(log_values: Vector, keep: float, take: float) -> tuple[Vector, Vector]:
    """Run the scheme with a binary exponent for each entry, for values of any size."""
    finite = np.isfinite(log_values)
    binary = np.where(finite, log_values, 0.0) / math.log(2.0)
    exponent = np.round(binary).astype(np.int64)
    whole = exponent * math.log(2.0)
    mantissa = np.where(finite, np.exp(np.where(finite, log_values - whole, 0.0)), 0.0)
    exponent = np.where(finite, exponent, _NO_EXPONENT)
    n = log_values.size - 1
    first, last = np.empty((2, n + 1)), np.empty((2, n + 1))
    first[:, 0], last[:, n] = (mantissa[0], exponent[0]), (mantissa[n], exponent[n])
    for k in range(1, n + 1):
        common = np.maximum(exponent[:-1], exponent[1:])
        kept = np.ldexp(keep * mantissa[:-1], np.maximum(exponent[:-1] - common, -4000))
        taken = np.ldexp(take * mantissa[1:], np.maximum(exponent[1:] - common, -4000))
        mantissa, shift = np.frexp(kept + taken)
        exponent = np.where(mantissa > 0.0, common + shift, _NO_EXPONENT)
        first[:, k], last[:, n - k] = (mantissa[0], exponent[0]), (mantissa[-1], exponent[-1])
    with np.errstate(divide="ignore"):
        left, right = np.log(first[0]), np.log(last[0])
    return left + first[1] * math.log(2.0), right + last[1] * math.log(2.0)
