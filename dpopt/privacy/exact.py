"""Upper and lower bounds on e^x, log x and sqrt(x), computed in integer arithmetic.

Results depend on the arguments alone: no global precision is read or set, as it is by Arb in
python-flint, so other threads cannot interfere.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import Any

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import MOST_BITS

Number = float | Rational | np.integer[Any]

# Largest |x| of e^x, which bounds the time.
_LARGEST_EXPONENT = 10_000
# Default fractional bits, and significant bits of e^x - 1 where x is near 0.
_USUAL_BITS, _LEAST_SIGNIFICANT = 128, 64


def exp_lower(exponent: Number, bits: int | None = None) -> Fraction:
    """Return the largest multiple of 2^-bits that integer arithmetic proves to be <= e^exponent.

    Args:
        exponent: a float or a rational, taken exactly, in [-10,000, 10,000].
        bits: fractional bits, in 1..100,000; if None 128, or more for an exponent near 0, such that
            e^exponent - 1 has 64 significant bits.
    """
    exact, bits = _checked(exponent, bits)
    return Fraction(_scaled(exact, bits)[0], 1 << bits)


def exp_upper(exponent: Number, bits: int | None = None) -> Fraction:
    """Return the smallest multiple of 2^-bits that integer arithmetic proves >= e^exponent.

    The arguments are those of `exp_lower`.
    """
    exact, bits = _checked(exponent, bits)
    return Fraction(_scaled(exact, bits)[1], 1 << bits)


def rational(name: str, value: object) -> Fraction:
    """Return a number exactly, as a fraction of Python integers."""
    try:
        if isinstance(value, Rational) and not isinstance(value, bool):
            # numpy integers would remain inside the fraction and could overflow.
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Real) and not isinstance(value, bool):
            return Fraction(float(value))
    except (OverflowError, ValueError):
        pass
    raise ParameterError(f"{name} is {_checks.shown(value)}; it must be a finite number.")


def log_upper(ratio: Fraction) -> float:
    """Return a float >= log(ratio), at most a few floats above it; 0 for a ratio up to 1.

    It is the least float f from about log(ratio) on with exp_lower(f) >= ratio.
    """
    if ratio <= 1:
        return 0.0
    return least_float(lambda f: _power(exp_lower, f, ratio) >= ratio, log_near(ratio))


def log_enclosed(ratio: Fraction) -> tuple[float, float]:
    """Return floats (a, b) with a <= log(ratio) <= b, for a ratio >= 1; a few floats apart."""
    lower = upper = log_upper(ratio)
    while lower > 0 and _power(exp_upper, lower, ratio) > ratio:
        lower = math.nextafter(lower, 0.0)
    return lower, upper


def _power(bound: Callable[..., Fraction], exponent: float, ratio: Fraction) -> Fraction:
    """Return a bound of e^exponent, accurate enough to compare it with a ratio above 1."""
    above = ratio - 1
    # Bits enough for the 53 binary digits of a float near log(ratio), which may be as small as
    # 2^-1074; an exponent beyond the range of ``bound`` is split into equal parts.
    small = above.denominator.bit_length() - above.numerator.bit_length()
    parts = math.ceil(exponent / _LARGEST_EXPONENT) or 1
    return bound(Fraction(exponent) / parts, 256 + min(max(0, small), 1100)) ** parts


def log_near(ratio: Fraction) -> float:
    """Return log(ratio) up to rounding, for a ratio above 0 of any size."""
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    # Logarithms of numerator and denominator may be large, and their difference then rounded away.
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return math.log(ratio / Fraction(2) ** shift) + shift * math.log(2.0)


def least_float(holds: Callable[[float], bool], start: float) -> float:
    """Return the least float from ``start`` on at which a monotone condition holds.

    It doubles steps, then bisects, over the indices of floats in their order: between 1e-300 and
    1e-30, say, stepping from float to float would not end.
    """
    # The index of a float in the order of the floats from 0 is its bit pattern.
    low, step = int(struct.unpack("<q", struct.pack("<d", start))[0]), 1
    while not holds(_float_at(low + step)):
        low, step = low + step, 2 * step
    indices = range(low, low + step + 1)
    return _float_at(indices[bisect_left(indices, True, key=lambda at: holds(_float_at(at)))])


def _float_at(index: int) -> float:
    # Index of the largest finite float in the order of the floats from 0.
    return float(struct.unpack("<d", struct.pack("<q", min(index, 0x7FEFFFFFFFFFFFFF)))[0])


def sqrt_upper(value: Number) -> Fraction:
    """Return a rational >= sqrt(value) for a value >= 0, larger by at most 2^-100 of it."""
    exact = rational("value", value)
    shift = max(0, 101 - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    scaled = -(-(exact.numerator << 2 * shift) // exact.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << shift)


def _checked(exponent: Number, bits: int | None) -> tuple[Fraction, int]:
    exact = rational("epsilon", exponent)
    if abs(exact) > _LARGEST_EXPONENT:
        raise ParameterError(
            f"epsilon is {_checks.shown(exponent)}; exact arithmetic takes at most "
            f"{_LARGEST_EXPONENT}."
        )
    if bits is not None:
        return exact, _checks.integer("bits", bits, 1, MOST_BITS)
    # 2^-small <= |exponent|, up to a factor of 2
    small = exact.denominator.bit_length() - abs(exact.numerator).bit_length() if exact else 0
    return exact, min(max(_USUAL_BITS, _LEAST_SIGNIFICANT + small), MOST_BITS)


@lru_cache(maxsize=256)
def _scaled(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers a, b with a <= 2^bits e^exponent <= b; usually b = a + 1."""
    # The verifier's enclosure is relative: for x > 0 the integer part of e^x needs about 1.45 x
    # bits more. It takes exponents up to 4,000; larger ones are split into equal parts.
    parts = math.ceil(abs(exponent) / 4000) or 1
    work = bits + 64 + max(0, int(1.5 * exponent))
    low, high = (Fraction(end) ** parts for end in verify.exp(exponent / parts, work))
    return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))
