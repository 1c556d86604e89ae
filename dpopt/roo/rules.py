"""The recursions for q_m, the obscuring probability at the smallest count m: closed forms.

Each solves a program of `dpopt.roo.minimum.RevealOrObscure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import advance, expect, track
from dpopt.roo.setting import BITS, RooSetting

RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
"""The rules that `rule_weights` and `RevealOrObscure` take."""

_LONGEST = 1_000_000
_STAGE = "rule of the smallest count"
# Steps a second, with the audit that follows.
_SPEED = 1e5

Next = Callable[[int, int], int]
"""From m and q_{m-1} over 2^62 to what q_m is at least, rounded up; it may be below 0."""


def rule_weights(setting: RooSetting, rule: str) -> tuple[int, ...]:
    """Return q_0, q_1, ... over 2^62, trimmed: all that follow are 0 (for "roo", all are q_0).

    In integers, with the rational r <= e^epsilon in the place of e^epsilon, and rounded up as they
    go.

    - "exact": the least q_m of any rule in the smallest count that is epsilon-DP; it is least for
      every m at once.
    - "roo": q_0 for every m (algorithm 1 of both papers).
    - "journal": algorithm 2 of the journal paper; not always private at the last m, see
      `journal_is_private`.
    - "journal-repaired": the same with q_M raised to what its own linear program asks for; always
      private, see there.
    - "conference": the recursion of the conference paper; not private in general.

    Args:
        setting: n, k and epsilon.
        rule: one of the above; all are rounded up, the private direction.

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
        """Ask for (68) at the last m too, which lemma 2 does not imply there."""
        alone = m == last and setting.records % setting.categories > 0
        return max(journal(m, before), _least_alone(setting, m) if alone else 0)

    following = {"conference": first_term, "journal": journal, "journal-repaired": repaired}
    return _run(setting, following.get(rule) or _exact(setting), first)


def journal_is_private(setting: RooSetting) -> bool:
    """Return whether the journal's recursion is epsilon-DP: theorem 2 of the paper, repaired.

    With e for e^epsilon, M = floor(n / k) and t_M = (1 - (e - 1) M) / (1 + (e - 1) (n / k - M)), it
    is epsilon-DP if and only if k divides n, or n < k, or e >= 1 + 1 / M, or q_M >= t_M. With q_M
    raised to t_M where k does not divide n ("journal-repaired") it is always so. The proof is on
    the page docs/theorems/journal.md.

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
    """Return the least m with m (r - 1) >= 1: from there, counts c and c + 1 are within r."""
    return math.ceil(1 / (setting.ratio - 1)) if setting.ratio > 1 else setting.records + 1


def _foresee(setting: RooSetting) -> None:
    """Refuse a recursion that is too long, and announce one that is long.

    Every rule obscures where counts m and m + 1 are not within r: known before any work.
    """
    steps = min(first_free(setting), setting.largest_minimum) + 1
    if steps > _LONGEST:
        raise _too_long(setting)
    expect(_STAGE, steps, _SPEED)


def _too_long(setting: RooSetting) -> ParameterError:
    return ParameterError(
        f"epsilon is {digits(setting.epsilon)} for n = {setting.records} and k = "
        f"{setting.categories}; more "
        f"than {_LONGEST:,} of the q_m are not 0. Use the rule 'roo', or a larger epsilon."
    )


def _run(setting: RooSetting, following: Next, first: Fraction) -> tuple[int, ...]:
    """Follow a recursion until it stays at 0."""
    weight, free = round_up(first), first_free(setting)
    weights = [weight]
    _foresee(setting)
    for m in track(range(1, setting.largest_minimum + 1), _STAGE):
        weight = following(m, weight)
        if weight <= 0:
            weight = 0
            if m >= free:
                advance(_STAGE, m, m)
                break
        weights.append(weight)
        if len(weights) > _LONGEST:
            raise _too_long(setting)
    return trimmed(weights)


def _first_term(setting: RooSetting) -> Next:
    """Return what takes m, q_{m-1} to (u_m q_{m-1} - w_m) / v_m where m < n / k, else to 0.

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
    """Return what takes m, q_{m-1} to (v' q_{m-1} + w') / u', of a category with all n records.

    Times -k n, u' = n k + k - n, v' = r n (k - 1) and w' = k - n k (r - 1).
    """
    n, k, over, under = _sizes(setting)
    u, v = (n * k + k - n) * under, over * n * (k - 1)
    w = (k * under - n * k * (over - under)) << BITS
    return lambda _, before: -((-v * before - w) // u)


def _least_alone(setting: RooSetting, m: int) -> int:
    """Return t / (1 + t) with t = (k / n) (1 / (r - 1) - m), rounded up, or 0: rows m to m."""
    n, k, over, under = _sizes(setting)
    gain = over - under
    share = k * (under - m * gain)
    return -((-share << BITS) // (n * gain + share)) if share > 0 else 0


def _exact(setting: RooSetting) -> Next:
    n, k, over, under = _sizes(setting)
    gain, least_first = over - under, _first_term(setting)

    def following(m: int, before: int) -> int:
        found = least_first(m, before)
        # Rows m to m, _least_alone, written out: it is 0 for most m.
        share = k * (under - m * gain)
        if share > 0 and n > k * m:
            found = max(found, -((-share << BITS) // (n * gain + share)))
        # A category that has all it can, n - (k - 1) m, keeps it while the smallest count rises.
        top = k * setting.largest_count(m)
        if top > n:
            spread = top - n
            found = max(
                found, -(((gain * top << BITS) - over * before * spread) // (under * spread))
            )
        return found

    return following


def _exact_two(setting: RooSetting) -> tuple[int, ...]:
    """Return the exact rule of two categories, from the largest m down.

    p_m, the probability of the rarer category, is max(m / n, p_{m+1} / e^epsilon), and
    q_m = (p_m - m / n) / (1/2 - m / n).
    """
    n, _, over, under = _sizes(setting)
    last = setting.largest_minimum
    _foresee(setting)
    start = min(first_free(setting), last)
    weights = []
    if start == last and 2 * last < n:
        # p_M is 1 / (1 + r), or M / n if that is more.
        lifted = (n * under - last * (over + under)) << BITS + 1
        weights.append(max(0, -(-lifted // ((over + under) * (n - 2 * last)))))
    else:
        weights.append(0)
    # p_{m+1} times 2 n 2^62, with what was rounded up, which the next one has to follow.
    p = (2 * start << BITS) + weights[0] * (n - 2 * start)
    for m in track(range(start - 1, -1, -1), _STAGE, start):
        floor, rest = 2 * m << BITS, n - 2 * m
        weight = max(0, -((floor * over - p * under) // (over * rest)))
        weights.append(weight)
        p = floor + weight * rest
    weights.reverse()
    return trimmed(weights)


def _sizes(setting: RooSetting) -> tuple[int, int, int, int]:
    """Return n, k, and numerator and denominator of r."""
    return setting.records, setting.categories, setting.ratio.numerator, setting.ratio.denominator


def trimmed(weights: list[int]) -> tuple[int, ...]:
    """Return weights without the zeros at their end; the first one stays."""
    end = len(weights)
    while end > 1 and weights[end - 1] == 0:
        end -= 1
    return tuple(weights[:end])


def round_up(value: Fraction) -> int:
    """Return the least integer over 2^62 that is not below a value."""
    return -((-value.numerator << BITS) // value.denominator)
