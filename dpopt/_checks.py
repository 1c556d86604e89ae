"""Input checks: each answers a bad value with one sentence naming parameter, value and range."""

from __future__ import annotations

import math
import numbers
from typing import SupportsFloat, cast

from dpopt._errors import ParameterError


def _number(name: str, value: object, allowed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, SupportsFloat)):
        raise ParameterError(f"{name} is {value!r}; it must be {allowed}.")
    try:
        return float(cast(SupportsFloat, value))
    except OverflowError:
        raise ParameterError(f"{name} is too large a number; it must be {allowed}.") from None
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; it must be {allowed}.") from None


def real(
    name: str,
    value: object,
    lower: float = -math.inf,
    upper: float = math.inf,
    *,
    open_lower: bool = False,
    open_upper: bool = False,
) -> float:
    """Return ``value`` as a finite float in the interval from ``lower`` to ``upper``.

    Raises:
        ParameterError: if it is not a number, not finite, or outside the interval.
    """
    left, right = "(["[not open_lower], ")]"[not open_upper]
    if math.isinf(lower) and math.isinf(upper):
        allowed = "a finite number"
    elif math.isinf(upper):
        allowed = f"a finite number {'above' if open_lower else 'of at least'} {lower:g}"
    else:
        allowed = f"a number in {left}{lower:g}, {upper:g}{right}"
    number = _number(name, value, allowed)
    inside = (number > lower if open_lower else number >= lower) and (
        number < upper if open_upper else number <= upper
    )
    if not math.isfinite(number) or not inside:
        raise ParameterError(f"{name} is {value}; it must be {allowed}.")
    return number


def integer(name: str, value: object, lower: int, upper: int | None = None) -> int:
    """Return ``value`` as an int of at least ``lower`` and, if given, at most ``upper``.

    Raises:
        ParameterError: if it is not integral or out of range.
    """
    allowed = f"an integer of at least {lower}" + ("" if upper is None else f" and at most {upper}")
    number = _number(name, value, allowed)
    if not math.isfinite(number) or number != int(number):
        raise ParameterError(f"{name} is {value}; it must be {allowed}.")
    whole = int(value) if isinstance(value, numbers.Integral) else int(number)
    if whole < lower or (upper is not None and whole > upper):
        raise ParameterError(f"{name} is {value}; it must be {allowed}.")
    return whole


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``.

    Raises:
        ParameterError: if it is not.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return cast(str, value)
