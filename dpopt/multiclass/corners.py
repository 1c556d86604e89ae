"""All corner configurations that decide whether a plurality is private, priced in floats.

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
loops at once, and with b and c exchanged for E' A. Reversing all edges exchanges E A and E' A, so
the first edge of a configuration is y -> z with y < z. `dpopt.verify` does the same walk in
integers, one configuration after the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Separation, make_rows
from dpopt.table import SortedHistograms
from dpopt.table.histograms import sorted_histograms
from dpopt.table.inputs import read_only

# Slack within which a row is tight, as a share of the uniform kernel's; tight rows per variable,
# and rows added in one round of the solve, for each size of S.
_TIGHT, _MOST_TIGHT, _ADDED = 1e-9, 100, 150


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


Level = tuple[IntVector, list[tuple[tuple[int, int], slice, IntVector]]]
"""The configurations of so many voters on edges, up to reversing all of them.

First the number of voters on each pair of classes y < z, above 0 for y -> z, below 0 for z ->
y: shape (configurations, pairs). Then for each last edge y -> z these classes, the configurations
with it as a slice, and their indices without one voter on it in the level before.
"""


class Configurations:
    """All configurations of K voters over C classes."""

    def __init__(self, voters: int, classes: int) -> None:
        require_walked(voters, classes)
        self.voters, self.classes = voters, classes
        self.pairs = tuple(itertools.combinations(range(classes), 2))
        # Kinds of voters: loops y -> y, then each pair in both directions.
        self.kinds = (
            *((y, y) for y in range(classes)),
            *self.pairs,
            *(pair[::-1] for pair in self.pairs),
        )

    @cached_property
    def up(self) -> tuple[IntVector, ...]:
        """For each sum t < K of n, the index of n + e_y, shape (C, histograms): y, n."""
        return tuple(
            np.array(verify.raised(total, self.classes), dtype=np.int64)
            for total in range(self.voters)
        )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The configurations of 0..K voters on edges.

        Edges are added in the order of the pairs, so every configuration is grown from one other.
        """
        levels: list[Level] = [(np.zeros((1, len(self.pairs)), dtype=np.int64), [])]
        last = np.zeros(1, dtype=np.int64)
        for edges in range(self.voters):
            before, grown, blocks, lasts, count = levels[-1][0], [], [], [], 0
            for at, sign in itertools.product(range(len(self.pairs)), (1, -1) if edges else (1,)):
                # No voters on both directions of a pair.
                parents = np.flatnonzero((last <= at) & (before[:, at] * sign >= 0))
                signed = before[parents]
                signed[:, at] += sign
                acyclic = ~self._circles(signed)
                blocks.append(signed[acyclic])
                rows = slice(count, count := count + len(blocks[-1]))
                grown.append((self.pairs[at][::sign], rows, parents[acyclic]))
                lasts.append(np.full(len(blocks[-1]), at))
            levels.append((np.concatenate(blocks), grown))
            last = np.concatenate(lasts)
        return tuple(levels)

    def _circles(self, signed: IntVector) -> npt.NDArray[np.bool_]:
        """Whether each configuration has edges y -> z, z -> w and w -> y, for any three classes."""
        index = {pair: at for at, pair in enumerate(self.pairs)}
        cyclic = np.zeros(len(signed), dtype=bool)
        for y, z, w in itertools.combinations(range(self.classes), 3):
            one, two, across = (signed[:, index[pair]] for pair in ((y, z), (z, w), (y, w)))
            cyclic |= (one * two > 0) & (one * across < 0)
        return cyclic

    def walk(self, values: Vector, b: float, c: float) -> Iterator[tuple[IntVector, Matrix]]:
        """Yield each level's signed edges, with E A and E' A: shape (2, configurations, loops).

        Args:
            values: A at the histograms of K votes, shape (histograms,). With Python integers in
                it, and integers in proportion for b and c, those of s edges are exact but for the
                factor (b + c)^s of both E A and E' A.
            b: probability of the vote y on an edge y -> z.
            c: probability of the vote z, 1 - b.
        """
        tables = np.stack([values, values])[:, None]
        # (b, c) and (c, b) for the two neighbours, to be multiplied with their tables.
        to_y = np.array([b, c], dtype=tables.dtype)[:, None, None]
        for edges, (signed, last_edges) in enumerate(self.levels):
            if edges:
                up = self.up[self.voters - edges]
                grown = np.empty((2, len(signed), up.shape[1]), dtype=tables.dtype)
                for (y, z), rows, parents in last_edges:
                    # up[y] maps the counts n of loops to n + e_y.
                    before = tables[:, parents]
                    grown[:, rows] = to_y * before[..., up[y]] + to_y[::-1] * before[..., up[z]]
                tables = grown
            yield signed, tables

    def pmf(self, signed: IntVector, loops: IntVector, b: float, c: float) -> Matrix:
        """Return the pmf of N under E at some configurations, shape (configurations, histograms).

        This is the walk transposed, for one voter after the other; one at a loop is on y -> y.
        """
        counts = np.concatenate([loops, np.maximum(signed, 0), np.maximum(-signed, 0)], axis=1)
        # Axis 0: configurations; axis 1: the kind of each of the K voters.
        kinds = np.tile(np.arange(len(self.kinds)), len(signed))
        kinds = np.repeat(kinds, counts.ravel()).reshape(len(signed), self.voters)
        pmf = np.ones((len(signed), 1))
        for total, (up, kind) in enumerate(zip(self.up, kinds.T, strict=True)):
            grown = np.zeros((len(signed), len(histograms(total + 1, self.classes))))
            for at in np.unique(kind).tolist():
                rows = np.flatnonzero(kind == at)
                for vote, chance in zip(self.kinds[at], (b, c), strict=True):
                    grown[rows[:, None], up[vote]] += chance * pmf[rows]
            pmf = grown
        return pmf


