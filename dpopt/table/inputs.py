"""Inputs up to symmetry: which probabilities are one variable, and which are neighbours.

A symmetry permutes inputs (sigma) and outputs (tau) and keeps neighbours. A mechanism with
K[sigma x, tau y] = K[x, y] has one probability on each orbit of pairs (x, y): that orbit is a
*variable*. Averaging any mechanism over a group of symmetries makes it so, keeps its privacy, and
keeps every loss that the group leaves alone. Without a symmetry every pair is an orbit of its own.

`Graph` has no symmetry; `dpopt.table.symmetric` finds the orbits of generators and has those of
words by formula; `dpopt.table.histograms` has counts up to the order of their categories.
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
from dpopt._numbers import shown
from dpopt._types import IntVector, Json, Vector
from dpopt.privacy.plain import fingerprint

LARGEST_WRITTEN = 20_000_000
"""Entries of the largest kernel that is written out; memory fixes it."""

Name = int | str
"""Of an input or an output: its number, its name, or what it is in words."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Pairs of neighbouring inputs, up to symmetry, and what their outputs are.

    Attributes:
        ends: two neighbouring inputs of each edge, shape (edges, 2), if inputs are numbers.
        first: variable of (x, y) by entry, edge after edge, shape (entries,).
        second: variable of (x', y), likewise.
        counts: number of outputs y of an entry, likewise.
        starts: where the entries of each edge start, and their number, shape (edges + 1,).
    """

    ends: IntVector
    first: IntVector
    second: IntVector
    counts: IntVector
    starts: IntVector

    def listed(self) -> list[tuple[list[int], list[int], list[int]]]:
        """Return the entries of each edge as `dpopt.verify` takes them."""
        first, second, counts = (a.tolist() for a in (self.first, self.second, self.counts))
        bounds = self.starts.tolist()
        return [(first[a:b], second[a:b], counts[a:b]) for a, b in pairwise(bounds)]


class Inputs(ABC):
    """The variables of a mechanism, and which of them are neighbours.

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        key: what all of this follows from, for a certificate.
        rows: the input, up to symmetry, of each variable, not falling, shape (size,).
        columns: the output, up to symmetry, of each variable, likewise.
        representatives: an input and an output that each variable stands for, shape (size, 2), if
            they are numbers.
        counts: how many outputs of one input each variable stands for, likewise.
        row_sizes: how many inputs are alike, for each input up to symmetry; of any length.
        column_sizes: how many outputs are alike, likewise.
        neighbours: variables (x, y) and (x', y) of neighbouring inputs; those of a line are all
            each other's neighbours, shape (groups, members).
        edges: neighbouring inputs with all their outputs, at least one pair of each orbit, once or
            in both directions.
    """

    inputs: Any
    outputs: Any
    key: Any
    rows: Any
    columns: Any
    counts: Any
    row_sizes: Any
    column_sizes: Any
    representatives: Any
    neighbours: Any
    edges: Any

    @abstractmethod
    def located(self, data: Any) -> tuple[Any, bool]:  # noqa: ANN401
        """Return inputs, checked, as an array whose first axis is theirs, and if it was one.

        Raises:
            ParameterError: if they are no inputs; the refusal is for the curator alone.
        """

    @abstractmethod
    def rows_of(self, located: Any) -> IntVector:  # noqa: ANN401
        """Return each input up to symmetry, shape (queries,)."""

    @abstractmethod
    def variables_of(self, located: Any) -> IntVector:  # noqa: ANN401
        """Return the variable of each output of inputs, shape (queries, outputs)."""

    @abstractmethod
    def chosen(self, located: Any, variables: IntVector, index: IntVector) -> IntVector:  # noqa: ANN401
        """Return outputs: of those that stand in a variable with an input, the one of an index.

        Args:
            located: inputs, as `located` returns them.
            variables: one for each, shape (queries,).
            index: in 0..counts-1 of the variable, likewise.
        """

    def numbers(self, located: Any) -> IntVector | None:  # noqa: ANN401
        """Return inputs by their rows in `table`; None if they are too many to be numbered."""
        return located

    @abstractmethod
    def claim(self) -> str:
        """Say between which inputs a table is proved private."""

    @abstractmethod
    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output, whose variables these are."""

    def event(
        self, edge: int, entries: Collection[int]
    ) -> tuple[tuple[Name, Name], tuple[Name, ...]]:
        """Return the two inputs of an edge, and the outputs of some of its entries."""
        first, second = self.edges.first, self.edges.second
        chosen = {(int(first[entry]), int(second[entry])) for entry in entries}
        x, other = self.edges.ends[edge].tolist()
        pairs = zip(*self.variables_of(self.edges.ends[edge]).tolist(), strict=True)
        return (x, other), tuple(y for y, pair in enumerate(pairs) if pair in chosen)

    def __eq__(self, other: object) -> bool:
        """Whether these are the same inputs, symmetries and neighbours."""
        return isinstance(other, Inputs) and fingerprint(self.key) == fingerprint(other.key)

    def __hash__(self) -> int:
        """Return a number that follows from what the inputs follow from."""
        return hash(fingerprint(self.key))

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.rows)

    @cached_property
    def starts(self) -> IntVector:
        """Where the variables of each input start, and their number, shape (rows + 1,)."""
        return np.append(np.flatnonzero(np.diff(self.rows, prepend=-1)), self.size)

    @cached_property
    def sums(self) -> sp.csr_array:
        """The matrix that sums probabilities over all outputs of each input, shape (rows, size)."""
        entries = np.asarray(self.counts, dtype=np.float64)
        shape = (len(self.starts) - 1, self.size)
        return sp.csr_array((entries, (self.rows, np.arange(self.size))), shape=shape)

    @cached_property
    def parts(self) -> IntVector:
        """Which variables a chain of neighbours joins, as labels, shape (size,)."""
        groups = self.neighbours
        if not groups.size:
            return np.arange(self.size)
        first = np.repeat(groups[:, 0], groups.shape[1] - 1)
        links = sp.coo_array(
            (np.ones(first.size), (first, groups[:, 1:].ravel())), shape=(self.size, self.size)
        )
        return connected_components(links, directed=False)[1]

    def plain(self, *, sets: bool) -> Json:
        """Return the variables and their neighbours for a file, from which `dpopt.verify` decides.

        Args:
            sets: of neighbouring inputs with all their outputs, as delta > 0 asks for; else of
                neighbouring variables.
        """
        body: Json = {"sizes": np.diff(self.starts).tolist(), "counts": self.counts.tolist()}
        if sets:
            return {**body, "edges": [list(edge) for edge in self.edges.listed()]}
        return {**body, "neighbours": self.neighbours.tolist()}

    def table(self) -> IntVector:
        """Return the variable of every pair, shape (inputs, outputs).

        Raises:
            ParameterError: for more than 20,000,000 pairs.
        """
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
        """Return the mean probability of an output over all inputs, by output up to symmetry."""
        sizes = np.array([float(size) for size in self.row_sizes])
        weighed = masses * (sizes / sizes.sum())[self.rows]
        return np.bincount(self.columns, weighed, len(self.column_sizes)) / self.column_sizes


def checked_places(data: object, inputs: int) -> tuple[IntVector, bool]:
    """Return inputs 0..inputs-1 as an array, and whether it was a single one.

    Raises:
        ParameterError: if one is no input.
    """
    array = _checks.array("inputs", data)
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
        raise ParameterError("inputs must be an integer or a one-dimensional array of them.")
    listed = np.atleast_1d(array).astype(np.int64)
    if listed.size and (listed.min() < 0 or listed.max() >= inputs):
        raise ParameterError(f"inputs holds a value outside 0..{inputs - 1}.")
    return listed, array.ndim == 0


def edges_claim(inputs: int, pairs: IntVector | None) -> str:
    """Say between which inputs privacy was proved: a list that names few of them proves little."""
    if inputs == 1:
        return "the kernel has one input, which has no neighbour: there was nothing to prove"
    if pairs is None:
        return f"the kernel is private between all {inputs} inputs"
    said = f"the kernel is private along {len(pairs)} directed edges of {inputs} inputs"
    links = sp.csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(inputs, inputs))
    sizes = np.bincount(connected_components(links, directed=False)[1])
    alone, components = int(np.sum(sizes == 1)), int(np.sum(sizes > 1))
    if alone:
        said += f"; without a neighbour, and not protected: {alone}"
    if components > 1:
        said += f"; no neighbours join its {components} parts, and privacy holds within each"
    return said


