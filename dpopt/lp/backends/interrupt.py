"""Ctrl-C while compiled solver code runs: Python handles no signal until it returns."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import cast

from dpopt._types import T

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
# Seconds that the end of the process waits for abandoned work that can be stopped, or cannot: a
# solver that runs while its library is unloaded aborts the process. On an idle machine a solver
# stops within a fraction of a second; a second Ctrl-C ends the wait.
_STOPPING, _RUNNING = 60.0, 5.0
_abandoned: list[tuple[_Worker, float]] = []


@atexit.register
def _await_abandoned() -> None:
    with suppress(KeyboardInterrupt):
        for worker, seconds in _abandoned:
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
        while True:
            try:
                # Seconds between polls: an unlimited wait cannot be interrupted on every system.
                return cast(T, done.result(timeout=0.1))
            except TimeoutError:
                # Raised by the wait or by the work, which may also have ended just after the wait.
                if done.done():
                    return cast(T, done.result())
    finally:
        if done.done():
            _idle.append(worker)
        else:
            worker.jobs.put(None)
            _abandoned[:] = [entry for entry in _abandoned if entry[0].is_alive()]
            _abandoned.append((worker, _RUNNING if stop is None else _STOPPING))
            if stop is not None:
                stop()
