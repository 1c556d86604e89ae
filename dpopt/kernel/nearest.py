"""The private kernel nearest to a given table, subject to further constraints of the user."""

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
from dpopt.kernel.room import constrained_repair
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
"""Default of the largest total variation by which repair may move a row."""

# The program is solved to improve on mixing only where mixing moves a row by more than this total
# variation, and for kernels of at most so many entries.
_NEGLIGIBLE, _FEW = 1e-6, 2_500
# Time limit in seconds for that program, whose answer is not needed.
_SECONDS = 20.0
# Largest violation of a constraint that cannot hold strictly, over its largest coefficient.
_MISSED = 1e-6


@dataclass(frozen=True, eq=False)
class NearestKernel(Setting):
    """The private kernel nearest to a given table.

        minimise   t
        subject to P[x, y] >= K[x, y] - given[x, y]                 "above"
                   sum_y P[x, y] <= t - max(0, given[x] - 1)        "distance"
                   sum_y K[x, y] = 1                                "sums"
                   K[x, y] <= e^epsilon K[x', y]                    "privacy"
                   lower <= sum_xy c_xy K[x, y] <= upper            by their names

    for all outputs y and all neighbours x, x' of the graph; K, P >= 0. given[x] is the sum of row
    x, which solvers leave next to 1. t is the largest change of the probability of any event, over
    all inputs: for distributions, half of sum_y |K[x, y] - given[x, y]|, their total variation.
    With delta > 0 a pair of neighbours has variables s[y] >= 0 with s[y] >= K[x, y] - e^epsilon
    K[x', y], "privacy", whose sum is at most delta, "delta".

    The program finds the nearest kernel up to the tolerance of its solver. Its solution is then
    mixed with a strictly feasible kernel, by the least share that makes every inequality true in
    integers, and the value of the resulting table is computed exactly. `dpopt.certify` first mixes
    the given table itself, which needs no program and is private too; only if that moves a row by
    more than 1e-6 does it solve the program, and it keeps the better of the two.

    If some private kernel satisfies all inequalities among the user's constraints with a slack of
    1e-8, they hold exactly in the integers. Equalities are violated by float rounding, 1e-16 to
    1e-15 per unit of their coefficients, and inequalities without that slack by at most 1e-6. The
    design's ``residuals``, computed exactly, state these violations.

    Attributes:
        kernel: the given table, shape (inputs, outputs), at least 2 inputs; its rows are
            non-negative and sum to 1 up to ``tolerance``.
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid" or "hamming" (words of
            ``shape`` that differ in one position, by 1 or at all), or undirected edges of shape
            (edges, 2), as a text 0:1,1:2; between names, where inputs have names.
        shape: number of symbols at each position of an input's word, for "grid" and "hamming".
        constraints: linear constraints of yours: tuples (name, matrix, lower, upper), K[x, y] at
            column x * outputs + y. On the command line a JSON file; see
            `dpopt.kernel.read_constraints`.
        tolerance: most that t may be, in (0, 1].
        input_names: names of the inputs, which releases accept, in the order of the table's rows
            and of a named graph. As a text, a,b,c; 0, 1, ... if None.
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
        edges = edges_by_name(self.graph, names)
        # A kernel setting of this size checks epsilon, delta, graph and shape.
        general = Kernel(np.zeros(table.shape), self.epsilon, self.delta, edges, self.shape)
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
        """Return the parameters as plain values; edges join indices, for `dpopt.verify`."""
        return {**super().to_dict(), "graph": plain(self._edges)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the setting of a file's parameters, whose edges join indices of inputs."""
        named = isinstance(values, Mapping) and values.get("input_names")
        if not named or isinstance(values.get("graph", ""), str):
            return super().from_dict(values)
        try:
            edges = [[named[x] for x in edge] for edge in values["graph"]]
        except (LookupError, TypeError):
            raise ParameterError(
                "graph is malformed; it must hold pairs of input numbers."
            ) from None
        return super().from_dict({**values, "graph": edges})

    @classmethod
    def example(cls) -> Self:
        """Return randomised response that is truthful too often, with one constraint."""
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
        """The graph, its edges between indices of inputs."""
        return edges_by_name(self.graph, self.names[0])

    @property
    def given(self) -> Matrix:
        """The given table as a read-only array, shape (inputs, outputs)."""
        return cast(Matrix, self.kernel)

    @property
    def own(self) -> tuple[ConstraintBlock, ...]:
        """The user's constraints as blocks of rows."""
        return cast("tuple[ConstraintBlock, ...]", self.constraints or ())

    @cached_property
    def pairs(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""
        return directed_pairs(self._edges, len(self.given), self.shape)

    @cached_property
    def domain(self) -> Inputs:
        """All inputs and outputs, with their names."""
        (inputs, outputs), (input_names, output_names) = self.given.shape, self.names
        return NamedGraph(inputs, outputs, self.pairs, input_names, output_names)

    @property
    def names(self) -> tuple[tuple[Name, ...] | None, tuple[Name, ...] | None]:
        """Names of the inputs, and of the outputs; None where they are 0, 1, ..."""
        return cast(Any, (self.input_names, self.output_names))

    def output(self, place: int) -> Name:
        """Return the name of an output, or its number if it has none."""
        names = self.names[1]
        return place if names is None else names[place]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    def problem(self) -> Problem:
        """Return the program displayed in the docstring of the class.

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
        # sum P is the probability gained; what is lost exceeds it by the row's sum minus 1.
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
        """Return K repaired and rounded to integers; constraints hold as the class docstring says.

        Raises:
            NotPrivateError: if a row of the given table is moved by more than the tolerance, or a
                constraint is violated by more than 1e-6 of its largest coefficient.
        """
        if self.own:
            table = constrained_repair(self.domain, self.guarantee, self.own, point, self.bits)
        else:
            table = super().table(point)
        for rows in self.own:
            missed, size = rows.misses(table), float(np.abs(rows.coefficients).max(initial=1.0))
            if missed > Fraction(_MISSED * size):
                raise NotPrivateError(
                    f"making the kernel ({digits(self.epsilon)}, {digits(self.delta)})-DP "
                    f"violates constraints {rows.name!r} by {digits(float_up(missed))}, since no "
                    "private kernel was found that satisfies all of them with slack; relax them.",
                    excess=float_up(missed),
                )
        cost = moved(self.given, table)
        if cost > Fraction(self.tolerance):
            raise self._too_far(cost)
        return table

    def _too_far(self, cost: Fraction) -> NotPrivateError:
        least = self.least
        requirement = (
            f"as it stands it needs epsilon {digits(least.upper)}"
            if math.isfinite(least.upper)
            else "as it stands no epsilon is enough"
        )
        condition = " under its constraints" if self.own else ""
        return NotPrivateError(
            f"making the kernel ({digits(self.epsilon)}, {digits(self.delta)})-DP{condition} moves "
            f"a row by {digits(float_up(cost))} in total variation, above tolerance "
            f"{digits(self.tolerance)}; {requirement}.",
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
            ParameterError: if it is malformed, or farther than the tolerance from the given table.
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
        """Return roughly how many entries of rows a proof evaluates."""
        del table
        inputs, outputs = self.given.shape
        compact = self.pairs is None and self.delta == 0
        edges = inputs if compact else pair_count(self.pairs, inputs)
        constraint_entries = sum(block.places.size for block in self.own)
        return 2 * edges * outputs + constraint_entries + 3 * self.given.size

    def value(self, table: Table) -> float:
        """Return t, measured in rational arithmetic and rounded up."""
        return float_up(moved(self.given, table))

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return a lower bound on t over all private kernels; 0 where no program was solved."""
        del table
        return 0.0 if solution is None else solution.bound

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return the kernel, how far its worst row was moved, and its constraint violations."""
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
    """Return the design of a private kernel near the table, solving a program only if it may help.

    Raises:
        InfeasibleError: if no private kernel satisfies the constraints; it names the blocks.
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
    if solved.value < mixed.value:
        return solved
    return replace(mixed, _float_bound=solved._float_bound)


def integers_of(table: Matrix, inputs: Inputs) -> Table:
    """Return the table of integer weights in proportion to floats, each row divided by its sum.

    Every entry keeps 64 bits; a row that sums to exactly 1 is represented exactly.

    Args:
        table: shape (inputs, outputs); negative entries count as 0.
        inputs: without a symmetry.
    """
    values = np.maximum(table, 0.0)
    least = float(values[values > 0].min())
    return rounded(inputs, values.ravel(), 64 - math.frexp(least)[1])


def moved(original: Matrix, table: Table) -> Fraction:
    """Return the largest change of the probability of an event, over all inputs, exactly.

    Args:
        original: shape (inputs, outputs).
        table: over inputs without a symmetry.
    """
    outputs, total, worst = original.shape[1], table.total, Fraction(0)
    for x, row in enumerate(original.tolist()):
        ratios = [value.as_integer_ratio() for value in row]
        # Denominators of floats are powers of 2: the largest is a common multiple.
        common = max(below for _, below in ratios)
        weights = table.weights[x * outputs : (x + 1) * outputs]
        gained = lost = 0
        for (top, below), weight in zip(ratios, weights, strict=True):
            change = weight * common - top * (common // below) * total
            gained, lost = gained + max(change, 0), lost + max(-change, 0)
        worst = max(worst, Fraction(max(gained, lost), common * total))
    return worst


def pmf_table(table: object, tolerance: float) -> Matrix:
    """Return a table of probabilities as a read-only array whose rows are nearly distributions.

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
