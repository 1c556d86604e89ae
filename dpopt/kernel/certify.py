"""Any table of probabilities, whatever it was found with: made private, proved, released.

And what a mechanism spends: the least epsilon of a table, or of the integers of any design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_up
from dpopt._types import Matrix
from dpopt.files import LONG_ENTRIES, read_table
from dpopt.kernel.constraints import read_constraints
from dpopt.kernel.names import Name, Names, checked_names, listed, place, plain_name
from dpopt.kernel.nearest import (
    TOLERANCE,
    NearestKernel,
    integers_of,
    moved,
    nearest,
    pmf_table,
)
from dpopt.kernel.setting import GraphLike, Kernel
from dpopt.privacy import Least
from dpopt.privacy.graph import GRAPHS, SHAPED
from dpopt.shape import Design, Setting, made
from dpopt.table import Generated, Graph, Table, Words
from dpopt.table.least import least_of_table

_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_FIT = (
    "it must be a table (inputs, outputs), a frame or a file of one, or a solved variable of "
    "cvxpy or linopy"
)


@overload
def certify(
    kernel: object,
    epsilon: float,
    delta: float = ...,
    *,
    graph: GraphLike = ...,
    shape: Sequence[int] | None = ...,
    inputs: Names | None = ...,
    constraints: object = ...,
    tolerance: float = ...,
) -> Design: ...


@overload
def certify(
    kernel: object,
    epsilon: None = ...,
    delta: float = ...,
    *,
    graph: GraphLike = ...,
    shape: Sequence[int] | None = ...,
    inputs: Names | None = ...,
    tolerance: float = ...,
) -> Least: ...


@overload
def certify(
    kernel: object,
    epsilon: float,
    delta: None,
    *,
    graph: GraphLike = ...,
    shape: Sequence[int] | None = ...,
    inputs: Names | None = ...,
    tolerance: float = ...,
) -> Least: ...


@overload
def certify(kernel: object, *, setting: Setting) -> Design: ...


def certify(
    kernel: object,
    epsilon: float | None = None,
    delta: float | None = 0.0,
    *,
    graph: GraphLike = "complete",
    shape: Sequence[int] | None = None,
    inputs: Names | None = None,
    constraints: object = None,
    tolerance: float = TOLERANCE,
    setting: Setting | None = None,
) -> Any:
    """Return a proved mechanism made from a table of probabilities; or the least epsilon of it.

    A table K holds Pr[output y | input x] at K[x, y]. A solver keeps the rows of its program, and
    so privacy, only up to a tolerance. With an epsilon, the table is moved to the nearest one that
    is private, which is rounded to integers and proved private in exact arithmetic; releases are
    drawn from these integers. ``moved`` of what comes back is how far a row was moved, in total
    variation; of a kernel's design, ``loss`` is its objective afterwards. See
    `dpopt.kernel.NearestKernel`.

    - ``certify(kernel, 1.0, graph="path")`` makes a mechanism, the design of a
      `dpopt.kernel.NearestKernel`.
    - ``certify(kernel, graph="path")`` moves nothing: it returns the least epsilon for which the
      table is private, a `dpopt.privacy.Least`; with an epsilon and ``delta=None``, the least
      delta.
    - ``certify(gamma, setting=Majority(...))`` takes what a solver found for another kind of
      mechanism (gamma of a majority, q_m of a sampler, ...) and makes a design of that kind.
    - ``certify(design)`` returns the least epsilon that the integers of a design spend, which may
      be below what it promises; or above it, for a published rule that is not private. Known for
      every kind with delta = 0. A least delta, and a least epsilon for a delta above 0, are known
      for tables over inputs, and for majorities; other kinds refuse. Of a majority, up to 4,000,000
      choices of its voters' corners are gone through.

    Args:
        kernel: shape (inputs, outputs), or with more axes, of which the last one is the output and
            the others, flattened in C order, the input. A nested list, an array of any library, a
            pandas or polars frame (a row for each input; or the columns input, output and
            probability), a file of one (.csv, .tsv, .npz, .npy, .parquet), a solved variable or
            expression of cvxpy or linopy; or a design of any kind, judged by its integers.
        epsilon: in [0, 600], in nats; None asks for the least one.
        delta: in [0, 1); None asks for the least one.
        graph: neighbouring inputs: "complete", "path", "cycle", "grid", "hamming", or undirected
            edges, shape (edges, 2), between names where inputs have names. Of a design, its own
            neighbours unless others are named.
        shape: for "grid" and "hamming", the sizes of the places of a word; all axes of ``kernel``
            but the last one, if None.
        inputs: names of the inputs in their order, which a graph with a name goes by: of a frame
            or file with names that are no numbers it must be said for such a graph, and its rows
            are put into this order; of a table without names they are those of its rows. Inputs and
            outputs with names other than 0, 1, ... go by these in what is told, and in releases.
        constraints: linear rows of your own on K, which repair keeps as well: tuples (name, matrix,
            lower, upper), K[x, y] at column x * outputs + y, inputs counted in their order; a JSON
            file of them, see `dpopt.kernel.read_constraints`; or, where ``kernel`` is a variable of
            cvxpy, constraints of cvxpy that are affine in it alone. Inequalities that leave room
            hold exactly; others, and equalities, up to ``residuals`` of the design, about 1e-15:
            see `NearestKernel`.
        tolerance: most total variation that a row may be moved by, in (0, 1].
        setting: parameters of the kind of mechanism that ``kernel`` was found for, such as a
            `dpopt.majority.Majority`; epsilon and the others are then its own.

    Raises:
        ParameterError: if ``kernel`` is no table of probabilities, a parameter is out of range or
            does not go with the others, or what is asked for is not known for this kind.
        InfeasibleError: if no private kernel satisfies the own rows; it names the blocks.
        NotPrivateError: if repair moves a row by more than the tolerance; it says by how much, and
            which epsilon the table needs as it stands.
        SolverError: if a program was needed and its solver found no answer.

    Example:
        >>> import dpopt
        >>> table = [[0.7310587, 0.2689413], [0.2689413, 0.7310587]]
        >>> dpopt.certify(table)
        Least(epsilon=1.00001, delta=0, inputs=0 and 1, outputs=(0,))
        >>> design = dpopt.certify(table, epsilon=1.0)
        >>> design.verdict, design.moved < 1e-6
        ('private', True)

        A noise function gamma that a solver found, and the epsilon that the majority spends:

        >>> import dpopt
        >>> voters = dpopt.Majority(3, epsilon=0.5, allowance=1.0)
        >>> majority = dpopt.certify([0.5, 0.5], setting=voters)
        >>> spent = dpopt.certify(majority)
        >>> round(spent.lower, 6) == round(spent.upper, 6), spent.upper <= 0.5
        (True, True)
    """
    if setting is not None:
        asked = (epsilon, delta, graph, shape, inputs, constraints, tolerance)
        return _of_kind(kernel, setting, asked)
    tolerance = _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    if inputs is not None and isinstance(kernel, Design | Table):
        raise ParameterError(
            "inputs is given with a design, whose inputs have their order and names; leave it out."
        )
    if epsilon is None or delta is None:
        if constraints is not None:
            raise ParameterError(
                "constraints are given without both epsilon and delta; the least of either "
                "is that of the table as it is."
            )
        return _least(kernel, epsilon, delta, graph, shape, inputs, tolerance)
    given, table = given_table(kernel, inputs), _integers_of(kernel)
    if table is not None and _is_default(graph):
        graph = _own_edges(table, given.inputs)
    given.require_order(graph)
    if shape is None and isinstance(graph, str) and graph in SHAPED:
        shape = given.axes
    own: Any = read_constraints(constraints) if isinstance(constraints, str | Path) else constraints
    blocks = own if isinstance(own, Sequence) else ()
    if any(type(row).__module__.startswith("cvxpy.constraints") for row in blocks):
        own = _of_constraints(kernel, own)
    asked = graph, shape, own, tolerance, given.inputs, given.outputs
    made_private = nearest(NearestKernel(given.table, epsilon, delta, *asked))
    if isinstance(kernel, Design) and isinstance(kernel.setting, Kernel):
        weights = made_private.table.weights
        if isinstance(kernel.setting.domain, Graph):
            again = Table(kernel.setting.domain, weights, made_private.table.total)
            return replace(made_private, details={"loss": kernel.setting.value(again)})
    return made_private


def _least(
    kernel: object,
    epsilon: float | None,
    delta: float | None,
    graph: GraphLike,
    shape: Sequence[int] | None,
    inputs: Names | None,
    tolerance: float,
) -> Least:
    if epsilon is None and delta is None:
        raise ParameterError("epsilon and delta are both None; give one, for the least other one.")
    if _is_default(graph):
        # Its own neighbours, along which its integers are judged as its kind judges them.
        if isinstance(kernel, Design):
            return _least_of_design(kernel, epsilon, delta)
        if isinstance(kernel, Table):
            return least_of_table(kernel, epsilon, delta)
    table, given = _integers_of(kernel), given_table(kernel, inputs)
    given.require_order(graph)
    if shape is None and isinstance(graph, str) and graph in SHAPED:
        shape = given.axes
    values = given.table if table is not None else pmf_table(given.table, tolerance)
    # Of a kernel of this size: the neighbours, checked as those of any other.
    names = given.inputs, given.outputs
    uniform = np.full(values.shape, 1.0 / values.shape[1])
    along = NearestKernel(uniform, 0.0, 0.0, graph, shape, None, 1.0, *names).domain
    if table is not None:
        rows = table.inputs.table().ravel().tolist()
        written = Table(along, tuple(table.weights[v] for v in rows), table.total)
        return least_of_table(written, epsilon, delta)
    written = integers_of(values, along)
    least = least_of_table(written, epsilon, delta)
    return replace(least, moved=float_up(moved(values, written)))


def _least_of_design(design: Design, epsilon: float | None, delta: float | None) -> Least:
    """Return what a design's integers spend: at most what was proved of them."""
    least = design.setting.spent(design.table, epsilon, delta)
    if design.certificate is None:
        return least
    proved = design.certificate.guarantee
    if epsilon is None and proved.delta <= least.given:
        return replace(least, upper=min(least.upper, proved.epsilon))
    if epsilon is not None and proved.epsilon <= epsilon:
        return replace(least, upper=min(least.upper, proved.delta))
    return least


