"""Sorted histograms of K ballots over C classes: the inputs of a mechanism that favours no class.

A mechanism on histograms l is equivariant if relabelling the classes of its input relabels its
output. Averaging over all relabellings makes any mechanism so, keeps its privacy, and keeps every
loss that treats classes alike. What is left of it is one number k[lambda, c] for each partition
lambda of K into at most C parts (the histogram in falling order) and each distinct count c in it:
the probability of one class of that count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector

IntMatrix = npt.NDArray[np.int64]
"""Two-dimensional integer array."""

UnsignedVector = npt.NDArray[np.uint64]
"""One-dimensional array of unsigned integers, which wrap."""

Histogram = tuple[int, ...]
"""Counts in falling order, zeros included: C of them."""

MOST_PARTITIONS = 1_000_000
"""Of the largest `Partitions` that are listed."""


def partition_count(voters: int, classes: int) -> int:
    """Return the number of partitions of K into at most C parts.

    As many as partitions into parts of size at most C, which are counted part size by part size.
    """
    return _counted(voters, min(classes, voters))


@lru_cache(maxsize=64)
def _counted(voters: int, largest: int) -> int:
    counts = [1] + [0] * voters
    for size in range(1, largest + 1):
        for total in range(size, voters + 1):
            counts[total] += counts[total - size]
    return counts[voters]


def _listed(voters: int, classes: int) -> IntMatrix:
    """Return the partitions of K into at most C parts, falling lexicographically: shape (S, C)."""
    columns: list[IntVector] = []
    left, largest = np.array([voters]), np.array([voters])
    for parts in range(classes, 0, -1):
        # Of each row begun, all that the next count can be: from the largest down to the mean.
        high = np.minimum(left, largest)
        choices = high - -(-left // parts) + 1
        begun = np.repeat(np.arange(left.size), choices)
        ends = np.cumsum(choices)
        count = high[begun] - (np.arange(ends[-1]) - np.repeat(ends - choices, choices))
        columns = [column[begun] for column in columns] + [count]
        left, largest = left[begun] - count, count
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Move:
    """Ballots that leave the class at one place of a sorted histogram for that at a later one.

    Attributes:
        giver: place of the class that loses a ballot.
        taker: place of the class that gains it.
        states: the histograms before, shape (n,).
        to: the histograms after, shape (n,), sorted without any class changing its place.
    """

    giver: int
    taker: int
    states: IntVector
    to: IntVector


@dataclass(frozen=True)
class Partitions:
    """All sorted histograms of K ballots over C classes, and the places of k[lambda, c].

    Attributes:
        voters: K, at least 1.
        classes: C, at least 2.
    """

    voters: int
    classes: int

    def __post_init__(self) -> None:
        """Refuse sizes out of range.

        Raises:
            ParameterError: naming the size; also for more than `MOST_PARTITIONS` partitions.
        """
        voters = _checks.integer("voters", self.voters, 1, 10_000)
        classes = _checks.integer("classes", self.classes, 2, 1_000)
        count = partition_count(voters, classes)
        if count > MOST_PARTITIONS:
            raise ParameterError(
                f"{voters} ballots over {classes} classes have {count:,} sorted histograms; at "
                f"most {MOST_PARTITIONS:,} are listed."
            )
        object.__setattr__(self, "voters", voters)
        object.__setattr__(self, "classes", classes)

    @cached_property
    def table(self) -> IntMatrix:
        """The sorted histograms as rows, from (K, 0, ..., 0) on, falling: shape (states, C)."""
        return _read_only(_listed(self.voters, self.classes))

    @cached_property
    def states(self) -> tuple[Histogram, ...]:
        """The rows of `table`."""
        return tuple(map(tuple, self.table.tolist()))

    @cached_property
    def place(self) -> dict[Histogram, int]:
        """The place of each sorted histogram in `states`."""
        return {state: place for place, state in enumerate(self.states)}

    @cached_property
    def levels(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each state its distinct counts, falling, each with its number of classes."""
        return tuple(
            tuple((count, state.count(count)) for count in dict.fromkeys(state))
            for state in self.states
        )

    @cached_property
    def variables(self) -> IntMatrix:
        """The variable of each class of each sorted histogram, shape (states, C)."""
        new = np.ones(self.table.shape, dtype=np.int64)
        new[:, 1:] = self.table[:, 1:] != self.table[:, :-1]
        return _read_only(np.cumsum(new).reshape(new.shape) - 1)

    @cached_property
    def starts(self) -> IntVector:
        """Where the variables of each state start, and their number: shape (states + 1,)."""
        return _read_only(np.append(self.variables[:, 0], self.variables[-1, -1] + 1))

    @property
    def size(self) -> int:
        """Number of variables k[lambda, c]."""
        return int(self.starts[-1])

    @cached_property
    def multiplicities(self) -> IntVector:
        """Number of classes behind each variable, shape (size,)."""
        return _read_only(np.bincount(self.variables.ravel()))

    @cached_property
    def counts(self) -> IntVector:
        """The count c behind each variable, shape (size,)."""
        counts = np.empty(self.size, dtype=np.int64)
        counts[self.variables.ravel()] = self.table.ravel()
        return _read_only(counts)

    @cached_property
    def state_of(self) -> IntVector:
        """The state behind each variable, shape (size,)."""
        return _read_only(np.repeat(np.arange(len(self.table)), np.diff(self.starts)))

    def variable(self, state: int, count: int) -> int:
        """Return the variable k[lambda, c] of a state's place and a count that occurs in it."""
        for level, (known, _) in enumerate(self.levels[state]):
            if known == count:
                return int(self.starts[state]) + level
        raise ParameterError(f"count is {count}; {self.states[state]} has no class of that count.")

    def classes_of(self, histogram: Sequence[int]) -> tuple[int, ...]:
        """Return, for each class of a histogram in the caller's order, its variable."""
        state = self.place[tuple(sorted(histogram, reverse=True))]
        start = int(self.starts[state])
        level = {count: start + at for at, (count, _) in enumerate(self.levels[state])}
        return tuple(level[count] for count in histogram)

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """Number of histograms that each state is the sorted form of: C! / prod multiplicity!."""
        whole = math.factorial(self.classes)
        return tuple(
            whole // math.prod(math.factorial(many) for _, many in levels) for levels in self.levels
        )

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The replaced ballots between sorted histograms, each pair of neighbours once.

        The ballot leaves the last class of its count for the first class of a count lower by 2 or
        more. So the result is sorted as it stands: every class keeps its place. The reverse of such
        a move goes to a count that is not lower. What is left are moves to a count lower by 1,
        which swap two classes: see `swaps`.
        """
        table, found = self.table, []
        names = _names(self.voters, table)
        known = names[table].sum(axis=1, dtype=np.uint64)
        order = np.argsort(known)
        ordered = known[order]
        last = np.ones(table.shape, dtype=bool)
        last[:, :-1] = table[:, :-1] != table[:, 1:]
        first = np.roll(last, 1, axis=1)
        # At most K classes have a ballot to give, and of those without one the first is meant.
        for giver in range(min(self.classes - 1, self.voters)):
            for taker in range(giver + 1, min(self.classes, self.voters + 1)):
                apart = table[:, giver] - table[:, taker] >= 2
                states = np.flatnonzero(last[:, giver] & first[:, taker] & apart)
                if states.size:
                    high, low = table[states, giver], table[states, taker]
                    moved = known[states] - names[high] - names[low]
                    moved += names[high - 1] + names[low + 1]
                    to = order[np.searchsorted(ordered, moved)]
                    found.append(Move(giver, taker, states, to))
        return tuple(found)

    @cached_property
    def swaps(self) -> IntVector:
        """The variables v whose next one, v + 1, is of the same state and of a count lower by 1.

        A ballot from the class of the one to the class of the other swaps the two.
        """
        same = self.state_of[:-1] == self.state_of[1:]
        return np.flatnonzero(same & (self.counts[:-1] - self.counts[1:] == 1))

    @cached_property
    def neighbours(self) -> tuple[IntVector, IntVector]:
        """The pairs of variables that one replaced ballot can exchange, each pair once.

        One class loses a ballot and another gains it. The two, and a class of every other count,
        keep their names: privacy asks k[v] <= r k[w] and k[w] <= r k[v] of each pair (v, w).
        """
        size, place = self.size, self.variables
        codes = [self.swaps * size + self.swaps + 1]
        for move in self.moves:
            v, w = place[move.states].ravel(), place[move.to].ravel()
            codes.append(np.unique(np.minimum(v, w) * size + np.maximum(v, w)))
        distinct = np.unique(np.concatenate(codes))
        return distinct // size, distinct % size


def _names(voters: int, table: IntMatrix) -> UnsignedVector:
    """Return a 64-bit number for each count, with a different sum for every sorted histogram.

    Drawn with a fixed seed, and drawn again until all sums differ, which is checked: so the sum
    tells the histogram, and that after a move follows from that before.
    """
    seed = 0
    while True:
        drawn = np.random.default_rng(seed).integers(0, 1 << 64, voters + 1, dtype=np.uint64)
        if np.unique(drawn[table].sum(axis=1, dtype=np.uint64)).size == len(table):
            return drawn
        seed += 1


def _read_only(array: npt.NDArray[Any]) -> IntMatrix:
    found = array.astype(np.int64)
    found.setflags(write=False)
    return found
