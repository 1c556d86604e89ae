"""How far a sampler's law is from the data and from what they are drawn from, in total variation.

Exact, by worst data sets and under a law of the records; what no sampler can beat; and the bounds
of the papers (table I of the journal paper, cited by its equation numbers, theorem 3 and its
corollary).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, lambertw, xlogy

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown
from dpopt._types import Vector, frozen
from dpopt.prob.minimum_law import MinimumLaw
from dpopt.roo.floor import SmoothFloor
from dpopt.roo.minimum import MinCount, min_count
from dpopt.roo.setting import RooSetting, all_counts, checked_law
from dpopt.shape import Design

METHODS = ("laplace", "subrr", "roo")
_MOST_RECORDS = 10**15
# Of an exact law: of a min-count rule, and of a smooth floor, whose counts are listed.
_LARGEST_RECORDS, _MOST_LETTERS = 10**7, 10**5
_MOST_COUNTS = 1_000_000
_MOST_LISTED = 1_000_000


@dataclass(frozen=True)
class ExpectedOutput:
    """What a sampler releases when its records are drawn from P.

    Attributes:
        distribution: P, shape (k,).
        difference: Pr(Y = y) - P(y), shape (k,).
        mean_obscuring: E[q_M], the probability of a uniform letter; for a smooth floor
            E[(Z - n) / Z], that of a letter for what the floor lifts it by.
    """

    distribution: Vector
    difference: Vector
    mean_obscuring: float

    @property
    def law(self) -> Vector:
        """Pr(Y = y), shape (k,)."""
        return frozen(self.distribution + self.difference)

    @property
    def total_variation(self) -> float:
        """Total variation distance between P and the law of the released letter."""
        return float(np.abs(self.difference).sum() / 2)


def expected_output(sampler: Design, distribution: npt.ArrayLike) -> ExpectedOutput:
    """Return the law of the released letter for n records drawn independently from P, exactly.

    With M the smallest of the counts, Pr(Y = y) - P(y) = E[q_M (1/k - c_y / n)].
    For a smooth floor it is the sum over all counts, of which there may be at most 1e6.

    Letters of the same probability are convolved together. Sums are cut where what is left out is
    below 1e-18 k E[q_M] for a q_m that does not increase; rounding is of the order of
    1e-13 E[q_M]. What is below 1e-280 is returned as 0. Milliseconds for n = 1,000; the time grows
    with the number of m that matter and with the square of the width of the counts' laws.

    Args:
        sampler: any rule in the smallest count, private or not; n at most 1e7, k at most 1e5; or
            a smooth floor of a small n and k.
        distribution: P, shape (k,): probabilities that sum to 1 within 1e-9.

    Raises:
        ParameterError: for another shape, another sum, or a larger n or k.
    """
    setting = _setting_of(sampler, MinCount, SmoothFloor)
    if isinstance(setting, SmoothFloor):
        return _of_floor(sampler, checked_law(distribution, setting.letters))
    _checks.integer("records", setting.records, 1, _LARGEST_RECORDS)
    _checks.integer("letters", setting.letters, 2, _MOST_LETTERS)
    p = checked_law(distribution, setting.letters)
    if setting.constant or p.min() == 0.0:
        # A letter that cannot occur keeps the smallest count at 0.
        q = sampler.obscuring(0)
        return ExpectedOutput(frozen(p), frozen(q * (1 / setting.letters - p)), q)
    shares, groups = np.unique(p, return_inverse=True)
    sizes = np.bincount(groups)
    law = MinimumLaw.of(setting.records, shares, sizes, sampler.q)
    means, mean_obscuring = np.zeros(shares.size), 0.0
    for m in law.minima:
        q, (bias, mass) = float(sampler.q[m]), law.bias(m)
        means += q * bias
        mean_obscuring += q * mass
    return ExpectedOutput(frozen(p), frozen(means[groups]), mean_obscuring)


def _setting_of(sampler: object, *kinds: type[RooSetting]) -> Any:  # noqa: ANN401
    """Return the setting of a design of one of these kinds.

    Raises:
        ParameterError: for anything else.
    """
    setting = sampler.setting if isinstance(sampler, Design) else None
    if not isinstance(setting, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ParameterError(f"sampler is {shown(sampler)}; it must be a design of {names}.")
    return setting


def _of_floor(sampler: Design, p: Vector) -> ExpectedOutput:
    n, k = sampler.setting.records, sampler.setting.letters
    if max(n, k) > _MOST_COUNTS or comb(n + k - 1, k - 1) > _MOST_COUNTS:
        raise ParameterError(
            f"records is {n} over {k} letters; a smooth floor is summed over all counts, of which "
            f"there may be at most {_MOST_COUNTS:,}."
        )
    table = np.arange(n + 1, dtype=float)
    low = min(n + 1, sampler.floor.size)
    table[:low] = sampler.floor[:low]
    difference, mean, mass = np.zeros(k), 0.0, 0.0
    # Axis 0: count vectors; axis 1: letters.
    for counts in all_counts(n, k):
        weights = table[counts]
        total = weights.sum(axis=1)
        logs = gammaln(n + 1) + (xlogy(counts, p) - gammaln(counts + 1)).sum(axis=1)
        chances = np.exp(logs)
        difference += chances @ (weights / total[:, None] - counts / n)
        mean += float(chances @ ((weights - counts).sum(axis=1) / total))
        mass += float(chances.sum())
    return ExpectedOutput(frozen(p), frozen(difference / mass), mean / mass)


def smooth_floor_binomial_bound(sampler: Design, least_probability: float) -> float:
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
    setting = _setting_of(sampler, SmoothFloor)
    n, k = setting.records, setting.letters
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
    # Axis 0: the integers j on both sides of the best real one; axis 1: d. In logarithms, since
    # e^(epsilon j) may be out of range.
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
        if high > _MOST_RECORDS:
            raise ParameterError(f"accuracy is {alpha:g}; it asks for more than 1e15 records.")
    return _crossing(enough, low, high)


def _crossing(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return an n with enough(n) and not enough(n - 1), above ``low`` and up to ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def laplace_bound(setting: RooSetting) -> float:
    """Return 2 k / (n epsilon): noisy empirical law, projected (Raskhodnikova et al., table I)."""
    _checks.instance("setting", setting, RooSetting)
    return 2 * setting.letters / (setting.records * setting.epsilon)


def subrr_bound(setting: RooSetting) -> float:
    """Return (k - 1) / (n epsilon + k - 1): subsampled randomised response (Cheu, Nayak)."""
    _checks.instance("setting", setting, RooSetting)
    k = setting.letters
    return (k - 1) / (setting.records * setting.epsilon + k - 1)


def roo_bound(setting: RooSetting) -> float:
    """Return q_0 (1 - 1/k): ROO, (8) and (49). Attained where P is concentrated on one letter."""
    _checks.instance("setting", setting, RooSetting)
    return setting.obscuring * (1 - 1 / setting.letters)


@dataclass(frozen=True)
class DsRooBound:
    """Best of the bounds of theorem 3, (46) and (50).

    Attributes:
        value: bound on the total variation distance between P and the law of the released letter.
        minimum: the m_0 that attains it; None if no m_0 improves on ROO.
        tail: delta = k exp(-2 n (gamma - m_0 / n)^2) there; None as well.
    """

    value: float
    minimum: int | None
    tail: float | None


def ds_roo_bound(sampler: Design, least_probability: float) -> DsRooBound:
    """Return min{q_0, min over m_0 in [1, n gamma) of q_{m_0} + q_0 delta} (1 - 1/k), (50).

    For rules that increase somewhere, q_{m_0} stands for the largest q_m with m >= m_0, and q_0
    for the largest of all.

    Args:
        sampler: a rule in the smallest count.
        least_probability: gamma, in (0, 1/k]: P(x) >= gamma for all letters x.

    Raises:
        ParameterError: for a gamma out of range.
    """
    setting = _setting_of(sampler, MinCount)
    n, k = setting.records, setting.letters
    gamma = least_of(least_probability, k)
    rest = 1 - 1 / k
    # Where q_{m_0} is 0, a larger m_0 only raises delta.
    q = _falling(sampler)
    best = DsRooBound(float(q[0]) * rest, None, None)
    if setting.constant:
        return best
    last = min(math.ceil(n * gamma) - 1, q.size - 1)
    if last < 1:
        return best
    m = np.arange(1, last + 1)
    tails = k * np.exp(-2 * n * (gamma - m / n) ** 2)
    values = (q[1 : last + 1] + q[0] * tails) * rest
    place = int(values.argmin())
    if values[place] >= best.value:
        return best
    return DsRooBound(float(values[place]), place + 1, float(tails[place]))


def ds_roo_binomial_bound(sampler: Design, least_probability: float) -> float:
    """Return min{q_0 (1 - 1/k), (k - 1) E[q_C]} with C ~ Binomial(n, gamma).

    Holds for every P with P(x) >= gamma, in the place of (50): q_M is the largest of the q_{c_y},
    so at most their sum, and each E[q_{c_y}] is at most E[q_C] for a q that does not increase (one
    that does is raised to the largest q_j with j >= m first).

    Args:
        sampler: a rule in the smallest count.
        least_probability: gamma, in (0, 1/k].

    Raises:
        ParameterError: for a gamma out of range.
    """
    setting = _setting_of(sampler, MinCount)
    n, k = setting.records, setting.letters
    gamma = least_of(least_probability, k)
    q = _falling(sampler)
    if setting.constant:
        return float(q[0]) * (1 - 1 / k)
    from scipy.stats import binom

    mean = float(q @ binom.pmf(np.arange(q.size), n, gamma))
    return min(float(q[0]) * (1 - 1 / k), (k - 1) * mean)


def _falling(sampler: Design) -> Vector:
    """Return max over j >= m of q_j, for the m where it is not 0 and one more."""
    return np.maximum.accumulate(np.append(sampler.q, 0.0)[::-1])[::-1]


@dataclass(frozen=True)
class DsRooRate:
    """The exponential rate of theorem 3 and table I.

    Attributes:
        minimum: m_0, the least integer that satisfies (40).
        value: q_0 (k - 1) exp(-2 n (gamma - m_0 / n)^2), (42); a bound where it applies.
        leading: the entry of table I, q_0 (k - 1) exp(-2 n gamma^2 + 4 gamma m_0), without o(1).
        applies: whether n satisfies (41), so that q_{m_0} = 0.
    """

    minimum: int
    value: float
    leading: float
    applies: bool


def ds_roo_rate(setting: RooSetting, least_probability: float) -> DsRooRate:
    """Return theorem 3's second part at the least m_0 that (40) allows.

    From epsilon = e / (e - 1) on the logarithm in (40) is of a number that is not positive; (246),
    where it comes from, then holds for every m_0, so it is left out.

    Args:
        setting: n, k and epsilon.
        least_probability: gamma, in (0, 1/k].

    Raises:
        ParameterError: for a gamma out of range.
    """
    _checks.instance("setting", setting, RooSetting)
    n, k, e = setting.records, setting.letters, setting.epsilon
    gamma = least_of(least_probability, k)
    gain = math.expm1(e)
    inside = math.e / e - math.e + 1
    terms = [2 / gain] + ([1 + math.log(inside) / e] if inside > 0 else [])
    m = math.ceil(max(terms))
    # (41), divided by (e^epsilon - 1)^2.
    ratio = (k - 1) / gain / gain
    size = (ratio + math.hypot(ratio, 2 * math.sqrt(k) / gain)) / 2
    scale = setting.obscuring * (k - 1)
    log_leading = -2 * n * gamma**2 + 4 * gamma * m
    return DsRooRate(
        minimum=m,
        value=scale * math.exp(-2 * n * (gamma - m / n) ** 2),
        leading=scale * math.exp(log_leading) if log_leading < 700 else math.inf,
        applies=n >= max(m / gamma, size, 2 * k),
    )


def records_needed(method: str, accuracy: float, letters: int, epsilon: float) -> int:
    """Return the least n for which a method's bound is at most alpha.

    "laplace": 2 k / (alpha epsilon), (5). "subrr": (k - 1)(1 - alpha) / (alpha epsilon), (6).
    "roo": (k (1 - alpha) - 1) / (alpha (e^epsilon - 1)), (9). Rounded up, at least 1.

    Args:
        method: one of the above.
        accuracy: alpha, in (0, 1).
        letters: k, at least 2.
        epsilon: above 0, in nats.

    Raises:
        ParameterError: for an argument out of range.
    """
    _checks.choice("method", method, METHODS)
    alpha = _checks.real("accuracy", accuracy, 0.0, 1.0, open_lower=True, open_upper=True)
    one = RooSetting(1, letters, epsilon)
    k, e = one.letters, one.epsilon
    above, below = {
        "laplace": (2 * k, alpha * e),
        "subrr": ((k - 1) * (1 - alpha), alpha * e),
        "roo": (k * (1 - alpha) - 1, alpha * math.expm1(e)),
    }[method]
    if above > _MOST_RECORDS * below:
        raise ParameterError(
            f"accuracy is {digits(alpha)} and epsilon {digits(e)}; they ask for more "
            "than 1e15 records."
        )
    return max(1, math.ceil(above / below)) if above > 0 else 1


def ds_roo_records(
    accuracy: float,
    letters: int,
    epsilon: float,
    least_probability: float,
    rule: str = "exact",
) -> int:
    """Return an n with `ds_roo_bound` at most alpha, and above alpha at n - 1.

    Found by bisection below the n that ROO needs. The bound need not fall at every step of n, so a
    smaller n may satisfy it as well.

    Args:
        accuracy: alpha, in (0, 1).
        letters: k, at least 2.
        epsilon: above 0, in nats.
        least_probability: gamma, in (0, 1/k].
        rule: see `rule_weights`.

    Raises:
        ParameterError: for an argument out of range.
    """
    high = records_needed("roo", accuracy, letters, epsilon)
    least_of(least_probability, letters)

    def enough(n: int) -> bool:
        sampler = min_count(n, letters, epsilon, rule)
        # The weights are rounded up, by less than one part in 2^40 of a bound above alpha.
        return ds_roo_bound(sampler, least_probability).value <= accuracy * (1 + 2.0**-40)

    while not enough(high):
        high += 1
    return _crossing(enough, 0, high)


def least_of(least_probability: float, letters: int) -> float:
    """Return gamma, checked: in (0, 1/k], up to rounding of the caller's 1/k.

    Raises:
        ParameterError: for another number.
    """
    gamma = _checks.real("least_probability", least_probability, 0.0, open_lower=True)
    if gamma > (1 + 1e-12) / letters:
        raise ParameterError(
            f"least_probability is {digits(gamma)}; it must be a number in (0, 1/{letters}]."
        )
    return gamma
