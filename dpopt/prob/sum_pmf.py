"""The distribution of Bin(n1, p1) + Bin(n2, p2) in logarithms, and expectations under it.

For two groups of independent trials, n1 with probability p1 of a one and n2 with p2, `log_pmf`
returns log Pr[s ones] for consecutive s, to full relative precision even where the probabilities
are e^-100000. One trial with p = 0.5 and one with p = 0.2 give the pmf (0.4, 0.5, 0.1).

The method is a recursion of positive terms. With the odds r = p / (1 - p) and f(s) = Pr[s ones],

    (s + 1) f(s + 1) = [r1 (n1 - s) + r2 (n2 - s)] f(s) + r1 r2 (n - s + 1) f(s - 1)

(in the example f(1) = (1 + 0.25) 0.4 = 0.5 and 2 f(2) = 0 f(1) + 0.25 * 2 * 0.4 = 0.2). The bracket
is positive up to s = (r1 n1 + r2 n2) / (r1 + r2); beyond it the same recursion runs on the number
of zeros, from the other end. Nothing cancels, so that no digit is lost. A range of s is cut into
pieces short enough for floats: each starts from two values computed directly (`_log_point`, a sum
of products of two binomials) and uses odds tilted to its middle, where the tilted pmf has its mode.

An expectation E V(s) needs few ranges of s: `Sequence` bounds the contribution of each block of s
by Chernoff's inequality, and blocks below e^-37 of the sum are left out.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtbsv

from dpopt._types import Vector
from dpopt.prob import logarithms
from dpopt.prob.logarithms import Pair, log_sum

# Terms left out of a sum are below e^-37 = 9e-17 of it.
_NEGLIGIBLE = 37.0
# Blocks whose bound is within e^-60 of the largest are summed first.
_FIRST_DEPTH = 60.0


class Share(NamedTuple):
    """Probabilities of a one and of a zero: the smaller is exact, the other is 1 minus it, rounded.

    One float cannot represent both: 1 - 1e-17 rounds to 1.0, which would exclude zeros.
    """

    one: float
    zero: float

    @property
    def exact(self) -> Fraction:
        """Probability of a one."""
        return Fraction(self.one) if self.one <= self.zero else 1 - Fraction(self.zero)


@dataclass(frozen=True)
class SumPmf:
    """The pmf of the ones among n1 records of odds r1, n2 of odds r2, and ``certain`` ones.

    Odds are finite and above 0. If n2 = 0, the pmf is binomial.
    """

    n1: int
    n2: int
    p1: Share
    p2: Share
    certain: int = 0

    @property
    def size(self) -> int:
        """n1 + n2, the number of random records."""
        return self.n1 + self.n2

    def odds(self) -> tuple[float, float, float]:
        """Return both odds divided by the larger of them, and the logarithm of the larger."""
        first, second = self.p1.one / self.p1.zero, self.p2.one / self.p2.zero
        scale = max(first, second)
        return first / scale, second / scale, math.log(scale)


def sum_pmf(low: Share, high: Share, from_low: int, from_high: int) -> SumPmf:
    """Return the pmf of the number of ones; records of share 1 become ``certain``, of 0 vanish."""
    sources = ((from_high, high), (from_low, low))
    certain = sum(count for count, p in sources if p.zero == 0.0)
    groups = [(count, p) for count, p in sources if count > 0 and min(p) > 0.0]
    if len(groups) == 2 and low == high:
        groups = [(from_low + from_high, low)]
    groups += [(0, Share(0.5, 0.5) if not groups else groups[0][1])] * (2 - len(groups))
    (n1, p1), (n2, p2) = groups
    return SumPmf(n1, n2, p1, p2, certain)


@functools.lru_cache(maxsize=256)
def _logs(share: Share) -> Pair:
    """Return ln p and ln(1 - p) as pairs, shape (2,)."""
    with decimal.localcontext(decimal.Context(prec=60)):
        exact = share.exact, 1 - share.exact
        logs = [(decimal.Decimal(p.numerator) / p.denominator).ln() for p in exact]
        pairs = list(map(logarithms.split, logs))
    high, low = np.array(pairs).T
    return high, low


def _log_product(pmf: SumPmf, first: int, second: int) -> float:
    """Return log Pr[first of n1] Pr[second of n2], two binomials, rounded once."""
    counts = np.array([pmf.n1, pmf.n2, first, pmf.n1 - first, second, pmf.n2 - second])
    signs = np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    high, low = map(np.append, _logs(pmf.p1), _logs(pmf.p2))
    powers = logarithms.scale(counts[2:].astype(float), (high, low))
    terms = zip(logarithms.log_factorial(counts), powers, strict=True)
    high, low = (np.append(signs * factorial, power) for factorial, power in terms)
    pairs: Any = list(zip(high, low, strict=True))
    return float(logarithms.total(pairs))


def _log_point(pmf: SumPmf, s: int) -> float:
    """Return log Pr[sum = s], as the largest product of two binomials times a sum of ratios."""
    n1, n2 = pmf.n1, pmf.n2
    least, most = max(0, s - n2), min(n1, s)
    first, second, _ = pmf.odds()
    # Terms Pr[j of group 1] Pr[s - j of group 2]: their mode in j is the root of a quadratic.
    b = first * (n1 + s) + second * (n2 - s)
    root = math.sqrt(max(b * b - 4.0 * (first - second) * first * n1 * s, 0.0))
    mode = min(max(int(2.0 * first * n1 * s / (b + root)) if s else 0, least), most)
    margins = (mode + 1, n1 - mode + 1, s - mode + 1, n2 - s + mode + 1)
    width = 40 + int(8.0 / math.sqrt(sum(1.0 / margin for margin in margins)))

    def up(i: Vector) -> Vector:
        j = mode + i
        return (n1 - j) * (s - j) / ((j + 1.0) * (n2 - s + j + 1.0)) * (first / second)

    def down(i: Vector) -> Vector:
        j = mode - i
        return j * (n2 - s + j) / ((n1 - j + 1.0) * (s - j + 1.0)) * (second / first)

    ratios = 1.0 + _sum_products(up, most - mode, width) + _sum_products(down, mode - least, width)
    return _log_product(pmf, mode, s - mode) + math.log(ratios)


def _sum_products(ratio: Callable[[Vector], Vector], limit: int, width: int) -> float:
    """Return the sum of r_0, r_0 r_1, ... up to ``limit`` terms, for falling ratios r.

    It stops where the remainder, at most t r / (1 - r) after a term t, is below 1e-17 of the sum.
    """
    total, last = 0.0, 1.0
    for start in range(0, limit, width):
        ratios = ratio(np.arange(start, min(start + width, limit), dtype=np.float64))
        terms = last * np.cumprod(ratios)
        total += float(terms.sum())
        last, r = float(terms[-1]), float(ratios[-1])
        if r < 1.0 and last * r <= 1e-17 * (1.0 - r) * (1.0 + total):
            break
    return total


def _tilt(pmf: SumPmf, s: Vector) -> Vector:
    """Return the saddle point y > 0: the pmf with odds y times `SumPmf.odds` has mean s."""
    first, second, _ = pmf.odds()
    n = pmf.size
    # The mean equation is b y^2 + a y - s = 0; the form of its root that does not cancel.
    a = first * (pmf.n1 - s) + second * (pmf.n2 - s)
    b = first * second * (n - s)
    root = np.hypot(a, 2.0 * np.sqrt(b * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(a >= 0.0, 2.0 * s / (a + root), (root - a) / (2.0 * b))
    return np.clip(np.nan_to_num(y, nan=1.0), 1e-300, 1e300)


def log_chernoff(pmf: SumPmf, s: Vector) -> Vector:
    """Return the Chernoff bound log E z^(sum - s) >= log Pr[sum = s], with slack for rounding."""
    if pmf.size == 0:
        return np.zeros_like(s)
    first, second, log_scale = pmf.odds()
    y = _tilt(pmf, s)
    theta = np.log(y) - log_scale
    bound = pmf.n1 * (np.log1p(first * y) + _logs(pmf.p1)[0][1]) - theta * s
    bound += pmf.n2 * (np.log1p(second * y) + _logs(pmf.p2)[0][1])
    return np.minimum(bound + 1e-6 + 1e-13 * pmf.size * (1.0 + np.abs(theta)), 0.0)


def log_pmf(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log Pr[sum = s] for s = start..stop (inclusive), not counting ``certain`` ones."""
    if pmf.size == 0:
        return np.zeros(1)
    turn = stop
    if pmf.n2 > 0:
        first, second, _ = pmf.odds()
        turn = math.floor((first * pmf.n1 + second * pmf.n2) / (first + second))
    pieces = [
        _rising(pmf, first_s, last_s) if last_s <= turn else _falling(pmf, first_s, last_s)
        for first_s, last_s in _pieces(pmf, start, stop, turn)
    ]
    return np.concatenate(pieces)


