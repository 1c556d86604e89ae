"""Any table of probabilities, whatever it was found with: made private, proved, released.

And what a mechanism spends: the least epsilon of a table, or of the integers of any design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_up
from dpopt._types import Matrix
from dpopt.design import A, Design, Question, Setting, made
from dpopt.files import read_table
from dpopt.kernel.nearest import TOLERANCE, NearestDesign, NearestKernel, law_table, nearest
from dpopt.kernel.own import read_own_rows
from dpopt.kernel.repair import integer_rows
from dpopt.kernel.setting import Graph, KernelSetting
from dpopt.privacy import ExactKernel, Least, least_delta, least_epsilon
from dpopt.privacy.graph import SHAPED
from dpopt.privacy.least import least_of_kernel
from dpopt.privacy.orbit import OrbitKernel

_LONG = ("input", "output", "probability")
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
    graph: Graph = ...,
    shape: Sequence[int] | None = ...,
    rows: object = ...,
    tolerance: float = ...,
) -> NearestDesign: ...


@overload
def certify(
    kernel: object,
    epsilon: None = ...,
    delta: float = ...,
    *,
    graph: Graph = ...,
    shape: Sequence[int] | None = ...,
    tolerance: float = ...,
) -> Least: ...


@overload
def certify(
    kernel: object,
    epsilon: float,
    delta: None,
    *,
    graph: Graph = ...,
    shape: Sequence[int] | None = ...,
    tolerance: float = ...,
) -> Least: ...


@overload
def certify(kernel: object, *, setting: Setting[A]) -> A: ...


def certify(
    kernel: object,
    epsilon: float | None = None,
    delta: float | None = 0.0,
    *,
    graph: Graph = "complete",
    shape: Sequence[int] | None = None,
    rows: object = None,
    tolerance: float = TOLERANCE,
    setting: Setting[Any] | None = None,
) -> Any:
    """Return a proved mechanism made from a table of probabilities; or the least epsilon of it.

    A table K holds Pr[output y | input x] at K[x, y]. A solver keeps the rows of its program, and
    so privacy, only up to a tolerance. With an epsilon, the table is moved to the nearest one that
    is private, which is rounded to integers and proved private in exact arithmetic; releases are
    drawn from these integers. ``value`` of what comes back is how far a row was moved, in total
    variation. See `dpopt.kernel.NearestKernel`.

    - ``certify(kernel, 1.0, graph="path")`` makes a mechanism, a `dpopt.kernel.NearestDesign`.
    - ``certify(kernel, graph="path")`` moves nothing: it returns the least epsilon for which the
      table is private, a `dpopt.privacy.Least`; with an epsilon and ``delta=None``, the least
      delta.
    - ``certify(gamma, setting=MajoritySetting(...))`` takes what a solver found for another kind of
      mechanism (gamma of a majority, q_m of a sampler, ...) and makes a design of that kind.
    - ``certify(design)`` returns the least epsilon that the integers of a design spend, which may
      be below what it promises; or above it, for a published rule that is not private. Known for
      every kind with delta = 0. A least delta, and a least epsilon for a delta above 0, are known
      for kernels that are written out or have a symmetry, and for majorities; other kinds refuse.
      Of a majority, up to 4,000,000 choices of its voters' corners are gone through.

    Args:
        kernel: shape (inputs, outputs), or with more axes, of which the last one is the output and
            the others, flattened in C order, the input. A nested list, an array of any library, a
            pandas or polars frame (a row for each input; or the columns input, output and
            probability), a file of one (.csv, .tsv, .npz, .npy, .parquet), a solved variable or
            expression of cvxpy or linopy; or a design of any kind, judged by its integers.
        epsilon: in [0, 600], in nats; None asks for the least one.
        delta: in [0, 1); None asks for the least one.
        graph: neighbouring inputs: "complete", "path", "cycle", "grid", "hamming", or undirected
            edges, shape (edges, 2). Of a design, its own neighbours unless others are named.
        shape: for "grid" and "hamming", the sizes of the places of a word; all axes of ``kernel``
            but the last one, if None.
        rows: linear constraints of your own on K, which repair keeps as well: tuples (name, matrix,
            lower, upper), K[x, y] at column x * outputs + y; a CSV file of them, see
            `dpopt.kernel.read_own_rows`; or, where ``kernel`` is a variable of cvxpy, constraints
            of cvxpy that are affine in it alone.
        tolerance: most total variation that a row may be moved by, in (0, 1].
        setting: parameters of the kind of mechanism that ``kernel`` was found for, such as a
            `dpopt.majority.MajoritySetting`; epsilon and the others are then its own.

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
        Least(epsilon=1, delta=0, inputs=0 and 1, outputs=(0,))
        >>> design = dpopt.certify(table, epsilon=1.0)
        >>> design.verdict, design.value < 1e-6
        ('private', True)

        A noise function gamma that a solver found, and the epsilon that the majority spends:

        >>> voters = dpopt.majority.MajoritySetting(3, epsilon=0.5, allowance=1.0)
        >>> majority = dpopt.certify([0.5, 0.5], setting=voters)
        >>> spent = dpopt.certify(majority)
        >>> round(spent.lower, 6) == round(spent.upper, 6), spent.upper <= 0.5
        (True, True)
    """
    if setting is not None:
        asked = (epsilon, delta, graph, shape, rows, tolerance)
        return _of_kind(kernel, setting, asked)
    tolerance = _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    if epsilon is None or delta is None:
        if rows is not None:
            raise ParameterError(
                "rows are given without both epsilon and delta; the least of either is that of the "
                "table as it is."
            )
        return _least(kernel, epsilon, delta, graph, shape, tolerance)
    if isinstance(kernel, Design):
        kernel = _integers_of(kernel)
    judged = isinstance(kernel, ExactKernel | OrbitKernel)
    if judged and kernel.pairs is not None and _is_default(graph):
        graph = np.asarray(kernel.pairs)
        graph = graph[graph[:, 0] < graph[:, 1]]
    table, axes = _table(kernel)
    if shape is None and isinstance(graph, str) and graph in SHAPED:
        shape = axes
    own: Any = read_own_rows(rows) if isinstance(rows, str | Path) else rows
    if isinstance(own, Sequence) and any(map(_is_constraint, own)):
        own = _of_constraints(kernel, own)
    return nearest(NearestKernel(table, epsilon, delta, graph, shape, own, tolerance))


def _least(
    kernel: object,
    epsilon: float | None,
    delta: float | None,
    graph: Graph,
    shape: Sequence[int] | None,
    tolerance: float,
) -> Least:
    if epsilon is None and delta is None:
        raise ParameterError("epsilon and delta are both None; give one, for the least other one.")
    if _is_default(graph):
        # Its own neighbours, along which its integers are judged as its kind judges them.
        if isinstance(kernel, Design):
            return _least_of_design(kernel, epsilon, delta)
        if isinstance(kernel, ExactKernel | OrbitKernel):
            return least_of_kernel(kernel, epsilon, delta)
    exact = _integers_of(kernel) if isinstance(kernel, Design) else kernel
    moved = 0.0
    if isinstance(exact, ExactKernel | OrbitKernel):
        axes = (exact.inputs,)
        weights = (
            exact.weights
            if isinstance(exact, ExactKernel)
            else [[exact.weights[o] for o in row] for row in exact.orbits.table().tolist()]
        )
    else:
        table, axes = _table(kernel)
        table = law_table(table, tolerance)
        weights = integer_rows(table)
        moved = float_up(max(map(_off, table.tolist(), weights)))
    if shape is None and isinstance(graph, str) and graph in SHAPED:
        shape = axes
    # Of a kernel of this size: the neighbours, checked as those of any other.
    size = np.zeros((len(weights), len(weights[0])))
    asked: Any = {"pairs": KernelSetting(size, 0.0, 0.0, graph, shape).pairs, "moved": moved}
    if epsilon is None:
        return least_epsilon(weights, cast(float, delta), **asked)
    return least_delta(weights, epsilon, **asked)


def _least_of_design(design: Design, epsilon: float | None, delta: float | None) -> Least:
    """Return what a design's integers spend: at most what was proved of them."""
    least = design.setting.spent(design.units, epsilon, delta)
    if design.certificate is None:
        return least
    proved = design.certificate.guarantee
    if epsilon is None and proved.delta <= least.given:
        return replace(least, upper=min(least.upper, proved.epsilon))
    if epsilon is not None and proved.epsilon <= epsilon:
        return replace(least, upper=min(least.upper, proved.delta))
    return least


