"""Certify a table of probabilities from any source: repair it, prove its privacy, release from it.

Without an epsilon, `certify` reports the privacy cost: the least epsilon of a table or a design.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import MALFORMED, NotPrivateError, ParameterError
from dpopt._numbers import digits, float_up
from dpopt._types import Matrix, Vector, frozen
from dpopt.files import read_table
from dpopt.kernel.constraints import (
    Name,
    Names,
    checked_names,
    edges_by_name,
    listed,
    plain_name,
    positions,
    read_constraints,
)
from dpopt.kernel.setting import GraphLike, Kernel, checked_table
from dpopt.lp import solve
from dpopt.privacy import Least
from dpopt.privacy.graph import GRAPHS
from dpopt.privacy.guarantee import in_short
from dpopt.shape import Design, Setting, made
from dpopt.table import Inputs, Table, over_masses, probabilities_of, rounded
from dpopt.table.least import least_of_table

TOLERANCE = 1e-3
"""Default of the largest total variation by which repair may move a row."""

# Said of what is no table.
_FIT = (
    "it must be a table (inputs, outputs), a frame or a file of one, or a solved variable of "
    "cvxpy or linopy"
)


class _Options(TypedDict, total=False):
    """Arguments of `certify` about the inputs, and about how far rows may be moved."""

    graph: GraphLike
    shape: Sequence[int] | None
    inputs: Names | None
    constraints: object
    tolerance: float


@overload
def certify(
    kernel: object, epsilon: float, delta: float = ..., **options: Unpack[_Options]
) -> Design: ...


@overload
def certify(
    kernel: object, epsilon: None = ..., delta: float = ..., **options: Unpack[_Options]
) -> Least: ...


@overload
def certify(kernel: object, epsilon: float, delta: None, **options: Unpack[_Options]) -> Least: ...


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
    """Return a proved mechanism made from a table of probabilities, or the table's least epsilon.

    A table K holds Pr[output y | input x] at K[x, y]. A solver satisfies the rows of its program,
    privacy among them, only up to a tolerance. Given an epsilon, `certify` mixes the table with a
    strictly private one, with the least share at which the mixture, rounded to integer weights,
    satisfies every constraint, and proves these weights private in exact arithmetic; releases are
    drawn from them. The design's ``moved`` is the largest total variation between an input's
    distribution in the table and in the design. For a table far from private the result
    need not be the nearest private one: write the distance as the objective of a `dpopt.Problem`,
    and certify that.

    - ``certify(kernel, 1.0, graph="path")`` makes a mechanism, the design of a `dpopt.Kernel`
      without a loss.
    - ``certify(kernel, graph="path")`` moves nothing: it returns the least epsilon for which the
      table is private, a `dpopt.privacy.Least`; with an epsilon and ``delta=None``, the least
      delta.
    - ``certify(gamma, setting=Majority(...))`` turns a solver's answer for another mechanism (gamma
      for a majority, q_m for a sampler, ...) into a design of that mechanism.
    - ``certify(design)`` returns the least epsilon that the integers of a design satisfy; of a
      published rule it may be above the promised one. The least epsilon at delta = 0 is
      available for all mechanisms but mollifiers; at a delta above 0 for kernels, noise, and
      majorities with up to 4,000,000 privacy rows; the least delta for kernels and noise.

    Args:
        kernel: shape (inputs, outputs). A nested list, an array of any library, a pandas or polars
            frame (a row for each input; or the columns input, output and probability), a file of
            one (.csv, .tsv), a solved variable or expression of cvxpy or
            linopy. To ask for the least epsilon or delta, also a design or its table: its integers
            and its own neighbours are used.
        epsilon: in [0, 600], in nats; None asks for the least one.
        delta: in [0, 1); None asks for the least one.
        graph: neighbouring inputs: "complete", "path", "cycle", "grid", "hamming", or undirected
            edges, shape (edges, 2), between names where inputs have names.
        shape: number of symbols at each position of a word, for "grid" and "hamming".
        inputs: names of the inputs in the order of the graph (for "path", neighbours stand next to
            each other); the rows are sorted into it. Required if ``graph`` is a name and the rows
            of a frame or file have names that are not numbers.
            Inputs and outputs with names other than 0, 1, ... are shown and released by name.
        constraints: linear constraints of yours on K, which repair keeps too: tuples (name, matrix,
            lower, upper), K[x, y] at column x * outputs + y, inputs counted in their order; a JSON
            file of them, see `dpopt.kernel.read_constraints`; or, if ``kernel`` is a cvxpy
            variable, cvxpy constraints that are affine in it alone. An inequality that some
            private kernel satisfies strictly is satisfied exactly; others, and equalities, up to
            the design's ``residuals``, about 1e-15, at most 1e-6 of a row's largest coefficient.
        tolerance: most total variation that a row may be moved by, in (0, 1].
        setting: parameters of the mechanism that ``kernel`` was solved for, such as a
            `dpopt.majority.Majority`; it brings its own epsilon and other parameters.

    Raises:
        ParameterError: if ``kernel`` is no table of probabilities, a parameter is out of range or
            does not go with the others, or the quantity is not available for this mechanism.
        InfeasibleError: if no private kernel satisfies the constraints; the message names these.
        NotPrivateError: if repair moves a row by more than the tolerance; it says by how much, and
            which epsilon the unrepaired table needs.

    Example:
        >>> import dpopt
        >>> table = [[0.7310587, 0.2689413], [0.2689413, 0.7310587]]
        >>> dpopt.certify(table)
        Least(epsilon=1.00001, delta=0, inputs=0 and 1, outputs=(0,))
        >>> design = dpopt.certify(table, epsilon=1.0)
        >>> design.private, design.moved < 1e-6
        (True, True)

        A noise function gamma from a solver, and the least epsilon that the majority satisfies:

        >>> import dpopt
        >>> voters = dpopt.Majority(3, epsilon=0.5, allowance=1.0)
        >>> majority = dpopt.certify([0.5, 0.5], setting=voters)
        >>> least = dpopt.certify(majority)
        >>> round(least.lower, 6) == round(least.upper, 6), least.upper <= 0.5
        (True, True)
    """
    if setting is not None:
        given = {"epsilon": epsilon, "delta": delta != 0 or None, "shape": shape, "inputs": inputs}
        given |= {"graph": None if _complete(graph) else graph, "constraints": constraints}
        given["tolerance"] = None if tolerance == TOLERANCE else tolerance
        for name in [name for name, value in given.items() if value is not None][:1]:
            raise ParameterError(
                f"{name} is given and so is setting, which has its own; leave {name} out."
            )
        return _design_of_values(kernel, setting)
    tolerance = _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    if isinstance(kernel, Design | Table):
        alone = inputs is None and shape is None and constraints is None
        if not (alone and _complete(graph)) or (epsilon is None) == (delta is None):
            raise ParameterError(
                f"kernel is {_checks.shown(kernel)}, of which certify returns the least epsilon or "
                "delta between its own neighbours; for more take its probabilities, such as "
                "design.kernel."
            )
        if isinstance(kernel, Design):
            return _least_of_design(kernel, epsilon, delta)
        return least_of_table(kernel, epsilon, delta)
    if epsilon is None and delta is None:
        raise ParameterError("epsilon and delta are both None; give one, for the least other one.")
    if constraints is not None and (epsilon is None or delta is None):
        raise ParameterError(
            "constraints are given without both epsilon and delta; the least of either "
            "is that of the table as it is."
        )
    named_table = given_table(kernel, inputs, graph)
    values = _pmf_table(named_table.table, tolerance)
    user_rows: Any = constraints
    if isinstance(constraints, str | Path):
        user_rows = read_constraints(constraints)
    blocks = user_rows if isinstance(user_rows, Sequence) else ()
    if any(type(row).__module__.startswith("cvxpy.constraints") for row in blocks):
        user_rows = _of_constraints(kernel, user_rows)
    # Any private kernel of the size and the names of the table.
    wanted = Kernel(
        np.zeros(values.shape),
        0.0 if epsilon is None else epsilon,
        0.0 if delta is None else delta,
        edges_by_name(graph, named_table.inputs),
        shape,
        constraints=user_rows,
        input_names=named_table.inputs,
        output_names=named_table.outputs,
    )
    if epsilon is None or delta is None:
        integers = _rational(values, wanted.domain)
        least = least_of_table(integers, epsilon, delta)
        return replace(least, moved=float_up(_moved(values, integers)))
    repaired = _near(wanted, values, tolerance)
    cost = float_up(_moved(values, repaired))
    return made(wanted, repaired, float_bound=None, _details={"moved": cost})


def _complete(graph: GraphLike) -> bool:
    return isinstance(graph, str) and graph == "complete"


def _keeping_rows(setting: Kernel, values: Matrix) -> Vector:
    """Return the private kernel that keeps the constraints and moves least probability in all."""
    problem, inputs, guarantee = setting.problem(), setting.domain, setting.guarantee
    every = sp.eye_array(values.size, format="csr")
    problem.add_variables("moved probability", values.size, lower=0.0, upper=2.0)
    sides = {**over_masses(problem, inputs, guarantee, every), "moved probability": -every}
    problem.add_rows("above the table", sides, upper=values.ravel())
    problem.minimise({"moved probability": np.ones(values.size)})
    return probabilities_of(inputs, guarantee, solve(problem))


def _near(setting: Kernel, values: Matrix, tolerance: float) -> Table:
    """Return a private table near the given one, which keeps the user's constraints."""
    repaired = setting.repaired(values.ravel())
    privacy = f"making the kernel {in_short(setting.guarantee)}"
    if any(rows.misses(repaired) > Fraction(1e-15) for rows in setting.blocks):
        # Mixing mends inequalities that have slack; equalities need another point to start from.
        repaired = setting.repaired(_keeping_rows(setting, values))
    for rows in setting.blocks:
        missed, size = rows.misses(repaired), float(np.abs(rows.coefficients).max(initial=1.0))
        if missed > Fraction(1e-6 * size):
            raise NotPrivateError(
                f"{privacy} violates constraints {rows.name!r} by {digits(float_up(missed))}, "
                "since no private kernel was found that satisfies all of them with slack; relax "
                "them.",
                excess=float_up(missed),
            )
    cost = _moved(values, repaired)
    if cost <= Fraction(tolerance):
        return repaired
    least = least_of_table(_rational(values, setting.domain), None, setting.delta)
    requirement = (
        f"as it stands it needs epsilon {digits(least.upper)}"
        if math.isfinite(least.upper)
        else "as it stands no epsilon is enough"
    )
    condition = " under its constraints" if setting.blocks else ""
    raise NotPrivateError(
        f"{privacy}{condition} moves a row by {digits(float_up(cost))} in total variation, above "
        f"tolerance {digits(tolerance)}; {requirement}.",
        inputs=(str(least.inputs[0]), str(least.inputs[1])),
        output=str(least.outputs[0]) if len(least.outputs) == 1 else None,
        excess=float_up(cost),
    )


