"""Labels of many queries at once, from the units of `dpopt.ballots.table`: exact, with no bias."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dpopt._types import IntVector
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import Units, law
from dpopt.ballots.votes import IntTable
from dpopt.privacy.release import Laws, Source

# Queries at once, so that memory does not grow with them.
_ROWS = 1 << 16
# Vectors of counts that are listed, with C numbers each.
_MOST_CODES = 1 << 16
# Numbers in the laws that are written out for all sorted histograms.
_MOST_WEIGHTS = 1 << 17


class Labels:
    """Draws of classes by a table of laws, one for each sorted histogram.

    With its classes sorted, a row of counts has the law of its sorted histogram, which is written
    out once for all such rows: classes of the same count have the same weight, in any order.

    Args:
        partitions: the histograms.
        units: see `dpopt.ballots.table`.
    """

    def __init__(self, partitions: Partitions, units: Units) -> None:
        self._partitions, self._units = partitions, units
        self._served = 0

    def draw(self, counts: IntTable, source: Source) -> IntVector:
        """Return a class for each row of counts, by the law of its histogram.

        Args:
            counts: of the classes, shape (queries, C), sums K.
            source: of random bytes.

        Returns:
            Classes in 0..C-1, shape (queries,).
        """
        labels = np.empty(len(counts), dtype=np.int64)
        self._served += len(counts)
        for start in range(0, len(counts), _ROWS):
            rows = counts[start : start + _ROWS]
            if self._few_codes:
                kind = self._code(rows)
                group, order = self._codes[0][kind], self._codes[1]
            else:
                kind, (group, order) = np.arange(len(rows)), self._sorted(rows)
            if self._few_laws:
                laws = self._laws
            else:
                kinds, group = np.unique(group, return_inverse=True)
                laws = self._written(kinds.tolist())
            place = laws.draw(group, source)
            labels[start : start + _ROWS] = order.ravel()[kind * order.shape[1] + place]
        return labels

    def _written(self, states: list[int]) -> Laws:
        known = self._partitions
        return Laws([law(known, self._units, known.states[state]) for state in states])

    @property
    def _few_laws(self) -> bool:
        """Whether the laws of all sorted histograms are few beside the queries so far."""
        states = len(self._partitions.states)
        return states <= min(self._served, _MOST_WEIGHTS // self._partitions.classes)

    @cached_property
    def _laws(self) -> Laws:
        """The laws of all sorted histograms."""
        return self._written(list(range(len(self._partitions.states))))

    @property
    def _few_codes(self) -> bool:
        """Whether all vectors of counts are few, each coded by its first C - 1 as digits."""
        codes = (self._partitions.voters + 1) ** (self._partitions.classes - 1)
        return codes <= min(self._served, _MOST_CODES)

    @cached_property
    def _digits(self) -> IntVector:
        return (self._partitions.voters + 1) ** np.arange(self._partitions.classes - 1)

    @cached_property
    def _codes(self) -> tuple[IntVector, IntTable]:
        """For each code its sorted histogram and the classes in falling order of their counts."""
        base = self._partitions.voters + 1
        firsts = np.arange(base**self._digits.size)[:, None] // self._digits % base
        lasts = self._partitions.voters - firsts.sum(axis=1, keepdims=True)
        # Digits that add up to more than K are no counts, and are never asked for.
        counts = np.hstack([firsts, lasts])[lasts[:, 0] >= 0]
        group, order = np.zeros(len(firsts), np.int64), np.zeros((len(firsts), len(counts.T)), int)
        places = self._code(counts)
        group[places], order[places] = self._sorted(counts)
        return group, order

    def _code(self, rows: IntTable) -> IntVector:
        code = rows[:, 0].copy()
        for digit, column in zip(self._digits[1:], rows.T[1:-1], strict=True):
            code += digit * column
        return code

    def _sorted(self, rows: IntTable) -> tuple[IntVector, IntTable]:
        """Return the place of each row's sorted histogram, and its classes in falling order."""
        order = np.argsort(-rows, axis=1, kind="stable")
        histograms = np.take_along_axis(rows, order, axis=1)
        firsts, group = _grouped(histograms, self._partitions.voters)
        known = self._partitions.place
        states = [known[tuple(state)] for state in histograms[firsts].tolist()]
        return np.array(states, dtype=np.int64)[group], order


def _grouped(rows: IntTable, largest: int) -> tuple[IntVector, IntVector]:
    """Return the place of the first row of each kind, and the kind of each row.

    Args:
        rows: shape (rows, columns), in 0..largest.
        largest: see there.
    """
    kind = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        # Fewer kinds than rows, so that the products stay small.
        kind = np.unique(kind * (largest + 1) + column, return_inverse=True)[1]
    _, firsts, kind = np.unique(kind, return_index=True, return_inverse=True)
    return firsts, kind
