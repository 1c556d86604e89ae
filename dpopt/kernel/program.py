"""The linear program of the optimal kernel, in three equivalent forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import MatrixLike, SparseMatrix, Vector
from dpopt.kernel.graph import all_pairs
from dpopt.kernel.setting import KernelSetting
from dpopt.kernel.variables import over_kernel
from dpopt.lp import Problem, Rows, make_rows
from dpopt.privacy import column_minimum_rows, hockey_stick_rows, ratio_rows, stochastic_rows

FORMULATIONS = ("auto", "edges", "columns", "shifted")
OWN_BLOCKS = ("sums", "privacy", "delta", "losses", "invariance")
"""Names of the blocks that `kernel_problem` writes."""

ExtraRows = Sequence[tuple[str, MatrixLike, npt.ArrayLike | None, npt.ArrayLike | None]]
"""(name, matrix over the flattened kernel, lower limits, upper limits) for each block."""

_MOST_ROWS = 2_000_000


def kernel_problem(
    setting: KernelSetting,
    *,
    formulation: str = "auto",
    rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None = None,
) -> Problem:
    """Return the linear program of the best kernel of a setting.

    Three forms of the same constraints:

    - "edges": variables K; e^-epsilon K_xy <= K_x'y for each directed edge (x, x') and output y.
      With delta > 0: s_ey >= K_xy - e^epsilon K_x'y, sum_y s_ey <= delta, variables "excess_mass".
    - "columns": variables K and u; e^-epsilon K_xy <= u_y <= K_xy. Complete graph, delta = 0.
    - "shifted": K = 1 u^T + V, variables "base" u and "excess" V >= 0;
      e^-epsilon V_xy <= (1 - e^-epsilon) u_y. Complete graph, delta = 0; the fewest rows.

    "auto" is "shifted" where it applies and "edges" elsewhere. In "edges" and "columns" the
    flattened kernel is the variable group "kernel"; `over_kernel` writes rows over K for all
    three. Blocks: "sums", "privacy" (in the units above: rows divided by e^epsilon), "delta",
    "losses" (minimax; divided by the largest loss in size), "invariance", and the user's.

    Args:
        setting: see there.
        formulation: one of the above.
        rows: further rows over the flattened kernel, K[x, y] at place x * outputs + y: tuples
            (name, matrix, lower, upper), or a function that makes them from the setting.

    Raises:
        ParameterError: if the formulation does not fit the setting, the program would have more
            than 2,000,000 privacy rows, or rows have the wrong shape.
    """
    _checks.instance("setting", setting, KernelSetting)
    form = _form(formulation, setting)
    problem = Problem("optimal kernel")
    _add_kernel(problem, setting, form)
    _add_privacy(problem, setting, form)
    _add_objective(problem, setting)
    if setting.invariances is not None:
        left, right = setting.invariances
        matrix = sp.kron(sp.csr_array(left), sp.eye_array(setting.outputs), format="csr")
        limits = right.ravel()
        problem.add_rows("invariance", over_kernel(problem, matrix), lower=limits, upper=limits)
    for name, matrix, lower, upper in _extra(rows, setting):
        _add_extra(problem, name, matrix, lower, upper)
    return problem


def _form(formulation: str, setting: KernelSetting) -> str:
    _checks.choice("formulation", formulation, FORMULATIONS)
    compact = setting.pairs is None and setting.delta == 0
    if formulation == "auto":
        formulation = "shifted" if compact else "edges"
    if formulation != "edges" and not compact:
        raise ParameterError(
            f"formulation is {formulation!r} with graph {setting.graph_name!r} and "
            f"delta {setting.delta:g}; it needs graph 'complete' and delta 0, else take 'edges'."
        )
    edges = setting.inputs * (setting.inputs - 1) if setting.pairs is None else len(setting.pairs)
    count = setting.outputs * (edges if formulation == "edges" else setting.inputs)
    if count > _MOST_ROWS:
        raise ParameterError(
            f"formulation is {formulation!r} with {count} privacy rows; at most {_MOST_ROWS} are "
            "taken: use fewer outputs, or a graph with fewer edges."
        )
    return formulation


def _add_kernel(problem: Problem, setting: KernelSetting, form: str) -> None:
    inputs, outputs = setting.inputs, setting.outputs
    sums = stochastic_rows(inputs, outputs)
    if form == "shifted":
        problem.add_variables("base", outputs, lower=0.0, upper=1.0)
        problem.add_variables("excess", inputs * outputs, lower=0.0, upper=1.0)
        sides = {"base": np.ones((inputs, outputs)), "excess": sums.matrix}
    else:
        problem.add_variables("kernel", inputs * outputs, lower=0.0, upper=1.0)
        sides = {"kernel": sums.matrix}
    problem.add_rows("sums", sides, lower=1.0, upper=1.0)


def _add_privacy(problem: Problem, setting: KernelSetting, form: str) -> None:
    """Add the privacy rows; divided by e^epsilon, their size stays in range for large epsilon."""
    inputs, outputs, epsilon = setting.inputs, setting.outputs, setting.epsilon
    shrink = math.exp(-epsilon)
    if form == "shifted":
        lift = sp.kron(np.ones((inputs, 1)), sp.eye_array(outputs), format="csr")
        above = shrink * sp.eye_array(inputs * outputs, format="csr")
        sides = {"base": math.expm1(-epsilon) * lift, "excess": above}
        problem.add_rows("privacy", sides, upper=0.0)
    elif form == "columns":
        problem.add_variables("minimum", outputs, lower=0.0, upper=1.0)
        rows = column_minimum_rows(inputs, outputs, epsilon)
        half = inputs * outputs
        scale = sp.diags_array(np.repeat([1.0, shrink], half), format="csr")
        problem.add_rows("privacy", make_rows(scale @ rows.matrix, upper=0.0))
    elif setting.delta == 0:
        pairs = all_pairs(setting.pairs, inputs)
        rows = ratio_rows(pairs, inputs, outputs, epsilon)
        problem.add_rows("privacy", make_rows(shrink * rows.matrix, upper=0.0))
    else:
        pairs = all_pairs(setting.pairs, inputs)
        count = len(pairs) * outputs
        problem.add_variables("excess_mass", count, lower=0.0, upper=1.0)
        rows = hockey_stick_rows(pairs, inputs, outputs, epsilon, setting.delta)
        above = np.arange(rows.count) < count
        excess: Rows = rows.take(above)
        problem.add_rows("privacy", make_rows(shrink * excess.matrix, upper=0.0))
        problem.add_rows("delta", rows.take(~above))


def _add_objective(problem: Problem, setting: KernelSetting) -> None:
    """Minimise (maximise) the mean loss, or a variable "worst" that bounds every input's."""
    loss, prior = setting.losses, setting.weights
    minimising = setting.sense == "minimise"
    optimise = problem.minimise if minimising else problem.maximise
    if prior is not None:
        cost = over_kernel(problem, (prior[:, None] * loss).reshape(1, -1))
        optimise({name: _dense(part) for name, part in cost.items()})
        return
    unit = float(np.max(np.abs(loss))) or 1.0
    low, high = float(loss.min()) / unit, float(loss.max()) / unit
    places = np.arange(loss.size)
    by_input = sp.csr_array(
        (loss.ravel() / unit, (places // setting.outputs, places)),
        shape=(setting.inputs, loss.size),
    )
    sides = dict(over_kernel(problem, by_input))
    problem.add_variables("worst", 1, lower=low, upper=high)
    sides["worst"] = sp.csr_array(-np.ones((setting.inputs, 1)))
    problem.add_rows("losses", sides, **{"upper" if minimising else "lower": 0.0})
    optimise({"worst": unit})


def _dense(row: SparseMatrix) -> Vector:
    return np.asarray(row.toarray(), dtype=np.float64).ravel()


def _add_extra(
    problem: Problem,
    name: str,
    matrix: MatrixLike,
    lower: npt.ArrayLike | None,
    upper: npt.ArrayLike | None,
) -> None:
    if name in OWN_BLOCKS:
        raise ParameterError(
            f"rows holds the name {name!r}; {', '.join(OWN_BLOCKS)} are taken already."
        )
    try:
        sides = over_kernel(problem, matrix)
    except ParameterError as error:
        raise ParameterError(f"rows {name!r}: {error}") from None
    problem.add_rows(name, sides, lower=lower, upper=upper)


def _extra(
    rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None, setting: KernelSetting
) -> ExtraRows:
    found = rows(setting) if callable(rows) else rows
    if found is None:
        return []
    blocks = list(found) if isinstance(found, Sequence) else None
    if blocks is None or not all(isinstance(b, Sequence) and len(b) == 4 for b in blocks):
        raise ParameterError(
            "rows must be a list of tuples (name, matrix over the flattened kernel, lower, upper)."
        )
    return blocks
