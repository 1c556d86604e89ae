"""Sorted histograms of K ballots over C classes: the inputs of a mechanism that favours no class.

A mechanism on histograms l is equivariant if relabelling the classes of its input relabels its
output. Averaging over all relabellings makes any mechanism so, keeps its privacy, and keeps every
loss that treats classes alike. What is left of it is one number k[lambda, c] for each partition
lambda of K into at most C parts (the histogram in falling order) and each distinct count c in it:
the probability of one class of that count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector

Histogram = tuple[int, ...]
"""Counts in falling order, zeros included: C of them."""

MOST_PARTITIONS = 1_000_000
"""Of the largest `Partitions` that are listed."""


@lru_cache(maxsize=64)
def partition_count(voters: int, classes: int) -> int:
    """Return the number of partitions of K into at most C parts.

    As many as partitions into parts of size at most C, which are counted part size by part size.
    """
    counts = [1] + [0] * voters
    for size in range(1, min(classes, voters) + 1):
        for total in range(size, voters + 1):
            counts[total] += counts[total - size]
    return counts[voters]


def _listed(total: int, parts: int, largest: int) -> Iterator[Histogram]:
    """Yield the partitions of ``total`` into ``parts`` parts of at most ``largest``, falling."""
    if parts == 1:
        yield (total,)
        return
    for first in range(min(total, largest), -(-total // parts) - 1, -1):
        for rest in _listed(total - first, parts - 1, min(first, total - first)):
            yield (first, *rest)


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
    def states(self) -> tuple[Histogram, ...]:
        """The sorted histograms, from (K, 0, ..., 0) on in falling lexicographic order."""
        return tuple(_listed(self.voters, self.classes, self.voters))

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
    def starts(self) -> IntVector:
        """Where the variables of each state start, and their number: shape (states + 1,)."""
        sizes = [len(levels) for levels in self.levels]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of variables k[lambda, c]."""
        return int(self.starts[-1])

    @cached_property
    def multiplicities(self) -> IntVector:
        """Number of classes behind each variable, shape (size,)."""
        return np.array([many for levels in self.levels for _, many in levels], dtype=np.int64)

    @cached_property
    def counts(self) -> IntVector:
        """The count c behind each variable, shape (size,)."""
        return np.array([count for levels in self.levels for count, _ in levels], dtype=np.int64)

    @cached_property
    def state_of(self) -> IntVector:
        """The state behind each variable, shape (size,)."""
        return np.repeat(np.arange(len(self.states)), np.diff(self.starts)).astype(np.int64)

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
    def neighbours(self) -> tuple[IntVector, IntVector]:
        """The pairs of variables that one replaced ballot can exchange, each pair once.

        One class loses a ballot and another gains it. The two, and a class of every other count,
        keep their names: privacy asks k[v] <= r k[w] and k[w] <= r k[v] of each pair (v, w).
        """
        codes: list[int] = []
        size = self.size
        for state, histogram in enumerate(self.states):
            start = int(self.starts[state])
            for i, (loser, many) in enumerate(self.levels[state]):
                if loser == 0:
                    continue
                for j, (gainer, _) in enumerate(self.levels[state]):
                    if i == j and many < 2:
                        continue
                    changed = list(histogram)
                    changed[histogram.index(loser)] -= 1
                    # Another class of the same count stands further right.
                    changed[self.classes - 1 - histogram[::-1].index(gainer)] += 1
                    moved = self.place[tuple(sorted(changed, reverse=True))]
                    to = int(self.starts[moved])
                    level = {c: to + at for at, (c, _) in enumerate(self.levels[moved])}
                    pairs = [(start + i, level[loser - 1]), (start + j, level[gainer + 1])]
                    for h, (count, present) in enumerate(self.levels[state]):
                        if present > (h == i) + (h == j):
                            pairs.append((start + h, level[count]))
                    codes += [min(v, w) * size + max(v, w) for v, w in pairs if v != w]
        distinct = np.unique(np.array(codes, dtype=np.int64))
        return distinct // size, distinct % size
