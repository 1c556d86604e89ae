"""The general private kernel: loss, privacy along a graph, objective, what must hold of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Matrix, Numbers, RowsOfNumbers, Vector, frozen
from dpopt.kernel.constraints import (
    ConstraintBlock,
    Constraints,
    add_constraints,
    constraint_blocks,
)
from dpopt.kernel.geometric import Optimum, optimum
from dpopt.kernel.loss import checked_loss, named_loss
from dpopt.kernel.room import kept
from dpopt.kernel.symmetry import Symmetry, settled
from dpopt.lp import Solution
from dpopt.privacy import Guarantee, Problem
from dpopt.privacy.graph import GRAPHS, LARGEST_EPSILON, SHAPED, directed_pairs
from dpopt.privacy.guarantee import in_short
from dpopt.shape import Setting
from dpopt.table import Graph, Inputs, Losses, Table, repair, rounded
from dpopt.table.rounding import alike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBJECTIVES = ("mean", "worst-case")
SENSES = ("minimise", "maximise")

Invariances = tuple[Matrix, Matrix]
GraphLike = str | npt.ArrayLike
"""A graph's name, or undirected edges of shape (edges, 2); as a text, edges are 0:1,1:2."""
Sizes = Sequence[int]
"""Sizes of an alphabet at each place of a word; as a text, 2,3,3."""

_MOST_SYMBOLS = 2**31 - 1
_MOST_LOSSES = 20_000_000
# Entries of a kernel beyond which no proof of its bound is made, whatever its neighbours.
_MOST_PROVED = 1_000_000
# Total variation that repair may move a row by; the gap shows what it cost.
_TOLERANCE = 1e-5
# A sum of masses that is 1 up to the rounding of its parts: dividing by it would change nothing.
_ROUNDING = 2.0**-48