def _integers_of(kernel: object) -> Table | None:
    """Return the integers of a design or a table; None of what is neither.

    Raises:
        ParameterError: if a design's integers are no table over numbered inputs.
    """
    table = kernel.table if isinstance(kernel, Design) else kernel
    if isinstance(table, Table) and isinstance(table.inputs, Graph | Generated | Words):
        return table
    if isinstance(kernel, Design):
        raise ParameterError(
            f"kernel is a design of kind {kernel.setting.kind!r}, which is no table; its least "
            "epsilon is found among its own neighbours: give no graph, and not both epsilon and "
            "delta."
        )
    return None


def _own_edges(table: Table, names: tuple[Name, ...] | None) -> GraphLike:
    """Return the neighbours of a table as edges between names; "complete" if all are."""
    pairs = getattr(table.inputs, "pairs", None)
    if pairs is None:
        return "complete"
    known = names or range(table.inputs.inputs)
    return [[known[x], known[other]] for x, other in pairs.tolist() if x < other]


def _is_default(graph: object) -> bool:
    return isinstance(graph, str) and graph == "complete"


def _of_kind(point: object, setting: object, asked: tuple[object, ...]) -> Design:
    """Return the design of a kind at a given point.

    Raises:
        ParameterError: if the setting is none, or the point is not one of its kind.
    """
    if not isinstance(setting, Setting):
        raise ParameterError(
            f"setting is {_checks.shown(setting)}; it must be an object of a Setting."
        )
    defaults = {"epsilon": None, "delta": 0.0, "graph": "complete", "shape": None, "inputs": None}
    defaults |= {"constraints": None, "tolerance": TOLERANCE}
    for (name, default), value in zip(defaults.items(), asked, strict=True):
        same = value is default or (type(value) is type(default) and value == default)
        if not same:
            raise ParameterError(
                f"{name} is given and so is setting, which has its own; leave {name} out."
            )
    values = _valued(point)
    if isinstance(values, Mapping):
        given = _of_columns(values)
        given = given.in_order(setting.names[0] if isinstance(setting, NearestKernel) else None)
        if not given.ordered:
            raise ParameterError(
                f"point has the inputs {listed(given.inputs or ())}, whose order is not known: "
                "give an array, its rows in the order of the setting."
            )
        values = given.table
    values = _checks.floats("point", values)
    if not np.all(np.isfinite(values)):
        raise ParameterError("point holds a value that is not finite.")
    if isinstance(setting, Kernel | NearestKernel) and values.ndim > 1:
        values = pmf_table(values, TOLERANCE)
    try:
        # What is no point of the kind may be divided by 0; the judge sees what comes of it.
        with np.errstate(all="ignore"):
            table = setting.table(setting.as_point(values))
        # Nothing says how good a point is that was not optimised here.
        return made(setting, table, float_bound=None)
    except ParameterError:
        raise
    except _MALFORMED:
        raise ParameterError(
            f"point has shape {values.shape}, which is not that of kind {setting.kind!r}."
        ) from None


