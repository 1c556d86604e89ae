"""Joint pmf of the smallest count and of each category's count, for n records drawn from P.

The counts are independent Poisson(n p_y) variables conditioned on their sum n: the joint pmf is a
product of convolutions with positive terms only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpopt._types import Vector
from dpopt.prob.pmf import from_ratios

# Probability that may be dropped, relative to what is computed.
_DROPPED = 1e-18


@dataclass(frozen=True)
class Piece:
    """Weights of the sum of some categories' counts, split by the smallest of these counts.

    Attributes:
        mass: total probability of the categories.
        categories: how many of them may have the smallest count.
        low: sum of the first entry.
        above: weights where all counts are above m, shape (sums,).
        exact: weights where the smallest count is m, shape (sums,).
    """

    mass: float
    categories: int
    low: int
    above: Vector
    exact: Vector


# The sum of no records: 0 for sure.
_EMPTY = Piece(0.0, 0, 0, np.ones(1), np.zeros(1))


@dataclass(frozen=True)
class MinimumDistribution:
    """Joint pmf of the smallest count M and of each group's total; a group has equal shares.

    Attributes:
        records: n.
        shares: probability p of one category of each group, ascending.
        sizes: number of categories of each group.
        bound: number of groups, from the first on, whose categories can have the smallest count;
            all other groups form one piece without a lower limit.
        minima: the values m of M that matter.
    """

    records: int
    shares: Vector
    sizes: npt.NDArray[np.int64]
    bound: int
    minima: range

    @classmethod
    def of(
        cls, n: int, shares: Vector, sizes: npt.NDArray[np.int64], q: Vector
    ) -> MinimumDistribution:
        """Return the pmf for the groups and m that matter to E[q_M].

        Since q falls, E[q_M] >= E[q_c] for each count c; terms below 1e-18 of it are dropped.
        """
        k = int(sizes.sum())
        m = np.arange(min(q.size, n // k + 1))
        # Axes: group, m; log of Pr[c = m], then its term of E[q_c].
        logs = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
        with np.errstate(divide="ignore"):
            absent = np.log1p(-shares)[:, None]
        logs = logs + m * np.log(shares)[:, None] + (n - m) * absent
        terms = np.exp(logs) * q[: m.size]
        expected = terms.sum(axis=1)
        bound = int(np.count_nonzero(expected > _DROPPED / k * expected.max()))
        union = (terms * sizes[:, None])[:bound].sum(axis=0)
        relevant = np.flatnonzero(union > _DROPPED / m.size * expected.max())
        minima = range(int(relevant[0]), int(relevant[-1]) + 1) if relevant.size else range(0)
        return cls(n, shares, sizes, bound, minima)

    def bias(self, m: int) -> tuple[Vector, float]:
        """Return E[(1/k - c_y / n) 1{M = m}] for a category y of each group, and Pr[M = m]."""
        pieces = [self._group(m, group) for group in range(self.bound)]
        if self.bound < self.shares.size:
            low, table = self._tables[-1]
            pieces.append(Piece(self._free, 0, low, table, np.zeros(table.size)))
        scale = _poisson(float(self.records), self.records, self.records)[0]
        bias, mass = np.zeros(self.shares.size), 0.0
        for i, piece in enumerate(pieces):
            others = reduce(partial(self._times, m), pieces[:i] + pieces[i + 1 :], _EMPTY)
            sums, weights = _joined(self.records, piece, others)
            mass = float(weights.sum() / scale)
            # Piece i is group i; the last may be all groups that never have the smallest count.
            groups = slice(i, i + 1) if i < self.bound else slice(i, None)
            share = self.shares[groups, None] / (piece.mass * self.records)
            bias[groups] = ((1 / self._categories - share * sums) @ weights) / scale
        return bias, mass

    @cached_property
    def _categories(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def _free(self) -> float:
        """Total probability of the groups that never have the smallest count."""
        return float((self.shares * self.sizes)[self.bound :].sum())

    @cached_property
    def _tables(self) -> list[tuple[int, Vector]]:
        """Poisson weights over all windows, each with its first count.

        Of one category of each group that can have the smallest count, then of all other groups.
        """
        tables = []
        cases = [(float(share), 1) for share in self.shares[: self.bound]]
        if self.bound < self.shares.size:
            cases.append((self._free, 0))
        for mass, categories in cases:
            ends = [self._window(m, mass, categories) for m in (self.minima[0], self.minima[-1])]
            low = min(ends[0][0], ends[1][0], *[self.minima[0]] * categories)
            high = max(ends[0][1], ends[1][1]) + len(self.minima)
            tables.append((low, _poisson(self.records * mass, low, high)))
        return tables

    def _group(self, m: int, group: int) -> Piece:
        """Return the piece of all categories of one group, by repeated squaring."""
        share, size = float(self.shares[group]), int(self.sizes[group])
        low, high = self._window(m, share, 1)
        # One category: counts from m on, with m itself in ``exact``.
        start, table = self._tables[group]
        weights = table[max(low, m) - start : high + 1 - start].copy()
        power = Piece(share, 1, max(low, m), weights, np.zeros(weights.size))
        if low <= m:
            power.exact[0], power.above[0] = weights[0], 0.0
        product = _EMPTY
        while True:
            if size % 2:
                product = self._times(m, product, power)
            size //= 2
            if size == 0:
                return product
            power = self._times(m, power, power)

    def _times(self, m: int, one: Piece, other: Piece) -> Piece:
        """Return the piece of the union of two sets of categories, for the sums that matter."""
        mass, categories = one.mass + other.mass, one.categories + other.categories
        above = np.convolve(one.above, other.above)
        exact = np.convolve(one.exact, other.above + other.exact)
        exact += np.convolve(one.above, other.exact)
        low = one.low + other.low
        first, last = (max(end - low, 0) for end in self._window(m, mass, categories))
        # Weights below this count as 0, before products lose digits to underflow.
        arrays = [np.where(a < 1e-290, 0.0, a)[first : last + 1] for a in (above, exact)]
        if arrays[0].size == 0:
            return Piece(mass, categories, low, np.zeros(1), np.zeros(1))
        return Piece(mass, categories, low + first, *arrays)

    def _window(self, m: int, mass: float, categories: int) -> tuple[int, int]:
        """Return the range that matters of the sum of some categories' counts, if some count is m.

        Given c_z = m, the other counts are multinomial with probabilities p / (1 - p_z). By
        Bernstein's inequality the sum is outside the range with probability below `_DROPPED`.
        """
        trials, worst = self.records - m, float(self.shares[self.bound - 1])
        least = max(0.0, mass - worst) / (1 - worst)
        most = min(1.0, mass / (1 - worst))
        low = math.floor(trials * least - _spread(trials * least * (1 - least), self._categories))
        high = math.ceil(m + trials * most + _spread(trials * most * (1 - most), self._categories))
        others = int(self.sizes[: self.bound].sum()) - categories
        return max(low, m * categories), min(high, self.records - m * others)


def _joined(n: int, one: Piece, other: Piece) -> tuple[npt.NDArray[np.int64], Vector]:
    """Return sums s of one piece, and the weights of (s, n - s) where the smallest count is m."""
    first = max(one.low, n - other.low - other.above.size + 1)
    last = min(one.low + one.above.size - 1, n - other.low)
    # Indices of s in one piece and of n - s in the other.
    sums = np.arange(first, last + 1)
    index, index_other = sums - one.low, n - sums - other.low
    both = other.above[index_other] + other.exact[index_other]
    return sums, one.exact[index] * both + one.above[index] * other.exact[index_other]


def _spread(variance: float, categories: int) -> float:
    """Return t with exp(-t^2 / (2 (variance + t / 3))) = 1e-18 / k^2."""
    log = 2 * math.log(categories) - math.log(_DROPPED)
    return log / 3 + math.sqrt(log * log / 9 + 2 * log * variance)


def _poisson(rate: float, low: int, high: int) -> Vector:
    """Return the pmf of Poisson(rate) at low..high, from ratios of neighbours around the mode."""
    width, mode = math.ceil(_spread(rate, 1)), math.floor(rate)
    first, last = min(max(mode - width, 0), low), max(mode + width, high)
    pmf = from_ratios(rate / np.arange(first + 1, last + 1), mode - first)
    return pmf[low - first : high - first + 1]
