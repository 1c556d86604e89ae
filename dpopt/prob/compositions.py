"""The expectation of V(H) over all compositions of n binary records, and its certified maximum.

With n1 records of share ``high`` and n - n1 of share ``low`` of ones, the number of ones is
H = Bin(n1, high) + Bin(n - n1, low), and E_{n1} = E V(H). For n = 2, shares 0.2 and 0.5 and V =
(0, 1, 0), E_0 = 0.32, E_1 = 0.5 and E_2 = 0.5. Everything is in logarithms.

In the order of the file: one composition and `maximise`; the branch and bound that it ends with;
de Casteljau's scheme, which evaluates all compositions of few records; V-shaped sequences, whose
maximum is at an end.

Precision: each value is a sum of positive terms, so that relative errors of the terms are those
of the sum. A term passes through O(sqrt n) multiplications, and logarithms of size x carry a
rounding of x 2^-53 each; `allowance` bounds both in the worst case. What the windows cut off
is bounded by Chernoff's inequality and at most e^-37 of the value.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._progress import advance
from dpopt._types import Vector, frozen
from dpopt.prob.histograms import MaximumCertificate
from dpopt.prob.sum_pmf import Sequence, Share, allowance, averages, expectation, share_of, sum_pmf

ALL_UP_TO = 1024
"""Largest n for which every composition is evaluated if V is not V-shaped."""

LEAF = 256
"""Width of the intervals on which the search computes all compositions."""

WIDEST = 4096
"""Width of the widest intervals on which the search averages V over the common records."""

_LARGEST_EXPONENT = 650.0
_NO_EXPONENT = -(2**50)
_LEAST_SHARE = 1e-250
_LEAST_RATIO = 1e-266


def log_composition(
    log_values: npt.ArrayLike, low: float | Share, high: float | Share, ones: int
) -> float:
    """Return log E V(Bin(n1, high) + Bin(n - n1, low)) of one composition.

    O(n^{1/2}) probabilities for each stretch that matters, and O(n) comparisons to find it.

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: in [0, 1].
        high: in [low, 1].
        ones: n1, the number of records of share ``high``, in 0..n.

    Returns:
        The logarithm, -inf for 0; rounding at most `allowance`.

    Raises:
        ParameterError: if a share is above 0 and too small.
    """
    values, left, right = _checked(log_values, low, high)
    return expectation(Sequence(values), sum_pmf(left, right, values.size - 1 - ones, ones))


def maximise(
    log_values: npt.ArrayLike,
    low: float | Share,
    high: float | Share,
    *,
    most_evaluations: int = 20_000,
) -> MaximumCertificate:
    """Return the maximum of E_{n1} over n1 = 0..n, with a bound on all compositions.

    *V-shaped V.* E_{n1+1} - E_{n1} = (high - low) E[V(S + 1) - V(S)] with
    S = Bin(n1, high) + Bin(n - 1 - n1, low). Moving one record of S from ``low`` to ``high``
    replaces r * Bernoulli(low) by r * Bernoulli(high), r the distribution of the others. r is
    log-concave, so r(s - 1)/r(s) rises with s, and with it the ratio of the two distributions, ((1
    - high) r(s) + high r(s - 1)) / ((1 - low) r(s) + low r(s - 1)): the distributions of S are
    totally positive of order 2 in (n1, s). Hence the expectation of a function that changes sign
    once, from - to +, changes sign at most once in n1, from - to + (variation diminution). So
    E_{n1} is V-shaped and its maximum is at n1 = 0 or n.

    *Any V.* For n1 in [a, b] and a V-shaped Vbar >= V, E_{n1} <= max(E_a[Vbar], E_b[Vbar]).
    All compositions of [a, b] share a records of ``high`` and n - b of ``low``; averaging V over
    these leaves W(h), h = 0..b - a, and the E_{n1} are the compositions of W on b - a records.
    The majorant of W bounds them as that of V does; W is smooth where V is not. Intervals are
    halved, the largest bound first, until none exceeds the best value by more than twice the
    allowance; on short ones all compositions of W are computed.

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: smallest share of ones, in [0, 1].
        high: largest share of ones, in [low, 1].
        most_evaluations: at least 2; the search stops, uncertified, after about as many.

    Returns:
        The maximum over (records of ``low``, of ``high``); of compositions closer than twice the
        `allowance`, any one. Its slack is below 0 if the search stopped early.

    Raises:
        ParameterError: if a share is above 0 and too small.
    """
    values, left, right = _checked(log_values, low, high)
    records = values.size - 1
    if left == right or records == 0:
        only = log_composition(values, left, left, 0)
        return _maximum(only, 0, 1, records, "one composition")
    if valley_gap(values)[1] == 0.0:
        sequence = Sequence(values)
        ends = [
            expectation(sequence, sum_pmf(left, right, records - n1, n1)) for n1 in (0, records)
        ]
        best = int(np.argmax(ends))
        return _maximum(ends[best], best * records, 2, records, "ends of a V-shape")
    if records <= ALL_UP_TO:
        every = all_compositions(values, left, right)
        best = int(np.argmax(every))
        return _maximum(
            float(every[best]), best, records + 1, records, "every composition", records
        )
    return Search(values, left, right).run(most_evaluations)


def _maximum(
    log_value: float, ones: int, evaluated: int, records: int, method: str, steps: int = 0
) -> MaximumCertificate:
    """Return the certified maximum of a method that covers every composition."""
    bound = log_value + allowance(records, log_value, steps)
    return _certificate(log_value, ones, bound, records, method, evaluated)


def _certificate(
    log_value: float, ones: int, log_bound: float, records: int, method: str, evaluated: int
) -> MaximumCertificate:
    composition, rounding = (records - ones, ones), allowance(records, log_value, records)
    return MaximumCertificate(
        log_value, composition, log_bound, rounding, method, evaluated, records + 1
    )


def _checked(
    log_values: npt.ArrayLike, low: float | Share, high: float | Share
) -> tuple[Vector, Share, Share]:
    """Return the arguments as an array and shares, or say which share is out of range."""
    values, left, right = np.asarray(log_values, np.float64), share_of(low), share_of(high)
    for name, share in (("low", left), ("high", right)):
        for chance in share:
            if 0.0 < chance < _LEAST_SHARE:
                raise ParameterError(
                    f"{name} is {chance}; it must be 0 or at least {_LEAST_SHARE}."
                )
    if 0.0 < left.one * right.zero < _LEAST_RATIO:
        raise ParameterError(
            f"low is {left.one} and high 1 - {right.zero}; the product of these two small numbers "
            f"must be 0 or at least {_LEAST_RATIO}."
        )
    return values, left, right


class Search:
    """Best-first search over intervals of n1, by the two bounds that `maximise` explains.

    `ceiling` bounds an interval by V-shaped majorants of V, `smooth_ceiling` by those of W, the
    average of V over what all compositions of the interval share.
    """

    def __init__(self, values: Vector, low: Share, high: Share) -> None:
        self.low, self.high = low, high
        self.records = values.size - 1
        self.sequence = Sequence(values)
        self.majorants = [Sequence(majorant) for majorant in candidate_majorants(values)]
        self.known: dict[int, float] = {}
        self.lifted: dict[tuple[int, int], float] = {}
        self.best = -math.inf
        self.argmax = 0

    def run(self, most: int) -> MaximumCertificate:
        """Return the maximum, after at most about ``most`` expectations."""
        n = self.records
        heap = [(-self.ceiling(0, n), 0, n)]
        settled = -math.inf
        while heap and -heap[0][0] > self.goal() and len(self.known) < most:
            advance("branch and bound", len(self.known))
            bound, a, b = heapq.heappop(heap)
            bound = min(-bound, self.smooth_ceiling(a, b)) if b - a <= WIDEST else -bound
            if bound <= self.goal():
                settled = max(settled, bound)
            elif b - a <= LEAF:
                settled = max(settled, self.settle(a, b))
            else:
                middle = (a + b) // 2
                for left, right in ((a, middle), (middle, b)):
                    inherited = min(bound, self.ceiling(left, right))
                    heapq.heappush(heap, (-inherited, left, right))
        advance("branch and bound", 1, 1)
        slack = allowance(n, self.best, LEAF)
        log_bound = max(self.best + slack, settled, -heap[0][0] if heap else -math.inf)
        return _certificate(
            self.best, self.argmax, log_bound, n, "branch and bound", len(self.known)
        )

    def goal(self) -> float:
        """Return what a bound must not exceed: the best value and twice the allowance."""
        return self.best + 2.0 * allowance(self.records, self.best, LEAF)

    def value(self, ones: int) -> float:
        """Return log E_{n1}, and keep it if it is the best so far."""
        if ones not in self.known:
            pmf = sum_pmf(self.low, self.high, self.records - ones, ones)
            self.known[ones] = expectation(self.sequence, pmf)
            if self.known[ones] > self.best:
                self.best, self.argmax = self.known[ones], ones
        return self.known[ones]

    def ceiling(self, a: int, b: int) -> float:
        """Bound log E_{n1} on [a, b] by V-shaped majorants of V at both ends."""
        for ones in (a, b):
            self.value(ones)
        bound = math.inf
        for place, majorant in enumerate(self.majorants):
            if bound <= self.goal():
                break
            for ones in (a, b):
                if (place, ones) not in self.lifted:
                    pmf = sum_pmf(self.low, self.high, self.records - ones, ones)
                    self.lifted[place, ones] = expectation(majorant, pmf)
            above = max(self.lifted[place, a], self.lifted[place, b])
            bound = min(bound, above + allowance(self.records, above))
        return bound

    def averages(self, a: int, b: int) -> Vector | None:
        """Return W of [a, b]: V averaged over what its compositions share, or None."""
        pmf = sum_pmf(self.low, self.high, self.records - b, a)
        return averages(self.sequence, pmf, b - a)

    def smooth_ceiling(self, a: int, b: int) -> float:
        """Bound log E_{n1} on [a, b] by V-shaped majorants of W; inf if W takes too long."""
        smooth = self.averages(a, b)
        if smooth is None:
            return math.inf
        bound = math.inf
        for majorant in map(Sequence, candidate_majorants(smooth)):
            pmfs = [sum_pmf(self.low, self.high, b - a - ones, ones) for ones in (0, b - a)]
            above = max(expectation(majorant, pmf) for pmf in pmfs)
            bound = min(bound, above + allowance(self.records, above))
            if bound <= self.goal():
                break
        return bound

    def settle(self, a: int, b: int) -> float:
        """Bound all compositions of a short interval, evaluating those that may be the best.

        Returns:
            A bound of log E_{n1} on [a, b].
        """
        smooth = self.averages(a, b)
        if smooth is None:
            upper = np.full(b - a + 1, np.inf)
        else:
            upper = all_compositions(smooth, self.low, self.high)
            upper += allowance(self.records, float(upper.max()), LEAF)
        for k in np.argsort(-upper):
            if upper[k] > self.goal():
                value = self.value(a + int(k))
                upper[k] = value + allowance(self.records, value)
        return float(upper.max())


def all_compositions(values: Vector, low: Share, high: Share) -> Vector:
    """Return log E_{n1} for n1 = 0..n in O(n^2) positive terms, by de Casteljau's scheme.

    p -> E V(Bin(n, p)) is a polynomial with Bernstein coefficients V(H); E_{n1} is its blossom
    at n1 times ``high`` and n - n1 times ``low``, that is its n1-th Bezier coefficient on
    [low, high]. The scheme at ``high`` gives those on [0, high], and a second one at low/high
    those on the right-hand part. Rounding is at most `allowance` with n steps.
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


