"""Other ways to solve a program that is written out: the libraries one would reach for.

All get the same rows. Simplex methods end at a vertex, whose value is the optimum to rounding even
where rows and duals are left within 1e-7; so do the interior points of HiGHS, by a crossover. PDLP,
a method of first order, ends within 1e-7 of feasibility and of the optimum, relative to their size:
its values are judged where a benchmark judges at 1e-6, and shown where it judges at 1e-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
LINOPY = ("linopy", "interop")
OPTIONS: dict[str, dict[str, Any]] = {
    "simplex": {"solver": "simplex"},
    "ipm": {
        "solver": "ipm",
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    "pdlp": {
        "solver": "pdlp",
        "pdlp_optimality_tolerance": 1e-7,
        "primal_feasibility_tolerance": 1e-7,
        "dual_feasibility_tolerance": 1e-7,
    },
}
"""Of HiGHS, by method."""

TIGHT: dict[str, dict[str, Any]] = {
    "HIGHS": {
        "highs_options": {
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
    },
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
}
"""Of cvxpy, by solver, where values are judged at 1e-8."""


@dataclass(frozen=True)
class Written:
    """Minimise cost x subject to low <= A x <= high and 0 <= x <= upper, with every row of A.

    Attributes:
        cost: shape (n,).
        rows: A, shape (m, n), dense or sparse.
        low: shape (m,), -inf where there is none.
        high: shape (m,), inf where there is none.
        upper: of all variables.
    """

    cost: Floats
    rows: Any
    low: Floats
    high: Floats
    upper: float = 1.0

    @property
    def sparse(self) -> sp.csr_array:
        """The rows without their zeros."""
        return sp.csr_array(self.rows)


def by_highs_itself(program: Written, method: str) -> float:
    """Hand the rows to HiGHS as it takes them; return the optimum.

    Args:
        program: what is solved.
        method: a name among `OPTIONS`.

    Raises:
        RuntimeError: unless HiGHS says that it is optimal.
    """
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in OPTIONS[method].items():
        highs.setOptionValue(name, value)
    highs.passModel(_model(program))
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ({method}) ended with {highs.modelStatusToString(status)}.")
    return float(program.cost @ np.asarray(highs.getSolution().col_value))


def _model(program: Written) -> Any:  # noqa: ANN401
    import highspy

    matrix, model = program.sparse, highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = program.cost
    model.col_lower_ = np.zeros(program.cost.size)
    model.col_upper_ = np.full(program.cost.size, program.upper)
    model.row_lower_, model.row_upper_ = program.low, program.high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model


def by_linprog(program: Written) -> float:
    """Hand the rows to scipy's linprog, which calls HiGHS; return the optimum.

    Raises:
        RuntimeError: unless linprog says that it is optimal.
    """
    from scipy.optimize import linprog

    rows, equal = program.sparse, program.low == program.high
    above, below = ~equal & np.isfinite(program.high), ~equal & np.isfinite(program.low)
    result = linprog(
        program.cost,
        A_ub=sp.vstack([rows[above], -rows[below]]),
        b_ub=np.concatenate([program.high[above], -program.low[below]]),
        A_eq=rows[equal] if equal.any() else None,
        b_eq=program.high[equal] if equal.any() else None,
        bounds=(0, program.upper),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not result.success:
        raise RuntimeError(f"linprog ended with status {result.status}: {result.message}")
    return float(result.fun)


def by_linopy(program: Written) -> float:
    """Write the rows in linopy, as arrays with names; HiGHS solves them as called by default.

    Raises:
        RuntimeError: unless linopy says that it is optimal.
    """
    import linopy
    import xarray as xr

    linopy.options["semantics"] = "v1"
    model = linopy.Model()
    names = {"variable": np.arange(program.cost.size)}
    x = model.add_variables(lower=0.0, upper=program.upper, coords=names, name="x")
    dense = program.rows.toarray() if sp.issparse(program.rows) else np.asarray(program.rows)
    equal = program.low == program.high
    for chosen, sign, side in (
        (equal, "==", program.high),
        (~equal & np.isfinite(program.high), "<=", program.high),
        (~equal & np.isfinite(program.low), ">=", program.low),
    ):
        if not chosen.any():
            continue
        rows = {"row": np.flatnonzero(chosen), **names}
        table = xr.DataArray(dense[chosen], coords=rows, dims=("row", "variable"))
        bound = xr.DataArray(side[chosen], coords={"row": rows["row"]}, dims=("row",))
        model.add_constraints((x * table).sum("variable"), sign, bound)
    model.add_objective((x * xr.DataArray(program.cost, coords=names, dims=("variable",))).sum())
    status, condition = model.solve("highs", output_flag=False)
    if status != "ok":
        raise RuntimeError(f"linopy ended with status {status}: {condition}.")
    return float(cast(float, model.objective.value))


def by_interior_points(program: Written) -> float:
    """Hand the rows to HiGHS itself: interior points, with a crossover."""
    return by_highs_itself(program, "ipm")


def by_pdlp(program: Written) -> float:
    """Hand the rows to HiGHS itself: PDLP."""
    return by_highs_itself(program, "pdlp")


SOLVERS = (
    ("linprog", by_linprog, True),
    ("HiGHS interior point", by_interior_points, True),
    ("HiGHS PDLP", by_pdlp, False),
)
"""Ways that take the rows as a matrix: name, function, and whether values can be judged at 1e-8."""
