"""The linear program of the optimal kernel, in three equivalent forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, MatrixLike, SparseMatrix, Vector
from dpopt.lp import Rows, Solution, make_rows
from dpopt.lp.model import as_matrix
from dpopt.privacy import (
    Problem,
    column_minimum_rows,
    hockey_stick_rows,
    ratio_rows,
    stochastic_rows,
)
from dpopt.privacy.graph import all_pairs
from dpopt.privacy.rows import MOST_ROWS

if TYPE_CHECKING:
    from dpopt.kernel.setting import KernelSetting

OWN_BLOCKS = ("sums", "privacy", "delta", "losses", "invariance")
"""Names of the blocks that a kernel program has of itself."""

_LEAST_UNIT = 2.0**-12


def program(setting: KernelSetting) -> Problem:
    """Return the program that `KernelSetting` displays, with the user's rows if there are any."""
    least = setting.inputs * setting.outputs
    if setting.graph_name != "edges" and least > MOST_ROWS:
        # Every input of it has a neighbour: such a graph is not written out to be refused.
        raise _too_many(setting.formulation, f"at least {least}")
    form = form_of(setting)
    _require_size(setting, form)
    problem = Problem("optimal kernel")
    _add_kernel(problem, setting, form)
    _add_privacy(problem, setting, form)
    _add_objective(problem, setting)
    if setting.invariances is not None:
        # A K = B, entry (i, y): sum_x A_ix K[x, y], and K[x, y] stands at place x * outputs + y.
        left, right = setting.invariances
        matrix = sp.kron(sp.csr_array(left), sp.eye_array(setting.outputs), format="csr")
        limits = right.ravel()
        problem.add_rows("invariance", over_kernel(problem, matrix), lower=limits, upper=limits)
    for own in setting.blocks:
        rows = own.rows(setting.inputs, setting.outputs)
        sides = over_kernel(problem, rows.matrix)
        problem.add_rows(own.name, sides, lower=rows.lower, upper=rows.upper)
    return problem


def form_of(setting: KernelSetting) -> str:
    """Return the form that the program is written in: "auto" decided.

    Raises:
        ParameterError: if the form does not fit.
    """
    form = setting.formulation
    compact = setting.pairs is None and setting.delta == 0
    if form == "auto":
        form = "shifted" if compact else "edges"
    if form != "edges" and not compact:
        raise ParameterError(
            f"formulation is {form!r} with graph {setting.graph_name!r} and "
            f"delta {setting.delta:g}; it needs graph 'complete' and delta 0, else take 'edges'."
        )
    return form


def _require_size(setting: KernelSetting, form: str) -> None:
    edges = setting.inputs * (setting.inputs - 1) if setting.pairs is None else len(setting.pairs)
    count = setting.outputs * (edges if form == "edges" else setting.inputs)
    if count > MOST_ROWS:
        raise _too_many(form, str(count))


def _too_many(form: str, count: str) -> ParameterError:
    return ParameterError(
        f"formulation is {form!r} with {count} privacy rows; at most {MOST_ROWS} are "
        "taken: use fewer outputs, or a graph with fewer edges."
    )


def form_written(problem: Problem) -> str:
    """Return the form that a kernel program was written in."""
    if "kernel" not in problem.variables:
        return "shifted"
    return "columns" if "ceiling" in problem.variables else "edges"


def _add_kernel(problem: Problem, setting: KernelSetting, form: str) -> None:
    inputs, outputs = setting.inputs, setting.outputs
    sums = stochastic_rows(inputs, outputs)
    if form == "shifted":
        shrink = math.exp(-setting.epsilon)
        problem.add_variables("ceiling", outputs, lower=0.0, upper=1.0)
        problem.add_variables("excess", inputs * outputs, lower=0.0, upper=1.0)
        sides = {"ceiling": np.full((inputs, outputs), shrink), "excess": sums.matrix}
    else:
        problem.add_variables("kernel", inputs * outputs, lower=0.0, upper=1.0)
        sides = {"kernel": sums.matrix}
    problem.add_rows("sums", sides, lower=1.0, upper=1.0)