@lru_cache(maxsize=4)
def configurations(voters: int, classes: int) -> Configurations:
    """Return the configurations of a size, cached."""
    return Configurations(voters, classes)


@lru_cache(maxsize=16)
def _variables(inputs: SortedHistograms) -> IntVector:
    """Return the variable of each class at each histogram of K votes: (histograms, C)."""
    return read_only(inputs.variables_of(histograms(inputs.records, inputs.categories)))


class Pricing:
    """Separation oracle: f at all corner configurations of K voters, at a kernel k[lambda, c].

    The voters have Delta = 0. For delta above 0, sets S of several outputs are priced too. A
    configuration is named as `dpopt.verify` names its row: ("corner", number of outputs of S, which
    are the first classes, voters on each pair of classes, voters at a loop of each class).

    Raises:
        ParameterError: if there are too many configurations.
    """

    def __init__(
        self, voters: int, classes: int, epsilon: float, allowance: float, delta: float = 0.0
    ) -> None:
        product = allowance * epsilon
        self.delta, self.inputs = delta, sorted_histograms(voters, classes)
        # The variable of each class at each histogram of K votes, (histograms, C), and how many.
        self.variables, self.size = _variables(self.inputs), self.inputs.size
        self.configurations = configurations(voters, classes)
        self.exp_epsilon = math.exp(product)
        self.b = 1.0 / (1.0 + math.exp(-epsilon))
        self.c = math.exp(-epsilon) * self.b
        self.sets = range(1, classes if delta > 0.0 else 2)
        # The slack of the uniform kernel for a single output: delta - f, with f = -(R - 1) / C.
        self.uniform_slack = math.expm1(product) / classes + delta

    def excesses(
        self, kernel: Vector, outputs: int
    ) -> Iterator[tuple[IntVector, IntVector, Matrix]]:
        """Yield edges, loops, and f, shape (configurations, loops), for sets S of one size."""
        # Axis 0: histograms of K votes; axis 1: classes.
        in_set = kernel[self.variables][:, :outputs].sum(axis=1)
        walk = self.configurations.walk(in_set, self.b, self.c)
        for edges, (signed, tables) in enumerate(walk):
            loops = histograms(self.inputs.records - edges, self.inputs.categories)
            for one in (0, 1) if edges else (0,):
                f = tables[one] - self.exp_epsilon * tables[1 - one]
                yield (-signed if one else signed), loops, f

    def price(self, kernel: Vector) -> tuple[float, verify.Name]:
        """Return the largest f, and the name of its configuration."""
        best, name = -math.inf, ()
        for outputs in self.sets:
            for signed, loops, excess in self.excesses(kernel, outputs):
                row, column = divmod(int(np.argmax(excess)), excess.shape[1])
                if excess[row, column] > best:
                    best = float(excess[row, column])
                    ends = tuple(signed[row].tolist()), tuple(loops[column].tolist())
                    name = ("corner", outputs, *ends)
        return best, name

    def __call__(self, kernel: Vector) -> Separation:
        """Separate k[lambda, c] from the set of private kernels; see `dpopt.Problem`."""
        rows, worst, count = [], 0.0, 0
        for outputs in self.sets:
            blocks = []
            for signed, loops, excess in self.excesses(kernel, outputs):
                count += excess.size
                at = excess.argmax(axis=1)
                largest = excess[np.arange(len(at)), at]
                worst = max(worst, (float(largest.max()) - self.delta) / self.uniform_slack)
                broken = np.flatnonzero(largest > self.delta)
                blocks.append((largest[broken], signed[broken], loops[at[broken]]))
            rows += [row for row, *_ in self._distinct(outputs, blocks, _ADDED)]
        matrix = np.array(rows).reshape(-1, self.size)
        cut = make_rows(matrix / self.uniform_slack, upper=self.delta / self.uniform_slack)
        return Separation(cut, worst, count)

    def tight(self, kernel: Vector) -> list[verify.Name]:
        """Return the names of the rows that are tight at a kernel, the tightest first."""
        limit = self.delta - _TIGHT * self.uniform_slack
        names = list[tuple[float, verify.Name]]()
        for outputs in self.sets:
            blocks = []
            for signed, loops, excess in self.excesses(kernel, outputs):
                row, at = np.nonzero(excess >= limit)
                blocks.append((excess[row, at], signed[row], loops[at]))
            for _, top, *ends in self._distinct(outputs, blocks, _MOST_TIGHT * self.size):
                names.append((-top, ("corner", outputs, *(tuple(end.tolist()) for end in ends))))
        return [name for _, name in sorted(names, key=lambda pair: pair[0])]

    def _distinct(
        self, outputs: int, blocks: list[tuple[Vector, IntVector, IntVector]], most: int
    ) -> Iterator[tuple[Vector, float, IntVector, IntVector]]:
        """Yield rows, each once, with their f, edges and loops; the largest f first.

        Relabelling classes repeats rows.
        """
        tops, signed, loops = map(np.concatenate, zip(*blocks, strict=True))
        order, keys = np.argsort(-tops, kind="stable"), set[bytes]()
        copies = math.factorial(outputs) * math.factorial(self.inputs.categories - outputs)
        # Configurations whose rows are computed at once, which bounds memory.
        step = min(most * copies, 2_000)
        for start in range(0, len(order), step):
            chunk = order[start : start + step]
            rows = self.rows(outputs, signed[chunk], loops[chunk])
            # Rows that agree to this many decimals are duplicates. Adding 0 turns -0.0 into 0.0, so
            # that equal rows have equal bytes.
            for index, row, key in zip(chunk, rows, rows.round(11) + 0.0, strict=True):
                if len(keys) == most:
                    return
                if key.tobytes() not in keys:
                    keys.add(key.tobytes())
                    yield row, float(tops[index]), signed[index], loops[index]

    def rows(self, outputs: int, signed: IntVector, loops: IntVector) -> Matrix:
        """Return f's coefficients on k[lambda, c] at configurations: (configurations, size)."""
        pmf, other = (
            self.configurations.pmf(sign * signed, loops, self.b, self.c) for sign in (1, -1)
        )
        rows = np.zeros((len(signed), self.size))
        # S are the first classes: add up the weights of all histograms that share a variable.
        for column in range(outputs):
            np.add.at(rows.T, self.variables[:, column], (pmf - self.exp_epsilon * other).T)
        return rows


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
