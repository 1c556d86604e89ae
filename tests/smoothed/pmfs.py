"""Distributions and hockey-sticks in exact rationals, from the definitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf

from dpopt.prob.histograms import checked_histograms, index_of
from dpopt.smoothed import profile as package
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram
from tests.oracles import Counts, compositions, delta, hypergeometric, multinomial

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KernelMechanism(AnonymousMechanism):
    """An anonymous mechanism of one's own: a pmf for each histogram, in their order."""

    records: int
    categories: int
    kernel: Vector

    @property
    def outputs(self) -> int:
        return self.kernel.shape[1]

    def pmfs(self, histograms: npt.ArrayLike) -> Vector:
        rows = checked_histograms(histograms, self.records, self.categories)
        return self.kernel[index_of(rows)]

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": "kernel", "kernel": self.kernel.tolist()}


def profile(
    records: int, drawn: int, categories: int, ratio: Fraction, again: bool = False
) -> dict[Counts, Fraction]:
    """Return delta of every database of the sampling-histogram."""
    pmf = partial(multinomial if again else hypergeometric, drawn=drawn)
    return {row: delta(pmf, row, ratio) for row in compositions(records, categories)}


def spread(records: Iterable[Sequence[Any]], categories: int) -> dict[Counts, Any]:
    """Return the pmf of the histogram of independent records, each with a pmf of its own."""
    pmf: dict[Counts, Any] = {(0,) * categories: 1}
    for record in records:
        after: dict[Counts, Any] = {}
        for h, chance in pmf.items():
            for c, p in enumerate(record):
                key = (*h[:c], h[c] + 1, *h[c + 1 :])
                after[key] = after.get(key, 0) + chance * p
        pmf = after
    return pmf


def mean(values: Mapping[Counts, Any], pmfs: Sequence[Sequence[Any]], counts: Iterable[int]) -> Any:
    """Return E V(h) where so many of the records come from each of the distributions."""
    chosen = [pmf for pmf, count in zip(pmfs, counts, strict=True) for _ in range(count)]
    return sum(p * values[h] for h, p in spread(chosen, len(pmfs[0])).items())


def means(
    values: Mapping[Counts, Any], pmfs: Sequence[Sequence[Any]], records: int
) -> dict[Counts, Any]:
    """Return E V(h) for every composition of the records."""
    return {counts: mean(values, pmfs, counts) for counts in compositions(records, len(pmfs))}


def log_of(value: Fraction) -> float:
    """Return ln of a rational, correctly to about a rounding error, -inf for 0."""
    if value == 0:
        return -math.inf
    with mp.workdps(40):
        return float(mp.log(mpf(value.numerator) / mpf(value.denominator)))


def log_profile(records: int, drawn: int, epsilon: float) -> Vector:
    """Return the package's ln delta of all databases over two categories."""
    return package.sampled_log_profile(SamplingHistogram(records, drawn), epsilon)


def log_delta_at(records: int, drawn: int, epsilon: float, ones: npt.NDArray[np.int64]) -> Vector:
    """Return the package's ln delta of databases over two categories, each asked for by itself."""
    mechanism = SamplingHistogram(records, drawn)
    rows = np.column_stack([ones, records - ones])
    return np.concatenate([package.log_delta_at(mechanism, epsilon, row) for row in rows])


def log_divergence(records: int, drawn: int, epsilon: float, ones: npt.NDArray[np.int64]) -> Vector:
    """Return the package's ln D(H + 1 || H)."""
    mechanism = SamplingHistogram(records, drawn)
    return package.pooled_log_divergence(mechanism, epsilon, records, ones)


def log_choose(n: int, k: int) -> Any:
    """Return ln C(n, k) in mpmath's precision."""
    return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)


def divergence_by_definition(records: int, drawn: int, epsilon: float, ones: int) -> Any:
    """Return D(H + 1 || H) from both pmfs at every lost count from the threshold down."""
    held, lost = ones + 1, records - drawn
    factor = mp.exp(mpf(epsilon))
    root = mpf(held) * (lost + 1) / (held + factor * (records + 1 - held))
    k = min(int(mp.floor(root)) + 2, lost, held)
    low = max(0, lost - (records - held))
    if k < low:
        return mpf(0)
    ways = log_choose(records, lost)
    p = mp.exp(log_choose(held, k) + log_choose(records - held, lost - k) - ways)
    total = mpf(0)
    while k >= low:
        # Of the database with one less, k - 1 ones are lost at the same published count.
        q = p * k * (records - ones) / ((ones + 1) * (lost - k + 1))
        if p > factor * q:
            total += p - factor * q
            if p * lost < total * mpf(10) ** -15:
                break
        p *= mpf(k) * (records - held - lost + k)
        p /= mpf(held - k + 1) * (lost - k + 1)
        k -= 1
    return total


def assert_logs(logs: npt.ArrayLike, exact: Iterable[Any], tolerance: float) -> None:
    """Compare logarithms with exact values, -inf with 0."""
    for log_value, value in zip(np.asarray(logs).tolist(), exact, strict=True):
        if value == 0:
            assert log_value == -np.inf
        else:
            # One unit in the last place of a logarithm of 10^5 is 1.5e-11 already.
            exactly = (
                mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
            )
            error = abs(mp.expm1(mpf(log_value) - mp.log(exactly)))
            assert error <= max(tolerance, np.spacing(abs(log_value)))
