"""Other ways to solve a program that is written out: the libraries one would reach for.

All get the same rows. Simplex methods end at a vertex, whose value is the optimum to rounding even
where rows and duals are left within 1e-7; so do the interior points of HiGHS, by a crossover. PDLP,
a method of first order, ends within 1e-7 of feasibility and of the optimum, relative to their size:
its values are judged where a benchmark judges at 1e-6, and shown where it judges at 1e-8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.arrays import Floats

Rows = Floats | sp.csr_array


def feasible_within(tolerance: float) -> dict[str, Any]:
    """Return HiGHS's options for how far rows and reduced costs may be off."""
    return dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), tolerance)


_METHODS: dict[str, dict[str, Any]] = {
    "ipm": feasible_within(1e-10),
    "pdlp": feasible_within(1e-7) | {"pdlp_optimality_tolerance": 1e-7},
}
TIGHT: dict[str, dict[str, Any]] = {
    "HIGHS": {"highs_options": feasible_within(1e-10)},
    "CLARABEL": dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10),
}
"""Of cvxpy, by solver, where values are judged at 1e-8."""


@dataclass(frozen=True)
class Written:
    """Minimise cost x subject to rows x <= right, equal x = sides and 0 <= x <= 1.

    Attributes:
        cost: shape (n,).
        rows: shape (m, n), dense or sparse.
        right: shape (m,).
        equal: shape (e, n); None if there are no equations.
        sides: shape (e,).
    """

    cost: Floats
    rows: Rows
    right: Floats
    equal: Rows | None = None
    sides: Floats | None = None


def by_cvxpy(program: Written, solver: str, **options: Any) -> float:  # noqa: ANN401
    """Hand the rows to cvxpy; return the optimum."""
    import cvxpy as cp

    # As constraints, the bounds would make HiGHS several times slower.
    x = cp.Variable(program.cost.size, bounds=[0.0, 1.0])
    limits: list[cp.Constraint] = [program.rows @ x <= program.right]
    if program.equal is not None:
        limits.append(program.equal @ x == program.sides)
    return least(program.cost @ x, limits, solver, **options)


def least(objective: Any, rules: list[Any], solver: str = "HIGHS", **options: Any) -> float:  # noqa: ANN401
    """Return the minimum of a program of cvxpy."""
    import cvxpy as cp

    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver=solver, **options)
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"cvxpy ended with status {problem.status}.")
    return float(np.asarray(problem.value))


def by_linprog(program: Written, tolerance: float = 1e-10) -> float:
    """Hand the rows to scipy's linprog, which calls HiGHS; return the optimum."""
    from scipy.optimize import linprog

    result = linprog(
        program.cost,
        program.rows,
        program.right,
        program.equal,
        program.sides,
        bounds=(0, 1),
        method="highs",
        options=feasible_within(tolerance),
    )
    if not result.success:
        raise RuntimeError(f"linprog ended with status {result.status}: {result.message}")
    return float(result.fun)


def by_highs(program: Written, method: str) -> float:
    """Hand the rows to HiGHS as it takes them; return the optimum."""
    import highspy

    equal = np.zeros((0, program.cost.size)) if program.equal is None else program.equal
    sides = np.zeros(0) if program.sides is None else program.sides
    matrix = sp.csr_array(sp.vstack([sp.csr_array(program.rows), sp.csr_array(equal)]))
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = np.zeros(program.cost.size), np.ones(program.cost.size)
    model.row_lower_ = np.append(np.full(program.right.size, -np.inf), sides)
    model.row_upper_ = np.append(program.right, sides)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "solver": method, **_METHODS[method]}.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ({method}) ended with {highs.modelStatusToString(status)}.")
    return float(program.cost @ np.asarray(highs.getSolution().col_value))


Solver = Callable[[Written], float]
DEFAULTS: dict[str, Solver] = {
    "cvxpy + HiGHS": partial(by_cvxpy, solver="HIGHS"),
    "cvxpy + CLARABEL": partial(by_cvxpy, solver="CLARABEL"),
    "linprog": partial(by_linprog, tolerance=1e-7),
}
"""As they are called by default: HiGHS at 1e-7, CLARABEL at 1e-8."""
HIGHS_ITSELF: dict[str, Solver] = {
    "HiGHS interior point": partial(by_highs, method="ipm"),
    "HiGHS PDLP": partial(by_highs, method="pdlp"),
}
