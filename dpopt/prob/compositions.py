"""The expectation of V(H) over all compositions of n binary records, and its certified maximum.

If n1 records are ones with probability ``high`` and n - n1 with probability ``low``, the number of
ones is H = Bin(n1, high) + Bin(n - n1, low), and E_{n1} = E V(H). For n = 2, probabilities 0.2 and
0.5 and V = (0, 1, 0), E_0 = 0.32, E_1 = 0.5 and E_2 = 0.5. All values are logarithms.

Precision: each value is a sum of positive terms, so that its relative error is at most that of the
terms. A term passes through O(sqrt n) multiplications, and a logarithm x has a rounding error of
x 2^-53; `allowance` bounds both in the worst case. The terms left out are bounded by Chernoff's
inequality, and at most e^-37 of the value.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from dpopt._errors import ParameterError
from dpopt._progress import advance
from dpopt._types import Vector, frozen
from dpopt.prob.histograms import MaximumCertificate
from dpopt.prob.sum_pmf import Sequence, Share, allowance, averages, expectation, sum_pmf

ALL_UP_TO = 1024
"""Largest n for which every composition is evaluated if V is not V-shaped."""

LEAF = 1024
"""Width of the intervals on which the search computes all compositions."""


def maximise(values: Vector, low: Share, high: Share) -> MaximumCertificate:
    """Return the maximum of E_{n1} over n1 = 0..n, with a bound on all compositions.

    *V-shaped V.* E_{n1+1} - E_{n1} = (high - low) E[V(S + 1) - V(S)] with
    S = Bin(n1, high) + Bin(n - 1 - n1, low). Moving one record of S from ``low`` to ``high``
    replaces r * Bernoulli(low) by r * Bernoulli(high), with r the pmf of the other records. r is
    log-concave, so that r(s - 1)/r(s) rises with s, and so does the ratio of the two pmfs, ((1
    - high) r(s) + high r(s - 1)) / ((1 - low) r(s) + low r(s - 1)): the pmfs of S are totally
    positive of order 2 in (n1, s). Hence the expectation of a function that changes sign once,
    from - to +, changes sign at most once in n1, from - to + (variation diminution). So E_{n1} is
    V-shaped, and its maximum is at n1 = 0 or n.

    *Any V.* For n1 in [a, b] and a V-shaped Vbar >= V, E_{n1} <= max(E_a[Vbar], E_b[Vbar]).
    Branch and bound halves the interval with the largest bound until no bound exceeds the best
    value by more than twice the allowance. All compositions of [a, b] share a records of ``high``
    and n - b of ``low``; averaging V over these yields W(h), h = 0..b - a, and the E_{n1} are those
    of W and b - a records: on short intervals all of them are computed. The search stops
    uncertified, with a slack below 0, after about 20,000 expectations.

    Args:
        values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: smallest probability of a one.
        high: largest probability of a one.

    Returns:
        The maximum, at a composition (records of ``low``, records of ``high``) whose value is
        within twice the `allowance` of it.

    Raises:
        ParameterError: if a probability, or low (1 - high), is so near to 0 that odds overflow.
    """
    # Smaller probabilities and products have odds beyond doubles.
    for name, share in (("low", low), ("high", high)):
        if 0.0 < min(share) < 1e-250:
            raise ParameterError(f"{name} is {min(share)}; it must be 0 or at least 1e-250.")
    if 0.0 < low.one * high.zero < 1e-266:
        raise ParameterError(
            f"low is {low.one} and high 1 - {high.zero}; the product of these two small numbers "
            "must be 0 or at least 1e-266."
        )
    n, sequence = values.size - 1, Sequence(values)
    if low == high or n == 0:
        only = expectation(sequence, sum_pmf(low, low, n, 0))
        return _maximum(only, 0, 1, n, "one composition")
    if valley_gap(values)[1] == 0.0:
        # E_0 and E_n, one of which is the maximum.
        ends = [expectation(sequence, sum_pmf(low, high, n - n1, n1)) for n1 in (0, n)]
        best = int(np.argmax(ends))
        return _maximum(ends[best], best * n, 2, n, "ends of a V-shape")
    if n <= ALL_UP_TO:
        every = all_compositions(values, low, high)
        best = int(np.argmax(every))
        return _maximum(float(every[best]), best, n + 1, n, "every composition", n)
    return search(values, low, high, 20_000)


def _maximum(
    log_value: float,
    ones: int,
    evaluated: int,
    records: int,
    method: str,
    steps: int = 0,
    log_bound: float = -math.inf,
) -> MaximumCertificate:
    """Return the certificate, whose bound is at least the value and its rounding."""
    bound = max(log_bound, log_value + allowance(records, log_value, steps))
    composition, rounding = (records - ones, ones), allowance(records, log_value, records)
    return MaximumCertificate(
        log_value, composition, bound, rounding, method, evaluated, records + 1
    )


def search(values: Vector, low: Share, high: Share, most: int) -> MaximumCertificate:
    """Return the maximum by branch and bound, the largest bound first; see `maximise`.

    It stops after at most about so many expectations.
    """
    n, logs = values.size - 1, dict[int, tuple[float, float]]()
    sequences = Sequence(values), Sequence(majorant_at(values, valley_gap(values)[0]))

    def logs_of(ones: int) -> tuple[float, float]:
        """Return log E_{n1} of V and of its majorant, which are kept."""
        if ones not in logs:
            pmf = sum_pmf(low, high, n - ones, ones)
            value, above = (expectation(each, pmf) for each in sequences)
            logs[ones] = value, above
        return logs[ones]

    def ceiling(a: int, b: int) -> float:
        """Return a bound on log E_{n1} over [a, b], from the V-shaped majorant at both ends."""
        above = max(logs_of(a)[1], logs_of(b)[1])
        return above + allowance(n, above)

    def best() -> tuple[float, int]:
        argmax = max(logs, key=lambda ones: logs[ones][0])
        return logs[argmax][0], argmax

    def goal() -> float:
        """Return the largest bound that needs no further search."""
        value, _ = best()
        return value + 2.0 * allowance(n, value, LEAF)

    def settled(a: int, b: int) -> float:
        """Return a bound on log E_{n1} over a short [a, b], evaluating those that may be best."""
        smooth = averages(sequences[0], sum_pmf(low, high, n - b, a), b - a)
        upper = all_compositions(smooth, low, high)
        upper += allowance(n, float(upper.max()), LEAF)
        for k in np.argsort(-upper):
            if upper[k] > goal():
                value, _ = logs_of(a + int(k))
                upper[k] = value + allowance(n, value)
        return float(upper.max())

    # Entries: (minus the bound on log E_{n1}, a, b).
    heap, bound = [(-ceiling(0, n), 0, n)], -math.inf
    while heap and -heap[0][0] > goal() and len(logs) < most:
        advance("branch and bound", len(logs))
        above, a, b = heapq.heappop(heap)
        if b - a <= LEAF:
            bound = max(bound, settled(a, b))
            continue
        middle = (a + b) // 2
        for start, stop in ((a, middle), (middle, b)):
            heapq.heappush(heap, (-min(-above, ceiling(start, stop)), start, stop))
    advance("branch and bound", 1, 1)
    bound = max(bound, -heap[0][0] if heap else -math.inf)
    return _maximum(*best(), len(logs), n, "branch and bound", LEAF, bound)


def all_compositions(values: Vector, low: Share, high: Share) -> Vector:
    """Return log E_{n1} for n1 = 0..n in O(n^2) positive terms, by de Casteljau's scheme.

    p -> E V(Bin(n, p)) is a polynomial with Bernstein coefficients V(H). E_{n1} is its blossom
    at n1 times ``high`` and n - n1 times ``low``, that is, its n1-th Bezier coefficient on
    [low, high]. Subdivision at ``high`` gives the coefficients on [0, high], and a second one at
    low/high those on [low, high]. The rounding error is at most `allowance` with n steps.
    """
    if high.one == 0.0:
        return np.full(values.size, values[0])
    # Coefficients on [0, high], then those on [low, high], the second half at low/high.
    first = subdivide(values, high.zero, high.one)[0]
    ratio = low.exact / high.exact
    return subdivide(first, float(1 - ratio), float(ratio))[1]


def subdivide(log_values: Vector, keep: float, take: float) -> tuple[Vector, Vector]:
    """Return the two halves of de Casteljau's scheme b_j <- keep b_j + take b_{j+1}, in logarithms.

    Entry k of the first vector is b_0 after k steps, of the second b_k after n - k steps.
    """
    finite = np.isfinite(log_values)
    if not finite.any():
        return log_values.copy(), log_values.copy()
    if keep == 0.0 or take == 0.0:
        constant = np.full_like(log_values, log_values[0 if take == 0.0 else -1])
        return (constant, log_values.copy()) if take == 0.0 else (log_values.copy(), constant)
    top, bottom = float(log_values[finite].max()), float(log_values[finite].min())
    if not finite.all() or top - bottom >= 650.0:
        return _scaled_scheme(log_values, keep, take)
    # In plain floats: averages stay between the extremes, within e^650.
    shift = 0.5 * (top + bottom)
    b = np.exp(log_values - shift)
    n = b.size - 1
    first, last = np.empty(n + 1), np.empty(n + 1)
    first[0], last[n] = b[0], b[n]
    for k in range(1, n + 1):
        b = keep * b[:-1] + take * b[1:]
        first[k], last[n - k] = b[0], b[-1]
    return np.log(first) + shift, np.log(last) + shift


def _scaled_scheme(log_values: Vector, keep: float, take: float) -> tuple[Vector, Vector]:
    """Run the scheme with a separate binary exponent for each entry, for values of any size."""
    finite = np.isfinite(log_values)
    binary = np.where(finite, log_values, 0.0) / math.log(2.0)
    exponent = np.round(binary).astype(np.int64)
    rounded = exponent * math.log(2.0)
    mantissa = np.where(finite, np.exp(np.where(finite, log_values - rounded, 0.0)), 0.0)
    # Binary exponent of 0.
    exponent = np.where(finite, exponent, -(2**50))
    n = log_values.size - 1
    # Axes: (mantissa, exponent), index.
    first, last = np.empty((2, n + 1)), np.empty((2, n + 1))
    first[:, 0], last[:, n] = (mantissa[0], exponent[0]), (mantissa[n], exponent[n])
    for k in range(1, n + 1):
        # Align both mantissas to the larger exponent; below 2^-4000 of it they vanish.
        common = np.maximum(exponent[:-1], exponent[1:])
        stay = np.ldexp(keep * mantissa[:-1], np.maximum(exponent[:-1] - common, -4000))
        step = np.ldexp(take * mantissa[1:], np.maximum(exponent[1:] - common, -4000))
        mantissa, shift = np.frexp(stay + step)
        exponent = np.where(mantissa > 0.0, common + shift, -(2**50))
        first[:, k], last[:, n - k] = (mantissa[0], exponent[0]), (mantissa[-1], exponent[-1])
    with np.errstate(divide="ignore"):
        first_logs, last_logs = np.log(first[0]), np.log(last[0])
    return first_logs + first[1] * math.log(2.0), last_logs + last[1] * math.log(2.0)


def valley_gap(log_values: Vector) -> tuple[int, float]:
    """Return the valley v of the tightest V-shaped majorant of a sequence, and its gap(v).

    The least majorant that falls on 0..v and rises on v..n is
    max(V(H), ..., V(v)) for H <= v and max(V(v), ..., V(H)) for H >= v. Its distance from V at
    valley v is gap(v) = max over H <= H' <= v of V(H') - V(H), or its mirror image if larger; it is
    inf if the majorant lifts a -inf to a finite value. The valley returned minimises gap(v), and
    V(v) among ties, with -inf counted as the least finite entry minus 1. V is V-shaped iff the gap
    is 0.
    """
    finite = np.isfinite(log_values)
    if not finite.any():
        return 0, 0.0
    floor = float(log_values[finite].min()) - 1.0
    clipped = np.maximum(log_values, floor)
    # gap[v]: largest rise before v, or largest fall after v.
    gap = np.maximum(_climb(clipped), _climb(clipped[::-1])[::-1])
    least = np.flatnonzero(gap == gap.min())
    valley = int(least[np.argmin(clipped[least])])
    lifted = not finite.all() and bool(np.isfinite(majorant_at(log_values, valley)[~finite]).any())
    return valley, np.inf if lifted else float(gap[valley])


def _climb(values: Vector) -> Vector:
    """Return at each v the largest V(H') - V(H) over H <= H' <= v."""
    return np.maximum.accumulate(values - np.minimum.accumulate(values))


def majorant_at(log_values: Vector, valley: int) -> Vector:
    """Return the least V-shaped majorant of V with its valley at ``valley``, read-only."""
    # Running maxima from the valley outwards to both ends.
    falling = np.maximum.accumulate(log_values[valley::-1])[::-1]
    rising = np.maximum.accumulate(log_values[valley:])
    return frozen(np.concatenate((falling, rising[1:])))
