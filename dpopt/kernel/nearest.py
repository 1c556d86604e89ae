"""The private kernel nearest to a given one, with the user's own rows kept as well."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
from dpopt.kernel.design import TableDesign
from dpopt.kernel.names import Name, Names, checked_names, edges_by_name, listed, place
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
from dpopt.privacy.plain import plain
from dpopt.shape import Setting, design, made

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
# What `certify_kernel` calls the neighbours and the output where the slack is smallest.
_TIGHTEST = re.compile(r"inputs (\d+) and (\d+)(?:, output (\d+))?")


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
    spare, those of inequality hold exactly in the integers, and so do equalities whose coefficients
    are whole numbers, where moves of whole units can meet them: see `dpopt.kernel.equalities`.
    Other equalities are missed by the rounding of floats, 1e-16 to 1e-15 per unit of their
    coefficients, and what leaves no room by more, at most 1e-6: by the ``residuals`` of the design,
    which are computed exactly.

    Attributes:
        kernel: the given table, shape (inputs, outputs), at least 2 inputs; off by ``tolerance`` at
            most from rows that are non-negative and sum to 1.
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid" or "hamming" (words of
            ``shape`` that differ in one place, by 1 or at all), or undirected edges of shape
            (edges, 2), as a text 0:1,1:2; between names, where inputs have names.
        shape: for "grid" and "hamming": number of letters at each place of the word that an input
            is.
        rows: own rows: tuples (name, matrix, lower, upper), K[x, y] at column x * outputs + y. On
            the command line a CSV file; see `dpopt.kernel.read_own_rows`.
        tolerance: most that t may be, in (0, 1].
        input_names: names of the inputs in the order of the table's rows, which is that of a graph
            with a name; releases take these. As a text, a,b,c; 0, 1, ... if None.
        output_names: names of the outputs, which releases return; likewise.

    Example:
        dpopt nearest --kernel 0.8:0.2,0.2:0.8 --epsilon 1 --tolerance 0.1
    """

    kind: ClassVar[str] = "nearest"

    kernel: Table
    epsilon: float
    delta: float = 0.0
    graph: Graph = "complete"
    shape: Sizes | None = None
    rows: ExtraRows | None = None
    tolerance: float = TOLERANCE
    input_names: Names | None = None
    output_names: Names | None = None

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        tolerance = _checks.real("tolerance", self.tolerance, 0.0, 1.0, open_lower=True)
        table = law_table(self.kernel, tolerance)
        names = checked_names("inputs", self.input_names, table.shape[0])
        places = edges_by_name(self.graph, names)
        # Epsilon, delta, graph and shape are those of any kernel of this size.
        general = KernelSetting(np.zeros(table.shape), self.epsilon, self.delta, places, self.shape)
        graph: Any = general.graph
        if names is not None and not isinstance(graph, str):
            graph = tuple((names[x], names[other]) for x, other in graph.tolist())
        self.keep(
            kernel=table,
            epsilon=general.epsilon,
            delta=general.delta,
            graph=graph,
            shape=general.shape,
            rows=own_rows(self.rows, *table.shape) or None,
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
            rows=[("seldom", [[0.0, 1.0, 0.0, 0.0]], None, [0.26])],
            tolerance=0.1,
        )

    @classmethod
    def example_data(cls) -> object:
        """Return an input."""
        return 1

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return both inputs."""
        return [(0, 1)]

    @cached_property
    def general(self) -> KernelSetting:
        """A setting of all kernels of this size that are as private and keep the own rows."""
        complete = isinstance(self.graph, str) and self.graph == "complete"
        form: Any = "columns" if complete and self.delta == 0 else "edges"
        return KernelSetting(
            np.zeros(self.given.shape),
            self.epsilon,
            self.delta,
            self._edges,
            self.shape,
            formulation=form,
            rows=self.rows,
        )

    @property
    def _edges(self) -> Graph:
        """The graph, its edges between places."""
        return edges_by_name(self.graph, self.names[0])

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
    def names(self) -> tuple[tuple[Name, ...] | None, tuple[Name, ...] | None]:
        """Names of the inputs, and of the outputs; None where they are 0, 1, ..."""
        return cast(Any, (self.input_names, self.output_names))

    def place(self, data: Any) -> Any:  # noqa: ANN401
        """Return the place of an input, or of each of several, given by name where it has one.

        Raises:
            ParameterError: for what is no name.
        """
        names = self.names[0]
        if names is None:
            return data
        if isinstance(data, str) or not isinstance(data, Iterable) or getattr(data, "ndim", 1) == 0:
            return place("the input", names, data)
        return [place("the input", names, one) for one in data]

    def output(self, place: int) -> Name:
        """Return the name of an output, or its place if it has none."""
        names = self.names[1]
        return place if names is None else names[place]

    def _named(self, least: Least) -> Least:
        """Return a least epsilon or delta with the names of the inputs and outputs that need it."""
        return named_least(least, *self.names)

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
        return self._named(least_epsilon(integer_rows(self.given), self.delta, pairs=self.pairs))

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
        return self._with_names(proof)

    def _with_names(self, proof: Certificate) -> Certificate:
        """Return a proof that says inputs and outputs, and the edges, by their names."""
        inputs, outputs = self.names
        if inputs is None and outputs is None:
            return proof
        claim, found = proof.claim, _TIGHTEST.fullmatch(proof.tightest)
        if inputs is not None and self.pairs is not None:
            edges = (f"{inputs[x]}:{inputs[z]}" for x, z in self.pairs.tolist() if x < z)
            claim = f"{claim}; the edges are {listed(edges)}"
        tightest = proof.tightest
        if found is not None:
            one, other, y = (None if part is None else int(part) for part in found.groups())
            ends = [x if inputs is None else inputs[cast(int, x)] for x in (one, other)]
            tightest = "inputs {} and {}".format(*map(_checks.shown, ends))
            tightest += "" if y is None else f", output {_checks.shown(self.output(y))}"
        return replace(proof, claim=claim, tightest=tightest)

    def proof_size(self, units: ExactKernel) -> int:
        """Return about how many entries of rows a proof looks at."""
        return self.general.proof_size(units) + 3 * self.given.size

    def spent(self, units: ExactKernel, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon along the graph for a delta, or the other way round."""
        return self._named(least_of_kernel(units, epsilon, delta))

    def subject(self, units: ExactKernel) -> tuple[object, ...]:
        """Return what the proof is about: the setting, and the integers without their cost."""
        return self.kind, self, units.subject

    def law(self, units: ExactKernel, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the row of an input, integers over 2^bits."""
        return units.row(self.place(data))

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
        return cast(Any, units.columns(*self.names))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NearestDesign(TableDesign):
    """A table that was made private: its integers, their proof, and what that cost.

    Attributes:
        setting: what was asked, a `NearestKernel`.
        units: the integers, an `ExactKernel`: what the guarantee is about.
        bound: no private kernel that keeps the own rows is nearer to the table; from the dual
            vector of the program, or 0 where none was solved.
        loss: the objective of the design that the table was taken from, at these integers; None of
            a table for which none is known.
    """

    loss: float | None = None

    def asked(self, data: Any = None) -> int:  # noqa: ANN401
        """Return the number of inputs, each of which spends the whole guarantee; see `release`."""
        return super().asked(self.setting.place(data))

    def release(self, data: Any = None) -> Any:  # noqa: ANN401
        """Return one output for each input, drawn with the operating system's randomness.

        Args:
            data: an input, by its name if it has one, or an array of them; each spends the whole
                guarantee.

        Returns:
            Outputs by name, if they have names.

        Raises:
            ParameterError: if one is no input; the refusal is for the curator alone.
        """
        return self._named(super().release(self.setting.place(data)))

    def simulate(self, data: Any, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        return self._named(super().simulate(self.setting.place(data), rng))

    def _named(self, outputs: Any) -> Any:  # noqa: ANN401
        names = self.setting.names[1]
        if names is None:
            return outputs
        return np.array(names, dtype=object)[outputs]

    @property
    def moved(self) -> float:
        """Largest total variation between a row and the given one, rounded up.

        It is the objective of this kind, and so its value; `loss` is that of the table's own one.
        """
        return self.value

    @cached_property
    def residuals(self) -> Mapping[str, float]:
        """By how much the integers miss each block of own rows, exactly and rounded up."""
        own = self.setting.own
        return MappingProxyType({rows.name: float_up(rows.misses(self.exact)) for rows in own})

    def facts(self) -> Json:
        """Return what `to_dict` tells beyond the fields that all answers share."""
        return {"residuals": dict(self.residuals), **self._stated_loss()}

    def _stated_loss(self) -> Json:
        return {} if self.loss is None else {"loss": self.loss}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "inputs": self.exact.inputs,
            "outputs": self.exact.outputs,
            "guarantee": self.guarantee,
            "moved": self.moved,
            **self._stated_loss(),
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


def named_least(
    least: Least, inputs: Sequence[Name] | None, outputs: Sequence[Name] | None
) -> Least:
    """Return a least epsilon or delta with names for places, where there are names."""
    found: Any = least
    needed = found.inputs if inputs is None else tuple(inputs[x] for x in found.inputs)
    event = found.outputs if outputs is None else tuple(outputs[y] for y in found.outputs)
    return replace(found, inputs=needed, outputs=event)


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