def _pieces(pmf: SumPmf, start: int, stop: int, turn: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of start..stop of about 16 standard deviations, none across ``turn``."""
    first, second, _ = pmf.odds()
    while start <= stop:
        centre = np.array([min(max(start, 0.5), pmf.size - 0.5)])
        y = float(_tilt(pmf, centre)[0])
        # Tilted probabilities of a one in both groups, and the variance of the tilted sum.
        one, two = first * y / (1.0 + first * y), second * y / (1.0 + second * y)
        spread = pmf.n1 * one * (1.0 - one) + pmf.n2 * two * (1.0 - two)
        end = min(start + 63 + int(16.0 * math.sqrt(spread)), stop)
        end = turn if start <= turn < end else end
        yield start, end
        start = end + 1


def _falling(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log Pr[sum = s] on start..stop by the recursion on the number of zeros."""
    # s ones are size - s zeros.
    mirror = replace(pmf, p1=Share(*pmf.p1[::-1]), p2=Share(*pmf.p2[::-1]))
    return _rising(mirror, pmf.size - stop, pmf.size - start)[::-1]


def _rising(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log f(s) = log Pr[sum = s] on start..stop by a recursion with positive terms.

    (s + 1) f(s + 1) = [r1 (n1 - s) + r2 (n2 - s)] f(s) + r1 r2 (n - s + 1) f(s - 1), from the
    logarithmic derivative of the generating function; the bracket is positive up to
    (r1 n1 + r2 n2) / (r1 + r2). The odds are tilted to the middle of the piece.
    """
    count = stop - start + 1
    head = _log_point(pmf, start)
    if count <= 2:
        return np.array([head, _log_point(pmf, stop)][:count])
    middle = min(max(0.5 * (start + stop), 0.5), pmf.size - 0.5)
    y = float(_tilt(pmf, np.array([middle]))[0])
    first, second, log_scale = pmf.odds()
    first, second, theta = first * y, second * y, math.log(y) - log_scale
    s = np.arange(start, stop + 1, dtype=np.float64)
    if pmf.n2 == 0:
        scaled = np.concatenate(([1.0], np.cumprod(first * (pmf.n1 - s[:-1]) / s[1:])))
    else:
        # Row i of a banded triangular system: s f(s) - [...] f(s - 1) - r1 r2 (...) f(s - 2) = 0,
        # the bands stored by column as BLAS wants them; the first two values are given.
        bands = np.ones((3, count), order="F")
        bands[0, 2:] = s[2:]
        bands[1] = -(first * (pmf.n1 - s) + second * (pmf.n2 - s))
        bands[1, 0] = 0.0
        bands[2] = -first * second * (pmf.size - s)
        scaled = np.zeros(count)
        scaled[0] = 1.0
        scaled[1] = math.exp(min(_log_point(pmf, start + 1) - head + theta, 690.0))
        scaled = dtbsv(2, bands, scaled, lower=1)
    if not (scaled.min() > 1e-280 and scaled.max() < 1e280):
        cut = (start + stop) // 2
        return np.concatenate((_rising(pmf, start, cut), _rising(pmf, cut + 1, stop)))
    return head + np.log(scaled) - theta * (s - start)


def allowance(records: int, log_value: float, steps: int = 0) -> float:
    """Return a bound on the rounding error of a log expectation.

    2^-52 (64 sqrt(n) + 8 steps + 16 |log_value| + 64): sums have fewer than 20 sqrt(n) terms, each
    with at most three roundings; ``steps`` counts steps of de Casteljau's scheme, in two passes of
    four roundings; a logarithm is a sum of about ten terms, none much larger than itself.
    """
    size = abs(log_value) if math.isfinite(log_value) else 0.0
    return 2.0**-52 * (64.0 * math.sqrt(records) + 8.0 * steps + 16.0 * size + 64.0)


class Sequence:
    """log V(H), H = 0..n, with its maxima over blocks of about sqrt(n)/8 consecutive H."""

    def __init__(self, values: Vector) -> None:
        self.values = values
        self.block = max(1, math.isqrt(values.size) // 8)
        self.starts = np.arange(0, values.size, self.block)
        self.maxima = np.maximum.reduceat(values, self.starts)

    def log_terms(self, pmf: SumPmf, spread: int = 0) -> Vector:
        """Return, for each block, a bound on log sum_s Pr[certain + sum = s] max_h V(s + h).

        s runs over the block, and h over 0..spread.
        """
        # above[i]: the largest log V over block i and the next ``reach`` blocks.
        reach = -(-spread // self.block)
        padded = np.concatenate((self.maxima, np.full(reach, -np.inf)))
        above = np.lib.stride_tricks.sliding_window_view(padded, reach + 1).max(axis=1)
        first_s = self.starts - float(pmf.certain)
        last_s = first_s + (self.block - 1)
        # The Chernoff bound falls away from the mean: take the s of each block nearest to it.
        mean = pmf.n1 * pmf.p1.one + pmf.n2 * pmf.p2.one
        nearest = np.clip(mean, first_s, last_s)
        possible = (last_s >= 0) & (first_s <= pmf.size)
        bound = log_chernoff(pmf, np.clip(nearest, 0.0, pmf.size))
        return np.where(possible, bound + above + math.log(self.block), -np.inf)

    def runs(self, pmf: SumPmf, selected: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield maximal ranges (first, last) of s in the selected blocks and the pmf's support."""
        # Blocks at which selected runs begin and end, alternately.
        edges = np.flatnonzero(np.diff(np.concatenate(([False], selected, [False]))))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            start = max(int(begin) * self.block, pmf.certain)
            stop = min(int(end) * self.block - 1, pmf.certain + pmf.size)
            if start <= stop:
                yield start, stop


def expectation(sequence: Sequence, pmf: SumPmf) -> float:
    """Return log E V(certain + sum), leaving out blocks that hold less than e^-37 of it."""
    bounds = sequence.log_terms(pmf)
    threshold = float(bounds.max()) - _FIRST_DEPTH
    while threshold > -np.inf:
        total = _sum_runs(sequence, pmf, bounds >= threshold)
        if log_sum(bounds[bounds < threshold]) <= total - _NEGLIGIBLE:
            return total
        threshold = total - _NEGLIGIBLE - math.log(bounds.size)
    return _sum_runs(sequence, pmf, bounds > -np.inf)


def _sum_runs(sequence: Sequence, pmf: SumPmf, selected: npt.NDArray[np.bool_]) -> float:
    """Return the logarithm of the expectation's sum over the selected blocks."""
    sums = [
        log_sum(
            log_pmf(pmf, start - pmf.certain, stop - pmf.certain)
            + sequence.values[start : stop + 1]
        )
        for start, stop in sequence.runs(pmf, selected)
    ]
    return float(log_sum(np.array(sums)))


def averages(sequence: Sequence, pmf: SumPmf, spread: int) -> Vector:
    """Return an upper bound on log W(h) = log E V(certain + sum + h), h = 0..spread.

    A bound on the omitted terms is added, so that the bound always holds; it is close unless W
    spans more than e^600.
    """
    bounds = sequence.log_terms(pmf, spread)

    def summed(threshold: float) -> tuple[Vector, float]:
        """Return the sum over the blocks above a threshold, and a bound on all others."""
        selected = (bounds >= threshold) & (bounds > -np.inf)
        result = np.full(spread + 1, -np.inf)
        for start, stop in sequence.runs(pmf, selected):
            result = np.logaddexp(result, _correlate(sequence.values, pmf, start, stop, spread))
        return result, log_sum(bounds[~selected])

    result, omitted = summed(float(bounds.max()) - _FIRST_DEPTH)
    least = float(result.min()) - _NEGLIGIBLE
    if omitted > least:
        result, omitted = summed(least - math.log(bounds.size))
    return np.logaddexp(result, omitted)


def _correlate(values: Vector, pmf: SumPmf, start: int, stop: int, spread: int) -> Vector:
    """Return log sum_{s = start..stop} Pr[sum = s] V(s + h), h = 0..spread, rounded up."""
    # Tilt the pmf up and V down by a common slope, so that both fit into floats.
    weights = log_pmf(pmf, start - pmf.certain, stop - pmf.certain)
    slope = (weights[0] - weights[-1]) / max(stop - start, 1)
    weights = weights + slope * np.arange(weights.size)
    tilted = values[start : stop + spread + 1] - slope * np.arange(stop - start + spread + 1)
    top, height = float(weights.max()), float(tilted.max())
    if height == -np.inf:
        return np.full(spread + 1, -np.inf)
    products = np.correlate(np.exp(tilted - height), np.exp(weights - top), mode="valid")
    products += 4.0 * weights.size * 1e-307  # Factors below e^-707 may have underflowed.
    return np.log(products) + top + height + slope * np.arange(spread + 1)
