"""The general private kernel: loss, privacy along a graph, objective, what must hold of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Matrix, Numbers, Table, Vector, brief, frozen
from dpopt.kernel.geometric import Optimum, optimum
from dpopt.kernel.loss import checked_loss, named_loss
from dpopt.kernel.orbits import orbit_point, orbit_program, orbit_units, orbit_value
from dpopt.kernel.own import ExtraRows, OwnRows, own_rows
from dpopt.kernel.program import form_of, matrix_of, program
from dpopt.kernel.symmetry import Symmetry, settled
from dpopt.lp import Solution
from dpopt.privacy import Certificate, ExactKernel, Guarantee, Problem, quantise_kernel
from dpopt.privacy.graph import GRAPHS, SHAPED, directed_pairs, links
from dpopt.privacy.least import Least, least_of_kernel
from dpopt.privacy.orbit import OrbitKernel, Orbits
from dpopt.privacy.rows import LARGEST_EPSILON
from dpopt.shape import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.kernel.design import KernelDesign  # noqa: F401
    from dpopt.privacy.dominating import DominatingPair

OBJECTIVES = ("bayes", "minimax")
SENSES = ("minimise", "maximise")
FORMULATIONS = ("auto", "edges", "columns", "shifted")

Invariances = tuple[Matrix, Matrix]
Graph = str | npt.ArrayLike
"""A name, or undirected edges of shape (edges, 2); as a text, edges are 0:1,1:2."""
Sizes = Sequence[int]
"""Sizes of an alphabet at each place of a word; as a text, 2,3,3."""

_MOST_LETTERS = 2**31 - 1
_MOST_LOSSES = 20_000_000
# Total variation that repair and rounding may move a row; the gap shows what it cost.
_TOLERANCE = 1e-5
# Below the tolerance of solvers: by less than this, rows differ by noise.
_NOISE = 1e-10
# An output whose probability is nowhere above this is taken to be unused.
_UNUSED = 1e-9
# Share of an entry that rounding may have taken from it.
_RELATIVE = 1e-12
# A sum of masses that is 1 up to the rounding of its parts: dividing by it would change nothing.
_ROUNDING = 2.0**-48


@dataclass(frozen=True, eq=False)
class KernelSetting(Setting["KernelDesign"]):
    """The best private kernel K[x, y] = Pr[output y | input x] for a finite set of inputs.

        minimise   sum_x prior_x sum_y loss[x, y] K[x, y]           (bayes)
               or  max_x sum_y loss[x, y] K[x, y]                   (minimax, "losses")
        subject to sum_y K[x, y] = 1                                "sums"
                   K[x, y] <= e^epsilon K[x', y]                    "privacy"
                   A K = B, or q K = q                              "invariance"
                   lower <= sum_xy c_xy K[x, y] <= upper            rows of your own

    for all outputs y and all neighbours x, x' of the graph; K >= 0. With delta > 0 a pair of
    neighbours has variables s[y] >= K[x, y] - e^epsilon K[x', y], "privacy", whose sum is at most
    delta, "delta". The rows of "privacy" are divided by e^epsilon, and at most 2,000,000 are
    written out; `kernel_problem` says in which forms.

    Losses by name compare words: x is ``np.unravel_index(x, shape)``; without a shape a number, a
    word of one place. "hamming" needs a shape.

        absolute   sum_i |x_i - y_i|       zero-one   1 if x and y differ, else 0
        squared    sum_i (x_i - y_i)^2     hamming    number of places i where x_i and y_i differ

    Attributes:
        loss: its name, as above, or a table of shape (inputs, outputs), at least 2 inputs, as a
            text 0:1,1:0 or a file with a row a line; a utility if ``sense`` is "maximise".
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid" or "hamming" (words of
            ``shape`` that differ in one place, by 1 or at all), or undirected edges of shape
            (edges, 2), as a text 0:1,1:2. Inputs without an edge are not protected, nor are parts
            that no edge joins from each other; the certificate's claim counts them.
        shape: letters at each place of the word that an input is, as a text 2,3,3; for "grid",
            "hamming" and losses by name.
        prior: weights of the inputs for "bayes", shape (inputs,), non-negative, scaled to sum 1,
            as a text 0.2,0.8 or a file of numbers without a header; uniform if None.
        objective: "bayes" or "minimax", as above; of a utility, the least one counts.
        sense: "minimise" a loss or "maximise" a utility.
        invariant: q with q K = q, non-negative with sum 1, where inputs and outputs are the same;
            or (A, B) with A K = B, shapes (m, inputs) and (m, outputs); or None.
        formulation: "auto" is "shifted" where it applies, else "edges".
        inputs: how many, for a loss by name; known already from a table, a shape or a prior.
        outputs: how many, for a loss by name; as many as inputs if None.
        rows: rows of your own: tuples (name, matrix, lower, upper), K[x, y] at column
            x * outputs + y; on the command line a CSV file, a line for each coefficient. Its header
            is name,input,output,coefficient,lower,upper and perhaps row (from 0, under each name);
            see `dpopt.kernel.read_own_rows`.
        symmetry: what leaves the setting as it is, so that its program is one over orbits of pairs
            (x, y), see `dpopt.kernel.orbits`: "reflection" (both ends exchanged), "cyclic" (all
            moved on by one), "dihedral" (both of these), "hamming" (letters and places of words
            permuted), "letters" (all permuted), the first of them that there is ("auto"), or
            generators, pairs of permutations (sigma, tau) of the inputs and of the outputs.
    """

    kind: ClassVar[str] = "kernel"

    loss: Table | Literal["absolute", "squared", "zero-one", "hamming"]
    epsilon: float
    delta: float = 0.0
    graph: Graph = "complete"
    shape: Sizes | None = None
    prior: Numbers | None = None
    objective: Literal["bayes", "minimax"] = "bayes"
    sense: Literal["minimise", "maximise"] = "minimise"
    invariant: Numbers | None = None
    formulation: Literal["auto", "edges", "columns", "shifted"] = "auto"
    # Numbers once the setting is made, whoever counted them.
    inputs: int = cast(int, None)
    outputs: int = cast(int, None)
    rows: ExtraRows | None = None
    symmetry: Symmetry = "none"

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        shape = _sizes(self.shape)
        loss, inputs, outputs = checked_loss(
            self.loss, self.inputs, self.outputs, shape, self.prior
        )
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, LARGEST_EPSILON)
        guarantee = Guarantee(epsilon, self.delta)
        _checks.choice("objective", self.objective, OBJECTIVES)
        _checks.choice("sense", self.sense, SENSES)
        _checks.choice("formulation", self.formulation, FORMULATIONS)
        if self.prior is not None and self.objective == "minimax":
            raise ParameterError(
                "prior is given and objective is 'minimax'; it belongs to objective 'bayes', "
                "and only there."
            )
        prior = None if self.prior is None else _law("prior", self.prior, inputs)
        graph: Any = _graph(self.graph)
        values: dict[str, object] = {
            "loss": loss,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "prior": prior,
            "graph": graph,
            "shape": shape,
            "invariant": _invariant(self.invariant, inputs, outputs),
            "inputs": inputs,
            "outputs": outputs,
        }
        self.keep(**values)
        self.keep(rows=self._own_blocks())
        by_name = isinstance(graph, str) and isinstance(loss, str)
        if by_name and (shape is not None or graph not in SHAPED):
            # Such a graph may be large: it is written out by whoever needs it.
            _checks.choice("graph", graph, GRAPHS)
        else:
            _ = self.pairs
        symmetry, orbits = settled(self)
        self.keep(symmetry=symmetry)
        object.__setattr__(self, "orbits", orbits)

    def _own_blocks(self) -> tuple[OwnRows, ...] | None:
        """Return the user's own rows as blocks under names of their own, None if there are none."""
        blocks = own_rows(self.rows, self.inputs, self.outputs)
        taken = ["sums", "privacy"]
        taken += ["delta"] if self.delta > 0 else []
        taken += ["losses"] if self.objective == "minimax" else []
        taken += ["invariance"] if self.invariant is not None else []
        for block in blocks:
            if block.name in taken:
                raise ParameterError(
                    f"rows holds the name {block.name!r}; {', '.join(taken)} are taken already."
                )
        return blocks or None

    @classmethod
    def example(cls) -> Self:
        """Return a count of three people, told with the least largest error."""
        return cls("absolute", 1.0, graph="path", objective="minimax", inputs=4)

    @classmethod
    def example_data(cls) -> object:
        """Return an input: the count."""
        return 2

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return counts that differ by one."""
        return [(0, 1), (1, 2), (2, 3)]

    @cached_property
    def pairs(self) -> IntVector | None:
        """Directed neighbours, shape (pairs, 2); None if every two inputs are neighbours."""
        by_name = isinstance(self.loss, str) and self.graph_name not in SHAPED
        return directed_pairs(self.graph, self.inputs, None if by_name else self.shape)

    @cached_property
    def orbits(self) -> Orbits | None:
        """Orbits of pairs (x, y) under the symmetry; None if there is none."""
        return settled(self)[1]

    @cached_property
    def invariances(self) -> Invariances | None:
        """(A, B) with A K = B, shapes (m, inputs) and (m, outputs), or None."""
        fixed: Any = self.invariant
        if isinstance(fixed, np.ndarray):
            return frozen(fixed[None, :]), frozen(fixed[None, :])
        return fixed

    @property
    def graph_name(self) -> str:
        """Name of the graph; "edges" for the user's own."""
        return self.graph if isinstance(self.graph, str) else "edges"

    @cached_property
    def losses(self) -> Matrix:
        """The loss as a read-only array, shape (inputs, outputs).

        Raises:
            ParameterError: for a loss by name with more than 20,000,000 entries.
        """
        if not isinstance(self.loss, str):
            return cast(Matrix, self.loss)
        if self.inputs * self.outputs > _MOST_LOSSES:
            raise ParameterError(
                f"loss is {self.loss!r} for {self.inputs} inputs and {self.outputs} outputs; at "
                f"most {_MOST_LOSSES:,} entries are written out."
            )
        return frozen(self.loss_at(np.arange(self.inputs)[:, None], np.arange(self.outputs)))

    def loss_at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Vector:
        """Return loss[x, y], without writing out a loss by name.

        Args:
            x: inputs, an array of integers.
            y: outputs, an array of a shape that broadcasts with it.

        Raises:
            ParameterError: if an index is outside.
        """
        x, y = _indices("x", x, self.inputs), _indices("y", y, self.outputs)
        if isinstance(self.loss, str):
            return named_loss(self.loss, x, y, self.shape)
        return self.losses[x, y]

    @property
    def blocks(self) -> tuple[OwnRows, ...]:
        """The rows of your own, a block for each name."""
        return cast("tuple[OwnRows, ...]", self.rows or ())

    @cached_property
    def weights(self) -> Vector | None:
        """The prior, shape (inputs,), sum 1, read-only; None for "minimax"."""
        if self.prior is None and self.objective == "bayes":
            return _law("prior", np.ones(self.inputs), self.inputs)
        return cast("Vector | None", self.prior)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def maximises(self) -> bool:
        """Whether the loss is a utility."""
        return self.sense == "maximise"

    @property
    def form(self) -> str:
        """The form of the program: "edges", "columns" or "shifted"; "orbits" with a symmetry."""
        return form_of(self) if self.orbits is None else "orbits"

    def problem(self) -> Problem:
        """Return the program, in the form that the setting asks for.

        Raises:
            ParameterError: if the form does not fit the setting, or the program would have more
                than 2,000,000 privacy rows.
        """
        if self.orbits is not None:
            return orbit_program(self, self.orbits)
        return program(self)

    @cached_property
    def geometric(self) -> Optimum | None:
        """The optimum that `dpopt.kernel.geometric` knows on paths and grids; None elsewhere."""
        return optimum(self)

    def closed_form(self) -> ExactKernel | OrbitKernel | None:
        """Return the geometric mechanism with the best answers, where that is the optimum.

        On a path, delta = 0, for a loss by which of two outputs the better one changes once along
        the path, such as any that does not fall in |x - y|; on a grid, for a sum of such losses of
        the letters. `dpopt.kernel.geometric` has the proof. None elsewhere.
        """
        return None if self.geometric is None else self.units(self.geometric.kernel)

    def bound(self, units: ExactKernel, solution: Solution | None) -> float | None:
        """Return a bound on the value of any other kernel: that of the dual vector.

        Without a solve, that of the multipliers which `dpopt.kernel.geometric` knows, if it does.
        """
        del units
        if solution is not None:
            return solution.bound
        return None if self.geometric is None else self.geometric.bound

    def proof_size(self, units: ExactKernel | OrbitKernel) -> int:
        """Return about how many entries of rows a proof looks at."""
        del units
        neighbours = 1 if self.pairs is None and self.delta == 0 else self.inputs
        neighbours = neighbours if self.pairs is None else len(self.pairs) / self.inputs
        entries = self.inputs * self.outputs
        fixed = 0 if self.invariances is None else len(self.invariances[0])
        asked = sum(block.places.size for block in self.blocks) + fixed * entries
        return int(2 * entries * max(1, neighbours)) + asked

    def point(self, solution: Solution) -> Matrix | Vector:
        """Return K as the solver left it, shape (inputs, outputs); with a symmetry, by orbit."""
        if self.orbits is not None:
            return orbit_point(solution)
        return matrix_of(solution, self.outputs, math.exp(-self.epsilon))

    def units(self, point: Matrix | Vector) -> ExactKernel | OrbitKernel:
        """Return K repaired and rounded to integers, which are certified on the way.

        `dpopt.privacy.quantise_kernel` mixes it with an input-independent row, just enough for
        every privacy inequality; of orbits, `dpopt.kernel.orbits.orbit_units`.

        Raises:
            NotPrivateError: if repair would move a row by more than 1e-5 in total variation.
        """
        if self.orbits is not None:
            return orbit_units(
                point,
                self.guarantee,
                self.orbits,
                keeping=_keeping_row(self),
                tolerance=_TOLERANCE,
                unused=_UNUSED,
            )
        return _certified(self, _cleaned(self, point))

    def prove(self, units: ExactKernel | OrbitKernel) -> Certificate:
        """Return the proof that the integers were made with, if it is of this guarantee and graph.

        A kernel of integers cannot be made without one; see `dpopt.privacy.certify_kernel`.

        Raises:
            ParameterError: if it is a kernel of another shape, guarantee or graph.
        """
        shape = (self.inputs, self.outputs)
        if self.orbits is not None:
            _checks.instance("units", units, OrbitKernel)
            return cast(OrbitKernel, units).proof_of(self.guarantee, shape, self.orbits)
        _checks.instance("units", units, ExactKernel)
        return cast(ExactKernel, units).proof_of(self.guarantee, shape, self.pairs)

    def read(self, plain: Any) -> ExactKernel | OrbitKernel:  # noqa: ANN401
        """Return the units of a file, which are certified on the way."""
        if self.orbits is not None:
            return OrbitKernel.read(plain, self.guarantee, self.orbits)
        return super().read(plain)

    def spent(
        self, units: ExactKernel | OrbitKernel, epsilon: float | None, delta: float | None
    ) -> Least:
        """Return the least epsilon along the graph for a delta, or the other way round."""
        return least_of_kernel(units, epsilon, delta)

    def subject(self, units: ExactKernel | OrbitKernel) -> tuple[object, ...]:
        """Return what the proof is about: the setting, and the integers without their cost."""
        return self.kind, self, units.subject

    def law(self, units: ExactKernel | OrbitKernel, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the row of an input, integers over their sum."""
        return units.row(data)

    def value(self, units: ExactKernel | OrbitKernel) -> float:
        """Return the objective in rational arithmetic, rounded once."""
        if isinstance(units, OrbitKernel):
            return orbit_value(self, units.orbits, units)
        losses = [
            dot(line, row) / (1 << units.bits)
            for line, row in zip(self.losses.tolist(), units.weights, strict=True)
        ]
        if self.weights is None:
            return float(min(losses) if self.maximises else max(losses))
        prior = [Fraction(weight) for weight in self.weights.tolist()]
        total = sum((p * cost for p, cost in zip(prior, losses, strict=True)), Fraction(0))
        return float(total / sum(prior))

    def dominating(self, units: ExactKernel | OrbitKernel) -> DominatingPair:
        """Return the tight dominating pair over all neighbours of the graph."""
        return units.dominating()

    def draw(self, axes: Axes, units: ExactKernel | OrbitKernel, label: str | None = None) -> None:
        """Draw the kernel as a heat map, inputs down and outputs across."""
        image = axes.imshow(units.matrix(), vmin=0.0, aspect="auto", interpolation="nearest")
        axes.grid(False)
        axes.locator_params(integer=True)
        axes.set_xlabel("output $y$")
        axes.set_ylabel("input $x$")
        if label is not None:
            axes.set_title(label)
        figure = axes.get_figure(root=True)
        if figure is not None:
            figure.colorbar(image, ax=axes, label="$K(y | x)$")

    def columns(self, units: ExactKernel | OrbitKernel) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each entry."""
        return cast(Any, units.columns())


def _indices(name: str, indices: npt.ArrayLike, size: int) -> IntVector:
    array = _checks.array(name, indices)
    if array.dtype.kind not in "iu" or array.min(initial=0) < 0 or array.max(initial=0) >= size:
        raise ParameterError(f"{name} must hold integers in 0..{size - 1}.")
    return array.astype(np.int64)


def _law(name: str, values: npt.ArrayLike, size: int) -> Vector:
    """Return non-negative weights scaled to sum 1."""
    array = _checks.floats(name, values)
    if array.shape != (size,):
        raise ParameterError(f"{name} has shape {array.shape}; it must be ({size},).")
    if not np.all(np.isfinite(array) & (array >= 0)) or float(array.max()) <= 0:
        raise ParameterError(f"{name} must be finite non-negative weights, not all zero.")
    with np.errstate(over="ignore"):
        if abs(float(array.sum()) - 1.0) <= _ROUNDING:
            return frozen(array)
    array = array / array.max()
    return frozen(array / array.sum())


def _graph(graph: Graph) -> Graph:
    """Return the user's edges as a read-only copy; `directed_pairs` checks them."""
    if isinstance(graph, str):
        if ":" not in graph:
            return graph
        try:
            graph = [[int(end) for end in edge.split(":")] for edge in graph.split(",")]
        except ValueError:
            raise ParameterError(
                f"graph is {_checks.shown(graph)}; edges are written 0:1,1:2."
            ) from None
    try:
        edges = np.array(graph)
    except ValueError:
        return graph
    edges.setflags(write=False)
    return edges


def _sizes(shape: Sizes | str | None) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if isinstance(shape, str):
        try:
            shape = [int(size) for size in shape.split(",")]
        except ValueError:
            raise ParameterError(
                f"shape is {_checks.shown(shape)}; sizes are written 2,3,3."
            ) from None
    listed = isinstance(shape, Sequence | np.ndarray)
    if not listed or _checks.array("shape", shape).ndim != 1 or len(shape) == 0:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}; it must be a row of sizes, such as 2,3,3."
        )
    return tuple(_checks.integer("shape", size, 1, _MOST_LETTERS) for size in shape)


