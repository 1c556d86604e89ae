"""The private kernel nearest to a given one, with the user's own rows kept as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import InfeasibleError, NotPrivateError, ParameterError, SolverError
from dpopt._numbers import digits, float_up
from dpopt._types import IntVector, Json, Matrix, Table, brief, frozen
from dpopt.design import Design, Setting, design, made
from dpopt.kernel.own import ExtraRows, OwnRows, own_rows
from dpopt.kernel.setting import Graph, KernelSetting, Sizes
from dpopt.lp import Problem, Solution, solve
from dpopt.privacy import (
    Certificate,
    ExactKernel,
    Guarantee,
    Least,
    exp_lower,
    least_epsilon,
    quantise_kernel,
    stochastic_rows,
)
from dpopt.privacy.graph import all_pairs, links
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
# An output whose probability is nowhere above this is taken to be unused.
_UNUSED = 1e-9
# Of an interior point: room below which a row counts as having none.
_ROOM = 1e-8
# By how much own rows without room may be missed, per unit of their largest coefficient.
_MISSED = 1e-6
_BITS = (95, 127, 255, 1023)
_ATTEMPTS = 12
# Bits between a unit and the room of the rarest output: rounding costs no more than 2^-_SPARE.
_SPARE = 40
# What shares of a mixture are over: less than 2^-160 changes no float's worth of cost.
_WHOLE = 1 << 160

Weights = list[list[int]]
Outputs = npt.NDArray[np.bool_]


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

    Where own rows leave room, so that some private kernel satisfies each of them with something to
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
        """A setting of all kernels of this size that are as private."""
        return KernelSetting(
            np.zeros(self.given.shape), self.epsilon, self.delta, self.graph, self.shape
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
        problem = self._private("nearest kernel")
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

    def _private(self, name: str) -> Problem:
        """Return a program of all private kernels that satisfy the own rows."""
        form: Any = "columns" if self.pairs is None and self.delta == 0 else "edges"
        setting = replace(self.general, formulation=form, rows=self.rows)
        problem = setting.problem()
        problem.name = name
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
        kernel = _levelled(self, laws(point))
        exact = _kept(self, kernel) if self.own else None
        exact = _mixed(self, kernel) if exact is None else exact
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
        return max(
            _moved(row, weights, units.bits)
            for row, weights in zip(self.given.tolist(), units.weights, strict=True)
        )

    def prove(self, units: ExactKernel) -> Certificate:
        """Return the proof that the integers were made with, if it is of this guarantee and graph.

        A kernel of integers cannot be made without one; see `dpopt.privacy.certify_kernel`. It is
        about privacy; the own rows are in ``residuals`` of the design.

        Raises:
            ParameterError: if it is a kernel of another shape, guarantee or graph.
        """
        _checks.instance("units", units, ExactKernel)
        return units.proof_of(self.guarantee, (self.inputs, self.outputs), self.pairs)

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
class NearestDesign(Design):
    """A table that was made private: its integers, their proof, and what that cost.

    Attributes:
        setting: what was asked, a `NearestKernel`.
        units: the integers, an `ExactKernel`: what the guarantee is about.
        bound: no private kernel that keeps the own rows is nearer to the table; from the dual
            vector of the program, or 0 where none was solved.
    """

    @property
    def exact(self) -> ExactKernel:
        """The units: integer weights, their certificate, and the draws."""
        return self.units

    @cached_property
    def kernel(self) -> Matrix:
        """The same as floats, shape (inputs, outputs), read-only."""
        return frozen(self.exact.matrix())

    @property
    def cost(self) -> float:
        """Largest total variation between a row and the given one, rounded up: the value."""
        return self.value

    @cached_property
    def residuals(self) -> Mapping[str, float]:
        """By how much the integers miss each block of own rows, exactly and rounded up."""
        own = self.setting.own
        return MappingProxyType({rows.name: float_up(rows.misses(self.exact)) for rows in own})

    def release(self, data: Any = None) -> Any:  # noqa: ANN401
        """Return one output for each input, drawn with the operating system's randomness.

        Args:
            data: an index in 0..inputs-1, or an array of them.

        Raises:
            ParameterError: if an index is no input; the refusal tells of the index and is not
                covered by the guarantee.
        """
        self.require_private()
        return self.exact.release(data)

    def simulate(self, data: Any, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        return self.exact.simulate(data, rng)

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
        mixed = made(setting, setting.units(setting.given), bound=0.0)
    if mixed is None:
        return design(setting)
    if mixed.value <= _NEGLIGIBLE or setting.given.size > _FEW:
        return mixed
    try:
        solved = design(setting, time_limit=_SECONDS)
    except (NotPrivateError, ParameterError, SolverError):
        return mixed
    return solved if solved.value < mixed.value else replace(mixed, bound=solved.bound)


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


def laws(table: Matrix) -> Matrix:
    """Return a table without negative entries, each row divided by its sum."""
    positive = np.maximum(table, 0.0)
    return positive / positive.sum(axis=1, keepdims=True)


def integer_rows(table: Matrix) -> Weights:
    """Return each row of floats, negative ones as 0, as integers in exactly their proportion."""
    rows = []
    for row in np.maximum(table, 0.0).tolist():
        ratios = [value.as_integer_ratio() for value in row]
        # Denominators of floats are powers of two: the largest is a multiple of the others.
        over = max(below for _, below in ratios)
        rows.append([top * (over // below) for top, below in ratios])
    return rows


def _moved(row: Sequence[float], weights: Sequence[int], bits: int) -> Fraction:
    """Return the larger of all that a row of floats gained and all that it lost, exactly."""
    ratios = [value.as_integer_ratio() for value in row]
    shift = max(bits, *(below.bit_length() - 1 for _, below in ratios))
    gained = lost = 0
    for (top, below), weight in zip(ratios, weights, strict=True):
        away = (weight << (shift - bits)) - (top << (shift - below.bit_length() + 1))
        gained, lost = gained + max(away, 0), lost + max(-away, 0)
    return Fraction(max(gained, lost), 1 << shift)


def _levelled(setting: NearestKernel, kernel: Matrix) -> Matrix:
    """Return the kernel, for epsilon = delta = 0 with the mean row of each connected component."""
    if setting.epsilon > 0 or setting.delta > 0:
        return kernel
    graph = links(setting.pairs, setting.inputs)
    _, component = connected_components(graph, directed=False)
    count = int(component.max()) + 1
    means = np.stack([kernel[component == label].mean(axis=0) for label in range(count)])
    return means[component]


def _mixed(setting: NearestKernel, kernel: Matrix) -> ExactKernel:
    """Return the kernel mixed with the input-independent row that costs least of three.

    The mean keeps what is rare rare; the others help where an output has hardly any mass. A row of
    its own for every input, of all the same, is private with room at every output that it gives.
    """
    mean, used = kernel.mean(axis=0), kernel.max(axis=0) > 0
    uniform = used / used.sum()
    best: tuple[Fraction, ExactKernel] | None = None
    for row in (mean, 0.5 * mean + 0.5 * uniform, uniform):
        exact = _towards(setting, kernel, np.broadcast_to(row, kernel.shape))
        if exact is not None:
            cost = setting.cost(exact)
            best = (cost, exact) if best is None or cost < best[0] else best
            if cost <= _NEGLIGIBLE:
                break
    return quantise_kernel(kernel, setting.guarantee, tolerance=1.0) if best is None else best[1]


def _kept(setting: NearestKernel, kernel: Matrix) -> ExactKernel | None:
    """Return the kernel mixed with one that keeps the own rows; None if privacy has no room."""
    interior = _interior(setting, kernel)
    if interior is None:
        return None
    middle, outputs = interior
    return _towards(setting, laws(np.where(outputs, kernel, 0.0)), middle)


def _towards(setting: NearestKernel, kernel: Matrix, middle: Matrix) -> ExactKernel | None:
    """Return K mixed with an interior kernel Z, just enough for privacy and the own rows.

    Every constraint is convex, f(K) <= 0, so that (1 - a) K + a Z satisfies it for a >= f(K) /
    (f(K) - f(Z)) where f(Z) < 0. What is decided in integers is the result, and a is raised until
    it is right. None if it never is.
    """
    for bits in _precisions(setting, middle):
        one, other = _rounded(kernel, bits), _rounded(middle, bits)
        share = 0
        for attempt in range(_ATTEMPTS):
            weights = [_between(a, b, share) for a, b in zip(one, other, strict=True)]
            broken = _violated(setting, weights, other, bits)
            if not broken:
                with suppress(NotPrivateError):
                    return ExactKernel.make(
                        weights, bits, setting.guarantee, pairs=cast(Any, setting.pairs)
                    )
            # The least share that is enough but for the rounding, then twice that and so on.
            needed = max((v / (v - room) for v, room in broken), default=Fraction(0))
            more = math.ceil(needed * (_WHOLE - share)) + 1
            if share == _WHOLE:
                break
            share = min(_WHOLE, share + (more << attempt))
    return None


def _precisions(setting: NearestKernel, middle: Matrix) -> Iterator[int]:
    """Yield the bits to try: so many that the room of the rarest output is far above a unit."""
    room = -math.expm1(-setting.epsilon) or 1.0
    least = _SPARE - math.log2(float(middle[middle > 0].min())) - math.log2(room)
    yield from [bits for bits in _BITS if bits >= least] or _BITS[-1:]


def _rounded(kernel: Matrix, bits: int) -> Weights:
    """Return a kernel of floats as integers over 2^bits."""
    rows = []
    for row in integer_rows(kernel):
        total = sum(row)
        rows.append(_filled([divmod(weight << bits, total) for weight in row], 1 << bits))
    return rows


def _between(one: Sequence[int], other: Sequence[int], share: int) -> list[int]:
    """Return (1 - a) one + a other, a being ``share`` over a whole, rounded to the same sum."""
    if not share:
        return list(one)
    left = _WHOLE - share
    parts = [divmod(a * left + b * share, _WHOLE) for a, b in zip(one, other, strict=True)]
    return _filled(parts, sum(one))


def _filled(parts: list[tuple[int, int]], total: int) -> list[int]:
    """Return whole parts with the sum ``total``: the largest remainders are rounded up."""
    weights = [whole for whole, _ in parts]
    short = total - sum(weights)
    for place in sorted(range(len(parts)), key=lambda y: -parts[y][1])[:short]:
        weights[place] += 1
    return weights


def _violated(
    setting: NearestKernel, weights: Weights, middle: Weights, bits: int
) -> list[tuple[Fraction, Fraction]]:
    """Return (f(K), f(Z)) of the constraints with f(K) > 0 and f(Z) < 0, in integers."""
    both = zip(
        _constraints(setting, weights, bits), _constraints(setting, middle, bits), strict=True
    )
    return [(value, room) for value, room in both if value > 0 > room]


def _constraints(setting: NearestKernel, weights: Weights, bits: int) -> Iterator[Fraction]:
    """Yield f of each constraint f <= 0: privacy of each column or pair, and own inequalities."""
    ratio, delta = exp_lower(setting.epsilon), Fraction(setting.delta)
    pairs = None if setting.pairs is None else setting.pairs.tolist()
    up, down, unit = ratio.numerator, ratio.denominator, 1 << bits
    if delta:
        for x, other in pairs or all_pairs(None, setting.inputs).tolist():
            excess = sum(
                max(0, down * a - up * b) for a, b in zip(weights[x], weights[other], strict=True)
            )
            yield Fraction(excess, down * unit) - delta
    else:
        for column in zip(*weights, strict=True):
            if pairs is None:
                worst = down * max(column) - up * min(column)
            else:
                worst = max(down * column[x] - up * column[other] for x, other in pairs)
            yield Fraction(worst, down * unit)
    for own in setting.own:
        totals = own.totals(weights, bits)
        for total, lower, upper in zip(totals, own.lower, own.upper, strict=True):
            if lower is not None and lower != upper:
                yield Fraction(lower) - total
            if upper is not None and lower != upper:
                yield total - Fraction(upper)


def _interior(setting: NearestKernel, kernel: Matrix) -> tuple[Matrix, Outputs] | None:
    """Return a kernel with room in privacy and in the own rows; None if privacy has none.

    It comes with the outputs that it may use: all, or those that the given kernel uses, since own
    rows may forbid the others. Privacy without a delta is tried first, which has room for any.
    Where some own row has no room, as one that says the same as an equality, as much room as there
    is in all of them together.
    """
    every = np.ones(setting.outputs, dtype=bool)
    used = kernel.max(axis=0) > _UNUSED
    deltas = dict.fromkeys((0.0, setting.delta))
    for delta, outputs, together in product(deltas, (every, used), (True, False)):
        with suppress(InfeasibleError, SolverError):
            solution = solve(_room_problem(setting, delta, outputs, together=together))
            if float(solution["margin"][0]) > _ROOM:
                middle = solution["kernel"].reshape(setting.given.shape)
                return _levelled(setting, laws(np.where(outputs, middle, 0.0))), outputs
    return None


def _room_problem(
    setting: NearestKernel, delta: float, outputs: Outputs, *, together: bool
) -> Problem:
    """Return the program of a kernel that has the most room.

    "margin" is that of privacy, and with ``together`` that of every own inequality as well, in
    units of its largest coefficient; otherwise each has a margin of its own, and their sum counts.
    """
    n, m = setting.given.shape
    problem = Problem("room")
    upper = np.broadcast_to(outputs.astype(float), (n, m)).ravel()
    problem.add_variables("kernel", n * m, lower=0.0, upper=upper)
    own = [(rows, rows.rows(n, m)) for rows in setting.own]
    count = sum(2 * rows.count for rows, _ in own)
    problem.add_variables("margin", 1, lower=0.0, upper=1.0)
    problem.add_variables("margins", max(count, 1), lower=0.0, upper=1.0)
    problem.add_rows("sums", {"kernel": stochastic_rows(n, m).matrix}, lower=1.0, upper=1.0)
    _add_private_room(problem, setting, delta, outputs)
    place = 0
    for rows, dense in own:
        equal = dense.lower == dense.upper
        if equal.any():
            problem.add_rows(
                f"{rows.name} equal",
                {"kernel": dense.matrix[np.flatnonzero(equal)]},
                lower=dense.lower[equal],
                upper=dense.upper[equal],
            )
        for sign, limits in ((1.0, dense.upper), (-1.0, -dense.lower)):
            chosen = np.flatnonzero(~equal & np.isfinite(limits))
            if chosen.size:
                matrix = sign * dense.matrix[chosen]
                # What stands over no output that may be used needs no room.
                size = np.abs(matrix @ sp.diags_array(upper)).max(axis=1).toarray().ravel()
                at = (np.arange(chosen.size), place + np.arange(chosen.size))
                lift = sp.csr_array((size, at), shape=(chosen.size, max(count, 1)))
                sides = {"kernel": matrix, "margins": lift}
                problem.add_rows(f"{rows.name} {sign:+.0f}", sides, upper=limits[chosen])
                place += chosen.size
    if together and count:
        # margin <= margins: the least of all is the one that counts.
        sides = {"margin": np.ones((count, 1)), "margins": -sp.eye_array(count)}
        problem.add_rows("least", sides, upper=0.0)
    shares = np.zeros(max(count, 1)) if together else np.full(max(count, 1), 1.0 / max(count, 1))
    problem.maximise({"margin": [1.0], "margins": shares})
    return problem


def _add_private_room(
    problem: Problem, setting: NearestKernel, delta: float, outputs: Outputs
) -> None:
    """Add privacy less "margin" times what an input-independent law has of it."""
    n, m = setting.given.shape
    shrink, room = math.exp(-setting.epsilon), -math.expm1(-setting.epsilon)
    may = sp.csr_array(outputs.astype(float)[:, None])
    if delta > 0:
        general = setting._private("room")
        excess, total = general.blocks["privacy"].matrix, general.blocks["delta"].matrix
        size = excess.shape[1] - n * m
        problem.add_variables("excess_mass", size, lower=0.0, upper=1.0)
        sides = {"kernel": excess[:, : n * m], "excess_mass": excess[:, n * m :]}
        problem.add_rows("privacy", sides, upper=0.0)
        count = total.shape[0]
        sides = {
            "excess_mass": total[:, n * m :],
            "margin": np.full((count, 1), delta),
        }
        problem.add_rows("delta", sides, upper=delta)
    elif setting.pairs is None:
        # K <= e^epsilon u and K >= u, with all the room in the latter.
        problem.add_variables("floor", m, lower=0.0, upper=1.0)
        every, lift = sp.eye_array(n * m), sp.kron(np.ones((n, 1)), sp.eye_array(m))
        least = {"kernel": -every, "floor": lift, "margin": sp.kron(np.ones((n, 1)), room * may)}
        problem.add_rows("privacy", least, upper=0.0)
        problem.add_rows("ceiling", {"kernel": shrink * every, "floor": -lift}, upper=0.0)
    else:
        first, second = (
            sp.csr_array((np.ones(len(ends)), (np.arange(len(ends)), ends)), shape=(len(ends), n))
            for ends in setting.pairs.T
        )
        ratio = sp.kron(shrink * first - second, sp.eye_array(m))
        sides = {"kernel": ratio, "margin": sp.kron(np.ones((len(setting.pairs), 1)), room * may)}
        problem.add_rows("privacy", sides, upper=0.0)
