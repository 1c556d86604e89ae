"""Running a sweep: what is missing of a grid, here or on joblib's workers, each result kept."""

from __future__ import annotations

import pickle
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from dpopt import _checks
from dpopt._errors import DpoptError, ParameterError
from dpopt._progress import ProgressCallback, advance, reporting
from dpopt.sweeps.grid import FAILURE, Grid, Point, fingerprint, name_of, plain, points_of
from dpopt.sweeps.result import Failure, SweepResult
from dpopt.sweeps.table import Done, Lines, Table

BACKENDS = ("processes", "threads", "dask", "current")

_NOT_PORTABLE = (pickle.PickleError, TypeError, AttributeError, ValueError, ImportError)


@dataclass(frozen=True)
class Outcome:
    """What one call gave.

    Attributes:
        index: of the point.
        values: what the function returned, as values of JSON.
        seconds: of computation.
        error: what it raised instead, or what stands for that on the way between processes.
        failure: the name of the exception's class, and its text.
        unusable: whether what it returned cannot be kept, which is always raised.
    """

    index: int
    values: Mapping[str, Any]
    seconds: float
    error: Exception | None = None
    failure: tuple[str, str] = ("", "")
    unusable: bool = False


def _compute(
    function: Callable[..., Any], index: int, arguments: Mapping[str, Any], away: bool = False
) -> Outcome:
    """Call the function at one point; ``away`` if the outcome goes to another process."""
    start = time.perf_counter()
    try:
        returned = function(**arguments)
    except Exception as error:  # noqa: BLE001
        # Whatever a user's function may raise; it is raised again, or recorded, by the caller.
        seconds = time.perf_counter() - start
        failure = (type(error).__name__, str(error))
        return Outcome(index, {}, seconds, _portable(error) if away else error, failure)
    seconds = time.perf_counter() - start
    try:
        return Outcome(index, _values(returned, arguments), seconds)
    except ParameterError as error:
        return Outcome(index, {}, seconds, error, unusable=True)


