"""One call of a sweep, as a worker makes it: what comes back can travel and can be kept."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from dpopt._errors import DpoptError, ParameterError
from dpopt.sweeps.grid import FAILURE, plain

_NOT_PORTABLE = (pickle.PickleError, TypeError, AttributeError, ValueError, ImportError)


@dataclass(frozen=True)
class Answer:
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
) -> Answer:
    """Call the function at one point; ``away`` if the answer goes to another process."""
    start = time.perf_counter()
    try:
        returned = function(**arguments)
    except Exception as error:  # noqa: BLE001
        # Whatever a user's function may raise; it is raised again, or recorded, by the caller.
        seconds = time.perf_counter() - start
        failure = (type(error).__name__, str(error))
        return Answer(index, {}, seconds, _portable(error) if away else error, failure)
    seconds = time.perf_counter() - start
    try:
        return Answer(index, _values(returned, arguments), seconds)
    except ParameterError as error:
        return Answer(index, {}, seconds, error, unusable=True)


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


def check_portable(function: Callable[..., Any]) -> None:
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
