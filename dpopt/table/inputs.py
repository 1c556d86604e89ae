"""Inputs up to symmetry: the variables of a mechanism, and which of them are neighbours.

A symmetry permutes inputs (sigma) and outputs (tau) such that neighbours stay neighbours. A
mechanism with K[sigma x, tau y] = K[x, y] has one probability on each orbit of pairs (x, y): that
orbit is a *variable*. Averaging any mechanism over a group of symmetries gives such a mechanism,
with the same privacy and the same loss if the group leaves the loss unchanged. Without a symmetry
every pair is a variable of its own.

`dpopt.table.symmetric` has orbits of generators, graphs without a symmetry, and words by formula;
`dpopt.table.histograms` has counts up to the order of their categories.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Vector
from dpopt.privacy.graph import links
from dpopt.privacy.guarantee import fingerprint

LARGEST_WRITTEN = 20_000_000
"""Entries of the largest kernel that is written out; memory fixes it."""

Name = int | str
"""An input or an output in messages: its number, its name, or a description."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Pairs of neighbouring inputs (x, x') up to symmetry, with the variables of their outputs.

    Attributes:
        ends: the two inputs of each edge, shape (edges, 2), if inputs are numbers.
        first: variable of (x, y) for each entry, edge after edge, shape (entries,).
        second: variable of (x', y), likewise.
        counts: number of outputs y that an entry stands for, likewise.
        starts: index of the first entry of each edge, then the number of entries, shape
            (edges + 1,).
    """

    ends: IntVector
    first: IntVector
    second: IntVector
    counts: IntVector
    starts: IntVector

    def listed(self) -> list[tuple[list[int], list[int], list[int]]]:
        """Return (first, second, counts) of each edge as lists, as `dpopt.verify` takes them."""
        first, second, counts = (a.tolist() for a in (self.first, self.second, self.counts))
        bounds = self.starts.tolist()
        return [(first[a:b], second[a:b], counts[a:b]) for a, b in pairwise(bounds)]

    def directed(self) -> tuple[IntVector, IntVector, sp.csr_array]:
        """Return first and second of both directions, and the matrix that sums by directed edge."""
        first, second = np.append(self.first, self.second), np.append(self.second, self.first)
        edge = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        directed = np.append(edge, edge + len(self.starts) - 1)
        return first, second, sp.csr_array((np.ones(first.size), (directed, np.arange(first.size))))

    @classmethod
    def of_outputs(cls, ends: IntVector, first: IntVector, second: IntVector) -> Edges:
        """Return edges from the variables of all outputs, shape (edges, outputs) for each end.

        Outputs that share both variables are one entry.
        """
        size = int(second.max(initial=0)) + 1
        # A pair of variables v, w is coded as v * size + w.
        codes = np.sort(first * size + second, axis=1)
        new = np.diff(codes, axis=1, prepend=-1) != 0
        at = np.flatnonzero(new)
        starts = np.append(0, np.cumsum(np.count_nonzero(new, axis=1)))
        counts = np.diff(np.append(at, codes.size))
        return cls(ends, *np.divmod(codes.ravel()[at], size), counts, starts)


class Inputs(ABC):
    """The variables of a mechanism, and which of them are neighbours.

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        key: the parameters that determine all of this, for the digest of a certificate.
        rows: the orbit of inputs of each variable, nondecreasing, shape (size,).
        representatives: an input and an output of each variable, shape (size, 2), if they are
            numbers.
        counts: number of outputs of one input that each variable stands for, shape (size,).
        row_sizes: number of inputs in each orbit of inputs; integers of any size.
        edges: neighbouring inputs with all their outputs: at least one pair of each orbit, once or
            in both directions.
    """

    inputs: Any
    outputs: Any
    key: Any
    rows: Any
    counts: Any
    row_sizes: Any
    representatives: Any
    edges: Any

    def located(self, data: Any) -> tuple[Any, bool]:  # noqa: ANN401
        """Return checked inputs, shape (queries, ...), by default numbers, and whether it was one.

        The message of a refusal is for the curator alone.
        """
        indices = checked_indices("inputs", data, self.inputs)
        if indices.ndim > 1:
            raise ParameterError("inputs must be an integer or a one-dimensional array of them.")
        return np.atleast_1d(indices), indices.ndim == 0

    @abstractmethod
    def rows_of(self, located: Any) -> IntVector:  # noqa: ANN401
        """Return the orbit of each input, shape (queries,)."""

    @abstractmethod
    def variables_of(self, located: Any) -> IntVector:  # noqa: ANN401
        """Return the variable of each pair of an input and an output, shape (queries, outputs)."""

    @abstractmethod
    def chosen(self, located: Any, variables: IntVector, index: IntVector) -> IntVector:  # noqa: ANN401
        """Return for each input x the index-th of the outputs y with (x, y) in its variable."""

    def numbers(self, located: Any) -> IntVector:  # noqa: ANN401
        """Return the row of each input in `table`; by default inputs are numbers."""
        return located

    @abstractmethod
    def claim(self) -> str:
        """Return the sentence for a certificate: between which inputs the table is private."""

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return neighbours x, x' and an output y whose variables (x, y), (x', y) these are."""
        edges = self.edges
        entries = np.flatnonzero((edges.first == first) & (edges.second == second))
        turned = not entries.size
        if turned:
            entries = np.flatnonzero((edges.first == second) & (edges.second == first))
        edge = int(np.searchsorted(edges.starts, entries[0], side="right")) - 1
        (x, other), (y, *_) = self.event(edge, [int(entries[0])])
        return (other, x, y) if turned else (x, other, y)

    def event(
        self, edge: int, entries: Collection[int]
    ) -> tuple[tuple[Name, Name], tuple[Name, ...]]:
        """Return the two inputs of an edge, and all outputs of some of its entries."""
        first, second = self.edges.first, self.edges.second
        variable_pairs = {(int(first[entry]), int(second[entry])) for entry in entries}
        x, other = self.edges.ends[edge].tolist()
        pairs = zip(*self.variables_of(self.edges.ends[edge]).tolist(), strict=True)
        return (x, other), tuple(y for y, pair in enumerate(pairs) if pair in variable_pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inputs) and fingerprint(self.key) == fingerprint(other.key)

    def __hash__(self) -> int:
        return hash(fingerprint(self.key))

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.rows)

    @cached_property
    def columns(self) -> IntVector:
        """The orbit of outputs of each variable; one by default, where all outputs are alike."""
        return np.zeros(self.size, dtype=np.int64)

    @cached_property
    def column_sizes(self) -> IntVector:
        """Number of outputs in each orbit of outputs."""
        return np.array([self.outputs])

    @cached_property
    def starts(self) -> IntVector:
        """First variable of each orbit of inputs, then ``size``, shape (rows + 1,)."""
        return np.append(np.flatnonzero(np.diff(self.rows, prepend=-1)), self.size)

    @cached_property
    def sums(self) -> sp.csr_array:
        """The matrix that sums the probabilities of all outputs of an input, shape (rows, size)."""
        entries = np.asarray(self.counts, dtype=np.float64)
        shape = (len(self.starts) - 1, self.size)
        return sp.csr_array((entries, (self.rows, np.arange(self.size))), shape=shape)

    @cached_property
    def neighbours(self) -> IntVector:
        """Groups of variables (x, y) of one y and neighbouring x, shape (groups, members).

        By default these are pairs, each once.
        """
        first, second = self.edges.first, self.edges.second
        codes = np.unique(np.minimum(first, second) * self.size + np.maximum(first, second))
        pairs = np.stack(np.divmod(codes, self.size), axis=1)
        return pairs[pairs[:, 0] != pairs[:, 1]]

    @cached_property
    def parts(self) -> IntVector:
        """Connected component of each variable in the graph of neighbours, shape (size,)."""
        groups = self.neighbours
        if not groups.size:
            return np.arange(self.size)
        # A star from the first member connects each group.
        first = np.repeat(groups[:, 0], groups.shape[1] - 1)
        star = links(np.stack([first, groups[:, 1:].ravel()], axis=1), self.size)
        return connected_components(star, directed=False)[1]

    def plain(self, *, sets: bool) -> Json:
        """Return the variables and their neighbours for a file, as `dpopt.verify` reads them."""
        body: Json = {"sizes": np.diff(self.starts).tolist(), "counts": self.counts.tolist()}
        if sets:
            return {**body, "edges": [list(edge) for edge in self.edges.listed()]}
        return {**body, "neighbours": self.neighbours.tolist()}

    def table(self) -> IntVector:
        """Return the variable of every pair, shape (inputs, outputs)."""
        if self.inputs * self.outputs > LARGEST_WRITTEN:
            raise ParameterError(
                f"the kernel has {self.inputs} inputs and {self.outputs} outputs; at most "
                f"{LARGEST_WRITTEN:,} entries are written out. It releases all the same."
            )
        return self.variables_of(self.every())

    def every(self) -> Any:  # noqa: ANN401
        """Return all inputs, as `located` returns them; by default numbers."""
        return np.arange(self.inputs)

    def mean_row(self, masses: Vector) -> Vector:
        """Return the mean probability of one output over all inputs, for each orbit of outputs."""
        sizes = np.array([float(size) for size in self.row_sizes])
        # Weight of each orbit of inputs by its size; then sum by orbit of outputs.
        weighed = masses * (sizes / sizes.sum())[self.rows]
        return np.bincount(self.columns, weighed, len(self.column_sizes)) / self.column_sizes


def checked_indices(name: str, indices: object, size: int) -> IntVector:
    """Return integers in 0..size-1 as an array of any shape."""
    array = _checks.array(name, indices)
    if array.dtype.kind not in "iu" or array.min(initial=0) < 0 or array.max(initial=0) >= size:
        raise ParameterError(f"{name} must hold integers in 0..{size - 1}.")
    return array.astype(np.int64)


def edges_claim(inputs: int, pairs: IntVector | None) -> str:
    """Return the sentence for a certificate, which counts unprotected inputs and separate parts."""
    if inputs == 1:
        return "the kernel has one input, which has no neighbour: there was nothing to prove"
    if pairs is None:
        return f"the kernel is private between all {inputs} inputs"
    said = f"the kernel is private along {len(pairs)} directed edges of {inputs} inputs"
    sizes = np.bincount(connected_components(links(pairs, inputs), directed=False)[1])
    alone, components = int(np.sum(sizes == 1)), int(np.sum(sizes > 1))
    if alone:
        said += f"; without a neighbour, and not protected: {alone}"
    if components > 1:
        said += f"; no neighbours join its {components} parts, and privacy holds within each"
    return said


def read_only(values: npt.ArrayLike) -> IntVector:
    """Return integers as a read-only array."""
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
