"""Kernels that a group of symmetries leaves alone: one weight for each orbit of pairs.

A symmetry g permutes the inputs (sigma) and the outputs (tau), and neighbours stay neighbours. A
kernel with K[sigma x, tau y] = K[x, y] for all symmetries has one value on each orbit of pairs
(x, y). So it is one integer per orbit, whatever the number of its entries, and its privacy is
decided once for each orbit of (edge, output): all other inequalities are the same one, permuted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, exact_text, roughly, whole
from dpopt._types import IntVector, Json, Matrix, Vector, brief, frozen
from dpopt.privacy.dominating import DominatingPair, likelihood_tests, upper_hull
from dpopt.privacy.exact import Certificate, decisive_ratio
from dpopt.privacy.fingerprint import fingerprint
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.kernel import long_table
from dpopt.privacy.release import Laws, Source, below_each, seeded, system
from dpopt.privacy.saved import STATED
from dpopt.privacy.vouched import Coherent, Implied, Vouched

Permutation = npt.NDArray[np.int64]
Generator = tuple[Permutation, Permutation]
"""(sigma, tau): input x goes to sigma[x], output y to tau[y]."""

_MOST_ENTRIES = 20_000_000
# Pairs whose orbits are found by a search, and entries of one representative edge each.
_MOST_SEARCHED, _MOST_STEPS = 2**26, 20_000_000
# Draws at once: bounds memory.
_DRAWN = 1 << 18
# Entries of a kernel whose rows are written out for as many draws.
_WRITTEN = 1 << 16


class Steps(NamedTuple):
    """What an edge changes: from the orbit of (x, y) to that of (x', y).

    A step is a pair of different orbits; where both ends lie in one orbit, privacy asks nothing.

    Attributes:
        first: orbit of (x, y), shape (steps,).
        second: orbit of (x', y), likewise.
        counts: outputs y by step, for each orbit of directed edges, shape (edge orbits, steps).
        edges: one edge (x, x') of each orbit, shape (edge orbits, 2).
    """

    first: IntVector
    second: IntVector
    counts: sp.csr_array
    edges: IntVector


class Orbits(Coherent, ABC):
    """The orbits of pairs (x, y) under a group, numbered from 0, and the edges of a graph.

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        subject: what the orbits follow from, for a certificate.
        complete: whether every two inputs are neighbours.
        representatives: one pair (x, y) of each orbit, shape (orbits, 2).
        rows: the orbit of inputs that x is in, for each orbit of pairs, shape (orbits,).
        columns: the orbit of outputs that y is in, likewise.
        counts: number of outputs y that are in an orbit with one of its inputs, likewise.
        row_sizes: number of inputs in each orbit of inputs.
        column_sizes: number of outputs in each orbit of outputs.
        steps: what the edges of the graph change.
    """

    inputs: Any
    outputs: Any
    subject: Any
    complete: Any
    representatives: Any
    rows: Any
    columns: Any
    counts: Any
    row_sizes: Any
    column_sizes: Any
    steps: Any

    @abstractmethod
    def labels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> IntVector:
        """Return the orbits of pairs, for arrays that are broadcast together."""

    @abstractmethod
    def members(self, x: IntVector, orbits: IntVector, index: IntVector) -> IntVector:
        """Return outputs that are in an orbit with x: each one for one index in 0..count-1.

        Args:
            x: inputs, shape (draws,).
            orbits: of pairs with them, likewise.
            index: in 0..count-1 of these orbits, likewise.
        """

    @abstractmethod
    def claim(self) -> str:
        """Say which neighbours are proved private."""

    def __eq__(self, other: object) -> bool:
        """Whether these are the same orbits, from the same symmetries and graph."""
        return isinstance(other, Orbits) and fingerprint(self.subject) == fingerprint(other.subject)

    def __hash__(self) -> int:
        """Return a number that follows from what the orbits follow from."""
        return hash(fingerprint(self.subject))

    @property
    def count(self) -> int:
        """Number of orbits of pairs."""
        return len(self.counts)

    @cached_property
    def row_representatives(self) -> IntVector:
        """One input of each orbit of inputs."""
        return _one_of_each(self.rows, self.representatives[:, 0])

    @cached_property
    def column_representatives(self) -> IntVector:
        """One output of each orbit of outputs."""
        return _one_of_each(self.columns, self.representatives[:, 1])

    @cached_property
    def by_row(self) -> tuple[tuple[int, ...], ...]:
        """For each orbit of inputs, the orbits of pairs with such an input."""
        return _grouped(self.rows)

    @cached_property
    def by_column(self) -> tuple[tuple[int, ...], ...]:
        """For each orbit of outputs, the orbits of pairs with such an output."""
        return _grouped(self.columns)

    @property
    @abstractmethod
    def neighbours(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""

    def table(self) -> IntVector:
        """Return the orbit of every pair, shape (inputs, outputs).

        Raises:
            ParameterError: for more than 20,000,000 pairs.
        """
        if self.inputs * self.outputs > _MOST_ENTRIES:
            raise ParameterError(
                f"the kernel has {self.inputs} inputs and {self.outputs} outputs; at most "
                f"{_MOST_ENTRIES:,} entries are written out. It releases all the same."
            )
        return self.labels(np.arange(self.inputs)[:, None], np.arange(self.outputs))


def _one_of_each(labels: IntVector, members: IntVector) -> IntVector:
    return members[np.unique(labels, return_index=True)[1]]


def _grouped(labels: IntVector) -> tuple[tuple[int, ...], ...]:
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))[:-1]
    return tuple(tuple(part.tolist()) for part in np.split(order, ends))


def components(size: int, images: Iterable[IntVector]) -> IntVector:
    """Return the orbit of each of ``size`` points under maps that are given as arrays."""
    listed = list(images)
    start = np.tile(np.arange(size), len(listed))
    links = sp.csr_array(
        (np.ones(start.size, dtype=np.int8), (start, np.concatenate([*listed, []]).astype(int))),
        shape=(size, size),
    )
    return connected_components(links, directed=False)[1].astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class SearchedOrbits(Orbits):
    """Orbits found as connected components: (x, y) is joined to (sigma x, tau y).

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
        keys = self.pairs @ np.array([n, 1])
        images = [self.pairs[:, ::-1], *(sigma[self.pairs] for sigma, _ in self.generators)]
        if not np.all(np.diff(keys) > 0) or not all(
            np.array_equal(np.sort(image @ np.array([n, 1])), keys) for image in images
        ):
            raise ParameterError(
                "pairs must be sorted, in both directions, and mapped to themselves by generators."
            )

    @property
    def complete(self) -> bool:
        """Whether every two inputs are neighbours."""
        return self.pairs is None

    @property
    def neighbours(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""
        return self.pairs

    @property
    def subject(self) -> tuple[object, ...]:
        """What the orbits follow from."""
        return "orbits", self.inputs, self.outputs, self.generators, self.pairs

    @cached_property
    def _labels(self) -> IntVector:
        sides = [(s[:, None] * self.outputs + t).ravel() for s, t in self.generators]
        return components(self.inputs * self.outputs, sides).reshape(self.inputs, self.outputs)

    @cached_property
    def _input_orbits(self) -> IntVector:
        return components(self.inputs, [sigma for sigma, _ in self.generators])

    @cached_property
    def _output_orbits(self) -> IntVector:
        return components(self.outputs, [tau for _, tau in self.generators])

    @cached_property
    def representatives(self) -> IntVector:
        """One pair (x, y) of each orbit, shape (orbits, 2): the first."""
        flat = self._labels.ravel()
        first = np.empty(int(flat.max()) + 1, dtype=np.int64)
        first[flat[::-1]] = np.arange(flat.size)[::-1]
        return np.stack(np.divmod(first, self.outputs), axis=1)

    @cached_property
    def rows(self) -> IntVector:
        """The orbit of inputs of each orbit of pairs."""
        return self._input_orbits[self.representatives[:, 0]]

    @cached_property
    def columns(self) -> IntVector:
        """The orbit of outputs of each orbit of pairs."""
        return self._output_orbits[self.representatives[:, 1]]

    @cached_property
    def counts(self) -> IntVector:
        """Number of outputs in an orbit with one of its inputs."""
        return np.bincount(self._labels.ravel()) // self.row_sizes[self.rows]

    @cached_property
    def row_sizes(self) -> IntVector:
        """Number of inputs in each orbit of inputs."""
        return np.bincount(self._input_orbits)

    @cached_property
    def column_sizes(self) -> IntVector:
        """Number of outputs in each orbit of outputs."""
        return np.bincount(self._output_orbits)

    @cached_property
    def steps(self) -> Steps:
        """What the edges of the graph change."""
        edges = self._edges
        if len(edges) * self.outputs > _MOST_STEPS:
            raise ParameterError(
                f"symmetry leaves {len(edges)} orbits of edges with {self.outputs} outputs; at "
                f"most {_MOST_STEPS:,} orbits of edge and output are taken: give more symmetries."
            )
        before, after = (self._labels[edges[:, side]].ravel() for side in (0, 1))
        edge = np.repeat(np.arange(len(edges)), self.outputs)
        changes = before != after
        keys, step = np.unique(before[changes] * self.count + after[changes], return_inverse=True)
        first, second = np.divmod(keys, self.count)
        counts = sp.coo_array(
            (np.ones(step.size, dtype=np.int64), (edge[changes], step)),
            shape=(len(edges), len(keys)),
        )
        return Steps(first, second, sp.csr_array(counts), edges)

    @cached_property
    def _edges(self) -> IntVector:
        """One directed edge of each orbit, shape (edge orbits, 2)."""
        n = self.inputs
        if self.pairs is None:
            images = [(sigma[:, None] * n + sigma).ravel() for sigma, _ in self.generators]
            labels = components(n * n, images)
            labels[:: n + 1] = labels.max() + 1
            first = np.unique(labels, return_index=True)[1][:-1]
            return np.stack(np.divmod(first, n), axis=1)
        keys = self.pairs[:, 0] * n + self.pairs[:, 1]
        ends = ([sigma[self.pairs[:, side]] for side in (0, 1)] for sigma, _ in self.generators)
        images = [np.searchsorted(keys, one * n + other) for one, other in ends]
        return self.pairs[np.unique(components(len(keys), images), return_index=True)[1]]

    def labels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> IntVector:
        """Return the orbits of pairs, for arrays that are broadcast together."""
        return self._labels[np.asarray(x), np.asarray(y)]

    @cached_property
    def _outputs_by_orbit(self) -> npt.NDArray[np.int32]:
        """For each input its outputs, orbit by orbit."""
        return np.argsort(self._labels, axis=1, kind="stable").astype(np.int32)

    @cached_property
    def _starts(self) -> IntVector:
        """Where the outputs of each orbit start among those of an input."""
        starts = np.zeros(self.count, dtype=np.int64)
        for orbits in map(list, self.by_row):
            starts[orbits[1:]] = np.cumsum(self.counts[orbits[:-1]])
        return starts

    def members(self, x: IntVector, orbits: IntVector, index: IntVector) -> IntVector:
        """Return the outputs of an index among those that are in an orbit with x, in order."""
        if len(x) < self.inputs:
            # To sort all outputs of all inputs would take longer.
            draws = zip(x.tolist(), orbits.tolist(), index.tolist(), strict=True)
            found = [np.flatnonzero(self._labels[one] == orbit)[at] for one, orbit, at in draws]
            return np.array(found, dtype=np.int64)
        return self._outputs_by_orbit[x, self._starts[orbits] + index].astype(np.int64)

    def claim(self) -> str:
        """Say which neighbours are proved private."""
        if self.pairs is None:
            return f"kernel is private between all {self.inputs} inputs"
        said = f"kernel is private along {len(self.pairs)} directed edges of {self.inputs} inputs"
        links = sp.csr_array(
            (np.ones(len(self.pairs)), tuple(self.pairs.T)), shape=(self.inputs, self.inputs)
        )
        size = np.bincount(connected_components(links, directed=False)[1])
        alone, parts = int(np.sum(size == 1)), int(np.sum(size > 1))
        if alone:
            said += f"; without a neighbour, and not protected: {alone}"
        if parts > 1:
            said += f"; no neighbours join its {parts} parts, and privacy holds within each"
        return said


@dataclass(frozen=True, eq=False, repr=False)
class CircleOrbits(SearchedOrbits):
    """Orbits of pairs on a circle under its rotations, perhaps also turned over, by formula.

    The difference y - x modulo n; of a circle that may be turned over, its distance from 0.

    Attributes:
        inputs: number of points n on the circle; there are as many outputs.
        outputs: see there.
        generators: the rotation by one, and perhaps x to -x.
        pairs: see `SearchedOrbits`.
    """

    def __post_init__(self) -> None:
        """Refuse other generators than the formula is for.

        Raises:
            ParameterError: if there are such.
        """
        super().__post_init__()
        x = np.arange(self.inputs)
        moves = [(x + 1) % self.inputs, -x % self.inputs]
        given = [move for generator in self.generators for move in generator]
        expected = [move for move in moves[: len(self.generators)] for _ in (0, 1)]
        if len(given) != len(expected) or not all(map(np.array_equal, given, expected)):
            raise ParameterError("generators must be the rotation by one, and perhaps x to -x.")

    @cached_property
    def _labels(self) -> IntVector:
        points = np.arange(self.inputs)
        apart = (points - points[:, None]) % self.inputs
        return apart if len(self.generators) == 1 else np.minimum(apart, self.inputs - apart)


@dataclass(frozen=True, eq=False, repr=False)
class WordOrbits(Orbits):
    """Orbits of pairs of words under all permutations of letters and of places, by formula.

    Letters may be permuted at each place, and places that have as many letters. Two pairs (x, y)
    are in one orbit if their words differ in as many places, among the places of each size: for
    {0, 1}^d, if they have the same Hamming distance, so that there are d + 1 orbits.

    Attributes:
        shape: number of letters at each place, each at least 2.
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
            raise ParameterError(f"shape is {self.shape}; each place must have at least 2 letters.")
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
    def complete(self) -> bool:
        """Whether every two words are neighbours."""
        return self.differences is None

    @property
    def neighbours(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two words are neighbours."""
        if self.differences is None:
            return None
        return np.argwhere(np.isin(self.table(), self._neighbouring))

    @property
    def subject(self) -> tuple[object, ...]:
        """What the orbits follow from."""
        return "words", self.shape, self.differences

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of letters that occur, ascending."""
        return tuple(sorted(set(self.shape)))

    @cached_property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """The places with each number of letters."""
        return tuple(
            tuple(i for i, size in enumerate(self.shape) if size == letters)
            for letters in self.sizes
        )

    @cached_property
    def _grid(self) -> tuple[int, ...]:
        """How many numbers of differing places there are, among the places of each size."""
        return tuple(len(places) + 1 for places in self._places)

    @cached_property
    def _distances(self) -> tuple[tuple[int, ...], ...]:
        """In how many places of each size the words of an orbit differ."""
        return tuple(tuple(map(int, k)) for k in np.ndindex(self._grid))

    @cached_property
    def representatives(self) -> IntVector:
        """The word 0 with one whose first places are 1, for each orbit."""
        units = np.append(np.cumprod(self.shape[:0:-1])[::-1], 1).astype(np.int64)
        ends = [
            sum(int(units[i]) for kind, k in enumerate(ks) for i in self._places[kind][:k])
            for ks in self._distances
        ]
        return np.stack([np.zeros(len(ends), dtype=np.int64), np.array(ends)], axis=1)

    @cached_property
    def rows(self) -> IntVector:
        """All words are in one orbit."""
        return np.zeros(len(self._distances), dtype=np.int64)

    @property
    def columns(self) -> IntVector:
        """All words are in one orbit."""
        return self.rows

    @cached_property
    def counts(self) -> IntVector:
        """Number of words at each distance: the product of C(d, k) (q - 1)^k."""
        return np.array(
            [
                math.prod(
                    math.comb(len(places), k) * (letters - 1) ** k
                    for places, letters, k in zip(self._places, self.sizes, ks, strict=True)
                )
                for ks in self._distances
            ],
            dtype=np.int64,
        )

    @property
    def row_sizes(self) -> IntVector:
        """All words are in one orbit."""
        return np.array([self.inputs])

    @property
    def column_sizes(self) -> IntVector:
        """All words are in one orbit."""
        return self.row_sizes

    @cached_property
    def steps(self) -> Steps:
        """What the edges change, counted place by place.

        Where x and x' agree, y is as they are, or differs from both. Where they do not, y is as x,
        as x', or differs from both.
        """
        differences = self._distances[1:] if self.differences is None else self.differences
        found: dict[tuple[int, int], int] = {}
        entries: list[tuple[int, int, int]] = []
        for edge, apart in enumerate(differences):
            for step, outputs in self._changes(apart).items():
                entries.append((outputs, edge, found.setdefault(step, len(found))))
        steps = np.array(list(found), dtype=np.int64).reshape(-1, 2)
        count, edge, place = np.array(entries, dtype=np.int64).reshape(-1, 3).T
        counts = sp.csr_array((count, (edge, place)), shape=(len(differences), len(found)))
        edges = self.representatives[self._neighbouring]
        return Steps(steps[:, 0], steps[:, 1], counts, edges)

    @cached_property
    def _neighbouring(self) -> list[int]:
        """The orbits of pairs that are neighbours."""
        if self.differences is None:
            return list(range(1, self.count))
        return [int(np.ravel_multi_index(apart, self._grid)) for apart in self.differences]

    def _changes(self, apart: tuple[int, ...]) -> dict[tuple[int, int], int]:
        """Return how many y there are for each step between two words so far apart."""
        ways = {((0,) * len(apart), (0,) * len(apart)): 1}
        for kind, letters in enumerate(self.sizes):
            total = len(self._places[kind])
            for place in range(total):
                same = [(0, 0, 1), (1, 1, letters - 1)]
                differ = [(0, 1, 1), (1, 0, 1), (1, 1, letters - 2)]
                new: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
                for (one, other), number in ways.items():
                    for left, right, times in differ if place < apart[kind] else same:
                        key = (_raised(one, kind, left), _raised(other, kind, right))
                        if times:
                            new[key] = new.get(key, 0) + times * number
                ways = new
        orbit = {k: i for i, k in enumerate(self._distances)}
        return {(orbit[a], orbit[b]): number for (a, b), number in ways.items() if a != b}

    def labels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> IntVector:
        """Return the orbits of pairs, for arrays that are broadcast together."""
        x, y = np.asarray(x, dtype=np.int64), np.asarray(y, dtype=np.int64)
        weights = np.append(np.cumprod(self._grid[:0:-1])[::-1], 1).astype(np.int64)
        kind_of = {letters: kind for kind, letters in enumerate(self.sizes)}
        found = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.int64)
        for letters in reversed(self.shape):
            (x, one), (y, other) = np.divmod(x, letters), np.divmod(y, letters)
            found += (one != other) * weights[kind_of[letters]]
        return found

    def members(self, x: IntVector, orbits: IntVector, index: IntVector) -> IntVector:
        """Return the words of an index among those that differ from x in the orbit's numbers."""
        units = np.append(np.cumprod(self.shape[:0:-1])[::-1], 1).astype(np.int64)
        distances, words = np.array(self._distances)[orbits].T, x.copy()
        for places, letters, k in zip(self._places, self.sizes, distances, strict=True):
            # ways[m, k] is the number of sets of k among m places.
            ways = np.array(
                [[math.comb(m, j) for j in range(len(places) + 1)] for m in range(len(places) + 1)]
            )
            index, rank = np.divmod(index, ways[-1, k])
            for left, place in zip(range(len(places), 0, -1), places, strict=True):
                without = ways[left - 1, k]
                changed = rank >= without
                rank, k = np.where(changed, rank - without, rank), k - changed
                fewer, shift = np.divmod(index, letters - 1)
                index = np.where(changed, fewer, index)
                letter = x // units[place] % letters
                moved = (letter + 1 + shift) % letters - letter
                words += np.where(changed, moved, 0) * units[place]
        return words

    def claim(self) -> str:
        """Say which neighbours are proved private."""
        if self.differences is None:
            return f"kernel is private between all {self.inputs} inputs"
        edges = self.inputs * int(self.counts[self._neighbouring].sum())
        return f"kernel is private along {edges} directed edges of {self.inputs} inputs"


def _raised(numbers: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + by, *numbers[place + 1 :]) if by else numbers


@dataclass(frozen=True)
class OrbitKernel(Vouched):
    """A kernel with one integer weight for each orbit of pairs, which was certified.

    Pr[y | x] = weights[orbit of (x, y)] / total: an orbit counts as often as it has outputs with x.

    Attributes:
        weights: shape (orbits,), Python integers.
        total: what the weights of every row sum to, sum_o counts[o] weights[o].
        guarantee: what was certified.
        certificate: the proof's record.
        orbits: which pairs have which weight, and the graph.
        cost: largest total variation between a row and the one it was made from.
        stated: what a file stated and nothing could check: ("cost",) of a loaded kernel.
    """

    weights: tuple[int, ...]
    total: int
    guarantee: Guarantee
    certificate: Certificate
    orbits: Orbits
    cost: float
    stated: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def make(
        cls,
        weights: Sequence[int],
        total: int,
        guarantee: Guarantee,
        orbits: Orbits,
        *,
        cost: float = 0.0,
    ) -> OrbitKernel:
        """Return the kernel after certifying it; see `certify_orbits` for the arguments.

        Raises:
            NotPrivateError: if it is not private.
            ParameterError: if the weights are no kernel.
        """
        return cls(
            weights=tuple(weights),
            total=total,
            guarantee=guarantee,
            certificate=certify_orbits(weights, total, guarantee, orbits),
            orbits=orbits,
            cost=_checks.real("cost", cost, 0.0, 1.0),
        )

    @property
    def subject(self) -> tuple[object, ...]:
        """What the certificate is about."""
        return _subject_of(self.weights, self.total, self.guarantee, self.orbits)

    def _subject(self) -> tuple[object, ...]:
        return self.subject

    def _implied(self) -> Iterator[Implied]:
        yield from ()

    def _prove(self) -> Certificate:
        return certify_orbits(self.weights, self.total, self.guarantee, self.orbits)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.orbits.inputs

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.orbits.outputs

    def row(self, x: object) -> tuple[int, ...]:
        """Return the law of the output for input x, integers over their total.

        Raises:
            ParameterError: if x is no input; the refusal is for the curator alone.
        """
        if isinstance(x, bool) or not isinstance(x, int | np.integer) or not 0 <= x < self.inputs:
            raise ParameterError(f"the input must be an integer in 0..{self.inputs - 1}.")
        labels = self.orbits.labels(int(x), np.arange(self.outputs))
        return tuple(map(self.weights.__getitem__, labels.tolist()))

    def column(self, y: int) -> tuple[int, ...]:
        """Return the weights of an output, for every input."""
        labels = self.orbits.labels(np.arange(self.inputs), y)
        return tuple(map(self.weights.__getitem__, labels.tolist()))

    @cached_property
    def probabilities(self) -> Vector:
        """Pr[y | x] for a pair of each orbit, shape (orbits,), read-only."""
        return frozen([weight / self.total for weight in self.weights])

    @cached_property
    def masses(self) -> Vector:
        """Probability that the output is in an orbit with an input of it, read-only."""
        masses = zip(self.orbits.counts.tolist(), self.weights, strict=True)
        return frozen([count * weight / self.total for count, weight in masses])

    def matrix(self) -> Matrix:
        """Return the probabilities as floats, shape (inputs, outputs); for reading only.

        Raises:
            ParameterError: for more than 20,000,000 entries.
        """
        return self.probabilities[self.orbits.table()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:  # noqa: ANN401
        """Return the probabilities, as `matrix` does: what numpy takes a kernel for."""
        return np.asarray(self.matrix(), dtype=dtype)

    def columns(
        self,
        inputs: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
    ) -> Mapping[str, Sequence[Any] | npt.NDArray[Any]]:
        """Return input, output and probability, a line for each entry, for a table.

        Raises:
            ParameterError: for more than 20,000,000 entries.
        """
        inputs = range(self.inputs) if inputs is None else inputs
        outputs = range(self.outputs) if outputs is None else outputs
        return long_table(self.matrix(), inputs, outputs)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...] | None:
        """Directed neighbours; None for all pairs of inputs."""
        pairs = self.orbits.neighbours
        return None if pairs is None else tuple((x, other) for x, other in pairs.tolist())

    def require_both_ways(self) -> None:
        """Accept: orbits of a graph hold both directions of every edge."""

    def proof_of(
        self, guarantee: Guarantee, shape: tuple[int, int], orbits: Orbits | None
    ) -> Certificate:
        """Return the certificate, if it is of this guarantee and these orbits.

        Raises:
            ParameterError: if it is of others.
        """
        own = (self.inputs, self.outputs)
        if own != shape:
            raise ParameterError(
                f"units have shape {own}; the kernels of this setting have {shape}."
            )
        if self.guarantee != guarantee:
            raise ParameterError(
                f"units were proved for {self.guarantee}; the setting promises {guarantee}."
            )
        if orbits is None or not self.certificate.is_about(
            *_subject_of(self.weights, self.total, self.guarantee, orbits)
        ):
            raise ParameterError("units were proved for other symmetries than the setting's.")
        return self.certificate

    def dominating(self) -> DominatingPair:
        """Return the tight dominating pair over all neighbours that were certified.

        Outputs of one step have the same two probabilities, so they are told apart together.
        """
        steps, points = self.orbits.steps, []
        first, second = steps.first.tolist(), steps.second.tolist()
        for place in range(len(steps.edges)):
            part = slice(*steps.counts.indptr[place : place + 2])
            chosen = steps.counts.indices[part].tolist(), steps.counts.data[part].tolist()
            row = [n * self.weights[first[t]] for t, n in zip(*chosen, strict=True)]
            other = [n * self.weights[second[t]] for t, n in zip(*chosen, strict=True)]
            points += likelihood_tests(row, other, self.total.bit_length())
        return DominatingPair.of_points(upper_hull(points), self.total)

    def asked(self, inputs: npt.ArrayLike) -> int:
        """Return the number of inputs, each of which spends the whole guarantee; see `release`."""
        return self.places(inputs)[0].size

    def release(self, inputs: npt.ArrayLike) -> npt.NDArray[np.int64] | int:
        """Return one output for each input, drawn with the operating system's randomness.

        First it is drawn in which orbit the output is with the input, then which of its outputs it
        is; for many draws from a small kernel both together. The law is exactly the weights. No
        seed; timing is outside the guarantee.

        Args:
            inputs: an index in 0..inputs-1, or an array of them; each spends the whole guarantee.

        Raises:
            ParameterError: if an index is no input; the refusal tells of the index and is not
                covered by the guarantee.
        """
        places, single = self.places(inputs)
        return self._drawn(places, single, system)

    def simulate(
        self, inputs: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        source = seeded(rng)
        return self._drawn(*self.places(inputs), source)

    @cached_property
    def _rows(self) -> Laws:
        """The law of each input, written out: for many draws from few inputs."""
        return Laws([self.row(x) for x in range(self.inputs)])

    @cached_property
    def _laws(self) -> tuple[Laws, IntVector]:
        """For each orbit of inputs, the law of its orbits of pairs, and what these are."""
        counts, by_row = self.orbits.counts.tolist(), self.orbits.by_row
        most = max(map(len, by_row))
        rows = [[counts[o] * self.weights[o] for o in row] for row in by_row]
        laws = Laws([row + [0] * (most - len(row)) for row in rows])
        return laws, np.array([(*row, *[-1] * (most - len(row))) for row in by_row])

    def places(self, inputs: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
        """Return inputs as checked indices, and whether it was a single one.

        Raises:
            ParameterError: if an index is no input.
        """
        array = _checks.array("inputs", inputs)
        if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
            raise ParameterError("inputs must be an integer or a one-dimensional array of them.")
        listed = np.atleast_1d(array).astype(np.int64)
        if listed.size and (listed.min() < 0 or listed.max() >= self.inputs):
            raise ParameterError(f"inputs holds a value outside 0..{self.inputs - 1}.")
        return listed, array.ndim == 0

    def _drawn(
        self, listed: npt.NDArray[np.int64], single: bool, source: Source
    ) -> npt.NDArray[np.int64] | int:
        if self.inputs * self.outputs <= min(_WRITTEN, listed.size):
            outputs = self._rows.draw(listed, source)
            return int(outputs[0]) if single else outputs
        laws, orbits = self._laws
        outputs = np.empty_like(listed)
        for start in range(0, listed.size, _DRAWN):
            x = listed[start : start + _DRAWN]
            rows = self.orbits.rows[self.orbits.labels(x, 0)]
            chosen = orbits[rows, laws.draw(rows, source)]
            index = below_each(self.orbits.counts[chosen], source)
            outputs[start : start + _DRAWN] = self.orbits.members(x, chosen, index)
        return int(outputs[0]) if single else outputs

    def __repr__(self) -> str:
        return brief(
            self,
            inputs=self.inputs,
            outputs=self.outputs,
            orbits=self.orbits.count,
            guarantee=self.guarantee,
            cost=self.cost,
            **({STATED: ", ".join(self.stated)} if self.stated else {}),
        )

    def plain(self) -> Json:
        """Return the integers, from which `read` proves again; the orbits are the setting's."""
        return {
            "total": exact_text(self.total),
            "weights": [exact_text(weight) for weight in self.weights],
            "cost": self.cost,
        }

    @classmethod
    def read(cls, plain: object, guarantee: Guarantee, orbits: Orbits) -> OrbitKernel:
        """Certify again what `plain` returned.

        Raises:
            ParameterError: if it is malformed.
            NotPrivateError: if the kernel is not private.
        """
        body: Any = plain
        try:
            weights = [whole(weight) for weight in body["weights"]]
            total = whole(body["total"])
            cost = _checks.real("cost", body["cost"], 0.0, 1.0)
        except ParameterError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise ParameterError("the kernel's weights, total or cost are malformed.") from None
        kernel = cls.make(weights, total, guarantee, orbits, cost=cost)
        return replace(kernel, stated=("cost",))


def _subject_of(
    weights: Sequence[int], total: int, guarantee: Guarantee, orbits: Orbits
) -> tuple[object, ...]:
    return "orbit kernel", tuple(weights), total, guarantee, orbits.subject


def certify_orbits(
    weights: Sequence[int], total: int, guarantee: Guarantee, orbits: Orbits
) -> Certificate:
    """Prove that one weight for each orbit of pairs is an (epsilon, delta)-private kernel.

    Every row has the weights of its orbits, each as often as the orbit has outputs there; it must
    sum to ``total``. With r = e^epsilon, and for each step from the orbit o of (x, y) to the orbit
    o' of (x', y), w[o] <= r w[o'] if delta = 0; else for one edge of each orbit, the sum over
    outputs of max(0, w[o] - r w[o']) <= delta total. If every two inputs are neighbours and
    delta = 0, the extremes among the orbits of an output decide.

    Args:
        weights: integers, shape (orbits,).
        total: sum of each row.
        guarantee: what to prove.
        orbits: of pairs, under symmetries that keep the graph.

    Raises:
        NotPrivateError: naming the neighbours and the output, if an inequality fails.
        ParameterError: if the weights are no kernel.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    _require_law(weights, total, orbits)
    delta = Fraction(guarantee.delta)
    if delta > 0:
        count = len(orbits.steps.edges)
    elif orbits.complete:
        count = sum(len(part) * (len(part) - 1) for part in orbits.by_column)
    else:
        count = len(orbits.steps.first)

    def worst_at(r: Fraction) -> tuple[Fraction, tuple[int, ...]]:
        if delta > 0:
            return _worst_edge(weights, total, orbits.steps, r, delta)
        if orbits.complete:
            return _worst_column(weights, total, orbits, r)
        return _worst_step(weights, total, orbits.steps, r)

    r = decisive_ratio(guarantee, None, lambda r: worst_at(r)[0])
    slack, place = worst_at(r)
    if slack < 0:
        x, other, y = where(orbits, place)
        output = "the event of all outputs that favour it" if y is None else f"output {y}"
        raise NotPrivateError(
            f"inputs {x} and {other} break ({guarantee.epsilon:g}, {guarantee.delta:g})-DP at "
            f"{output}, by {roughly(-slack)}.",
            inputs=(str(x), str(other)),
            output=None if y is None else str(y),
            excess=float(-slack) or math.ulp(0.0),
        )
    x, other, y = where(orbits, place)
    return Certificate(
        claim=f"{orbits.claim()}; one of each orbit under its symmetries was decided",
        guarantee=guarantee,
        ratio=r,
        constraints=count,
        slack=slack,
        tightest=f"inputs {x} and {other}" + ("" if y is None else f", output {y}"),
        arithmetic="exact integers",
        bits=0,
    ).about(*_subject_of(weights, total, guarantee, orbits))


def _require_law(weights: Sequence[int], total: int, orbits: Orbits) -> None:
    """Refuse weights that are no kernel.

    Raises:
        ParameterError: if they are not.
    """
    if type(total) is not int or not 0 < total.bit_length() <= MOST_BITS or total < 0:
        raise ParameterError(f"total must be a positive integer of at most {MOST_BITS:,} bits.")
    if len(weights) != orbits.count:
        raise ParameterError(
            f"weights are {len(weights)} numbers; there are {orbits.count} orbits of pairs."
        )
    if not all(type(weight) is int and weight >= 0 for weight in weights):
        raise ParameterError("weights must be integers of at least 0.")
    counts = orbits.counts.tolist()
    for row, members in enumerate(orbits.by_row):
        summed = sum(counts[o] * weights[o] for o in members)
        if summed != total:
            raise ParameterError(
                f"the row of input {orbits.row_representatives[row]} sums to "
                f"{_checks.shown(summed)}, not to the total {_checks.shown(total)}."
            )


def _worst_column(
    weights: Sequence[int], total: int, orbits: Orbits, r: Fraction
) -> tuple[Fraction, tuple[int, ...]]:
    found = []
    for part in orbits.by_column:
        high, low = max(part, key=weights.__getitem__), min(part, key=weights.__getitem__)
        found.append((r.numerator * weights[low] - r.denominator * weights[high], (high, low)))
    slack, place = min(found)
    return Fraction(slack, r.denominator * total), place


def _worst_step(
    weights: Sequence[int], total: int, steps: Steps, r: Fraction
) -> tuple[Fraction, tuple[int, ...]]:
    a, b = r.numerator, r.denominator
    both = zip(steps.first.tolist(), steps.second.tolist(), strict=True)
    slack, place = min(
        ((a * weights[other] - b * weights[one], (one, other)) for one, other in both),
        default=(b * total, (0, 0)),
    )
    return Fraction(slack, b * total), place


def _worst_edge(
    weights: Sequence[int], total: int, steps: Steps, r: Fraction, delta: Fraction
) -> tuple[Fraction, tuple[int, ...]]:
    a, b = r.numerator, r.denominator
    both = zip(steps.first.tolist(), steps.second.tolist(), strict=True)
    excess = [max(0, b * weights[one] - a * weights[other]) for one, other in both]
    found = []
    for edge in range(len(steps.edges)):
        part = slice(*steps.counts.indptr[edge : edge + 2])
        entries = zip(steps.counts.data[part].tolist(), steps.counts.indices[part], strict=True)
        found.append((sum(count * excess[step] for count, step in entries), edge))
    most, edge = max(found, default=(0, 0))
    return delta - Fraction(most, b * total), (edge,)


def where(orbits: Orbits, place: tuple[int, ...]) -> tuple[int, int, int | None]:
    """Return neighbours and an output that a step, or an orbit of edges, stands for."""
    if len(place) == 1:
        x, other = orbits.steps.edges[place[0]].tolist()
        return x, other, None
    first, second = place
    if not orbits.complete and first == second:
        # No edge leaves an orbit: any one shows what was decided.
        x, other = orbits.steps.edges[0].tolist()
        return x, other, 0
    if orbits.complete:
        x, y = orbits.representatives[first].tolist()
        there = orbits.labels(np.arange(orbits.inputs), y) == second
        there[x] &= first != second
        return x, int(np.argmax(there)), y
    steps = orbits.steps
    step = int(np.argmax((steps.first == first) & (steps.second == second)))
    edge = int(np.argmax(steps.counts[:, [step]].toarray().ravel() > 0))
    x, other = steps.edges[edge].tolist()
    outputs = np.arange(orbits.outputs)
    hit = (orbits.labels(x, outputs) == first) & (orbits.labels(other, outputs) == second)
    return x, other, int(np.argmax(hit))
