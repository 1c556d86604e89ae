"""The expectation of V under the law of a sum, and a bound on what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector
from dpopt.prob.sum_law import SumLaw, log_chernoff, log_law, mean

_MOST_PRODUCTS = 3e8
_NEGLIGIBLE = 37.0
_FIRST_DEPTH = 60.0


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

    def log_terms(self, law: SumLaw, spread: int = 0) -> Vector:
        """Return, for each block of s, a bound of log sum_s Pr[certain + sum = s] max V(s + h).

        The maximum is over h = 0..spread; s runs over the blocks.
        """
        reach = -(-spread // self.block)
        padded = np.concatenate((self.maxima, np.full(reach, -np.inf)))
        above = np.lib.stride_tricks.sliding_window_view(padded, reach + 1).max(axis=1)
        left = self.starts - float(law.certain)
        right = left + (self.block - 1)
        nearest = np.clip(mean(law), left, right)
        inside = (right >= 0) & (left <= law.size)
        bound = log_chernoff(law, np.clip(nearest, 0.0, law.size))
        return np.where(inside, bound + above + math.log(self.block), -np.inf)

    def runs(self, law: SumLaw, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield the maximal stretches of s of the chosen blocks that the law can reach."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False]))))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            start = max(int(begin) * self.block, law.certain)
            stop = min(int(end) * self.block - 1, law.certain + law.size)
            if start <= stop:
                yield start, stop


def _log_sum(terms: Vector) -> float:
    """Return log(sum exp(terms)); -inf for no terms."""
    top = float(terms.max(initial=-np.inf))
    return top if top == -np.inf else top + math.log(float(np.exp(terms - top).sum()))


def expectation(sequence: Sequence, law: SumLaw) -> float:
    """Return log E V(certain + sum); the blocks left out hold less than e^-37 of it."""
    bounds = sequence.log_terms(law)
    threshold = float(bounds.max()) - _FIRST_DEPTH
    while threshold > -np.inf:
        total = _sum_runs(sequence, law, bounds >= threshold)
        if _log_sum(bounds[bounds < threshold]) <= total - _NEGLIGIBLE:
            return total
        threshold = total - _NEGLIGIBLE - math.log(bounds.size)
    return _sum_runs(sequence, law, bounds > -np.inf)


def _sum_runs(sequence: Sequence, law: SumLaw, chosen: npt.NDArray[np.bool_]) -> float:
    """Return the logarithm of the part of the expectation in the chosen blocks."""
    sums = [
        _log_sum(
            log_law(law, start - law.certain, stop - law.certain)
            + sequence.values[start : stop + 1]
        )
        for start, stop in sequence.runs(law, chosen)
    ]
    return _log_sum(np.array(sums))


def averages(sequence: Sequence, law: SumLaw, spread: int) -> Vector | None:
    """Return an upper bound of log W(h) = log E V(certain + sum + h), h = 0..spread.

    What is cut off is added, so the bound holds in any case; it is close unless W spans more
    than e^600. None if it would take more than 3e8 products.
    """
    bounds = sequence.log_terms(law, spread)
    threshold = float(bounds.max()) - _FIRST_DEPTH
    for last in (False, True):
        chosen = (bounds >= threshold) & (bounds > -np.inf)
        if float(chosen.sum()) * sequence.block * (spread + 1.0) > _MOST_PRODUCTS:
            return None
        result = np.full(spread + 1, -np.inf)
        for start, stop in sequence.runs(law, chosen):
            part = _correlate(sequence.values, law, start, stop, spread)
            result = np.logaddexp(result, part)
        lost = _log_sum(bounds[~chosen])
        least = float(result.min())
        if last or lost <= least - _NEGLIGIBLE:
            return np.logaddexp(result, lost)
        threshold = least - _NEGLIGIBLE - math.log(bounds.size)
    return None


def _correlate(values: Vector, law: SumLaw, start: int, stop: int, spread: int) -> Vector:
    """Return log sum_{s = start..stop} Pr[sum = s] V(s + h), h = 0..spread, rounded up."""
    weights = log_law(law, start - law.certain, stop - law.certain)
    slope = (weights[0] - weights[-1]) / max(stop - start, 1)
    weights = weights + slope * np.arange(weights.size)
    tilted = values[start : stop + spread + 1] - slope * np.arange(stop - start + spread + 1)
    top, height = float(weights.max()), float(tilted.max())
    if height == -np.inf:
        return np.full(spread + 1, -np.inf)
    products = np.correlate(np.exp(tilted - height), np.exp(weights - top), mode="valid")
    products += 4.0 * weights.size * 1e-307  # factors below e^-707 may have been lost
    return np.log(products) + top + height + slope * np.arange(spread + 1)
