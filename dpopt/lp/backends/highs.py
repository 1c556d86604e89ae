"""HiGHS through its own Python interface: arrays in, rows appended to a kept basis."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from dpopt import _checks
from dpopt._errors import SolverError
from dpopt._types import Vector
from dpopt.lp.backends import RawSolution
from dpopt.lp.model import Model, Rows
from dpopt.lp.solution import Status

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kModelEmpty: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
    highspy.HighsModelStatus.kMemoryLimit: Status.MEMORY_LIMIT,
    highspy.HighsModelStatus.kInterrupt: Status.INTERRUPTED,
}


@dataclass(frozen=True)
class Highs:
    """HiGHS, called directly.

    Attributes:
        feasibility: HiGHS's primal and dual feasibility tolerance; its floor is 1e-10.
    """

    feasibility: float = 1e-10

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "feasibility", _checks.real("feasibility", self.feasibility, 1e-10, 1e-2)
        )

    @property
    def name(self) -> str:
        """Shown in results."""
        return "highs"

    @property
    def tolerance(self) -> float:
        """Ten times the feasibility tolerance: entries below 1e-12 are dropped by HiGHS."""
        return 10 * self.feasibility

    def load(self, model: Model) -> HighsSession:
        """Hand the model to a new HiGHS instance."""
        return HighsSession(model, self.feasibility)


def load_model(model: Model, /, **options: bool | float | int | str) -> highspy.Highs:
    """Return a silent HiGHS instance that holds ``model``."""
    solver = highspy.Highs()
    set_options(solver, output_flag=False)
    set_options(solver, small_matrix_value=1e-12, **options)
    rows = model.rows
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.cost.size, rows.count
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.cost, model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = rows.lower, rows.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = model.cost.size, rows.count
    lp.a_matrix_.start_ = rows.matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = rows.matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = rows.matrix.data
    _require(solver.passModel(lp), "it refused the model")
    return solver


def set_options(highs: highspy.Highs, /, **options: bool | float | int | str) -> None:
    """Set options, raising where HiGHS only returns an error code."""
    for name, value in options.items():
        _require(highs.setOptionValue(name, value), f"it refused option {name}={value!r}")


def _require(status: highspy.HighsStatus, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS stopped: {what}.", Status.NUMERICAL)


class HighsSession:
    """One HiGHS instance and the rows given to it."""

    def __init__(self, model: Model, feasibility: float) -> None:
        # HiGHS measures dual feasibility absolutely: bring the costs to size one.
        self._scale = float(np.max(np.abs(model.cost), initial=0.0)) or 1.0
        scaled = Model(
            model.cost / self._scale,
            model.lower,
            model.upper,
            model.rows,
            model.variables,
            model.blocks,
        )
        self._solver = load_model(
            scaled,
            primal_feasibility_tolerance=feasibility,
            dual_feasibility_tolerance=feasibility,
        )

    def append(self, rows: Rows) -> None:
        """Add rows below those present; the basis is kept."""
        matrix = rows.matrix
        status = self._solver.addRows(
            rows.count,
            rows.lower,
            rows.upper,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        _require(status, "it refused appended rows")

    def run(self, time_limit: float | None, *, fresh: bool = False) -> RawSolution:
        """Solve by warm simplex; cold, then by interior point, if that fails or if ``fresh``."""
        plans: list[dict[str, str]] = [{"solver": "choose"}, {"solver": "simplex"}]
        plans.append({"solver": "ipm", "run_crossover": "off"})
        raw = None
        for number, plan in enumerate(plans[1:] if fresh else plans):
            if fresh or number > 0:
                self._solver.clearSolver()
            raw = self._run_once(time_limit, plan)
            if raw.status is not Status.NUMERICAL:
                break
        set_options(self._solver, solver="choose", run_crossover="on")
        if raw is None:
            raise SolverError("HiGHS was not run.", Status.NUMERICAL)
        return raw

    def _run_once(self, time_limit: float | None, plan: dict[str, str]) -> RawSolution:
        solver = self._solver
        # HiGHS compares time_limit with the clock of the instance, which goes on between runs.
        limit = np.inf if time_limit is None else solver.getRunTime() + max(time_limit, 0.0)
        set_options(solver, time_limit=float(limit), **plan)
        solver.run()
        code = solver.getModelStatus()
        if code == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            set_options(solver, presolve="off")
            solver.run()
            set_options(solver, presolve="choose")
            code = solver.getModelStatus()
        status = _STATUS.get(code, Status.NUMERICAL)
        info, point = solver.getInfo(), solver.getSolution()
        iterations = max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)
        detail = solver.modelStatusToString(code)
        if status is not Status.OPTIMAL:
            return RawSolution(status, None, None, iterations, detail)
        if not point.value_valid:
            return RawSolution(Status.NUMERICAL, None, None, iterations, detail + ", no point")
        y = np.array(point.row_dual, dtype=float) if point.dual_valid else None
        x: Vector = np.array(point.col_value, dtype=float)
        return RawSolution(status, x, None if y is None else y * self._scale, iterations, detail)


def conflict(model: Model) -> tuple[list[int], list[int]] | None:
    """Return an irreducible infeasible set: indices of its rows, and of its bounded variables.

    None if HiGHS finds the model feasible or cannot tell.
    """
    solver = load_model(model, iis_strategy=6)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kInfeasible:
        return None
    status, iis = solver.getIis()
    if status == highspy.HighsStatus.kError or not iis.valid_:
        return None
    status_of = highspy.IisBoundStatus
    idle = {int(status_of.kIisBoundStatusFree), int(status_of.kIisBoundStatusNull)}
    bounds = zip(iis.col_index_, iis.col_bound_, strict=True)
    return list(iis.row_index_), [column for column, bound in bounds if int(bound) not in idle]