def _least_of_design(design: Design, epsilon: float | None, delta: float | None) -> Least:
    """Return the least epsilon or delta of a design's integers, at most what was proved."""
    least = design.setting.spent(design.table, epsilon, delta)
    if design.certificate is None:
        return least
    proved = design.certificate.guarantee
    if epsilon is None and proved.delta <= least.given:
        return replace(least, upper=min(least.upper, proved.epsilon))
    if epsilon is not None and proved.epsilon <= epsilon:
        return replace(least, upper=min(least.upper, proved.delta))
    return least


def _rational(table: Matrix, inputs: Inputs) -> Table:
    """Return the table of integer weights in proportion to floats, each row divided by its sum."""
    values = np.maximum(table, 0.0)
    least = float(values[values > 0].min())
    return rounded(inputs, values.ravel(), 64 - math.frexp(least)[1])


def _moved(original: Matrix, table: Table) -> Fraction:
    """Return the largest change of the probability of an event, over all inputs, exactly."""
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


def _pmf_table(table: object, tolerance: float) -> Matrix:
    """Return a table of probabilities as a read-only array whose rows are nearly distributions."""
    array = checked_table("kernel", table)
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


def _design_of_values(point: object, setting: Setting) -> Design:
    """Return the design of a setting at the values of its variables that a solver found."""
    _checks.instance("setting", setting, Setting)
    values = _checks.floats("point", _plain_values(point))
    if not np.all(np.isfinite(values)):
        raise ParameterError("point holds a value that is not finite.")
    if isinstance(setting, Kernel) and values.ndim > 1:
        values = _pmf_table(values, TOLERANCE)
    try:
        # Values that do not fit may divide by 0; the verifier decides the resulting integers.
        with np.errstate(all="ignore"):
            table = setting.table(setting.as_point(values))
        # There is no bound on the optimum for values that were not optimised here.
        return made(setting, table, float_bound=None)
    except ParameterError:
        raise
    except MALFORMED:
        raise ParameterError(
            f"point has shape {values.shape}, which is not that of kind {setting.kind!r}."
        ) from None


