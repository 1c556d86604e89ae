"""A function over a grid of parameters: by joblib on processes or a cluster, resumed from a table.

The table is a file of JSON lines, one for each point that is done, each with a mark of the function
that it counts for. A line is added by one call of the system, on Windows under a lock, so that
several processes may fill one table; what a crash tore, or another function made, counts for
nothing and is computed anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._progress import advance
from dpopt.files import check_target, versions, why_unread


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The points of a grid with what the function returned, in the order of the grid.

    ``pandas.DataFrame(result.records)`` is a table with one row for each point.

    Attributes:
        records: one mapping for each point: its parameters, then what the function returned (its
            mapping, or ``value``), or ``failure``: what it raised, in words.
        reused: points that were read from the table and not computed.
    """

    records: tuple[Mapping[str, Any], ...]
    reused: int

    @property
    def failures(self) -> tuple[Mapping[str, Any], ...]:
        """The records of points that failed."""
        return tuple(record for record in self.records if "failure" in record)

    def __repr__(self) -> str:
        first = f", such as {shown(self.failures[0])}" if self.failures else ""
        failed = f"{len(self.failures):,} failed{first}"
        return f"<SweepResult: {len(self.records):,} points, {self.reused:,} reused, {failed}>"


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    workers: int | None = None,
    table: str | Path | None = None,
    version: str | None = None,
) -> SweepResult:
    """Call a function at every point of a grid, in parallel, and keep what is done.

    >>> sweep(lambda a, b: a * b, {"a": [2, 3], "b": [10, 20]}).records[1]
    {'a': 2, 'b': 20, 'value': 40}

    Needs joblib (extra ``sweeps``); within ``joblib.parallel_config("dask")`` it computes on a
    cluster. Finished points are reported to `dpopt.reporting`. After an interruption, the same call
    with the same table computes what is not in it; points that failed never are.

    Args:
        function: called with the parameters of a point as keywords; a lambda will do. It returns
            a mapping from names to values, or one value, of what JSON and numpy have.
        grid: values for each parameter, whose product is swept, the last one fastest; or points.
        workers: processes; None: what joblib is configured to, by default this process.
        table: file that keeps what is done, created if missing.
        version: what the function is known by in the table, beside its name. None: its own code
            (not that of what it calls), what it closes over, and dpopt's version.

    Raises:
        ParameterError: for a grid, a table or an option that cannot be used.
    """
    if not callable(function):
        raise ParameterError(f"function is {shown(function)}; it must be callable.")
    # Processes; joblib hands their number to a C int.
    workers = None if workers is None else _checks.integer("workers", workers, 1, 10_000)
    points, path = _points(grid), None if table is None else Path(table)
    try:
        import joblib  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("sweep needs joblib; pip install 'dpopt[sweeps]' has it.") from error
    keys = [_json(point, sort_keys=True) for point in points]
    mark = "" if path is None else _mark(function, version, joblib.hash)
    done: dict[str, Any] = {} if path is None else _read(path, mark)
    pending = [number for number, key in enumerate(keys) if key not in done]
    finished = reused = len(points) - len(pending)
    advance("sweep", finished, len(points))
    calls = (joblib.delayed(_called)(function, number, points[number]) for number in pending)
    outcomes: Any = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(calls)
    for number, values in outcomes:
        done[keys[number]] = json.loads(values)
        if path is not None and "failure" not in done[keys[number]]:
            _append(path, f'{{"sweep": "{mark}", "point": {keys[number]}, "values": {values}}}\n')
        finished += 1
        advance("sweep", finished, len(points), shown(points[number]))
    rows = zip(json.loads(_json(points)), keys, strict=True)
    return SweepResult(tuple({**row, **done[key]} for row, key in rows), reused)


def _called(function: Callable[..., Any], number: int, point: dict[str, Any]) -> tuple[int, str]:
    """Return what the function returned at a point, or the failure, as JSON."""
    try:
        returned = function(**point)
        values = dict(returned) if isinstance(returned, Mapping) else {"value": returned}
        for name in {"failure", *point} & set(values):
            raise ParameterError(f"the function returned {name!r}, which names another column.")
        return number, _json(values)
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises is recorded
        return number, _json({"failure": f"{type(error).__name__}: {error}"})


def _points(grid: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    try:
        if isinstance(grid, Mapping):
            grid = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        points = [dict(**point) for point in grid]
        _json(points)
    except (TypeError, ValueError) as error:
        why = f"it must be a mapping from names to lists, or a list of mappings ({error})."
        raise ParameterError(f"grid is {shown(grid)}; {why}") from error
    if not points or any(not point or "failure" in point for point in points):
        raise ParameterError("grid is empty, or has a parameter 'failure', a name that is taken.")
    return points


def _json(value: object, sort_keys: bool = False) -> str:
    return json.dumps(value, default=_plain, sort_keys=sort_keys)


def _plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{shown(value)} is of type {type(value).__name__}, which JSON has not")


def _mark(function: Any, version: str | None, digest: Callable[..., str]) -> str:  # noqa: ANN401
    """Return the digest by which the lines of a function are known."""
    name = [getattr(function, "__module__", None), getattr(function, "__qualname__", None)]
    try:
        code_version = [versions()["dpopt"], _described(function)] if version is None else version
        return digest([name, code_version])
    except Exception as error:
        raise ParameterError(f"function has no digest ({error}); say version=.") from error


def _described(value: object) -> object:
    """Return what distinguishes a function from others, except addresses and numbers of lines."""
    if isinstance(value, partial):
        return [_described(value.func), value.args, value.keywords]
    if isinstance(value, FunctionType):
        held = [_described(cell.cell_contents) for cell in value.__closure__ or ()]
        return [_described(value.__code__), value.__defaults__, value.__kwdefaults__, held]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, list(map(_described, value.co_consts))]
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def _read(path: Path, mark: str) -> dict[str, Any]:
    """Return what a table says of each point; end its last line if that was torn."""
    check_target(path)
    rows = path.read_text("utf-8", "replace").split("\n") if path.exists() else [""]
    referenced: dict[str, Any] = {}
    for row in filter(None, rows):
        try:
            line = json.loads(row)
            if line["sweep"] == mark:
                referenced[_json(line["point"], sort_keys=True)] = dict(line["values"])
        except (ValueError, KeyError, TypeError, RecursionError):
            if row == rows[0]:
                raise ParameterError(f"table is {str(path)!r}, no table of a sweep.") from None
    _append(path, "\n" if rows[-1] else "")
    return referenced


def _append(path: Path, text: str) -> None:
    try:
        with path.open("ab", buffering=0) as file, _alone(file):
            if file.write(text.encode()) < len(text):
                raise ParameterError(f"table is {str(path)!r}; the disk is full.")
    except OSError as error:
        raise ParameterError(f"table is {str(path)!r}; {why_unread(error)}.") from error


@contextmanager
def _alone(file: FileIO) -> Iterator[None]:
    """Let no other process append meanwhile: Windows looks for the end, and then writes."""
    if sys.platform != "win32":
        yield
        return
    import msvcrt

    # A byte far beyond the end, for what is locked cannot be read either. Of a call that waits in
    # vain for ten seconds, the error is the file's.
    last = (1 << 31) - 2
    file.seek(last)
    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    try:
        yield
    finally:
        file.seek(last)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
