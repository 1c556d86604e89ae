"""The walk over all corner configurations that decide whether a plurality is private.

For a set S of outputs let A(N) be the probability that the output is in S where the counts of the
votes are N, and f = E A(N) - e^(m epsilon) E' A(N): privacy says f <= delta for all voters. By the
theorems of the pairs module the largest f stands where every voter is at a corner: at a loop, with
the vote y on both sides, or on an edge y -> z, voting y with b and z with c on one side, the other
way round on the other; and no two voters are on y -> z and on z -> y.

Theorem (triangles). No three voters need be on y -> z, z -> w and w -> y either.

The proof is on the page docs/theorems/classes.md: multiplied out, the law of the three is a mixture
of four configurations with at most one edge each, the same mixture on both sides.

So a configuration is a signed number of voters on each of the C (C - 1) / 2 pairs of classes, no
three of them in a circle, and the rest of the voters at loops. Over three classes all circles are
gone; over four, longer ones stay where no edge crosses them. The edges between two classes outside
of S are needed: without them programs return kernels that are not private.

The walk. Let T be a function of the counts of the voters who are not yet on an edge, at first A.
One voter more on y -> z makes it T'(n) = b T(n + e_y) + c T(n + e_z) for the side P, for all places
of the loops n at once; the side P' is the same for the configuration with every edge turned around.
Level s of the walk holds this table for every configuration of s edges, one of each class of those
that differ by renaming classes within S or outside of it, which A does not tell apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.ballots.partitions import Partitions
from dpopt.multiclass.pairs import reduced_count

MOST_CONFIGURATIONS = 40_000_000
"""Of the configurations, renamed ones counted, that are walked over."""

MOST_OF_TWO = 300
"""Voters over two classes: the integers of the proof grow with them, and take minutes at 1,000."""

DIRECTIONS = {
    2: (1, 2),
    3: (1, 6, 12, 6),
    4: (1, 12, 60, 152, 192, 108, 24),
    5: (1, 20, 180, 940, 3080, 6444, 8500, 6900, 3390, 960, 120),
    6: (
        *(1, 30, 420, 3600, 20880, 85716, 253920, 545640, 848580, 951110, 767268),
        *(445680, 184350, 52020, 9000, 720),
    ),
}
"""For C classes, how many ways there are to choose and direct j pairs, no three in a circle.

