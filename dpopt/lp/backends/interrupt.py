"""Ctrl-C while compiled solver code runs: Python handles no signal until it returns."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
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
