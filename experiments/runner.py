"""Running experiments: one after another, or some at a time in processes of their own.

What was run before with the same parameters, data, code and libraries is taken from the store.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpopt import DpoptError, ParameterError
from experiments import style as styles
from experiments.catalogue import named
from experiments.entry import make_folder
from experiments.kept import Entry, draw, keep_run, last_seconds, write_outcome
from experiments.parameters import changed, configured, sensible
from experiments.registry import Experiment, Outcome, telling, track
from experiments.store import Keys, Store, keys_of

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

    @property
    def keys(self) -> Keys | None:
        """The keys of its results; None if they are not kept."""
        return keys_of(self.experiment, self.config, self.style)

    def sensible(self) -> AbstractContextManager[None]:
        """Take an arithmetic failure of the block as parameters that make no sense."""
        return sensible(self.name, changed(self.experiment, asdict(self.config), self.full))


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
    made = {job.name: kept for job in jobs if (kept := _kept(job, store)) is not None}
    waiting = _longest_first([job for job in jobs if job.name not in made], out)
    say(_told(len(jobs), len(waiting)))
    found: dict[str, Entry] = {}
    refused: dict[str, str] = {}

    def keep(job: Job, made: Made) -> None:
        own = job.config not in (job.experiment.config, job.experiment.quick)
        if made.refused and own:
            refused[job.name] = made.failure or ""
            return
        entry = found[job.name] = entry_of(job, made)
        if made.outcome is not None:
            write_outcome(entry, out, made.pictures)
        keep_run(entry, out)

    by_name = {job.name: job for job in jobs}
    for name, known in made.items():
        keep(by_name[name], known)
    together = [job for job in waiting if job.experiment.repeatable]
    if workers == 1 or len(together) < 2:
        together = []
    if together:
        with progress("experiments"):
            for name, done in track(_in_processes(together, store, workers), len(together)):
                keep(by_name[name], done)
    for job in waiting:
        if job not in together:
            with progress(job.name):
                keep(job, make(job, store))
    store.limit()
    return (
        tuple(found[job.name] for job in jobs if job.name in found),
        {job.name: refused[job.name] for job in jobs if job.name in refused},
    )


def make(job: Job, store: Store) -> Made:
    """Compute and draw what the store does not hold; what fails on purpose is told, not raised."""
    start, keys = time.perf_counter(), job.keys
    try:
        outcome, computing, reused = computed(job, keys, store)
        pictures, drawing = pictured(job, outcome, keys, store)
    except DpoptError as error:
        seconds, refused = time.perf_counter() - start, isinstance(error, ParameterError)
        return Made(None, {}, seconds, failure=str(error), refused=refused)
    return Made(outcome, pictures, computing + drawing, reused)


def computed(job: Job, keys: Keys | None, store: Store) -> tuple[Outcome, float, bool]:
    """Return the outcome of a job, the seconds it took, and whether it was kept from before.

    Verdicts are kept only where the parameters are the paper's.
    """
    kept = None if keys is None else store.get("tables", keys.tables)
    if kept is not None:
        return *kept, True
    start = time.perf_counter()
    with job.sensible():
        outcome = job.experiment.run(job.config)
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


def _kept(job: Job, store: Store) -> Made | None:
    """Return what is kept of a job; None if a part is missing."""
    keys = job.keys
    if keys is None:
        return None
    tables, pictures = store.get("tables", keys.tables), store.get("pictures", keys.pictures)
    if tables is None or pictures is None:
        return None
    return Made(tables[0], pictures[0], tables[1] + pictures[1], reused=True)


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


def _in_processes(jobs: Sequence[Job], store: Store, workers: int) -> Iterator[tuple[str, Made]]:
    """Yield each job's name and what came of it, as it is done."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # An experiment is found by its name in the other process.
    given = [(job.name, vars(job) | {"experiment": None}) for job in jobs]
    pool = Parallel(workers, return_as="generator_unordered", pre_dispatch="all", batch_size=1)
    done: set[str] = set()
    try:
        for name, made in pool(delayed(_make_named)(*each, store) for each in given):
            done.add(name)
            yield name, made
    except TerminatedWorkerError:
        said = "a process of this run was ended from outside; run it again."
        for job in jobs:
            if job.name not in done:
                yield job.name, Made(None, {}, 0.0, failure=said)


def _make_named(name: str, about: Mapping[str, Any], store: Store) -> tuple[str, Made]:
    """Run one experiment in a process of the pool; an interrupt is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return name, make(Job(**{**about, "experiment": named(name)}), store)


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
    job = Job(experiment, config, full, style)
    keys = job.keys
    store = Store(None if kept is None else Path(kept))
    outcome, seconds, reused = computed(job, keys, store)
    if folder is None:
        return entry_of(job, Made(outcome, {}, seconds, reused))
    pictures, drawing = pictured(job, outcome, keys, store)
    entry = entry_of(job, Made(outcome, pictures, seconds + drawing, reused))
    write_outcome(entry, folder, pictures)
    keep_run(entry, folder)
    return entry