def _add_privacy(problem: Problem, setting: KernelSetting, form: str) -> None:
    """Add the privacy rows; divided by e^epsilon, their size stays in range for large epsilon."""
    inputs, outputs, epsilon = setting.inputs, setting.outputs, setting.epsilon
    shrink = math.exp(-epsilon)
    if form == "shifted":
        # Row (x, y): V[x, y] <= (1 - e^-epsilon) w[y]; the lift repeats w for every x.
        lift = sp.kron(np.ones((inputs, 1)), sp.eye_array(outputs), format="csr")
        above = sp.eye_array(inputs * outputs, format="csr")
        sides = {"ceiling": math.expm1(-epsilon) * lift, "excess": above}
        problem.add_rows("privacy", sides, upper=0.0)
    elif form == "columns":
        problem.add_variables("ceiling", outputs, lower=0.0, upper=1.0)
        rows = column_minimum_rows(inputs, outputs, epsilon)
        # The rows are over K and the least entry u of a column; here u = e^-epsilon w.
        units = sp.diags_array(np.repeat([1.0, shrink], [inputs * outputs, outputs]))
        problem.add_rows("privacy", make_rows(rows.matrix @ units, upper=0.0))
    elif setting.delta == 0:
        pairs = all_pairs(setting.pairs, inputs)
        rows = ratio_rows(pairs, inputs, outputs, epsilon)
        problem.add_rows("privacy", make_rows(shrink * rows.matrix, upper=0.0))
    else:
        pairs = all_pairs(setting.pairs, inputs)
        count = len(pairs) * outputs
        problem.add_variables("excess_mass", count, lower=0.0, upper=1.0)
        # First one row for each pair and output, then the sum over outputs for each pair.
        rows = hockey_stick_rows(pairs, inputs, outputs, epsilon, setting.delta)
        single = np.arange(rows.count) < count
        excess: Rows = rows.take(single)
        problem.add_rows("privacy", make_rows(shrink * excess.matrix, upper=0.0))
        problem.add_rows("delta", rows.take(~single))


def _add_objective(problem: Problem, setting: KernelSetting) -> None:
    """Minimise (maximise) the mean loss, or a variable "worst" that bounds every input's."""
    loss, prior = setting.losses, setting.weights
    minimising = setting.sense == "minimise"
    optimise = problem.minimise if minimising else problem.maximise
    if prior is not None:
        cost = over_kernel(problem, (prior[:, None] * loss).reshape(1, -1))
        optimise({name: _dense(part) for name, part in cost.items()})
        return
    # Rows of K sum to 1: what most losses of an input are may go to the other side.
    common = _common(loss)
    rest = loss - common[:, None]
    unit = _unit(rest)
    rest, low, high = rest / unit, float(loss.min()) / unit, float(loss.max()) / unit
    # Row x holds loss[x, y] at the places x * outputs + y of the flattened kernel.
    x, y = np.nonzero(rest)
    by_input = sp.csr_array(
        (rest[x, y], (x, x * setting.outputs + y)), shape=(setting.inputs, loss.size)
    )
    sides = dict(over_kernel(problem, by_input))
    problem.add_variables("worst", 1, lower=low, upper=high)
    sides["worst"] = sp.csr_array(-np.ones((setting.inputs, 1)))
    limits: Any = {"upper" if minimising else "lower": -common / unit}
    problem.add_rows("losses", sides, **limits)
    optimise({"worst": unit})


def _common(loss: Matrix) -> Vector:
    """Return the loss of more than half of the outputs, for each input; 0 where there is none."""
    middle = np.median(loss, axis=1)
    most = np.count_nonzero(loss == middle[:, None], axis=1) > loss.shape[1] / 2
    return np.where(most, middle, 0.0)


