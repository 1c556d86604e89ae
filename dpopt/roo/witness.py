"""Two neighbouring data sets in which a letter's count and the smallest count move as asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dpopt._errors import DpoptError
from dpopt._types import Json
from dpopt.roo.setting import RooSetting
from dpopt.roo.transitions import Move

_MOST_LISTED = 1000
Runs = tuple[tuple[int, int], ...]
"""(count, number of consecutive letters that have it)."""


@dataclass(frozen=True)
class Witness:
    """Two neighbouring data sets and the letter whose probability changes most: the first one.

    Attributes:
        runs: counts of the letters, as (count, number of consecutive letters).
        neighbour_runs: the same after one record changed.
        minima: the smallest count of each.
    """

    runs: Runs
    neighbour_runs: Runs
    minima: tuple[int, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts of all letters."""
        return tuple(count for count, letters in self.runs for _ in range(letters))

    @property
    def neighbour(self) -> tuple[int, ...]:
        """Counts of all letters in the neighbour."""
        return tuple(count for count, letters in self.neighbour_runs for _ in range(letters))

    def to_dict(self) -> Json:
        """Return the data sets as plain values: counts, or runs for more than 1,000 letters."""
        short = sum(letters for _, letters in self.runs) <= _MOST_LISTED
        return {
            "counts": list(self.counts) if short else None,
            "neighbour": list(self.neighbour) if short else None,
            "runs": [list(run) for run in self.runs],
            "neighbour_runs": [list(run) for run in self.neighbour_runs],
            "letter": 0,
            "minima": list(self.minima),
        }


def witness_of(setting: RooSetting, move: Move) -> Witness:
    """Return data sets that realise a move.

    The changed letter comes first; one to three others may be special, the rest have the same
    count, and the last takes what is left. Small counts are tried in turn.

    Raises:
        DpoptError: if there is none; every move of `moves` has one.
    """
    for runs in _data_sets(setting, move):
        counts = [count for count, _ in runs]
        for gain, loss in product(range(len(runs)), repeat=2):
            after = list(counts)
            after[gain] += 1
            after[loss] -= 1
            single = runs[gain][1] == runs[loss][1] == 1 and gain != loss
            if single and after[0] == move.new_count and min(after) == move.new_minimum:
                changed = tuple((new, n) for new, (_, n) in zip(after, runs, strict=True))
                return Witness(runs, changed, (move.minimum, move.new_minimum))
    raise DpoptError(f"no neighbouring data sets realise {move}.")


def _data_sets(setting: RooSetting, move: Move) -> Iterator[Runs]:
    """Yield data sets with the right smallest count, the changed letter first."""
    n, k, m = setting.records, setting.letters, move.minimum
    special = min(max(k - 2, 0), 2)
    fillers = k - 2 - special
    for values in product(range(m, m + 3), repeat=special):
        for base in range(m, m + 2):
            rest = n - move.count - sum(values) - base * fillers
            runs = [(move.count, 1), *((value, 1) for value in values)]
            runs += [(base, fillers)] if fillers else []
            runs.append((rest, 1))
            if min(count for count, _ in runs) == m:
                yield tuple(runs)
