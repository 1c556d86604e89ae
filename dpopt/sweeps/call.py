"""What a worker does: the function at some points, and how each of them ended."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

from dpopt._errors import DpoptError, ParameterError
from dpopt.sweeps.grid import FAILURE, plain

NOT_PORTABLE = (pickle.PickleError, TypeError, AttributeError, ValueError, ImportError)

Batch: TypeAlias = Sequence[tuple[int, Mapping[str, Any]]]
"""Points as their index in the grid and what the function is called with."""

SECONDS = 0.5
"""How long a batch is to take: what is lost with a worker, and what its way there must be worth."""


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


def compute(
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


def compute_some(
    function: Callable[..., Any], batch: Batch, away: bool = False
) -> tuple[Outcome, ...]:
    """Call the function at the points in turn, and come back once the time of a batch is over.

    The first point is always computed; those that are not reached have no outcome.
    """
    end, outcomes = time.perf_counter() + SECONDS, []
    for index, arguments in batch:
        outcomes.append(compute(function, index, arguments, away))
        if time.perf_counter() > end:
            break
    return tuple(outcomes)


def compute_sent(function: bytes, batch: bytes) -> tuple[Outcome, ...]:
    """Do the same with what came pickled from another process."""
    return compute_some(_unpacked(function), pickle.loads(batch), away=True)


@lru_cache(maxsize=4)
def _unpacked(function: bytes) -> Callable[..., Any]:
    return pickle.loads(function)


def packed(function: Callable[..., Any]) -> bytes:
    """Return a function as it is sent to another process.

    Raises:
        ParameterError: saying why it cannot be sent.
    """
    import cloudpickle  # pyright: ignore[reportMissingImports]

    try:
        return cloudpickle.dumps(function)
    except NOT_PORTABLE as error:
        raise ParameterError(
            f"function cannot be sent to another process ({error}); use backend='threads', or "
            "build in the function what it holds on to."
        ) from error


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
    except NOT_PORTABLE:
        error = DpoptError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error
