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


_REGISTRY: dict[str, str] = {
    "highs": "dpopt.lp.backends.highs:Highs",
    "cvxpy": "dpopt.lp.backends.cvxpy:Cvxpy",
}

_CVXPY_SOLVERS = (
    *("cbc", "clarabel", "copt", "cplex", "cuopt", "ecos", "glop", "glpk", "gurobi"),
    *("mosek", "osqp", "pdlp", "piqp", "qoco", "scip", "scipy", "scs", "xpress"),
)


def backends() -> tuple[str, ...]:
    """Return the names that `solve` accepts as ``backend``."""
    return tuple(_REGISTRY)


def register_backend(name: str, location: str) -> None:
    """Make ``"package.module:Class"`` known under ``name``; it is imported when first used."""
    _REGISTRY[name] = location


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
    if name not in _REGISTRY or (colon and not solver):
        raise ParameterError(
            f"backend is {_checks.shown(backend)}; it must be one of {', '.join(_REGISTRY)}, or "
            f"cvxpy:SOLVER for any solver that cvxpy has, such as cvxpy:{_example(name)}."
        )
    module, _, attribute = _REGISTRY[name].partition(":")
    factory = getattr(import_module(module), attribute)
    if solver and name != "cvxpy":
        raise ParameterError(
            f"backend is {_checks.shown(backend)}; only cvxpy takes a solver after the colon."
        )
    return factory(solver) if solver else factory()


def _example(name: str) -> str:
    """Return how cvxpy would write a solver's name, if it may be one."""
    return name.upper() if name.lower() in _CVXPY_SOLVERS else "GUROBI"
