"""The general private kernel: loss, privacy along a graph, objective and further constraints."""

from __future__ import annotations

import math
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
from dpopt.budget import Budgeted
from dpopt.kernel.constraints import (
    ConstraintBlock,
    Constraints,
    Name,
    NamedGraph,
    Names,
    add_constraints,
    checked_names,
    constraint_blocks,
    edges_by_name,
)
from dpopt.kernel.geometric import Optimum, optimum
from dpopt.kernel.room import constrained_repair, moved
from dpopt.kernel.symmetry import Symmetry, settled
from dpopt.lp import Solution
from dpopt.privacy import Guarantee, Problem
from dpopt.privacy.graph import GRAPHS, LARGEST_EPSILON, SHAPED, directed_pairs
from dpopt.privacy.guarantee import in_short
from dpopt.table import Graph, Inputs, Losses, Table, constant, repair, rounded
from dpopt.table.inputs import checked_indices
from dpopt.table.table import alike
from dpopt.verify import LOSSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GraphLike = str | npt.ArrayLike
"""A graph's name, or undirected edges of shape (edges, 2); as a text, edges are 0:1,1:2."""
Sizes = Sequence[int]
"""Number of symbols at each position of a word; as a text, 2,3,3."""

# Inputs, or outputs, of a loss by name; memory fixes it.
_MOST_INPUTS = 2**22