def valley_gap(log_values: Vector) -> tuple[int, float]:
    """Return the valley of the tightest V-shaped majorant of a sequence, and how loose that is.

    The least majorant that falls on 0..v and rises on v..n is
    max(V(H), ..., V(v)) for H <= v and max(V(v), ..., V(H)) for H >= v. Its distance from V at
    valley v is gap(v) = max over H <= H' <= v of V(H') - V(H), or the mirror image if larger; v is
    chosen to make it smallest, and among equals to make V(v) smallest. V is V-shaped if and only
    if the gap is 0.

    Args:
        log_values: V(H), H = 0..n; -inf allowed, shape (n + 1,). Where the sequence has both
            finite and infinite entries, -inf counts as one below the least finite entry, for the
            choice of the valley only.

    Returns:
        (v, gap(v)); the gap is inf if the majorant lifts a -inf to a finite value.
    """
    finite = np.isfinite(log_values)
    if not finite.any():
        return 0, 0.0
    floor = float(log_values[finite].min()) - 1.0
    clipped = np.maximum(log_values, floor)
    gap = np.maximum(_climb(clipped), _climb(clipped[::-1])[::-1])
    least = np.flatnonzero(gap == gap.min())
    valley = int(least[np.argmin(clipped[least])])
    lifted = not finite.all() and bool(np.isfinite(majorant_at(log_values, valley)[~finite]).any())
    return valley, np.inf if lifted else float(gap[valley])