def _unit(losses: Matrix) -> float:
    """Return a small loss that many inputs have: a solver's tolerance is a share of it.

    In units of the largest one, 3,481 on a path of 60 with squared losses, it would be 1e-7.
    """
    sizes = np.abs(losses)
    least = np.min(sizes, axis=1, where=sizes > 0, initial=np.inf)
    largest = float(sizes.max()) or 1.0
    return float(np.clip(np.median(least), largest * _LEAST_UNIT, largest))


def _dense(row: SparseMatrix) -> Vector:
    return np.asarray(row.toarray(), dtype=np.float64).ravel()


def over_kernel(problem: Problem, matrix: MatrixLike) -> Mapping[str, SparseMatrix]:
    """Return a matrix over the flattened kernel as one over the program's own variables.

    Args:
        problem: a kernel program.
        matrix: shape (rows, inputs * outputs), K[x, y] at place x * outputs + y.

    Returns:
        What `Problem.add_rows` takes: ``problem.add_rows("mine", over_kernel(problem, a), ...)``.

    Raises:
        ParameterError: if the problem is no kernel program, or the matrix does not fit.
    """
    _checks.instance("problem", problem, Problem)
    inputs, outputs = kernel_shape(problem)
    given: Any = as_matrix(matrix)
    if given.shape[1] != inputs * outputs:
        raise ParameterError(
            f"matrix has {given.shape[1]} columns; it must have {inputs * outputs}, "
            f"{inputs} inputs times {outputs} outputs."
        )
    over = sp.csr_array(given, dtype=np.float64)
    if "kernel" in problem.variables:
        return {"kernel": over}
    # K = e^-epsilon 1 w^T + V: over w, the columns of one output are summed over the inputs.
    lift = sp.kron(np.ones((inputs, 1)), sp.eye_array(outputs), format="csr")
    return {"ceiling": sp.csr_array(_shrink(problem) * (over @ lift)), "excess": over}


def _shrink(problem: Problem) -> float:
    """Return e^-epsilon of a program in the shifted form: what its ceilings have in the sums."""
    sums = problem.blocks["sums"].matrix
    return float(sums[0, problem.variables["ceiling"].start])


def kernel_of(problem: Problem, solution: Solution) -> Matrix:
    """Return the kernel of a solution as the solver left it, shape (inputs, outputs).

    It is private up to the solver's tolerance only: see `design_of` for the certified one.

    Raises:
        ParameterError: if the problem is no kernel program, or the solution is not its own.
    """
    _checks.instance("solution", solution, Solution)
    shape = kernel_shape(problem)
    sizes = {name: part.stop - part.start for name, part in problem.variables.items()}
    if sizes != {name: values.size for name, values in solution.values.items()}:
        raise ParameterError("solution has other variables than problem; it must be of this one.")
    return matrix_of(solution, shape[1], 0.0 if "kernel" in sizes else _shrink(problem))


def matrix_of(solution: Solution, outputs: int, shrink: float) -> Matrix:
    """Return the kernel of a solution, shape (inputs, outputs); ``shrink`` is e^-epsilon."""
    if "kernel" in solution.values:
        return solution["kernel"].reshape(-1, outputs)
    # An excess stays below its ceiling: by the solver's tolerance it may be outside.
    ceiling, excess = solution["ceiling"], solution["excess"].reshape(-1, outputs)
    return shrink * ceiling + np.clip(excess, 0.0, (1.0 - shrink) * ceiling)


def kernel_shape(problem: Problem) -> tuple[int, int]:
    """Return (inputs, outputs) of a kernel program.

    Raises:
        ParameterError: if the problem is none.
    """
    _checks.instance("problem", problem, Problem)
    part = problem.variables.get("kernel", problem.variables.get("excess"))
    if part is None or "sums" not in problem.blocks:
        raise ParameterError(
            f"problem is {problem.name!r}, no kernel program; it must come from a KernelSetting."
        )
    inputs = problem.blocks["sums"].count
    return inputs, (part.stop - part.start) // inputs
