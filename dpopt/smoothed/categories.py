"""The sampling-histogram on more than two categories, through the binary divergences.

Two neighbours H and H - e_a + e_b differ in the categories a and b only. How many of the drawn
records fall into this pool of H_a + H_b, and what is drawn outside it, has the same law in both;
given that T' of the drawn are from the pool, the rest is the binary mechanism that draws T' of
n' = H_a + H_b records. So

    D(H || H - e_a + e_b) = sum_{T'} Pr[T'] D_binary(n', T'; H_a || H_a - 1),

a function of n' and H_a only: one table serves any number of categories. T' is hypergeometric
without replacement, Bin(T, n'/n) with it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.prob import saddle
from dpopt.prob.histograms import checked_histogram, histograms
from dpopt.smoothed import binary, replacement
from dpopt.smoothed.histogram import SamplingHistogram

_LARGEST_RANGE = 10**7
_LARGEST_TABLE = 2000
_LARGEST_SUMS = 500_000
# What is left out of a sum is below e^-40 = 4e-18 of it.
_NEGLIGIBLE = 40.0
_FIRST_GRID = 65
_NEXT_GRID = 9


def categories_log_profile(
    records: int,
    drawn: int,
    categories: int,
    epsilon: float,
    histogram: npt.ArrayLike | None = None,
    *,
    replacement: bool = False,
) -> Vector:
    """Return ln delta of the sampling-histogram for all databases over m categories, or for one.

    delta(H) is the largest D(H || H') and D(H' || H) over H' = H - e_a + e_b; see the module's
    first lines.

    Args:
        records: n; where all databases are asked for at most 2000, with at most 5e5 pairs of a
            pool's size n' and a number T' drawn from it.
        drawn: T, from 1 to n; with replacement at least 1.
        categories: m, at least 2.
        epsilon: at least 0.
        histogram: counts of one database, shape (m,); all if None.
        replacement: whether records are put back before the next draw.

    Returns:
        Natural logarithms, -inf where delta is 0 exactly; shape (N,) in the order of
        `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there is too much to sum.
    """
    mechanism = SamplingHistogram(records, drawn, categories, replacement)
    epsilon = _checks.real("epsilon", epsilon, 0.0)
    if histogram is not None:
        counts = checked_histogram(histogram, mechanism.records, mechanism.categories)
        return np.array([_one(mechanism, epsilon, counts)])
    _require_feasible(mechanism)
    rows = histograms(mechanism.records, mechanism.categories)
    table = _table(mechanism, epsilon)
    found = np.full(rows.shape[0], -np.inf)
    for a in range(mechanism.categories):
        for b in range(mechanism.categories):
            if a != b:
                pool = rows[:, a] + rows[:, b]
                np.maximum(found, table[pool, rows[:, a]], out=found)
    return found


def _require_feasible(mechanism: SamplingHistogram) -> None:
    n, drawn = mechanism.records, mechanism.drawn
    if n <= _LARGEST_TABLE:
        sizes = range(1, n + 1) if mechanism.categories > 2 else (n,)
        if sum(len(_range(mechanism, pool)) for pool in sizes) <= _LARGEST_SUMS:
            return
    raise ParameterError(
        f"records is {n} and drawn {drawn}; for all databases over {mechanism.categories} "
        f"categories n may be at most {_LARGEST_TABLE}, with {_LARGEST_SUMS:,} pairs of a pool "
        "and a number drawn from it. Give one histogram."
    )


def pooled_log_divergence(
    mechanism: SamplingHistogram, epsilon: float, pool: int, ones: IntVector
) -> Vector:
    """Return ln D(H || H - e_a + e_b) for H_a = ones + 1 records of a among the pool's n'.

    D_binary rises with T', as drawing fewer is post-processing, so the terms between two values
    of T' are at most the probability of that range times D_binary at its upper end. Ranges are
    split until that is below e^-40 of the largest term found, or nothing is left between.

    Args:
        mechanism: n, T and whether there is replacement.
        epsilon: at least 0.
        pool: n' = H_a + H_b, at least 1.
        ones: H_a - 1, from 0 to n' - 1, shape (k,).

    Returns:
        Natural logarithms, shape (k,).

    Raises:
        ParameterError: if T' can take more than 1e7 values.
    """
    drawn, logs = _pool_law(mechanism, pool)
    divergence = replacement.log_divergence if mechanism.replacement else binary.log_divergence
    keep = drawn > 0
    drawn, logs = drawn[keep], logs[keep]
    if drawn.size == 0:
        return np.full(len(ones), -np.inf)

    def terms(places: IntVector) -> Matrix:
        rows = [logs[i] + divergence(pool, int(drawn[i]), epsilon, ones) for i in places.tolist()]
        return np.array(rows).reshape(places.size, len(ones))

    grid = _between(0, drawn.size - 1, _FIRST_GRID)
    found = terms(grid)
    while True:
        mass = np.logaddexp.reduceat(logs, grid[:-1] + 1) if grid.size > 1 else np.empty(0)
        bounds = mass[:, None] + found[1:] - logs[grid[1:], None]
        open_ranges = np.any(bounds > found.max(axis=0) - _NEGLIGIBLE, axis=1)
        open_ranges &= np.diff(grid) > 1
        if not open_ranges.any():
            return _log_sum(found)
        ranges = np.flatnonzero(open_ranges).tolist()
        more = [_between(int(grid[i]), int(grid[i + 1]), _NEXT_GRID)[1:-1] for i in ranges]
        added = np.concatenate(more)
        grid, found = np.append(grid, added), np.concatenate([found, terms(added)])
        order = np.argsort(grid)
        grid, found = grid[order], found[order]


def _between(first: int, last: int, count: int) -> IntVector:
    """Return up to ``count`` integers from first to last, both included, evenly spread."""
    return np.unique(np.linspace(first, last, count).round().astype(np.int64))


def _pool_law(mechanism: SamplingHistogram, pool: int) -> tuple[IntVector, Vector]:
    """Return the possible numbers of drawn records from the pool, and their log probabilities."""
    n, drawn = mechanism.records, mechanism.drawn
    others, possible = n - pool, _range(mechanism, pool)
    if others == 0:
        return np.array([drawn]), np.zeros(1)
    if len(possible) > _LARGEST_RANGE:
        raise ParameterError(
            f"drawn is {drawn} with {pool} of {n} records in two categories: more than "
            f"{_LARGEST_RANGE:,} numbers may be drawn from them, too many to sum over."
        )
    k = np.arange(possible.start, possible.stop, dtype=np.int64)
    if mechanism.replacement:
        plus = [_log_factorial(drawn), _log_power(k, pool), _log_power(drawn - k, others)]
        minus = [saddle.log_factorial(k), saddle.log_factorial(drawn - k)]
        minus.append(_log_power(np.array([drawn]), n))
    else:
        plus = [_log_factorial(value) for value in (pool, others, drawn, n - drawn)]
        parts = (k, pool - k, drawn - k, others - drawn + k)
        minus = [_log_factorial(n), *(saddle.log_factorial(part) for part in parts)]
    return k, saddle.total([*plus, *(saddle.negative(pair) for pair in minus)])


def _range(mechanism: SamplingHistogram, pool: int) -> range:
    """Return the possible numbers of drawn records from the pool."""
    drawn, others = mechanism.drawn, mechanism.records - pool
    if mechanism.replacement:
        return range(drawn if others == 0 else 0, drawn + 1)
    return range(max(0, drawn - others), min(drawn, pool) + 1)


def _log_factorial(value: int) -> saddle.Pair:
    return saddle.log_factorial(np.array([value]))


def _log_power(exponents: IntVector, base: int) -> saddle.Pair:
    return saddle.scale(exponents.astype(np.float64), saddle.log_integer(np.array([base])))


def _table(mechanism: SamplingHistogram, epsilon: float) -> Matrix:
    """Return the larger of both orders by n' and H_a, shape (n + 1, n + 1), -inf at H_a = 0."""
    n = mechanism.records
    table = np.full((n + 1, n + 1), -np.inf)
    for pool in range(1, n + 1) if mechanism.categories > 2 else (n,):
        forward = pooled_log_divergence(mechanism, epsilon, pool, np.arange(pool))
        table[pool, 1 : pool + 1] = np.maximum(forward, forward[::-1])
    return table


def _one(mechanism: SamplingHistogram, epsilon: float, counts: IntVector) -> float:
    """Return ln delta of one database, each pool of two categories summed once."""
    held = counts.tolist()
    found, done = -math.inf, set()
    for a, first in enumerate(held):
        for b, second in enumerate(held):
            if a == b or first == 0 or (first, second) in done:
                continue
            done.add((first, second))
            ones = np.array([first - 1, second], dtype=np.int64)
            values = pooled_log_divergence(mechanism, epsilon, first + second, ones)
            found = max(found, float(values.max()))
    return found


def _log_sum(terms: Matrix) -> Vector:
    """Return ln of the sums of exponentials over the first axis; -inf where all terms are."""
    top = terms.max(axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(terms - shift).sum(axis=0))
