"""Tail sums of hypergeometric pmfs with weights that grow away from the threshold.

Each sum starts at the term next to the threshold, follows closed-form ratios of neighbours, and
stops when a geometric bound on the remainder is below 1e-16 of the sum. All terms are positive; the
product of j ratios has a relative error of at most 5 j 2^-53.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from dpopt._types import IntVector, Matrix, Vector
from dpopt.prob import logarithms

Share = Literal["all", "a", "b"]

# Distributions summed together; entries of a table (terms, distributions); fewest and most terms of
# one stretch.
_BLOCK, _TABLE, _LEAST, _MOST = 4096, 1 << 15, 8, 1 << 16


def log_tails(
    records: int,
    lost: int | IntVector,
    held: IntVector,
    alpha: float,
    beta: tuple[float, float],
    share: Share = "all",
) -> Vector:
    """Return ln(C sum_k h(k) w(k) max(0, alpha a(k) - beta b(k))) for each L and G.

    h is the pmf of Hypergeometric(n + 1, G, L + 1), a(k) = G (L + 1 - k), b(k) = (n + 1 - G) k and
    C = (n + 1) / ((L + 1) G (n + 1 - G)). The terms are positive up to some k; if that is below the
    support of h, the sum is exactly 0.

    Args:
        records: n.
        lost: the values of L, from 0 to n - 1, or one for all.
        held: the values of G, from 1 to n.
        alpha: above 0.
        beta: a double-double number, at least alpha.
        share: "all" for w = 1, "a" for w = a/(a + b), "b" for w = b/(a + b).

    Returns:
        The logarithms, shape (len(held),), -inf where the sum is 0.
    """
    lost, result = np.broadcast_to(lost, held.shape), np.full(held.size, -np.inf)
    # For many distributions in one call ln N! is tabulated.
    table = held.size > 0.1 * records
    factorials = logarithms.factorial_table(records + 1) if table else logarithms.log_factorial
    for start in range(0, held.size, _BLOCK):
        ones, gone = (v[start : start + _BLOCK].astype(np.float64) for v in (held, lost))
        zeros = records + 1.0 - ones
        last, above = last_above(ones, zeros, gone, alpha, beta)
        supported = np.flatnonzero(last >= gone + ones - records)
        gone, ones, zeros, last, above = (v[supported] for v in (gone, ones, zeros, last, above))
        sums = _sums(gone, ones, zeros, last, above, alpha * ones + beta[0] * zeros, share)
        positive = np.flatnonzero(sums > 0)
        gone, ones, zeros, last, sums = (v[positive] for v in (gone, ones, zeros, last, sums))
        factors = np.log((records + 1) / (gone + 1.0) * sums / ones / zeros)
        counts = (v.astype(np.int64) for v in (ones, gone + 1.0, last))
        logs = log_hypergeometric(records + 1, *counts, factors, factorials)
        result[start + supported[positive]] = logs
    return result


def _sums(
    lost: Vector,
    ones: Vector,
    zeros: Vector,
    top: Vector,
    above: Vector,
    slope: Vector,
    share: Share,
) -> Vector:
    """Return sum_i h(k* - i)/h(k*) w (alpha a - beta b) for each distribution, in stretches of i.

    The difference is ``above`` + ``slope`` i. h(k - 1)/h(k) = k (n - G - L + k)/((G + 1 - k)
    (L + 2 - k)) is 0 at the support's lower end. Ratios r fall with i, and weights w_{i+j} <=
    (j + 1) w_i, so that the terms from t on sum to at most t (1 + r + r^2 + ...)^2 = t/(1 - r)^2.
    """
    offset, limit = zeros - (lost + 1.0), ones + 1.0

    def ratios(i: Matrix) -> Matrix:
        k = top - i
        values, divisor = offset + k, (lost + 2.0) - k
        values *= k
        np.subtract(limit, k, out=k)
        divisor *= k
        values /= divisor
        # Below the support, after a ratio of 0, terms must stay 0.
        return np.maximum(values, 0.0, out=values)

    def weights(i: Matrix) -> Matrix:
        values = slope * i
        values += above
        if share != "all":
            # For k < 0 the term is 0 already, but a + b could be 0.
            k = np.maximum(top - i, 0.0)
            a, b = ones * (lost + 1.0 - k), zeros * k
            values *= (a if share == "a" else b) / (a + b)
        return values

    total, last, first = np.zeros(top.size), np.ones(top.size), 0
    length = max(_LEAST, min(_TABLE // max(top.size, 1), 64))
    while top.size:
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
        # Remainder at which a sum stops, relative to the sum.
        if np.all((gap > 0.0) & (term <= 1e-16 * total * gap * gap)):
            break
        length = min(2 * length, max(_LEAST, _TABLE // top.size), _MOST)
    return total


def last_above(
    ones: Vector, zeros: Vector, lost: Vector, alpha: float, beta: tuple[float, float]
) -> tuple[Vector, Vector]:
    """Return the largest k <= L with alpha a > beta b, and alpha a - beta b there.

    The root of the difference is computed in floats; if an integer is within its rounding error,
    the sign of the difference in double-double decides. k = 0 always qualifies. a(k) = G (L + 1 -
    k) with G = ``ones`` and L = ``lost``, and b(k) = k ``zeros``.
    """
    root = alpha * ones * (lost + 1.0) / (alpha * ones + beta[0] * zeros)
    last = np.minimum(np.floor(root), lost)
    nearest = np.rint(root)
    close = np.flatnonzero(np.abs(root - nearest) <= 1e-14 * (root + 1.0))
    if close.size:
        sign = excess(ones[close], zeros[close], lost[close], nearest[close], alpha, beta)
        last[close] = np.minimum(nearest[close] - (sign <= 0.0), lost[close])
    a = alpha * ones * (lost + 1.0 - last)
    above = a - beta[0] * zeros * last
    # Differences below this fraction of their terms are computed in double-double.
    small = np.flatnonzero(above <= 1e-2 * a)
    above[small] = excess(ones[small], zeros[small], lost[small], last[small], alpha, beta)
    return last, above


def excess(
    ones: Vector, zeros: Vector, lost: Vector, k: Vector, alpha: float, beta: tuple[float, float]
) -> Vector:
    """Return alpha ones (L + 1 - k) - beta zeros k from double-double products."""
    a, a_low = logarithms.two_product(ones, lost + 1.0 - k)
    b, b_low = logarithms.two_product(zeros, k)
    plus, plus_low = logarithms.two_product(np.full_like(a, alpha), a)
    minus, minus_low = logarithms.two_product(np.full_like(b, beta[0]), b)
    high, low = logarithms.two_sum(plus, -minus)
    return high + (low + ((plus_low + alpha * a_low) - (minus_low + beta[0] * b_low + beta[1] * b)))


def log_hypergeometric(
    records: int,
    held: int | IntVector,
    drawn: int | IntVector,
    counts: IntVector,
    log_factor: float | Vector = 0.0,
    factorials: Callable[[IntVector], logarithms.Pair] = logarithms.log_factorial,
) -> Vector:
    """Return ln C(G, k) C(n - G, T - k) / C(n, T), rounded once, for possible ``counts`` k.

    It is the pmf of k of the G records ``held`` among T of n drawn; G and T may differ for each k.
    ``log_factor`` is added before rounding; ``factorials`` returns ln N! as `log_factorial` does.
    """
    ones, sampled = (np.atleast_1d(np.asarray(number, dtype=np.int64)) for number in (held, drawn))
    others, factor = records - ones, np.asarray(log_factor, dtype=np.float64)
    numerators = (ones, others, sampled, records - sampled)
    denominators = (np.array([records]), counts, ones - counts, sampled - counts)
    denominators = (*denominators, others - sampled + counts)
    pairs = [(factor, np.zeros_like(factor)), *map(factorials, numerators)]
    pairs += [(-high, -low) for high, low in map(factorials, denominators)]
    return logarithms.total(pairs)
