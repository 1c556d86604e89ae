"""Running experiments: one after another, or some at a time in processes of their own."""

from __future__ import annotations

import multiprocessing
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpopt import DpoptError
from experiments.catalogue import all_experiments
from experiments.kept import Entry, write_outcome
from experiments.registry import Advance, Experiment, Outcome

Result = tuple[Outcome | None, float, str | None]
_POLL = 0.1


def run_all(chosen: Sequence[Experiment], out: Path, *, full: bool, workers: int) -> list[Entry]:
    """Run experiments and write their files; entries in the order of ``chosen``.

    Benchmarks (not repeatable) run alone and last, so that nothing disturbs their times.

    Args:
        chosen: what to run.
        out: folder to write to.
        full: whether to take the full configuration.
        workers: processes for the repeatable ones; 1 runs all in this process.
    """
    repeatable = [experiment for experiment in chosen if experiment.repeatable]
    alone = [experiment for experiment in chosen if not experiment.repeatable]
    if workers == 1 or len(repeatable) < 2:
        repeatable, alone = [], list(chosen)
    found: dict[str, Result] = {}
    with display() as progress:
        if repeatable:
            found |= _run_together(repeatable, out, full, min(workers, len(repeatable)), progress)
        for experiment in alone:
            config = experiment.config if full else experiment.quick
            task = progress.add_task(experiment.name, total=experiment.steps(config))
            found[experiment.name] = _run(
                experiment, out, full, lambda task=task: progress.advance(task)
            )
    return [Entry(experiment, *found[experiment.name]) for experiment in chosen]


def run_here(chosen: Sequence[Experiment], out: Path, *, full: bool) -> list[Entry]:
    """Run experiments one after another and write their files; what fails is raised."""
    entries = []
    for experiment in chosen:
        config = experiment.config if full else experiment.quick
        start = time.perf_counter()
        with advancing(experiment.name, experiment.steps(config)) as advance:
            outcome = experiment.run(config, advance)
        write_outcome(experiment, outcome, out, full=full)
        entries.append(Entry(experiment, outcome, time.perf_counter() - start))
    return entries


@contextmanager
def advancing(title: str, total: int) -> Iterator[Advance]:
    """Show one bar while the block runs; yield what moves it by a step."""
    with display() as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def display() -> Iterator[Progress]:
    """Show bars on standard error while the block runs."""
    with Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as progress:
        yield progress


def _run(experiment: Experiment, out: Path, full: bool, advance: Advance) -> Result:
    """Return the outcome, the seconds, and why it failed."""
    start = time.perf_counter()
    try:
        outcome = experiment.run(experiment.config if full else experiment.quick, advance)
        write_outcome(experiment, outcome, out, full=full)
    except DpoptError as error:
        return None, time.perf_counter() - start, str(error)
    return outcome, time.perf_counter() - start, None


def _run_named(name: str, out: Path, full: bool, told: Any) -> Result:  # noqa: ANN401
    """Run one experiment in a process of the pool; ``told`` receives its name at each step."""
    return _run(all_experiments()[name], out, full, lambda: told.put(name))


def _run_together(
    chosen: Sequence[Experiment], out: Path, full: bool, workers: int, progress: Progress
) -> dict[str, Result]:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(workers, context) as pool:
        told = manager.Queue()
        waiting: dict[Future[Result], str] = {}
        tasks = {}
        for experiment in chosen:
            config = experiment.config if full else experiment.quick
            tasks[experiment.name] = progress.add_task(
                experiment.name, total=experiment.steps(config)
            )
            future = pool.submit(_run_named, experiment.name, out, full, told)
            waiting[future] = experiment.name
        found: dict[str, Result] = {}
        try:
            while waiting:
                done, _ = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
                _advance_told(told, progress, tasks)
                for future in done:
                    found[waiting.pop(future)] = future.result()
            _advance_told(told, progress, tasks)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return found


def _advance_told(told: Any, progress: Progress, tasks: dict[str, Any]) -> None:  # noqa: ANN401
    while True:
        try:
            progress.advance(tasks[told.get_nowait()])
        except queue.Empty:
            return