@dataclass(frozen=True, eq=False)
class Kernel(Setting):
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
    written out; `dpopt.table.add_table` says how. Further rows over K, beside those of the
    setting, are `dpopt.table.over_masses` of a program.

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
        shape: symbols at each place of the word that an input is, as a text 2,3,3; for "grid",
            "hamming" and losses by name.
        prior: weights of the inputs for "mean", shape (inputs,), non-negative, scaled to sum 1,
            as a text 0.2,0.8 or a file of numbers without a header; uniform if None.
        objective: "mean" or "worst-case", as above; of a utility, the least one counts.
        sense: "minimise" a loss or "maximise" a utility.
        invariant: q with q K = q, non-negative with sum 1, where inputs and outputs are the same;
            or (A, B) with A K = B, shapes (m, inputs) and (m, outputs); or None.
        inputs: their number, for a loss by name; known already from a table, a shape or a prior.
        outputs: number of outputs, for a loss by name; as many as inputs if None.
        constraints: linear rows of your own: tuples (name, matrix, lower, upper), K[x, y] at column
            x * outputs + y; on the command line a JSON file, see `dpopt.kernel.read_constraints`.
        symmetry: what leaves the setting as it is, so that its program is one over orbits of pairs
            (x, y), see `dpopt.kernel.symmetry`: "reflection" (both ends exchanged), "cyclic" (all
            moved on by one), "dihedral" (both of these), "hamming" (symbols and places of words
            permuted), "symbols" (all permuted), the first of them that there is ("auto"), or
            generators, pairs of permutations (sigma, tau) of the inputs and of the outputs.
    """

    kind: ClassVar[str] = "kernel"
    summary: ClassVar[tuple[str, ...]] = ("residuals",)

    loss: RowsOfNumbers | Literal["absolute", "squared", "zero-one", "hamming"]
    epsilon: float
    delta: float = 0.0
    graph: GraphLike = "complete"
    shape: Sizes | None = None
    prior: Numbers | None = None
    objective: Literal["mean", "worst-case"] = "mean"
    sense: Literal["minimise", "maximise"] = "minimise"
    invariant: Numbers | None = None
    # Numbers once the setting is made, whoever counted them.
    inputs: int = cast(int, None)
    outputs: int = cast(int, None)
    constraints: Constraints | None = None
    symmetry: Symmetry = "none"

    def __post_init__(self) -> None:
        shape = _sizes(self.shape)
        loss, size, outputs = checked_loss(self.loss, self.inputs, self.outputs, shape, self.prior)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, LARGEST_EPSILON)
        guarantee = Guarantee(epsilon, self.delta)
        _checks.choice("objective", self.objective, OBJECTIVES)
        _checks.choice("sense", self.sense, SENSES)
        if self.prior is not None and self.objective == "worst-case":
            raise ParameterError(
                "prior is given and objective is 'worst-case'; it belongs to objective 'mean', "
                "and only there."
            )
        prior = None if self.prior is None else _pmf("prior", self.prior, size)
        graph: Any = _graph(self.graph)
        values: dict[str, object] = {
            "loss": loss,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "prior": prior,
            "graph": graph,
            "shape": shape,
            "invariant": _invariant(self.invariant, size, outputs),
            "inputs": size,
            "outputs": outputs,
        }
        self.keep(**values)
        self.keep(constraints=self._own_blocks())
        by_name = isinstance(graph, str) and isinstance(loss, str)
        if by_name and (shape is not None or graph not in SHAPED):
            # Such a graph may be large: it is written out by whoever needs it.
            _checks.choice("graph", graph, GRAPHS)
        else:
            _ = self.pairs
        symmetry, orbits = settled(self)
        self.keep(symmetry=symmetry)
        if orbits is not None:
            # Of a symmetry they are known by now.
            vars(self)["domain"] = orbits

    def _own_blocks(self) -> tuple[ConstraintBlock, ...] | None:
        """Return the user's own rows as blocks under names of their own, None if there are none."""
        blocks = constraint_blocks(self.constraints, self.inputs, self.outputs)
        taken = ["sums", "privacy"]
        taken += ["delta"] if self.delta > 0 else []
        taken += ["losses"] if self.objective == "worst-case" else []
        taken += ["invariance"] if self.invariant is not None else []
        for block in blocks:
            if block.name in taken:
                raise ParameterError(
                    f"constraints holds the name {block.name!r}; {', '.join(taken)} are taken."
                )
        return blocks or None

    @classmethod
    def example(cls) -> Self:
        """Return a count of three people, told with the least largest error."""
        return cls("absolute", 1.0, graph="path", objective="worst-case", inputs=4)

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
    def domain(self) -> Inputs:
        """All inputs; with a symmetry, orbits of pairs (x, y)."""
        orbits = settled(self)[1]
        return Graph(self.inputs, self.outputs, self.pairs) if orbits is None else orbits

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
    def loss_table(self) -> Matrix:
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
        return self.loss_table[x, y]

    @property
    def blocks(self) -> tuple[ConstraintBlock, ...]:
        """The rows of your own, a block for each name."""
        return cast("tuple[ConstraintBlock, ...]", self.constraints or ())

    @cached_property
    def weights(self) -> Vector | None:
        """The prior, shape (inputs,), sum 1, read-only; None for "worst-case"."""
        if self.prior is None and self.objective == "mean":
            return _pmf("prior", np.ones(self.inputs), self.inputs)
        return cast("Vector | None", self.prior)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def maximises(self) -> bool:
        """Whether the loss is a utility."""
        return self.sense == "maximise"

    @cached_property
    def losses(self) -> Losses:
        """The objective: the loss of each variable, and the prior of the inputs up to symmetry."""
        inputs, prior = self.domain, self.weights
        costs = self.loss_at(*inputs.representatives.T)
        if prior is not None:
            # Of all inputs that are alike together.
            sizes = np.array([float(size) for size in inputs.row_sizes])
            prior = prior[inputs.representatives[inputs.starts[:-1], 0]] * sizes
        return Losses(costs, prior, self.maximises)

    def problem(self) -> Problem:
        """Return the program that is displayed above, over orbits if there is a symmetry.

        Raises:
            ParameterError: if it would have more than 2,000,000 privacy rows.
        """
        problem = super().problem()
        add_constraints(problem, self.domain, self.guarantee, (*self.invariance_rows, *self.blocks))
        return problem

    @cached_property
    def invariance_rows(self) -> tuple[ConstraintBlock, ...]:
        """A K = B as rows, for one output of each orbit; the others keep what it keeps."""
        if self.invariances is None:
            return ()
        left, right = self.invariances
        first = np.unique(self.domain.columns, return_index=True)[1]
        outputs = self.domain.representatives[first, 1]
        # Row (i, y) is sum_x A_ix K[x, y] = B_iy.
        i, x = np.nonzero(left)
        rows = i[:, None] * len(outputs) + np.arange(len(outputs))
        places = np.stack(np.broadcast_arrays(rows, x[:, None], outputs), axis=-1)
        limits = tuple(right[:, outputs].ravel().tolist())
        coefficients = np.repeat(left[i, x], len(outputs))
        return (ConstraintBlock("invariance", places.reshape(-1, 3), coefficients, limits, limits),)

    @cached_property
    def geometric(self) -> Optimum | None:
        """The optimum that `dpopt.kernel.geometric` knows on paths and grids; None elsewhere."""
        return optimum(self)

    def closed_form(self) -> Table | None:
        """Return the geometric mechanism with the best answers, where that is the optimum.

        On a path, delta = 0, for a loss by which of two outputs the better one changes once along
        the path, such as any that does not fall in |x - y|; on a grid, for a sum of such losses of
        the symbols. `dpopt.kernel.geometric` has the proof. None elsewhere.
        """
        return None if self.geometric is None else self.table(self.geometric.kernel.ravel())

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return a bound on the value of any other kernel: that of the dual vector.

        Without a solve, that of the multipliers which `dpopt.kernel.geometric` knows, if it does.
        """
        del table
        if solution is not None:
            return solution.bound
        return None if self.geometric is None else self.geometric.bound

    def _proof_size(self, table: Table) -> int:
        """Return about how many entries of rows a proof looks at."""
        del table
        entries = self.inputs * self.outputs
        if entries > _MOST_PROVED:
            return entries
        neighbours = 1 if self.pairs is None and self.delta == 0 else self.inputs
        neighbours = neighbours if self.pairs is None else len(self.pairs) / self.inputs
        fixed = 0 if self.invariances is None else len(self.invariances[0])
        own = sum(block.places.size for block in self.blocks) + fixed * entries
        return int(2 * entries * max(1, neighbours)) + own

    def as_point(self, values: Vector) -> Vector:
        """Return a kernel of shape (inputs, outputs) as the probability of each variable.

        Raises:
            ParameterError: for another shape.
        """
        inputs = self.domain
        if values.shape == (inputs.size,):
            return values
        if values.shape != (self.inputs, self.outputs):
            raise ParameterError(
                f"point has shape {values.shape}; it must be {(self.inputs, self.outputs)}."
            )
        sizes = inputs.counts * np.array([float(n) for n in inputs.row_sizes])[inputs.rows]
        return np.bincount(inputs.table().ravel(), values.ravel(), inputs.size) / sizes

    def table(self, point: Vector) -> Table:
        """Return a point as a private table: polished, rounded, and mixed until it is accepted.

        With own rows it is mixed with a table that keeps them, see `dpopt.kernel.room`; with
        invariances, with a row that keeps these, if there is one.

        Raises:
            NotPrivateError: if repair would move a row by more than 1e-5 in total variation.
        """
        if self.blocks:
            table = kept(self.domain, self.guarantee, self.blocks, point, self.bits)
        elif self.invariances is not None:
            values = np.maximum(point, 0.0)
            values = values / (self.domain.sums @ values)[self.domain.rows]
            first = rounded(self.domain, values, self.bits, equal=alike(self.guarantee))
            table = repair(first, self.interior(values), self.judge, self.bits)[0]
        else:
            table = super().table(point)
        moved = np.abs(table.masses - np.maximum(point, 0.0) * self.domain.counts)
        most = float(np.bincount(self.domain.rows, moved).max()) / 2
        if most > _TOLERANCE:
            raise NotPrivateError(
                f"making the kernel {in_short(self.guarantee)} moves a row by "
                f"{digits(most)} in total variation, above {_TOLERANCE:g}: solve more tightly.",
                excess=most,
            )
        return table

    def interior(self, values: Vector) -> Table:
        """Return half the mean row, half uniform; with invariances, the row that keeps them.

        Args:
            values: of one output of each variable.
        """
        row = None if self.invariances is None else _keeping_row(*self.invariances)
        if row is None:
            return super().interior(values)
        row = row[self.domain.representatives[:, 1]]
        # It must leave room for whatever is used.
        if np.any((values > 0) & (row <= 0)):
            return super().interior(values)
        return rounded(self.domain, row, self.bits)

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return the kernel, what it loses for each input, and what it misses.

        Repair and rounding keep privacy exactly, and "invariance" and each block of own rows up to
        the residual only, which is computed in rational arithmetic.
        """
        return {
            "kernel": lambda: frozen(table.matrix()),
            "expected_losses": lambda: self._expected_losses(table),
            "residuals": lambda: {
                block.name: float(block.misses(table))
                for block in (*self.invariance_rows, *self.blocks)
            },
        }

    def _expected_losses(self, table: Table) -> Vector:
        """Return sum_y loss_xy K_xy for each input x, shape (inputs,), read-only."""
        means = np.array([float(mean) for mean in table.means(self.losses.costs)])
        return frozen(means[self.domain.rows_of(np.arange(self.inputs))])

    def draw(self, axes: Axes, table: Table, label: str | None = None) -> None:
        """Draw the kernel as a heat map, inputs down and outputs across."""
        draw_heat_map(axes, table, label)


