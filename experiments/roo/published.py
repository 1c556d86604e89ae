"""Bounds of the Reveal-or-Obscure papers, and the number of records that each one requires.

Table I of the journal paper, cited by its equation numbers, theorem 3 and its corollary.

Throughout, the least probability gamma lies in (0, 1/k], with P(x) >= gamma for all categories x;
the accuracy alpha in (0, 1), k is at least 2, and epsilon, in nats, above 0. Samplers of DS-ROO are
rules in the smallest count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import ParameterError
from dpopt.roo import RooSetting, rule_weights
from dpopt.roo.setting import UNIT
from dpopt.shape import Design
from experiments.roo.accuracy import lower_bound

_MOST_RECORDS = 10**15


def laplace_bound(setting: RooSetting) -> float:
    """Return 2 k / (n epsilon): noisy empirical pmf, projected (Raskhodnikova et al., table I)."""
    return 2 * setting.categories / (setting.records * setting.epsilon)


def subrr_bound(setting: RooSetting) -> float:
    """Return (k - 1) / (n epsilon + k - 1): subsampled randomised response (Cheu, Nayak)."""
    k = setting.categories
    return (k - 1) / (setting.records * setting.epsilon + k - 1)


def roo_bound(setting: RooSetting) -> float:
    """Return q_0 (1 - 1/k): ROO, (8) and (49). Attained where P is concentrated on one category."""
    return least_obscuring(setting) * (1 - 1 / setting.categories)


BOUNDS = {"laplace": laplace_bound, "subrr": subrr_bound, "roo": roo_bound}
"""What was known before, and ROO, by name."""


def least_obscuring(setting: RooSetting) -> float:
    """Return q_0 = 1 / (1 + (n / k) (e^epsilon - 1)): the least q of ROO (theorem 1)."""
    return 1.0 / (1.0 + setting.records / setting.categories * math.expm1(setting.epsilon))


def journal_is_private(setting: RooSetting) -> bool:
    """Return whether the journal's recursion is epsilon-DP: theorem 2 of the paper, repaired.

    Let e = e^epsilon, M = floor(n / k) and t_M = (1 - (e - 1) M) / (1 + (e - 1) (n / k - M)). The
    recursion is epsilon-DP if and only if k divides n, or n < k, or e >= 1 + 1 / M, or q_M >= t_M.
    Raising q_M to t_M where k does not divide n ("journal-repaired") makes it always private. The
    proof is on the page docs/theorems/journal.md. e is the setting's `ratio`.
    """
    n, k, last = setting.records, setting.categories, setting.largest_minimum
    gain = setting.ratio - 1
    if n % k == 0 or last == 0 or gain * last >= 1:
        return True
    needed = (1 - gain * last) / (1 + gain * (Fraction(n, k) - last))
    weights = rule_weights(setting, "journal")
    return (weights[last] if last < len(weights) else 0) >= needed * UNIT


@dataclass(frozen=True)
class DsRooBound:
    """Best of the bounds of theorem 3, (46) and (50).

    Attributes:
        value: bound on the total variation distance between P and the distribution of the released
            category.
        minimum: the m_0 that attains it; None if no m_0 improves on ROO.
    """

    value: float
    minimum: int | None


def ds_roo_bound(sampler: Design, least_probability: float) -> DsRooBound:
    """Return min{q_0, min over m_0 in [1, n gamma) of q_{m_0} + q_0 delta} (1 - 1/k), (50).

    If a rule increases somewhere, replace q_{m_0} by the largest q_m with m >= m_0, and q_0 by the
    largest q_m.
    """
    setting = sampler.setting
    n, k = setting.records, setting.categories
    share = 1 - 1 / k
    q = _falling(sampler)
    best = DsRooBound(float(q[0]) * share, None)
    # Where q_{m_0} is 0, a larger m_0 only raises delta.
    last = min(math.ceil(n * least_probability) - 1, q.size - 1)
    if setting.constant or last < 1:
        return best
    m = np.arange(1, last + 1)
    tails = k * np.exp(-2 * n * (least_probability - m / n) ** 2)
    values = (q[1 : last + 1] + q[0] * tails) * share
    place = int(values.argmin())
    lowest = DsRooBound(float(values[place]), place + 1)
    return lowest if lowest.value < best.value else best


def ds_roo_binomial_bound(sampler: Design, least_probability: float) -> float:
    """Return min{q_0 (1 - 1/k), (k - 1) E[q_C]} with C ~ Binomial(n, gamma).

    Holds for every P with P(x) >= gamma, and can replace (50): q_M is the largest of the q_{c_y},
    so at most their sum, and each E[q_{c_y}] is at most E[q_C] for a q that does not increase (one
    that does is raised to the largest q_j with j >= m first).
    """
    n, k = sampler.setting.records, sampler.setting.categories
    q = _falling(sampler)
    of_roo = float(q[0]) * (1 - 1 / k)
    if sampler.setting.constant:
        return of_roo
    from scipy.stats import binom  # slow to load

    return min(of_roo, (k - 1) * float(q @ binom.pmf(np.arange(q.size), n, least_probability)))


def _falling(sampler: Design) -> npt.NDArray[np.float64]:
    """Return max over j >= m of q_j, for the m where it is not 0 and one more."""
    return np.maximum.accumulate(np.append(sampler.q, 0.0)[::-1])[::-1]


def smooth_floor_binomial_bound(sampler: Design, least_probability: float) -> float:
    """Bound the smooth floor's total variation from P: (k / n) E[w(C) - C], C ~ Binomial(n, gamma).

    Holds for every P with P(x) >= gamma. With Z the sum of the w(c_y), only categories with
    K(y) = w(c_y) / Z < c_y / n lose, at most 1 - n / Z <= (Z - n) / n in all; w(c) - c does not
    increase, and it is 0 from c* on.
    """
    from scipy.stats import binom  # slow to load

    n, k = sampler.setting.records, sampler.setting.categories
    c = np.arange(min(sampler.floor.size, n + 1))
    lifted = (sampler.floor[: c.size] - c) @ binom.pmf(c, n, least_probability)
    return min(1.0, k / n * float(lifted))


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

    For epsilon >= e / (e - 1), the argument of the logarithm in (40) is not positive. Then (246),
    from which it is derived, holds for every m_0, so the term is omitted.
    """
    n, k, e = setting.records, setting.categories, setting.epsilon
    gamma = least_probability
    gain = math.expm1(e)
    inside = math.e / e - math.e + 1
    terms = [2 / gain] + ([1 + math.log(inside) / e] if inside > 0 else [])
    m = math.ceil(max(terms))
    # (41), divided by (e^epsilon - 1)^2.
    ratio = (k - 1) / gain / gain
    size = (ratio + math.hypot(ratio, 2 * math.sqrt(k) / gain)) / 2
    scale = least_obscuring(setting) * (k - 1)
    log_leading = -2 * n * gamma**2 + 4 * gamma * m
    return DsRooRate(
        minimum=m,
        value=scale * math.exp(-2 * n * (gamma - m / n) ** 2),
        leading=scale * math.exp(log_leading) if log_leading < 700 else math.inf,
        applies=n >= max(m / gamma, size, 2 * k),
    )