def _is_pair(invariant: object) -> TypeGuard[Sequence[npt.ArrayLike]]:
    """Whether this is (A, B), in a file a list of both, and not a row of two numbers."""
    if not isinstance(invariant, tuple | list) or len(invariant) != 2:
        return False
    return isinstance(invariant[0], Sequence | np.ndarray)


def _invariant(invariant: object, inputs: int, outputs: int) -> Vector | Invariances | None:
    if invariant is None:
        return None
    if _is_pair(invariant):
        left = _checks.floats("the matrix of invariant", invariant[0])
        right = _checks.floats("the right side of invariant", invariant[1])
        fits = left.ndim == right.ndim == 2 and len(left) == len(right) > 0
        if not fits or left.shape[1] != inputs or right.shape[1] != outputs:
            raise ParameterError(
                f"invariant has shapes {left.shape} and {right.shape}; they must be "
                f"(m, {inputs}) and (m, {outputs})."
            )
        if not np.all(np.isfinite(left)) or not np.all(np.isfinite(right)):
            raise ParameterError("invariant holds a value that is not finite.")
        return frozen(left), frozen(right)
    row = _checks.floats("invariant", cast(npt.ArrayLike, invariant))
    if inputs != outputs:
        raise ParameterError(
            f"invariant is a row and loss has {inputs} inputs and {outputs} outputs; "
            "q K = q needs as many outputs as inputs."
        )
    law = _law("invariant", row, inputs)
    with np.errstate(over="ignore"):
        total = float(row.sum())
    if abs(total - 1.0) > 1e-9:
        raise ParameterError(f"invariant sums to {digits(total)}; it must sum to 1.")
    return law