def draw_heat_map(axes: Axes, table: Table, label: str | None) -> None:
    """Draw a kernel as a heat map, inputs down and outputs across."""
    image = axes.imshow(table.matrix(), vmin=0.0, aspect="auto", interpolation="nearest")
    axes.grid(False)
    axes.locator_params(integer=True)
    axes.set_xlabel("output $y$")
    axes.set_ylabel("input $x$")
    if label is not None:
        axes.set_title(label)
    figure = axes.get_figure(root=True)
    if figure is not None:
        figure.colorbar(image, ax=axes, label="$K(y | x)$")


def _indices(name: str, indices: npt.ArrayLike, size: int) -> IntVector:
    array = _checks.array(name, indices)
    if array.dtype.kind not in "iu" or array.min(initial=0) < 0 or array.max(initial=0) >= size:
        raise ParameterError(f"{name} must hold integers in 0..{size - 1}.")
    return array.astype(np.int64)


def _pmf(name: str, values: npt.ArrayLike, size: int) -> Vector:
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


def _graph(graph: GraphLike) -> GraphLike:
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
    return tuple(_checks.integer("shape", size, 1, _MOST_SYMBOLS) for size in shape)


def _invariant(
    invariant: Any,  # noqa: ANN401
    inputs: int,
    outputs: int,
) -> Vector | Invariances | None:
    if invariant is None:
        return None
    # A file holds (A, B) as a list of both, which is no row of two numbers.
    pair = isinstance(invariant, tuple | list) and len(invariant) == 2
    if pair and isinstance(invariant[0], Sequence | np.ndarray):
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
    row = _checks.floats("invariant", invariant)
    if inputs != outputs:
        raise ParameterError(
            f"invariant is a row and loss has {inputs} inputs and {outputs} outputs; "
            "q K = q needs as many outputs as inputs."
        )
    pmf = _pmf("invariant", row, inputs)
    with np.errstate(over="ignore"):
        total = float(row.sum())
    if abs(total - 1.0) > 1e-9:
        raise ParameterError(f"invariant sums to {digits(total)}; it must sum to 1.")
    return pmf


def _keeping_row(left: Matrix, right: Matrix) -> Vector | None:
    """Return the row u with A 1 u^T = B, which makes mixing keep A K = B; None if there is none."""
    totals = left.sum(axis=1)
    largest = int(np.argmax(np.abs(totals)))
    if totals[largest] == 0:
        return None
    row = right[largest] / totals[largest]
    fits = np.allclose(np.outer(totals, row), right, rtol=0.0, atol=1e-12 * np.abs(right).max())
    return row if fits and np.all(row >= 0) and row.sum() > 0 else None
