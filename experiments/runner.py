"""Running experiments: one after another, or some at a time in processes of their own.

What was run before with the same parameters, data, code and libraries is taken from the store.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpopt import DpoptError, ParameterError
from experiments import style as styles
from experiments.catalogue import named
from experiments.entry import make_folder
from experiments.kept import Entry, draw, last_seconds
from experiments.parameters import changed, configured, sensible
from experiments.registry import Experiment, Outcome, telling, track
from experiments.store import Store, keys_of

_Value = TypeVar("_Value")

CACHE = ".cache"
"""Folder of the store within the folder that is written to."""


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

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The keys of its results; none if they are not kept."""
        return keys_of(self.experiment, self.config, self.style)

    def entry(self, outcome: Outcome | None, seconds: float, failure: str | None = None) -> Entry:
        """Return what the report says of it when it is done."""
        return Entry(
            self.experiment,
            outcome,
            seconds,
            failure,
            full=self.full,
            configuration=asdict(self.config),
            style=self.style,
            own_parameters=not self.experiment.at_paper(self.config),
        )

    def timed(self, compute: Callable[[], _Value]) -> tuple[_Value, float]:
        """Return what a part of the run makes, and how many seconds it took.

        An arithmetic failure is that of a reader's parameters, which make no sense.
        """
        start = time.perf_counter()
        own = changed(self.experiment, asdict(self.config), self.full)
        with sensible(self.name, own):
            value = compute()
        return value, time.perf_counter() - start


@dataclass(frozen=True)
class Made:
    """What came of a job.

    Attributes:
        entry: for the report.
        pictures: as `experiments.kept.draw` returns them; none if it failed.
        refused: why a reader's own parameters are not allowed; None if they are.
    """

    entry: Entry
    pictures: Mapping[str, bytes]
    refused: str | None = None


def run_all(
    jobs: Sequence[Job],
    out: Path,
    *,
    workers: int,
    store: Store | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Entry, ...], dict[str, str]]:
    """Run experiments and write the files of each as soon as it is done.

    Returns entries for the report, and by the experiment's name why a reader's own parameters were
    refused: what the folder keeps of such an experiment stays as it is.

    Benchmarks (not repeatable) run alone and last, so that nothing disturbs their times.
    """
    store = Store(out / CACHE) if store is None else store
    kept = [job for job in jobs if store.holds(job.keys)]
    waiting = _longest_first([job for job in jobs if job not in kept], out)
    say(_told(len(jobs), len(waiting)))
    made: dict[str, Made] = {}

    def keep(done: Made) -> None:
        made[done.entry.experiment.name] = done
        if done.refused is None:
            done.entry.save(out, done.pictures)

    for job in kept:
        keep(make(job, store))
    together = [job for job in waiting if job.experiment.repeatable]
    if workers == 1 or len(together) < 2:
        together = []
    if together:
        with progress("experiments"):
            for done in track(_in_processes(together, store, workers), len(together)):
                keep(done)
    for job in waiting:
        if job not in together:
            with progress(job.name):
                keep(make(job, store))
    store.limit()
    in_order = [made[job.name] for job in jobs]
    refused = {each.entry.experiment.name: each.refused for each in in_order if each.refused}
    return tuple(each.entry for each in in_order if not each.refused), refused


def make(job: Job, store: Store) -> Made:
    """Compute and draw what the store does not hold; what fails on purpose is told, not raised."""
    start = time.perf_counter()
    try:
        return pictured(job, computed(job, store), store)
    except DpoptError as error:
        entry = job.entry(None, time.perf_counter() - start, str(error))
        own = job.config not in (job.experiment.config, job.experiment.quick)
        refused = own and isinstance(error, ParameterError)
        return Made(entry, {}, str(error) if refused else None)