@dataclass(frozen=True, eq=False)
class Kernel(Budgeted):
    """The best private kernel K[x, y] = Pr[output y | input x] for a finite set of inputs.

        minimise   sum_x prior_x sum_y loss[x, y] K[x, y]           ("mean")
               or  max_x sum_y loss[x, y] K[x, y]                   ("worst-case"; rows "losses")
        subject to sum_y K[x, y] = 1                                "sums"
                   K[x, y] <= e^epsilon K[x', y]                    "privacy"
                   sum_x q_x K[x, y] = q_y                          "invariance", if q is given
                   lower <= sum_xy c_xy K[x, y] <= upper            your ``constraints``, if any

    for all outputs y and all neighbours x, x' of the graph; K >= 0, and q is ``invariant``. "mean"
    and "worst-case" are values of ``objective``; the other words in quotes are the names of the
    rows in `problem`. Each of your constraints is a block of rows with the name that you give it.
    With delta > 0, each ordered pair of neighbours has variables s[y] >= max(0, K[x, y] -
    e^epsilon K[x', y]) ("privacy") with sum_y s[y] <= delta ("delta"). In `problem` the privacy
    rows, at most 2,000,000, are divided by e^epsilon; if all inputs are neighbours and delta is 0,
    they have an equivalent form with fewer rows (`dpopt.table.add_table`).

    A loss given by its name compares input x and output y coordinate by coordinate. If
    ``shape`` is given, number x stands for the vector ``np.unravel_index(x, shape)``. If not, it is
    compared as the number itself; "hamming" needs a shape. Here i runs over the coordinates:

        absolute   sum_i |x_i - y_i|       zero-one   1 if x and y differ, else 0
        squared    sum_i (x_i - y_i)^2     hamming    number of positions i where x_i, y_i differ

    Attributes:
        loss: its name, or a table of shape (inputs, outputs) with at least 2 inputs; a utility if
            ``sense`` is "maximise". As a text, commas separate rows and colons the entries of a
            row: 0:1:2,1:0:1 has 2 inputs and 3 outputs. In a file, each line is one row.
        epsilon: in [0, 600], in nats; None for several releases.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete" (all pairs), "path" (x and x + 1), "cycle" (also the
            first and the last), "grid" (inputs are tuples, see ``shape``, and neighbours differ by
            1 in one entry), "hamming" (tuples that differ in one entry, by any amount), or
            undirected edges of shape (edges, 2), as a text 0:1,1:2. An input without an edge is not
            protected, and unconnected parts are not protected from each other; the certificate says
            how many of either there are.
        shape: for "grid", "hamming" and losses by name: input i is read as the tuple
            ``np.unravel_index(i, shape)``, whose entry j has shape[j] possible values; as a text
            2,3,3.
        prior: weights of the inputs for "mean", shape (inputs,), non-negative, scaled to sum 1,
            as a text 0.2,0.8 or a file of numbers without a header; uniform if None.
        objective: "mean" or "worst-case"; the worst case of a utility is its least value.
        sense: "minimise" a loss or "maximise" a utility; "minimize" and "maximize" as well.
        invariant: a distribution q over the inputs that K must preserve: inputs drawn from q give
            outputs distributed as q. There must be as many outputs as inputs. None for no such
            condition.
        inputs: number of inputs, for a loss by name; None takes it from a shape or a prior.
        outputs: number of outputs, for a loss by name; as many as inputs if None.
        constraints: linear constraints of yours: tuples (name, matrix, lower, upper), K[x, y] at
            column x * outputs + y; on the command line a JSON file, see
            `dpopt.kernel.read_constraints`.
        symmetry: for speed, relabellings of inputs and outputs that leave the setting unchanged;
            entries of K that such a relabelling exchanges share one variable. "none", the default;
            "reflection" (the order is reversed); "cyclic" (every index is moved on by one);
            "dihedral" (both of these); "hamming" (the positions of the tuples are permuted, and the
            values at each position); "symbols" (any permutation of the inputs, and the same one of
            the outputs); "auto" (tries hamming, symbols, dihedral, cyclic and reflection in this
            order, takes the first that fits, and else none); or a list of your own pairs
            (sigma, tau), each of which takes input x to sigma[x] and output y to tau[y]. A
            symmetry is refused beside ``constraints``, ``invariant`` or names of inputs or outputs;
            "auto" then takes none. See `dpopt.kernel.symmetry`.
        input_names: one name for each input, in order, which `Design.release` then accepts in
            place of its number; as a text, a,b,c. If None, inputs are called 0, 1, ...
        output_names: one name for each output, which `Design.release` then returns; likewise.
        releases: k, in 1..1000. Above 1, the design is for k outputs, each for an input that may
            depend on the outputs before. Instead of epsilon and delta there are total_epsilon and
            total_delta, for the k outputs together. Such a design is the best that a search finds,
            and in general has no ``bound``. See `dpopt.budget`.
        total_epsilon: of all k releases together, in (0, 28], in nats; None for one release.
        total_delta: likewise, in [1e-12, 0.5]; 0 for one release.
    """

    kind: ClassVar[str] = "kernel"
    summary: ClassVar[tuple[str, ...]] = ("residuals",)

    loss: RowsOfNumbers | Literal["absolute", "squared", "zero-one", "hamming"]
    # None for several releases.
    epsilon: float = cast(float, None)
    delta: float = 0.0
    graph: GraphLike = "complete"
    shape: Sizes | None = None
    prior: Numbers | None = None
    objective: Literal["mean", "worst-case"] = "mean"
    sense: Literal["minimise", "maximise", "minimize", "maximize"] = "minimise"
    invariant: Numbers | None = None
    # None until `__post_init__` has derived them.
    inputs: int = cast(int, None)
    outputs: int = cast(int, None)
    constraints: Constraints | None = None
    symmetry: Symmetry = "none"
    input_names: Names | None = None
    output_names: Names | None = None
    releases: int = 1
    total_epsilon: float | None = None
    total_delta: float = 0.0

    def __post_init__(self) -> None:
        shape = _sizes(self.shape)
        several = self.keep_total("epsilon", epsilon=self.epsilon, delta=self.delta)
        loss, size, outputs = _checked_loss(self.loss, self.inputs, self.outputs, shape, self.prior)
        if not several:
            epsilon = _checks.real("epsilon", self.epsilon, 0.0, LARGEST_EPSILON)
            self.keep(epsilon=epsilon, delta=Guarantee(epsilon, self.delta).delta)
        _checks.choice("objective", self.objective, ("mean", "worst-case"))
        sense = _checks.choice(
            "sense", self.sense, ("minimise", "maximise", "minimize", "maximize")
        ).replace("z", "s")
        if self.prior is not None and self.objective == "worst-case":
            raise ParameterError(
                "prior is given and objective is 'worst-case'; it belongs to objective 'mean', "
                "and only there."
            )
        prior = None if self.prior is None else _pmf("prior", self.prior, size)
        graph: Any = _graph(self.graph)
        values: dict[str, object] = {
            "loss": loss,
            "prior": prior,
            "graph": graph,
            "shape": shape,
            "invariant": _invariant(self.invariant, size, outputs),
            "inputs": size,
            "outputs": outputs,
            "input_names": checked_names("inputs", self.input_names, size),
            "output_names": checked_names("outputs", self.output_names, outputs),
        }
        self.keep(**values, sense=sense)
        self.keep(constraints=self._constraint_blocks())
        by_name = isinstance(graph, str) and isinstance(loss, str)
        if by_name and (shape is not None or graph not in SHAPED):
            # Such a graph may be large: its pairs are listed only when needed.
            _checks.choice("graph", graph, GRAPHS)
        else:
            _ = self.pairs
        symmetry, orbits = settled(self)
        self.keep(symmetry=symmetry)
        if orbits is not None:
            # Checking the symmetry has computed its orbits: cache them.
            vars(self)["domain"] = orbits

    def _constraint_blocks(self) -> tuple[ConstraintBlock, ...] | None:
        """Return the user's constraints as blocks, None for none; refuse names of the program's."""
        blocks = constraint_blocks(self.constraints, self.inputs, self.outputs)
        reserved = ["sums", "privacy"]
        reserved += ["delta"] if self.delta > 0 else []
        reserved += ["losses"] if self.objective == "worst-case" else []
        reserved += ["invariance"] if self.invariant is not None else []
        for block in blocks:
            if block.name in reserved:
                raise ParameterError(
                    f"constraints holds the name {block.name!r}; {', '.join(reserved)} are taken."
                )
        return blocks or None

    @classmethod
    def example(cls) -> Self:
        """Return a count among three people, released with the least worst-case error."""
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
        if orbits is not None:
            return orbits
        if any(self.names):
            return NamedGraph(self.inputs, self.outputs, self.pairs, (), *self.names)
        return Graph(self.inputs, self.outputs, self.pairs)

    @property
    def names(self) -> tuple[tuple[Name, ...] | None, tuple[Name, ...] | None]:
        """Names of the inputs, and of the outputs; None where they are 0, 1, ..."""
        return cast(Any, (self.input_names, self.output_names))

    def output(self, place: int) -> Name:
        """Return the name of an output, or its number if it has none."""
        names = self.names[1]
        return place if names is None else names[place]

    def _called(self, places: IntVector) -> npt.NDArray[Any]:
        """Return what outputs are called: their numbers where they have no names."""
        return places if self.output_names is None else super()._called(places)

    @property
    def graph_name(self) -> str:
        """Name of the graph; "edges" for the user's own."""
        return self.graph if isinstance(self.graph, str) else "edges"

    @cached_property
    def loss_table(self) -> Matrix:
        """The loss as a read-only array, shape (inputs, outputs)."""
        if not isinstance(self.loss, str):
            return cast(Matrix, self.loss)
        # Entries of the largest loss table that is written out; memory fixes it.
        if self.inputs * self.outputs > 20_000_000:
            raise ParameterError(
                f"loss is {self.loss!r} for {self.inputs} inputs and {self.outputs} outputs; at "
                f"most 20,000,000 entries are written out."
            )
        return frozen(self.loss_at(np.arange(self.inputs)[:, None], np.arange(self.outputs)))

    def loss_at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Vector:
        """Return loss[x, y], without writing out a loss by name."""
        x, y = checked_indices("x", x, self.inputs), checked_indices("y", y, self.outputs)
        if isinstance(self.loss, str):
            return _named_loss(self.loss, x, y, self.shape)
        return self.loss_table[x, y]

    @property
    def blocks(self) -> tuple[ConstraintBlock, ...]:
        """The user's constraints, a block for each name."""
        return cast("tuple[ConstraintBlock, ...]", self.constraints or ())

    @cached_property
    def weights(self) -> Vector | None:
        """The prior, shape (inputs,), sum 1, read-only; None for "worst-case"."""
        if self.prior is None and self.objective == "mean":
            return _pmf("prior", np.ones(self.inputs), self.inputs)
        return cast("Vector | None", self.prior)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges, or what all releases spend together."""
        return Guarantee(self.epsilon, self.delta) if self.releases == 1 else self.total

    @property
    def maximises(self) -> bool:
        """Whether the loss is a utility."""
        return self.sense == "maximise"

    @cached_property
    def losses(self) -> Losses:
        """The objective: the loss of each variable, and the prior of each orbit of inputs."""
        inputs, prior = self.domain, self.weights
        costs = self.loss_at(*inputs.representatives.T)
        if prior is not None:
            # The prior of an orbit of inputs is the sum over its inputs, which all have the same.
            sizes = np.array([float(size) for size in inputs.row_sizes])
            prior = prior[inputs.representatives[inputs.starts[:-1], 0]] * sizes
        return Losses(costs, prior, self.maximises)

    def problem(self) -> Problem:
        """Return the program displayed in the docstring of the class, over orbits of a symmetry."""
        self.refuse_several()
        problem = super().problem()
        add_constraints(problem, self.domain, self.guarantee, (*self.invariance_rows, *self.blocks))
        return problem

    @cached_property
    def invariance_rows(self) -> tuple[ConstraintBlock, ...]:
        """The rows of q K = q, one for each output."""
        if self.invariant is None:
            return ()
        q = cast(Vector, self.invariant)
        # Row y is sum_x q_x K[x, y] = q_y.
        x, y = np.flatnonzero(q)[:, None], np.arange(self.outputs)
        places = np.stack(np.broadcast_arrays(y, x, y), axis=-1).reshape(-1, 3)
        limits = tuple(q.tolist())
        return (ConstraintBlock("invariance", places, q[places[:, 1]], limits, limits),)

    def one_release(self, guarantee: Guarantee) -> Kernel:
        """Return the setting of one release with a guarantee of its own."""
        return self.alone(epsilon=guarantee.epsilon, delta=guarantee.delta)

    def under(self, curve: Sequence[Guarantee]) -> Problem:
        """Return the program of one release that has every guarantee of a curve."""
        problem, rows = super().under(curve), (*self.invariance_rows, *self.blocks)
        add_constraints(problem, self.domain, Guarantee(0.0), rows)
        return problem

    @cached_property
    def geometric(self) -> Optimum | None:
        """The closed-form optimum on paths and grids, see `dpopt.kernel.geometric`, else None."""
        return optimum(self)

    def closed_form(self) -> Table | None:
        """Return the optimum by the theorem of `dpopt.kernel.geometric`, else None."""
        return None if self.geometric is None else self.table(self.geometric.kernel.ravel())

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return the solver's dual bound; without a solution, that of `dpopt.kernel.geometric`."""
        del table
        if solution is not None:
            return solution.bound
        return None if self.geometric is None else self.geometric.bound

    def _proof_size(self, table: Table) -> int:
        """Return roughly how many entries of rows a proof evaluates."""
        del table
        entries = self.inputs * self.outputs
        # Entries of the largest kernel whose bound is proved in integers; time fixes it.
        if entries > 1_000_000:
            return entries
        neighbours = 1 if self.pairs is None and self.delta == 0 else self.inputs
        neighbours = neighbours if self.pairs is None else len(self.pairs) / self.inputs
        constraint_entries = sum(block.places.size for block in self.blocks)
        constraint_entries += 0 if self.invariant is None else entries
        return int(2 * entries * max(1, neighbours)) + constraint_entries

    def as_point(self, values: Vector) -> Vector:
        """Return a kernel of shape (inputs, outputs) as the probability of each variable."""
        inputs = self.domain
        if values.shape == (inputs.size,):
            return values
        if values.shape != (self.inputs, self.outputs):
            raise ParameterError(
                f"point has shape {values.shape}; it must be {(self.inputs, self.outputs)}."
            )
        # Mean over all pairs (x, y) of an orbit: its size is outputs per input times inputs.
        sizes = inputs.counts * np.array([float(n) for n in inputs.row_sizes])[inputs.rows]
        return np.bincount(inputs.table().ravel(), values.ravel(), inputs.size) / sizes

    def table(self, point: Vector) -> Table:
        """Return a point as a private table: polished, rounded, and mixed until it is certified."""
        table = self.repaired(point)
        most = moved(table, point)
        # Largest total variation by which repair may move a row; the gap shows the loss this costs.
        if most > 1e-5:
            raise NotPrivateError(
                f"making the kernel {in_short(self.guarantee)} moves a row by "
                f"{digits(most)} in total variation, above 1e-05: solve more tightly.",
                excess=most,
            )
        return table

    def repaired(self, point: Vector) -> Table:
        """Return a point as a private table, as `table` does, however far its rows are moved."""
        if self.blocks:
            return constrained_repair(self, point)
        if self.invariant is not None:
            values = np.maximum(point, 0.0)
            values = values / (self.domain.sums @ values)[self.domain.rows]
            first = rounded(self.domain, values, self.bits, equal=alike(self.guarantee))
            return repair(first, self.interior(values), self.judge, self.bits)[0]
        return super().table(point)

    def interior(self, values: Vector) -> Table:
        """Return half the mean row, half uniform; with q K = q, all rows q."""
        if self.invariant is None:
            return super().interior(values)
        q = cast(Vector, self.invariant)
        # It must give every used output a probability above 0.
        if np.any((values > 0) & (q[self.domain.columns] <= 0)):
            return super().interior(values)
        return constant(self.domain, q / q.sum(), self.bits)

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return the kernel, its expected loss for each input, and its constraint violations."""

        def expected_losses() -> Vector:
            """Return sum_y loss_xy K_xy for each input x, shape (inputs,)."""
            means = np.array([float(mean) for mean in table.means(self.losses.costs)])
            return frozen(means[self.domain.rows_of(np.arange(self.inputs))])

        return {
            "kernel": lambda: frozen(table.matrix()),
            "expected_losses": expected_losses,
            "residuals": lambda: {
                block.name: float(block.misses(table))
                for block in (*self.invariance_rows, *self.blocks)
            },
        }

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each entry."""
        return cast(Any, table.columns(*self.names))

    def draw(self, axes: Axes, table: Table, label: str | None = None) -> None:
        """Draw the kernel as a heat map, inputs down and outputs across."""
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