class Given(NamedTuple):
    """A table as it was given.

    Attributes:
        table: shape (inputs, outputs).
        axes: those that were flattened to the first one.
        inputs: names of the inputs; None if they are 0, 1, ...
        outputs: names of the outputs, likewise.
        ordered: whether the order of the inputs is known, not that of the lines of a file.
    """

    table: npt.NDArray[Any]
    axes: tuple[int, ...]
    inputs: tuple[Name, ...] | None
    outputs: tuple[Name, ...] | None
    ordered: bool = True

    def require_order(self, graph: GraphLike) -> None:
        """Refuse a graph that goes by the order of inputs, where nobody said it.

        Raises:
            ParameterError: if it is such.
        """
        by_order = isinstance(graph, str) and graph in GRAPHS and not _is_default(graph)
        if by_order and not self.ordered:
            raise ParameterError(
                f"graph is {_checks.shown(graph)} and inputs have the names "
                f"{listed(self.inputs or ())}, whose order is not known: say it with inputs=, or "
                "give edges between names."
            )

    def in_order(self, order: Names | None) -> Given:
        """Return the table with its inputs in the order of their names, or with these names.

        Raises:
            ParameterError: if they are not the table's names, or not as many as it has inputs.
        """
        if order is None:
            return self
        size = len(self.table)
        wanted = checked_names("inputs", order, size) or tuple(range(size))
        if self.inputs is None:
            return self._replace(inputs=None if wanted == tuple(range(size)) else wanted)
        if {*map(str, wanted)} != {*map(str, self.inputs)}:
            raise ParameterError(
                f"inputs is {_checks.shown(order)}; it must be the names {listed(self.inputs)} in "
                "their order."
            )
        rows = [place("inputs", self.inputs, name) for name in wanted]
        return self._replace(table=self.table[rows], inputs=wanted, ordered=True)