def _values(returned: object, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a function returned as named values of JSON."""
    if not isinstance(returned, Mapping):
        returned = {"value": returned}
    values = cast(Mapping[str, Any], plain(returned, "what the function returned"))
    for name in values:
        if name == FAILURE or name in parameters:
            taken = "kept for failures" if name == FAILURE else "a parameter"
            raise ParameterError(
                f"what the function returned has the name {name!r}, which is {taken}; use another."
            )
    return values


def _portable(error: Exception) -> Exception:
    """Return an exception that survives the way to another process: this one, or its text.

    Its traceback does not; it goes along as a note.
    """
    import cloudpickle  # pyright: ignore[reportMissingImports]

    note = "in the worker:\n" + "".join(traceback.format_exception(error))
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except _NOT_PORTABLE:
        error = DpoptError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error


def sweep(
    function: Callable[..., Any],
    grid: Grid,
    *,
    workers: int = 1,
    backend: str = "processes",
    table: str | Path | None = None,
    progress: ProgressCallback | None = None,
    on_error: str = "raise",
    version: str | None = None,
) -> SweepResult:
    """Call a function at every point of a grid, in parallel, and keep what is done.

    >>> sweep(lambda a, b: a * b, {"a": [2, 3], "b": [10, 20]}).records[1]
    {'a': 2, 'b': 20, 'value': 40}

    With a table, every finished point is on disk at once. A sweep that was interrupted (Ctrl-C, an
    exception, a killed process) is continued by the same call: points in the table are not
    computed again, those that failed are. Several processes may fill one table at the same time,
    where its file system has locks: none loses a point of another, and a point that another has
    finished meanwhile is taken from the table, unless it was already begun. Ctrl-C ends the
    workers and raises KeyboardInterrupt; threads, which cannot be ended, finish the point they are
    at.

    Several workers need the extra ``sweeps`` (joblib). The function may be a lambda or a closure;
    other processes get a copy of it. Random numbers: seed them from a parameter of the point, as
    workers share no generator. A Dask worker that dies again and again is not noticed by joblib:
    the sweep then waits until it is interrupted.

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
            ``joblib.parallel_config``.
        table: file of JSON lines, created if missing; None keeps nothing on disk. A table belongs
            to one function and one set of parameter names; the grid may grow or shrink. On a file
            system without locks it warns (RuntimeWarning): then one process at a time may use it.
        progress: called after each point with a `dpopt.ProgressEvent` (with one worker also by
            what runs inside the function); by default what `dpopt.reporting` has set. What it
            raises ends the sweep.
        on_error: ``"raise"`` the first exception of the function, or ``"record"`` it and go on.
        version: stands for the function in the table in place of its code, so that an edit that
            leaves results as they are does not part the function from its table. None: the code
            of the function itself (not of what it calls) and dpopt's version.

    Returns:
        The records in the order of the grid.

    Raises:
        ParameterError: for a grid, table or option that cannot be used, or if the function
            returns something else than the above.
        ImportError: if joblib or Dask is needed and missing.
        Exception: what the function raised, for ``on_error="raise"``.
    """
    if not callable(function):
        raise ParameterError(f"function is {_checks.shown(function)}; it must be callable.")
    workers = _checks.integer("workers", workers, 1)
    _checks.choice("backend", backend, BACKENDS)
    _checks.choice("on_error", on_error, ("raise", "record"))
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
        outcomes = stack.enter_context(_outcomes(function, points, todo, kept, workers, backend))
        computed = _collect(outcomes, points, todo, kept, on_error)
    return _result(function, points, kept.lines, len(points) - computed)


def _collect(
    outcomes: Iterable[Outcome],
    points: Sequence[Point],
    todo: Sequence[int],
    kept: Lines,
    on_error: str,
) -> int:
    """Keep the outcomes as they come; return how many there were."""
    computed, seen, waiting = 0, 0, {points[index].key for index in todo}
    for outcome in outcomes:
        computed += 1
        point = points[outcome.index]
        kept.append(_line(point, outcome, on_error))
        waiting.discard(point.key)
        if kept.foreign != seen:
            seen, waiting = kept.foreign, {key for key in waiting if not kept.done(key)}
        advance("sweep", len(points) - len(waiting), len(points), _in_words(point))
    return computed


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
    function: Callable[..., Any], points: Sequence[Point], found: Mapping[str, Done], reused: int
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
        reused=reused,
    )


def _in_words(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.parameters.items())


def _check_portable(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be sent to another process.

    Raises:
        ParameterError: saying why.
    """
    import cloudpickle  # pyright: ignore[reportMissingImports]

    try:
        cloudpickle.dumps(function)
    except _NOT_PORTABLE as error:
        raise ParameterError(
            f"function cannot be sent to another process ({error}); use backend='threads', or "
            "build in the function what it holds on to."
        ) from error


@contextmanager
def _outcomes(
    function: Callable[..., Any],
    points: Sequence[Point],
    todo: Sequence[int],
    kept: Lines,
    workers: int,
    backend: str,
) -> Iterator[Iterable[Outcome]]:
    """Yield the outcomes, which come as they are ready; the workers end with the block."""
    if not todo:
        yield ()
        return
    left = _left(points, todo, kept)
    if workers == 1 and backend in ("processes", "threads"):
        yield (_compute(function, index, points[index].arguments) for index in left)
        return
    joblib = _joblib(backend)
    away = backend != "threads"
    if away:
        _check_portable(function)
    calls = (
        joblib.delayed(_compute)(function, index, points[index].arguments, away) for index in left
    )
    # A worker without a point would only take its time to start.
    outcomes = _started(joblib, calls, min(workers, len(todo)), backend)
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            # That work under way is lost is known to whoever interrupts.
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _started(joblib: ModuleType, calls: Iterable[Any], workers: int, backend: str) -> Any:  # noqa: ANN401
    """Hand the calls to joblib one by one; return the generator of the outcomes."""
    options: dict[str, Any] = {"batch_size": 1, "return_as": "generator_unordered"}
    context: Any = nullcontext()
    if backend == "processes":
        # Ctrl-C reaches every process of a terminal; only this one is to outcome it.
        options.update(backend="loky", n_jobs=workers, initializer=_ignore_interrupts)
    elif backend == "threads":
        options.update(backend="threading", n_jobs=workers)
    elif backend == "dask":
        context = _configured(joblib)
    with context:
        return joblib.Parallel(**options)(calls)


def _configured(joblib: ModuleType) -> Any:  # noqa: ANN401
    try:
        return joblib.parallel_config(backend="dask")
    except ValueError as error:
        raise ParameterError(
            "backend is 'dask', but there is no cluster; open one before, such as "
            "dask.distributed.Client()."
        ) from error


def _joblib(backend: str) -> ModuleType:
    try:
        import cloudpickle  # noqa: F401  # pyright: ignore[reportMissingImports]
        import joblib  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "dpopt.sweep with several workers needs joblib and cloudpickle; install them "
            "with pip install 'dpopt[sweeps]'."
        ) from error
    if backend == "dask" and find_spec("distributed") is None:
        raise ImportError(
            "dpopt.sweep on a cluster needs Dask; install it with pip install 'dask[distributed]'."
        )
    return joblib


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
