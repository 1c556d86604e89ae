"""Histograms of n records over k categories, up to the order of the categories.

A mechanism that treats all categories alike outputs a category with a probability that depends only
on its count and on the sorted counts of all: there is one variable for each sorted histogram lambda
(a partition of n into at most k parts, counts descending) and each distinct count c in it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.prob.histograms import IntMatrix, histograms, index_of
from dpopt.table.inputs import Edges, Inputs, Name, read_only


@lru_cache(maxsize=64)
def partition_count(records: int, categories: int) -> int:
    """Return the number of partitions of n into at most k parts."""
    # By conjugation, as many as partitions into parts of size at most k: add one size at a time.
    counts = [1] + [0] * records
    for size in range(1, min(categories, records) + 1):
        for total in range(size, records + 1):
            counts[total] += counts[total - size]
    return counts[records]


def _listed(records: int, categories: int) -> IntMatrix:
    """Return the partitions of n into at most k parts, descending, shape (partitions, k)."""
    columns: list[IntVector] = []
    remaining, largest = np.array([records]), np.array([records])
    for parts in range(categories, 0, -1):
        # Each partial row continues with every count from the largest possible down to the mean of
        # what remains; `begun` is the partial row of each continuation.
        high = np.minimum(remaining, largest)
        choices = high - -(-remaining // parts) + 1
        begun = np.repeat(np.arange(remaining.size), choices)
        ends = np.cumsum(choices)
        count = high[begun] - (np.arange(ends[-1]) - np.repeat(ends - choices, choices))
        columns = [column[begun] for column in columns] + [count]
        remaining, largest = remaining[begun] - count, count
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Move:
    """A record moves from one position of sorted histograms to a later one: ``giver`` to ``taker``.

    Afterwards the histogram is sorted with all categories in position.
    """

    giver: int
    taker: int
    before: IntVector
    after: IntVector


@dataclass(frozen=True, eq=False, repr=False)
class SortedHistograms(Inputs):
    """All sorted histograms of n records over k categories; neighbours differ by one record.

    A variable is a sorted histogram and one of its distinct counts, descending; an output is a
    category, described by its count.

    Attributes:
        records: n, in 1..10,000.
        categories: k, in 2..1,000.
    """

    records: int
    categories: int

    def __post_init__(self) -> None:
        records = _checks.integer("records", self.records, 1, 10_000)
        categories = _checks.integer("categories", self.categories, 2, 1_000)
        number = partition_count(records, categories)
        # Sorted histograms of the largest `SortedHistograms`; memory fixes it.
        if number > 1_000_000:
            raise ParameterError(
                f"{records} records over {categories} categories have {number:,} sorted "
                "histograms; at most 1,000,000 are listed."
            )
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "categories", categories)

    @property
    def key(self) -> tuple[object, ...]:
        """The parameters that determine the variables."""
        return "sorted histograms", self.records, self.categories

    @property
    def inputs(self) -> int:
        """Number of histograms, unsorted."""
        return math.comb(self.records + self.categories - 1, self.records)

    @property
    def outputs(self) -> int:
        """Number of categories."""
        return self.categories

    @cached_property
    def histograms(self) -> IntMatrix:
        """The sorted histograms, descending from (n, 0, ..., 0), shape (histograms, k)."""
        return read_only(_listed(self.records, self.categories))

    @cached_property
    def variables(self) -> IntMatrix:
        """The variable of each category of each sorted histogram, shape (histograms, k)."""
        # A variable begins at the first category of each distinct count.
        new = np.ones(self.histograms.shape, dtype=np.int64)
        new[:, 1:] = self.histograms[:, 1:] != self.histograms[:, :-1]
        return read_only(np.cumsum(new).reshape(new.shape) - 1)

    @cached_property
    def rows(self) -> IntVector:
        """The sorted histogram of each variable."""
        each = np.diff(np.append(self.variables[:, 0], self.variables[-1, -1] + 1))
        return read_only(np.repeat(np.arange(len(self.histograms)), each))

    @cached_property
    def counts(self) -> IntVector:
        """Number of categories of each variable."""
        return read_only(np.bincount(self.variables.ravel()))

    @cached_property
    def values(self) -> IntVector:
        """The count c of the categories of each variable."""
        values = np.empty(self.size, dtype=np.int64)
        values[self.variables.ravel()] = self.histograms.ravel()
        return read_only(values)

    @cached_property
    def row_sizes(self) -> list[int]:
        """Number of histograms that sort to each one: k! / prod_c (categories with count c)!."""
        all_orders = math.factorial(self.categories)
        orders_within = [math.factorial(count) for count in self.counts.tolist()]
        starts = self.starts.tolist()
        return [all_orders // math.prod(orders_within[a:b]) for a, b in pairwise(starts)]

    @cached_property
    def _hashed(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], IntVector]:
        """A 64-bit hash for each count; the histograms' sums of these, ascending; their order.

        The sum identifies the histogram, and the sum after a move follows from the one before. The
        hashes are drawn from a fixed seed, and drawn again until all sums differ.
        """
        rng = np.random.default_rng(0)
        while True:
            hashes = rng.integers(0, 1 << 64, self.records + 2, dtype=np.uint64)
            sums = hashes[self.histograms].sum(axis=1, dtype=np.uint64)
            order = np.argsort(sums)
            if np.all(np.diff(sums[order])):
                return hashes, sums[order], order

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The moves of a record between sorted histograms, each pair of neighbours once.

        The record moves from the last category with its count to the first category whose count is
        lower by 2 or more. The result is then sorted with every category in position, and the
        reverse move, to a count that is not lower, is not listed. Moves to a count lower by 1 only
        swap two categories: see `swaps`.
        """
        table, (hashes, ordered, order) = self.histograms, self._hashed
        sums = np.empty_like(ordered)
        sums[order] = ordered
        # Whether a category is the last, or the first, with its count.
        last = np.ones(table.shape, dtype=bool)
        last[:, :-1] = table[:, :-1] != table[:, 1:]
        first = np.roll(last, 1, axis=1)
        moves = list[Move]()
        # At most n categories have a record to give, and only the first empty one may receive it:
        # one of the first n, as who gives has two records.
        for giver in range(min(self.categories - 1, self.records)):
            for taker in range(giver + 1, min(self.categories, self.records)):
                apart = table[:, giver] - table[:, taker] >= 2
                before = np.flatnonzero(last[:, giver] & first[:, taker] & apart)
                if before.size:
                    high, low = table[before, giver], table[before, taker]
                    moved = sums[before] - hashes[high] - hashes[low]
                    moved += hashes[high - 1] + hashes[low + 1]
                    moves.append(Move(giver, taker, before, order[np.searchsorted(ordered, moved)]))
        return tuple(moves)

    @cached_property
    def swaps(self) -> IntVector:
        """The variables v where v + 1 is the same histogram's next count, lower by exactly 1.

        Moving a record from a category of v to one of v + 1 swaps the two categories.
        """
        same = self.rows[:-1] == self.rows[1:]
        return np.flatnonzero(same & (self.values[:-1] - self.values[1:] == 1))

    @cached_property
    def edges(self) -> Edges:
        """Each pair of neighbouring histograms; categories that change alike are one entry."""
        sides = [(self.variables[move.before], self.variables[move.after]) for move in self.moves]
        swapped = self.variables[self.rows[self.swaps]]
        row = np.arange(len(swapped))
        other = swapped.copy()
        # A swap exchanges the last category of a count and the first of the next count, which is at
        # `position`, counted from the histogram's first category.
        begin, upto = self.starts[self.rows[self.swaps]], np.cumsum(self.counts)
        position = upto[self.swaps] - upto[begin] + self.counts[begin]
        other[row, position - 1], other[row, position] = (
            swapped[row, position],
            swapped[row, position - 1],
        )
        sides.append((swapped, other))
        first = np.concatenate([one for one, _ in sides])
        second = np.concatenate([two for _, two in sides])
        ends = np.stack([self.rows[first[:, 0]], self.rows[second[:, 0]]], axis=1)
        return Edges.of_outputs(ends, first, second)

    def located(self, data: Any) -> tuple[IntMatrix, bool]:  # noqa: ANN401
        """Return the checked counts, shape (queries, k), and whether they were of one query."""
        return checked_counts(data, self.records, self.categories)

    def rows_of(self, located: IntMatrix) -> IntVector:
        """Return the sorted histogram of each query."""
        hashes, ordered, order = self._hashed
        return order[np.searchsorted(ordered, hashes[located].sum(axis=1, dtype=np.uint64))]

    def variables_of(self, located: IntMatrix) -> IntMatrix:
        """Return the variable of each category, shape (queries, k)."""
        order = np.argsort(-located, axis=1, kind="stable")
        variables = np.empty(located.shape, dtype=np.int64)
        np.put_along_axis(variables, order, self.variables[self.rows_of(located)], axis=1)
        return variables

    def every(self) -> IntMatrix:
        """Return all unsorted histograms, ascending lexicographically, shape (inputs, k)."""
        return histograms(self.records, self.categories)

    def numbers(self, located: IntMatrix) -> IntVector:
        """Return the row of each query in `every`."""
        return index_of(located)

    def chosen(self, located: IntMatrix, variables: IntVector, index: IntVector) -> IntVector:
        """Return, for each query, the index-th of the categories that have the variable's count."""
        matching = located == self.values[variables][:, None]
        return np.argmax(np.cumsum(matching, axis=1) == index[:, None] + 1, axis=1)

    def claim(self) -> str:
        """Return the sentence for a certificate: between which inputs the table is private."""
        return (
            f"the table is private between all neighbouring histograms of {self.records} records "
            f"over {self.categories} categories"
        )

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring histograms in words, and a category by its count in each."""
        one, two = (f"counts {self.described(self.rows[v])}" for v in (first, second))
        return one, two, f"the category with {self.values[first]}, then {self.values[second]}"

    def event(
        self, edge: int, entries: Collection[int]
    ) -> tuple[tuple[Name, Name], tuple[Name, ...]]:
        """Return the two histograms of an edge, and the categories of some of its entries."""
        edges = self.edges
        pairs = [(edges.first[entry], edges.second[entry]) for entry in sorted(entries)]
        one, two = (f"counts {self.described(row)}" for row in edges.ends[edge])
        return (one, two), tuple(self.words(v, w)[2] for v, w in pairs)

    def described(self, row: int) -> str:
        """Return a sorted histogram in words, such as "3, 1 and 2 of 0" with two zeros."""
        counts = self.histograms[row].tolist()
        positive = [str(count) for count in counts if count]
        zeros = len(counts) - len(positive)
        return ", ".join(positive) + (f" and {zeros} of 0" if zeros else "")

    def listed(self) -> Iterator[tuple[int, ...]]:
        """Yield the sorted histograms."""
        yield from map(tuple, self.histograms.tolist())


def checked_counts(data: npt.ArrayLike, records: int, categories: int) -> tuple[IntMatrix, bool]:
    """Return the counts of each query, and whether there is only one; see `SortedHistograms`."""
    array = _checks.array("counts", data)
    fits = array.ndim in (1, 2) and array.shape[-1:] == (categories,)
    if not fits or not np.issubdtype(array.dtype, np.integer):
        raise ParameterError(f"counts must be {categories} integers for each query.")
    counts = np.atleast_2d(array).astype(np.int64, copy=False)
    # Counts above n are rejected first, as 64-bit sums could wrap around.
    inside = not counts.size or 0 <= counts.min() <= counts.max() <= records
    if not inside or np.any(np.einsum("qk->q", counts) != records):
        raise ParameterError(f"counts of a query must add up to {records} records, none below 0.")
    return counts, array.ndim == 1


@lru_cache(maxsize=8)
def sorted_histograms(records: int, categories: int) -> SortedHistograms:
    """Return the sorted histograms of a size, cached together with their computed properties."""
    return SortedHistograms(records, categories)
