"""The hockey-stick of a sample whose records are drawn one after the other.

Two databases of N records differ in one: the first has G ones, the other G - 1. Let t records be
drawn without replacement, P and Q the distributions of the number of ones drawn, and D_t the sum of
the positive parts of P - e^epsilon Q. Drawing one record more splits u = P - e^epsilon Q of a count
into u_1 (the next is a one) and u_0 (it is a zero), u_1 + u_0 = u, so that

    D_{t+1} - D_t = sum over the counts of max(0, u_1) + max(0, u_0) - max(0, u),

where a term is 0 if u_1 and u_0 have the same sign, and the smaller of |u_1| and |u_0| if not. Q/P
falls with each one that is drawn and rises with each zero: u_1 > 0 > u_0 holds at exactly one count
and the opposite at none. So D_t is a sum of t positive numbers in closed form, one for each draw.
With M = N - t records left, k of the G ones among them, Z = N - G zeros and

    f(k) = G (M - k) - e^epsilon (Z + 1) k,        f(k) <= 0 < f(k - 1)  at that count,

    gain_t = C(G, k) C(Z, M - k) / C(N, M) min(-f(k), k f(k - 1) / (M - k + 1)) / (M G).

For N = 2 and G = 1 at epsilon = 0 both gains are 1/2: D_1 = 1/2 and D_2 = 1.

What this is for: if T' of the drawn records are from these N, T' at random with one distribution
for both databases, the hockey-stick is the average of D_T', that is

    sum_{T' = s..r} Pr[T'] D_T' = Pr[s <= T' <= r] D_s + sum_{t = s..r-1} gain_t Pr[t < T' <= r],

positive terms again, O(1) operations for each T' instead of a tail sum. `average` finds the T'
that matter from bounds in closed form: D_T' is at least its last gain and at most the chance of the
counts where P > e^epsilon Q, whose distribution rises up to its mode; Pr[T'] has one mode too. What
is left out is below e^-40 of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector
from dpopt.prob import logarithms, tails

# What is left out of a sum is below e^-40 = 4e-18 of it.
_NEGLIGIBLE = 40.0
_GRID = 65
# Ranges of so many T' or fewer are summed without looking for those that matter.
_WHOLE = 512
_FINER = 8
_PARTS = 32
_BLOCK = 1 << 15
_DOUBLE_RANGE = 600.0
_CANCELLED = 1e-2


@dataclass(frozen=True)
class Pool:
    """Which records of two neighbouring databases are compared, and how many are drawn of all.

    Attributes:
        records: n.
        drawn: T, from 1 to n, without replacement.
        size: N, the records of the two categories that differ, from 1 to n.
        held: G, the records of the first category in the first database, from 1 to N.
        factor: e^epsilon as a double-double number, at least 1.
    """

    records: int
    drawn: int
    size: int
    held: int
    factor: tuple[float, float]

    @property
    def least(self) -> int:
        """Smallest possible T'."""
        return max(0, self.drawn - (self.records - self.size))

    @property
    def most(self) -> int:
        """Largest possible T'."""
        return min(self.drawn, self.size)

    @property
    def mode(self) -> int:
        """The T' of the largest probability."""
        peak = (self.drawn + 1) * (self.size + 1) // (self.records + 2)
        return min(max(peak, self.least), self.most)

    def log_mass(self, counts: IntVector) -> Vector:
        """Return ln Pr[T'] for possible values of T'."""
        return log_hypergeometric(self.records, self.size, self.drawn, counts)

    def _last(self, left: IntVector) -> tuple[Vector, Vector]:
        """Return the largest k with G (M - k) > e^epsilon (Z + 1) k for each M, and by how much."""
        ones, zeros = self._weights(left.size)
        return tails.last_above(ones, zeros, left.astype(np.float64) - 1.0, 1.0, self.factor)

    def _weights(self, size: int) -> tuple[Vector, Vector]:
        return np.full(size, float(self.held)), np.full(size, self.size - self.held + 1.0)

    def log_gain(self, drawn: IntVector) -> Vector:
        """Return ln gain_t of the draw after ``drawn`` = t, from 0 to N - 1; -inf where it is 0."""
        left = self.size - drawn
        last, above = self._last(left)
        k, slope = last + 1.0, self.held + self.factor[0] * (self.size - self.held + 1.0)
        below = slope - above
        small = np.flatnonzero(below <= _CANCELLED * slope)
        if small.size:
            lost = left[small].astype(np.float64) - 1.0
            excess = tails.excess(*self._weights(small.size), lost, k[small], 1.0, self.factor)
            below[small] = np.maximum(-excess, 0.0)
        smaller = np.minimum(below, k * above / (left - k + 1.0))
        count = k.astype(np.int64)
        possible = np.flatnonzero(
            (count <= self.held) & (left - count <= self.size - self.held) & (smaller > 0.0)
        )
        result = np.full(drawn.size, -np.inf)
        chances = log_hypergeometric(self.size, self.held, left[possible], count[possible])
        result[possible] = chances + np.log(smaller[possible] / left[possible] / self.held)
        return result

    def log_cover(self, drawn: IntVector) -> Vector:
        """Return an upper bound of ln D_t: a bound of the chance that P > e^epsilon Q.

        Of the ones left K <= k* have P > e^epsilon Q; up to its mode the distribution of K rises,
        so the chance is at most the number of possible K <= k* times that of k*.
        """
        left = self.size - drawn
        # G (M + 1 - k) > e^epsilon (Z + 1) k is P > e^epsilon Q with k ones left of M.
        last, _ = self._last(left + 1)
        last = np.minimum(last.astype(np.int64), np.minimum(left, self.held))
        least = np.maximum(0, left - (self.size - self.held))
        peak = (left + 1) * ((self.held + 1) / (self.size + 2.0))
        result = np.zeros(drawn.size)
        result[last < least] = -np.inf
        rising = np.flatnonzero((last >= least) & (last < peak - 1.0 - 1e-9 * peak))
        chances = log_hypergeometric(self.size, self.held, left[rising], last[rising])
        result[rising] = np.minimum(
            chances + np.log(last[rising] - least[rising] + 1.0) + 1e-6, 0.0
        )
        return result


