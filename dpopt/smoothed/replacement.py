"""The sampling-histogram with replacement on binary records: the published count is binomial.

Two neighbouring databases of n records hold H and H + 1 ones; T draws are put back, so the counts
are Bin(T, H/n) and Bin(T, (H + 1)/n). Their log ratio

    lambda(h) = h ln((H + 1)/H) - (T - h) ln((n - H)/(n - H - 1))

rises in h, so every hockey-stick divergence is a tail sum of the positive terms
P(h) (1 - e^(epsilon - lambda(h))).
"""

from __future__ import annotations

import math

import numpy as np

from dpopt import _checks
from dpopt._types import IntVector, Vector
from dpopt.prob import saddle, tails
from dpopt.smoothed.binary import checked_counts, largest_of_pairs, log_largest

_LARGEST = 10**10
_BLOCK = 4096


def log_divergence(records: int, drawn: int, epsilon: float, ones: IntVector) -> Vector:
    """Return ln D(H + 1 || H) for each H, the hockey-stick divergence of the two databases.

    The other direction is D(H || H + 1) = D(n - H || n - 1 - H) by exchanging ones and zeros. At
    the ends, where one of the counts is certain,

        D(1 || 0) = 1 - (1 - 1/n)^T,    D(n || n - 1) = max(0, 1 - e^epsilon (1 - 1/n)^T).

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to 10^10.
        epsilon: at least 0.
        ones: the values of H, integers from 0 to n - 1.

    Returns:
        One logarithm for each H; -inf where the divergence is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.
    """
    records, drawn, epsilon = _check(records, drawn, epsilon)
    ones = checked_counts(ones, records - 1)
    result = np.full(len(ones), -np.inf)
    result[ones == records - 1] = _log_certain(records, drawn, epsilon)
    result[ones == 0] = _log_certain(records, drawn, 0.0)
    inner = np.flatnonzero((ones > 0) & (ones < records - 1))
    for start in range(0, len(inner), _BLOCK):
        part = inner[start : start + _BLOCK]
        result[part] = np.minimum(_log_tails(records, drawn, epsilon, ones[part]), 0.0)
    return result


def log_profile(records: int, drawn: int, epsilon: float) -> Vector:
    """Return ln delta(H) for all numbers of ones H = 0, ..., n.

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to 10^10.
        epsilon: at least 0.

    Returns:
        Shape (n + 1,); -inf where delta is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 5.
    """
    records, drawn, epsilon = _check(records, drawn, epsilon)
    return largest_of_pairs(log_divergence(records, drawn, epsilon, np.arange(records)))


def log_delta_at(records: int, drawn: int, epsilon: float, ones: IntVector) -> Vector:
    """Return ln delta(H), as `log_profile`, at chosen numbers of ones H only.

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to 10^10.
        epsilon: at least 0.
        ones: the values of H, integers from 0 to n.

    Returns:
        One logarithm for each H; -inf where delta is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.
    """
    records, drawn, epsilon = _check(records, drawn, epsilon)
    ones = checked_counts(ones, records)
    return log_largest(records, ones, lambda each: log_divergence(records, drawn, epsilon, each))


def _check(records: int, drawn: int, epsilon: float) -> tuple[int, int, float]:
    records = _checks.integer("records", records, 1, _LARGEST)
    drawn = _checks.integer("drawn", drawn, 1, _LARGEST)
    return records, drawn, _checks.real("epsilon", epsilon, 0.0)


def _log_certain(records: int, drawn: int, epsilon: float) -> float:
    """Return ln max(0, 1 - e^epsilon (1 - 1/n)^T)."""
    if records == 1:
        return 0.0
    ends = np.array([records - 1, records])
    logs = saddle.log_integer(ends)
    step = saddle.add((logs[0][:1], logs[1][:1]), saddle.negative((logs[0][1:], logs[1][1:])))
    high, low = saddle.scale(np.array([float(drawn)]), step)
    exponent = float((epsilon + high + low)[0])
    return math.log(-math.expm1(exponent)) if exponent < 0 else -math.inf


def _log_tails(records: int, drawn: int, epsilon: float, ones: IntVector) -> Vector:
    """Return ln D(H + 1 || H) for H from 1 to n - 2."""
    one, more = saddle.log_integer(ones), saddle.log_integer(ones + 1)
    zero, fewer = saddle.log_integer(records - ones), saddle.log_integer(records - ones - 1)
    up = saddle.add(more, saddle.negative(one))
    down = saddle.add(zero, saddle.negative(fewer))
    slope = saddle.add(up, down)
    start, gap = _first(drawn, epsilon, up, down, slope)
    found = np.flatnonzero(gap > 0)
    h = start[found]
    odds = (ones[found] + 1.0) / (records - ones[found] - 1.0)
    sums = tails.binomial_tails(drawn, h, odds, gap[found], slope[0][found])
    fixed = saddle.scale(np.array(float(drawn)), saddle.log_integer(np.array(records)))
    result = np.full(len(ones), -np.inf)
    result[found] = saddle.total(
        [
            (np.log(sums), np.zeros(len(found))),
            saddle.log_factorial(np.array(drawn)),
            saddle.negative(fixed),
            saddle.negative(saddle.log_factorial(h)),
            saddle.negative(saddle.log_factorial(drawn - h)),
            saddle.scale(h.astype(np.float64), (more[0][found], more[1][found])),
            saddle.scale(np.float64(drawn) - h, (fewer[0][found], fewer[1][found])),
        ]
    )
    return result


def _first(
    drawn: int, epsilon: float, up: saddle.Pair, down: saddle.Pair, slope: saddle.Pair
) -> tuple[IntVector, Vector]:
    """Return the least h with lambda(h) > epsilon and the gap; a gap of 0 where there is none."""
    root = (epsilon + drawn * down[0]) / slope[0]
    guess = np.floor(np.minimum(root, drawn)) - 1.0
    start, gap = np.zeros(len(guess), dtype=np.int64), np.zeros(len(guess))
    for shift in (3.0, 2.0, 1.0, 0.0):
        h = np.clip(guess + shift, 0.0, drawn)
        ratio = saddle.add(saddle.scale(h, up), saddle.negative(saddle.scale(drawn - h, down)))
        high, rest = saddle.two_sum(ratio[0], np.full_like(h, -epsilon))
        value = high + (rest + ratio[1])
        better = value > 0
        start[better], gap[better] = h[better].astype(np.int64), value[better]
    return start, gap