def _pmf(name: str, values: npt.ArrayLike, size: int) -> Vector:
    """Return non-negative weights scaled to sum 1."""
    array = _checks.floats(name, values)
    if array.shape != (size,):
        raise ParameterError(f"{name} has shape {array.shape}; it must be ({size},).")
    if not np.all(np.isfinite(array) & (array >= 0)) or float(array.max()) <= 0:
        raise ParameterError(f"{name} must be finite non-negative weights, not all zero.")
    with np.errstate(over="ignore"):
        # Weights whose sum differs from 1 by no more than this are not divided by it: it is
        # rounding.
        if abs(float(array.sum()) - 1.0) <= 2.0**-48:
            return frozen(array)
    array = array / array.max()
    return frozen(array / array.sum())


def _graph(graph: GraphLike) -> GraphLike:
    """Return a name, or edges parsed into a read-only copy, which `directed_pairs` checks."""
    edges = edges_by_name(graph, None)
    if isinstance(edges, str):
        return edges
    edges = _checks.array("graph", edges).copy()
    edges.setflags(write=False)
    return edges


def _sizes(shape: Sizes | str | None) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if isinstance(shape, str):
        words = [word.strip() for word in shape.split(",")]
        shape = cast(Sizes, [int(word) if word.isdecimal() else word for word in words])
    if _checks.array("shape", shape).ndim != 1 or len(shape) == 0:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}; it must be a row of sizes, such as 2,3,3."
        )
    # Symbols at one position of a word: numbers of inputs stay below 2^31.
    return tuple(_checks.integer("shape", size, 1, 2**31 - 1) for size in shape)