def _integers_of(design: Design) -> ExactKernel | OrbitKernel:
    """Return the kernel of a design.

    Raises:
        ParameterError: if its integers are no table.
    """
    if not isinstance(design.units, ExactKernel | OrbitKernel):
        raise ParameterError(
            f"kernel is a design of kind {design.setting.kind!r}, which is no table; its least "
            "epsilon is found among its own neighbours: give no graph, and not both epsilon and "
            "delta."
        )
    return design.units


def _is_default(graph: object) -> bool:
    return isinstance(graph, str) and graph == "complete"


def _off(row: Sequence[float], weights: Sequence[int]) -> Fraction:
    """Return the larger of all that a row gains and loses by being divided by its sum."""
    total = sum(weights)
    away = [
        Fraction(weight, total) - Fraction(value)
        for weight, value in zip(weights, row, strict=True)
    ]
    gained = sum((part for part in away if part > 0), Fraction(0))
    return max(gained, gained - sum(away, Fraction(0)))


def _of_kind(point: object, setting: object, asked: tuple[object, ...]) -> Design:
    """Return the design of a kind at a given point.

    Raises:
        ParameterError: if the setting is none, or the point is not one of its kind.
    """
    if not isinstance(setting, Setting):
        why = ", a question, which releases nothing" if isinstance(setting, Question) else ""
        raise ParameterError(
            f"setting is {_checks.shown(setting)}{why}; it must be an object of a Setting."
        )
    names = ("epsilon", "delta", "graph", "shape", "rows", "tolerance")
    defaults = (None, 0.0, "complete", None, None, TOLERANCE)
    for name, value, default in zip(names, asked, defaults, strict=True):
        same = value is default or (type(value) is type(default) and value == default)
        if not same:
            raise ParameterError(
                f"{name} is given and so is setting, which has its own; leave {name} out."
            )
    listed = _valued(point)
    values = _checks.floats("point", _of_columns(listed) if isinstance(listed, Mapping) else listed)
    if not np.all(np.isfinite(values)):
        raise ParameterError("point holds a value that is not finite.")
    if isinstance(setting, KernelSetting | NearestKernel):
        values = law_table(values, TOLERANCE)
    try:
        # What is no point of the kind may be divided by 0; the judge sees what comes of it.
        with np.errstate(all="ignore"):
            units = setting.units(setting.as_point(values))
        # Nothing says how good a point is that was not optimised here.
        return made(setting, units, float_bound=None)
    except ParameterError:
        raise
    except _MALFORMED:
        raise ParameterError(
            f"point has shape {values.shape}, which is not that of kind {setting.kind!r}."
        ) from None


