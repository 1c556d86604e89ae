"""HiGHS through its own Python interface: arrays in, rows appended with a warm basis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import highspy
import numpy as np

from dpopt._errors import SolverError
from dpopt._types import Vector
from dpopt.lp.backends import RawSolution, interruptible
from dpopt.lp.problem import Model, Rows, stack
from dpopt.lp.solution import BASIC, Status, Statuses

# HiGHS's statuses; for what is not listed, such as "unbounded or infeasible", the next fallback
# strategy is tried.
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

# Primal and dual feasibility tolerance, HiGHS's floor.
_FEASIBILITY = 1e-10


@dataclass(frozen=True)
class Highs:
    """HiGHS: the simplex method; interior points first on grids and similar programs.

    Attributes:
        interior: the relative gap at which interior points without crossover end, for programs on
            which the simplex method stalls; 0 for the simplex method. The duality gap is wider, and
            the solution states it.
    """

    interior: float = 0.0

    # Shown in results; and ten times HiGHS's tolerances, as it drops matrix entries below 1e-12.
    name, tolerance = "highs", 10 * _FEASIBILITY

    def load(self, model: Model) -> HighsSession:
        """Load the model into a new HiGHS instance."""
        first: dict[str, Option] = {"ipm_optimality_tolerance": self.interior}
        central = (_NO_BASIS | first, *_INTERIOR)
        return HighsSession(model, central if self.interior else _STRATEGIES)


@cache
def silence() -> None:
    """Keep HiGHS from writing its header to standard output.

    From version 1.16 on, the first `highspy.Highs` of a process (ours or cvxpy's) prints the header
    before any option can be set. A silent instance of the core class prints it first, to nowhere.
    """
    first = highspy._core._Highs()
    first.setOptionValue("log_to_console", False)
    first.passModel(highspy.HighsLp())


def load_model(model: Model, /, **options: bool | float | int | str) -> highspy.Highs:
    """Return a silent HiGHS instance that holds ``model``."""
    silence()
    solver = highspy.Highs()
    set_options(solver, output_flag=False, small_matrix_value=1e-12, **options)
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


Option = bool | float | int | str

# Options that every run sets, so that those of an earlier run do not persist; strategy 1 is the
# dual simplex method.
_ORDINARY: dict[str, Option] = {
    "solver": "choose",
    "presolve": "choose",
    "run_crossover": "on",
    "simplex_strategy": 1,
    "simplex_scale_strategy": 2,
}
# Fallback strategies. All but the first, a warm start, use a new instance: HiGHS scales appended
# rows by the factors of the first ones and can lose eight digits; its presolve may end without a
# status.
_STRATEGIES: tuple[dict[str, Option], ...] = (
    {},
    {"solver": "ipm"},
    {"solver": "simplex", "simplex_strategy": 4, "presolve": "off"},
    {"solver": "ipm", "presolve": "off", "run_crossover": "off", "ipm_optimality_tolerance": 1e-12},
)
# Fallbacks of interior points without crossover, with looser and looser tolerances.
_NO_BASIS: dict[str, Option] = {"solver": "ipm", "run_crossover": "off"}
_INTERIOR: tuple[dict[str, Option], ...] = (
    _NO_BASIS | {"ipm_optimality_tolerance": 1e-10, "presolve": "off"},
    _NO_BASIS | {"ipm_optimality_tolerance": 1e-8},
)
# Interior points with crossover take a half to a tenth of the simplex method's time on programs
# with at least _LEAST_COLUMNS variables, equations of _LONG_PMF entries (pmfs that couple outputs)
# and _ROWS_EACH rows per variable, such as grids. From _PATH_ROWS_EACH rows per variable (paths),
# they do so if the smallest coefficient of the median row is at least _ALIKE of its largest, or
# _TIED_ALIKE in minimax programs, on whose ties the simplex method stalls.
_LEAST_COLUMNS, _LONG_PMF, _ROWS_EACH, _PATH_ROWS_EACH = 1_000, 30.0, 3.0, 1.9
_ALIKE, _TIED_ALIKE = 0.5, 0.3
# Iteration limits, against cycling: _LEAST_ITERATIONS plus _ITERATIONS_EACH per row and column for
# the simplex method, where ordinary runs take less than 5 each; ordinary interior points take 50.
_LEAST_ITERATIONS, _ITERATIONS_EACH, _INTERIOR_ITERATIONS = 2_000, 50, 300


class HighsSession:
    """One HiGHS instance and the rows loaded into it."""

    def __init__(self, model: Model, strategies: tuple[dict[str, Option], ...]) -> None:
        self._strategies, self.ways = strategies, len(strategies)
        # HiGHS measures dual feasibility absolutely, so costs are scaled to size one.
        self._scale = float(np.max(np.abs(model.cost), initial=0.0)) or 1.0
        self._model = replace(model, cost=model.cost / self._scale)
        self._appended: list[Rows] = []
        # The options of a run from a given basis.
        self._begun: dict[str, Option] | None = None
        self._central = strategies is _STRATEGIES and _suits_interior(model)
        self._solver = self._loaded()

    def _all_rows(self) -> Rows:
        return stack([self._model.rows, *self._appended], self._model.cost.size)

    def _loaded(self) -> highspy.Highs:
        return load_model(
            replace(self._model, rows=self._all_rows()),
            primal_feasibility_tolerance=_FEASIBILITY,
            dual_feasibility_tolerance=_FEASIBILITY,
            ipm_iteration_limit=_INTERIOR_ITERATIONS,
        )

    def append(self, rows: Rows) -> None:
        """Add rows below those present, and keep the basis."""
        self._appended.append(rows)
        matrix = rows.matrix
        starts, columns = (a.astype(np.int32) for a in (matrix.indptr[:-1], matrix.indices))
        entries = matrix.nnz, starts, columns, matrix.data
        status = self._solver.addRows(rows.count, rows.lower, rows.upper, *entries)
        _require(status, "it refused appended rows")

    def begin(self, columns: Statuses, rows: Statuses) -> None:
        """Start the first run from a basis, which HiGHS repairs if it is singular or not square.

        From the basis of another program the primal simplex method starts at once, while the dual
        one first computes edge weights: 6 against 30 ms on a 40 x 40 kernel.
        """
        model, all_rows = self._model, self._all_rows()
        basis = highspy.HighsBasis()
        basis.col_status = _settled(columns, model.lower, model.upper)
        basis.row_status = _settled(rows, all_rows.lower, all_rows.upper)
        basis.valid, basis.alien = True, True
        if self._solver.setBasis(basis) != highspy.HighsStatus.kError:
            self._begun = self._strategies[0] | {"solver": "choose", "simplex_strategy": 4}

    def basis(self) -> tuple[Statuses, Statuses] | None:
        """Return the statuses of columns and rows; None after interior points without crossover."""
        basis = self._solver.getBasis()
        if not basis.valid:
            return None
        columns = np.fromiter(map(int, basis.col_status), np.int8)
        return columns, np.fromiter(map(int, basis.row_status), np.int8)

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        """Solve by a warm simplex run (way 0) or by a fallback strategy on a new instance.

        The first run from scratch uses interior points if `_suits_interior` recommends them.
        """
        if way > 0:
            self._solver = self._loaded()
        solver = self._solver
        # Appended rows leave the basis dual feasible, so that later runs use the dual simplex.
        begun, self._begun = self._begun if way == 0 else None, None
        central = self._central and way == 0 and not begun and not self._appended
        # After 5 iterations per row and column from a basis the run is abandoned for a new one.
        options = begun or self._strategies[1 if central else way]
        size = self._model.cost.size + solver.getNumRow()
        # HiGHS compares time_limit with the run time summed over all runs of the instance.
        limit = np.inf if time_limit is None else solver.getRunTime() + max(time_limit, 0.0)
        iterations = _LEAST_ITERATIONS + (5 if begun else _ITERATIONS_EACH) * size
        limits = {"time_limit": float(limit), "simplex_iteration_limit": iterations}
        set_options(solver, **(limits | _ORDINARY | options))
        interruptible(solver.run, self._stop)
        return self._answer(solver.getModelStatus())

    def _stop(self) -> None:
        """Stop an abandoned run; a callback at each iteration would wait for other threads."""
        set_options(self._solver, time_limit=0.0)

    def _answer(self, code: highspy.HighsModelStatus) -> RawSolution:
        solver, status = self._solver, _STATUS.get(code, Status.NUMERICAL)
        info, point = solver.getInfo(), solver.getSolution()
        iterations = max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)
        detail = solver.modelStatusToString(code)
        if status is not Status.OPTIMAL:
            return RawSolution(status, None, None, iterations, detail)
        if not point.value_valid:
            return RawSolution(Status.NUMERICAL, None, None, iterations, detail + ", no point")
        y = np.array(point.row_dual, dtype=float) * self._scale if point.dual_valid else None
        x: Vector = np.array(point.col_value, dtype=float)
        return RawSolution(status, x, y, iterations, detail)


def _suits_interior(model: Model) -> bool:
    """Whether interior points find the first optimum sooner, judging by the program's shape."""
    rows, columns = model.rows, model.cost.size
    entries, equal = np.diff(rows.matrix.indptr), rows.lower == rows.upper
    # Rows with one entry are bounds of a variable.
    pmfs, linked = entries[equal], entries > 1
    rows_each = np.count_nonzero(linked) / columns
    if columns < _LEAST_COLUMNS or not pmfs.size or pmfs.mean() < _LONG_PMF:
        return False
    if rows_each >= _ROWS_EACH or rows_each < _PATH_ROWS_EACH:
        return bool(rows_each >= _ROWS_EACH)
    # For each non-empty row, its smallest coefficient over its largest.
    starts, sizes = rows.matrix.indptr[:-1][entries > 0], np.abs(rows.matrix.data)
    ratios = np.minimum.reduceat(sizes, starts) / np.maximum.reduceat(sizes, starts)
    tied = bool(np.any(entries[~equal] >= _LONG_PMF))
    return bool(np.median(ratios[linked[entries > 0]]) >= (_TIED_ALIKE if tied else _ALIKE))


def _settled(statuses: Statuses, lower: Vector, upper: Vector) -> list[highspy.HighsBasisStatus]:
    """Return the statuses with nonbasic entries moved from infinite limits to finite ones."""
    # Codes: 0 at the lower limit, 2 at the upper one, 3 free at zero.
    low, high = np.isfinite(lower), np.isfinite(upper)
    nonbasic = np.where(low & ((statuses != 2) | ~high), 0, np.where(high, 2, 3))
    by_code = [highspy.HighsBasisStatus(code) for code in range(4)]
    return [by_code[code] for code in np.where(statuses == BASIC, BASIC, nonbasic).tolist()]


def conflict(model: Model) -> tuple[list[int], list[int]] | None:
    """Return an irreducible infeasible set: indices of its rows and of its bounded variables.

    None if HiGHS finds the model feasible or cannot decide.
    """
    solver = load_model(model, iis_strategy=6)
    interruptible(solver.run)
    if solver.getModelStatus() != highspy.HighsModelStatus.kInfeasible:
        return None
    status, iis = interruptible(solver.getIis)
    if status == highspy.HighsStatus.kError or not iis.valid_:
        return None
    status_of = highspy.IisBoundStatus
    idle = {int(status_of.kIisBoundStatusFree), int(status_of.kIisBoundStatusNull)}
    bounds = zip(iis.col_index_, iis.col_bound_, strict=True)
    return list(iis.row_index_), [column for column, bound in bounds if int(bound) not in idle]
