"""The accuracy of a sampler in total variation: exact under a distribution, and a lower bound.

The error of the released category against the distribution of the records is exact; the lower bound
holds for every private sampler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import Vector, frozen
from dpopt.roo.minimum import RevealOrObscure
from dpopt.roo.setting import RooSetting
from dpopt.shape import Design
from experiments.roo.minimum_distribution import MinimumDistribution

# Largest n and k of an exact expectation of a rule in the smallest count.
_LARGEST_RECORDS, _MOST_CATEGORIES = 10**7, 10**5


@dataclass(frozen=True)
class ExpectedOutput:
    """The distribution of the category Y that a sampler releases for records drawn from P.

    Attributes:
        distribution: P, shape (k,).
        difference: Pr(Y = y) - P(y), shape (k,).
        mean_obscuring: E[q_M], the probability that the category is drawn uniformly.
    """

    distribution: Vector
    difference: Vector
    mean_obscuring: float

    @property
    def pmf(self) -> Vector:
        """Pr(Y = y), shape (k,)."""
        return frozen(self.distribution + self.difference)

    @property
    def total_variation(self) -> float:
        """Total variation distance between P and the distribution of Y."""
        return float(np.abs(self.difference).sum() / 2)


def expected_output(sampler: Design, distribution: npt.ArrayLike) -> ExpectedOutput:
    """Return the pmf of the released category for n records drawn independently from P, exactly.

    With M the smallest of the counts, Pr(Y = y) - P(y) = E[q_M (1/k - c_y / n)].

    Categories of the same probability are convolved together. Sums are truncated where the rest is
    below 1e-18 k E[q_M], for non-increasing q_m; rounding is of the order of 1e-13 E[q_M], and
    values below 1e-280 are returned as 0. It takes milliseconds for n = 1,000.

    Args:
        sampler: a rule in the smallest count, private or not, n at most 1e7 and k at most 1e5.
        distribution: P, shape (k,): probabilities that sum to 1 within 1e-9.
    """
    setting: Any = sampler.setting if isinstance(sampler, Design) else None
    if not isinstance(setting, RevealOrObscure):
        raise ParameterError(f"sampler is {shown(sampler)}; it must be one of RevealOrObscure.")
    _checks.integer("records", setting.records, 1, _LARGEST_RECORDS)
    _checks.integer("categories", setting.categories, 2, _MOST_CATEGORIES)
    p = _checked_pmf(distribution, setting.categories)
    if setting.constant or p.min() == 0.0:
        # If a category cannot occur, the smallest count is always 0.
        q = sampler.obscuring(0)
        return ExpectedOutput(frozen(p), frozen(q * (1 / setting.categories - p)), q)
    shares, groups = np.unique(p, return_inverse=True)
    sizes = np.bincount(groups)
    pmf = MinimumDistribution.of(setting.records, shares, sizes, sampler.q)
    means, mean_obscuring = np.zeros(shares.size), 0.0
    for m in pmf.minima:
        q, (bias, mass) = float(sampler.q[m]), pmf.bias(m)
        means += q * bias
        mean_obscuring += q * mass
    return ExpectedOutput(frozen(p), frozen(means[groups]), mean_obscuring)


def _checked_pmf(distribution: npt.ArrayLike, categories: int) -> Vector:
    """Return a distribution P of the records, checked and normalised, shape (k,)."""
    pmf = _checks.floats("distribution", distribution)
    if pmf.shape != (categories,):
        raise ParameterError(f"distribution has shape {pmf.shape}; it must be ({categories},).")
    if not np.all((pmf >= 0) & (pmf <= 2)) or not abs(pmf.sum() - 1) <= 1e-9:
        raise ParameterError("distribution must hold probabilities that sum to 1.")
    return pmf / pmf.sum()


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the worst-case total variation of every epsilon-DP sampler.

    Attributes:
        value: t.
        categories: d of the data set that attains it; see `lower_bound`.
        records: j, the count of d - 1 of its categories.
    """

    value: float
    categories: int
    records: int


def lower_bound(setting: RooSetting) -> LowerBound:
    """Return a lower bound t on max over x of TV(K(x), empirical(x)), for any epsilon-DP sampler.

    t >= max over 1 <= d < k, d j <= n of (d j / n) / (1 + d e^(epsilon j) / (k - d)).

    Proof. Averaging over relabellings of the categories keeps privacy and does not raise the
    maximum, so categories with the same count may have the same probability. Take x with d - 1
    categories of count j, one with the remaining records, and k - d that do not occur: together
    these have probability at most t, so t / (k - d) each. Moving j records to one of them raises
    it to at most e^(epsilon j) t / (k - d); then d categories have count j, so
    d e^(epsilon j) t / (k - d) >= d j / n - t.

    For each d the best real j satisfies (epsilon j - 1) e^(epsilon j) = (k - d) / d, and the best
    integer is next to it, since the logarithm is concave in j. Above 1e6 values of d only a grid is
    tried, which still gives a valid bound.
    """
    _checks.instance("setting", setting, RooSetting)
    n, k, epsilon = setting.records, setting.categories, setting.epsilon
    largest = min(k - 1, n)
    # Values of d that a lower bound tries exhaustively; beyond, it tries a geometric grid of as
    # many.
    if largest <= 1_000_000:
        d = np.arange(1, largest + 1)
    else:
        d = np.unique(np.geomspace(1, largest, 1_000_000).astype(np.int64))
    with np.errstate(over="ignore"):
        best = (1 + lambertw((k - d) / (d * math.e)).real) / epsilon
    best = np.minimum(np.floor(best), n // d)
    # Axis 0: the integers j on both sides of the best real one; axis 1: d. In logarithms, since
    # e^(epsilon j) may overflow.
    candidates = np.stack([np.clip(best + step, 1, n // d) for step in (0, 1)])
    logs = np.log(d * candidates / n) - np.logaddexp(
        0.0, np.log(d / (k - d)) + epsilon * candidates
    )
    row, column = np.unravel_index(int(logs.argmax()), logs.shape)
    return LowerBound(math.exp(logs[row, column]), int(d[column]), int(candidates[row, column]))