def check_pairs(pairs: IntVector, inputs: int) -> None:
    """Refuse directed neighbours of which a proof would leave some out.

    Raises:
        ParameterError: if they are not sorted, or lack a direction: differential privacy holds both
            ways.
    """
    if not isinstance(pairs, np.ndarray) or pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ParameterError(
            f"pairs is {shown(pairs)}; it must be an array of shape (pairs, 2), as "
            "directed_pairs makes one of undirected edges."
        )
    codes = pairs @ np.array([inputs, 1])
    turned = np.sort(pairs[:, ::-1] @ np.array([inputs, 1]))
    alone = np.any(pairs[:, 0] == pairs[:, 1])
    outside = pairs.min(initial=0) < 0 or pairs.max(initial=0) >= inputs
    if outside or alone or np.any(np.diff(codes) <= 0) or not np.array_equal(codes, turned):
        raise ParameterError(
            "pairs must be two different inputs each, sorted, each with its other direction: "
            "differential privacy holds both ways. See directed_pairs."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Inputs):
    """Inputs 0..inputs-1 along a graph, without a symmetry: variable x * outputs + y is (x, y).

    Attributes:
        inputs: number of inputs.
        outputs: number of outputs.
        pairs: directed neighbours, both directions, sorted, shape (pairs, 2), as
            `dpopt.privacy.directed_pairs` returns them; None if every two inputs are neighbours.

    Raises:
        ParameterError: for pairs that are no such neighbours.
    """

    inputs: int
    outputs: int
    pairs: IntVector | None = None

    def __post_init__(self) -> None:
        """Refuse neighbours in one direction only."""
        if self.pairs is not None:
            check_pairs(self.pairs, self.inputs)

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from."""
        return "graph", self.inputs, self.outputs, self.pairs

    @property
    def size(self) -> int:
        """Number of variables, which may be too many to be written out."""
        return self.inputs * self.outputs

    @cached_property
    def rows(self) -> IntVector:
        """The input of each variable."""
        return np.repeat(np.arange(self.inputs), self.outputs)

    @cached_property
    def columns(self) -> IntVector:
        """The output of each variable."""
        return np.tile(np.arange(self.outputs), self.inputs)

    @cached_property
    def representatives(self) -> IntVector:
        """The input and the output of each variable, shape (size, 2)."""
        return np.stack([self.rows, self.columns], axis=1)

    @cached_property
    def counts(self) -> IntVector:
        """Each variable is one output of its input."""
        return np.ones(self.size, dtype=np.int64)

    @property
    def row_sizes(self) -> list[int]:
        """No two inputs are alike."""
        return [1] * self.inputs

    @cached_property
    def column_sizes(self) -> IntVector:
        """No two outputs are alike."""
        return np.ones(self.outputs, dtype=np.int64)

    @cached_property
    def undirected(self) -> IntVector:
        """Each pair of neighbours once, shape (edges, 2)."""
        if self.pairs is not None:
            return self.pairs[self.pairs[:, 0] < self.pairs[:, 1]]
        return np.stack(np.triu_indices(self.inputs, 1), axis=1)

    @cached_property
    def neighbours(self) -> IntVector:
        """Of a complete graph a group for each output; else one for each edge and output."""
        outputs = np.arange(self.outputs)
        if self.pairs is None and self.inputs > 1:
            return np.arange(self.inputs) * self.outputs + outputs[:, None]
        return (self.undirected[:, None, :] * self.outputs + outputs[:, None]).reshape(-1, 2)

    @cached_property
    def edges(self) -> Edges:
        """Each pair of neighbours once, with all outputs.

        Raises:
            ParameterError: for more than 20,000,000 entries.
        """
        ends, outputs = self.undirected, np.arange(self.outputs)
        if len(ends) * self.outputs > LARGEST_WRITTEN:
            raise ParameterError(
                f"the graph has {len(ends):,} edges with {self.outputs} outputs; at most "
                f"{LARGEST_WRITTEN:,} of both together are looked at."
            )
        first, second = ((ends[:, [s]] * self.outputs + outputs).ravel() for s in (0, 1))
        starts = np.arange(len(ends) + 1) * self.outputs
        return Edges(ends, first, second, np.ones(first.size, dtype=np.int64), starts)

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return inputs as checked numbers, and whether it was a single one."""
        return checked_places(data, self.inputs)

    def rows_of(self, located: IntVector) -> IntVector:
        """Return each input."""
        return located

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variable of each output of inputs, shape (queries, outputs)."""
        return located[:, None] * self.outputs + np.arange(self.outputs)

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return the output of each variable."""
        del located, index
        return variables % self.outputs

    def claim(self) -> str:
        """Say between which inputs a table is proved private."""
        return edges_claim(self.inputs, self.pairs)

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output, by their numbers."""
        (x, y), other = divmod(first, self.outputs), second // self.outputs
        return x, other, y


def read_only(values: npt.ArrayLike) -> IntVector:
    """Return integers as an array that cannot be changed."""
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
