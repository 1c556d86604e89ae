"""The recursions for q_m, the obscuring probability at the smallest count m: closed forms.

Each solves a program of `dpopt.roo.minimum.MinCount`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import advance, expect, track
from dpopt.roo.setting import BITS, UNIT, RooSetting

RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
"""The rules that `rule_weights` and `min_count` take."""

_LONGEST = 200_000
# Steps a second, with the audit that follows; two letters need no comparison of three terms.
_SPEED, _SPEED_OF_TWO = 3e3, 2e4

Next = Callable[[int, Fraction], Fraction]


def rule_weights(setting: RooSetting, rule: str) -> tuple[int, ...]:
    """Return q_0, q_1, ... over 2^62, trimmed: all that follow are 0 (for "roo", all are q_0).

    In rationals with r <= e^epsilon in the
    place of e^epsilon, and rounded up to integers as they go.

    - "exact": the least q_m of any rule in the smallest count that is epsilon-DP; it is least for
      every m at once.
    - "roo": q_0 for every m (algorithm 1 of both papers).
    - "journal": algorithm 2 of the journal paper; not always private at the last m.
    - "journal-repaired": the same with q_M raised to what its own linear program asks for.
    - "conference": the recursion of the conference paper; not private in general.

    Args:
        setting: n, k and epsilon.
        rule: one of the above; all are rounded up, the private direction.

    Raises:
        ParameterError: for another rule, or if more than 200,000 of the q_m are not 0.
    """
    _checks.instance("setting", setting, RooSetting)
    _checks.choice("rule", rule, RULES)
    first = 1 / (1 + Fraction(setting.records, setting.letters) * (setting.ratio - 1))
    if rule == "roo":
        return (round_up(first),)
    if rule == "exact" and setting.letters == 2:
        return _exact_two(setting)
    steps: dict[str, Callable[[RooSetting], Next]] = {
        "exact": _exact,
        "conference": _conference,
        "journal": _journal,
        "journal-repaired": _repaired,
    }
    return _run(setting, steps[rule](setting), first)


def first_free(setting: RooSetting) -> int:
    """Return the least m with m (r - 1) >= 1: from there, counts c and c + 1 are within r."""
    return math.ceil(1 / (setting.ratio - 1)) if setting.ratio > 1 else setting.records + 1


def _foresee(setting: RooSetting, speed: float) -> None:
    """Refuse a recursion that is too long, and announce one that is long.

    Every rule obscures where counts m and m + 1 are not within r: known before any work.
    """
    steps = min(first_free(setting), setting.largest_minimum) + 1
    if steps > _LONGEST:
        raise _too_long(setting)
    expect("rule of the smallest count", steps, speed)


def _too_long(setting: RooSetting) -> ParameterError:
    return ParameterError(
        f"epsilon is {digits(setting.epsilon)} for n = {setting.records} and k = "
        f"{setting.letters}; more "
        f"than {_LONGEST:,} of the q_m are not 0. Use the rule 'roo', or a larger epsilon."
    )


def _run(setting: RooSetting, following: Next, first: Fraction) -> tuple[int, ...]:
    """Follow a recursion until it stays at 0."""
    weights, free = [round_up(first)], first_free(setting)
    _foresee(setting, _SPEED)
    for m in track(range(1, setting.largest_minimum + 1), "rule of the smallest count"):
        weight = round_up(max(Fraction(0), following(m, Fraction(weights[-1], UNIT))))
        if weight == 0 and m >= free:
            advance("rule of the smallest count", m, m)
            break
        weights.append(weight)
        if len(weights) > _LONGEST:
            raise _too_long(setting)
    return trimmed(weights)


def _coefficients(setting: RooSetting, m: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return (u_m, v_m, w_m), all times k n."""
    n, k, r = setting.records, setting.letters, setting.ratio
    return Fraction(n - (m + 1) * k), r * (n - m * k), k * (m * r - m - 1)


def _first_term(setting: RooSetting, m: int, before: Fraction) -> Fraction:
    """Return (u_m q_{m-1} - w_m) / v_m where m < n / k, else 0."""
    u, v, w = _coefficients(setting, m)
    return (u * before - w) / v if v > 0 else Fraction(0)


def _conference(setting: RooSetting) -> Next:
    return lambda m, before: _first_term(setting, m, before)


def _journal(setting: RooSetting) -> Next:
    n, k, r = setting.records, setting.letters, setting.ratio
    u, v = Fraction(n - k - n * k, n * k), r * Fraction(1 - k, k)
    w = r - 1 - Fraction(1, n)
    return lambda m, before: max(_first_term(setting, m, before), (v * before + w) / u)


def _least_alone(setting: RooSetting, m: int) -> Fraction:
    """Return r / (1 + r) with r = (k / n) (1 / (e^epsilon - 1) - m), or 0: rows from m to m."""
    if setting.ratio == 1:
        return Fraction(1)
    share = Fraction(setting.letters, setting.records) * (1 / (setting.ratio - 1) - m)
    return share / (1 + share) if share > 0 else Fraction(0)


def _repaired(setting: RooSetting) -> Next:
    """Ask for (68) at the last m too, which lemma 2 does not imply there."""
    published, last = _journal(setting), setting.largest_minimum
    if setting.records % setting.letters == 0:
        return published
    return lambda m, before: max(
        published(m, before), _least_alone(setting, m) if m == last else Fraction(0)
    )


def _exact(setting: RooSetting) -> Next:
    n, k, r = setting.records, setting.letters, setting.ratio

    def following(m: int, before: Fraction) -> Fraction:
        terms = [_first_term(setting, m, before)]
        if n > k * m:
            terms.append(_least_alone(setting, m))
        top = k * setting.largest_count(m)
        if top > n:
            terms.append(r * before - (r - 1) * Fraction(top, top - n))
        return max(terms)

    return following


def _exact_two(setting: RooSetting) -> tuple[int, ...]:
    """Return the exact rule of two letters, from the largest m down.

    p_m, the probability of the rarer letter, is max(m / n, p_{m+1} / e^epsilon), and
    q_m = (p_m - m / n) / (1/2 - m / n).
    """
    n, r, last = setting.records, setting.ratio, setting.largest_minimum
    _foresee(setting, _SPEED_OF_TWO)
    start = min(first_free(setting), last)
    p = Fraction(start, n)
    weights = []
    if start == last and 2 * last < n:
        p = max(p, 1 / (1 + r))
    for m in range(start, -1, -1):
        if m < start:
            p = max(Fraction(m, n), p / r)
        if 2 * m == n:
            weights.append(0)
            continue
        half = Fraction(1, 2) - Fraction(m, n)
        weights.append(round_up((p - Fraction(m, n)) / half))
        # What is rounded up here, the next one has to follow.
        p = Fraction(m, n) + Fraction(weights[-1], UNIT) * half
    weights.reverse()
    return trimmed(weights)


def trimmed(weights: list[int]) -> tuple[int, ...]:
    """Return weights without the zeros at their end; the first one stays."""
    end = len(weights)
    while end > 1 and weights[end - 1] == 0:
        end -= 1
    return tuple(weights[:end])


def round_up(value: Fraction) -> int:
    """Return the least integer over 2^62 that is not below a value."""
    return -((-value.numerator << BITS) // value.denominator)