class Given(NamedTuple):
    """A table of probabilities, shape (inputs, outputs), with its names if it has any."""

    table: npt.NDArray[Any]
    inputs: tuple[Name, ...] | None
    outputs: tuple[Name, ...] | None
    # Whether the inputs have a meaningful order, beyond that of a file's lines.
    ordered: bool = True

    def in_order(self, order: Names | None) -> Given:
        """Return the table with its rows sorted by ``order``; a table without names gets them."""
        if order is None:
            return self
        size = len(self.table)
        order_names = checked_names("inputs", order, size) or tuple(range(size))
        if self.inputs is None:
            return self._replace(inputs=None if order_names == tuple(range(size)) else order_names)
        if {*map(str, order_names)} != {*map(str, self.inputs)}:
            raise ParameterError(
                f"inputs is {_checks.shown(order)}; it must be the names {listed(self.inputs)} in "
                "their order."
            )
        rows = positions("inputs", self.inputs, order_names)
        return self._replace(table=self.table[rows], inputs=order_names, ordered=True)


def given_table(kernel: object, order: Names | None = None, graph: GraphLike = "complete") -> Given:
    """Return any table that `certify` accepts with its names, in the order that its graph needs."""
    values = _plain_values(kernel)
    if isinstance(values, Mapping):
        named_table = _of_columns(values)
    else:
        named_table = Given(_checks.floats("kernel", values), None, None)
    shape = named_table.table.shape
    if len(shape) != 2 or 0 in shape:
        raise ParameterError(f"kernel has shape {shape}; {_FIT}.")
    named_table = named_table.in_order(order)
    by_order = isinstance(graph, str) and graph in {*GRAPHS} - {"complete"}
    if by_order and not named_table.ordered:
        raise ParameterError(
            f"graph is {_checks.shown(graph)} and inputs have the names "
            f"{listed(named_table.inputs or ())}, whose order is not known: say it with inputs=, "
            "or give edges between names."
        )
    return named_table


