"""The private kernel nearest to a given one, with the user's own rows kept as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError, SolverError
from dpopt._numbers import digits, float_up
from dpopt._types import IntVector, Json, Matrix, RowsOfNumbers, Vector, frozen
from dpopt.kernel.constraints import (
    ConstraintBlock,
    Constraints,
    add_constraints,
    constraint_blocks,
)
from dpopt.kernel.names import Name, NamedGraph, Names, checked_names, edges_by_name
from dpopt.kernel.room import kept
from dpopt.kernel.setting import GraphLike, Kernel, Sizes, draw_heat_map
from dpopt.lp import Solution
from dpopt.privacy import Guarantee, Least, Problem, directed_pairs
from dpopt.privacy.graph import pair_count
from dpopt.privacy.plain import plain
from dpopt.shape import Design, Setting, design, made
from dpopt.table import Inputs, Table, add_table, over_masses, rounded
from dpopt.table.least import least_of_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOLERANCE = 1e-3
"""Total variation by which a row may be moved, unless the user says otherwise."""

# Cost of mixing that is not worth a program, and entries of a kernel that are worth one.
_NEGLIGIBLE, _FEW = 1e-6, 2_500
# Seconds for such a program, which only makes a good answer better.
_SECONDS = 20.0
# By how much own rows without room may be missed, per unit of their largest coefficient.
_MISSED = 1e-6


@dataclass(frozen=True, eq=False)
class NearestKernel(Setting):
    """The private kernel nearest to a given table.

        minimise   t
        subject to P[x, y] >= K[x, y] - given[x, y]                 "above"
                   sum_y P[x, y] <= t - max(0, given[x] - 1)        "distance"
                   sum_y K[x, y] = 1                                "sums"
                   K[x, y] <= e^epsilon K[x', y]                    "privacy"
                   lower <= own rows over K <= upper                by their names

    for all outputs y and all neighbours x, x' of the graph; K, P >= 0. given[x] is the sum of row
    x, which solvers leave next to 1. t is the largest change of the probability of any event, over
    all inputs: for distributions, half of sum_y |K[x, y] - given[x, y]|, their total variation.
    With delta > 0 a pair of neighbours has variables s[y] >= K[x, y] - e^epsilon K[x', y],
    "privacy", whose sum is at most delta, "delta".

    The program finds the nearest kernel, up to the tolerance of its solver: its answer is then
    mixed with another kernel, as little as makes every inequality true in integers, and the value
    is measured of what came out, exactly. `dpopt.certify` mixes the table itself first, which needs
    no program; that is private as well, and where it moves a row by more than 1e-6 the program is
    asked whether it can do with less.

    Where own rows leave room, so that some private kernel satisfies each of them with 1e-8 to
    spare, those of inequality hold exactly in the integers. Equalities are missed by the rounding
    of floats, 1e-16 to 1e-15 per unit of their coefficients, and what leaves no room by more, at
    most 1e-6: by the ``residuals`` of the design, which are computed exactly.

    Attributes:
        kernel: the given table, shape (inputs, outputs), at least 2 inputs; off by ``tolerance`` at
            most from rows that are non-negative and sum to 1.
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid" or "hamming" (words of
            ``shape`` that differ in one place, by 1 or at all), or undirected edges of shape
            (edges, 2), as a text 0:1,1:2; between names, where inputs have names.
        shape: for "grid" and "hamming": number of symbols at each place of the word that an input
            is.
        constraints: linear rows of your own: tuples (name, matrix, lower, upper), K[x, y] at column
            x * outputs + y. On the command line a JSON file; see `dpopt.kernel.read_constraints`.
        tolerance: most that t may be, in (0, 1].
        input_names: names of the inputs in the order of the table's rows, which is that of a graph
            with a name; releases take these. As a text, a,b,c; 0, 1, ... if None.
        output_names: names of the outputs, which releases return; likewise.

    Example:
        dpopt nearest-kernel --kernel 0.8:0.2,0.2:0.8 --epsilon 1 --tolerance 0.1
    """

    kind: ClassVar[str] = "nearest-kernel"
    summary: ClassVar[tuple[str, ...]] = ("moved", "residuals")

    kernel: RowsOfNumbers
    epsilon: float
    delta: float = 0.0
    graph: GraphLike = "complete"
    shape: Sizes | None = None
    constraints: Constraints | None = None
    tolerance: float = TOLERANCE
    input_names: Names | None = None
    output_names: Names | None = None

    def __post_init__(self) -> None:
        tolerance = _checks.real("tolerance", self.tolerance, 0.0, 1.0, open_lower=True)
        table = pmf_table(self.kernel, tolerance)
        names = checked_names("inputs", self.input_names, table.shape[0])
        places = edges_by_name(self.graph, names)
        # Epsilon, delta, graph and shape are those of any kernel of this size.
        general = Kernel(np.zeros(table.shape), self.epsilon, self.delta, places, self.shape)
        graph: Any = general.graph
        if names is not None and not isinstance(graph, str):
            graph = tuple((names[x], names[other]) for x, other in graph.tolist())
        self.keep(
            kernel=table,
            epsilon=general.epsilon,
            delta=general.delta,
            graph=graph,
            shape=general.shape,
            constraints=constraint_blocks(self.constraints, *table.shape) or None,
            tolerance=tolerance,
            input_names=names,
            output_names=checked_names("outputs", self.output_names, table.shape[1]),
        )

    def to_dict(self) -> Json:
        """Return the parameters as plain values; edges are between places, for `dpopt.verify`."""
        return {**super().to_dict(), "graph": plain(self._edges)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the setting of a file's parameters, whose edges are between places."""
        named = isinstance(values, Mapping) and values.get("input_names")
        if not named or isinstance(values.get("graph", ""), str):
            return super().from_dict(values)
        try:
            edges = [[named[x] for x in edge] for edge in values["graph"]]
        except (LookupError, TypeError):
            raise ParameterError("graph is malformed; it must hold edges of places.") from None
        return super().from_dict({**values, "graph": edges})

    @classmethod
    def example(cls) -> Self:
        """Return randomised response that is truthful too often, with a row of its own."""
        return cls(
            [[0.8, 0.2], [0.2, 0.8]],
            1.0,
            constraints=[("seldom", [[0.0, 1.0, 0.0, 0.0]], None, [0.26])],
            tolerance=0.1,
        )

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return both inputs."""
        return [(0, 1)]

    @property
    def _edges(self) -> GraphLike:
        """The graph, its edges between places."""
        return edges_by_name(self.graph, self.names[0])

    @property
    def given(self) -> Matrix:
        """The given table as a read-only array, shape (inputs, outputs)."""
        return cast(Matrix, self.kernel)

    @property
    def own(self) -> tuple[ConstraintBlock, ...]:
        """The own rows."""
        return cast("tuple[ConstraintBlock, ...]", self.constraints or ())

    @cached_property
    def pairs(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""
        return directed_pairs(self._edges, len(self.given), self.shape)

    @cached_property
    def domain(self) -> Inputs:
        """All inputs, by their names."""
        (inputs, outputs), (own, heads) = self.given.shape, self.names
        return NamedGraph(inputs, outputs, self.pairs, own, heads)

    @property
    def names(self) -> tuple[tuple[Name, ...] | None, tuple[Name, ...] | None]:
        """Names of the inputs, and of the outputs; None where they are 0, 1, ..."""
        return cast(Any, (self.input_names, self.output_names))

    def output(self, place: int) -> Name:
        """Return the name of an output, or its place if it has none."""
        names = self.names[1]
        return place if names is None else names[place]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    def problem(self) -> Problem:
        """Return the program that is displayed above.

        Raises:
            ParameterError: if it would have more than 2,000,000 privacy rows.
        """
        problem, inputs, guarantee = Problem("nearest kernel"), self.domain, self.guarantee
        add_table(problem, inputs, guarantee)
        add_constraints(problem, inputs, guarantee, self.own)
        problem.add_variables("moved", self.given.size, lower=0.0, upper=2.0)
        every = sp.eye_array(self.given.size, format="csr")
        sides = {**over_masses(problem, inputs, guarantee, every), "moved": -every}
        problem.add_rows("above", sides, upper=self.given.ravel())
        problem.add_variables("worst", 1, lower=0.0, upper=2.0)
        over = np.maximum(0.0, self.given.sum(axis=1) - 1.0)
        sides = {"moved": inputs.sums, "worst": -np.ones((len(over), 1))}
        problem.add_rows("distance", sides, upper=-over)
        problem.minimise({"worst": [1.0]})
        return problem

    def as_point(self, values: Vector) -> Vector:
        """Return a kernel of shape (inputs, outputs) as the probability of each variable.

        Raises:
            ParameterError: for another shape.
        """
        if values.shape not in (self.given.shape, (self.given.size,)):
            raise ParameterError(f"point has shape {values.shape}; it must be {self.given.shape}.")
        return values.ravel()

    def table(self, point: Vector) -> Table:
        """Return K repaired and rounded to integers, with its own rows kept where they leave room.

        Raises:
            NotPrivateError: if a row of the given table is moved by more than the tolerance, or an
                own row would be missed by more than 1e-6 of its largest coefficient.
        """
        if self.own:
            table = kept(self.domain, self.guarantee, self.own, point, self.bits)
        else:
            table = super().table(point)
        for rows in self.own:
            missed, size = rows.misses(table), float(np.abs(rows.coefficients).max(initial=1.0))
            if missed > Fraction(_MISSED * size):
                raise NotPrivateError(
                    f"making the kernel ({digits(self.epsilon)}, {digits(self.delta)})-DP misses "
                    f"own rows {rows.name!r} by {digits(float_up(missed))}, since no private "
                    "kernel was found that keeps all of them with room; relax them.",
                    excess=float_up(missed),
                )
        cost = moved(self.given, table)
        if cost > Fraction(self.tolerance):
            raise self._too_far(cost)
        return table

    def _too_far(self, cost: Fraction) -> NotPrivateError:
        least = self.least
        stands = (
            f"as it stands it needs epsilon {digits(least.upper)}"
            if math.isfinite(least.upper)
            else "as it stands no epsilon is enough"
        )
        own = " and keeping its own rows" if self.own else ""
        return NotPrivateError(
            f"making the kernel ({digits(self.epsilon)}, {digits(self.delta)})-DP{own} moves a row "
            f"by {digits(float_up(cost))} in total variation, above tolerance "
            f"{digits(self.tolerance)}; {stands}.",
            inputs=(str(least.inputs[0]), str(least.inputs[1])),
            output=str(least.outputs[0]) if len(least.outputs) == 1 else None,
            excess=float_up(cost),
        )

    @cached_property
    def least(self) -> Least:
        """The least epsilon of the given table, its rows divided by their sums."""
        return least_of_table(integers_of(self.given, self.domain), None, self.delta)

    def read(self, plain: Any) -> Table:  # noqa: ANN401
        """Return the table of a file.

        Raises:
            ParameterError: if it is malformed, or farther from the given one than the tolerance.
        """
        table = super().read(plain)
        cost = moved(self.given, table)
        if cost > Fraction(self.tolerance):
            raise ParameterError(
                f"the table is moved by {digits(float_up(cost))} from the given one; at most "
                f"tolerance {digits(self.tolerance)} is allowed."
            )
        return table

    def _proof_size(self, table: Table) -> int:
        """Return about how many entries of rows a proof looks at."""
        del table
        inputs, outputs = self.given.shape
        compact = self.pairs is None and self.delta == 0
        edges = inputs if compact else pair_count(self.pairs, inputs)
        own = sum(block.places.size for block in self.own)
        return 2 * edges * outputs + own + 3 * self.given.size

    def value(self, table: Table) -> float:
        """Return t, measured in rational arithmetic and rounded up."""
        return float_up(moved(self.given, table))

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return a bound on how near another kernel is: 0 where no program was solved."""
        del table
        return 0.0 if solution is None else solution.bound

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return the kernel, by how much its worst row was moved, and what it misses."""
        return {
            "kernel": lambda: frozen(table.matrix()),
            "moved": lambda: self.value(table),
            "residuals": lambda: {rows.name: float_up(rows.misses(table)) for rows in self.own},
        }

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each entry."""
        return cast(Any, table.columns(*self.names))

    def draw(self, axes: Axes, table: Table, label: str | None = None) -> None:
        """Draw the kernel as a heat map, inputs down and outputs across."""
        draw_heat_map(axes, table, label)


def nearest(setting: NearestKernel) -> Design:
    """Return the design of a table next to a private one, with a program only where it pays.

    Raises:
        InfeasibleError: if no private kernel satisfies the own rows; it names the blocks.
        NotPrivateError: if a row is moved by more than the tolerance.
        SolverError: if the program is needed and its solver found no answer.
    """
    if setting.own:
        return design(setting)
    mixed: Design | None = None
    with suppress(NotPrivateError):
        mixed = made(setting, setting.table(setting.given.ravel()))
    if mixed is None:
        return design(setting)
    if mixed.value <= _NEGLIGIBLE or setting.given.size > _FEW:
        return mixed
    try:
        solved = design(setting, time_limit=_SECONDS)
    except (NotPrivateError, ParameterError, SolverError):
        return mixed
    return solved if solved.value < mixed.value else replace(mixed, float_bound=solved.float_bound)


def integers_of(table: Matrix, inputs: Inputs) -> Table:
    """Return a table of floats as integers: each row divided by its sum.

    Every entry keeps 64 bits; a row that sums to 1 exactly is kept exactly.

    Args:
        table: shape (inputs, outputs); negative entries count as 0.
        inputs: without a symmetry.
    """
    values = np.maximum(table, 0.0)
    least = float(values[values > 0].min())
    return rounded(inputs, values.ravel(), 64 - math.frexp(least)[1])


def moved(given: Matrix, table: Table) -> Fraction:
    """Return the largest change of the probability of an event, over all inputs, exactly.

    Args:
        given: shape (inputs, outputs).
        table: over inputs without a symmetry.
    """
    outputs, total, worst = given.shape[1], table.total, Fraction(0)
    for x, row in enumerate(given.tolist()):
        ratios = [value.as_integer_ratio() for value in row]
        # Denominators of floats are powers of 2: the largest is a multiple of all.
        common = max(below for _, below in ratios)
        weights = table.weights[x * outputs : (x + 1) * outputs]
        gained = lost = 0
        for (top, below), weight in zip(ratios, weights, strict=True):
            change = weight * common - top * (common // below) * total
            gained, lost = gained + max(change, 0), lost + max(-change, 0)
        worst = max(worst, Fraction(max(gained, lost), common * total))
    return worst


def pmf_table(table: object, tolerance: float) -> Matrix:
    """Return a table of probabilities as a read-only array, if its rows are nearly distributions.

    Raises:
        ParameterError: for another shape or other values, or a row that is off by more than
            ``tolerance`` from being non-negative with sum 1.
    """
    array = _checks.floats("kernel", table)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ParameterError(
            f"kernel has shape {array.shape}; it must be (inputs, outputs) with at least 2 inputs "
            "and 1 output."
        )
    if not np.all(np.isfinite(array)):
        x, y = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ParameterError(
            f"kernel holds {array[x, y]} for input {x} and output {y}; it must hold probabilities."
        )
    with np.errstate(over="ignore"):
        below = -np.minimum(array, 0.0).sum(axis=1)
        sums = array.sum(axis=1)
    off = np.maximum(below, np.abs(sums - 1.0))
    x = int(np.argmax(off))
    if not off[x] <= tolerance or np.any(np.maximum(array, 0.0).sum(axis=1) == 0.0):
        what = (
            f"sums to {digits(sums[x])}"
            if abs(sums[x] - 1.0) >= below[x]
            else f"has {digits(-below[x])} of negative probability"
        )
        raise ParameterError(
            f"kernel is no table of pmfs: the row of input {x} {what}; each must be non-negative "
            f"with sum 1, up to tolerance {digits(tolerance)}."
        )
    return frozen(array)
