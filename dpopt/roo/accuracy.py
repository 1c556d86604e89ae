"""How far a sampler's law must be from the data: worst data sets, and what no sampler can beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.roo.bounds import (
    METHODS,
    DsRooBound,
    DsRooRate,
    ds_roo_binomial_bound,
    ds_roo_bound,
    ds_roo_rate,
    ds_roo_records,
    laplace_bound,
    least_of,
    records_needed,
    roo_bound,
    subrr_bound,
)
from dpopt.roo.exact_tv import ExpectedOutput, expected_output, floor_laws
from dpopt.roo.floor import SmoothFloorSampler
from dpopt.roo.minimum import MinCountSampler
from dpopt.roo.setting import RooSetting

__all__ = [
    "METHODS",
    "DsRooBound",
    "DsRooRate",
    "ExpectedOutput",
    "LowerBound",
    "ds_roo_binomial_bound",
    "ds_roo_bound",
    "ds_roo_rate",
    "ds_roo_records",
    "expected_output",
    "laplace_bound",
    "lower_bound",
    "lower_bound_records",
    "records_needed",
    "roo_bound",
    "smooth_floor_binomial_bound",
    "subrr_bound",
    "worst_case_tv",
]

_MOST_LISTED = 1_000_000


def worst_case_tv(sampler: MinCountSampler | SmoothFloorSampler) -> float:
    """Return the largest total variation distance of K(x) from the empirical law, over all x.

    For a smooth floor all counts are listed, at most 1e6. For a rule in the smallest count m it is
    q_m times that of the empirical law from the uniform one, which is largest where one letter has
    all it can: q_m (1 - 1/k) (1 - k m / n). Also the largest distance from P over all P, where the
    maximum is at m = 0: then P is a single letter.

    Raises:
        ParameterError: for a smooth floor with more counts.
    """
    if isinstance(sampler, SmoothFloorSampler):
        n, worst = sampler.setting.records, 0.0
        for counts, laws, _ in floor_laws(sampler):
            short = np.maximum(0.0, counts / n - laws).sum(axis=1)
            worst = max(worst, float(short.max()))
        return worst
    _checks.instance("sampler", sampler, MinCountSampler)
    n, k = sampler.setting.records, sampler.setting.letters
    q = sampler.q[:1] if sampler.rule == "roo" else sampler.q[: n // k + 1]
    spread = (n - k * np.arange(q.size)) / n
    return float((q * spread).max()) * (1 - 1 / k)


def smooth_floor_binomial_bound(sampler: SmoothFloorSampler, least_probability: float) -> float:
    """Bound the smooth floor's total variation from P: (k / n) E[w(C) - C], C ~ Binomial(n, gamma).

    Holds for every P with P(x) >= gamma. With Z the sum of the w(c_y), only letters with
    K(y) = w(c_y) / Z < c_y / n lose, at most 1 - n / Z <= (Z - n) / n in all; w(c) - c does not
    increase, and it is 0 from c* on.

    Args:
        sampler: its w is w(c) = c from c* = len(weights) on.
        least_probability: gamma, in (0, 1/k].

    Raises:
        ParameterError: for a gamma out of range.
    """
    _checks.instance("sampler", sampler, SmoothFloorSampler)
    n, k = sampler.setting.records, sampler.setting.letters
    gamma = least_of(least_probability, k)
    c = np.arange(min(sampler.floor.size, n + 1))
    from scipy.stats import binom

    mean = float((sampler.floor[: c.size] - c) @ binom.pmf(c, n, gamma))
    return min(1.0, k / n * mean)


@dataclass(frozen=True)
class LowerBound:
    """A bound on the worst-case total variation of every epsilon-DP sampler.

    Attributes:
        value: t.
        letters: d, of the data set that shows it.
        records: j.
    """

    value: float
    letters: int
    records: int


def lower_bound(setting: RooSetting) -> LowerBound:
    """Bound max over x of the total variation of K(x) from the empirical law, for any sampler.

    t >= max over 1 <= d < k, d j <= n of (d j / n) / (1 + d e^(epsilon j) / (k - d)).

    Averaging over relabelled letters changes neither privacy nor, upwards, the maximum, so letters
    with the same count have the same probability. Take x with d - 1 letters of count j, one with
    the rest, and k - d that do not occur: those have probability at most t together, so t / (k - d)
    each. Moving j records to one of them gives it at most e^(epsilon j) t / (k - d); then d letters
    have count j, so d e^(epsilon j) t / (k - d) >= d j / n - t.

    For each d the best real j has (epsilon j - 1) e^(epsilon j) = (k - d) / d, and the maximum
    over integers is beside it, since the logarithm is concave in j. Above 1e6 letters a grid of d
    is tried: the value stays a bound.
    """
    _checks.instance("setting", setting, RooSetting)
    n, k, e = setting.records, setting.letters, setting.epsilon
    most = min(k - 1, n)
    if most <= _MOST_LISTED:
        d = np.arange(1, most + 1)
    else:
        d = np.unique(np.geomspace(1, most, _MOST_LISTED).astype(np.int64))
    with np.errstate(over="ignore"):
        best = (1 + lambertw((k - d) / (d * math.e)).real) / e
    best = np.minimum(np.floor(best), n // d)
    # In logarithms: e^(epsilon j) may be out of range.
    tried = np.stack([np.clip(best + step, 1, n // d) for step in (0, 1)])
    logs = np.log(d * tried / n) - np.logaddexp(0.0, np.log(d / (k - d)) + e * tried)
    row, column = np.unravel_index(int(logs.argmax()), logs.shape)
    return LowerBound(math.exp(logs[row, column]), int(d[column]), int(tried[row, column]))


def lower_bound_records(accuracy: float, letters: int, epsilon: float) -> int:
    """Return an n that every epsilon-DP sampler of worst-case accuracy alpha has to reach.

    A sampler of n records is one of n + 1 (leave a random record out) with no larger worst case,
    so what n - 1 records cannot do, fewer cannot either.

    Args:
        accuracy: alpha, in (0, 1).
        letters: k, at least 2.
        epsilon: above 0, in nats.

    Raises:
        ParameterError: for an argument out of range, or if n is above 1e15.
    """
    alpha = _checks.real("accuracy", accuracy, 0.0, 1.0, open_lower=True, open_upper=True)

    def enough(n: int) -> bool:
        return lower_bound(RooSetting(n, letters, epsilon)).value <= alpha

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > 10**15:
            raise ParameterError(f"accuracy is {alpha:g}; it asks for more than 1e15 records.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
