"""Recursions for q_m, the obscuring probability at the smallest count m.

Each solves a program of `dpopt.roo.minimum.RevealOrObscure` in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import advance, expect, track
from dpopt.roo.setting import RooSetting
from dpopt.table.table import BITS

RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
"""The rules that `rule_weights` and `RevealOrObscure` take."""

# Largest number of q_m that are not 0.
_LONGEST = 1_000_000
# What progress calls the recursion.
_STAGE = "rule of the smallest count"

Next = Callable[[int, int], int]
"""Maps m and q_{m-1} over 2^62 to a lower bound of q_m, rounded up; it may be negative."""


def rule_weights(setting: RooSetting, rule: str) -> tuple[int, ...]:
    """Return q_0, q_1, ... of a rule as integers over 2^62; later ones are 0 ("roo": equal to q_0).

    The recursions run in integers, with a rational r <= e^epsilon instead of e^epsilon, and round
    up in every step. The rules are those of `RevealOrObscure`; `journal_is_private` says when
    "journal" is private.

    Args:
        setting: n, k and epsilon.
        rule: one of the above; rounding up is the private direction.

    Raises:
        ParameterError: for another rule, or if more than 1,000,000 of the q_m are not 0.
    """
    _checks.instance("setting", setting, RooSetting)
    _checks.choice("rule", rule, RULES)
    first = 1 / (1 + Fraction(setting.records, setting.categories) * (setting.ratio - 1))
    if rule == "roo":
        return (round_up(first),)
    if rule == "exact" and setting.categories == 2:
        return _exact_two(setting)
    first_term, last_term, last = _first_term(setting), _last_term(setting), setting.largest_minimum

    def journal(m: int, before: int) -> int:
        return max(first_term(m, before), last_term(m, before))

    def repaired(m: int, before: int) -> int:
        """Require (68) at the last m too, where lemma 2 does not imply it."""
        last_alone = m == last and setting.records % setting.categories > 0
        return max(journal(m, before), _least_alone(setting, m) if last_alone else 0)

    following = {"conference": first_term, "journal": journal, "journal-repaired": repaired}
    return _run(setting, following.get(rule) or _exact(setting), first)


def journal_is_private(setting: RooSetting) -> bool:
    """Return whether the journal's recursion is epsilon-DP: theorem 2 of the paper, repaired.

    Let e = e^epsilon, M = floor(n / k) and t_M = (1 - (e - 1) M) / (1 + (e - 1) (n / k - M)). The
    recursion is epsilon-DP if and only if k divides n, or n < k, or e >= 1 + 1 / M, or q_M >= t_M.
    Raising q_M to t_M where k does not divide n ("journal-repaired") makes it always private. The
    proof is on the page docs/theorems/journal.md.

    Args:
        setting: n, k and epsilon; e is its `ratio`.

    Raises:
        ParameterError: if more than 1,000,000 of the q_m are not 0.
    """
    _checks.instance("setting", setting, RooSetting)
    last = setting.largest_minimum
    if setting.records % setting.categories == 0 or last == 0:
        return True
    needed = _least_alone(setting, last)
    if needed == 0:
        return True
    weights = rule_weights(setting, "journal")
    return (weights[last] if last < len(weights) else 0) >= needed


def first_free(setting: RooSetting) -> int:
    """Return the least m with m (r - 1) >= 1: (c + 1) / c <= r for all counts c >= m."""
    return math.ceil(1 / (setting.ratio - 1)) if setting.ratio > 1 else setting.records + 1


def _foresee(setting: RooSetting, done: int = 1) -> None:
    """Refuse a recursion that is too long, and announce a long one, before it starts.

    Every rule has q_m > 0 where (m + 1) / m > r, which bounds the number of steps from below.
    """
    steps = max(min(first_free(setting), setting.largest_minimum) + 1, done)
    if steps > _LONGEST:
        raise ParameterError(
            f"epsilon is {digits(setting.epsilon)} for n = {setting.records} and k = "
            f"{setting.categories}; more than {_LONGEST:,} of the q_m are not 0. Use the rule "
            "'roo', or a larger epsilon."
        )
    # Steps per second, including the audit that follows, for the progress estimate.
    expect(_STAGE, steps, 1e5)


def _run(setting: RooSetting, following: Next, first: Fraction) -> tuple[int, ...]:
    """Run a recursion from q_0 until q_m is 0 for good."""
    weight, free = round_up(first), first_free(setting)
    weights = [weight]
    _foresee(setting, 1)
    for m in track(range(1, setting.largest_minimum + 1), _STAGE):
        weight = max(0, following(m, weight))
        if weight == 0 and m >= free:
            advance(_STAGE, m, m)
            break
        weights.append(weight)
        if len(weights) > _LONGEST:
            _foresee(setting, len(weights))
    return trimmed(weights)


def _first_term(setting: RooSetting) -> Next:
    """Return the map from m, q_{m-1} to (u_m q_{m-1} - w_m) / v_m if m < n / k, else to 0.

    Times k n, u_m = n - (m + 1) k, v_m = r (n - m k) and w_m = k (m (r - 1) - 1).
    """
    n, k, over, under = _sizes(setting)
    gain = over - under

    def following(m: int, before: int) -> int:
        free = n - m * k
        if free <= 0:
            return 0
        w = k * (m * gain - under) << BITS
        return -((w - (free - k) * under * before) // (over * free))

    return following


def _last_term(setting: RooSetting) -> Next:
    """Return the map from m, q_{m-1} to (v' q_{m-1} + w') / u', for a category with all n records.

    Times -k n, u' = n k + k - n, v' = r n (k - 1) and w' = k - n k (r - 1).
    """
    n, k, over, under = _sizes(setting)
    u, v = (n * k + k - n) * under, over * n * (k - 1)
    w = (k * under - n * k * (over - under)) << BITS
    return lambda _, before: -((-v * before - w) // u)


def _least_alone(setting: RooSetting, m: int) -> int:
    """Return the q_m that rows m -> m need: t / (1 + t), t = (k / n) (1 / (r - 1) - m), or 0."""
    n, k, over, under = _sizes(setting)
    gain = over - under
    share = k * (under - m * gain)
    return -((-share << BITS) // (n * gain + share)) if share > 0 else 0


def _exact(setting: RooSetting) -> Next:
    n, k, over, under = _sizes(setting)
    gain, least_first = over - under, _first_term(setting)

    def following(m: int, before: int) -> int:
        bound = least_first(m, before)
        # The rows m -> m, as in `_least_alone`, inlined for speed: they need 0 for most m.
        share = k * (under - m * gain)
        if share > 0 and n > k * m:
            bound = max(bound, -((-share << BITS) // (n * gain + share)))
        # A category with the largest count n - (k - 1) m keeps it while the smallest count rises.
        top = k * (n - (k - 1) * m)
        if top > n:
            spread = top - n
            bound = max(
                bound, -(((gain * top << BITS) - over * before * spread) // (under * spread))
            )
        return bound

    return following


def _exact_two(setting: RooSetting) -> tuple[int, ...]:
    """Return the exact rule for two categories, computed from the largest m down.

    The rarer category has the probability p_m = max(m / n, p_{m+1} / e^epsilon), and
    q_m = (p_m - m / n) / (1/2 - m / n).
    """
    n, _, over, under = _sizes(setting)
    last = setting.largest_minimum
    _foresee(setting)
    start = min(first_free(setting), last)
    weights = []
    if start == last and 2 * last < n:
        # p_M = max(1 / (1 + r), M / n).
        lifted = (n * under - last * (over + under)) << BITS + 1
        weights.append(max(0, -(-lifted // ((over + under) * (n - 2 * last)))))
    else:
        weights.append(0)
    # p_{m+1} times 2 n 2^62, from the rounded q_{m+1}, which q_m has to be private against.
    p = (2 * start << BITS) + weights[0] * (n - 2 * start)
    for m in track(range(start - 1, -1, -1), _STAGE, start):
        floor, free = 2 * m << BITS, n - 2 * m
        weight = max(0, -((floor * over - p * under) // (over * free)))
        weights.append(weight)
        p = floor + weight * free
    weights.reverse()
    return trimmed(weights)


def _sizes(setting: RooSetting) -> tuple[int, int, int, int]:
    """Return n, k, and the numerator and denominator of r."""
    return setting.records, setting.categories, setting.ratio.numerator, setting.ratio.denominator


def trimmed(weights: list[int]) -> tuple[int, ...]:
    """Return weights without trailing zeros, but with at least one entry."""
    end = len(weights)
    while end > 1 and weights[end - 1] == 0:
        end -= 1
    return tuple(weights[:end])


def round_up(value: Fraction) -> int:
    """Return ceil(2^62 value)."""
    return -((-value.numerator << BITS) // value.denominator)
