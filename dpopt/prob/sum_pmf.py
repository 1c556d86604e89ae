"""The distribution of Bin(n1, p1) + Bin(n2, p2) in logarithms, and expectations under it.

What goes in are two groups of independent trials, n1 with chance p1 of a one and n2 with chance p2;
what comes out is log Pr[s ones] for a stretch of s, each to full relative precision, though the
probabilities may be e^-100000. One trial of chance 0.5 and one of 0.2 give (0.4, 0.5, 0.1).

The trick is a recursion of positive terms. With the odds r = p / (1 - p) and f(s) = Pr[s ones],

    (s + 1) f(s + 1) = [r1 (n1 - s) + r2 (n2 - s)] f(s) + r1 r2 (n - s + 1) f(s - 1)

(in the example f(1) = (1 + 0.25) 0.4 = 0.5 and 2 f(2) = 0 f(1) + 0.25 * 2 * 0.4 = 0.2). The bracket
is positive up to s = (r1 n1 + r2 n2) / (r1 + r2); beyond it the same recursion runs on the number
of zeros, from the other end. Nothing cancels, so no digit is lost, and a stretch is cut into pieces
short enough for floats: each starts from two values by themselves (`_log_point`, a sum of products
of two binomials in Loader's saddle-point form) and counts with odds tilted to its middle, where the
tilted distribution is largest.

An expectation E V(s) needs few stretches: `Sequence` bounds what each block of s can contribute by
Chernoff's inequality, and blocks below e^-37 of the sum are left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtbsv

from dpopt._types import Vector
from dpopt.prob.logarithms import log_sum

_MOST_PRODUCTS = 3e8
_NEGLIGIBLE = 37.0
_FIRST_DEPTH = 60.0
_STIRLING = (1 / 12, 1 / 360, 1 / 1260, 1 / 1680, 1 / 1188)


class Share(NamedTuple):
    """Chance of a one and of a zero: the smaller is exact, and the other 1 less it, rounded.

    One float cannot hold both: beside 1 - 1e-17 = 1.0 there would be no zeros.
    """

    one: float
    zero: float

    @property
    def exact(self) -> Fraction:
        """The chance of a one."""
        return Fraction(self.one) if self.one <= self.zero else 1 - Fraction(self.zero)

    @property
    def log_one(self) -> float:
        """Logarithm of the chance of a one, above 0."""
        return math.log(self.one) if self.one <= self.zero else math.log1p(-self.zero)

    @property
    def log_zero(self) -> float:
        """Logarithm of the chance of a zero, above 0."""
        return Share(self.zero, self.one).log_one


def share_of(one: float | Share) -> Share:
    """Return a chance of ones with its complement."""
    return one if isinstance(one, Share) else Share(one, 1.0 - one)


@dataclass(frozen=True)
class SumPmf:
    """n1 records of odds r1 and n2 of odds r2 (0 < r < inf), and ``certain`` ones.

    If n2 = 0 the distribution is binomial. ``mirrored`` distributions count zeros: odds 1/r, shares
    1 - p.
    """

    n1: int
    n2: int
    p1: Share
    p2: Share
    certain: int = 0
    mirrored: bool = False

    @property
    def size(self) -> int:
        """Return n1 + n2."""
        return self.n1 + self.n2

    def odds(self) -> tuple[float, float, float]:
        """Return both odds divided by the larger one, and the logarithm of that one."""
        first, second = self.p1.one / self.p1.zero, self.p2.one / self.p2.zero
        if self.mirrored:
            first, second = 1.0 / first, 1.0 / second
        scale = max(first, second)
        return first / scale, second / scale, math.log(scale)


def sum_pmf(low: Share, high: Share, from_low: int, from_high: int) -> SumPmf:
    """Return the pmf of the number of ones; records of share 0 or 1 become ``certain`` ones."""
    given = ((from_high, high), (from_low, low))
    certain = sum(count for count, p in given if p.zero == 0.0)
    groups = [(count, p) for count, p in given if count > 0 and min(p) > 0.0]
    if len(groups) == 2 and low == high:
        groups = [(from_low + from_high, low)]
    groups += [(0, Share(0.5, 0.5) if not groups else groups[0][1])] * (2 - len(groups))
    (n1, p1), (n2, p2) = groups
    return SumPmf(n1, n2, p1, p2, certain)


@functools.lru_cache(maxsize=256)
def _product(count: int, share: Share, zeros: bool) -> tuple[float, float]:
    """Return count * share (or count * (1 - share)) as a rounded product and the rest."""
    exact = count * (1 - share.exact if zeros else share.exact)
    return float(exact), float(exact - Fraction(float(exact)))


def _deviance(x: int, mean: tuple[float, float]) -> float:
    """Return x log(x/m) + m - x without cancellation near x = m (Loader's bd0), for x >= 1."""
    m, rest = mean
    v = ((x - m) - rest) / (x + m)
    if abs(v) >= 0.5:
        return x * math.log(x / m) + m - x + rest * (1.0 - x / m)
    square, series = v * v, 0.0
    for order in range(61, 1, -2):
        series = (series + 1.0 / order) * square
    return ((x - m) - rest) * v + 2.0 * x * v * series


def _stirling_rest(x: int) -> float:
    """Return log x! - log(sqrt(2 pi x) (x/e)^x) for x >= 1."""
    rest = 0.0
    while x < 16:
        rest += (x + 0.5) * math.log1p(1.0 / x) - 1.0
        x += 1
    series = 0.0
    for coefficient in reversed(_STIRLING):
        series = coefficient - series / (x * x)
    return rest + series / x


def _log_binomial(n: int, k: int, share: Share, mirrored: bool) -> float:
    """Return log Pr[Bin(n, share) = k] in Loader's saddle-point form, 0 <= k <= n."""
    k = n - k if mirrored else k
    if n == 0:
        return 0.0
    if k in (0, n):
        return n * (share.log_one if k else share.log_zero)
    rest = _stirling_rest(n) - _stirling_rest(k) - _stirling_rest(n - k)
    deviance = _deviance(k, _product(n, share, False))
    deviance += _deviance(n - k, _product(n, share, True))
    return rest - deviance + 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))