def log_binomial(drawn: int, counts: IntVector, held: int, size: int) -> Vector:
    """Return ln of C(T, k) G^k (N - G)^(T - k) / N^T, rounded once.

    Args:
        drawn: T.
        counts: k.
        held: G, from 1 to N - 1.
        size: N.
    """

    def power(exponents: IntVector, base: int) -> logarithms.Pair:
        logs = logarithms.log_integer(np.array([base]))
        return logarithms.scale(exponents.astype(np.float64), logs)

    every = np.array([drawn])
    return logarithms.total(
        [
            logarithms.log_factorial(every),
            logarithms.negative(logarithms.log_factorial(counts)),
            logarithms.negative(logarithms.log_factorial(drawn - counts)),
            power(counts, held),
            power(drawn - counts, size - held),
            logarithms.negative(power(every, size)),
        ]
    )


def log_hypergeometric(
    records: int, held: int, drawn: int | IntVector, counts: IntVector
) -> Vector:
    """Return ln Pr[k] for T of n records drawn of which G count: C(G, k) C(n - G, T - k) / C(n, T).

    Args:
        records: n.
        held: G.
        drawn: T; a number, or one for each k.
        counts: possible values of k.

    Returns:
        Logarithms that are rounded once.
    """
    others, sampled = records - held, np.atleast_1d(np.asarray(drawn, dtype=np.int64))
    plus = (np.array([held]), np.array([others]), sampled, records - sampled)
    minus = (np.array([records]), counts, held - counts, sampled - counts)
    pairs = [logarithms.log_factorial(value) for value in plus]
    rest = (*minus, others - sampled + counts)
    pairs += [logarithms.negative(logarithms.log_factorial(value)) for value in rest]
    return logarithms.total(pairs)


