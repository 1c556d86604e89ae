"""Ctrl-C while a solver's own code runs, which takes no signal until it returns."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar, cast

T = TypeVar("T")
_Job = tuple[Callable[[], object], "Future[object]"]


class _Worker(threading.Thread):
    """Does one job after another until it is told that it was left."""

    def __init__(self) -> None:
        super().__init__(name="dpopt solver", daemon=True)
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            work, done = job
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 (it is raised where the job came from)
                done.set_exception(error)
            # Nothing of a job is kept while there is no other.
            del job, work, done


# A wait without end could not be interrupted on every system.
_POLL = 0.1
# Kept between jobs: HiGHS starts its own threads anew for each thread that calls it.
_idle: list[_Worker] = []
# Seconds that the end of the process waits for work that was left, asked to stop or not: a solver
# that is at work while its library is unloaded aborts the process. On an idle machine one that was
# asked stops in a fraction of a second; a second Ctrl-C ends the wait.
_STOPPING, _RUNNING = 60.0, 5.0
_left: list[tuple[_Worker, float]] = []


@atexit.register
def _await_left() -> None:
    with suppress(KeyboardInterrupt):
        for worker, seconds in _left:
            worker.join(seconds)


def interruptible(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Return ``work()``, and let Ctrl-C raise KeyboardInterrupt at once while it runs.

    Signals go to the main thread: there, the work is done by another thread, which is left if the
    signal comes. In any other thread the work is just done.

    Args:
        work: returns to Python only when it is done.
        stop: asks work that was left to end early; only the end of the process waits for it.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    # After a fork no thread but the caller's is alive.
    worker = _idle.pop() if _idle else _Worker()
    if not worker.is_alive():
        worker = _Worker()
        worker.start()
    done: Future[object] = Future()
    worker.jobs.put((work, done))
    try:
        while True:
            try:
                return cast(T, done.result(timeout=_POLL))
            except TimeoutError:
                # Of the wait, or of the work; the work may also have ended just after the wait.
                if done.done():
                    return cast(T, done.result())
    finally:
        if done.done():
            _idle.append(worker)
        else:
            worker.jobs.put(None)
            _left[:] = [left for left in _left if left[0].is_alive()]
            _left.append((worker, _RUNNING if stop is None else _STOPPING))
            if stop is not None:
                stop()
