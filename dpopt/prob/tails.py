"""Tail sums of hypergeometric and binomial pmfs against weights that grow away from the anchor.

Each sum starts at the term next to the threshold, takes the following ones by closed-form ratios
and stops when a geometric bound on the rest is below 1e-16 of the sum. All terms are positive; the
product of j ratios carries a relative error of at most 5 j 2^-53.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from dpopt._types import IntVector, Matrix, Vector
from dpopt.prob import logarithms

Share = Literal["all", "a", "b"]

Terms = Callable[[Matrix], Matrix]
"""What returns terms for a column of their numbers i = 0, 1, ..., shape (terms, distributions)."""

_REST = 1e-16
_CANCELLED = 1e-2  # below this share of its terms a difference is computed in double-double
# Distributions summed together; numbers in a table of terms by distributions; fewest and most terms
# of a stretch.
_BLOCK, _TABLE, _LEAST, _MOST = 4096, 1 << 15, 8, 1 << 16


def hypergeometric_tails(
    records: int,
    lost: int,
    held: IntVector,
    alpha: float,
    beta: tuple[float, float],
    share: Share = "all",
) -> tuple[IntVector, Vector]:
    """Return k* and sum_{k <= k*} h(k)/h(k*) w(k) (alpha a(k) - beta b(k)) for each G in ``held``.

    h is Hypergeometric(n + 1, G, L + 1), a(k) = G (L + 1 - k), b(k) = (n + 1 - G) k and k* the
    largest k with alpha a > beta b; if it is below the support of h the sum is 0.

    Args:
        records: n.
        lost: L, from 0 to n - 1.
        held: the values of G, from 1 to n.
        alpha: above 0.
        beta: a double-double number, at least alpha.
        share: "all" for w = 1, "a" for w = a/(a + b), "b" for w = b/(a + b).

    Returns:
        The vectors of k* and of the sums.
    """
    last, sums = np.empty(len(held), dtype=np.int64), np.zeros(len(held))
    for start in range(0, len(held), _BLOCK):
        ones = held[start : start + _BLOCK].astype(np.float64)
        zeros = records + 1.0 - ones
        anchor, above = last_above(ones, zeros, np.full(len(ones), float(lost)), alpha, beta)
        last[start : start + _BLOCK] = anchor
        inside = np.flatnonzero(anchor >= lost + ones - records)
        ones, zeros, top, above = (v[inside] for v in (ones, zeros, anchor, above))
        slope = alpha * ones + beta[0] * zeros
        terms = _hypergeometric(lost, ones, zeros, top, above, slope, share)
        sums[start + inside] = _sums(len(inside), *terms)
    return last, sums


def _hypergeometric(
    lost: int,
    ones: Vector,
    zeros: Vector,
    top: Vector,
    above: Vector,
    slope: Vector,
    share: Share,
) -> tuple[Terms, Terms]:
    """Return h(k - 1)/h(k) and w(k) (alpha a(k) - beta b(k)) of `hypergeometric_tails`, k = k* - i.

    h(k - 1)/h(k) = k (n - G - L + k)/((G + 1 - k)(L + 2 - k)) is 0 at the support's lower end.
    """
    left, right = zeros - (lost + 1.0), ones + 1.0

    def ratios(i: Matrix) -> Matrix:
        k = top - i
        found, below = left + k, (lost + 2.0) - k
        found *= k
        np.subtract(right, k, out=k)
        below *= k
        found /= below
        # Beyond the support, where a ratio was 0, its terms are to stay 0.
        return np.maximum(found, 0.0, out=found)

    def weights(i: Matrix) -> Matrix:
        found = slope * i
        found += above
        if share != "all":
            # Below 0, where the term is 0, a + b could be 0 as well.
            k = np.maximum(top - i, 0.0)
            a, b = ones * (lost + 1.0 - k), zeros * k
            found *= (a if share == "a" else b) / (a + b)
        return found

    return ratios, weights


def binomial_tails(
    drawn: int, start: IntVector, odds: Vector, gap: Vector, slope: Vector
) -> Vector:
    """Return sum_{h >= h*} P(h)/P(h*) (1 - e^(-gap - slope (h - h*))) for each pmf Bin(T, p).

    Args:
        drawn: T.
        start: the values of h*, from 0 to T.
        odds: p / (1 - p), finite, of each distribution.
        gap: above 0.
        slope: above 0.

    Returns:
        One sum for each distribution.
    """

    def ratios(i: Matrix) -> Matrix:
        return odds * np.maximum(drawn - start - i, 0.0) / (start + i + 1.0)

    return _sums(len(start), ratios, lambda i: -np.expm1(-gap - slope * i))


def _sums(pmfs: int, ratios: Terms, weights: Terms) -> Vector:
    """Return sum_i r_0 ... r_{i-1} w_i for each distribution, in stretches of terms.

    The ratios fall and the weights grow by at most their own value now at each step: the terms from
    t on are at most t (1 + r + r^2 + ...)^2 = t/(1 - r)^2 together.

    Args:
        pmfs: how many sums there are.
        ratios: r_i of each distribution.
        weights: w_i of each distribution.
    """
    total, last, first = np.zeros(pmfs), np.ones(pmfs), 0
    length = max(_LEAST, min(_TABLE // max(pmfs, 1), 64))
    while pmfs:
        # Axes: i, distribution.
        i = np.arange(first, first + length, dtype=np.float64)[:, None]
        factors, terms = ratios(i), weights(i)
        gap = 1.0 - factors[-1]
        products = np.cumprod(factors, axis=0, out=factors)
        products *= last
        terms[0] *= last
        terms[1:] *= products[:-1]
        total += terms.sum(axis=0)
        last, first = products[-1].copy(), first + length
        term = last * weights(np.array([[float(first)]]))[0]
        if np.all((gap > 0.0) & (term <= _REST * total * gap * gap)):
            break
        length = min(2 * length, max(_LEAST, _TABLE // pmfs), _MOST)
    return total


def last_above(
    ones: Vector, zeros: Vector, lost: Vector, alpha: float, beta: tuple[float, float]
) -> tuple[Vector, Vector]:
    """Return the largest k <= L with alpha a > beta b, and alpha a - beta b there.

    The root of the difference is computed in floats; where it lies within its rounding of an
    integer, the sign of the difference in double-double decides. k = 0 always qualifies.
    """
    root = alpha * ones * (lost + 1.0) / (alpha * ones + beta[0] * zeros)
    last = np.minimum(np.floor(root), lost)
    nearest = np.rint(root)
    near = np.flatnonzero(np.abs(root - nearest) <= 1e-14 * (root + 1.0))
    if near.size:
        sign = excess(ones[near], zeros[near], lost[near], nearest[near], alpha, beta)
        last[near] = np.minimum(nearest[near] - (sign <= 0.0), lost[near])
    a = alpha * ones * (lost + 1.0 - last)
    above = a - beta[0] * zeros * last
    small = np.flatnonzero(above <= _CANCELLED * a)
    above[small] = excess(ones[small], zeros[small], lost[small], last[small], alpha, beta)
    return last, above


def first_above(
    drawn: Vector,
    epsilon: float,
    up: logarithms.Pair,
    down: logarithms.Pair,
    slope: logarithms.Pair,
) -> tuple[IntVector, Vector]:
    """Return the least h <= T with lambda(h) = h up - (T - h) down > epsilon, and the gap.

    Args:
        drawn: T, one or more.
        epsilon: at least 0.
        up: above 0, in double-double like the two that follow.
        down: above 0.
        slope: up + down.

    Returns:
        The vectors of h and of lambda(h) - epsilon, a gap of 0 where there is no such h.
    """
    root = (epsilon + drawn * down[0]) / slope[0]
    guess = np.floor(np.minimum(root, drawn)) - 1.0
    start, gap = np.zeros(len(guess), dtype=np.int64), np.zeros(len(guess))
    for shift in (3.0, 2.0, 1.0, 0.0):
        h = np.clip(guess + shift, 0.0, drawn)
        ratio = logarithms.add(
            logarithms.scale(h, up), logarithms.negative(logarithms.scale(drawn - h, down))
        )
        high, rest = logarithms.two_sum(ratio[0], np.full_like(h, -epsilon))
        value = high + (rest + ratio[1])
        better = value > 0
        start[better], gap[better] = h[better].astype(np.int64), value[better]
    return start, gap


def excess(
    ones: Vector, zeros: Vector, lost: Vector, k: Vector, alpha: float, beta: tuple[float, float]
) -> Vector:
    """Return alpha ones (L + 1 - k) - beta zeros k from double-double products."""
    a, a_low = logarithms.two_product(ones, lost + 1.0 - k)
    b, b_low = logarithms.two_product(zeros, k)
    left, left_low = logarithms.two_product(np.full_like(a, alpha), a)
    right, right_low = logarithms.two_product(np.full_like(b, beta[0]), b)
    high, low = logarithms.two_sum(left, -right)
    return high + (low + ((left_low + alpha * a_low) - (right_low + beta[0] * b_low + beta[1] * b)))
