"""The sampling-histogram without replacement on binary records: profile and adversary's utility.

Two neighbouring databases of n records hold H and H + 1 = G ones; L = n - T records are lost.
Compare them at one published count and write K for the ones that the database with G ones lost
(the other lost K - 1). With h the law of K ~ Hypergeometric(n + 1, G ones, L + 1 lost),

    P_G = C h(K) a(K),  a = G (L + 1 - K),
    P_H = C h(K) b(K),  b = (n + 1 - G) K,      C = (n + 1) / ((L + 1) G (n + 1 - G)),

and a/b falls in K, so every hockey-stick divergence is a tail sum of positive terms whose
numerator a - e^epsilon b is linear in K: nothing cancels.

The logarithms are rounded once: the relative error of a delta is below 1e-12 plus half a unit in
the last place of its logarithm, 7e-12 for a delta of e^(-100000).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector
from dpopt.prob import saddle, tails
from dpopt.prob.tails import Share

_LARGEST_RECORDS = 10**10
_LARGEST_EPSILON = (
    50.0  # above n^2: only counts that H + 1 alone can publish exceed, as at infinity
)
_BLOCK = 4096
_TABLE_SHARE = 0.1

LogForward = Callable[[IntVector], Vector]


def log_divergence(records: int, drawn: int, epsilon: float, ones: IntVector) -> Vector:
    """Return ln D(H + 1 || H) for each H, the hockey-stick divergence of the two databases.

    D(H + 1 || H) = sum_h max(0, Pr[h | H + 1] - e^epsilon Pr[h | H]) over the published counts;
    the other direction is D(H || H + 1) = D(n - H || n - 1 - H) by exchanging ones and zeros.

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to n.
        epsilon: at least 0.
        ones: the values of H, integers from 0 to n - 1.

    Returns:
        One logarithm for each H; -inf where the divergence is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.
    """
    records, lost, epsilon = _check(records, drawn, epsilon)
    held = checked_counts(ones, records - 1) + 1
    high, low = saddle.exponential(min(epsilon, _LARGEST_EPSILON))
    return np.minimum(_log_tails(records, lost, held, 1.0, (high, low)), 0.0)


def log_profile(records: int, drawn: int, epsilon: float) -> Vector:
    """Return ln delta(H) for all numbers of ones H = 0, ..., n.

    With A(H) = D(H + 1 || H), delta(H) is the largest of A(H) and A(n - 1 - H) (if H < n) and of
    A(H - 1) and A(n - H) (if H > 0).

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to n.
        epsilon: at least 0.

    Returns:
        Shape (n + 1,); -inf where delta is 0 exactly. It takes about 150 bytes of memory for each
        record, and as much time for L = n - T lost records as n min(1/epsilon, sqrt(L)) terms.

    Raises:
        ParameterError: if a parameter is outside its range.
    """
    records, _, _ = _check(records, drawn, epsilon)
    return largest_of_pairs(log_divergence(records, drawn, epsilon, np.arange(records)))


def log_delta_at(records: int, drawn: int, epsilon: float, ones: IntVector) -> Vector:
    """Return ln delta(H), as `log_profile`, at chosen numbers of ones H only.

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to n.
        epsilon: at least 0.
        ones: the values of H, integers from 0 to n.

    Returns:
        One logarithm for each H; -inf where delta is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.
    """
    records, _, _ = _check(records, drawn, epsilon)
    ones = checked_counts(ones, records)
    return log_largest(records, ones, lambda each: log_divergence(records, drawn, epsilon, each))


def largest_of_pairs(forward: Vector) -> Vector:
    """Return ln delta(H), H = 0..n, from ln D(H + 1 || H), H = 0..n-1.

    Each pair counts in both directions, D(H || H + 1) being D(n - H || n - 1 - H), and for both of
    its databases.
    """
    pair = np.maximum(forward, forward[::-1])
    return np.maximum(np.append(pair, -np.inf), np.append(-np.inf, pair))


def log_largest(records: int, ones: IntVector, log_forward: LogForward) -> Vector:
    """Return ln delta(H) for each H from the divergences of its neighbours.

    Args:
        records: n.
        ones: the values of H, integers from 0 to n.
        log_forward: H from 0 to n - 1 to ln A(H), A(H) = D(H + 1 || H).

    Returns:
        The logarithm of the largest of A(H), A(n - 1 - H), A(H - 1) and A(n - H), as far as their
        arguments are from 0 to n - 1.
    """
    neighbours = np.stack([ones, records - 1 - ones, ones - 1, records - ones])
    inside = (neighbours >= 0) & (neighbours < records)
    values = log_forward(np.clip(neighbours, 0, records - 1).ravel())
    return np.max(np.where(inside, values.reshape(neighbours.shape), -np.inf), axis=0)


def log_utility_at(records: int, drawn: int, threshold: float, ones: IntVector) -> Vector:
    """Return the logarithm of the Bayesian adversary's adjusted utility at chosen H.

    The adversary knows all records but one, X_i in {0, 1}, has a uniform prior on it and reads
    the published count a. For the neighbours x, x' that differ in X_i,

        u(t, x and x') = 1/(1 - t) max_{X_i} E_{a ~ M(x_-i + X_i)} max(0, max_v Pr[v | a] - t),

    the maximum inside over the two values v of the record: a guess that is sure but wrong counts
    too. The utility of a database is the largest over its neighbours, the pairs of counts
    {H, H + 1} and {H - 1, H}.

    Args:
        records: n, from 1 to 10^10.
        drawn: T, from 1 to n.
        threshold: t, in [1/2, 1): below 1/2 the better guess always exceeds it.
        ones: the values of H, integers from 0 to n.

    Returns:
        One logarithm for each H; -inf where the utility is 0 exactly.

    Raises:
        ParameterError: if a parameter is outside its range.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Section 4 and Appendix A.1.
    """
    records, lost, _ = _check(records, drawn, 0.0)
    threshold = _checks.real("threshold", threshold, 0.5, 1.0, open_upper=True)
    ones = checked_counts(ones, records)
    held = np.concatenate([np.clip(ones + 1, 1, records), np.clip(ones, 1, records)])
    side = np.concatenate([held, records + 1 - held])
    shares = (1.0 - threshold, (threshold, 0.0))
    right = _log_tails(records, lost, side, *shares, "a").reshape(2, 2, -1)
    wrong = _log_tails(records, lost, side, *shares, "b").reshape(2, 2, -1)
    total = np.logaddexp(right, wrong[::-1])
    return np.max(total, axis=(0, 1)) - np.log1p(-threshold)


def _check(records: int, drawn: int, epsilon: float) -> tuple[int, int, float]:
    """Return n, L = n - T and epsilon, checked."""
    records = _checks.integer("records", records, 1, _LARGEST_RECORDS)
    drawn = _checks.integer("drawn", drawn, 1, records)
    return records, records - drawn, _checks.real("epsilon", epsilon, 0.0)


def checked_counts(ones: IntVector, most: int) -> IntVector:
    """Return numbers of ones as a vector of 64-bit integers.

    Raises:
        ParameterError: if they are not integers from 0 to ``most``.
    """
    values = np.atleast_1d(np.asarray(ones))
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ParameterError("ones must be a vector of integers.")
    if values.size and (values.min() < 0 or values.max() > most):
        raise ParameterError(
            f"ones reach from {values.min()} to {values.max()}; they must be from 0 to {most}."
        )
    return values.astype(np.int64)


def _log_tails(
    records: int,
    lost: int,
    held: IntVector,
    alpha: float,
    beta: tuple[float, float],
    share: Share = "all",
) -> Vector:
    """Return ln of C sum_k h(k) w(k) max(0, alpha a(k) - beta b(k)), one for each G in ``held``.

    See the module's first lines for h, a, b and C; w is 1, a/(a + b) or b/(a + b), as `tails` says.
    """
    last, sums = tails.hypergeometric_tails(records, lost, held, alpha, beta, share)
    result = np.full(len(held), -np.inf)
    found = np.flatnonzero(sums > 0)
    table = len(found) > _TABLE_SHARE * records
    factorials = saddle.factorial_table(records + 1) if table else saddle.log_factorial
    for start in range(0, len(found), _BLOCK):
        part = found[start : start + _BLOCK]
        result[part] = _log_scaled(records, lost, held[part], last[part], sums[part], factorials)
    return result


def _log_scaled(
    records: int,
    lost: int,
    held: IntVector,
    last: IntVector,
    sums: Vector,
    factorials: Callable[[IntVector], saddle.Pair],
) -> Vector:
    """Return ln(C h(k) sums) with k = ``last``, rounded once.

    With C(n + 1, L + 1) = C(n, L) (n + 1)/(L + 1) the factors of C h(k) are factorials alone but
    for 1/(G (n + 1 - G)).
    """
    high, low = factorials(np.array([lost, records - lost, records]))
    kept = saddle.add((high[:1], low[:1]), (high[1:2], low[1:2]))
    fixed = saddle.add(kept, (-high[2:], -low[2:]))
    logs = np.log(sums / held / (records + 1 - held))
    plus = (held, records + 1 - held)
    minus = (last, held - last, lost + 1 - last, records - lost - held + last)
    return saddle.total(
        [(logs, fixed[1]), (fixed[0], np.zeros(1))]
        + [factorials(counts) for counts in plus]
        + [saddle.negative(factorials(counts)) for counts in minus]
    )