def _log_point(pmf: SumPmf, s: int) -> float:
    """Return log Pr[sum = s]: the largest product of two binomials, times a sum of ratios."""
    if pmf.n2 == 0:
        return _log_binomial(pmf.n1, s, pmf.p1, pmf.mirrored)
    n1, n2 = pmf.n1, pmf.n2
    least, most = max(0, s - n2), min(n1, s)
    first, second, _ = pmf.odds()
    b = first * (n1 + s) + second * (n2 - s)
    root = math.sqrt(max(b * b - 4.0 * (first - second) * first * n1 * s, 0.0))
    mode = min(max(int(2.0 * first * n1 * s / (b + root)) if s else 0, least), most)
    parts = (mode + 1, n1 - mode + 1, s - mode + 1, n2 - s + mode + 1)
    width = 40 + int(8.0 / math.sqrt(sum(1.0 / part for part in parts)))

    def up(i: Vector) -> Vector:
        j = mode + i
        return (n1 - j) * (s - j) / ((j + 1.0) * (n2 - s + j + 1.0)) * (first / second)

    def down(i: Vector) -> Vector:
        j = mode - i
        return j * (n2 - s + j) / ((n1 - j + 1.0) * (s - j + 1.0)) * (second / first)

    total = 1.0 + _sum_products(up, most - mode, width) + _sum_products(down, mode - least, width)
    top = _log_binomial(n1, mode, pmf.p1, pmf.mirrored)
    return top + _log_binomial(n2, s - mode, pmf.p2, pmf.mirrored) + math.log(total)


