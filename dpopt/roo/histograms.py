"""All data sets up to the order of their letters, and what one changed record does to them.

A sampler that treats all letters alike gives a letter a probability that depends on its own count
and on the sorted counts of all letters: on a histogram and on one of its counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._types import IntVector, brief

Number = TypeVar("Number", int, Fraction)

MOST_HISTOGRAMS = 2000
MOST_LETTERS = 100
_PART = 1 << 15


@dataclass(frozen=True, eq=False)
class Histograms:
    """Sorted counts of n records over k letters; a place is a histogram and one of its counts.

    Attributes:
        counts: largest first, shape (histograms, k), read-only.
        owner: the histogram of each place, shape (places,), read-only.
        count: the count of each place, likewise.
        multiplicity: how many letters of the histogram have that count, likewise.
        edges: shape (edges, 2), read-only: one changed record can take a letter from the first
            place to the second. Each pair once, both directions.
    """

    counts: npt.NDArray[np.int64]
    owner: IntVector
    count: IntVector
    multiplicity: IntVector
    edges: npt.NDArray[np.int64]
    _index: dict[tuple[int, ...], int] = field(repr=False)
    _place: dict[tuple[int, int], int] = field(repr=False)

    def __repr__(self) -> str:
        return brief(self)

    @property
    def size(self) -> int:
        """Number of histograms."""
        return int(self.counts.shape[0])

    @property
    def places(self) -> int:
        """Number of pairs of a histogram and one of its counts."""
        return int(self.owner.size)

    def index(self, counts: npt.ArrayLike) -> int:
        """Return the histogram of counts in any order, shape (k,)."""
        return self._index[tuple(sorted(np.asarray(counts).tolist(), reverse=True))]

    def places_of(self, counts: npt.ArrayLike) -> list[int]:
        """Return the place of each letter, for counts in any order, shape (k,)."""
        histogram, values = self.index(counts), np.asarray(counts).tolist()
        return [self._place[histogram, value] for value in values]

    def sums(self, values: Sequence[Number]) -> list[Number]:
        """Return the sum over all letters, for each histogram, of one value for each place."""
        sums = [values[0] - values[0]] * self.size
        places = zip(values, self.owner.tolist(), self.multiplicity.tolist(), strict=True)
        for value, histogram, letters in places:
            sums[histogram] += letters * value
        return sums


@lru_cache(maxsize=4)
def histograms(records: int, letters: int) -> Histograms:
    """Return all histograms of n records over k letters, with their edges.

    Args:
        records: n.
        letters: k.

    Raises:
        ParameterError: if there are more than 2,000 of them, or more than 100 letters.
    """
    n, k = records, letters
    if k > MOST_LETTERS:
        raise ParameterError(
            f"letters is {k}; the program over all histograms takes at most {MOST_LETTERS}. "
            "Use min_count."
        )
    if not _few(n, k):
        raise ParameterError(
            f"records is {n} for {k} letters; data sets may have at most {MOST_HISTOGRAMS} "
            "histograms, and these have more. Use min_count."
        )
    rows = list(_partitions(n, k, n))
    index = {row: i for i, row in enumerate(rows)}
    place: dict[tuple[int, int], int] = {}
    multiplicity = []
    for i, row in enumerate(rows):
        for value in dict.fromkeys(row):
            place[i, value] = len(place)
            multiplicity.append(row.count(value))
    keys = np.array(list(place), dtype=np.int64)
    edges = np.array(sorted(_edges(rows, index, place)), dtype=np.int64)
    arrays = (np.array(rows, dtype=np.int64), keys[:, 0].copy(), keys[:, 1].copy())
    arrays = (*arrays, np.array(multiplicity, dtype=np.int64), edges)
    for array in arrays:
        array.setflags(write=False)
    return Histograms(*arrays, index, place)


def all_counts(records: int, letters: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield all counts of n records over k letters, in parts of shape (part, k)."""
    n, k = records, letters
    # A choice of k - 1 bars among n + k - 1 spots is a vector of counts: the gaps between bars.
    choices = combinations(range(n + k - 1), k - 1)
    while bars := list(islice(choices, _PART)):
        edges = np.full((len(bars), k + 1), -1)
        edges[:, 1:-1] = np.fromiter(chain.from_iterable(bars), np.int64).reshape(-1, k - 1)
        edges[:, -1] = n + k - 1
        yield np.diff(edges, axis=1) - 1


def _few(n: int, k: int) -> bool:
    """Whether n has at most `MOST_HISTOGRAMS` partitions into at most k parts."""
    if n // 2 > MOST_HISTOGRAMS:
        return False
    ways = [1] * (n + 1)
    for largest in range(2, min(k, n) + 1):
        for total in range(largest, n + 1):
            ways[total] += ways[total - largest]
        if ways[n] > MOST_HISTOGRAMS:
            return False
    return True


def _partitions(n: int, k: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield k counts that sum to n, largest first and none above ``most``."""
    if n == 0:
        yield (0,) * k
        return
    for largest in range(min(n, most), -(-n // k) - 1, -1):
        if k == 1:
            yield (largest,)
        else:
            for rest in _partitions(n - largest, k - 1, largest):
                yield (largest, *rest)


def _edges(
    rows: list[tuple[int, ...]],
    index: dict[tuple[int, ...], int],
    place: dict[tuple[int, int], int],
) -> set[tuple[int, int]]:
    """Return what a letter can go through: lose a record, gain one, or watch others do so."""
    edges = set()
    for i, row in enumerate(rows):
        distinct = list(dict.fromkeys(row))
        for loss in distinct:
            for gain in distinct:
                if loss == 0 or (loss == gain and row.count(loss) < 2):
                    continue
                after = list(row)
                after.remove(loss)
                after.remove(gain)
                others = dict.fromkeys(after)
                new = index[tuple(sorted([*after, loss - 1, gain + 1], reverse=True))]
                pairs = [(loss, loss - 1), (gain, gain + 1), *((c, c) for c in others)]
                edges.update((place[i, old], place[new, c]) for old, c in pairs)
    return {(a, b) for a, b in edges if a != b}
