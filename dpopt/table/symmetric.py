"""Orbits of generators by search, also of none, and orbits of words by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import pascal
from scipy.sparse.csgraph import connected_components

from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.privacy.graph import all_pairs, directed_pairs
from dpopt.table.inputs import LARGEST_WRITTEN, Edges, Inputs, Name, edges_claim, read_only

Permutation = npt.NDArray[np.int64]
Generator = tuple[Permutation, Permutation]
"""(sigma, tau): input x goes to sigma[x], output y to tau[y]."""

# Said of what was decided.
_SYMMETRIC = "; one of each orbit under its symmetries was decided"


def orbits(size: int, images: Iterable[IntVector]) -> IntVector:
    """Return the orbit of each of 0..size-1 under permutations, shape (size,).

    Orbits are numbered in the order of their first elements.
    """
    listed = list(images)
    if not listed:
        return np.arange(size)
    start = np.tile(np.arange(size), len(listed))
    links = sp.csr_array(
        (np.ones(start.size, dtype=np.int8), (start, np.concatenate(listed))), shape=(size, size)
    )
    return connected_components(links, directed=False)[1].astype(np.int64)


def _firsts(labels: IntVector) -> IntVector:
    """Return the first element of each orbit, of orbits numbered in the order of these."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(labels), prepend=-1))


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Inputs):
    """Inputs along a graph; symmetries make (x, y) and (sigma x, tau y) the same variable.

    Without a symmetry, variable x * outputs + y is (x, y).

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        pairs: neighbours, shape (pairs, 2); kept in both directions and sorted, as
            `dpopt.privacy.directed_pairs` returns them. None if every two inputs are neighbours.
        generators: symmetries: permutations (sigma, tau) of the inputs and of the outputs, where
            sigma maps neighbours to neighbours.

    Raises:
        ParameterError: for pairs that are no edges, or generators that are no symmetries.
    """

    inputs: int
    outputs: int
    pairs: IntVector | None = None
    generators: tuple[Generator, ...] = ()

    def __post_init__(self) -> None:
        """Check that the generators are symmetries of the graph, on which proofs rely."""
        n = self.inputs
        if self.pairs is not None and np.size(self.pairs):
            object.__setattr__(self, "pairs", directed_pairs(self.pairs, n))
        # Pairs (x, y) among which orbits are searched; memory fixes it.
        if self.generators and n * self.outputs > 2**26:
            raise ParameterError(
                f"symmetry is given for {n} inputs and {self.outputs} outputs; orbits are searched "
                "among at most 67,108,864 pairs."
            )
        moves = [(side, move) for pair in self.generators for side, move in enumerate(pair)]
        for side, move in moves:
            if not np.array_equal(np.sort(move), np.arange((n, self.outputs)[side])):
                raise ParameterError("generators hold what is no permutation.")
        if self.pairs is None:
            return
        codes = self.pairs @ np.array([n, 1])
        for sigma, _ in self.generators:
            if not np.array_equal(np.sort(sigma[self.pairs] @ np.array([n, 1])), codes):
                raise ParameterError("generators must map neighbours to neighbours.")

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from."""
        return "graph", self.inputs, self.outputs, self.pairs, self.generators

    @property
    def size(self) -> int:
        """Number of variables; without a symmetry they are not listed: they may be too many."""
        return len(self.rows) if self.generators else self.inputs * self.outputs

    @cached_property
    def _variables(self) -> IntVector:
        """The variable of each pair (x, y), shape (inputs, outputs)."""
        sides = [(s[:, None] * self.outputs + t).ravel() for s, t in self.generators]
        return orbits(self.inputs * self.outputs, sides).reshape(self.inputs, self.outputs)

    @cached_property
    def _input_orbits(self) -> IntVector:
        return orbits(self.inputs, [sigma for sigma, _ in self.generators])

    @cached_property
    def _output_orbits(self) -> IntVector:
        return orbits(self.outputs, [tau for _, tau in self.generators])

    @cached_property
    def representatives(self) -> IntVector:
        """The first pair (x, y) of each variable, shape (size, 2)."""
        return np.stack(np.divmod(_firsts(self._variables.ravel()), self.outputs), axis=1)

    @cached_property
    def rows(self) -> IntVector:
        """The orbit of inputs of each variable."""
        return self._input_orbits[self.representatives[:, 0]]

    @cached_property
    def columns(self) -> IntVector:
        """The orbit of outputs of each variable."""
        return self._output_orbits[self.representatives[:, 1]]

    @cached_property
    def counts(self) -> IntVector:
        """Number of outputs of one input in each variable: its pairs over its inputs."""
        return np.bincount(self._variables.ravel()) // self.row_sizes[self.rows]

    @cached_property
    def row_sizes(self) -> IntVector:
        """Number of inputs in each orbit of inputs."""
        return np.bincount(self._input_orbits)

    @cached_property
    def column_sizes(self) -> IntVector:
        """Number of outputs in each orbit of outputs."""
        return np.bincount(self._output_orbits)

    @cached_property
    def neighbours(self) -> IntVector:
        """Pairs; in a complete graph all variables with the same orbit of outputs are a group.

        Groups are padded with their last variable.
        """
        if self.pairs is None and self.inputs > 1:
            order = np.argsort(self.columns, kind="stable")
            members = np.bincount(self.columns)
            last = np.cumsum(members)[:, None] - 1
            groups = order[np.minimum(last + 1 - members[:, None] + np.arange(members.max()), last)]
            # The only variable of an orbit of outputs has no neighbour but itself.
            return groups[members > 1]
        if self.generators:
            return super().neighbours
        # Each edge at each output, without a list of all edges with their outputs.
        outputs = np.arange(self.outputs)[:, None]
        return (self._edge_ends[:, None, :] * self.outputs + outputs).reshape(-1, 2)

    @cached_property
    def edges(self) -> Edges:
        """One edge of each orbit of edges, with its outputs."""
        ends = self._edge_ends
        if len(ends) * self.outputs > LARGEST_WRITTEN:
            raise ParameterError(
                f"the graph has {len(ends):,} edges up to symmetry with {self.outputs} outputs; at "
                f"most {LARGEST_WRITTEN:,} of both together are taken: give more symmetries."
            )
        return Edges.of_outputs(ends, *(self._variables[side] for side in ends.T))

    @cached_property
    def _edge_ends(self) -> IntVector:
        """One edge of each orbit, in one of its directions, shape (edge orbits, 2)."""
        pairs = all_pairs(self.pairs, self.inputs)
        if not self.generators:
            return pairs[pairs[:, 0] < pairs[:, 1]]
        # Images of the directed edges, as indices of the sorted pairs.
        code = np.array([self.inputs, 1])
        ends = [pairs[:, ::-1], *(sigma[pairs] for sigma, _ in self.generators)]
        images = [np.searchsorted(pairs @ code, end @ code) for end in ends]
        return pairs[_firsts(orbits(len(pairs), images))]

    def rows_of(self, located: IntVector) -> IntVector:
        """Return the orbit of each input."""
        return self._input_orbits[located]

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variable of each output of inputs, shape (queries, outputs)."""
        return self._variables[located]

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return for each x the index-th output y with (x, y) in the variable."""
        if not self.generators:
            return variables % self.outputs
        chosen = np.empty_like(variables)
        for x in np.unique(located).tolist():
            queries, order = located == x, np.argsort(self._variables[x], kind="stable")
            first = np.searchsorted(self._variables[x][order], variables[queries])
            chosen[queries] = order[first + index[queries]]
        return chosen

    def claim(self) -> str:
        """Return the sentence for a certificate: between which inputs the table is private."""
        said = edges_claim(self.inputs, self.pairs)
        return said + _SYMMETRIC if self.generators else said

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output as numbers, from their variables."""
        if self.generators:
            return super().words(first, second)
        (x, y), other = divmod(first, self.outputs), second // self.outputs
        return x, other, y