def _sum_products(ratio: Callable[[Vector], Vector], limit: int, width: int) -> float:
    """Return the sum of r_0, r_0 r_1, ... up to ``limit`` terms, for falling ratios r.

    Stops where the rest, at most t r / (1 - r) after a term t, is below 1e-17 of the sum.
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
    """Return y > 0 with mean s of the pmf with odds y times `SumPmf.odds` (saddle point)."""
    first, second, _ = pmf.odds()
    n = pmf.size
    a = first * (pmf.n1 - s) + second * (pmf.n2 - s)
    b = first * second * (n - s)
    root = np.hypot(a, 2.0 * np.sqrt(b * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(a >= 0.0, 2.0 * s / (a + root), (root - a) / (2.0 * b))
    return np.clip(np.nan_to_num(y, nan=1.0), 1e-300, 1e300)


def log_chernoff(pmf: SumPmf, s: Vector) -> Vector:
    """Return an upper bound of log Pr[sum = s]: log E z^(sum - s), valid for each z > 0."""
    if pmf.size == 0:
        return np.zeros_like(s)
    first, second, log_scale = pmf.odds()
    y = _tilt(pmf, s)
    theta = np.log(y) - log_scale
    bound = pmf.n1 * (np.log1p(first * y) + pmf.p1.log_zero) - theta * s
    bound += pmf.n2 * (np.log1p(second * y) + pmf.p2.log_zero)
    return np.minimum(bound + 1e-6 + 1e-13 * pmf.size * (1.0 + np.abs(theta)), 0.0)


def mean(pmf: SumPmf) -> float:
    """Return the mean of the random part, for a distribution that is not mirrored."""
    return pmf.n1 * pmf.p1.one + pmf.n2 * pmf.p2.one


def log_pmf(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log Pr[sum = s] for s = start..stop (inclusive), relative to ``certain``."""
    if pmf.size == 0:
        return np.zeros(1)
    turn = stop
    if pmf.n2 > 0:
        first, second, _ = pmf.odds()
        turn = math.floor((first * pmf.n1 + second * pmf.n2) / (first + second))
    parts = [
        _rising(pmf, left, right) if right <= turn else _falling(pmf, left, right)
        for left, right in _pieces(pmf, start, stop, turn)
    ]
    return np.concatenate(parts)


def _pieces(pmf: SumPmf, start: int, stop: int, turn: int) -> Iterator[tuple[int, int]]:
    """Cut start..stop into pieces of about 16 standard deviations, none across ``turn``."""
    first, second, _ = pmf.odds()
    while start <= stop:
        centre = np.array([min(max(start, 0.5), pmf.size - 0.5)])
        y = float(_tilt(pmf, centre)[0])
        one, two = first * y / (1.0 + first * y), second * y / (1.0 + second * y)
        spread = pmf.n1 * one * (1.0 - one) + pmf.n2 * two * (1.0 - two)
        end = min(start + 63 + int(16.0 * math.sqrt(spread)), stop)
        end = turn if start <= turn < end else end
        yield start, end
        start = end + 1


