"""Running a sweep: what is missing of a grid, here or on joblib's workers, each result kept."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import ProgressCallback, advance, reporting
from dpopt.sweeps.call import SECONDS, Outcome, compute, packed
from dpopt.sweeps.deal import Deal
from dpopt.sweeps.grid import FAILURE, Grid, Point, fingerprint, name_of, points_of
from dpopt.sweeps.pools import check_installed, pool_of
from dpopt.sweeps.result import Effort, Failure, SweepResult
from dpopt.sweeps.table import Done, Lines, Table

BACKENDS = ("processes", "threads", "dask", "current")


def sweep(
    function: Callable[..., Any],
    grid: Grid,
    *,
    workers: int = 1,
    backend: str = "processes",
    table: str | Path | None = None,
    progress: ProgressCallback | None = None,
    on_error: str = "raise",
    tries: int = 2,
    version: str | None = None,
) -> SweepResult:
    """Call a function at every point of a grid, in parallel, and keep what is done.

    >>> sweep(lambda a, b: a * b, {"a": [2, 3], "b": [10, 20]}).records[1]
    {'a': 2, 'b': 20, 'value': 40}

    With a table, what a worker brings back is written at once: a point, or as many quick ones as
    took it half a second. A sweep that was interrupted (Ctrl-C, an exception, a killed process, a
    lost scheduler) is continued by the same call: points in the table are not computed again,
    those that failed are. Several processes may fill one table at the same time,
    where its file system has locks: none loses a point of another, and a point that another has
    finished meanwhile is taken from the table, unless it was already begun. Ctrl-C ends the
    workers and raises KeyboardInterrupt; threads, which cannot be ended, finish the point they are
    at.

    Several workers need the extra ``sweeps`` (joblib). The function may be a lambda or a closure;
    other processes get a copy of it. Random numbers: seed them from a parameter of the point, as
    workers share no generator.

    A worker that dies, whatever killed it, takes no point along: its points are computed again.
    Processes of this machine end together when one of them dies, a worker of a cluster with all
    its threads. So points that were there in company are handed in one by one, and if their worker
    dies again, each alone after all others. A point whose worker has died ``tries`` times while
    it was alone there is given up: it raises, or is recorded as, a ``WorkerError``.

    Args:
        function: called with the parameters of a point as keywords. It returns a mapping from
            names to values, or one value (kept as ``value``), made of numbers, strings, truth
            values, None, lists and mappings; numpy's scalars and arrays become numbers and lists.
        grid: values for each parameter, whose product is swept, the last one fastest; or a list of
            points, each a mapping with the same names.
        workers: at least 1, of which no more start than there are points; with 1 the function
            runs in this process (unless ``backend`` is ``"dask"`` or ``"current"``, which have
            their own workers).
        backend: ``"processes"``, ``"threads"`` (for functions that release the lock of the
            interpreter), ``"dask"`` (the cluster of the current ``dask.distributed.Client``, whose
            workers need dpopt too), or ``"current"``, that of the surrounding
            ``joblib.parallel_config``, where a worker that dies is joblib's concern.
        table: file of JSON lines, created if missing; None keeps nothing on disk. A table belongs
            to one function and one set of parameter names; the grid may grow or shrink. On a file
            system without locks it warns (RuntimeWarning): then one process at a time may use it.
        progress: called after each point with a `dpopt.ProgressEvent` (with one worker also by
            what runs inside the function); by default what `dpopt.reporting` has set. What it
            raises ends the sweep.
        on_error: ``"raise"`` the first exception of the function, or ``"record"`` it and go on.
        tries: how many workers a point may end, at least 1, with ``"processes"`` and ``"dask"``.
        version: stands for the function in the table in place of its code, so that an edit that
            leaves results as they are does not part the function from its table. None: the code
            of the function itself (not of what it calls) and dpopt's version.

    Returns:
        The records in the order of the grid.

    Raises:
        ParameterError: for a grid, table or option that cannot be used, or if the function
            returns something else than the above.
        ImportError: if joblib or Dask is needed and missing.
        WorkerError: for ``on_error="raise"``, if a point is given up; and if the scheduler of the
            cluster is lost.
        Exception: what the function raised, for ``on_error="raise"``.
    """
    if not callable(function):
        raise ParameterError(f"function is {_checks.shown(function)}; it must be callable.")
    workers = _checks.integer("workers", workers, 1)
    _checks.choice("backend", backend, BACKENDS)
    _checks.choice("on_error", on_error, ("raise", "record"))
    tries = _checks.integer("tries", tries, 1)
    points = points_of(grid)
    with ExitStack() as stack:
        if progress is not None:
            stack.enter_context(reporting(progress))
        kept: Lines = Lines()
        if table is not None:
            mark, names = fingerprint(function, version), list(points[0].parameters)
            kept = stack.enter_context(Table(Path(table), name_of(function), mark, names))
        todo = [index for index, point in enumerate(points) if not kept.done(point.key)]
        advance("sweep", len(points) - len(todo), len(points))
        start = time.perf_counter()
        dealt = stack.enter_context(
            _outcomes(function, points, todo, kept, workers, backend, tries)
        )
        computed, batches = _collect(dealt, points, todo, kept, on_error)
        elapsed = time.perf_counter() - start
    deaths, repeated = (dealt.deaths, dealt.repeated) if isinstance(dealt, Deal) else (0, 0)
    effort = Effort(computed, elapsed, batches, deaths, repeated)
    return _result(function, points, kept.lines, effort)


def _collect(
    dealt: Iterable[tuple[Outcome, ...]],
    points: Sequence[Point],
    todo: Sequence[int],
    kept: Lines,
    on_error: str,
) -> tuple[int, int]:
    """Keep the outcomes as they come; return how many there were, in how many batches."""
    computed, batches, seen, written = 0, 0, 0, time.monotonic()
    waiting = {points[index].key for index in todo}
    try:
        for outcomes in dealt:
            batches += 1
            for outcome in outcomes:
                computed += 1
                point = points[outcome.index]
                kept.append(_line(point, outcome, on_error))
                waiting.discard(point.key)
                if kept.foreign != seen:
                    seen, waiting = kept.foreign, {key for key in waiting if not kept.done(key)}
                advance("sweep", len(points) - len(waiting), len(points), _in_words(point))
            # The disk takes longer to be sure than a quick point to be computed.
            if time.monotonic() - written > SECONDS:
                kept.flush()
                written = time.monotonic()
    finally:
        kept.flush()
    return computed, batches


def _left(points: Sequence[Point], todo: Sequence[int], kept: Lines) -> Iterator[int]:
    """Yield what nobody has finished: in order, but at random once others fill the table too.

    They may have started at the same point and be as fast: in order, all would be done twice.
    """
    left, rng = list(reversed(todo)), random.Random()
    while left:
        if kept.foreign:
            place = rng.randrange(len(left))
            left[place], left[-1] = left[-1], left[place]
        index = left.pop()
        if not kept.done(points[index].key):
            yield index


def _line(point: Point, outcome: Outcome, on_error: str) -> Done:
    """Return what is kept of an outcome; raise its error if that is wanted."""
    error = outcome.error
    if error is None:
        return Done(point.parameters, outcome.values, outcome.seconds)
    if outcome.unusable or on_error == "raise":
        error.add_note(f"raised at the point {point.key} of a sweep")
        raise error
    kind, message = outcome.failure
    failure = Failure(point.parameters, kind, message)
    return Done(point.parameters, {}, outcome.seconds, failure)


def _result(
    function: Callable[..., Any], points: Sequence[Point], found: Mapping[str, Done], effort: Effort
) -> SweepResult:
    records, failures = [], []
    lines = [found[point.key] for point in points]
    for point, line in zip(points, lines, strict=True):
        record = {**point.parameters, **line.values}
        if line.failure is not None:
            failures.append(line.failure)
            record[FAILURE] = str(line.failure)
        records.append(record)
    return SweepResult(
        function=name_of(function),
        parameters=tuple(points[0].parameters),
        records=tuple(records),
        failures=tuple(failures),
        seconds=tuple(line.seconds for line in lines),
        reused=len(points) - effort.computed,
        effort=effort,
    )


def _in_words(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.parameters.items())


@contextmanager
def _outcomes(
    function: Callable[..., Any],
    points: Sequence[Point],
    todo: Sequence[int],
    kept: Lines,
    workers: int,
    backend: str,
    tries: int,
) -> Iterator[Iterable[tuple[Outcome, ...]]]:
    """Yield the outcomes, which come as they are ready; the workers end with the block."""
    if not todo:
        yield ()
        return
    left = _left(points, todo, kept)
    if workers == 1 and backend in ("processes", "threads"):
        yield ((compute(function, index, points[index].arguments),) for index in left)
    elif backend == "current":
        with _by_joblib(function, points, left) as outcomes:
            yield outcomes
    else:
        # A worker without a point would only take its time to start.
        pool, finished = pool_of(backend, function, min(workers, len(todo))), False
        try:
            yield Deal(pool, points, left, len(todo), tries, kept)
            finished = True
        finally:
            pool.close(finished)


@contextmanager
def _by_joblib(
    function: Callable[..., Any], points: Sequence[Point], left: Iterable[int]
) -> Iterator[Iterable[tuple[Outcome, ...]]]:
    """Hand the points one by one to whatever joblib is configured to use."""
    check_installed("current")
    packed(function)
    import joblib  # pyright: ignore[reportMissingImports]

    calls = (joblib.delayed(compute)(function, i, points[i].arguments, True) for i in left)
    outcomes: Any = joblib.Parallel(batch_size=1, return_as="generator_unordered")(calls)
    try:
        yield ((outcome,) for outcome in outcomes)
    finally:
        with warnings.catch_warnings():
            # That work under way is lost is known to whoever interrupts.
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()
