"""The hockey-stick divergence of a sample drawn record by record, and its average.

Two databases of N records differ in one: the first has G ones, the other G - 1. Draw t records
without replacement; let P and Q be the pmfs of the number of ones drawn, and let D_t be the sum of
the positive parts of P - e^epsilon Q. One more draw splits u = P - e^epsilon Q at a count into u_1
(the next record is a one) and u_0 (it is a zero), u_1 + u_0 = u, so that

    D_{t+1} - D_t = sum over the counts of max(0, u_1) + max(0, u_0) - max(0, u),

where a term is 0 if u_1 and u_0 have the same sign, and otherwise the smaller of |u_1| and |u_0|.
Q/P falls with each one that is drawn and rises with each zero: u_1 > 0 > u_0 holds at exactly one
count, and the opposite at none. So D_t is a sum of t positive numbers in closed form, one for each
draw. With M = N - t remaining records, k of the G ones among them, Z = N - G zeros and

    f(k) = G (M - k) - e^epsilon (Z + 1) k,        f(k) <= 0 < f(k - 1)  at that count,

    gain_t = C(G, k) C(Z, M - k) / C(N, M) min(-f(k), k f(k - 1) / (M - k + 1)) / (M G).

For N = 2 and G = 1 at epsilon = 0 both gains are 1/2: D_1 = 1/2 and D_2 = 1.

This serves samples from larger databases: if the number T' of records drawn from these N is random
with the same pmf for both databases, the hockey-stick divergence is the average of D_T',

    sum_{T' = s..r} Pr[T'] D_T' = Pr[s <= T' <= r] D_s + sum_{t = s..r-1} gain_t Pr[t < T' <= r],

again positive terms, and O(1) operations for each T' instead of a tail sum. `average` selects the
T' that matter by closed-form bounds: D_T' is at least its last gain and at most the probability of
the counts where P > e^epsilon Q, whose pmf rises up to its mode; Pr[T'] is unimodal too. The terms
left out are below e^-40 of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector
from dpopt.prob import logarithms, tails

# Points of the first grid of T', and how many T' are summed in full.
_GRID, _WHOLE = 65, 512
# Values of T' summed at once.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Pool:
    """Two neighbouring databases and the records (the pool) that can tell them apart.

    Attributes:
        records: n, the size of either database.
        drawn: T, from 1 to n, without replacement.
        size: N, the records of the two categories in which they differ, from 1 to n.
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
        """The most likely T'."""
        peak = (self.drawn + 1) * (self.size + 1) // (self.records + 2)
        return min(max(peak, self.least), self.most)

    def log_mass(self, counts: IntVector) -> Vector:
        """Return ln Pr[T'] for possible values of T'."""
        return log_hypergeometric(self.records, self.size, self.drawn, counts)

    def _last(self, remaining: IntVector) -> tuple[Vector, Vector]:
        """Return the largest k with G (M - k) > e^epsilon (Z + 1) k for each M, and the excess."""
        ones, zeros = self._weights(remaining.size)
        return tails.last_above(ones, zeros, remaining.astype(np.float64) - 1.0, 1.0, self.factor)

    def _weights(self, size: int) -> tuple[Vector, Vector]:
        # G and Z + 1, repeated.
        return np.full(size, float(self.held)), np.full(size, self.size - self.held + 1.0)

    def log_gain(self, drawn: IntVector) -> Vector:
        """Return ln gain_t of the draw after ``drawn`` = t, from 0 to N - 1; -inf where it is 0."""
        remaining = self.size - drawn
        # k and f(k - 1) = above, and -f(k) = below, since f falls by slope from k - 1 to k.
        last, above = self._last(remaining)
        k, slope = last + 1.0, self.held + self.factor[0] * (self.size - self.held + 1.0)
        below = slope - above
        # Differences below this fraction of their terms are computed in double-double.
        small = np.flatnonzero(below <= 1e-2 * slope)
        if small.size:
            fewer = remaining[small].astype(np.float64) - 1.0
            excess = tails.excess(*self._weights(small.size), fewer, k[small], 1.0, self.factor)
            below[small] = np.maximum(-excess, 0.0)
        smaller = np.minimum(below, k * above / (remaining - k + 1.0))
        count = k.astype(np.int64)
        possible = np.flatnonzero(
            (count <= self.held) & (remaining - count <= self.size - self.held) & (smaller > 0.0)
        )
        result = np.full(drawn.size, -np.inf)
        chances = log_hypergeometric(self.size, self.held, remaining[possible], count[possible])
        result[possible] = chances + np.log(smaller[possible] / remaining[possible] / self.held)
        return result

    def log_cover(self, drawn: IntVector) -> Vector:
        """Return an upper bound on ln D_t, by the probability that P > e^epsilon Q.

        P > e^epsilon Q holds where the remaining ones K are at most k*. The pmf of K rises up to
        its mode, so that the probability is at most Pr[k*] times the number of possible K <= k*.
        """
        remaining = self.size - drawn
        # P > e^epsilon Q with k ones among M remaining: G (M + 1 - k) > e^epsilon (Z + 1) k.
        last, _ = self._last(remaining + 1)
        last = np.minimum(last.astype(np.int64), np.minimum(remaining, self.held))
        least = np.maximum(0, remaining - (self.size - self.held))
        peak = (remaining + 1) * ((self.held + 1) / (self.size + 2.0))
        result = np.zeros(drawn.size)
        result[last < least] = -np.inf
        rising = np.flatnonzero((last >= least) & (last < peak - 1.0 - 1e-9 * peak))
        chances = log_hypergeometric(self.size, self.held, remaining[rising], last[rising])
        result[rising] = np.minimum(
            chances + np.log(last[rising] - least[rising] + 1.0) + 1e-6, 0.0
        )
        return result


