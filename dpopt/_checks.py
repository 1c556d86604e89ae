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


def _number(name: str, value: object, allowed: str) -> float:
    wrong = isinstance(value, bool | np.bool_ | complex | np.complexfloating)
    # An array of one number, or a complex one: numpy would take it, with a warning. (Filters of
    # warnings are those of all threads, so they are left alone.)
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if wrong or kind == "c" or getattr(value, "ndim", 0) != 0:
        raise _refused(name, value, allowed)
    if not isinstance(value, (numbers.Real, SupportsFloat)):
        raise _refused(name, value, allowed)
    try:
        return float(cast(SupportsFloat, value))
    except OverflowError:
        raise ParameterError(f"{name} is too large a number; it must be {allowed}.") from None
    except (TypeError, ValueError):
        raise _refused(name, value, allowed) from None


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
    # Most are: what is allowed need not be said.
    if type(value) is float and lower < value < upper:
        return value
    opening, closing = "(["[not open_lower], ")]"[not open_upper]
    if math.isinf(lower) and math.isinf(upper):
        allowed = "a finite number"
    elif math.isinf(upper):
        allowed = f"a finite number {'above' if open_lower else 'of at least'} {digits(lower)}"
    else:
        allowed = f"a number in {opening}{digits(lower)}, {digits(upper)}{closing}"
    number = _number(name, value, allowed)
    outside = number < lower or number > upper or not math.isfinite(number)
    if outside or (open_lower and number == lower) or (open_upper and number == upper):
        raise _refused(name, value, allowed)
    return number


def integer(name: str, value: object, lower: int, upper: int | None = None) -> int:
    """Return ``value`` as an int of at least ``lower`` and, if given, at most ``upper``."""
    if type(value) is int and lower <= value <= (1 << 53 if upper is None else upper):
        return value
    allowed = f"an integer of at least {lower}" + ("" if upper is None else f" and at most {upper}")
    number = _number(name, value, allowed)
    if not math.isfinite(number) or number != int(number):
        raise _refused(name, value, allowed)
    integer = int(value) if isinstance(value, numbers.Integral) else int(number)
    if integer < lower or (upper is not None and integer > upper):
        raise _refused(name, value, allowed)
    return integer


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
