"""Input checks: each answers a bad value with one sentence naming parameter, value and range."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Set
from typing import Any, SupportsFloat, cast

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown


def _refused(name: str, value: object, allowed: str) -> ParameterError:
    return ParameterError(f"{name} is {shown(value)}; it must be {allowed}.")


def _number(value: object) -> float | None:
    """Return a single number as a float, infinite if it is too large; None for all else."""
    try:
        if type(value) in (float, int):
            return float(cast(float, value))
        # An array of one number, or a complex one: numpy would take it, with a warning. (Filters of
        # warnings are those of all threads, so they are left alone.)
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        wrong = isinstance(value, bool | np.bool_ | complex) or getattr(value, "ndim", 0) != 0
        if wrong or kind == "c" or not isinstance(value, numbers.Real | SupportsFloat):
            return None
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None


def array(name: str, value: object) -> npt.NDArray[Any]:
    """Return ``value`` as an array of whatever it holds."""
    _refuse_unordered(name, value)
    if masked(value):
        raise ParameterError(f"{name} has masked entries; it must have none.")
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} has no shape: it is ragged, or no array; it must be one."
        ) from None


def masked(value: object, depth: int = 0) -> bool:
    """Return whether an array has masked entries, or one in a list, where numpy forgets them."""
    if not isinstance(value, list | tuple):
        return bool(np.ma.is_masked(value))
    # By type first: most lists hold numbers alone.
    may_be = list, tuple, np.ma.MaskedArray
    kinds = {kind for kind in set(map(type, value)) if issubclass(kind, may_be)}
    # Arrays have no more axes.
    return bool(kinds) and depth < 64 and any(masked(entry, depth + 1) for entry in value)


def _refuse_unordered(name: str, value: object) -> None:
    """Refuse what numpy would take for a single object: labelled or unordered collections."""
    if isinstance(value, Mapping | Set):
        raise ParameterError(
            f"{name} is a {type(value).__name__}; it must be an array or a list of numbers, in "
            "order."
        )


def instance(name: str, value: object, kind: type) -> None:
    """Refuse a ``value`` of another class."""
    if not isinstance(value, kind):
        raise _refused(name, value, f"a {kind.__name__}")


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise _refused(name, value, "True or False")
    return bool(value)


def floats(name: str, value: object) -> npt.NDArray[np.float64]:
    """Return ``value`` as an array of floats, infinities and NaN included."""
    _refuse_unordered(name, value)
    try:
        array = np.asarray(value)
        # An array within an array of objects would become a number, with a warning.
        nested = array.dtype.kind == "O" and any(getattr(entry, "ndim", 0) for entry in array.flat)
        if array.dtype.kind in "biufO" and not nested and not np.ma.is_masked(value):
            with np.errstate(over="raise"):
                return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, FloatingPointError):
        pass
    raise ParameterError(
        f"{name} is not an array of numbers: it holds other values, or one that is not a number."
    )


def real(
    name: str,
    value: object,
    lower: float = -math.inf,
    upper: float = math.inf,
    *,
    open_lower: bool = False,
    open_upper: bool = False,
) -> float:
    """Return ``value`` as a finite float in the interval from ``lower`` to ``upper``."""
    number = _number(value)
    if number is not None and lower <= number <= upper and math.isfinite(number):
        at_open_end = (open_lower and number == lower) or (open_upper and number == upper)
        if not at_open_end:
            return number
    opening, closing = "(["[not open_lower], ")]"[not open_upper]
    if math.isinf(lower) and math.isinf(upper):
        allowed = "a finite number"
    elif math.isinf(upper):
        allowed = f"a finite number {'above' if open_lower else 'of at least'} {digits(lower)}"
    else:
        allowed = f"a number in {opening}{digits(lower)}, {digits(upper)}{closing}"
    raise _refused(name, value, allowed)


def integer(name: str, value: object, lower: int, upper: int | None = None) -> int:
    """Return ``value`` as an int of at least ``lower`` and, if given, at most ``upper``."""
    number = _number(value)
    if number is not None and number.is_integer():
        integer = int(value) if isinstance(value, numbers.Integral) else int(number)
        if lower <= integer and (upper is None or integer <= upper):
            return integer
    allowed = f"an integer of at least {lower}" + ("" if upper is None else f" and at most {upper}")
    raise _refused(name, value, allowed)


def printable(name: str, text: str) -> str:
    """Return a text if all its characters are printable: a terminal obeys some of the others."""
    if not text.isprintable():
        raise ParameterError(
            f"{name} holds the text {shown(text)}; it must have printable characters only."
        )
    return text


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        raise _refused(name, value, f"one of {', '.join(allowed)}")
    return value