def _invariant(invariant: npt.ArrayLike | None, inputs: int, outputs: int) -> Vector | None:
    if invariant is None:
        return None
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


def _checked_loss(
    loss: npt.ArrayLike | str,
    size: int | None,
    outputs: int | None,
    shape: tuple[int, ...] | None,
    prior: npt.ArrayLike | None,
) -> tuple[Matrix | str, int, int]:
    """Return the checked loss (a name or a table) and its numbers of inputs and outputs."""
    if not isinstance(loss, str):
        table = frozen(checked_table("loss", loss))
        # Larger losses would overflow in sums and products of floats.
        if not np.all(np.abs(table) <= 1e100):
            raise ParameterError("loss holds a value that is not finite, or above 1e+100 in size.")
        stated = zip(("inputs", "outputs"), (size, outputs), table.shape, strict=True)
        for name, number, actual in stated:
            if number is not None and _checks.integer(name, number, 1) != actual:
                raise ParameterError(
                    f"{name} is {number} and loss a table of shape {table.shape}; leave {name} "
                    "out, or None, beside a table."
                )
        return table, *table.shape
    if loss not in LOSSES:
        raise ParameterError(
            f"loss is {_checks.shown(loss)}; it must be one of {', '.join(LOSSES)}, or a table of "
            "shape (inputs, outputs)."
        )
    if shape is None and loss == "hamming":
        raise ParameterError(
            "shape is None and loss is 'hamming', which compares words; shape must say how many "
            "symbols there are at each position, such as 2,2,2."
        )
    words = None if shape is None else math.prod(shape)
    if words is not None and not 2 <= words <= _MOST_INPUTS:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}, which makes {_checks.shown(words)} words; there "
            f"must be at least 2 and at most {_MOST_INPUTS}."
        )
    if size is None and words is None and prior is None:
        raise ParameterError(
            f"inputs is None and loss is {loss!r}; a loss by name needs the number of inputs."
        )
    if size is None:
        size = np.size(_checks.floats("prior", prior)) if words is None else words
    count = _checks.integer("inputs", size, 2, _MOST_INPUTS)
    outputs = count if outputs is None else _checks.integer("outputs", outputs, 1, _MOST_INPUTS)
    if words is not None and not count == outputs == words:
        raise ParameterError(
            f"shape is {shape}, which makes {words} words of {count} inputs and {outputs} outputs; "
            "with a loss by name, both are these words."
        )
    return loss, count, outputs


def checked_table(name: str, values: object) -> Matrix:
    """Return a table of shape (inputs, outputs), with at least 2 inputs and 1 output."""
    array = _checks.floats(name, values)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ParameterError(
            f"{name} has shape {array.shape}; it must be (inputs, outputs) with at least 2 inputs "
            "and 1 output."
        )
    return array


def _named_loss(name: str, x: IntVector, y: IntVector, shape: Sequence[int] | None) -> Vector:
    """Return the loss of a name at inputs x and outputs y, which broadcast to one shape."""
    if name == "zero-one":
        return (x != y).astype(np.float64)
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    # The last symbol of a word changes fastest, as np.unravel_index has it.
    for size in reversed(shape or ()):
        x, symbol_of_x = np.divmod(x, size)
        y, symbol_of_y = np.divmod(y, size)
        total += _symbol_loss(name, symbol_of_x, symbol_of_y)
    return total if shape else _symbol_loss(name, x, y)


def _symbol_loss(name: str, a: IntVector, b: IntVector) -> Vector:
    if name == "hamming":
        return (a != b).astype(np.float64)
    difference = np.abs(a - b).astype(np.float64)
    return difference**2 if name == "squared" else difference
