"""Rules in the smallest count m: recursions for their obscuring probability q_m, and their audit.

Each recursion solves a program of `dpopt.roo.minimum.RevealOrObscure` in closed form: q_m is the
least number that the rows of `dpopt.verify.moves` with q_m, and with the q before it, allow. It
runs from the largest m down for two categories, else from 0 up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dpopt import _checks, verify
from dpopt._errors import DpoptError, ParameterError
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
    n, k, last = setting.records, setting.categories, setting.largest_minimum
    if rule == "roo":
        return (round_up(1 / (1 + Fraction(n, k) * (setting.ratio - 1))),)
    down, weights = rule == "exact" and k == 2, dict[int, int]()
    least, free = _Least(setting, weights), first_free(setting)
    _foresee(setting, 1)
    # Beyond ``free`` the empirical distribution satisfies all rows.
    start, end, step = (min(free, last), -1, -1) if down else (0, last + 1, 1)
    for m in track(range(start, end, step), _STAGE, abs(end - start)):
        rows = verify.moves(n, k, m, rule)
        if down:
            # The rows between m - 1 and m are those of m - 1.
            rows = [row for row in rows if row[1] == row[3]] + verify.moves(n, k, m + 1, rule)
        weights[m] = max((least(row, m) for row in rows), default=0)
        if weights[m] == 0 and m >= free and not down:
            advance(_STAGE, m, m)
            break
        if len(weights) > _LONGEST:
            _foresee(setting, len(weights))
    return trimmed([weights[m] for m in sorted(weights)])


class _Least:
    """The least q_m over 2^62 with f(j, d) <= r f(i, c), rounded up, for rows of `dpopt.verify`.

    Args:
        setting: n, k and r.
        known: the q_m over 2^62 that are decided.
    """

    def __init__(self, setting: RooSetting, known: Mapping[int, int]) -> None:
        self.n, self.k, self.known = setting.records, setting.categories, known
        self.over, self.under = setting.ratio.as_integer_ratio()

    def __call__(self, row: verify.Name, m: int) -> int:
        """Return the least q_m that a row allows; 0 if it bounds it from above, or others only."""
        # Times k n 2^62: q_j (n - k d) + k d <= r (q_i (n - k c) + k c).
        _, i, c, j, d = row
        if (i != m and (self.n >= self.k * d or i not in self.known)) or (
            j != m and (self.n <= self.k * c or j not in self.known)
        ):
            return 0
        before, after = self.over * (self.n - self.k * c), self.under * (self.n - self.k * d)
        needed = self.k * (self.under * d - self.over * c) << BITS
        if i != m:
            slope, needed = -after, needed - before * self.known[i]
        elif j != m:
            slope, needed = before, needed + after * self.known[j]
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
    """Return neighbouring data sets that realise a move, found by trying small counts."""
    minimum, _, new_minimum, new_count = move
    for runs in _data_sets(setting, move):
        counts = [count for count, _ in runs]
        # Move one record from run ``loss`` to run ``gain``, both of a single category.
        for gain, loss in product(range(len(runs)), repeat=2):
            after = list(counts)
            after[gain] += 1
            after[loss] -= 1
            single = runs[gain][1] == runs[loss][1] == 1 and gain != loss
            if single and after[0] == new_count and min(after) == new_minimum:
                changed = tuple((new, n) for new, (_, n) in zip(after, runs, strict=True))
                return Witness(runs, changed, (minimum, new_minimum))
    raise DpoptError(f"no neighbouring data sets realise {move}.")


def _data_sets(setting: RooSetting, move: Move) -> Iterator[Runs]:
    """Yield data sets with smallest count m whose first category has the move's count."""
    n, k, (m, first, *_) = setting.records, setting.categories, move
    special = min(max(k - 2, 0), 2)
    fillers = k - 2 - special
    # Up to two categories have counts of their own, others share one, the last has what remains.
    for values in product(range(m, m + 3), repeat=special):
        for base in range(m, m + 2):
            remaining = n - first - sum(values) - base * fillers
            runs = [(first, 1), *((value, 1) for value in values)]
            runs += [(base, fillers)] if fillers else []
            runs.append((remaining, 1))
            if min(count for count, _ in runs) == m:
                yield tuple(runs)
