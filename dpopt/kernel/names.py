"""User names for the inputs and outputs of a table, and edges between named inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.table import Graph
from dpopt.table.inputs import Name

Names = Sequence[Hashable]
"""Names of inputs or outputs in order; as a text, a,b,c."""


def checked_names(what: str, raw_names: object, size: int) -> tuple[Name, ...] | None:
    """Return names as whole numbers and texts; None if they are 0, 1, ..., size - 1 in this order.

    They are ``size`` distinct names in order, or one text a,b,c; None for no names.
    """
    if raw_names is None:
        return None
    if isinstance(raw_names, str):
        words = [word.strip() for word in raw_names.split(";" if ";" in raw_names else ",")]
        numeric = all(word.isascii() and word.isdigit() for word in words)
        raw_names = list(map(int, words)) if numeric else words
    if not isinstance(raw_names, Sequence | np.ndarray) or getattr(raw_names, "ndim", 1) != 1:
        raise ParameterError(
            f"{what} is {_checks.shown(raw_names)}; it must be the {size} names of the {what}, in "
            "order."
        )
    names = tuple(plain_name(what, name) for name in raw_names)
    distinct = len(set(map(str, names)))
    if len(names) != size or distinct != size:
        raise ParameterError(
            f"{what} has {len(names)} names, {distinct} of them distinct; the kernel has {size} "
            f"{what}."
        )
    return None if names == tuple(range(size)) else names


def plain_name(what: str, name: Any) -> Name:  # noqa: ANN401
    """Return a name as an int if it is an integer, else as a text."""
    name = name.item() if isinstance(name, np.generic) else name
    unbounded = isinstance(name, float) and not math.isfinite(name)
    if name is None or unbounded or not isinstance(name, Hashable) or name == "":
        raise ParameterError(f"{what} holds {_checks.shown(name)}, which is no name.")
    if isinstance(name, float) and name.is_integer():
        return int(name)
    if type(name) is int:
        return name
    return _checks.printable(what, str(name))


def position(what: str, names: Sequence[Name], name: object) -> int:
    """Return the index of a name among ``names``; it may also be the text of that name."""
    index_of = {str(label): index for index, label in enumerate(names)}
    try:
        return index_of[str(plain_name(what, name))]
    except (KeyError, ParameterError):
        raise ParameterError(f"{what} must be one of the names {listed(names)}.") from None


def listed(names: Iterable[object]) -> str:
    """Return names as one line of bounded length, for a message."""
    return _checks.shown(list(names))[1:].removesuffix("]")


def edges_by_name(graph: Any, names: Sequence[Name] | None) -> str | npt.ArrayLike:  # noqa: ANN401
    """Return edges between names, pairs or a text a:b,b:c, as edges between input indices.

    The name of a graph is returned unchanged, and so are edges where inputs have no names, but for
    a text 0:1,1:2.
    """
    if isinstance(graph, str) and ":" not in graph:
        return graph
    edges: Any = [each.split(":") for each in graph.split(",")] if isinstance(graph, str) else graph
    if names is None:
        try:
            return edges if edges is graph else [list(map(int, edge)) for edge in edges]
        except ValueError:
            raise ParameterError(
                f"graph is {_checks.shown(graph)}; edges are written 0:1,1:2."
            ) from None
    try:
        pairs = [tuple(edge) for edge in (edges.tolist() if hasattr(edges, "tolist") else edges)]
    except TypeError:
        raise ParameterError(
            f"graph is {_checks.shown(graph)}; it must be a name, or edges, pairs of names."
        ) from None
    index_of = {str(name): index for index, name in enumerate(names)}
    edges = [[index_of.get(str(plain_name("graph", end))) for end in pair] for pair in pairs]
    for pair, ends in zip(pairs, edges, strict=True):
        if len(ends) != 2 or None in ends or ends[0] == ends[1]:
            raise ParameterError(
                f"graph holds the edge {_checks.shown(pair)}; an edge joins two different inputs, "
                f"by their names {listed(names)}."
            )
    if not edges:
        raise ParameterError("graph holds no edge; it must be a name, or at least one edge.")
    return cast(Any, edges)


@dataclass(frozen=True, eq=False, repr=False)
class NamedGraph(Graph):
    """A graph whose inputs and outputs have names, in order; 0, 1, ... if None."""

    input_names: tuple[Name, ...] | None = None
    output_names: tuple[Name, ...] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The parameters that determine the variables, and the names."""
        return *super().key, self.input_names, self.output_names

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return the indices of named inputs, and whether ``data`` was a single one."""
        names = self.input_names
        if names is None:
            return super().located(data)
        several = isinstance(data, Iterable) and not isinstance(data, str)
        if not several or getattr(data, "ndim", 1) == 0:
            return np.array([position("the input", names, data)]), True
        return np.array([position("the input", names, one) for one in data], dtype=np.int64), False

    def claim(self) -> str:
        """Return the sentence for a certificate that says what is private, with edges by name."""
        names, claim = self.input_names, super().claim()
        if names is None or self.pairs is None:
            return claim
        edges = (f"{names[x]}:{names[other]}" for x, other in self._edge_ends.tolist())
        return f"{claim}; the edges are {listed(edges)}"

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output by name, from their two variables."""
        x, other, y = super().words(first, second)
        (x, other), (y,) = self._called((x, other), (y,))
        return x, other, y

    def event(
        self, edge: int, entries: Collection[int]
    ) -> tuple[tuple[Name, Name], tuple[Name, ...]]:
        """Return the two inputs of an edge and the outputs of some of its entries, by name."""
        return self._called(*super().event(edge, entries))

    def _called(self, ends: Any, outputs: Any) -> Any:  # noqa: ANN401
        """Return two inputs and some outputs by name."""
        names, called = self.input_names, self.output_names
        ends = ends if names is None else (names[ends[0]], names[ends[1]])
        return ends, outputs if called is None else tuple(called[y] for y in outputs)
