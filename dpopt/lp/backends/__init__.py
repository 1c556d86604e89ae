"""Solvers under one protocol, imported by name so that optional ones stay optional.

Compiled code handles no signal until it returns: `interruptible` lets Ctrl-C end it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Protocol, cast, runtime_checkable

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import T, Vector
from dpopt.lp.problem import Model, Rows
from dpopt.lp.solution import Status, Statuses

_Job = tuple[Callable[[], object], "Future[object]"]


class _Worker(threading.Thread):
    """A thread that runs one job after another until it receives None."""

    def __init__(self) -> None:
        super().__init__(name="dpopt solver", daemon=True)
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            work, done = job
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 (raised in the calling thread)
                done.set_exception(error)
            # Drop references to the job while waiting for the next one.
            del job, work, done


# Workers are reused: HiGHS starts its own threads again for each thread that calls it.
_idle: list[_Worker] = []


def _await(worker: _Worker, seconds: float) -> None:
    with suppress(KeyboardInterrupt):
        worker.join(seconds)


def interruptible(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Return ``work()``; while it runs, Ctrl-C raises KeyboardInterrupt at once.

    Only the main thread receives signals. Called there, the work runs in another thread, which is
    abandoned on Ctrl-C; called in any other thread, the work runs in that thread. ``stop`` makes
    abandoned work end early; only the end of the process waits for it.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    # After a fork only the calling thread is alive.
    worker = _idle.pop() if _idle else _Worker()
    if not worker.is_alive():
        worker = _Worker()
        worker.start()
    done: Future[object] = Future()
    worker.jobs.put((work, done))
    try:
        # Seconds between polls: an unlimited wait cannot be interrupted on every system.
        while not wait([done], timeout=0.1).done:
            pass
        return cast(T, done.result())
    finally:
        if done.done():
            _idle.append(worker)
        else:
            worker.jobs.put(None)
            # Seconds that the end of the process waits for work that cannot be stopped, or can: a
            # solver that runs while its library is unloaded aborts the process. On an idle machine
            # a solver stops within a fraction of a second; a second Ctrl-C ends the wait.
            atexit.register(_await, worker, 5.0 if stop is None else 60.0)
            if stop is not None:
                stop()


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