def given_table(kernel: object, order: Names | None = None) -> Given:
    """Return a table with two axes, its names, and the axes that were flattened.

    Raises:
        ParameterError: if it is none.
    """
    setting = kernel.setting if isinstance(kernel, Design) else None
    values = _valued(kernel)
    if isinstance(values, Mapping):
        given = _of_columns(values)
    else:
        array = _checks.floats("kernel", values)
        if array.ndim < 2 or array.size == 0:
            raise ParameterError(f"kernel has shape {array.shape}; {_FIT}.")
        given = Given(array.reshape(-1, array.shape[-1]), array.shape[:-1], None, None)
        if isinstance(setting, NearestKernel):
            # Along edges, or between all, nobody had to say the order.
            by_order = isinstance(setting.graph, str) and not _is_default(setting.graph)
            names = setting.names
            known = by_order or names[0] is None or _are_numbers(names[0])
            given = given._replace(inputs=names[0], outputs=names[1], ordered=known)
    if given.table.size == 0:
        raise ParameterError(f"kernel has shape {given.table.shape}; {_FIT}.")
    return given.in_order(order)


def _valued(given: object) -> object:
    """Return an array, nested lists or columns by name, of whatever holds them.

    Raises:
        ParameterError: if it is a variable without a value, or a file that cannot be read.
    """
    library = type(given).__module__.split(".")[0]
    value: Any = given
    if isinstance(given, str | Path):
        return read_table(Path(given))
    if isinstance(given, Design):
        given = value = given.table
    if isinstance(given, Table):
        return given.matrix()
    if library == "cvxpy":
        value = getattr(given, "value", None)
        if value is None:
            raise ParameterError("kernel is of cvxpy and has no value; solve its problem first.")
    elif library == "linopy":
        try:
            value = value.solution
        except AttributeError:
            raise ParameterError(
                "kernel is of linopy and has no solution; solve its model first."
            ) from None
    elif library in ("pandas", "polars") and hasattr(given, "columns"):
        columns = {str(name): value[name].to_list() for name in value.columns}
        index = value.index.to_list() if library == "pandas" else []
        # The index of a wide table holds the inputs' names, if it holds any.
        named = "input" not in columns and index and all(isinstance(name, str) for name in index)
        return {"input": index, **columns} if named else columns
    elif library == "torch":
        value = value.detach().cpu().numpy()
    if hasattr(value, "toarray"):
        return value.toarray()
    if library in ("linopy", "xarray"):
        return np.asarray(value)
    return value