def log_hypergeometric(
    records: int,
    held: int | IntVector,
    drawn: int | IntVector,
    counts: IntVector,
    log_factor: Vector | None = None,
    factorials: Callable[[IntVector], logarithms.Pair] = logarithms.log_factorial,
) -> Vector:
    """Return ln C(G, k) C(n - G, T - k) / C(n, T), rounded once, for possible ``counts`` k.

    It is the pmf of k of the G records ``held`` among T of n drawn; G and T may differ for each k.
    ``log_factor`` is added before rounding; ``factorials`` returns ln N! as `log_factorial` does.
    """
    ones, sampled = (np.atleast_1d(np.asarray(number, dtype=np.int64)) for number in (held, drawn))
    others = records - ones
    numerators = (ones, others, sampled, records - sampled)
    denominators = (np.array([records]), counts, ones - counts, sampled - counts)
    denominators = (*denominators, others - sampled + counts)
    pairs = [factorials(value) for value in numerators]
    pairs += [logarithms.negative(factorials(value)) for value in denominators]
    if log_factor is not None:
        pairs.insert(0, (log_factor, np.zeros_like(log_factor)))
    return logarithms.total(pairs)


def average(pool: Pool, stick: Callable[[int], float]) -> float:
    """Return ln sum_{T'} Pr[T'] D_T', leaving out terms below e^-40 of it.

    Args:
        pool: N, G, n and T.
        stick: returns ln D_t for any t; called once for each run of consecutive T' that matter.
    """
    return float(logarithms.log_sum(np.array([_run(pool, *run, stick) for run in _runs(pool)])))


def _runs(pool: Pool) -> list[tuple[int, int]]:
    """Return the runs of T' that are summed, each as (first, last).

    A range (g_i, g_{i+1}] of T' contributes at most its length times its largest Pr[T'] times D at
    g_{i+1}: D rises with T', as drawing fewer records is post-processing. The sum is at least
    Pr[g] gain_{g-1} for every g.
    """
    least, most = max(pool.least, 1), pool.most
    if most - least < _WHOLE:
        return [(least, most)] if least <= most else []
    grid = between(least - 1, most, _GRID)
    while True:
        # mass[i]: ln Pr[T' = grid[i]]; highest[i]: largest ln Pr[T'] in range i.
        right = grid[1:]
        mass = np.append(pool.log_mass(np.maximum(grid[:1], pool.least)), pool.log_mass(right))
        lower = float((mass[1:] + pool.log_gain(right - 1)).max())
        highest = np.maximum(mass[:-1], mass[1:])
        has_mode = (grid[:-1] < pool.mode) & (pool.mode <= right)
        highest[has_mode] = pool.log_mass(np.array([pool.mode]))
        lengths = np.diff(grid)
        bounds = np.log(lengths) + highest + pool.log_cover(right)
        # Terms left out of a sum are below e^-40 = 4e-18 of it.
        relevant = bounds > lower - 40.0 - math.log(lengths.size)
        # Ranges above 1/32 of what is to be summed are split into 8 ranges.
        coarse = np.flatnonzero(relevant & (lengths > max(1, int(lengths[relevant].sum()) // 32)))
        if coarse.size == 0:
            return _joined(grid, relevant)
        finer = [between(int(grid[i]), int(right[i]), 9) for i in coarse.tolist()]
        grid = np.unique(np.concatenate([grid, *finer]))


def _joined(grid: IntVector, relevant: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the relevant ranges, adjacent ones joined, as (first, last) T'."""
    # Positions at which relevant ranges begin and end, alternately.
    edges = np.flatnonzero(np.diff(np.concatenate(([False], relevant, [False]))))
    return [
        (int(grid[begin]) + 1, int(grid[end]))
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def _run(pool: Pool, first: int, last: int, stick: Callable[[int], float]) -> float:
    """Return ln sum_{T' = first..last} Pr[T'] D_T'."""
    log_sums, above = [], -math.inf
    # Blocks of first..last, the last one first.
    for stop in range(last, first - 1, -_BLOCK):
        start = max(first, stop - _BLOCK + 1)
        logs = pool.log_mass(np.arange(start, stop + 1))
        gains = pool.log_gain(np.arange(start - 1, stop))
        if start == first:
            gains[0] = -np.inf
        # gains[i]: what the draw before T' = start + i adds; the first of all is part of D_first.
        # chances[i]: e^-top Pr[start + i <= T' <= last].
        for piece in _within_range(logs):
            top = max(float(logs[piece].max()), above)
            chances = np.exp(logs[piece] - top)[::-1].cumsum()[::-1] + math.exp(above - top)
            log_sums.append(logarithms.log_sum(np.log(chances) + top + gains[piece]))
            above = top + math.log(float(chances[0]))
    return float(logarithms.log_sum(np.array([*log_sums, above + stick(first)])))


def _within_range(logs: Vector) -> Iterator[slice]:
    """Yield pieces of a block whose exponentials fit into doubles together, the last first."""
    stack = [(0, logs.size)]
    while stack:
        start, stop = stack.pop()
        # Range of logarithms whose exponentials fit into doubles together, e^-600 relative to the
        # largest.
        if stop - start > 1 and float(np.ptp(logs[start:stop])) > 600.0:
            middle = (start + stop) // 2
            stack += [(start, middle), (middle, stop)]
        else:
            yield slice(start, stop)


def between(first: int, last: int, count: int) -> IntVector:
    """Return up to ``count`` integers from first to last, both included, evenly spread."""
    return np.unique(np.linspace(first, last, count).round().astype(np.int64))
