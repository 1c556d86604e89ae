"""How far a sampler's pmf is from the data and from what they are drawn from, in total variation.

Exact, under a distribution of the records; and what no sampler can beat.
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
from dpopt.prob.minimum_distribution import MinimumDistribution
from dpopt.roo.floor import SmoothFloor, weights_up_to
from dpopt.roo.minimum import RevealOrObscure
from dpopt.roo.setting import RooSetting, checked_pmf, outcomes
from dpopt.shape import Design

# Of an exact distribution of a min-count rule.
_LARGEST_RECORDS, _MOST_CATEGORIES = 10**7, 10**5
# Values of d that a lower bound tries one by one.
_MOST_LISTED = 1_000_000


@dataclass(frozen=True)
class ExpectedOutput:
    """What a sampler releases when its records are drawn from P.

    Attributes:
        distribution: P, shape (k,).
        difference: Pr(Y = y) - P(y), shape (k,).
        mean_obscuring: E[q_M], the probability of a uniform category; for a smooth floor
            E[(Z - n) / Z], that of a category for what the floor lifts it by.
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
        """Total variation distance between P and the distribution of the released category."""
        return float(np.abs(self.difference).sum() / 2)


def expected_output(sampler: Design, distribution: npt.ArrayLike) -> ExpectedOutput:
    """Return the pmf of the released category for n records drawn independently from P, exactly.

    With M the smallest of the counts, Pr(Y = y) - P(y) = E[q_M (1/k - c_y / n)].
    For a smooth floor it is the sum over all counts, of which there may be at most 1e6.

    Categories of the same probability are convolved together. Sums are cut where what is left out
    is below 1e-18 k E[q_M] for a q_m that does not increase; rounding is of the order of 1e-13
    E[q_M]. What is below 1e-280 is returned as 0. Milliseconds for n = 1,000; the time grows with
    the number of m that matter and with the square of the width of the counts' distributions.

    Args:
        sampler: any rule in the smallest count, private or not; n at most 1e7, k at most 1e5; or
            a smooth floor of a small n and k.
        distribution: P, shape (k,): probabilities that sum to 1 within 1e-9.

    Raises:
        ParameterError: for another shape, another sum, or a larger n or k.
    """
    setting: Any = sampler.setting if isinstance(sampler, Design) else None
    if not isinstance(setting, RevealOrObscure | SmoothFloor):
        raise ParameterError(
            f"sampler is {shown(sampler)}; it must be a design of RevealOrObscure or SmoothFloor."
        )
    if isinstance(setting, SmoothFloor):
        return _of_floor(sampler, checked_pmf(distribution, setting.categories))
    _checks.integer("records", setting.records, 1, _LARGEST_RECORDS)
    _checks.integer("categories", setting.categories, 2, _MOST_CATEGORIES)
    p = checked_pmf(distribution, setting.categories)
    if setting.constant or p.min() == 0.0:
        # A category that cannot occur keeps the smallest count at 0.
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


def _of_floor(sampler: Design, p: Vector) -> ExpectedOutput:
    n, k = sampler.setting.records, p.size
    difference, mean, mass = np.zeros(k), 0.0, 0.0
    table = weights_up_to(sampler.table, n)
    # Axis 0: count vectors; axis 1: categories.
    for counts, chances in outcomes(n, p):
        weights = table[counts]
        total = weights.sum(axis=1)
        difference += chances @ (weights / total[:, None] - counts / n)
        mean += float(chances @ ((weights - counts).sum(axis=1) / total))
        mass += float(chances.sum())
    return ExpectedOutput(frozen(p), frozen(difference / mass), mean / mass)


@dataclass(frozen=True)
class LowerBound:
    """A bound on the worst-case total variation of every epsilon-DP sampler.

    Attributes:
        value: t.
        categories: d, of the data set that shows it.
        records: j.
    """

    value: float
    categories: int
    records: int


def lower_bound(setting: RooSetting) -> LowerBound:
    """Bound max over x of the total variation of K(x) from the empirical pmf, for any sampler.

    t >= max over 1 <= d < k, d j <= n of (d j / n) / (1 + d e^(epsilon j) / (k - d)).

    Averaging over relabelled categories changes neither privacy nor, upwards, the maximum, so
    categories with the same count have the same probability. Take x with d - 1 categories of count
    j, one with the rest, and k - d that do not occur: those have probability at most t together, so
    t / (k - d) each. Moving j records to one of them gives it at most e^(epsilon j) t / (k - d);
    then d categories have count j, so d e^(epsilon j) t / (k - d) >= d j / n - t.

    For each d the best real j has (epsilon j - 1) e^(epsilon j) = (k - d) / d, and the maximum
    over integers is beside it, since the logarithm is concave in j. Above 1e6 categories a grid of
    d is tried: the value stays a bound.
    """
    _checks.instance("setting", setting, RooSetting)
    n, k, e = setting.records, setting.categories, setting.epsilon
    most = min(k - 1, n)
    if most <= _MOST_LISTED:
        d = np.arange(1, most + 1)
    else:
        d = np.unique(np.geomspace(1, most, _MOST_LISTED).astype(np.int64))
    with np.errstate(over="ignore"):
        best = (1 + lambertw((k - d) / (d * math.e)).real) / e
    best = np.minimum(np.floor(best), n // d)
    # Axis 0: the integers j on both sides of the best real one; axis 1: d. In logarithms, since
    # e^(epsilon j) may be out of range.
    tried = np.stack([np.clip(best + step, 1, n // d) for step in (0, 1)])
    logs = np.log(d * tried / n) - np.logaddexp(0.0, np.log(d / (k - d)) + e * tried)
    row, column = np.unravel_index(int(logs.argmax()), logs.shape)
    return LowerBound(math.exp(logs[row, column]), int(d[column]), int(tried[row, column]))