def _of_constraints(kernel: Any, constraints: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Return constraints of cvxpy over the kernel as rows: their labels, or places, are the names.

    Raises:
        ParameterError: if one is no equality or inequality that is affine in the kernel alone.
    """
    import cvxpy as cp
    from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
    from cvxpy.constraints.zero import Equality, Zero

    if not isinstance(kernel, cp.Variable) or kernel.ndim != 2 or kernel.value is None:
        raise ParameterError(
            "constraints are those of cvxpy; kernel must then be a variable of cvxpy with two axes "
            "and a value."
        )
    equalities = (Equality, Zero)
    inequalities = (Inequality, NonPos, NonNeg)
    # cvxpy flattens in Fortran order.
    order = np.arange(kernel.size).reshape(kernel.shape, order="F").ravel()
    kept, blocks = kernel.value, []
    for at, row in enumerate(constraints):
        known = isinstance(row, (*equalities, *inequalities)) and row.args
        side: Any = (
            row.args[0] - row.args[1] if known and len(row.args) == 2 else known and row.args[0]
        )
        if not known or not side.is_affine() or [v.id for v in side.variables()] != [kernel.id]:
            raise ParameterError(
                f"constraints hold {_checks.shown(row)} at place {at}; it must be an equality or "
                "inequality of cvxpy that is affine in the kernel alone."
            )
        matrix = sp.csr_array(side.grad[kernel].T)[:, order]
        try:
            # What the constraint says of a kernel of zeros is its right side.
            kernel.save_value(np.zeros(kernel.shape))
            limits = -np.asarray(side.value, dtype=float).ravel(order="F")
        finally:
            kernel.save_value(kept)
        negative = isinstance(row, NonNeg)
        lower = limits if negative or isinstance(row, equalities) else None
        upper = None if negative else limits
        blocks.append((getattr(row, "label", None) or f"rows {at}", matrix, lower, upper))
    return blocks


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Given:
    """Return the table of named columns: long if they are input, output and probability, or loss.

    Raises:
        ParameterError: if a pair of input and output is missing or stands there twice.
    """
    entry = next((name for name in LONG_ENTRIES if {"input", "output", name} <= set(columns)), None)
    if entry is None:
        return _of_wide(columns)
    inputs, outputs = (_places(name, columns[name]) for name in ("input", "output"))
    table = np.full((len(inputs), len(outputs)), np.nan)
    entries = _numbers(entry, columns[entry])
    for x, y, number in zip(columns["input"], columns["output"], entries, strict=True):
        at = inputs[plain_name("input", x)], outputs[plain_name("output", y)]
        if not np.isnan(table[at]):
            raise ParameterError(
                f"kernel holds input {_checks.shown(x)} with output {_checks.shown(y)} twice."
            )
        table[at] = number
    if np.isnan(table).any():
        x, y = np.argwhere(np.isnan(table))[0].tolist()
        raise ParameterError(
            f"kernel has no {entry} for input {_checks.shown(list(inputs)[x])} and output "
            f"{_checks.shown(list(outputs)[y])}; write 0 if it is impossible."
        )
    return _with_names(table, inputs, tuple(outputs), ordered=_are_numbers(columns["input"]))


def _of_wide(columns: Mapping[str, Sequence[Any]]) -> Given:
    """Return the table of a column for each output, and perhaps one of the inputs' names."""
    named = columns["input"] if len(columns) > 1 and next(iter(columns)) == "input" else None
    outputs = [name for name in columns if named is None or name != "input"]
    wide = [_numbers(name, columns[name]) for name in outputs]
    if not wide:
        raise ParameterError("kernel has no columns; it must have one for each output.")
    if len({column.size for column in wide}) > 1:
        raise ParameterError("kernel has columns of different lengths; they must be equal.")
    table = np.stack(wide, axis=1)
    whole = all(name.isascii() and name.isdigit() for name in outputs)
    heads = tuple(int(name) if whole else name for name in outputs)
    if named is None:
        return _with_names(table, None, heads, ordered=True)
    inputs = _places("input", named)
    if len(inputs) < len(named):
        raise ParameterError("kernel has an input with two rows; each must have one.")
    lines = np.argsort([inputs[plain_name("input", name)] for name in named], kind="stable")
    return _with_names(table[lines], inputs, heads, ordered=_are_numbers(named))


def _with_names(
    table: Matrix, inputs: Mapping[Name, int] | None, outputs: Sequence[Name], *, ordered: bool
) -> Given:
    """Return a table with its names, those of the outputs unless they are 0, 1, ..."""
    heads = checked_names("outputs", outputs, len(outputs))
    names = None if inputs is None else tuple(inputs)
    return Given(table, table.shape[:-1], names, heads, ordered)


def _places(what: str, values: Sequence[Any]) -> dict[Name, int]:
    """Return the place of each name: numbers in their order, other names as they come."""
    names = dict.fromkeys(sorted(values) if _are_numbers(values) else values)
    plain = dict.fromkeys(plain_name(what, value) for value in names)
    return {name: at for at, name in enumerate(plain)}


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float | np.number) for value in values)


def _numbers(name: str, values: Sequence[Any]) -> Matrix:
    try:
        numbers = _checks.floats(name, values)
    except ParameterError:
        numbers = np.empty(())
    if numbers.ndim != 1:
        raise ParameterError(
            f"kernel has a column {_checks.shown(name)} that is no list of numbers."
        )
    return numbers