def _plain_values(kernel: object) -> object:
    """Return the array, nested lists or named columns of a file, frame or variable."""
    library = type(kernel).__module__.split(".")[0]
    value: Any = kernel
    if isinstance(kernel, str | Path):
        return read_table(Path(kernel))
    solved = {"cvxpy": "value", "linopy": "solution"}.get(library)
    if solved is not None:
        value = getattr(kernel, solved, None)
        if value is None:
            raise ParameterError(f"kernel is of {library} and has no {solved}; solve it first.")
    elif library in ("pandas", "polars") and hasattr(kernel, "columns"):
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
    """Return cvxpy constraints on the kernel as tuples (name, matrix, lower, upper)."""
    import cvxpy as cp
    from cvxpy.constraints.nonpos import Inequality
    from cvxpy.constraints.zero import Equality

    if not isinstance(kernel, cp.Variable) or kernel.ndim != 2 or kernel.value is None:
        raise ParameterError(
            "constraints are those of cvxpy; kernel must then be a variable of cvxpy with two axes "
            "and a value."
        )
    # cvxpy flattens in Fortran order: column order[j] of its gradient is our column j.
    order = np.arange(kernel.size).reshape(kernel.shape, order="F").ravel()
    saved_value, blocks = kernel.value, []
    for index, row in enumerate(constraints):
        side: Any = isinstance(row, Equality | Inequality) and row.expr
        if not side or not side.is_affine() or [v.id for v in side.variables()] != [kernel.id]:
            raise ParameterError(
                f"constraints hold {_checks.shown(row)} at place {index}; it must be an equality "
                "or inequality of cvxpy that is affine in the kernel alone."
            )
        matrix = sp.csr_array(side.grad[kernel].T)[:, order]
        try:
            # The affine expression at K = 0 is minus the right side.
            kernel.save_value(np.zeros(kernel.shape))
            upper = -np.asarray(side.value, dtype=float).ravel(order="F")
        finally:
            kernel.save_value(saved_value)
        lower = upper if isinstance(row, Equality) else None
        blocks.append((getattr(row, "label", None) or f"rows {index}", matrix, lower, upper))
    return blocks


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Given:
    """Return the table of named columns: long if they are input, output, probability or loss."""
    named = {"input", "output"} <= set(columns)
    entry = next((name for name in ("probability", "loss") if named and name in columns), None)
    if entry is None:
        return _of_wide(columns)
    inputs, outputs = (_positions(name, columns[name]) for name in ("input", "output"))
    x = np.array([inputs[plain_name("input", name)] for name in columns["input"]])
    y = np.array([outputs[plain_name("output", name)] for name in columns["output"]])
    table, lines = np.zeros((2, len(inputs), len(outputs)))
    table[x, y] = _numbers(entry, columns[entry])
    np.add.at(lines, (x, y), 1)
    if np.any(lines != 1):
        i, j = np.argwhere(lines != 1)[0].tolist()
        raise ParameterError(
            f"kernel has {lines[i, j]:g} lines of input {_checks.shown(list(inputs)[i])} with "
            f"output {_checks.shown(list(outputs)[j])}; each pair has one: write 0 if it is "
            "impossible."
        )
    output_names = checked_names("outputs", tuple(outputs), len(outputs))
    return Given(table, tuple(inputs), output_names, _are_numbers(columns["input"]))


