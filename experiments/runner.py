"""Running experiments: one after another, or some at a time in processes of their own.

What was run before with the same parameters, data, code and libraries is taken from the store.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpopt import DpoptError, ParameterError
from experiments.catalogue import homes, of_module
from experiments.kept import Entry, draw, keep_run, write_outcome
from experiments.options import changed, sensible
from experiments.registry import Advance, Experiment, Outcome
from experiments.store import Keys, Store, keys_of
from experiments.times import last_seconds, seconds_of, until_done

CACHE = ".cache"
"""Folder of the store within the folder that is written to."""

_POLL = 0.1
# Set in the processes of a pool only.
_TOLD: Any = None


@dataclass(frozen=True)
class Job:
    """An experiment that is to be run.

    Attributes:
        experiment: as registered.
        config: of the run.
        full: whether the configuration started from that of the full run.
        style: of the pictures.
    """

    experiment: Experiment
    config: Any
    full: bool = False
    style: str = "plain"

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.experiment.name

    @property
    def registered(self) -> bool:
        """Whether the parameters are the experiment's own."""
        return self.config in (self.experiment.config, self.experiment.quick)

    def sensible(self) -> AbstractContextManager[None]:
        """Take an arithmetic failure of the block as parameters that make no sense."""
        return sensible(self.name, changed(self.experiment, asdict(self.config), self.full))

    @property
    def steps(self) -> int:
        """How often the run advances.

        Raises:
            ParameterError: if that cannot be told of a reader's parameters.
        """
        with self.sensible():
            return self.experiment.steps(self.config)


@dataclass(frozen=True)
class Made:
    """What came of a job.

    Attributes:
        outcome: None if it failed.
        pictures: as `experiments.kept.draw` returns them; none if it failed.
        seconds: that computing and drawing took, when they were done.
        reused: whether the tables are those of an earlier run.
        failure: why it failed; None if it did not.
        refused: whether it failed because a parameter is not allowed.
    """

    outcome: Outcome | None
    pictures: Mapping[str, bytes]
    seconds: float
    reused: bool = False
    failure: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Ended:
    """What came of several jobs, in their order.

    Attributes:
        entries: for the report.
        refused: why parameters of a reader's own were not allowed, by the experiment's name; what
            the folder keeps of it stays as it is.
    """

    entries: tuple[Entry, ...]
    refused: Mapping[str, str]


