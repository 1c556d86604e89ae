"""Rules in the smallest count m: recursions for their obscuring probability q_m, and their audit.

Each recursion solves a program of `dpopt.roo.minimum.RevealOrObscure` in closed form: q_m is the
least number that the rows of `dpopt.verify.moves` with q_m, and with the q before it, allow. It
runs from the largest m down for two categories, else from 0 up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import advance, expect, track
from dpopt._types import brief
from dpopt.roo.setting import RooSetting
from dpopt.table.table import BITS

RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
"""The rules that `rule_weights` and `RevealOrObscure` take."""

# Largest number of q_m that are not 0.
_LONGEST = 1_000_000
# What progress calls the recursion.
_STAGE = "rule of the smallest count"


def rule_weights(setting: RooSetting, rule: str) -> tuple[int, ...]:
    """Return q_0, q_1, ... of a rule as integers over 2^62; later ones are 0 ("roo": equal to q_0).

    The recursions run in integers, with a rational r <= e^epsilon instead of e^epsilon, and round
    up in every step. The rules are those of `RevealOrObscure`.

    Args:
        setting: n, k and epsilon.
        rule: one of the above; rounding up is the private direction.

    Raises:
        ParameterError: for another rule, or if more than 1,000,000 of the q_m are not 0.
    """
    _checks.instance("setting", setting, RooSetting)
    _checks.choice("rule", rule, RULES)
    n, k, ratio = setting.records, setting.categories, setting.ratio
    if rule == "roo":
        return (round_up(1 / (1 + Fraction(n, k) * (ratio - 1))),)
    down, weights = rule == "exact" and k == 2, dict[int, int]()
    free, last = first_free(setting), setting.largest_minimum
    _foresee(setting, 1)
    # Beyond ``free`` the empirical distribution satisfies all rows.
    start, end, step = (min(free, last), -1, -1) if down else (0, last + 1, 1)
    for m in track(range(start, end, step), _STAGE, abs(end - start)):
        rows = verify.moves(n, k, m, rule)
        if down:
            # The rows between m - 1 and m are those of m - 1.
            rows = [row for row in rows if row[1] == row[3]] + verify.moves(n, k, m + 1, rule)
        weights[m] = max((_least(n, k, ratio, row, m, weights) for row in rows), default=0)
        if weights[m] == 0 and m >= free and not down:
            advance(_STAGE, m, m)
            break
        if len(weights) > _LONGEST:
            _foresee(setting, len(weights))
    return trimmed([weights[m] for m in sorted(weights)])


def _least(
    n: int, k: int, ratio: Fraction, row: verify.Name, m: int, known: Mapping[int, int]
) -> int:
    """Return the least q_m over 2^62, rounded up, with f(j, d) <= r f(i, c), a row of `verify`.

    0 if the row bounds q_m from above, or only others; ``known`` are the q_m that are decided.
    """
    # Times k n 2^62: q_j (n - k d) + k d <= r (q_i (n - k c) + k c).
    _, i, c, j, d = row
    if (i != m and (n >= k * d or i not in known)) or (j != m and (n <= k * c or j not in known)):
        return 0
    over, under = ratio.as_integer_ratio()
    before, after = over * (n - k * c), under * (n - k * d)
    needed = k * (under * d - over * c) << BITS
    if i != m:
        slope, needed = -after, needed - before * known[i]
    elif j != m:
        slope, needed = before, needed + after * known[j]
    else:
        slope = before - after
    return max(0, -(-needed // slope)) if slope > 0 else 0


def first_free(setting: RooSetting) -> int:
    """Return the least m with m (r - 1) >= 1: (c + 1) / c <= r for all counts c >= m."""
    return math.ceil(1 / (setting.ratio - 1)) if setting.ratio > 1 else setting.records + 1


def _foresee(setting: RooSetting, done: int) -> None:
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


def trimmed(weights: list[int]) -> tuple[int, ...]:
    """Return weights without trailing zeros, but with at least one entry."""
    last = max((m for m, weight in enumerate(weights) if weight), default=0)
    return tuple(weights[: last + 1])


def round_up(value: Fraction) -> int:
    """Return ceil(2^62 value)."""
    return -((-value.numerator << BITS) // value.denominator)


# --- the exact privacy cost of a rule --------------------------------------------------------

Move = tuple[int, int, int, int]
"""(m, c, m~, c~): the smallest count and a category's count, before and after a record changes."""
Runs = tuple[tuple[int, int], ...]
"""(count, number of consecutive categories that have it)."""