def _cleaned(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the kernel without outputs of solver noise, rows summing to 1.

    For epsilon = 0 and a delta that is 0 or below what solvers tell apart, the mean row of each
    connected component: rows must be equal, or their differences are noise.
    """
    kernel = np.maximum(kernel, 0.0)
    kernel[:, kernel.max(axis=0) <= _UNUSED] = 0.0
    if setting.epsilon == 0 and setting.delta <= _NOISE:
        _, part = connected_components(links(setting.pairs, setting.inputs), directed=False)
        means = [kernel[part == label].mean(axis=0) for label in range(int(part.max()) + 1)]
        kernel = np.stack(means)[part]
    elif setting.delta == 0 and setting.invariances is None and not setting.blocks:
        kernel = _lifted(setting, kernel)
    return _filled(setting, kernel)


def _lifted(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the least kernel above K whose neighbours differ by a factor of e^epsilon at most.

    What is too small by the solver's tolerance would take much mixing where an output is rare: far
    from the input, along a cycle. What is too small by rounding only is left. Rows sum to more.
    """
    shrink, pairs = math.exp(-setting.epsilon), setting.pairs
    if pairs is None:
        return np.maximum(kernel, shrink * kernel.max(axis=0))
    kernel = kernel.copy()
    for _ in range(setting.inputs):
        asked = shrink * kernel[pairs[:, 0]]
        edge, output = np.nonzero(asked > kernel[pairs[:, 1]] * (1.0 + _RELATIVE))
        if not edge.size:
            break
        np.maximum.at(kernel, (pairs[edge, 1], output), asked[edge, output])
    return kernel


def _filled(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the kernel with rows that sum to 1; ratios between rows stay private.

    All rows are scaled alike, and each is filled up with a multiple of one law; the multiples
    differ by less than e^epsilon. Where that does not apply each row is divided by its sum.
    """
    sums = kernel.sum(axis=1, keepdims=True)
    top, short = float(sums.max()), 1.0 - float(sums.min() / sums.max())
    plain = setting.delta > 0 or setting.invariances is not None
    room = 0.0 if plain else math.expm1(setting.epsilon)
    if short >= room * _TOLERANCE:
        return kernel / sums
    scale = (1.0 - short / room) / top
    mean = kernel.mean(axis=0)
    return scale * kernel + (1.0 - scale * sums) * (mean / mean.sum())


def _certified(setting: KernelSetting, kernel: Matrix) -> ExactKernel:
    """Quantise, mixing with a row that keeps the invariances if there is one, else with any."""
    used = kernel.max(axis=0) > 0
    mean = kernel.mean(axis=0)
    # Half uniform, since an output of little mass would otherwise need much mixing; the mean
    # itself for tiny epsilon, where every row is close to it.
    rows = [0.5 * mean + 0.5 * used / used.sum(), mean]
    keeping = _keeping_row(setting)
    if keeping is not None and np.all(keeping[used] > 0):
        rows.insert(0, keeping)
    how: Any = {"pairs": setting.pairs, "tolerance": _TOLERANCE}
    for row in rows[:-1]:
        try:
            return quantise_kernel(kernel, setting.guarantee, row=row, **how)
        except NotPrivateError:
            continue
    return quantise_kernel(kernel, setting.guarantee, row=rows[-1], **how)


def _keeping_row(setting: KernelSetting) -> Vector | None:
    """Return the law u with A 1 u^T = B, which makes mixing keep A K = B; None if there is none."""
    if setting.invariances is None:
        return None
    left, right = setting.invariances
    totals = left.sum(axis=1)
    largest = int(np.argmax(np.abs(totals)))
    if totals[largest] == 0:
        return None
    row = right[largest] / totals[largest]
    fits = np.allclose(np.outer(totals, row), right, rtol=0.0, atol=1e-12 * np.abs(right).max())
    return row if fits and np.all(row >= 0) and row.sum() > 0 else None


def dot(line: Sequence[float], column: Sequence[int]) -> Fraction:
    """Return the exact sum of products."""
    ratios = [float(a).as_integer_ratio() for a in line]
    # Denominators of floats are powers of 2: the largest is a multiple of all.
    common = max((denominator for _, denominator in ratios), default=1)
    pairs = zip(ratios, column, strict=True)
    return Fraction(sum(a * (common // below) * weight for (a, below), weight in pairs), common)