def _table(kernel: object) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """Return a table with two axes, and the axes that were flattened to its first one.

    Raises:
        ParameterError: if it is none.
    """
    values = _valued(kernel)
    if isinstance(values, Mapping):
        values = _of_columns(values)
    array = _checks.floats("kernel", values)
    if array.ndim < 2 or array.size == 0:
        raise ParameterError(f"kernel has shape {array.shape}; {_FIT}.")
    axes = array.shape[:-1]
    return array.reshape(-1, array.shape[-1]), axes


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
        given = value = given.units
    if isinstance(given, ExactKernel | OrbitKernel):
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
        return {str(name): _listed(value[name]) for name in value.columns}
    elif library == "torch":
        value = value.detach().cpu().numpy()
    if hasattr(value, "toarray"):
        return value.toarray()
    if library in ("linopy", "xarray"):
        return np.asarray(value)
    return value


def _is_constraint(row: object) -> bool:
    return type(row).__module__.startswith("cvxpy.constraints")


def _of_constraints(kernel: Any, constraints: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Return constraints of cvxpy over the kernel as rows: their labels, or places, are the names.

    Raises:
        ParameterError: if one is no equality or inequality that is affine in the kernel alone.
    """
    import cvxpy as cp
    import scipy.sparse as sp
    from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
    from cvxpy.constraints.zero import Equality, Zero

    if not isinstance(kernel, cp.Variable) or kernel.ndim != 2 or kernel.value is None:
        raise ParameterError(
            "rows hold constraints of cvxpy; kernel must then be a variable of cvxpy with two axes "
            "and a value."
        )
    equalities = (Equality, Zero)
    inequalities = (Inequality, NonPos, NonNeg)
    # cvxpy flattens in Fortran order.
    order = np.arange(kernel.size).reshape(kernel.shape, order="F").ravel()
    kept, blocks = kernel.value, []
    for place, row in enumerate(constraints):
        known = isinstance(row, (*equalities, *inequalities)) and row.args
        side: Any = (
            row.args[0] - row.args[1] if known and len(row.args) == 2 else known and row.args[0]
        )
        if not known or not side.is_affine() or [v.id for v in side.variables()] != [kernel.id]:
            raise ParameterError(
                f"rows hold {_checks.shown(row)} at place {place}; it must be an equality or "
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
        blocks.append((getattr(row, "label", None) or f"rows {place}", matrix, lower, upper))
    return blocks


def _listed(column: Any) -> list[Any]:  # noqa: ANN401
    return cast("list[Any]", column.to_list())


def _of_columns(columns: Mapping[str, Sequence[Any]]) -> Matrix:
    """Return the table of named columns: long if they are input, output and probability.

    Raises:
        ParameterError: if a pair of input and output is missing or stands there twice.
    """
    if not set(_LONG) <= set(columns):
        wide = [_numbers(name, values) for name, values in columns.items()]
        if not wide:
            raise ParameterError("kernel has no columns; it must have one for each output.")
        if len({column.size for column in wide}) > 1:
            raise ParameterError("kernel has columns of different lengths; they must be equal.")
        return np.stack(wide, axis=1)
    inputs, outputs = (_names(columns[name]) for name in _LONG[:2])
    table = np.full((len(inputs), len(outputs)), np.nan)
    probabilities = _numbers(_LONG[2], columns[_LONG[2]])
    for x, y, probability in zip(columns["input"], columns["output"], probabilities, strict=True):
        place = inputs[x], outputs[y]
        if not np.isnan(table[place]):
            raise ParameterError(
                f"kernel holds input {_checks.shown(x)} with output {_checks.shown(y)} twice."
            )
        table[place] = probability
    if np.isnan(table).any():
        x, y = np.argwhere(np.isnan(table))[0].tolist()
        raise ParameterError(
            f"kernel has no probability for input {_checks.shown(list(inputs)[x])} and output "
            f"{_checks.shown(list(outputs)[y])}; write 0 if it is impossible."
        )
    return table


def _names(values: Sequence[Any]) -> dict[Any, int]:
    """Return the place of each name: numbers in their order, other names as they come."""
    try:
        names = list(dict.fromkeys(values))
        if all(isinstance(name, int | float | np.number) for name in names):
            names.sort()
    except TypeError:
        raise ParameterError("kernel holds an input or output that is no name.") from None
    return {name: place for place, name in enumerate(names)}


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
