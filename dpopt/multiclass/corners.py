"""The walk over all corner configurations that decide whether a plurality is private, in floats.

For a set S of outputs let A(N) be the probability that the output is in S where the counts of the
votes are N, and f = E A(N) - e^(m epsilon) E' A(N): privacy says f <= delta for all voters. By the
theorems of docs/theorems/classes.md the largest f stands where every voter is at a corner: at a
loop, with the vote y on both sides, or on an edge y -> z, voting y with b and z with c on one side,
the other way round on the other; and no two voters are on y -> z and on z -> y, no three on
y -> z, z -> w and w -> y.

So a configuration is a signed number of voters on each of the C (C - 1) / 2 pairs of classes, no
three of them in a circle, and the rest of the voters at loops. Over three classes all circles are
gone; over four, longer ones stay where no edge crosses them. The edges between two classes outside
of S are needed: without them programs return kernels that are not private.

The walk. Let T be a function of the counts of the voters who are not yet on an edge, at first A.
One voter more on y -> z makes it T'(n) = b T(n + e_y) + c T(n + e_z) for the side P, for all places
of the loops n at once; the side P' is the same for the configuration with every edge turned around.
Level s of the walk holds this table for every configuration of s edges. `dpopt.verify` walks the
same in integers, one configuration after the other.
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
    """Refuse sizes with too many configurations."""
    if not verify.walked(voters, classes):
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
    """Return all counts n of C classes with a total, shape (histograms, C), in rising order."""
    return read_only(verify.counts(total, classes))


@dataclass(frozen=True)
class Level:
    """The configurations of s edges.

    Attributes:
        edges: s.
        signed: number of voters on each pair of classes y < z, above 0 for y -> z, below for
            z -> y; shape (configurations, pairs).
        parent: the place in the level before of the configuration with its last edge less.
        grown: slices of the configurations by that edge, an oriented pair.
        opposite: the place in this level of the configuration with every edge turned around.
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
    def count(self) -> int:
        """Number of configurations with their loops."""
        return sum(
            len(level.signed) * len(histograms(self.voters - level.edges, self.classes))
            for level in self.levels
        )

    @cached_property
    def up(self) -> tuple[IntVector, ...]:
        """For each total t < K, the place of n + e_y for each class y and n: (C, histograms)."""
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
        """Return the next level, and the place of the last pair with an edge of each of its own.

        Every configuration follows the one with its last edge less, and no other.
        """
        children = np.full((len(before.signed), 2 * len(self.pairs)), -1)
        signed, parents, lasts, slices, count = [], [], [], [], 0
        for at, pair in enumerate(self.pairs):
            for way, sign in enumerate((1, -1)):
                # No voters on both directions of a pair.
                fits = np.flatnonzero((last <= at) & (before.signed[:, at] * sign >= 0))
                longer = before.signed[fits]
                longer[:, at] += sign
                whole = np.flatnonzero(~self._circles(longer))
                parent = fits[whole]
                children[parent, 2 * at + way] = np.arange(count, count + whole.size)
                slices.append((pair[::sign], slice(count, count + whole.size)))
                signed.append(longer[whole])
                parents.append(parent)
                lasts.append(np.full(whole.size, at))
                count += whole.size
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
        """Whether a configuration has y -> z, z -> w and w -> y, for any three classes."""
        place = {pair: at for at, pair in enumerate(self.pairs)}
        circles = np.zeros(len(signed), dtype=bool)
        for y, z, w in itertools.combinations(range(self.classes), 3):
            one, two, across = (signed[:, place[pair]] for pair in ((y, z), (z, w), (y, w)))
            circles |= (one * two > 0) & (one * across < 0)
        return circles

    def walk(self, values: Vector, b: float, c: float) -> Iterator[tuple[Level, Matrix, Matrix]]:
        """Yield for each level E A and E' A over (configuration, loops).

        Args:
            values: A at the histograms of K votes, shape (histograms,).
            b: chance of y on an edge y -> z.
            c: of z.
        """
        table = values.reshape(1, -1)
        yield self.levels[0], table, table
        for level in self.levels[1:]:
            up = self.up[self.voters - level.edges]
            grown = np.empty((len(level.signed), up.shape[1]))
            for (y, z), part in level.grown:
                before = table[level.parent[part]]
                grown[part] = b * before[:, up[y]] + c * before[:, up[z]]
            table = grown
            yield level, table, table[level.opposite]


def voters_in_words(classes: int, signed: Sequence[int], loops: Sequence[int]) -> tuple[str, str]:
    """Return a configuration in words, on both sides; classes count from 0, S being the first."""
    sides: list[tuple[str, str]] = []
    for (y, z), many in zip(itertools.combinations(range(classes), 2), signed, strict=True):
        if many:
            one, other = (y, z) if many > 0 else (z, y)
            ends = f"{abs(many)} voters at {{}} with b and {{}} with c"
            sides.append((ends.format(one, other), ends.format(other, one)))
    alike = [f"{n} voters at {y}" for y, n in enumerate(loops) if n]
    sides += [(said, said) for said in alike]
    one, other = ("; ".join(words) for words in zip(*sides, strict=True))
    return one, other


@lru_cache(maxsize=4)
def configurations(voters: int, classes: int) -> Configurations:
    """Return the configurations of a size, those made last kept."""
    return Configurations(voters, classes)


@lru_cache(maxsize=16)
def variables(inputs: SortedHistograms) -> IntVector:
    """Return the variable of each class at each histogram of K votes: (histograms, C)."""
    return read_only(inputs.variables_of(histograms(inputs.records, inputs.categories)))