@dataclass(frozen=True)
class Witness:
    """Two neighbouring data sets whose first category has the largest change of probability.

    Attributes:
        runs: counts of the categories, as (count, number of consecutive categories).
        neighbour_runs: the same after one record changed.
        minima: the smallest count of each.
    """

    runs: Runs
    neighbour_runs: Runs
    minima: tuple[int, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts of all categories."""
        return tuple(count for count, categories in self.runs for _ in range(categories))

    @property
    def neighbour(self) -> tuple[int, ...]:
        """Counts of all categories in the neighbour."""
        return tuple(count for count, categories in self.neighbour_runs for _ in range(categories))


@dataclass(frozen=True)
class RooAudit:
    """The exact privacy cost of a rule.

    Attributes:
        worst_ratio: largest K(y | x') / K(y | x) over all neighbours and categories; None if
            unbounded.
        excess_factor: worst_ratio over e^epsilon, as a float; above 1 if the rule is not private.
        rows: number of inequalities checked; they imply all others.
        witness: neighbours that attain the worst ratio.
    """

    worst_ratio: Fraction | None
    excess_factor: float
    rows: int
    witness: Witness

    def __repr__(self) -> str:
        return brief(self)


def audited(setting: RooSetting, weights: Sequence[int], *, constant: bool) -> RooAudit:
    """Return the largest probability ratio of a rule over all neighbours, exactly."""
    numerator, denominator, worst, rows = 0, 1, (0, 0, 0, 0), 0
    n, k = setting.records, setting.categories
    for (_, *move), before, after in verify.chances_of_moves(n, k, list(weights), constant):
        rows += 1
        if after * denominator > numerator * before:
            numerator, denominator, worst = after, before, (move[0], move[1], move[2], move[3])
    ratio = Fraction(numerator, denominator) if denominator else None
    return RooAudit(
        worst_ratio=ratio,
        excess_factor=float("inf") if ratio is None else float(ratio / setting.ratio),
        rows=rows,
        witness=witness_of(setting, worst),
    )


def witness_of(setting: RooSetting, move: Move) -> Witness:
    """Return neighbouring data sets that realise a move of `dpopt.verify.moves`."""
    i, c, j, d = move
    m, k = max(i, j), setting.categories
    # Of one data set, whose smallest count is m: the first category's count, m of all others but
    # the last, and what remains. Of the other: the first category's count.
    count, new = (c, d) if i == m else (d, c)
    last = setting.records - count - (k - 2) * m
    runs = [(count, 1), (m, k - 2), (last, 1)]
    if i == j:
        other = [(new, 1), (m, k - 2), (last - 1, 1)]
    elif new < count:
        other = [(new, 1), (m, k - 2), (last + 1, 1)]
    elif k == 2:
        other = [(new, 1), (last - 1, 1)]
    elif new > count:
        # One of the others falls to m - 1.
        runs = [(count, 1), (m, 1), (m, k - 3), (last, 1)]
        other = [(new, 1), (m - 1, 1), (m, k - 3), (last, 1)]
    else:
        # Then all others have m, and one of them gives a record to another.
        runs = [(count, 1), (m, 1), (m, 1), (m, k - 3)]
        other = [(new, 1), (m - 1, 1), (m + 1, 1), (m, k - 3)]
    # Runs of no categories are left out.
    before, after = (tuple(run for run in side if run[1]) for side in (runs, other))
    return Witness(before, after, (i, j)) if i == m else Witness(after, before, (i, j))
