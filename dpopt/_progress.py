"""Progress of long computations, reported to one callback; nobody listens unless asked to.

A loop reports its position by `advance` or `track`. Who listens is a context variable, so that no
function in between hands a callback through:

    with reporting(callback):       # or: with progress_bar():
        dpopt.design(dpopt.Majority(2001, 0.01, 100))

The variable belongs to the thread (or task) that set it: work that is handed to other threads or
processes reports nothing; `dpopt.sweep` reports its finished points from the calling thread.
An exception of the callback is not caught: it ends the computation, which is how to cancel one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, TypeVar

from dpopt._errors import ParameterError
from dpopt._numbers import shown

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import TaskID

# Items of what is tracked.
_T = TypeVar("_T")
# Seconds between two updates of the bar; from how many a task is shown, and announced as long.
_QUIET_SECONDS, _SHOWN_SECONDS, _LONG_SECONDS = 0.1, 1.0, 60.0


@dataclass(frozen=True)
class ProgressEvent:
    """Where a computation is.

    Attributes:
        task: what is being done, in a few words; events of one task share it.
        done: steps finished, at least 0.
        total: steps in all; None while it is unknown. The task is over when ``done`` equals it.
        message: detail to show beside it, such as the worst violation so far.
        seconds: of an event before the task: an estimate of how long all of it will take, stated
            where that is more than a minute; else None.
    """

    task: str
    done: int
    total: int | None = None
    message: str = ""
    seconds: float | None = None


ProgressCallback: TypeAlias = Callable[[ProgressEvent], None]
"""What is called with every event; what it raises ends the computation."""

_listener: ContextVar[ProgressCallback | None] = ContextVar("dpopt_progress", default=None)


def listening() -> bool:
    """Whether there is a callback in force."""
    return _listener.get() is not None


def report(event: ProgressEvent) -> None:
    """Tell the callback in force, if any, of an event."""
    callback = _listener.get()
    if callback is not None:
        callback(event)


def advance(task: str, done: int, total: int | None = None, message: str = "") -> None:
    """Tell the callback in force, if any, that ``done`` of ``total`` steps are finished."""
    report(ProgressEvent(task, done, total, message))


def expect(task: str, steps: float, per_second: float) -> None:
    """Tell the callback in force, before a task starts, that it will take more than a minute.

    That is estimated from the most steps there are and how many a processor of 2025 does a second.
    """
    callback, seconds = _listener.get(), steps / per_second
    if callback is not None and seconds > _LONG_SECONDS:
        units = ((86400, "days"), (3600, "hours"), (60, "minutes"))
        length, unit = next((pair for pair in units if seconds >= 2 * pair[0]), units[-1])
        size = f"about {seconds / length:,.0f} {unit}"
        message = f"{task}: {steps:,.0f} steps, {size}; Ctrl-C ends it."
        callback(ProgressEvent(task, 0, None, message, seconds))


def track(items: Iterable[_T], task: str, total: int | None = None) -> Iterator[_T]:
    """Yield ``items``, telling the callback in force how many of them are finished.

    Between the first event, before the first item, and the last there are at most ten a second. A
    loop that is left early reports no end. The total is ``len(items)`` where there is one.
    """
    callback = _listener.get()
    if callback is None:
        yield from items
        return
    if total is None:
        total = len(items) if isinstance(items, Sized) else None
    if total != 0:
        callback(ProgressEvent(task, 0, total))
    count, reported_at = 0, time.monotonic()
    for item in items:
        yield item
        count += 1
        now = time.monotonic()
        if now - reported_at >= _QUIET_SECONDS and count != total:
            callback(ProgressEvent(task, count, total))
            reported_at = now
    callback(ProgressEvent(task, count, count))


@contextmanager
def reporting(callback: ProgressCallback | None) -> Iterator[None]:
    """Send the progress of everything inside the block to ``callback``; None silences it.

    Blocks nest: the innermost callback is the one that is called. It is called in the thread that
    computes, so it should return quickly.

    Args:
        callback: called with a `ProgressEvent`. What it raises ends the computation and reaches
            the caller of it.

    Raises:
        ParameterError: if ``callback`` is neither callable nor None.
    """
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback is {shown(callback)}; it must be callable or None.")
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def progress_bar(file: TextIO | None = None) -> Iterator[None]:
    """Show the progress of everything inside the block as bars on a terminal.

    A task is shown once it has lasted for a second; one that is over leaves no trace. The first
    estimate of more than a minute stays. Where ``file``, by default standard error, is no terminal,
    nothing else is written.
    """
    stream = sys.stderr if file is None else file
    # A process that was started with standard error closed has none.
    bars = None if stream is None else _Bars(stream)
    try:
        with reporting(bars):
            yield
    finally:
        if bars is not None:
            bars.stop()


class _Bars:
    """One line for each task that has lasted; the display exists only while there is a task.

    It draws itself several times a second, for the next event of a long step may be far away.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.announced = stream, False
        self.lines: dict[str, TaskID] = {}
        self.display: Display | None = None

    def __call__(self, event: ProgressEvent) -> None:
        if event.seconds is not None:
            if not self.announced:
                # Above the bars.
                self.stream.write(f"{event.message}\n")
                self.announced = True
        elif not self.stream.isatty():
            return
        elif event.total is None or event.done < event.total:
            if self.display is None:
                self.display = _display(self.stream)
                self.display.start()
            if event.task not in self.lines:
                self.lines[event.task] = self.display.add_task(
                    event.task, total=event.total, message=""
                )
            self.display.update(
                self.lines[event.task],
                completed=event.done,
                total=event.total,
                message=event.message,
            )
        elif self.display is not None and event.task in self.lines:
            self.display.remove_task(self.lines.pop(event.task))
            if not self.lines:
                # What the program prints next must not meet a live display.
                self.stop()

    def stop(self) -> None:
        """Take the bars off the screen."""
        if self.display is not None:
            self.display.stop()
        self.display = None
        self.lines.clear()


def _display(stream: TextIO) -> Display:
    """Return a display that shows the tasks that have lasted."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    class Lasting(Progress):
        def get_renderables(self) -> Iterator[Any]:
            lasting = [task for task in self.tasks if (task.elapsed or 0.0) >= _SHOWN_SECONDS]
            # An empty line is taken away at the end like any other.
            yield self.make_tasks_table(lasting) if lasting else ""

    return Lasting(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=Console(file=stream),
        transient=True,
        # Redirection would send the program's standard output to standard error.
        redirect_stdout=False,
        redirect_stderr=False,
    )