def _of_wide(columns: Mapping[str, Sequence[Any]]) -> Given:
    """Return the table with a column for each output, and perhaps a first one of input names."""
    named = columns["input"] if len(columns) > 1 and next(iter(columns)) == "input" else None
    outputs = [*columns][named is not None :]
    value_columns = [_numbers(name, columns[name]) for name in outputs]
    if len({column.size for column in value_columns}) != 1:
        raise ParameterError(
            f"kernel has {len(value_columns)} columns of numbers; it must have one for each "
            "output, all of the same length."
        )
    table = np.stack(value_columns, axis=1)
    numeric = all(name.isascii() and name.isdigit() for name in outputs)
    names = [int(name) if numeric else name for name in outputs]
    output_names = checked_names("outputs", names, len(names))
    if named is None:
        return Given(table, None, output_names)
    inputs = _positions("input", named)
    if len(inputs) < len(named):
        raise ParameterError("kernel has an input with two rows; each must have one.")
    # Line of the file for each input in the sorted order of names.
    lines = np.argsort([inputs[plain_name("input", name)] for name in named], kind="stable")
    return Given(table[lines], tuple(inputs), output_names, _are_numbers(named))


def _positions(what: str, values: Sequence[Any]) -> dict[Name, int]:
    """Return the index of each name: numbers ascending, other names in order of appearance."""
    names = dict.fromkeys(sorted(values) if _are_numbers(values) else values)
    plain = dict.fromkeys(plain_name(what, value) for value in names)
    return {name: index for index, name in enumerate(plain)}


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float | np.number) for value in values)


def _numbers(name: str, values: Sequence[Any]) -> Vector:
    numbers = _checks.floats(f"column {_checks.shown(name)} of kernel", values)
    if numbers.ndim != 1:
        raise ParameterError(f"kernel holds lists in column {_checks.shown(name)}.")
    return numbers
