"""The private kernel nearest to a given one, with the user's own rows kept as well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError, SolverError
from dpopt._numbers import digits, float_up
from dpopt._types import IntVector, Json, Matrix, Table, brief, frozen
from dpopt.design import Setting, design, made
from dpopt.kernel.design import TableDesign
from dpopt.kernel.own import ExtraRows, OwnRows, own_rows
from dpopt.kernel.repair import integer_rows, laws, moved, repaired
from dpopt.kernel.setting import Graph, KernelSetting, Sizes
from dpopt.lp import Solution
from dpopt.privacy import (
    Certificate,
    ExactKernel,
    Guarantee,
    Least,
    Problem,
    least_epsilon,
    stochastic_rows,
)
from dpopt.privacy.least import least_of_kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy.dominating import DominatingPair

TOLERANCE = 1e-3
"""Total variation by which a row may be moved, unless the user says otherwise."""

# Cost of mixing that is not worth a program, and entries of a kernel that are worth one.
_NEGLIGIBLE, _FEW = 1e-6, 2_500
# Seconds for such a program, which only makes a good answer better.
_SECONDS = 20.0
# By how much own rows without room may be missed, per unit of their largest coefficient.
_MISSED = 1e-6


@dataclass(frozen=True, eq=False)
class NearestKernel(Setting["NearestDesign"]):
    """The private kernel nearest to a given table.

        minimise   t
        subject to P[x, y] >= K[x, y] - given[x, y]                 "above"
                   sum_y P[x, y] <= t - max(0, given[x] - 1)        "distance"
                   sum_y K[x, y] = 1                                "sums"
                   K[x, y] <= e^epsilon K[x', y]                    "privacy"
                   lower <= own rows over K <= upper                by their names

    for all outputs y and all neighbours x, x' of the graph; K, P >= 0. given[x] is the sum of row
    x, which solvers leave next to 1. t is the largest change of the probability of any event, over
    all inputs: for laws, half of sum_y |K[x, y] - given[x, y]|, their total variation. With delta >
    0 a pair of neighbours has variables s[y] >= K[x, y] - e^epsilon K[x', y], "privacy", whose sum
    is at most delta, "delta".

    The program finds the nearest kernel, up to the tolerance of its solver: its answer is then
    mixed with another kernel, as little as makes every inequality true in integers, and the value
    is measured of what came out, exactly. `dpopt.certify` mixes the table itself first, which needs
    no program; that is private as well, and where it moves a row by more than 1e-6 the program is
    asked whether it can do with less.

    Where own rows leave room, so that some private kernel satisfies each of them with 1e-8 to
    spare, those of inequality hold exactly in the integers. Equalities, and what leaves no room,
    hold up to the ``residuals`` of the design, which are computed exactly.

    Attributes:
        kernel: the given table, shape (inputs, outputs), at least 2 inputs; off by ``tolerance`` at
            most from rows that are non-negative and sum to 1.
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid" or "hamming" (words of
            ``shape`` that differ in one place, by 1 or at all), or undirected edges of shape
            (edges, 2), as a text 0:1,1:2.
        shape: for "grid" and "hamming": number of letters at each place of the word that an input
            is.
        rows: own rows: tuples (name, matrix, lower, upper), K[x, y] at column x * outputs + y. On
            the command line a CSV file; see `dpopt.kernel.read_own_rows`.
        tolerance: most that t may be, in (0, 1].

    Example:
        dpopt nearest --kernel 0.8:0.2,0.2:0.8 --epsilon 1 --tolerance 0.1
    """

    kind: ClassVar[str] = "nearest"
    papers: ClassVar[tuple[str, ...]] = ()

    kernel: Table
    epsilon: float
    delta: float = 0.0
    graph: Graph = "complete"
    shape: Sizes | None = None
    rows: ExtraRows | None = None
    tolerance: float = TOLERANCE

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        tolerance = _checks.real("tolerance", self.tolerance, 0.0, 1.0, open_lower=True)
        table = law_table(self.kernel, tolerance)
        # Epsilon, delta, graph and shape are those of any kernel of this size.
        general = KernelSetting(
            np.zeros(table.shape), self.epsilon, self.delta, self.graph, self.shape
        )
        self.keep(
            kernel=table,
            epsilon=general.epsilon,
            delta=general.delta,
            graph=general.graph,
            shape=general.shape,
            rows=own_rows(self.rows, *table.shape) or None,
            tolerance=tolerance,
        )

    @classmethod
    def example(cls) -> Self:
        """Return randomised response that is truthful too often, with a row of its own."""
        return cls(
            [[0.8, 0.2], [0.2, 0.8]],
            1.0,
            rows=[("seldom", [[0.0, 1.0, 0.0, 0.0]], None, [0.26])],
            tolerance=0.1,
        )

    @classmethod
    def example_data(cls) -> object:
        """Return an input."""
        return 1

    @cached_property
    def general(self) -> KernelSetting:
        """A setting of all kernels of this size that are as private and keep the own rows."""
        complete = isinstance(self.graph, str) and self.graph == "complete"
        form: Any = "columns" if complete and self.delta == 0 else "edges"
        return KernelSetting(
            np.zeros(self.given.shape),
            self.epsilon,
            self.delta,
            self.graph,
            self.shape,
            formulation=form,
            rows=self.rows,
        )

    @property
    def given(self) -> Matrix:
        """The given table as a read-only array, shape (inputs, outputs)."""
        return cast(Matrix, self.kernel)

    @property
    def own(self) -> tuple[OwnRows, ...]:
        """The own rows."""
        return cast("tuple[OwnRows, ...]", self.rows or ())

    @cached_property
    def pairs(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""
        return self.general.pairs

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.given.shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.given.shape[1]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    def problem(self) -> Problem:
        """Return the program, its rows of privacy in the form "columns" or "edges".

        See `KernelSetting` for these forms, and up to which size they are written out.
        """
        inputs, outputs = self.given.shape
        problem = self.general.problem()
        problem.name = "nearest kernel"
        problem.add_variables("moved", self.given.size, lower=0.0, upper=2.0)
        every = sp.eye_array(self.given.size, format="csr")
        problem.add_rows(
            "above", {"kernel": every, "moved": -every}, upper=np.asarray(self.given).ravel()
        )
        problem.add_variables("worst", 1, lower=0.0, upper=2.0)
        over = np.maximum(0.0, self.given.sum(axis=1) - 1.0)
        of_input = stochastic_rows(inputs, outputs).matrix
        sides = {"moved": of_input, "worst": -np.ones((inputs, 1))}
        problem.add_rows("distance", sides, upper=-over)
        problem.minimise({"worst": [1.0]})
        return problem

    def point(self, solution: Solution) -> Matrix:
        """Return K as the solver left it, shape (inputs, outputs)."""
        return solution["kernel"].reshape(self.given.shape)

    def units(self, point: Matrix) -> ExactKernel:
        """Return K repaired and rounded to integers, certified on the way, with its cost.

        It is mixed with an input-independent row, as `dpopt.privacy.quantise_kernel` does; with own
        rows, with a kernel that satisfies them, and privacy, with the most room.

        Raises:
            NotPrivateError: if a row of the given table is moved by more than the tolerance, or an
                own row would be missed by more than 1e-6 of its largest coefficient.
        """
        exact = repaired(self.general, self.given, laws(point))
        for rows in self.own:
            missed, size = rows.misses(exact), float(np.abs(rows.coefficients).max(initial=1.0))
            if missed > Fraction(_MISSED * size):
                raise NotPrivateError(
                    f"making the kernel ({digits(self.epsilon)}, {digits(self.delta)})-DP misses "
                    f"own rows {rows.name!r} by {digits(float_up(missed))}, since no private "
                    "kernel was found that keeps all of them with room; relax them.",
                    excess=float_up(missed),
                )
        cost = self.cost(exact)
        if cost > Fraction(self.tolerance):
            raise self._too_far(cost)
        return replace(exact, cost=min(1.0, float_up(cost)))

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
        return least_epsilon(integer_rows(self.given), self.delta, pairs=self.pairs)

    def cost(self, units: ExactKernel) -> Fraction:
        """Return the largest change of the probability of an event, over all inputs, exactly."""
        return moved(self.given, units)

    def prove(self, units: ExactKernel) -> Certificate:
        """Return the proof that the integers were made with, if it is of this guarantee and graph.

        A kernel of integers cannot be made without one; see `dpopt.privacy.certify_kernel`. It is
        about privacy; the own rows are in ``residuals`` of the design.

        Raises:
            ParameterError: if it is a kernel of another shape, guarantee or graph, or farther from
                the given table than the tolerance.
        """
        _checks.instance("units", units, ExactKernel)
        proof = units.proof_of(self.guarantee, (self.inputs, self.outputs), self.pairs)
        cost = self.cost(units)
        if cost > Fraction(self.tolerance):
            raise ParameterError(
                f"units are moved by {digits(float_up(cost))} from the given table; at most "
                f"tolerance {digits(self.tolerance)} is allowed."
            )
        return proof

    def proof_size(self, units: ExactKernel) -> int:
        """Return about how many entries of rows a proof looks at."""
        return self.general.proof_size(units) + 3 * self.given.size

    def spent(self, units: ExactKernel, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon along the graph for a delta, or the other way round."""
        return least_of_kernel(units, epsilon, delta)

    def subject(self, units: ExactKernel) -> tuple[object, ...]:
        """Return what the proof is about: the setting, and the integers without their cost."""
        return self.kind, self, units.subject

    def law(self, units: ExactKernel, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the row of an input, integers over 2^bits."""
        return units.row(data)

    def value(self, units: ExactKernel) -> float:
        """Return t, measured in rational arithmetic and rounded up."""
        return float_up(self.cost(units))

    def dominating(self, units: ExactKernel) -> DominatingPair:
        """Return the tight dominating pair over all neighbours of the graph."""
        return units.dominating()

    def draw(self, axes: Axes, units: ExactKernel, label: str | None = None) -> None:
        """Draw the kernel as a heat map, inputs down and outputs across."""
        self.general.draw(axes, units, label)

    def columns(self, units: ExactKernel) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each entry."""
        return cast(Any, units.columns())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NearestDesign(TableDesign):
    """A table that was made private: its integers, their proof, and what that cost.

    Attributes:
        setting: what was asked, a `NearestKernel`.
        units: the integers, an `ExactKernel`: what the guarantee is about.
        bound: no private kernel that keeps the own rows is nearer to the table; from the dual
            vector of the program, or 0 where none was solved.
    """

    @property
    def cost(self) -> float:
        """Largest total variation between a row and the given one, rounded up: the value."""
        return self.value

    @cached_property
    def residuals(self) -> Mapping[str, float]:
        """By how much the integers miss each block of own rows, exactly and rounded up."""
        own = self.setting.own
        return MappingProxyType({rows.name: float_up(rows.misses(self.exact)) for rows in own})

    def facts(self) -> Json:
        """Return what `to_dict` tells beyond the fields that all answers share."""
        return {"residuals": dict(self.residuals)}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "inputs": self.exact.inputs,
            "outputs": self.exact.outputs,
            "guarantee": self.guarantee,
            "cost": self.cost,
            "gap": self.gap,
        }


NearestKernel.answer = NearestDesign


def nearest(setting: NearestKernel) -> NearestDesign:
    """Return the design of a table next to a private one, with a program only where it pays.

    Raises:
        InfeasibleError: if no private kernel satisfies the own rows; it names the blocks.
        NotPrivateError: if a row is moved by more than the tolerance.
        SolverError: if the program is needed and its solver found no answer.
    """
    if setting.own:
        return design(setting)
    mixed: NearestDesign | None = None
    with suppress(NotPrivateError):
        mixed = made(setting, setting.units(setting.given), float_bound=0.0)
    if mixed is None:
        return design(setting)
    if mixed.value <= _NEGLIGIBLE or setting.given.size > _FEW:
        return mixed
    try:
        solved = design(setting, time_limit=_SECONDS)
    except (NotPrivateError, ParameterError, SolverError):
        return mixed
    return solved if solved.value < mixed.value else replace(mixed, float_bound=solved.float_bound)


def law_table(table: object, tolerance: float) -> Matrix:
    """Return a table of probabilities as a read-only array, if its rows are nearly laws.

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
            f"kernel is no table of laws: the row of input {x} {what}; each must be non-negative "
            f"with sum 1, up to tolerance {digits(tolerance)}."
        )
    return frozen(array)
