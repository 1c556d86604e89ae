"""delta(x) of one database or of all (Definition 2), and the worst case over databases.

The divergences of draws of T of n records without replacement have closed forms.

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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Vector, frozen
from dpopt.prob import logarithms, tails
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histograms,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram
from dpopt.smoothed.results import DeltaResult, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Largest epsilon, in nats: e^700 is within doubles.
LARGEST_EPSILON = 700.0
# Probabilities of the first databases of a portion of pairs: 32 MB. Databases computed together.
_HELD_ENTRIES, _BLOCK = 1 << 22, 4096


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyProfile(DeltaResult[Vector]):
    """delta_{epsilon,M}(x) of one database or of all (Definition 2).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        counts: histogram of the one database, length m; None for all databases.
        log_delta: natural logarithm of delta, shape (N,), -inf where delta is 0; read-only.
    """

    kind: ClassVar[str] = "profile"
    written = ("mechanism", "epsilon", "counts", "delta", "log10_delta", "method")

    mechanism: AnonymousMechanism
    epsilon: float
    counts: tuple[int, ...] | None
    log_delta: Vector

    @cached_property
    def histograms(self) -> IntMatrix:
        """One database in each row, shape (N, m), read-only."""
        if self.counts is None:
            return histograms(self.mechanism.records, self.mechanism.categories)
        row = np.array([self.counts], dtype=np.int64)
        row.setflags(write=False)
        return row

    @property
    def method(self) -> str:
        """Method of computation, in words."""
        if not _in_closed_form(self.mechanism):
            return "every output"
        return "tail sums" if self.mechanism.categories == 2 else "pooled pairs of categories"

    @property
    def worst(self) -> int:
        """Row of the database with the largest delta."""
        return int(np.argmax(self.log_delta))

    def facts(self) -> Json:
        """Return the summary of the one-line repr."""
        fields: Json = {"mechanism": self.mechanism, "epsilon": self.epsilon}
        if len(self.log_delta) == 1:
            fields["log10_delta"] = float(self.log10_delta[0])
        return {**fields, "databases": len(self.log_delta), "method": repr(self.method)}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the counts and log10 delta of each database."""
        counts = {f"count_{c}": column.tolist() for c, column in enumerate(self.histograms.T)}
        return {**counts, "log10_delta": plain(self.log10_delta)}

    def draw(self, axes: Axes, label: str | None) -> None:
        """Draw log10 delta against the share of the first category."""
        share = self.histograms[:, 0] / self.mechanism.records
        line = "-" if self.mechanism.categories == 2 and len(share) > 1 else "."
        axes.plot(share, self.log10_delta, line, label=label)
        axes.set_xlabel("share of the first category")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")


def privacy_profile(
    mechanism: AnonymousMechanism, epsilon: float, histogram: npt.ArrayLike | None = None
) -> PrivacyProfile:
    """Return delta_{epsilon,M}(x) of one database or of all.

    delta(x) = max(0, max over x' of d(x, x'), max over x' of d(x', x)), where x' replaces one
    record of x and d(x, x') = max over S of Pr[M(x) in S] - e^epsilon Pr[M(x') in S]. Since M is
    anonymous, a database is represented by its histogram.

    Args:
        mechanism: M.
        epsilon: from 0 to 700, in nats.
        histogram: counts of the m categories, shape (m,), summing to n; None for every database,
            in the order of `histograms`.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list, or
            there is too much to sum.

    Example:
        >>> import math
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> smoothed.privacy_profile(mechanism, math.log(2), [5, 5]).delta.round(6).tolist()
        [0.5]

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2.
    """
    _checks.instance("mechanism", mechanism, AnonymousMechanism)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    if histogram is None:
        return PrivacyProfile(mechanism, epsilon, None, frozen(log_profile(mechanism, epsilon)))
    (counts,) = checked_histograms([histogram], mechanism.records, mechanism.categories)
    if _in_closed_form(mechanism):
        logs = log_delta_at(mechanism, epsilon, counts)
    else:
        logs = general_log_profile(mechanism, epsilon, counts)
    return PrivacyProfile(mechanism, epsilon, tuple(counts.tolist()), frozen(logs))