def run_all(
    jobs: Sequence[Job],
    out: Path,
    *,
    workers: int,
    store: Store | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Ended:
    """Run experiments and write the files of each as soon as it is done.

    Benchmarks (not repeatable) run alone and last, so that nothing disturbs their times.

    Args:
        jobs: what to run.
        out: folder to write to.
        workers: processes for the repeatable ones; 1 runs all in this process.
        store: of earlier results; a folder within ``out`` if None.
        say: told, in a sentence, how long it will take.
    """
    store = Store(out / CACHE) if store is None else store
    home = homes()
    keys = {
        job.name: keys_of(job.experiment, job.config, job.style, home.get(job.name)) for job in jobs
    }
    known = {job.name: made for job in jobs if (made := _stored(store, keys[job.name])) is not None}
    waiting = [job for job in jobs if job.name not in known]
    expected = {
        job.name: seconds_of(job.experiment, job.config, out, full=job.full) for job in waiting
    }
    say(_said(jobs, waiting, expected, _guessed(waiting, out), workers))
    found: dict[str, Entry] = {}
    refused: dict[str, str] = {}

    def keep(job: Job, made: Made) -> None:
        if made.refused and not job.registered:
            refused[job.name] = made.failure or ""
        else:
            found[job.name] = _keep(job, made, out)

    for job in jobs:
        if job.name in known:
            keep(job, known[job.name])
    together = _longest_first([job for job in waiting if job.experiment.repeatable], expected)
    alone = [job for job in waiting if not job.experiment.repeatable]
    if workers == 1 or len(together) < 2:
        together, alone = [], waiting
    if waiting:
        with display() as progress:
            with closing(_run_together(together, keys, store, workers, progress)) as ended:
                for job, made in ended:
                    keep(job, made)
            for job in alone:
                task = progress.add_task(job.name, total=job.steps)
                advance = partial(progress.advance, task)
                keep(job, make(job, keys[job.name], store, advance))
    store.limit()
    entries = tuple(found[job.name] for job in jobs if job.name in found)
    return Ended(entries, {job.name: refused[job.name] for job in jobs if job.name in refused})


def make(job: Job, keys: Keys | None, store: Store, advance: Advance) -> Made:
    """Compute and draw what the store does not hold; what fails on purpose is told, not raised.

    Args:
        job: what to run.
        keys: of its results; None if they are not kept.
        store: of earlier results.
        advance: called at each step.
    """
    start = time.perf_counter()
    try:
        outcome, computing, reused = computed(job, keys, store, advance)
        pictures, drawing = pictured(job, outcome, keys, store)
    except DpoptError as error:
        seconds, refused = time.perf_counter() - start, isinstance(error, ParameterError)
        return Made(None, {}, seconds, failure=str(error), refused=refused)
    return Made(outcome, pictures, computing + drawing, reused)


def computed(
    job: Job, keys: Keys | None, store: Store, advance: Advance
) -> tuple[Outcome, float, bool]:
    """Return the outcome of a job, the seconds it took, and whether it was kept from before.

    Verdicts are kept only where the parameters are the paper's.
    """
    kept = None if keys is None else store.get("tables", keys.tables)
    if kept is not None:
        return *kept, True
    start = time.perf_counter()
    with job.sensible():
        outcome = job.experiment.run(job.config, advance)
    if not job.experiment.at_paper(job.config):
        outcome = replace(outcome, comparisons=())
    seconds = time.perf_counter() - start
    if keys is not None:
        store.put("tables", keys.tables, (outcome, seconds))
    return outcome, seconds, False


def pictured(
    job: Job, outcome: Outcome, keys: Keys | None, store: Store
) -> tuple[dict[str, bytes], float]:
    """Return the pictures of a job, and the seconds that drawing them took."""
    kept = None if keys is None else store.get("pictures", keys.pictures)
    if kept is not None:
        return kept
    start = time.perf_counter()
    with job.sensible():
        pictures = draw(job.experiment, outcome, job.style)
    seconds = time.perf_counter() - start
    if keys is not None:
        store.put("pictures", keys.pictures, (pictures, seconds))
    return pictures, seconds


def entry_of(job: Job, made: Made) -> Entry:
    """Return what the report says of a job that is done."""
    return Entry(
        job.experiment,
        made.outcome,
        made.seconds,
        made.failure,
        full=job.full,
        configuration=asdict(job.config),
        style=job.style,
        own_parameters=not job.experiment.at_paper(job.config),
        reused=made.reused,
    )


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


def _longest_first(jobs: Sequence[Job], expected: Mapping[str, float | None]) -> list[Job]:
    """Return jobs in an order in which the last ones end at about the same time.

    One of unknown time may be the longest.
    """

    def length(job: Job) -> float:
        seconds = expected[job.name]
        return math.inf if seconds is None else seconds

    return sorted(jobs, key=length, reverse=True)


def _stored(store: Store, keys: Keys | None) -> Made | None:
    """Return what is kept of a job; None if a part is missing."""
    if keys is None:
        return None
    tables, pictures = store.get("tables", keys.tables), store.get("pictures", keys.pictures)
    if tables is None or pictures is None:
        return None
    return Made(tables[0], pictures[0], tables[1] + pictures[1], reused=True)


def _keep(job: Job, made: Made, out: Path) -> Entry:
    """Write the files of a job that is done."""
    entry = entry_of(job, made)
    if made.outcome is not None:
        write_outcome(entry, out, made.pictures)
    keep_run(entry, out)
    return entry


def _said(
    jobs: Sequence[Job],
    waiting: Sequence[Job],
    expected: Mapping[str, float | None],
    guessed: Sequence[Job],
    workers: int,
) -> str:
    """Return how many items there are and how long they take, as far as that is known."""
    items = f"{len(jobs)} item{'s' if len(jobs) != 1 else ''}"
    kept = len(jobs) - len(waiting)
    if not waiting:
        return f"{items}, all kept from earlier runs"
    times = [expected[job.name] for job in waiting if job not in guessed]
    known = [seconds for seconds in times if seconds is not None]
    parts = [f"{kept} kept"] if kept else []
    if unknown := len(times) - len(known):
        parts.append(f"{unknown} of unknown time")
    if guessed:
        usual = sum(expected[job.name] or 0.0 for job in guessed)
        parts.append(f"{len(guessed)} with own parameters; with the paper's {_rounded(usual)}")
    said = f" ({', '.join(parts)})" if parts else ""
    if not known:
        return f"{items}{said}"
    used = min(workers, len(waiting))
    took = until_done(sorted(known, reverse=True), used)
    with_workers = f" with {used} workers" if used > 1 else ""
    return f"{items}, about {_rounded(took)}{with_workers}{said}"


def _guessed(waiting: Sequence[Job], out: Path) -> list[Job]:
    """Return the jobs of which nobody knows how long their own parameters take."""
    return [
        job
        for job in waiting
        if not job.registered and last_seconds(job.experiment, job.config, out) is None
    ]


def _rounded(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 120 else f"{round(seconds / 60)} minutes"


def _run_together(
    jobs: Sequence[Job],
    keys: Mapping[str, Keys | None],
    store: Store,
    workers: int,
    progress: Progress,
) -> Generator[tuple[Job, Made]]:
    """Yield each job as it is done, in processes that an interrupt ends."""
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    told = context.SimpleQueue()
    workers = min(workers, len(jobs))
    modules = homes()
    with ProcessPoolExecutor(workers, context, _begin, (told,)) as pool:
        tasks = {job.name: progress.add_task(job.name, total=job.steps) for job in jobs}
        waiting: dict[Future[Made], Job] = {}
        for job in jobs:
            given = (modules[job.name], job.name, job.config, job.full, job.style)
            waiting[pool.submit(_run_named, given, keys[job.name], store)] = job
        try:
            while waiting:
                done, _ = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
                while not told.empty():
                    progress.advance(tasks[told.get()])
                for future in done:
                    yield waiting.pop(future), _result(future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _result(future: Future[Made]) -> Made:
    try:
        return future.result()
    except BrokenProcessPool:
        said = "a process of this run was ended from outside; run it again."
        return Made(None, {}, 0.0, failure=said)


def _begin(told: Any) -> None:  # noqa: ANN401
    """Start a process of the pool: an interrupt is for the process that started it."""
    global _TOLD  # noqa: PLW0603 - what a pool hands to its processes has no other place
    _TOLD = told
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_named(given: tuple[str, str, Any, bool, str], keys: Keys | None, store: Store) -> Made:
    """Run one experiment in a process of the pool, which tells its name at each step."""
    module, name, config, full, style = given
    experiment = next(each for each in of_module(module) if each.name == name)
    # Code that was edited since the run started must not be kept as what it was before.
    same = keys is not None and keys_of(experiment, config, style, module) == keys
    job = Job(experiment, config, full, style)
    return make(job, keys if same else None, store, lambda: _TOLD.put(name))
