"""The exact hockey-stick divergences of draws of T of n records, without replacement.

*Two categories.* Neighbouring databases have H and H + 1 = G ones, and L = n -
T records are not drawn (lost). At one published count let K be the number of ones lost from the
database with G ones; the other lost K - 1. With h the pmf of K ~ Hypergeometric(n + 1, G ones,
L + 1 lost),

    P_G = C h(K) a(K),  a = G (L + 1 - K),
    P_H = C h(K) b(K),  b = (n + 1 - G) K,      C = (n + 1) / ((L + 1) G (n + 1 - G)),

and a/b falls in K, so that every hockey-stick divergence is a tail sum of positive terms whose
numerator a - e^epsilon b is linear in K: nothing cancels.

*More categories.* Two neighbours H and H - e_a + e_b differ in the categories a and b only. The
number T' of drawn records from this pool of n' = H_a + H_b records, and the draws outside it, have
the same pmf for both; given T', the draws from the pool are the binary mechanism that draws T' of
n'. `pooled_log_divergence` averages over T': one table over n' and H_a serves any number of
categories. For one database only the two rarest categories matter.

Logarithms are rounded once: the relative error of a delta is below 1e-12 plus half a unit in the
last place of its logarithm, 7e-12 for a delta of e^(-100000).
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector
from dpopt.prob import logarithms, tails
from dpopt.prob.histograms import histograms
from dpopt.smoothed.mechanisms import SamplingHistogram

# e^50 is above n^2, so that above this epsilon only outputs impossible under H count.
_LARGEST_EPSILON = 50.0
# Databases computed together.
_BLOCK = 4096


def log_profile(mechanism: SamplingHistogram, epsilon: float) -> Vector:
    """Return ln delta of every database, in the order of `histograms`; -inf where it is 0 exactly.

    For two categories it takes about 150 bytes of memory per record, and n min(1/epsilon, sqrt(L))
    terms for L = n - T lost records.
    """
    n, m = mechanism.records, mechanism.categories
    if m == 2:
        terms = n * min(1.0 / max(epsilon, 1e-300), mechanism.lost**0.5)
        # Of tail sums: time fixes them.
        if terms > 3 * 10**10:
            raise ParameterError(
                f"records is {n}, drawn {mechanism.drawn} and epsilon {epsilon:g}: all databases "
                f"take about {terms:.0e} terms, more than 3e+10. Give one histogram, or fewer "
                "records."
            )
        # Each pair of neighbours (H, H + 1) counts in both directions, as D(H || H + 1) =
        # D(n - H || n - 1 - H), and for both databases: first for H, then for H + 1.
        forward = pooled_log_divergence(mechanism, epsilon, n, np.arange(n))
        result = np.full(n + 1, -np.inf)
        np.maximum(forward, forward[::-1], out=result[:-1])
        result[1:] = np.maximum(result[1:], result[:-1])
        return result
    # Likewise records, and pairs (n', T').
    if n > 2000 or sum(len(_range(mechanism, pool)) for pool in range(1, n + 1)) > 500_000:
        raise ParameterError(
            f"records is {n} and drawn {mechanism.drawn}; for all databases over {m} categories n "
            "may be at most 2000, with 500,000 pairs of a pool and a number drawn from it. Give "
            "one histogram."
        )
    # table[n', H_a] is the larger divergence of both orders of a pool, -inf for H_a = 0.
    table = np.full((n + 1, n + 1), -np.inf)
    for pool in range(1, n + 1):
        # Columns H_a = 1..n'; reversing them exchanges a and b, which is the other order.
        forward = pooled_log_divergence(mechanism, epsilon, pool, np.arange(pool))
        table[pool, 1 : pool + 1] = np.maximum(forward, forward[::-1])
    rows = histograms(n, m)
    result = np.full(rows.shape[0], -np.inf)
    # delta(x) is the largest over pairs (a, b).
    for a, b in permutations(range(m), 2):
        np.maximum(result, table[rows[:, a] + rows[:, b], rows[:, a]], out=result)
    return result


def log_delta_at(mechanism: SamplingHistogram, epsilon: float, counts: IntVector) -> Vector:
    """Return ln delta of the database with these counts, shape (1,).

    It is the largest of D(H || H') and D(H' || H) over H' = H - e_a + e_b, and the rarest
    categories attain it. D(H || H') falls in H_a and H_b: merging another category into a (or b) is
    post-processing, and turns its records into records of a (or b). D(H' || H) is D for the counts
    H_b + 1 and H_a - 1, and falls too. So both orders of the two smallest counts suffice; if a
    category is empty, the smallest positive count and an empty category.
    """
    # H_a - 1 for each order of the pair (a, b) and for each direction.
    rising = np.sort(counts).tolist()
    rarest = min(count for count in rising if count > 0)
    first, second = (rarest, 0) if rising[0] == 0 else rising[:2]
    ones = {first - 1, second} | ({second - 1, first} if second > 0 else set())
    numbers = len(_range(mechanism, first + second))
    # Numbers of records that are drawn from the pool: time fixes them.
    if numbers > 10**8:
        raise ParameterError(
            f"histogram has {first + second:,} records in its two rarest categories, of which "
            f"{numbers:,} different numbers can be drawn; at most 100,000,000 are summed over."
        )
    logs = pooled_log_divergence(mechanism, epsilon, first + second, np.array(sorted(ones)))
    return np.array([float(logs.max())])


def pooled_log_divergence(
    mechanism: SamplingHistogram, epsilon: float, pool: int, ones: IntVector
) -> Vector:
    """Return ln D(H || H - e_a + e_b) for H_a = ones + 1 records of a among the pool's n'.

    The pool is the n' records of the categories a and b, of two categories all n. It is -inf where
    D is exactly 0. The divergence is an average of binary divergences,

        D(H || H - e_a + e_b) = sum_{T'} Pr[T'] D_binary(n', T'; H_a || H_a - 1),

    with T', the number drawn from the pool, hypergeometric. For n = 4, T = 2 and a pool of n' = 2
    with one record of a, T' = 0, 1, 2 have probabilities 1/6, 4/6, 1/6. At epsilon = 0 the binary
    divergences are 0 (no record of the pool is drawn), 1/2 (the differing record is drawn half of
    the time) and 1 (it always is); the average is 0 + 2/6 + 1/6 = 1/2, the probability that the
    differing record is drawn.
    """
    possible, sums = _range(mechanism, pool), list[Vector]()
    factor = logarithms.exponential(min(epsilon, _LARGEST_EPSILON))
    step = max(1, _BLOCK // ones.size)
    # The possible T' above 0; at 0 the divergence is 0.
    for start in range(max(possible.start, 1), possible.stop, step):
        # Axes: T', ones.
        drawn = np.arange(start, min(start + step, possible.stop))
        lost, held = np.broadcast_arrays(pool - drawn[:, None], ones + 1)
        logs = tails.log_tails(pool, lost.ravel(), held.ravel(), 1.0, factor).reshape(lost.shape)
        chances = tails.log_hypergeometric(mechanism.records, pool, mechanism.drawn, drawn)
        sums.append(logarithms.log_sum(chances[:, None] + logs))
    return np.minimum(logarithms.log_sum(np.array(sums)), 0.0)


def _range(mechanism: SamplingHistogram, pool: int) -> range:
    """Return the possible numbers of records drawn from the pool."""
    drawn, others = mechanism.drawn, mechanism.records - pool
    return range(max(0, drawn - others), min(drawn, pool) + 1)
