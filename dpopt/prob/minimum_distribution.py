"""Joint distribution of the smallest count and of each category's count, for records drawn from P.

The counts are independent Poisson(n p_y) variables given their sum n, so the joint distribution is
a product of convolutions, all of whose terms are positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpopt._types import Vector
from dpopt.prob.pmf import from_ratios

_DROPPED = 1e-18
_UNDERFLOW = 1e-290


@dataclass(frozen=True)
class Piece:
    """Weights of the sum of some categories' counts, by where the smallest of these counts is.

    Attributes:
        low: the sum that the first entry is for.
        above: all counts above m.
        exact: the smallest count is m.
    """

    low: int
    above: Vector
    exact: Vector

    def times(self, other: Piece, window: tuple[int, int]) -> Piece:
        """Return the piece of both sets of categories together, cut to sums in the window."""
        above = np.convolve(self.above, other.above)
        exact = np.convolve(self.exact, other.above + other.exact)
        exact += np.convolve(self.above, other.exact)
        low = self.low + other.low
        first, last = max(window[0] - low, 0), max(window[1] - low, 0) + 1
        parts = [np.where(a < _UNDERFLOW, 0.0, a)[first:last] for a in (above, exact)]
        if parts[0].size == 0:
            return Piece(low, np.zeros(1), np.zeros(1))
        return Piece(low + first, *parts)


_EMPTY = Piece(0, np.ones(1), np.zeros(1))


@dataclass(frozen=True)
class MinimumDistribution:
    """Joint distribution of the smallest count and of each group's total.

    Attributes:
        records: n.
        categories: k.
        shares: p of each group, ascending.
        sizes: categories of each group.
        bound: number of groups, the first ones, whose categories can have the smallest count; the
            others are a single piece without a lower limit.
        minima: the m that matter.
        tables: Poisson weights of one category of each of these groups, then of the others' total,
            as (first count, weights).
    """

    records: int
    categories: int
    shares: Vector
    sizes: npt.NDArray[np.int64]
    bound: int
    minima: range
    tables: tuple[tuple[int, Vector], ...]

    @classmethod
    def of(
        cls, n: int, shares: Vector, sizes: npt.NDArray[np.int64], q: Vector
    ) -> MinimumDistribution:
        """Find the categories and the m that matter: E[q_M] >= E[q_c] for each count c."""
        k, m = int(sizes.sum()), np.arange(min(q.size, n // int(sizes.sum()) + 1))
        logs = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
        with np.errstate(divide="ignore"):
            absent = np.log1p(-shares)[:, None]
        logs = logs + m * np.log(shares)[:, None] + (n - m) * absent
        parts = np.exp(logs) * q[: m.size]
        each = parts.sum(axis=1)
        bound = int(np.count_nonzero(each > _DROPPED / k * each.max()))
        union = (parts * sizes[:, None])[:bound].sum(axis=0)
        kept = np.flatnonzero(union > _DROPPED / m.size * each.max())
        minima = range(int(kept[0]), int(kept[-1]) + 1) if kept.size else range(0)
        pmf = cls(n, k, shares, sizes, bound, minima, ())
        tables = tuple(pmf._table(group) for group in range(bound)) if minima else ()
        if minima and bound < shares.size:
            tables = (*tables, pmf._table(None))
        return cls(n, k, shares, sizes, bound, minima, tables)

    def bias(self, m: int) -> tuple[Vector, float]:
        """Return E[(1/k - c_y / n) 1{M = m}] for a category of each group, and Pr(M = m)."""
        pieces = [self._group(m, group) for group in range(self.bound)]
        masses = (self.shares * self.sizes)[: self.bound].tolist()
        categories = self.sizes[: self.bound].tolist()
        if self.bound < self.shares.size:
            low, table = self.tables[-1]
            pieces.append(Piece(low, table, np.zeros(table.size)))
            masses.append(self._free)
            categories.append(0)
        scale = _poisson(float(self.records), self.records, self.records)[0]
        bias, mass = np.zeros(self.shares.size), 0.0
        for i, rest in enumerate(self._rests(m, pieces, masses, categories)):
            sums, weights = _joined(self.records, pieces[i], rest)
            mass = float(weights.sum() / scale)
            places = slice(i, i + 1) if i < self.bound else slice(i, None)
            share = self.shares[places, None] / (masses[i] * self.records)
            bias[places] = ((1 / self.categories - share * sums) @ weights) / scale
        return bias, mass

    @property
    def _free(self) -> float:
        """Probability of the categories that never have the smallest count."""
        return float((self.shares * self.sizes)[self.bound :].sum())

    def _rests(
        self, m: int, pieces: list[Piece], masses: list[float], categories: list[int]
    ) -> Iterator[Piece]:
        """Yield, for each piece, that of all others, from products of first and of last ones."""
        count = len(pieces)
        after = [_EMPTY] * count
        for i in range(count - 2, -1, -1):
            window = self._window(m, sum(masses[i + 1 :]), sum(categories[i + 1 :]))
            after[i] = pieces[i + 1].times(after[i + 1], window)
        before = _EMPTY
        for i in range(count):
            mass, number = sum(masses) - masses[i], sum(categories) - categories[i]
            yield before.times(after[i], self._window(m, mass, number))
            window = self._window(m, sum(masses[: i + 1]), sum(categories[: i + 1]))
            before = before.times(pieces[i], window)

    def _group(self, m: int, group: int) -> Piece:
        """Return the piece of all categories of a group, by repeated squaring."""
        share, size = float(self.shares[group]), int(self.sizes[group])
        low, high = self._window(m, share, 1)
        start, table = self.tables[group]
        weights = table[max(low, m) - start : high + 1 - start].copy()
        power = Piece(max(low, m), weights, np.zeros(weights.size))
        if low <= m:
            power.exact[0], power.above[0] = weights[0], 0.0
        product, done, squared = _EMPTY, 0, 1
        while True:
            if size & squared:
                done += squared
                product = product.times(power, self._window(m, share * done, done))
            squared *= 2
            if squared > size:
                return product
            power = power.times(power, self._window(m, share * squared, squared))

    def _window(self, m: int, mass: float, categories: int) -> tuple[int, int]:
        """Return the range of the sum of some categories' counts, given that some count is m.

        Given c_z = m, the others are multinomial with probabilities p / (1 - p_z). Outside the
        range lies less than `_DROPPED` of that distribution, by Bernstein's inequality.
        """
        trials, worst = self.records - m, float(self.shares[self.bound - 1])
        least = max(0.0, mass - worst) / (1 - worst)
        most = min(1.0, mass / (1 - worst))
        low = math.floor(trials * least - _spread(trials * least * (1 - least), self.categories))
        high = math.ceil(m + trials * most + _spread(trials * most * (1 - most), self.categories))
        others = int(self.sizes[: self.bound].sum()) - categories
        return max(low, m * categories), min(high, self.records - m * others)

    def _table(self, group: int | None) -> tuple[int, Vector]:
        """Return Poisson weights over all windows of a category, or of those never smallest."""
        mass, categories = (self._free, 0) if group is None else (float(self.shares[group]), 1)
        ends = [self._window(m, mass, categories) for m in (self.minima[0], self.minima[-1])]
        low = min(ends[0][0], ends[1][0], *([] if group is None else [self.minima[0]]))
        high = max(ends[0][1], ends[1][1]) + len(self.minima)
        return low, _poisson(self.records * mass, low, high)


def _joined(n: int, one: Piece, other: Piece) -> tuple[npt.NDArray[np.int64], Vector]:
    """Return sums s of one piece, and the weights of s with n - s where the smallest count is m."""
    first = max(one.low, n - other.low - other.above.size + 1)
    last = min(one.low + one.above.size - 1, n - other.low)
    sums = np.arange(first, last + 1)
    here, there = sums - one.low, n - sums - other.low
    both = other.above[there] + other.exact[there]
    return sums, one.exact[here] * both + one.above[here] * other.exact[there]


def _spread(variance: float, categories: int) -> float:
    """Return t with exp(-t^2 / (2 (variance + t / 3))) = 1e-18 / k^2."""
    log = 2 * math.log(categories) - math.log(_DROPPED)
    return log / 3 + math.sqrt(log * log / 9 + 2 * log * variance)


def _poisson(rate: float, low: int, high: int) -> Vector:
    """Return the pmf of Poisson(rate) at low..high, from ratios of neighbours around its mode."""
    width, mode = math.ceil(_spread(rate, 1)), math.floor(rate)
    first, last = min(max(mode - width, 0), low), max(mode + width, high)
    pmf = from_ratios(rate / np.arange(first + 1, last + 1), mode - first)
    return pmf[low - first : high - first + 1]
