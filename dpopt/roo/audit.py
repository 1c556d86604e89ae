"""The exact privacy cost of a rule in the smallest count, and two data sets that attain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dpopt import verify
from dpopt._errors import DpoptError
from dpopt._types import brief
from dpopt.roo.setting import RooSetting

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
    """Yield data sets with smallest count m whose first category has the move's count.

    Up to two categories have counts of their own, others share one, the last has what remains.
    """
    n, k, (m, first, *_) = setting.records, setting.categories, move
    special = min(max(k - 2, 0), 2)
    fillers = k - 2 - special
    for values in product(range(m, m + 3), repeat=special):
        for base in range(m, m + 2):
            remaining = n - first - sum(values) - base * fillers
            runs = [(first, 1), *((value, 1) for value in values)]
            runs += [(base, fillers)] if fillers else []
            runs.append((remaining, 1))
            if min(count for count, _ in runs) == m:
                yield tuple(runs)
