"""What a user adds to a kernel: names of inputs and outputs, edges between them, constraints."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, MatrixLike, SparseMatrix, Vector, brief, frozen
from dpopt.files import contents, parse_json, why_unread
from dpopt.privacy import Guarantee, Problem
from dpopt.table import Graph, Inputs, Table, over_masses
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


@dataclass(frozen=True, eq=False)
class ConstraintBlock:
    """A named block of rows lower_i <= sum_xy c_ixy K[x, y] <= upper_i.

    Attributes:
        name: of the block.
        places: the index (i, x, y) of each coefficient, shape (coefficients, 3).
        coefficients: c_ixy, shape (coefficients,).
        lower: lower limit of each row, None for none; at least one row.
        upper: upper limit of each row, likewise.

    Raises:
        ParameterError: if these do not fit together, or a number is not finite.
    """

    name: str
    places: IntVector
    coefficients: Vector
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(
                f"name of constraints is {_checks.shown(self.name)}; it must be a text, not empty."
            )
        called = f"of rows {_checks.shown(self.name)}"
        places = _checks.array(f"places {called}", self.places)
        integral = places.dtype.kind in "iu" or places.size == 0
        if places.ndim != 2 or places.shape[1] != 3 or not integral:
            raise ParameterError(
                f"places {called} have shape {places.shape}; they must be integers, "
                "(row, input, output) for each coefficient."
            )
        values = _checks.floats(f"coefficients {called}", self.coefficients)
        if values.shape != (len(places),) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"coefficients {called} must be finite numbers, one for each place."
            )
        lower, upper = (
            _limits(f"{side} {called}", getattr(self, side)) for side in ("lower", "upper")
        )
        if len(lower) != len(upper) or not lower:
            raise ParameterError(
                f"constraint {_checks.shown(self.name)} has {len(lower)} lower and "
                f"{len(upper)} upper limits; there must be as many, and at least one."
            )
        row = places[:, 0]
        if places.min(initial=0) < 0 or row.max(initial=0) >= len(lower):
            raise ParameterError(f"places {called} are below 0, or of a row that has no limits.")
        places = places.astype(np.int64)
        places.setflags(write=False)
        fields = {"places": places, "coefficients": frozen(values), "lower": lower, "upper": upper}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return brief(self, name=self.name, rows=self.count, coefficients=len(self.places))

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.lower)

    @property
    def limits(self) -> tuple[Vector, Vector]:
        """Lower and upper limits as floats, infinite where there are none."""
        return (
            np.array([-math.inf if limit is None else limit for limit in self.lower]),
            np.array([math.inf if limit is None else limit for limit in self.upper]),
        )

    def matrix(self, inputs: int, outputs: int) -> SparseMatrix:
        """Return the rows over the flattened kernel, with K[x, y] in column x * outputs + y."""
        row, x, y = self.places.T
        for what, index, size in (("input", x, inputs), ("output", y, outputs)):
            if index.max(initial=0) >= size:
                raise ParameterError(
                    f"constraints {self.name!r} hold {what} {index.max()}; the kernel has {size} "
                    f"{what}s, 0..{size - 1}."
                )
        shape = (self.count, inputs * outputs)
        return sp.csr_array((self.coefficients, (row, x * outputs + y)), shape=shape)

    def slacks(self, table: Table) -> dict[tuple[int, str], Fraction]:
        """Return the slack of a table in each limit, by row and side, exactly."""
        sums, outputs = [Fraction(0)] * self.count, len(table.inputs.column_sizes)
        entries = zip(self.places.tolist(), self.coefficients.tolist(), strict=True)
        for (row, x, y), coefficient in entries:
            sums[row] += Fraction(coefficient) * table.weights[x * outputs + y]
        slacks = dict[tuple[int, str], Fraction]()
        for row, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            if lower is not None:
                slacks[row, "lower"] = sums[row] / table.total - Fraction(lower)
            if upper is not None:
                slacks[row, "upper"] = Fraction(upper) - sums[row] / table.total
        return slacks

    def misses(self, table: Table) -> Fraction:
        """Return the largest violation of a row by a table, exactly; 0 if there is none."""
        return max([Fraction(0), *(-slack for slack in self.slacks(table).values())])


def add_constraints(
    problem: Problem, inputs: Inputs, guarantee: Guarantee, blocks: Sequence[ConstraintBlock]
) -> None:
    """Add the user's constraints to a program of tables, each block under its name."""
    for block in blocks:
        matrix = block.matrix(len(inputs.row_sizes), len(inputs.column_sizes))
        sides = over_masses(problem, inputs, guarantee, matrix)
        lower, upper = block.limits
        problem.add_rows(block.name, sides, lower=lower, upper=upper)


