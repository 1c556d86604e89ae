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
Words = npt.NDArray[np.uint64]

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
            "Use roo.min_count (dpopt roo)."
        )
    if not _few(n, k):
        raise ParameterError(
            f"records is {n} for {k} letters; data sets may have at most {MOST_HISTOGRAMS} "
            "histograms, and these have more. Use roo.min_count (dpopt roo)."
        )
    counts = np.array(list(_partitions(n, k, n)), dtype=np.int64)
    # A place begins where a histogram's count differs from the one before it.
    first = np.diff(counts, axis=1, prepend=-1) != 0
    owner, column = np.nonzero(first)
    count = counts[owner, column]
    multiplicity = np.diff(np.append(np.flatnonzero(first), counts.size))
    edges = _edges(counts, owner, count, multiplicity)
    arrays = (counts, owner, count, multiplicity, edges)
    for array in arrays:
        array.setflags(write=False)
    index = {tuple(row): i for i, row in enumerate(counts.tolist())}
    pairs = zip(owner.tolist(), count.tolist(), strict=True)
    return Histograms(*arrays, index, {pair: place for place, pair in enumerate(pairs)})


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
    counts: IntVector, owner: IntVector, count: IntVector, multiplicity: IntVector
) -> IntVector:
    """Return what a letter can go through: lose a record, gain one, or watch others do so.

    A histogram's key is the sum over its counts of a number for each count. No two histograms have
    the same key, so that the key after a step, which differs by four of these numbers, tells which
    histogram it is.

    Args:
        counts: the histograms, shape (histograms, k).
        owner: the histogram of each place, as the others in the order of `Histograms`.
        count: of each place.
        multiplicity: likewise.
    """
    size, n = len(counts), int(counts[0].sum())
    number, keys = _keys(counts, n)
    order = np.argsort(keys)
    codes = owner * (n + 1) + (n - count)

    def place(histogram: IntVector, value: IntVector) -> IntVector:
        return np.searchsorted(codes, histogram * (n + 1) + (n - value))

    each = np.bincount(owner, minlength=size)
    start = np.cumsum(each) - each

    def beside(places: IntVector) -> tuple[IntVector, IntVector]:
        """Return every pair of one of some places, by its row, and a place of its histogram."""
        rows = np.repeat(np.arange(places.size), each[owner[places]])
        begin = np.cumsum(each[owner[places]]) - each[owner[places]]
        return rows, np.arange(rows.size) - begin[rows] + start[owner[places[rows]]]

    found = []
    for low in range(0, owner.size, _PART):
        loss = np.arange(low, min(low + _PART, owner.size))
        rows, gain = beside(loss)
        loss = loss[rows]
        can = (count[loss] > 0) & ((loss != gain) | (multiplicity[loss] > 1))
        loss, gain = loss[can], gain[can]
        c, d = count[loss], count[gain]
        after = keys[owner[loss]] - number[c] + number[c - 1] - number[d] + number[d + 1]
        new = order[np.searchsorted(keys, after, sorter=order)]
        # Others keep their count: letters that have it and neither lose nor gain.
        rows, other = beside(loss)
        left = multiplicity[other] - (other == loss[rows]) - (other == gain[rows])
        rows, other = rows[left > 0], other[left > 0]
        before = np.concatenate([loss, gain, other])
        then = [place(new, c - 1), place(new, d + 1), place(new[rows], count[other])]
        here, there = before, np.concatenate(then)
        found.append(np.unique((here * owner.size + there)[here != there]))
    return np.stack(np.divmod(np.unique(np.concatenate(found)), owner.size), axis=1)


def _keys(counts: IntVector, n: int) -> tuple[Words, Words]:
    """Return a number for each count, and the histograms' sums of them: no two are the same."""
    seed = 0
    while True:
        number = np.random.default_rng(seed).integers(0, 1 << 63, n + 2, dtype=np.uint64)
        keys = number[counts].sum(axis=1)
        if np.unique(keys).size == keys.size:
            return number, keys
        seed += 1