def log_exposure(mechanism: SamplingHistogram) -> float:
    """Return ln r, where r, the probability that a given record is drawn, is DP's delta.

    r = T/n without replacement and 1 - (1 - 1/n)^T with it, at every epsilon. Upper bound: draw
    the same record indices from x and x'; the outputs differ only if the replaced index is among
    them, so that Pr[M(x) in S] <= Pr[M(x') in S] + r. Lower bound: if a category occurs at most
    once in x, then in one of x and some neighbour it occurs once and in the other never; the output
    shows the category with probability r and 0, respectively. So delta(x) = r if min_i H_i <= 1.

    Theorem 5 states that (epsilon, T/(n + 1))-DP is out of reach with replacement. That holds for
    T <= 2 only: r is concave in T and below T/(n + 1) from T = 3 on.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (iii) and Theorem 5.
    """
    _checks.instance("mechanism", mechanism, SamplingHistogram)
    n, drawn = mechanism.records, mechanism.drawn
    if not mechanism.replacement or drawn == 1:
        return math.log(drawn / n)
    return 0.0 if n == 1 else math.log(-math.expm1(drawn * math.log1p(-1.0 / n)))


def log_profile(mechanism: AnonymousMechanism, epsilon: float) -> Vector:
    """Return log delta of every database, in the order of `histograms`."""
    n, m = mechanism.records, mechanism.categories
    count = histogram_count(n, m)
    # Databases that are listed: memory fixes them.
    if count > 10**7:
        raise ParameterError(
            f"records is {n} with {m} categories: {count:,} databases; at most "
            "10,000,000 can be listed. Give one histogram."
        )
    if _in_closed_form(mechanism):
        return sampled_log_profile(mechanism, epsilon)
    return general_log_profile(mechanism, epsilon)


def _in_closed_form(mechanism: AnonymousMechanism) -> TypeGuard[SamplingHistogram]:
    """Whether the divergences have closed forms: draws without replacement."""
    return isinstance(mechanism, SamplingHistogram) and not mechanism.replacement


def general_log_profile(
    mechanism: AnonymousMechanism, epsilon: float, counts: npt.ArrayLike | None = None
) -> Vector:
    """Return log delta of one database or of all, from the output pmfs of any mechanism.

    delta(x) is the maximum of sum_y (P(y) - e^epsilon P'(y))_+ over neighbours x' and both orders.

    Summation is pairwise: the error of log delta is a few rounding errors plus the relative error
    of the pmfs, times P(S) / delta with S the outputs where P > e^epsilon P'. That factor is large
    only if P is hardly above e^epsilon P' on all of S. Probabilities below 1e-308 count as 0.
    """
    n, m, factor = mechanism.records, mechanism.categories, math.exp(epsilon)
    # Memory fixes the outputs, time the terms: pairs of neighbours times outputs.
    if mechanism.outputs > 10**7:
        raise ParameterError(
            f"mechanism has {mechanism.outputs:,} outputs; the general profile takes at most "
            "10,000,000."
        )
    if counts is None:
        pairs = histogram_count(n - 1, m) * m * (m - 1) // 2
        if pairs * mechanism.outputs > 10**11:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: "
                f"{pairs:,} pairs of neighbours, more than 1e+11 terms in all. Give "
                "one histogram."
            )
        table = histograms(n, m)
        return _over_pairs(mechanism, factor, table, replacements(table))
    # Row 0 is the database, the other rows are its neighbours: pairs (0, i).
    table = np.vstack([np.asarray(counts, dtype=np.int64), neighbours(counts)])
    pairs = np.array([(0, row) for row in range(1, len(table))])
    return _over_pairs(mechanism, factor, table, pairs)[:1]


def _over_pairs(
    mechanism: AnonymousMechanism, factor: float, table: IntMatrix, pairs: IntMatrix
) -> Vector:
    """Return log delta of each row of the table over its pairs, pmfs in portions."""
    largest = np.zeros(table.shape[0])
    # Pairs sorted by database, so that the pairs of a portion share rows.
    order = np.argsort(pairs[:, 0], kind="stable")
    step = max(1, _HELD_ENTRIES // mechanism.outputs)
    for start in range(0, order.size, step):
        # Rows of pairs are (database, neighbour) in the table; rows_of are their rows in ``used``.
        portion = pairs[order[start : start + step]]
        used, rows_of = np.unique(portion, return_inverse=True)
        pmfs = mechanism.pmfs(table[used])
        p, q = (pmfs[rows] for rows in rows_of.reshape(portion.shape).T)
        both = [np.maximum(0.0, a - factor * b).sum(axis=1) for a, b in ((p, q), (q, p))]
        values = np.minimum(np.maximum(*both), 1.0)
        np.maximum.at(largest, portion[:, 0], values)
        np.maximum.at(largest, portion[:, 1], values)
    with np.errstate(divide="ignore"):
        return np.log(largest)


def sampled_log_profile(mechanism: SamplingHistogram, epsilon: float) -> Vector:
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
    # e^50 is above n^2, so that above this epsilon only outputs impossible under H count.
    factor = logarithms.exponential(min(epsilon, 50.0))
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