Constraints = Sequence[
    ConstraintBlock | tuple[str, MatrixLike, npt.ArrayLike | None, npt.ArrayLike | None]
]
"""Blocks of rows: (name, matrix over the flattened kernel, lower limits, upper limits) each."""


def constraint_blocks(
    constraints: object, inputs: int, outputs: int
) -> tuple[ConstraintBlock, ...]:
    """Return constraints in any of their three forms as blocks; none for None."""
    if constraints is None:
        return ()
    if isinstance(constraints, str | Mapping) or not isinstance(constraints, Sequence):
        raise ParameterError(
            f"constraints is {_checks.shown(constraints)}; it must be a list of tuples (name, "
            "matrix over the kernel, lower, upper), or what read_constraints returns of a file."
        )
    # Entries of the largest kernel that takes constraints; memory fixes it.
    if inputs * outputs > 10_000_000:
        raise ParameterError(
            f"constraints are over a kernel of {inputs} inputs and {outputs} outputs; at most "
            "10,000,000 entries are taken."
        )
    scratch = Problem()
    scratch.add_variables("kernel", (inputs, outputs), lower=0.0, upper=1.0)
    return tuple(_block(scratch, block, inputs, outputs) for block in constraints)


def _block(scratch: Problem, block: Any, inputs: int, outputs: int) -> ConstraintBlock:  # noqa: ANN401
    """Return one block; the rows are added to ``scratch``, which checks names and shapes."""
    fields: Any = block if isinstance(block, Sequence) and not isinstance(block, str) else ()
    if len(fields) == 5:
        block = ConstraintBlock(*fields)
    if isinstance(block, ConstraintBlock):
        fields = block.name, block.matrix(inputs, outputs), block.lower, block.upper
    if len(fields) != 4:
        raise ParameterError(
            "constraints must be a list of tuples (name, matrix over the kernel, lower, upper)."
        )
    name, matrix, lower, upper = fields
    limits: Any = {"lower": _filled(lower, -math.inf), "upper": _filled(upper, math.inf)}
    scratch.add_rows(name, {"kernel": matrix}, **limits)
    rows = scratch.blocks[name]
    entries = rows.matrix.tocoo()
    # Columns of the flattened kernel back to pairs (x, y).
    return ConstraintBlock(
        name,
        np.stack([entries.row, entries.col // outputs, entries.col % outputs], axis=1),
        entries.data,
        tuple(float(v) if np.isfinite(v) else None for v in rows.lower),
        tuple(float(v) if np.isfinite(v) else None for v in rows.upper),
    )


def _limits(name: str, limits: object) -> tuple[float | None, ...]:
    if not isinstance(limits, Sequence) or isinstance(limits, str | bytes):
        raise ParameterError(f"{name} is {_checks.shown(limits)}; it must be a list of limits.")
    return tuple(None if limit is None else _checks.real(name, limit) for limit in limits)


def _filled(limits: Any, missing: float) -> Any:  # noqa: ANN401
    if isinstance(limits, Sequence) and not isinstance(limits, str):
        return [missing if limit is None else limit for limit in limits]
    return limits


def read_constraints(path: str | Path) -> tuple[ConstraintBlock, ...]:
    """Return the constraints of a JSON file, in the format that a design's file uses.

    The file holds a list of [name, places, coefficients, lower, upper], see `ConstraintBlock`. With
    this one, input 0 gives output 0 or 1 with a probability of at least 0.8, and input 2 gives
    output 2 with a probability of at most 0.5::

        [["near", [[0, 0, 0], [0, 0, 1]], [1, 1], [0.8], [null]],
         ["rare", [[0, 2, 2]], [1], [null], [0.5]]]

    Args:
        path: of the file, in UTF-8.

    Raises:
        ParameterError: if the file cannot be read or is malformed; it names the file.
    """
    try:
        blocks = parse_json(contents(Path(path)))
        if not isinstance(blocks, list):
            raise ValueError("it must hold a list of blocks of rows")
        for block in blocks:
            if not isinstance(block, list) or len(block) != 5:
                raise ParameterError(
                    f"a block is {_checks.shown(block)}; it must be [name, places, coefficients, "
                    "lower, upper]"
                )
        return tuple(ConstraintBlock(*block) for block in blocks)
    except (OSError, ValueError) as error:
        why = str(error).rstrip(".") if isinstance(error, ParameterError) else why_unread(error)
        raise ParameterError(
            f"constraints file {str(path)!r}: it must be a JSON file of rows: {why}."
        ) from error