def average(pool: Pool, stick: Callable[[int], float]) -> float:
    """Return ln of the sum over T' of Pr[T'] D_T', what is left out below e^-40 of it.

    Args:
        pool: N, G, n and T.
        stick: ln D_t of any t; called once for each run of values T' that matter.
    """
    parts = [_run(pool, first, last, stick) for first, last in _runs(pool)]
    return float(logarithms.log_sum(np.array(parts)))


def _runs(pool: Pool) -> list[tuple[int, int]]:
    """Return the stretches of T' that are summed, each with its first and last value.

    Ranges (g_i, g_{i+1}] of T' hold at most their number times the largest Pr[T'] in them times
    D at g_{i+1}, which is the largest, as drawing fewer is post-processing. The sum is at least
    Pr[g] gain_{g-1} for every g.
    """
    least, most = max(pool.least, 1), pool.most
    if most - least < _WHOLE:
        return [(least, most)] if least <= most else []
    grid = between(least - 1, most, _GRID)
    while True:
        right = grid[1:]
        mass = np.append(pool.log_mass(np.maximum(grid[:1], pool.least)), pool.log_mass(right))
        lower = float((mass[1:] + pool.log_gain(right - 1)).max())
        highest = np.maximum(mass[:-1], mass[1:])
        inside = (grid[:-1] < pool.mode) & (pool.mode <= right)
        highest[inside] = pool.log_mass(np.array([pool.mode]))
        lengths = np.diff(grid)
        bounds = np.log(lengths) + highest + pool.log_cover(right)
        kept = bounds > lower - _NEGLIGIBLE - math.log(lengths.size)
        coarse = np.flatnonzero(kept & (lengths > max(1, int(lengths[kept].sum()) // _PARTS)))
        if coarse.size == 0:
            return _joined(grid, kept)
        finer = [between(int(grid[i]), int(right[i]), _FINER + 1) for i in coarse.tolist()]
        grid = np.unique(np.concatenate([grid, *finer]))


def _joined(grid: IntVector, kept: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the ranges that are kept, neighbours joined, by the first and last T'."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], kept, [False]))))
    return [
        (int(grid[begin]) + 1, int(grid[end]))
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def _run(pool: Pool, first: int, last: int, stick: Callable[[int], float]) -> float:
    """Return ln of the sum of Pr[T'] D_T' over T' = first..last."""
    parts, above = [], -math.inf
    for start, stop in _blocks(first, last):
        logs = pool.log_mass(np.arange(start, stop + 1))
        gains = pool.log_gain(np.arange(start - 1, stop))
        if start == first:
            gains[0] = -np.inf
        # tails[i]: the probability of start + i, ..., last. gains[i] is what the draw before that
        # adds; the first of all is part of D_first.
        for part in _within_range(logs):
            top = max(float(logs[part].max()), above)
            chances = np.exp(logs[part] - top)[::-1].cumsum()[::-1] + math.exp(above - top)
            parts.append(logarithms.log_sum(np.log(chances) + top + gains[part]))
            above = top + math.log(float(chances[0]))
    return float(logarithms.log_sum(np.array([*parts, above + stick(first)])))


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut first..last into blocks, the last one first."""
    for stop in range(last, first - 1, -_BLOCK):
        yield max(first, stop - _BLOCK + 1), stop


def _within_range(logs: Vector) -> Iterator[slice]:
    """Cut a block into pieces whose exponentials fit into doubles together, the last one first."""
    stack = [(0, logs.size)]
    while stack:
        start, stop = stack.pop()
        if stop - start > 1 and float(np.ptp(logs[start:stop])) > _DOUBLE_RANGE:
            middle = (start + stop) // 2
            stack += [(start, middle), (middle, stop)]
        else:
            yield slice(start, stop)


def between(first: int, last: int, count: int) -> IntVector:
    """Return up to ``count`` integers from first to last, both included, evenly spread."""
    return np.unique(np.linspace(first, last, count).round().astype(np.int64))
