"""User names for the inputs and outputs of a table, and edges between named inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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


def positions(what: str, names: Sequence[Name], wanted: Iterable[object]) -> list[int]:
    """Return the index among ``names`` of each wanted one, which may also be its text."""
    index_of = {str(label): index for index, label in enumerate(names)}
    try:
        return [index_of[str(plain_name(what, name))] for name in wanted]
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
    text = isinstance(graph, str)
    if (text and ":" not in graph) or (names is None and not text):
        return graph
    edges = [edge.split(":") for edge in graph.split(",")] if text else graph
    try:
        if names is None:
            return [list(map(int, edge)) for edge in edges]
        return [positions("each end of an edge in graph", names, edge) for edge in edges]
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"graph is {_checks.shown(graph)}; it must be a name, or edges, pairs of inputs such "
            "as 0:1,1:2."
        ) from None


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
        single = not several or getattr(data, "ndim", 1) == 0
        found = positions("the input", names, [data] if single else data)
        return np.array(found, dtype=np.int64), single

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
