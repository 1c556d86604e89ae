"""The walk over all corner configurations that decide whether a plurality is private, in floats.

For a set S of outputs let A(N) be the probability that the output is in S given the counts N of the
votes, and f = E A(N) - e^(m epsilon) E' A(N). Privacy means f <= delta for all voters. By the
theorems of docs/theorems/classes.md f is largest where every voter is at a corner. A corner is a
loop, with the vote y under both neighbours, or an edge y -> z, with votes y with probability b and
z with c under one neighbour, and exchanged under the other. No two voters are on y -> z and z -> y,
and no three on y -> z, z -> w and w -> y.

So a configuration is a signed number of voters on each of the C (C - 1) / 2 pairs of classes, no
three of them in a cycle, and the other voters at loops. Over three classes this excludes all
cycles; over four, longer ones without a chord remain. Edges between two classes outside of S are
needed: without them programs return kernels that are not private.

The walk. Let T be a function of the counts of the voters who are not yet on an edge; at first T is
A. One voter more on y -> z gives T'(n) = b T(n + e_y) + c T(n + e_z) for E A, for all counts n of
loops at once; E' A is the same for the configuration with every edge reversed. Level s of the walk
holds this table for every configuration of s edges. `dpopt.verify` does the same walk in integers,
one configuration after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.table import SortedHistograms
from dpopt.table.inputs import read_only


def require_walked(voters: int, classes: int) -> None:
    """Raise `ParameterError` for sizes with too many configurations to price."""
    if not verify.corners_are_few(voters, classes):
        number = f"up to {verify.corner_count(voters, classes):.3g} corner configurations"
        limit = f"at most {verify.CORNERS:.0e}"
        if classes == 2 and voters > verify.LEVELS:
            number, limit = f"{voters:,} levels", f"at most {verify.LEVELS}"
        raise ParameterError(
            f"voters is {voters} and classes {classes}; they have {number}, and {limit} are "
            "priced: take rule 'ladder' or 'permute-and-flip', of which a bound is proved."
        )


@lru_cache(maxsize=256)
def histograms(total: int, classes: int) -> IntVector:
    """Return all counts n of C classes with a given sum, shape (histograms, C), ascending."""
    return read_only(verify.counts(total, classes))


@dataclass(frozen=True)
class Level:
    """The configurations of s edges.

    Attributes:
        edges: s.
        signed: number of voters on each pair of classes y < z, above 0 for y -> z, below for
            z -> y; shape (configurations, pairs).
        parent: index, in the level before, of the configuration without the last edge.
        grown: the slice of the configurations whose last edge is each oriented pair.
        opposite: index, in this level, of the configuration with every edge reversed.
    """

    edges: int
    signed: IntVector
    parent: IntVector
    grown: tuple[tuple[tuple[int, int], slice], ...]
    opposite: IntVector


class Configurations:
    """All configurations of K voters over C classes."""

    def __init__(self, voters: int, classes: int) -> None:
        require_walked(voters, classes)
        self.voters, self.classes = voters, classes
        self.pairs = tuple(itertools.combinations(range(classes), 2))

    @cached_property
    def up(self) -> tuple[IntVector, ...]:
        """For each sum t < K of n, the index of n + e_y, shape (C, histograms): y, n."""
        return tuple(
            np.array(verify.raised(total, self.classes), dtype=np.int64)
            for total in range(self.voters)
        )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels s = 0..K."""
        start = np.zeros(1, dtype=np.int64)
        levels = [Level(0, np.zeros((1, len(self.pairs)), dtype=np.int64), start, (), start)]
        last = start
        for _ in range(self.voters):
            level, last = self._grown(levels[-1], last)
            levels.append(level)
        return tuple(levels)

    def _grown(self, before: Level, last: IntVector) -> tuple[Level, IntVector]:
        """Return the next level, and for each of its configurations the last pair with an edge.

        Edges are added in the order of the pairs, so every configuration has exactly one parent.

        Args:
            before: the level before.
            last: index of the last pair with an edge, for each of its configurations.
        """
        # children[i, 2 at + reverse]: index of configuration i with one edge more on pair ``at``.
        children = np.full((len(before.signed), 2 * len(self.pairs)), -1)
        signed, parents, lasts, slices, count = [], [], [], [], 0
        for at, pair in enumerate(self.pairs):
            for reverse, sign in enumerate((1, -1)):
                # No voters on both directions of a pair.
                fits = np.flatnonzero((last <= at) & (before.signed[:, at] * sign >= 0))
                longer = before.signed[fits]
                longer[:, at] += sign
                acyclic = np.flatnonzero(~self._circles(longer))
                parent = fits[acyclic]
                children[parent, 2 * at + reverse] = np.arange(count, count + acyclic.size)
                slices.append((pair[::sign], slice(count, count + acyclic.size)))
                signed.append(longer[acyclic])
                parents.append(parent)
                lasts.append(np.full(acyclic.size, at))
                count += acyclic.size
        # The opposite of parent + edge is the parent's opposite + the reversed edge: column ^ 1.
        opposite = np.concatenate(
            [children[before.opposite[parent], column ^ 1] for column, parent in enumerate(parents)]
        )
        level = Level(
            before.edges + 1,
            np.concatenate(signed),
            np.concatenate(parents),
            tuple(slices),
            opposite,
        )
        return level, np.concatenate(lasts)

    def _circles(self, signed: IntVector) -> npt.NDArray[np.bool_]:
        """Whether each configuration has edges y -> z, z -> w and w -> y, for any three classes."""
        index = {pair: at for at, pair in enumerate(self.pairs)}
        cyclic = np.zeros(len(signed), dtype=bool)
        for y, z, w in itertools.combinations(range(self.classes), 3):
            one, two, across = (signed[:, index[pair]] for pair in ((y, z), (z, w), (y, w)))
            cyclic |= (one * two > 0) & (one * across < 0)
        return cyclic

    def walk(self, values: Vector, b: float, c: float) -> Iterator[tuple[Level, Matrix, Matrix]]:
        """Yield each level with E A and E' A, shape (configurations, loops).

        Args:
            values: A at the histograms of K votes, shape (histograms,). With Python integers in
                it, and integers in proportion for b and c, level s is exact but for the factor
                (b + c)^s of both E A and E' A.
            b: probability of the vote y on an edge y -> z.
            c: probability of the vote z, 1 - b.
        """
        table = values.reshape(1, -1)
        yield self.levels[0], table, table
        for level in self.levels[1:]:
            up = self.up[self.voters - level.edges]
            grown = np.empty((len(level.signed), up.shape[1]), dtype=table.dtype)
            for (y, z), block in level.grown:
                # Configurations with this last edge; up[y] maps the counts n of loops to n + e_y.
                before = table[level.parent[block]]
                grown[block] = b * before[:, up[y]] + c * before[:, up[z]]
            table = grown
            yield level, table, table[level.opposite]


def voters_in_words(classes: int, signed: Sequence[int], loops: Sequence[int]) -> tuple[str, str]:
    """Describe a configuration in words, under both neighbours; S are the first classes, from 0."""
    sides: list[tuple[str, str]] = []
    for (y, z), count in zip(itertools.combinations(range(classes), 2), signed, strict=True):
        if count:
            one, other = (y, z) if count > 0 else (z, y)
            ends = f"{abs(count)} voters at {{}} with b and {{}} with c"
            sides.append((ends.format(one, other), ends.format(other, one)))
    alike = [f"{n} voters at {y}" for y, n in enumerate(loops) if n]
    sides += [(text, text) for text in alike]
    one, other = ("; ".join(words) for words in zip(*sides, strict=True))
    return one, other


@lru_cache(maxsize=4)
def configurations(voters: int, classes: int) -> Configurations:
    """Return the configurations of a size, cached."""
    return Configurations(voters, classes)


@lru_cache(maxsize=16)
def variables(inputs: SortedHistograms) -> IntVector:
    """Return the variable of each class at each histogram of K votes: (histograms, C)."""
    return read_only(inputs.variables_of(histograms(inputs.records, inputs.categories)))