def computed(job: Job, store: Store) -> Entry:
    """Return the outcome of a job; the seconds are of the run that computed it.

    Verdicts are kept only where the parameters are the paper's.
    """

    def compute() -> Outcome:
        outcome = job.experiment.run(job.config)
        at_paper = job.experiment.at_paper(job.config)
        return outcome if at_paper else replace(outcome, comparisons=())

    (outcome, seconds), kept = store.get("tables", job.keys, lambda: job.timed(compute))
    return replace(job.entry(outcome, seconds), reused=kept)


def pictured(job: Job, entry: Entry, store: Store) -> Made:
    """Draw what was computed; the seconds are of both."""
    outcome = entry.outcome or Outcome({})

    def drawing() -> tuple[dict[str, bytes], float]:
        return job.timed(lambda: draw(job.experiment, outcome, job.style))

    (pictures, seconds), _ = store.get("pictures", job.keys, drawing)
    return Made(replace(entry, seconds=(entry.seconds or 0.0) + seconds), pictures)


@contextmanager
def progress(title: str) -> Iterator[None]:
    """Show a bar of the runs in the block on standard error."""
    with Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as shown:
        task, total = shown.add_task(title, total=None), 0

        def moved(done: int, more: int) -> None:
            nonlocal total
            total += more
            shown.update(task, total=total, advance=done)

        with telling(moved):
            yield


def _longest_first(jobs: Iterable[Job], out: Path) -> list[Job]:
    """Return jobs in an order in which the last ones end at about the same time.

    One of unknown time may be the longest.
    """

    def length(job: Job) -> float:
        seconds = last_seconds(job.experiment, job.config, out)
        return math.inf if seconds is None else seconds

    return sorted(jobs, key=length, reverse=True)


def _told(count: int, waiting: int) -> str:
    """Return how many items there are, and how many of them are kept."""
    items = f"{count} item{'s' if count != 1 else ''}"
    if not waiting:
        return f"{items}, all kept from earlier runs"
    return items if waiting == count else f"{items}, {count - waiting} kept from earlier runs"


def _in_processes(jobs: Sequence[Job], store: Store, workers: int) -> Iterator[Made]:
    """Yield what came of each job, as it is done."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    pool = Parallel(workers, return_as="generator_unordered", pre_dispatch="all", batch_size=1)
    done: set[str] = set()
    try:
        for made in pool(delayed(_make_in_a_pool)(job, store) for job in jobs):
            done.add(made.entry.experiment.name)
            yield made
    except TerminatedWorkerError:
        said = "a process of this run was ended from outside; run it again."
        for job in jobs:
            if job.name not in done:
                yield Made(job.entry(None, 0.0, said), {})


def _make_in_a_pool(job: Job, store: Store) -> Made:
    """Run one experiment; an interrupt is for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return make(job, store)


def run(
    name: str,
    /,
    *,
    full: bool = False,
    style: str = "plain",
    out: str | Path | None = None,
    cache: str | Path | None = None,
    **settings: object,
) -> Entry:
    """Run one experiment, with some parameters of one's own.

    Args:
        name: of the experiment; see ``python -m experiments list``.
        full: whether the other parameters are those of the full run.
        style: of the figure, one of `experiments.style.STYLES`.
        out: folder to write the files to; None to write none.
        cache: folder to keep results in, so that the same run takes no time again; by default
            ``.cache`` in ``out`` if that is given, else nothing is kept.
        settings: values by the name of their field; see ``python -m experiments show NAME``.

    Raises:
        ParameterError: if a name or a value is none that is allowed.
    """
    experiment = named(name)
    config = configured(experiment, full, settings)
    with styles.context(style):
        pass
    folder = None if out is None else Path(out)
    if folder is not None:
        make_folder(folder)
    kept = folder / CACHE if cache is None and folder is not None else cache
    job, store = Job(experiment, config, full, style), Store(None if kept is None else Path(kept))
    entry = computed(job, store)
    if folder is None:
        return entry
    made = pictured(job, entry, store)
    made.entry.save(folder, made.pictures)
    return made.entry
