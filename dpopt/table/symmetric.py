"""Inputs with symmetries: orbits of generators, by a search, and those of words, by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.table.inputs import (
    LARGEST_WRITTEN,
    Edges,
    Inputs,
    Name,
    check_pairs,
    checked_places,
    edges_claim,
    read_only,
)

Permutation = npt.NDArray[np.int64]
Generator = tuple[Permutation, Permutation]
"""(sigma, tau): input x goes to sigma[x], output y to tau[y]."""

# Pairs (x, y) whose orbits are searched; memory fixes it.
_MOST_SEARCHED = 2**26


def orbits(size: int, images: Iterable[IntVector]) -> IntVector:
    """Return the orbit of each of ``size`` points under maps that are given as arrays.

    Orbits are numbered in the order of their first points.
    """
    listed = list(images)
    start = np.tile(np.arange(size), len(listed))
    links = sp.csr_array(
        (np.ones(start.size, dtype=np.int8), (start, np.concatenate([*listed, []]).astype(int))),
        shape=(size, size),
    )
    return connected_components(links, directed=False)[1].astype(np.int64)


def _edges_of(entries: Iterable[tuple[int, int, int, int]], ends: IntVector) -> Edges:
    """Return edges from entries (edge, first, second, count), in the order of the edges."""
    edge, first, second, counts = np.array(list(entries), dtype=np.int64).reshape(-1, 4).T
    starts = np.searchsorted(edge, np.arange(len(ends) + 1))
    return Edges(ends, first, second, counts, starts)


@dataclass(frozen=True, eq=False, repr=False)
class Generated(Inputs):
    """Orbits of pairs under generators: (x, y) is one variable with (sigma x, tau y).

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        generators: permutations (sigma, tau) of the inputs and of the outputs.
        pairs: directed neighbours, sorted, shape (pairs, 2); None for all. Each sigma maps them to
            themselves.
    """

    inputs: int
    outputs: int
    generators: tuple[Generator, ...]
    pairs: IntVector | None

    def __post_init__(self) -> None:
        """Refuse what are no symmetries of the graph: a proof relies on them.

        Raises:
            ParameterError: if a generator is none, pairs are not sorted or lack a direction, or
                there are more than 2^26 pairs of input and output.
        """
        n = self.inputs
        if n * self.outputs > _MOST_SEARCHED:
            raise ParameterError(
                f"symmetry is given for {n} inputs and {self.outputs} outputs; orbits are searched "
                f"among at most {_MOST_SEARCHED:,} pairs."
            )
        moves = [(side, move) for pair in self.generators for side, move in enumerate(pair)]
        for side, move in moves:
            if not np.array_equal(np.sort(move), np.arange((n, self.outputs)[side])):
                raise ParameterError("generators hold what is no permutation.")
        if self.pairs is None:
            return
        check_pairs(self.pairs, n)
        codes = self.pairs @ np.array([n, 1])
        for sigma, _ in self.generators:
            if not np.array_equal(np.sort(sigma[self.pairs] @ np.array([n, 1])), codes):
                raise ParameterError("generators must map neighbours to neighbours.")

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from."""
        return "orbits", self.inputs, self.outputs, self.generators, self.pairs

    @cached_property
    def _variables(self) -> IntVector:
        """The variable of each pair, shape (inputs, outputs)."""
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
        first = np.unique(self._variables.ravel(), return_index=True)[1]
        return np.stack(np.divmod(first, self.outputs), axis=1)

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
        """Number of outputs of one input in each variable."""
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
        """Pairs of different variables that an edge and an output join, each once.

        Of a complete graph all variables with an output are neighbours: a group for each orbit of
        outputs, filled up with its last variable.
        """
        if self.pairs is None:
            order = np.argsort(self.columns, kind="stable")
            members = np.bincount(self.columns)
            last = np.cumsum(members)[:, None] - 1
            groups = order[np.minimum(last + 1 - members[:, None] + np.arange(members.max()), last)]
            # What has an output to itself has no neighbour that differs.
            return groups[members > 1]
        found = np.zeros(0, dtype=np.int64)
        # A million entries at a time, so that memory does not grow with the edges.
        ends = self._edge_ends
        for part in np.array_split(ends, 1 + len(ends) * self.outputs // 2**20):
            one, other = (self._variables[part[:, side]].ravel() for side in (0, 1))
            codes = np.minimum(one, other) * self.size + np.maximum(one, other)
            found = np.unique(np.concatenate([found, codes[one != other]]))
        return np.stack(np.divmod(found, self.size), axis=1)

    @cached_property
    def edges(self) -> Edges:
        """One edge of each orbit, with its outputs."""
        ends = self._edge_ends
        if len(ends) * self.outputs > LARGEST_WRITTEN:
            raise ParameterError(
                f"symmetry leaves {len(ends)} orbits of edges with {self.outputs} outputs; at "
                f"most {LARGEST_WRITTEN:,} of both together are taken: give more symmetries."
            )
        size = self.size
        entries = list[tuple[int, int, int, int]]()
        for edge, (x, other) in enumerate(ends.tolist()):
            codes = self._variables[x] * size + self._variables[other]
            both, counts = np.unique(codes, return_counts=True)
            for code, count in zip(both.tolist(), counts.tolist(), strict=True):
                first, second = divmod(code, size)
                entries.append((edge, first, second, count))
        return _edges_of(entries, ends)

    @cached_property
    def _edge_ends(self) -> IntVector:
        """One edge of each orbit, in one of its directions, shape (edge orbits, 2)."""
        n = self.inputs
        if self.pairs is None:
            turned = np.arange(n * n).reshape(n, n).T.ravel()
            images = [(sigma[:, None] * n + sigma).ravel() for sigma, _ in self.generators]
            labels = orbits(n * n, [turned, *images])
            labels[:: n + 1] = labels.max() + 1
            first = np.unique(labels, return_index=True)[1][:-1]
            return np.stack(np.divmod(first, n), axis=1)
        codes = self.pairs[:, 0] * n + self.pairs[:, 1]
        ends = [self.pairs[:, ::-1], *(sigma[self.pairs] for sigma, _ in self.generators)]
        images = [np.searchsorted(codes, end @ np.array([n, 1])) for end in ends]
        return self.pairs[np.unique(orbits(len(codes), images), return_index=True)[1]]

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return inputs as checked numbers, and whether it was a single one."""
        return checked_places(data, self.inputs)

    def rows_of(self, located: IntVector) -> IntVector:
        """Return the orbit of each input."""
        return self._input_orbits[located]

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variable of each output of inputs, shape (queries, outputs)."""
        return self._variables[located]

    @cached_property
    def _by_variable(self) -> tuple[IntVector, IntVector]:
        """For each input its outputs by variable, and where those of a variable start."""
        starts = np.cumsum(self.counts) - self.counts
        order = np.argsort(self._variables, axis=1, kind="stable")
        return order, starts - starts[self.starts[self.rows]]

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return the outputs of an index among those that are in a variable with x, in order."""
        if len(located) < self.inputs:
            # To sort all outputs of all inputs would take longer.
            draws = zip(located.tolist(), variables.tolist(), index.tolist(), strict=True)
            outputs = [np.flatnonzero(self._variables[x] == v)[at] for x, v, at in draws]
            return np.array(outputs, dtype=np.int64)
        ordered, starts = self._by_variable
        return ordered[located, starts[variables] + index]

    def claim(self) -> str:
        """Say between which inputs a table is proved private."""
        said = edges_claim(self.inputs, self.pairs)
        return f"{said}; one of each orbit under its symmetries was decided"

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output, whose variables these are."""
        x, y = self.representatives[first].tolist()
        near = np.ones(self.inputs, dtype=bool)
        if self.pairs is not None:
            near = np.zeros(self.inputs, dtype=bool)
            near[self.pairs[self.pairs[:, 0] == x, 1]] = True
        # Of a variable with several inputs or outputs, the one whose neighbour is in the other.
        column = np.flatnonzero(self._variables[x] == first)
        there = (self._variables[:, column] == second) & near[:, None]
        there[x] = False
        if there.any():
            other, place = np.argwhere(there)[0].tolist()
            return x, other, int(column[place])
        return x, int(self.representatives[second, 0]), y


@dataclass(frozen=True, eq=False, repr=False)
class Words(Inputs):
    """Words as inputs and outputs, under all permutations of symbols and of places, by formula.

    Symbols may be permuted at each place, and places that have as many symbols. Two pairs (x, y)
    are one variable if their words differ in as many places, among the places of each size: for
    {0, 1}^d, if they have the same Hamming distance, so that there are d + 1 variables.

    Attributes:
        shape: number of symbols at each place, each at least 2.
        differences: in how many places neighbours differ, among those of each size of `sizes`;
            None if every two words are neighbours.
    """

    shape: tuple[int, ...]
    differences: tuple[tuple[int, ...], ...] | None

    def __post_init__(self) -> None:
        """Refuse what makes no words, or differences that no two of them have.

        Raises:
            ParameterError: if there are such.
        """
        if not self.shape or min(self.shape) < 2:
            raise ParameterError(f"shape is {self.shape}; each place must have at least 2 symbols.")
        known = set(self._distances[1:])
        if self.differences is not None and not (
            self.differences and known.issuperset(self.differences)
        ):
            raise ParameterError("differences must be numbers of places of each size, not all 0.")

    @property
    def inputs(self) -> int:
        """Number of words."""
        return math.prod(self.shape)

    @property
    def outputs(self) -> int:
        """Number of words."""
        return self.inputs

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from."""
        return "words", self.shape, self.differences

    @property
    def pairs(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two words are neighbours."""
        if self.differences is None:
            return None
        return np.argwhere(np.isin(self.table(), self._near))

    @cached_property
    def _near(self) -> list[int]:
        """The variables of neighbouring words."""
        if self.differences is None:
            return list(range(1, self.size))
        return [int(np.ravel_multi_index(apart, self._grid)) for apart in self.differences]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of symbols that occur, ascending."""
        return tuple(sorted(set(self.shape)))

    @cached_property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """The places with each number of symbols."""
        return tuple(
            tuple(i for i, size in enumerate(self.shape) if size == symbols)
            for symbols in self.sizes
        )

    @cached_property
    def _grid(self) -> tuple[int, ...]:
        """How many numbers of differing places there are, among the places of each size."""
        return tuple(len(places) + 1 for places in self._places)

    @cached_property
    def _distances(self) -> tuple[tuple[int, ...], ...]:
        """In how many places of each size the words of a variable differ."""
        return tuple(tuple(map(int, k)) for k in np.ndindex(self._grid))

    @cached_property
    def representatives(self) -> IntVector:
        """The word 0 with one whose first places are 1, for each variable."""
        units = _place_values(self.shape)
        ends = [
            sum(int(units[i]) for kind, k in enumerate(ks) for i in self._places[kind][:k])
            for ks in self._distances
        ]
        return np.stack([np.zeros(len(ends), dtype=np.int64), np.array(ends)], axis=1)

    @cached_property
    def rows(self) -> IntVector:
        """All words are alike."""
        return np.zeros(len(self._distances), dtype=np.int64)

    @property
    def columns(self) -> IntVector:
        """All words are alike."""
        return self.rows

    @cached_property
    def counts(self) -> IntVector:
        """Number of words at each distance: the product of C(d, k) (q - 1)^k."""
        return read_only(
            [
                math.prod(
                    math.comb(len(places), k) * (symbols - 1) ** k
                    for places, symbols, k in zip(self._places, self.sizes, ks, strict=True)
                )
                for ks in self._distances
            ]
        )

    @property
    def row_sizes(self) -> list[int]:
        """All words are alike."""
        return [self.inputs]

    @property
    def column_sizes(self) -> IntVector:
        """All words are alike."""
        return np.array([self.inputs])

    @cached_property
    def neighbours(self) -> IntVector:
        """Pairs of different variables that an edge and an output join, each once."""
        first, second = self.edges.first, self.edges.second
        codes = np.minimum(first, second) * self.size + np.maximum(first, second)
        return np.stack(np.divmod(np.unique(codes[first != second]), self.size), axis=1)

    @cached_property
    def edges(self) -> Edges:
        """One edge of each number of differing places, its outputs counted place by place.

        Where x and x' agree, y is as they are, or differs from both. Where they do not, y is as x,
        as x', or differs from both.
        """
        entries = [
            (edge, *step, count)
            for edge, variable in enumerate(self._near)
            for step, count in self._changes(self._distances[variable]).items()
        ]
        return _edges_of(entries, self.representatives[self._near])

    def _changes(self, apart: tuple[int, ...]) -> dict[tuple[int, int], int]:
        """Return how many y there are for each pair of variables with two words so far apart."""
        ways = {((0,) * len(apart), (0,) * len(apart)): 1}
        for kind, symbols in enumerate(self.sizes):
            for place in range(len(self._places[kind])):
                same = [(0, 0, 1), (1, 1, symbols - 1)]
                differ = [(0, 1, 1), (1, 0, 1), (1, 1, symbols - 2)]
                new: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
                for (one, other), number in ways.items():
                    for left, right, times in differ if place < apart[kind] else same:
                        step = (_raised(one, kind, left), _raised(other, kind, right))
                        if times:
                            new[step] = new.get(step, 0) + times * number
                ways = new
        variable = {k: i for i, k in enumerate(self._distances)}
        return {(variable[a], variable[b]): number for (a, b), number in ways.items()}

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return words as checked numbers, and whether it was a single one."""
        return checked_places(data, self.inputs)

    def rows_of(self, located: IntVector) -> IntVector:
        """All words are alike."""
        return np.zeros(len(located), dtype=np.int64)

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variable of each output of words, shape (queries, outputs)."""
        return self._variable(located[:, None], np.arange(self.outputs))

    def apart(self, first: IntVector, second: IntVector) -> tuple[tuple[int, ...], ...]:
        """Return in how many places of each size some pairs of words differ, each number once."""
        return tuple(self._distances[v] for v in np.unique(self._variable(first, second)).tolist())

    def _variable(self, x: IntVector, y: IntVector) -> IntVector:
        """Return the variable of pairs of words, of one shape or broadcast to one."""
        weights = _place_values(self._grid)
        kind_of = {symbols: kind for kind, symbols in enumerate(self.sizes)}
        variables = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.int64)
        for symbols in reversed(self.shape):
            (x, one), (y, other) = np.divmod(x, symbols), np.divmod(y, symbols)
            variables += (one != other) * weights[kind_of[symbols]]
        return variables

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return the words of an index among those that differ from x in the variable's numbers."""
        units = _place_values(self.shape)
        distances, words = np.array(self._distances)[variables].T, located.copy()
        for places, symbols, k in zip(self._places, self.sizes, distances, strict=True):
            # ways[m, k] is the number of sets of k among m places.
            ways = np.array(
                [[math.comb(m, j) for j in range(len(places) + 1)] for m in range(len(places) + 1)]
            )
            index, rank = np.divmod(index, ways[-1, k])
            for left, place in zip(range(len(places), 0, -1), places, strict=True):
                without = ways[left - 1, k]
                changed = rank >= without
                rank, k = np.where(changed, rank - without, rank), k - changed
                fewer, shift = np.divmod(index, symbols - 1)
                index = np.where(changed, fewer, index)
                symbol = located // units[place] % symbols
                moved = (symbol + 1 + shift) % symbols - symbol
                words += np.where(changed, moved, 0) * units[place]
        return words

    def claim(self) -> str:
        """Say between which words a table is proved private."""
        if self.differences is None:
            said = edges_claim(self.inputs, None)
            return f"{said}; one of each orbit under its symmetries was decided"
        edges = self.inputs * int(self.counts[self._near].sum())
        return (
            f"the kernel is private along {edges} directed edges of {self.inputs} inputs; one of "
            "each orbit under its symmetries was decided"
        )

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring words and an output, whose variables these are."""
        edges = self.edges
        hits = np.flatnonzero((edges.first == first) & (edges.second == second))
        swapped = not hits.size
        if swapped:
            hits = np.flatnonzero((edges.first == second) & (edges.second == first))
        edge = int(np.searchsorted(edges.starts, hits[0], side="right")) - 1
        ends = edges.ends[edge][::-1] if swapped else edges.ends[edge]
        here, there = self.variables_of(ends)
        x, other = ends.tolist()
        return x, other, int(np.flatnonzero((here == first) & (there == second))[0])


def _place_values(sizes: tuple[int, ...]) -> IntVector:
    """Return what a step at each place of a word adds to its number."""
    return np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)


def _raised(numbers: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + by, *numbers[place + 1 :]) if by else numbers
