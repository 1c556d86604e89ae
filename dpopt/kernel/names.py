"""Names of a table's inputs and outputs, and edges between names."""

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


def checked_names(what: str, given: object, size: int) -> tuple[Name, ...] | None:
    """Return names as whole numbers and texts; None if they are 0, 1, ..., size - 1 in this order.

    Args:
        what: "inputs" or "outputs", for messages.
        given: ``size`` distinct names in order, as a text a,b,c; None for no names.
        size: how many there are.

    Raises:
        ParameterError: if they are no names, not distinct, or of another number.
    """
    if given is None:
        return None
    if isinstance(given, str):
        words = [word.strip() for word in given.split(";" if ";" in given else ",")]
        whole = all(word.isascii() and word.isdigit() for word in words)
        given = list(map(int, words)) if whole else words
    if not isinstance(given, Sequence | np.ndarray) or getattr(given, "ndim", 1) != 1:
        raise ParameterError(
            f"{what} is {_checks.shown(given)}; it must be the {size} names of the {what}, in "
            "order."
        )
    names = tuple(plain_name(what, name) for name in given)
    distinct = len(set(map(str, names)))
    if len(names) != size or distinct != size:
        raise ParameterError(
            f"{what} has {len(names)} names, {distinct} of them distinct; the kernel has {size} "
            f"{what}."
        )
    return None if names == tuple(range(size)) else names


def plain_name(what: str, name: Any) -> Name:  # noqa: ANN401
    """Return a name as a whole number, or as a text.

    Raises:
        ParameterError: if it is empty, or no number.
    """
    name = name.item() if isinstance(name, np.generic) else name
    unbounded = isinstance(name, float) and not math.isfinite(name)
    if name is None or unbounded or not isinstance(name, Hashable) or name == "":
        raise ParameterError(f"{what} holds {_checks.shown(name)}, which is no name.")
    if isinstance(name, float) and name.is_integer():
        return int(name)
    return name if type(name) is int else str(name)


def place(what: str, names: Sequence[Name], name: object) -> int:
    """Return the place of a name, or of the text that says it.

    Raises:
        ParameterError: if it is none of them; the refusal does not repeat it.
    """
    places = {str(known): at for at, known in enumerate(names)}
    try:
        return places[str(plain_name(what, name))]
    except (KeyError, ParameterError):
        raise ParameterError(f"{what} must be one of the names {listed(names)}.") from None


def listed(names: Iterable[object]) -> str:
    """Return names for a message, in one line of bounded length."""
    return _checks.shown(list(names))[1:].removesuffix("]")


def edges_by_name(graph: Any, names: Sequence[Name] | None) -> str | npt.ArrayLike:  # noqa: ANN401
    """Return edges between names, pairs or a text a:b,b:c, as edges between places.

    The name of a graph stays as it is, and so do edges where there are no names.

    Raises:
        ParameterError: if an edge is no pair of names.
    """
    if names is None or (isinstance(graph, str) and ":" not in graph):
        return graph
    if isinstance(graph, str):
        graph = [edge.split(":") for edge in graph.split(",")]
    try:
        pairs = [tuple(edge) for edge in (graph.tolist() if hasattr(graph, "tolist") else graph)]
    except TypeError:
        raise ParameterError(
            f"graph is {_checks.shown(graph)}; it must be a name, or edges, pairs of names."
        ) from None
    places = {str(name): at for at, name in enumerate(names)}
    found = [[places.get(str(plain_name("graph", end))) for end in pair] for pair in pairs]
    for pair, ends in zip(pairs, found, strict=True):
        if len(ends) != 2 or None in ends or ends[0] == ends[1]:
            raise ParameterError(
                f"graph holds the edge {_checks.shown(pair)}; an edge joins two different inputs, "
                f"by their names {listed(names)}."
            )
    if not found:
        raise ParameterError("graph holds no edge; it must be a name, or at least one edge.")
    return cast(Any, found)


@dataclass(frozen=True, eq=False, repr=False)
class NamedGraph(Graph):
    """Inputs and outputs that go by names.

    Attributes:
        input_names: of the inputs in their order; 0, 1, ... if None.
        output_names: of the outputs, likewise.
    """

    input_names: tuple[Name, ...] | None = None
    output_names: tuple[Name, ...] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What the variables follow from, and the names."""
        return *super().key, self.input_names, self.output_names

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return the places of inputs, given by name, and whether it was a single one."""
        names = self.input_names
        if names is None:
            return super().located(data)
        many = isinstance(data, Iterable) and not isinstance(data, str)
        if not many or getattr(data, "ndim", 1) == 0:
            return np.array([place("the input", names, data)]), True
        return np.array([place("the input", names, one) for one in data], dtype=np.int64), False

    def claim(self) -> str:
        """Say between which inputs a table is proved private, and their edges by name."""
        names, claim = self.input_names, super().claim()
        if names is None or self.pairs is None:
            return claim
        edges = (f"{names[x]}:{names[other]}" for x, other in self.undirected.tolist())
        return f"{claim}; the edges are {listed(edges)}"

    def words(self, first: int, second: int) -> tuple[Name, Name, Name]:
        """Return two neighbouring inputs and an output, by their names."""
        x, other, y = super().words(first, second)
        return *self._named((x, other)), self._outputs((y,))[0]

    def event(
        self, edge: int, entries: Collection[int]
    ) -> tuple[tuple[Name, Name], tuple[Name, ...]]:
        """Return the two inputs of an edge, and the outputs of some of its entries, by names."""
        ends, outputs = super().event(edge, entries)
        return self._named(ends), self._outputs(outputs)

    def _named(self, ends: tuple[Any, Any]) -> tuple[Name, Name]:
        names = self.input_names
        return ends if names is None else (names[ends[0]], names[ends[1]])

    def _outputs(self, outputs: tuple[Any, ...]) -> tuple[Name, ...]:
        names = self.output_names
        return outputs if names is None else tuple(names[y] for y in outputs)
