"""Tail sums of hypergeometric and binomial laws against weights that grow away from the anchor.

Each sum starts at the term next to the threshold, takes the following ones by closed-form ratios
and stops when a geometric bound on the rest is below 1e-16 of the sum. All terms are positive; the
product of j ratios carries a relative error of at most 5 j 2^-53.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpopt._types import IntVector, Vector
from dpopt.prob import logarithms

Share = Literal["all", "a", "b"]

_REST = 1e-16
_BLOCK = 8192
_CANCELLED = 1e-2  # below this share of its terms a difference is computed in double-double
_FEW = 4  # sums of fewer laws take many terms at a time of one law, not a term of each
_FIRST_STRETCH, _LONGEST_STRETCH = 64, 1 << 16
_STEPS = 4  # the bound on the rest is looked at only every so many terms


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
        block = slice(start, start + _BLOCK)
        ones = held[block].astype(np.float64)
        zeros = records + 1.0 - ones
        anchor, above = last_above(ones, zeros, np.full(len(ones), float(lost)), alpha, beta)
        inside = np.flatnonzero(anchor >= lost + ones - records)
        ones, zeros = ones[inside], zeros[inside]
        slope = alpha * ones + beta[0] * zeros
        summed = _hypergeometric_block if len(inside) > _FEW else _hypergeometric_few
        totals = summed(lost, ones, zeros, anchor[inside], above[inside], slope, share)
        last[block] = anchor
        sums[start + inside] = totals
    return last, sums


def binomial_tails(
    drawn: int, start: IntVector, odds: Vector, gap: Vector, slope: Vector
) -> Vector:
    """Return sum_{h >= h*} P(h)/P(h*) (1 - e^(-gap - slope (h - h*))) for each law Bin(T, p).

    The weight w obeys w <- w e^(-slope) + (1 - e^(-slope)): only positive numbers are added.

    Args:
        drawn: T.
        start: the values of h*, from 0 to T.
        odds: p / (1 - p), finite, of each law.
        gap: above 0.
        slope: above 0.

    Returns:
        One sum for each law.
    """
    if len(start) <= _FEW:
        numbers = zip(*(v.tolist() for v in (start, odds, gap, slope)), strict=True)
        return np.array([_binomial_sum(drawn, h, o, g, s) for h, o, g, s in numbers])
    h, weight = start.astype(np.float64), -np.expm1(-gap)
    rise, keep = -np.expm1(-slope), np.exp(-slope)
    relative, total = np.ones(len(h)), np.zeros(len(h))
    step = 0
    while True:
        total += relative * weight
        ratio = odds * (drawn - h)
        h += 1.0
        ratio /= h
        relative *= ratio
        weight *= keep
        weight += rise
        step += 1
        if step % _STEPS == 0 and _finished(relative * weight, ratio, total):
            return total


def _binomial_sum(drawn: int, start: int, odds: float, gap: float, slope: float) -> float:
    """Return one sum of `binomial_tails`, in stretches of terms."""
    total, last, first, length = 0.0, 1.0, 0, _FIRST_STRETCH
    while True:
        # terms: P(h* + i)/P(h*) for i = first, first + 1, ...; ratios[.] leads to the next one.
        i = np.arange(first, first + length, dtype=np.float64)
        ratios = odds * np.maximum(drawn - start - i, 0.0) / (start + i + 1.0)
        following = last * np.cumprod(ratios)
        terms = np.concatenate(([last], following[:-1])) * -np.expm1(-gap - slope * i)
        total += float(terms.sum())
        last, first = float(following[-1]), first + length
        # The weights are at most 1.
        if _finished(last, float(ratios[-1]), total):
            return total
        length = min(2 * length, _LONGEST_STRETCH)


def _hypergeometric_block(
    lost: int,
    ones: Vector,
    zeros: Vector,
    k: Vector,
    excess: Vector,
    slope: Vector,
    share: Share,
) -> Vector:
    """Return the sums of `hypergeometric_tails` from k = k* down; ``k`` and ``excess`` are spent.

    h(k - 1)/h(k) = k (n - G - L + k)/((G + 1 - k)(L + 2 - k)) is 0 at the support's lower end.
    """
    relative, total = np.ones(len(k)), np.zeros(len(k))
    ratio, below, rest = np.empty(len(k)), np.empty(len(k)), np.empty(len(k))
    left, right, top = zeros - (lost + 1.0), ones + 1.0, lost + 2.0
    step = 0
    while True:
        np.multiply(relative, excess, out=rest)
        if share != "all":
            inside = np.maximum(k, 0.0)  # below, where the term is 0, a + b could be 0 as well
            a, b = ones * (lost + 1.0 - inside), zeros * inside
            rest *= (a if share == "a" else b) / (a + b)
        total += rest
        np.add(left, k, out=ratio)
        ratio *= k
        np.subtract(right, k, out=below)
        np.subtract(top, k, out=rest)
        below *= rest
        ratio /= below
        relative *= ratio
        excess += slope
        k -= 1.0
        step += 1
        if step % _STEPS == 0 and _finished(relative * excess, ratio, total):
            return total


def _hypergeometric_few(
    lost: int,
    ones: Vector,
    zeros: Vector,
    k: Vector,
    excess: Vector,
    slope: Vector,
    share: Share,
) -> Vector:
    """Return what `_hypergeometric_block` does, each sum by itself in stretches of terms."""
    numbers = zip(*(v.tolist() for v in (ones, zeros, k, excess, slope)), strict=True)
    return np.array(
        [_hypergeometric_sum(lost, g, z, at, e, rise, share) for g, z, at, e, rise in numbers]
    )


def _hypergeometric_sum(
    lost: int, ones: float, zeros: float, k: float, above: float, slope: float, share: Share
) -> float:
    """Return one sum of `hypergeometric_tails` from k = k* down."""
    total, last, length = 0.0, 1.0, _FIRST_STRETCH
    while True:
        # terms: h(k - i)/h(k*) for i = 0, 1, ...; ratios[i] leads from i to i + 1.
        i = np.arange(length, dtype=np.float64)
        at = k - i
        ratios = at * (zeros - (lost + 1.0) + at) / ((ones + 1.0 - at) * (lost + 2.0 - at))
        # Beyond the support, where a ratio was 0, its terms are to stay 0.
        np.maximum(ratios, 0.0, out=ratios)
        following = last * np.cumprod(ratios)
        terms = np.concatenate(([last], following[:-1])) * (above + slope * i)
        if share != "all":
            inside = np.maximum(at, 0.0)
            a, b = ones * (lost + 1.0 - inside), zeros * inside
            terms *= (a if share == "a" else b) / (a + b)
        total += float(terms.sum())
        last, k, above = float(following[-1]), k - length, above + slope * length
        if _finished(last * above, float(ratios[-1]), total):
            return total
        length = min(2 * length, _LONGEST_STRETCH)


def _finished(term: Vector | float, ratio: Vector | float, total: Vector | float) -> bool:
    """Say whether the terms from ``term`` on are negligible in every sum, or in one.

    The ratios fall and the weights grow by at most their own value now at each step: the terms
    are at most term (1 + r + r^2 + ...)^2 = term/(1 - r)^2 together.
    """
    small = _REST * total
    if np.any(term > small):
        return False
    gap = 1.0 - ratio
    return bool(np.all((gap > 0.0) & (term <= small * gap * gap)))


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