def _climb(values: Vector) -> Vector:
    """Return at each v the largest V(H') - V(H) over H <= H' <= v."""
    return np.maximum.accumulate(values - np.minimum.accumulate(values))


def majorant_at(log_values: Vector, valley: int) -> Vector:
    """Return the least V-shaped sequence above V with its valley there, read-only."""
    left = np.maximum.accumulate(log_values[valley::-1])[::-1]
    right = np.maximum.accumulate(log_values[valley:])
    return frozen(np.concatenate((left, right[1:])))


def candidate_majorants(log_values: Vector) -> tuple[Vector, ...]:
    """Return V-shaped majorants of which none is above another everywhere.

    Which valley gives the smallest expectation depends on the distribution; the candidates are the
    valley of `valley_gap`, the place of the least V, and both ends (a rising and a falling
    majorant).

    Returns:
        The majorant at the valley of `valley_gap`, then the others that are somewhere below all
        before them; each of shape (n + 1,), read-only.
    """
    majorants = [majorant_at(log_values, valley_gap(log_values)[0])]
    for valley in (int(np.argmin(log_values)), 0, log_values.size - 1):
        majorant = majorant_at(log_values, valley)
        if all(bool(np.any(majorant < other)) for other in majorants):
            majorants.append(majorant)
    return tuple(majorants)