The last is C!: the orders of all classes.
"""

Table = npt.NDArray[Any]
"""Floats or Python integers, shape (configurations of a level, places of its loops)."""

Step = Callable[[Table, Table], Table]
"""Takes T(n + e_y) and T(n + e_z) and returns b T(n + e_y) + c T(n + e_z)."""


def configuration_count(voters: int, classes: int) -> int:
    """Return the number of configurations, renamed ones counted; above 6 classes, a bound on it.

    Voters on j directed pairs, at least one on each, and loops at C classes are
    binom(K + C - 1, C - 1 + j) choices.
    """
    if classes not in DIRECTIONS:
        return reduced_count(voters, classes)
    return sum(
        many * math.comb(voters + classes - 1, classes - 1 + j)
        for j, many in enumerate(DIRECTIONS[classes])
    )


def priceable(voters: int, classes: int) -> bool:
    """Whether all configurations can be walked over."""
    if classes == 2 and voters > MOST_OF_TWO:
        return False
    return _coded(voters, classes) and configuration_count(voters, classes) <= MOST_CONFIGURATIONS


def _coded(voters: int, classes: int) -> bool:
    """Whether numbers -K..K on all pairs of classes have a code of 63 bits."""
    return (2 * voters + 1) ** (classes * (classes - 1) // 2) < 1 << 63


def require_priceable(voters: int, classes: int) -> None:
    """Refuse sizes with too many configurations.

    Raises:
        ParameterError: naming how many there are.
    """
    if not priceable(voters, classes):
        known = f"{configuration_count(voters, classes):.3g} corner configurations"
        limit = f"at most {MOST_CONFIGURATIONS:.0e}"
        if classes == 2 and voters > MOST_OF_TWO:
            known, limit = f"{voters:,} levels", f"at most {MOST_OF_TWO}"
        elif not _coded(voters, classes):
            known, limit = f"{classes * (classes - 1) // 2} pairs of classes", "fewer"
        raise ParameterError(
            f"mechanisms is {voters} and classes {classes}; they have {known}, and {limit} are "
            "priced: take rule 'ladder' or 'permute-and-flip', of which a bound is proved."
        )


@lru_cache(maxsize=256)
def histograms(total: int, classes: int) -> IntVector:
    """Return all counts n of C classes with a total, shape (histograms, C), in rising order."""
    rows = [
        np.diff((-1, *bars, total + classes - 1)) - 1
        for bars in itertools.combinations(range(total + classes - 1), classes - 1)
    ]
    found = np.array(rows, dtype=np.int64).reshape(-1, classes)
    found.setflags(write=False)
    return found


def _code(counts: IntVector, base: int) -> IntVector:
    """Return rows of digits 0..base-1 as single integers, in the same order."""
    code = np.zeros(counts.shape[:-1], dtype=np.int64)
    for column in range(counts.shape[-1]):
        code = code * base + counts[..., column]
    return code


def _places(counts: IntVector, total: int, classes: int) -> IntVector:
    """Return the places of histograms in `histograms`."""
    known = _code(histograms(total, classes), total + 1)
    return np.searchsorted(known, _code(counts, total + 1))


@dataclass(frozen=True)
class Level:
    """The configurations of s edges, one of each class of renamed ones.

    Attributes:
        edges: s.
        signed: number of voters on each pair of classes y < z, above 0 for y -> z, below for
            z -> y; shape (configurations, pairs).
        parent: the place in the level before of the configuration with one edge less.
        grown: slices of the configurations by the edge that they have more, an oriented pair.
        opposite: the place in this level of the configuration with every edge turned around,
            renamed.
        renamed: slices of `order`, by the renaming that leads there.
        order: the configurations in the order of their renaming.
    """

    edges: int
    signed: IntVector
    parent: IntVector
    grown: tuple[tuple[tuple[int, int], slice], ...]
    opposite: IntVector
    renamed: tuple[tuple[int, slice], ...]
    order: IntVector


class Configurations:
    """All configurations of K voters over C classes, for the set S of the first k classes.

    Args:
        voters: K.
        classes: C.
        outputs: k, in 1..C-1.

    Raises:
        ParameterError: if there are too many.
    """

    def __init__(self, voters: int, classes: int, outputs: int = 1) -> None:
        require_priceable(voters, classes)
        self.voters, self.classes, self.outputs = voters, classes, outputs
        self.pairs = tuple(itertools.combinations(range(classes), 2))
        inside, outside = range(outputs), range(outputs, classes)
        # renamings[p][y]: what class y is called.
        self.renamings = tuple(
            first + last
            for first in itertools.permutations(inside)
            for last in itertools.permutations(outside)
        )

    @cached_property
    def count(self) -> int:
        """Number of configurations with their loops, of each class of renamed edges one."""
        return sum(
            len(level.signed) * len(histograms(self.voters - level.edges, self.classes))
            for level in self.levels
        )

    @cached_property
    def up(self) -> tuple[IntVector, ...]:
        """For each total t < K, the place of n + e_y for each class y and n: (C, histograms)."""
        return tuple(
            np.stack(
                [
                    _places(histograms(total, self.classes) + unit, total + 1, self.classes)
                    for unit in np.eye(self.classes, dtype=np.int64)
                ]
            )
            for total in range(self.voters)
        )

    def renamed_places(self, total: int, renaming: int) -> IntVector:
        """Return the place of each histogram of a total once its classes are renamed."""
        counts = histograms(total, self.classes)
        turned = np.empty_like(counts)
        turned[:, list(self.renamings[renaming])] = counts
        return _places(turned, total, self.classes)

    @cached_property
    def _codes(self) -> IntVector:
        """[pair, p]: what a voter on a pair adds to the code of the configuration renamed by p."""
        digit = {
            pair: (2 * self.voters + 1) ** (len(self.pairs) - 1 - at)
            for at, pair in enumerate(self.pairs)
        }
        return np.array(
            [
                [
                    digit[names[y], names[z]] if names[y] < names[z] else -digit[names[z], names[y]]
                    for names in self.renamings
                ]
                for y, z in self.pairs
            ],
            dtype=np.int64,
        )

    def _composed(self, first: IntVector, undone: IntVector) -> IntVector:
        """Return for places of renamings p and q that of the renaming p, and then q undone."""
        names = np.array(self.renamings)
        inverse = np.argsort(names[undone], axis=1)
        composed = np.take_along_axis(inverse, names[first], axis=1)
        # Permutations of S and of the rest are listed in rising order, and so are their codes.
        return np.searchsorted(_code(names, self.classes), _code(composed, self.classes))

    def _canonical(self, signed: IntVector) -> tuple[IntVector, IntVector]:
        """Return the least code among a configuration's renamed ones, and by which renaming."""
        # A code has the digits -K..K, so that no two configurations share one.
        codes = signed @ self._codes
        how = codes.argmin(axis=1)
        return codes[np.arange(len(signed)), how], how

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels s = 0..K."""
        none = np.zeros((1, len(self.pairs)), dtype=np.int64)
        levels = [self._level(none, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))]
        for _ in range(self.voters):
            before = levels[-1].signed
            grown, parent, edge = [], [], []
            for at in range(len(self.pairs)):
                for way, sign in enumerate((1, -1)):
                    # No 2-cycles: an edge is added where there is none of the other direction.
                    fits = np.flatnonzero(before[:, at] * sign >= 0)
                    more = before[fits]
                    more[:, at] += sign
                    grown.append(more)
                    parent.append(fits)
                    edge.append(np.full(len(fits), 2 * at + way))
            signed, *rest = map(np.concatenate, (grown, parent, edge))
            kept = np.flatnonzero(~self._circles(signed))
            levels.append(self._level(signed[kept], *(part[kept] for part in rest)))
        return tuple(levels)

    def _circles(self, signed: IntVector) -> npt.NDArray[np.bool_]:
        """Whether a configuration has y -> z, z -> w and w -> y, for any three classes."""
        place = {pair: at for at, pair in enumerate(self.pairs)}
        found = np.zeros(len(signed), dtype=bool)
        for y, z, w in itertools.combinations(range(self.classes), 3):
            one, two, across = (signed[:, place[pair]] for pair in ((y, z), (z, w), (y, w)))
            found |= (one * two > 0) & (one * across < 0)
        return found

    def _level(self, signed: IntVector, parent: IntVector, edge: IntVector) -> Level:
        """Return one configuration of each class, sorted by the edge that was added."""
        _, first = np.unique(self._canonical(signed)[0], return_index=True)
        chosen = first[np.argsort(edge[first], kind="stable")]
        signed, parent, edge = signed[chosen], parent[chosen], edge[chosen]
        code, how = self._canonical(signed)
        turned, back = self._canonical(-signed)
        sorter = np.argsort(code)
        opposite = sorter[np.searchsorted(code, turned, sorter=sorter)]
        # -sigma becomes the least one by `back`, and that the kept one by the inverse of its own.
        renaming = self._composed(back, how[opposite])
        order = np.argsort(renaming, kind="stable")
        oriented = tuple(pair for y, z in self.pairs for pair in ((y, z), (z, y)))
        return Level(
            int(np.abs(signed[0]).sum()),
            signed,
            parent,
            tuple((oriented[at], part) for at, part in _slices(edge)),
            opposite,
            _slices(renaming[order]),
            order,
        )

    def walk(self, table: Table, step: Step) -> Iterator[tuple[Level, Table]]:
        """Yield for each level E A over (configuration, loops).

        Args:
            table: A at the histograms of K votes, shape (histograms,).
            step: see `Step`.
        """
        tables = table.reshape(1, -1)
        yield self.levels[0], tables
        for level in self.levels[1:]:
            up = self.up[self.voters - level.edges]
            grown = np.empty((len(level.signed), up.shape[1]), dtype=table.dtype)
            for (y, z), part in level.grown:
                before = tables[level.parent[part]]
                grown[part] = step(before[:, up[y]], before[:, up[z]])
            tables = grown
            yield level, tables

    def turned(self, level: Level, table: Table) -> Table:
        """Return E' A from the table of E A: every edge of a configuration turned around."""
        other = np.empty_like(table)
        for renaming, part in level.renamed:
            rows = level.order[part]
            places = self.renamed_places(self.voters - level.edges, renaming)
            other[rows] = table[level.opposite[rows]][:, places]
        return other

    def alike(self, signed: Sequence[int], loops: Sequence[int]) -> object:
        """Return what a configuration has in common with those that renaming classes makes of it.

        Args:
            signed: number of voters on each pair of classes.
            loops: number of voters at a loop of each class.
        """
        edges = [
            (y, z, many) if many > 0 else (z, y, -many)
            for (y, z), many in zip(self.pairs, signed, strict=True)
            if many
        ]
        return min(
            (
                tuple(many for _, many in sorted(zip(names, loops, strict=True))),
                tuple(sorted((names[y], names[z], many) for y, z, many in edges)),
            )
            for names in self.renamings
        )

    def describe(self, level: Level, place: int, loops: int) -> tuple[str, str]:
        """Return the voters in words, on both sides; classes count from 0, S being the first."""
        parts: list[tuple[str, str]] = []
        for (y, z), many in zip(self.pairs, level.signed[place].tolist(), strict=True):
            if many:
                one, other = (y, z) if many > 0 else (z, y)
                said = f"{abs(many)} voters at {one} with b and {other} with c"
                parts.append((said, f"{abs(many)} voters at {other} with b and {one} with c"))
        counts = histograms(self.voters - level.edges, self.classes)[loops].tolist()
        parts += [(f"{n} voters at {y}", f"{n} voters at {y}") for y, n in enumerate(counts) if n]
        one, other = ("; ".join(words) for words in zip(*parts, strict=True))
        return one, other


def _slices(sorted_values: IntVector) -> tuple[tuple[int, slice], ...]:
    """Return where each value of a sorted array stands."""
    values, starts = np.unique(sorted_values, return_index=True)
    ends = [*starts[1:].tolist(), len(sorted_values)]
    return tuple(
        (int(value), slice(int(start), end))
        for value, start, end in zip(values, starts, ends, strict=True)
    )


@lru_cache(maxsize=4)
def configurations(voters: int, classes: int, outputs: int = 1) -> Configurations:
    """Return the configurations of a size, those made last kept."""
    return Configurations(voters, classes, outputs)


@lru_cache(maxsize=16)
def variables(partitions: Partitions, outputs: int = 1) -> IntVector:
    """Return the variable of each class in S at each histogram of K votes: (histograms, k)."""
    found = np.array(
        [
            partitions.classes_of(counts)[:outputs]
            for counts in histograms(partitions.voters, partitions.classes).tolist()
        ],
        dtype=np.int64,
    )
    found.setflags(write=False)
    return found