def _falling(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log Pr[sum = s] on start..stop as the distribution of the zeros, read backwards."""
    mirror = replace(pmf, mirrored=not pmf.mirrored)
    return _rising(mirror, pmf.size - stop, pmf.size - start)[::-1]


def _rising(pmf: SumPmf, start: int, stop: int) -> Vector:
    """Return log f(s) = log Pr[sum = s] on start..stop by a recursion with positive terms.

    (s + 1) f(s + 1) = [r1 (n1 - s) + r2 (n2 - s)] f(s) + r1 r2 (n - s + 1) f(s - 1), from the
    logarithmic derivative of the generating function; the bracket is positive up to the turn
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
        # Loaded here, since it takes as long as all else that a first design loads of scipy.
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
    """Return a bound of the rounding error of a log expectation.

    2^-52 (64 sqrt(n) + 8 steps + 16 |log_value| + 64): windows hold fewer than 20 sqrt(n) terms,
    each of at most three roundings; ``steps`` counts steps of de Casteljau's scheme, two passes
    of four roundings; a logarithm is a sum of about ten parts, none much larger than itself.
    """
    size = abs(log_value) if math.isfinite(log_value) else 0.0
    return 2.0**-52 * (64.0 * math.sqrt(records) + 8.0 * steps + 16.0 * size + 64.0)


class Sequence:
    """log V(H), H = 0..n, with the maxima of blocks of about sqrt(n)/8 neighbours."""

    def __init__(self, values: Vector) -> None:
        self.values = values
        self.block = max(1, math.isqrt(values.size) // 8)
        self.starts = np.arange(0, values.size, self.block)
        self.maxima = np.maximum.reduceat(values, self.starts)

    def log_terms(self, pmf: SumPmf, spread: int = 0) -> Vector:
        """Return, for each block of s, a bound of log sum_s Pr[certain + sum = s] max V(s + h).

        The maximum is over h = 0..spread; s runs over the blocks.
        """
        # above[i]: the largest V over block i and the next ``reach`` blocks.
        reach = -(-spread // self.block)
        padded = np.concatenate((self.maxima, np.full(reach, -np.inf)))
        above = np.lib.stride_tricks.sliding_window_view(padded, reach + 1).max(axis=1)
        left = self.starts - float(pmf.certain)
        right = left + (self.block - 1)
        nearest = np.clip(mean(pmf), left, right)
        inside = (right >= 0) & (left <= pmf.size)
        bound = log_chernoff(pmf, np.clip(nearest, 0.0, pmf.size))
        return np.where(inside, bound + above + math.log(self.block), -np.inf)

    def runs(self, pmf: SumPmf, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield the maximal stretches of s of the chosen blocks that the distribution can reach."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False]))))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            start = max(int(begin) * self.block, pmf.certain)
            stop = min(int(end) * self.block - 1, pmf.certain + pmf.size)
            if start <= stop:
                yield start, stop


def expectation(sequence: Sequence, pmf: SumPmf) -> float:
    """Return log E V(certain + sum); the blocks left out hold less than e^-37 of it."""
    bounds = sequence.log_terms(pmf)
    threshold = float(bounds.max()) - _FIRST_DEPTH
    while threshold > -np.inf:
        total = _sum_runs(sequence, pmf, bounds >= threshold)
        if log_sum(bounds[bounds < threshold]) <= total - _NEGLIGIBLE:
            return total
        threshold = total - _NEGLIGIBLE - math.log(bounds.size)
    return _sum_runs(sequence, pmf, bounds > -np.inf)


def _sum_runs(sequence: Sequence, pmf: SumPmf, chosen: npt.NDArray[np.bool_]) -> float:
    """Return the logarithm of the part of the expectation in the chosen blocks."""
    sums = [
        log_sum(
            log_pmf(pmf, start - pmf.certain, stop - pmf.certain)
            + sequence.values[start : stop + 1]
        )
        for start, stop in sequence.runs(pmf, chosen)
    ]
    return float(log_sum(np.array(sums)))


def averages(sequence: Sequence, pmf: SumPmf, spread: int) -> Vector | None:
    """Return an upper bound of log W(h) = log E V(certain + sum + h), h = 0..spread.

    What is cut off is added, so the bound holds in any case; it is close unless W spans more
    than e^600. None if it would take more than 3e8 products.
    """
    bounds = sequence.log_terms(pmf, spread)
    threshold = float(bounds.max()) - _FIRST_DEPTH
    for last in (False, True):
        chosen = (bounds >= threshold) & (bounds > -np.inf)
        if float(chosen.sum()) * sequence.block * (spread + 1.0) > _MOST_PRODUCTS:
            return None
        result = np.full(spread + 1, -np.inf)
        for start, stop in sequence.runs(pmf, chosen):
            summed = _correlate(sequence.values, pmf, start, stop, spread)
            result = np.logaddexp(result, summed)
        lost = log_sum(bounds[~chosen])
        least = float(result.min())
        if last or lost <= least - _NEGLIGIBLE:
            return np.logaddexp(result, lost)
        threshold = least - _NEGLIGIBLE - math.log(bounds.size)
    return None


def _correlate(values: Vector, pmf: SumPmf, start: int, stop: int, spread: int) -> Vector:
    """Return log sum_{s = start..stop} Pr[sum = s] V(s + h), h = 0..spread, rounded up."""
    # A common slope is taken from the distribution and given to V, so that both fit into floats.
    weights = log_pmf(pmf, start - pmf.certain, stop - pmf.certain)
    slope = (weights[0] - weights[-1]) / max(stop - start, 1)
    weights = weights + slope * np.arange(weights.size)
    tilted = values[start : stop + spread + 1] - slope * np.arange(stop - start + spread + 1)
    top, height = float(weights.max()), float(tilted.max())
    if height == -np.inf:
        return np.full(spread + 1, -np.inf)
    products = np.correlate(np.exp(tilted - height), np.exp(weights - top), mode="valid")
    products += 4.0 * weights.size * 1e-307  # factors below e^-707 may have been lost
    return np.log(products) + top + height + slope * np.arange(spread + 1)
