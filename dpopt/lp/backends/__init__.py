"""Solvers under one protocol, imported by name so that optional ones stay optional."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, runtime_checkable

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.lp.model import Model, Rows
from dpopt.lp.solution import Status, Statuses


@dataclass(frozen=True)
class RawSolution:
    """What a solver reports, before anything is checked.

    Attributes:
        status: how this run ended.
        x: the solution, shape (variables,); None unless the status is optimal.
        y: row multipliers of the minimisation, shape (rows,), positive at a lower limit.
        iterations: iterations of this run.
        detail: the solver's own message.
    """

    status: Status
    x: Vector | None
    y: Vector | None
    iterations: int
    detail: str


class Session(Protocol):
    """One model loaded into a solver, with one or more strategies (ways) to solve it."""

    @property
    def ways(self) -> int:
        """Number of strategies; `solve` falls back to the next if an answer fails its checks."""
        ...

    def append(self, rows: Rows) -> None:
        """Add rows below those present, keeping the basis for a warm start if possible."""
        ...

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        """Solve; way 0 warm-starts from the end of the last run, the others start from scratch."""
        ...


@runtime_checkable
class WarmSession(Session, Protocol):
    """A session that can start from a basis and return the final one."""

    def begin(self, columns: Statuses, rows: Statuses) -> None:
        """Start the first run from a basis, which need be neither square nor of this model."""
        ...

    def basis(self) -> tuple[Statuses, Statuses] | None:
        """Return the statuses of columns and rows after the last run; None without a basis."""
        ...


@runtime_checkable
class Backend(Protocol):
    """A solver that can be passed to `dpopt.solve`."""

    @property
    def name(self) -> str:
        """Name shown in results."""
        ...

    @property
    def tolerance(self) -> float:
        """Residual that the solver usually reaches: the default tolerance of `solve`."""
        ...

    def load(self, model: Model) -> Session:
        """Load the model into the solver."""
        ...


def get_backend(backend: str | Backend) -> Backend:
    """Return the backend for a name such as ``"highs"``, ``"cvxpy"`` or ``"cvxpy:CLARABEL"``.

    Raises:
        ParameterError: if the name is unknown or its solver is not installed.
    """
    if not isinstance(backend, str):
        if isinstance(backend, Backend) and not isinstance(backend, type):
            return backend
        shown = _checks.shown(backend)
        raise ParameterError(f"backend is {shown}; it must be a name or a Backend object.")
    name, colon, solver = backend.partition(":")
    if backend == "highs":
        return import_module("dpopt.lp.backends.highs").Highs()
    if name == "cvxpy" and bool(colon) == bool(solver):
        return import_module("dpopt.lp.backends.cvxpy").Cvxpy(solver or "HIGHS")
    raise ParameterError(
        f"backend is {_checks.shown(backend)}; it must be highs, cvxpy, or cvxpy:SOLVER "
        "for any solver that cvxpy has, such as cvxpy:CLARABEL."
    )
