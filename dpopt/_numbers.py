"""Numbers of any size: shown in a message, written to a file, read back, rounded to a float.

Python refuses the decimal form of an integer beyond 4,300 digits, and takes time that grows with
the square of its length before that. So a long number is shown by its leading digits, and written
in hexadecimal, which is exact and takes time in proportion to its length.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import cast

MOST_BITS = 100_000
"""Most bits of the probabilities of a kernel, when it is made as when it is read."""

LONGEST_SHOWN = 80
"""Characters of a value in a message."""

# Characters of a decimal number that is read.
_LONGEST_DECIMAL = 4_000

_WHOLE, _TYPED = map(
    re.compile,
    (
        # Digits bound the time of reading: 4,000 decimal ones, 60,000 of base 16.
        rf"-?(?:[0-9]{{1,{_LONGEST_DECIMAL}}}|0x[0-9a-f]{{1,60000}})",
        # At most one sign, one point, one exponent or one denominator: as Fraction, but bounded.
        r"[+-]?(?:[0-9]+(?:/[0-9]+|\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,5}))?",
    ),
)


def shown(value: object) -> str:
    """Return any value in one line of at most 80 characters, for a message; never raises.

    Numbers that are different floats, or integers and fractions of at most 25 digits, look
    different.
    """
    try:
        text = " ".join(_text(value).split())
    except Exception:  # noqa: BLE001 - what a stranger's __repr__ raises must not hide the message
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def _text(value: object) -> str:
    if isinstance(value, numbers.Rational) and not isinstance(value, bool):
        return _rational_text(Fraction(int(value.numerator), int(value.denominator)))
    if type(value) in (list, tuple):
        # No more than a line holds; a number in it may be one that repr refuses.
        parts = cast(Sequence[object], value)[:LONGEST_SHOWN]
        inside = ", ".join(map(_text, parts))
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    return str(value) if isinstance(value, numbers.Number) else repr(value)


def _rational_text(value: Fraction) -> str:
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits <= LONGEST_SHOWN:
        return str(value)
    kind = "an integer" if value.denominator == 1 else "a fraction"
    return f"about {_leading(value, 17)} ({kind} of {bits:,} bits)"


def _leading(value: Fraction, places: int) -> str:
    """Return significant digits of a rational, as of a float where one is near."""
    rounded = Decimal(f"{Decimal(value.numerator) / value.denominator:.{places}g}")
    text = f"{rounded.normalize():g}"
    number = float(text)
    beyond = math.isinf(number) or (number == 0 and value != 0)
    return text if beyond else f"{number:.{places}g}"


def digits(value: float) -> str:
    """Return a float in as few digits as tell it from all others, whole numbers without a point.

    For a message that compares two numbers: unlike ``:g`` it never makes two of one.
    """
    short = f"{value:g}"
    return short if float(short) == value else str(float(value))


def roughly(value: Fraction) -> str:
    """Return three significant digits of a rational, also of one beyond all floats or below."""
    return _leading(value, 3)


def exact_text(value: int | numbers.Rational) -> str:
    """Return a whole number or fraction exactly: as "3" or "7/3", or "0x..." beyond 256 bits.

    The inverse for integers is `whole`.
    """
    top, bottom = int(value.numerator), int(value.denominator)
    # Beyond 256 bits Python's decimal conversion takes longer than the rest.
    show = hex if max(top.bit_length(), bottom.bit_length()) > 256 else str
    return show(top) if bottom == 1 else f"{show(top)}/{show(bottom)}"


def whole(value: object) -> int:
    """Return the integer of a file: an integer, or a string of decimal or hexadecimal digits."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value, 16 if "x" in value else 10)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not a whole number")


def typed_rational(text: str) -> Fraction:
    """Return a number that somebody typed, exactly: 12, 0.25, 1e-9 or 1/3."""
    match = _TYPED.fullmatch(text) if len(text) <= _LONGEST_DECIMAL else None
    if match is None or abs(int(match[1] or 0)) > 4_000:
        raise ValueError("no number, or one too long")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("a denominator of 0") from None


def decimal_rational(value: object) -> Fraction:
    """Return a rational as it is, and a float as its shortest decimal: 0.002 is 2 / 1000."""
    if isinstance(value, numbers.Rational) and not isinstance(value, bool):
        return Fraction(int(value.numerator), int(value.denominator))
    return typed_rational(str(value).strip())


def float_up(value: Fraction) -> float:
    """Return the least float of at least a rational; infinity beyond all floats."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float of at most a rational of at least 0."""
    rounded = float_up(value)
    return rounded if Fraction(rounded) <= value else math.nextafter(rounded, -math.inf)