@dataclass(frozen=True, eq=False, repr=False)
class Words(Inputs):
    """Words as inputs and outputs, under all permutations of symbols and positions, by formula.

    The group permutes the symbols at each position, and the positions. Two pairs (x, y) are the
    same variable if x and y differ in equally many positions, which gives d + 1 variables.

    Attributes:
        symbols: q, number of symbols at each position, at least 2.
        positions: d, at least 1.
        hamming: whether neighbours differ in one position; else every two words are neighbours.
    """

    symbols: int
    positions: int
    hamming: bool

    def __post_init__(self) -> None:
        if self.symbols < 2 or self.positions < 1:
            raise ParameterError(
                f"words have {self.positions} positions of {self.symbols} symbols; they must have "
                "at least 1 position of at least 2 symbols."
            )

    @property
    def inputs(self) -> int:
        """Number of words."""
        return self.symbols**self.positions

    @property
    def outputs(self) -> int:
        """Number of words."""
        return self.inputs

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from."""
        return "words", self.symbols, self.positions, self.hamming

    @property
    def _distances(self) -> range:
        """In how many positions neighbours differ."""
        return range(1, 2 if self.hamming else self.positions + 1)

    @cached_property
    def _place_values(self) -> IntVector:
        """By how much a word's number grows when the symbol at each position grows by 1."""
        return self.symbols ** np.arange(self.positions)[::-1]

    @cached_property
    def representatives(self) -> IntVector:
        """The word 0 and one with symbol 1 at the first positions, by variable."""
        ends = np.append(0, np.cumsum(self._place_values))
        return np.stack([np.zeros_like(ends), ends], axis=1)

    @cached_property
    def rows(self) -> IntVector:
        """The orbit of inputs of each variable: there is one, as all words are alike."""
        return np.zeros(self.positions + 1, dtype=np.int64)

    @cached_property
    def counts(self) -> IntVector:
        """Number of words at each distance k: C(d, k) (q - 1)^k."""
        d, others = self.positions, self.symbols - 1
        return read_only([math.comb(d, k) * others**k for k in range(d + 1)])

    @property
    def row_sizes(self) -> list[int]:
        """Number of words in the one orbit of inputs."""
        return [self.inputs]

    @cached_property
    def edges(self) -> Edges:
        """One edge for each distance of neighbours, its outputs y counted by their distances."""
        changes = [self._changes(distance) for distance in self._distances]
        first, second = np.concatenate([np.argwhere(counts) for counts in changes]).T
        entries = [counts[counts > 0] for counts in changes]
        starts = np.append(0, np.cumsum([len(counts) for counts in entries]))
        ends = self.representatives[self._distances]
        return Edges(ends, first, second, np.concatenate(entries), starts)

    def _changes(self, t: int) -> IntVector:
        """Return the number of y by variables (x, y), (x', y), for x and x' that differ at t."""
        d, q = self.positions, self.symbols
        # Axes: differences of y from x, and from x'. Where these agree, y differs from both at a
        # positions; of the t others it agrees with x at b, and with x' at c.
        counts = np.zeros((d + 1, d + 1), dtype=np.int64)
        for a, b, c in product(range(d - t + 1), range(t + 1), range(t + 1)):
            both = math.comb(d - t, a) * (q - 1) ** a * (q - 2) ** max(t - b - c, 0)
            counts[a + t - b, a + t - c] += both * math.comb(t, b) * math.comb(t - b, c)
        return counts

    def rows_of(self, located: IntVector) -> IntVector:
        """Return the orbit of each word: there is one."""
        return np.zeros(len(located), dtype=np.int64)

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variable of each output of words, shape (queries, outputs)."""
        x, y = located[:, None], np.arange(self.outputs)
        distances = np.zeros((x.size, y.size), dtype=np.int64)
        for _ in range(self.positions):
            (x, one), (y, other) = np.divmod(x, self.symbols), np.divmod(y, self.symbols)
            distances += one != other
        return distances

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return for each x the index-th word that differs from it in so many positions."""
        words, symbols, k = located.copy(), self.symbols, variables
        # subsets[m, k] is the number of sets of k among m positions.
        subsets = pascal(self.positions + 1, kind="lower").astype(np.int64)
        index, rank = np.divmod(index, subsets[-1, k])
        for before, place_value in zip(subsets[-2::-1], self._place_values, strict=True):
            # Sets of k of the remaining positions: first those without this one, then with it.
            without = before[k]
            changed = rank >= without
            rank, k = np.where(changed, rank - without, rank), k - changed
            # A changed position takes one of the symbols - 1 others, cyclically after its own.
            fewer, shift = np.divmod(index, symbols - 1)
            index = np.where(changed, fewer, index)
            symbol = located // place_value % symbols
            moved = (symbol + 1 + shift) % symbols - symbol
            words += np.where(changed, moved, 0) * place_value
        return words

    def claim(self) -> str:
        """Return the sentence for a certificate: between which words the table is private."""
        said = edges_claim(self.inputs, None)
        if self.hamming:
            edges = self.inputs * int(self.counts[1])
            said = f"the kernel is private along {edges} directed edges of {self.inputs} inputs"
        return said + _SYMMETRIC
