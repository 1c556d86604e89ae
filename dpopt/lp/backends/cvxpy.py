"""Any LP solver that cvxpy offers."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from dpopt._errors import ParameterError, SolverError
from dpopt.lp.backends import RawSolution, interruptible
from dpopt.lp.backends.highs import silence
from dpopt.lp.problem import Model, Rows, stack
from dpopt.lp.solution import Status

# After a time limit cvxpy reports "user_limit" and a vector of zeros, which is no solution.
_STATUS = {
    cp.OPTIMAL: Status.OPTIMAL,
    # `solve` checks the residual and the dual bound of every solution itself.
    cp.OPTIMAL_INACCURATE: Status.OPTIMAL,
    cp.INFEASIBLE: Status.INFEASIBLE,
    cp.UNBOUNDED: Status.UNBOUNDED,
    "user_limit": Status.TIME_LIMIT,
}

# Each solver's name of the time limit, in seconds.
_TIME_OPTION = {
    "HIGHS": "time_limit",
    "CLARABEL": "time_limit",
    "SCS": "time_limit_secs",
    "OSQP": "time_limit",
}

# Tolerances near the limit of what each solver reaches: the default ones are 1e-4 to 1e-8.
_TIGHT: dict[str, dict[str, Any]] = {
    "HIGHS": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 1_000_000},
}


@dataclass(frozen=True)
class Cvxpy:
    """A solver reached through cvxpy.

    Attributes:
        solver: a name from `cvxpy.installed_solvers()`.
    """

    solver: str = "HIGHS"

    def __post_init__(self) -> None:
        installed = cp.installed_solvers()
        if self.solver not in installed:
            raise ParameterError(
                f"solver is {self.solver!r}; installed in cvxpy: {', '.join(installed)}."
            )

    @property
    def name(self) -> str:
        """Name shown in results."""
        return f"cvxpy:{self.solver}"

    @property
    def tolerance(self) -> float:
        """Residual that the solver usually reaches."""
        return {"HIGHS": 1e-9, "CLARABEL": 1e-7}.get(self.solver, 1e-5)

    def load(self, model: Model) -> CvxpySession:
        """Store the model; cvxpy compiles it at every run."""
        return CvxpySession(model, self.solver)


class CvxpySession:
    """A model and the rows appended to it; every run starts from scratch by one strategy."""

    ways = 1

    def __init__(self, model: Model, solver: str) -> None:
        self._model = model
        self._rows = model.rows
        self._solver = solver

    def append(self, rows: Rows) -> None:
        """Add rows below those present."""
        self._rows = stack([self._rows, rows], self._model.cost.size)

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        """Solve from scratch."""
        del way
        silence()
        options = dict(_TIGHT.get(self._solver, {}))
        if time_limit is not None:
            if self._solver not in _TIME_OPTION:
                raise ParameterError(
                    f"time_limit is {time_limit}; through cvxpy it is known only for "
                    f"{', '.join(_TIME_OPTION)}."
                )
            options[_TIME_OPTION[self._solver]] = max(time_limit, 1e-9)
        x = cp.Variable(self._model.cost.size, bounds=[self._model.lower, self._model.upper])
        # Costs of size one, as the solvers' dual tolerances are absolute.
        scale = float(np.max(np.abs(self._model.cost), initial=0.0)) or 1.0
        # (sign, rows, constraint): the sign turns cvxpy's dual into our multiplier, which is
        # positive at a lower limit. A row with two limits is in two constraints.
        rows, equal = self._rows, self._rows.lower == self._rows.upper
        triples = [
            (sign, selected, compare(rows.matrix[selected] @ x, limits[selected]))
            for sign, mask, compare, limits in (
                (-1.0, equal, operator.eq, rows.lower),
                (1.0, ~equal & np.isfinite(rows.lower), operator.ge, rows.lower),
                (-1.0, ~equal & np.isfinite(rows.upper), operator.le, rows.upper),
            )
            if (selected := np.flatnonzero(mask)).size
        ]
        cost, constraints = (self._model.cost / scale) @ x, [triple[-1] for triple in triples]
        problem = cp.Problem(cp.Minimize(cost), constraints)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                interruptible(lambda: problem.solve(solver=self._solver, **options))
        except cp.SolverError as error:
            return RawSolution(Status.NUMERICAL, None, None, 0, str(error))
        status = _STATUS.get(problem.status, Status.NUMERICAL)
        stats = problem.solver_stats
        iterations = 0 if stats is None else int(stats.num_iters or 0)
        if status is not Status.OPTIMAL or x.value is None:
            status = Status.NUMERICAL if status is Status.OPTIMAL else status
            return RawSolution(status, None, None, iterations, str(problem.status))
        y = np.zeros(rows.count)
        for sign, selected, constraint in triples:
            if constraint.dual_value is None:
                raise SolverError(f"{self._solver} returned no duals.", Status.NUMERICAL)
            y[selected] += sign * scale * np.ravel(np.asarray(constraint.dual_value, dtype=float))
        return RawSolution(status, np.array(x.value), y, iterations, str(problem.status))
