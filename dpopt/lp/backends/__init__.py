"""Solvers behind one protocol, reached by name so that an optional one stays optional."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, runtime_checkable

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.lp.basis import Statuses
from dpopt.lp.model import Model, Rows
from dpopt.lp.solution import Status


@dataclass(frozen=True)
class RawSolution:
    """What a solver says before anything is checked.

    Attributes:
        status: the end of this run.
        x: the point, shape (variables,); None unless the status is optimal.
        y: row multipliers of the minimisation, shape (rows,), positive at a lower limit.
        iterations: iterations of this run.
        detail: the solver's own words.
    """

    status: Status
    x: Vector | None
    y: Vector | None
    iterations: int
    detail: str


class Session(Protocol):
    """One model loaded into a solver, with one or more ways to solve it."""

    @property
    def ways(self) -> int:
        """How many ways there are; `solve` tries the next where an answer fails its checks."""
        ...

    def append(self, rows: Rows) -> None:
        """Add rows below those present, keeping what can be kept for a warm start."""
        ...

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        """Solve: 0 is the ordinary way, from where the last run ended; others start anew."""
        ...


@runtime_checkable
class WarmSession(Session, Protocol):
    """A session that can begin at a basis, and tell the one at which it ended."""

    def begin(self, columns: Statuses, rows: Statuses) -> None:
        """Take a basis for the first run: any, of this model or not, square or not."""
        ...

    def basis(self) -> tuple[Statuses, Statuses] | None:
        """Return the statuses of columns and rows after the last run, if it had a basis."""
        ...


@runtime_checkable
class Backend(Protocol):
    """A solver that can be handed to `dpopt.solve`."""

    @property
    def name(self) -> str:
        """Shown in results."""
        ...

    @property
    def tolerance(self) -> float:
        """The residual that the solver reaches as a rule; the default of `solve`."""
        ...

    def load(self, model: Model) -> Session:
        """Hand the model to the solver."""
        ...


def get_backend(backend: str | Backend) -> Backend:
    """Return the backend for a name such as ``"highs"``, ``"cvxpy"`` or ``"cvxpy:CLARABEL"``.

    Raises:
        ParameterError: if the name is unknown or the solver behind it is not installed.
    """
    if not isinstance(backend, str):
        if isinstance(backend, Backend) and not isinstance(backend, type):
            return backend
        raise ParameterError(
            f"backend is {_checks.shown(backend)}; it must be a name or a Backend object."
        )
    name, colon, solver = backend.partition(":")
    if backend == "highs":
        return import_module("dpopt.lp.backends.highs").Highs()
    if name == "cvxpy" and bool(colon) == bool(solver):
        module = import_module("dpopt.lp.backends.cvxpy")
        return module.Cvxpy(solver) if solver else module.Cvxpy()
    raise ParameterError(
        f"backend is {_checks.shown(backend)}; it must be highs, cvxpy, or cvxpy:SOLVER "
        "for any solver that cvxpy has, such as cvxpy:CLARABEL."
    )