def records_needed(method: str, accuracy: float, categories: int, epsilon: float) -> int:
    """Return the least n for which a method's bound is at most alpha.

    "laplace": 2 k / (alpha epsilon), (5). "subrr": (k - 1)(1 - alpha) / (alpha epsilon), (6).
    "roo": (k (1 - alpha) - 1) / (alpha (e^epsilon - 1)), (9). Rounded up, at least 1.
    """
    alpha = accuracy
    one = RooSetting(1, categories, epsilon)
    k, e = one.categories, one.epsilon
    above, below = {
        "laplace": (2 * k, alpha * e),
        "subrr": ((k - 1) * (1 - alpha), alpha * e),
        "roo": (k * (1 - alpha) - 1, alpha * math.expm1(e)),
    }[method]
    if above > _MOST_RECORDS * below:
        raise ParameterError(
            f"accuracy is {alpha:g} and epsilon {e:g}; these require more than 1e15 records."
        )
    return max(1, math.ceil(above / below)) if above > 0 else 1


def ds_roo_records(
    accuracy: float,
    categories: int,
    epsilon: float,
    least_probability: float,
    rule: Any = "exact",  # noqa: ANN401
) -> int:
    """Return an n with `ds_roo_bound` at most alpha, and above alpha at n - 1.

    Bisection below the n that ROO needs. The bound is not monotone in n, so a smaller n may satisfy
    it as well.
    """
    high = records_needed("roo", accuracy, categories, epsilon)

    def enough(n: int) -> bool:
        sampler = dpopt.design(dpopt.RevealOrObscure(n, categories, epsilon, rule))
        # Rounding the weights up adds less than a relative 2^-40 to a bound above alpha.
        return ds_roo_bound(sampler, least_probability).value <= accuracy * (1 + 2.0**-40)

    while not enough(high):
        high += 1
    return _crossing(enough, 0, high)


def lower_bound_records(accuracy: float, categories: int, epsilon: float) -> int:
    """Return an n that every epsilon-DP sampler of worst-case accuracy alpha needs at least.

    A sampler of n records gives one of n + 1 (drop a random record) with no larger worst case. So
    if n - 1 records are not enough, fewer are not either.
    """
    alpha = accuracy

    def enough(n: int) -> bool:
        return lower_bound(RooSetting(n, categories, epsilon)).value <= alpha

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise ParameterError(f"accuracy is {alpha:g}; it requires more than 1e15 records.")
    return _crossing(enough, low, high)


def _crossing(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return an n with enough(n) and not enough(n - 1), above ``low`` and up to ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
