"""Logarithms of integers and factorials to twice the digits of a float (double-double).

For integers up to 2^53 the result is a pair (high, low) of floats that represents high + low, with
low at most half a unit in the last place of high. Why this is needed: ln 10^9! is
19,723,265,848.2..., where floats are 4e-6 apart, but the logarithm of a probability that is a
product of such factorials, such as ln C(10^9, k), must be accurate to 1e-11. As pairs, the
factorials are accurate to about 1e-16, and only the result is rounded.

Rounding errors of float operations are themselves floats: `two_sum` and `two_product` return the
rounded result and the exact error, so that 1 + 2^-60 is (1, 2^-60). `add`, `scale` and `total`
carry these errors along; `log_integer` adds a series to an entry of a table of 1024 logarithms,
rounded from 60 decimal digits; `log_factorial` is Stirling's series.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector

Pair = tuple[Vector, Vector]
"""Two arrays of one shape, high and low: the unevaluated sum of two floats."""

_SPLITTER = 134217729.0  # 2^27 + 1: cuts a float of 53 bits into two halves (Dekker)
# The table holds ln c for the 2^10 integers of 11 bits; factorials below 16! are tabulated too.
_GRID_BITS = 10
# ln 0!, ..., ln 15! are tabulated: from 16 on Stirling's series has all digits.
_SMALL = 16
# Entries computed at once, to bound temporary memory.
_BLOCK = 4096


def two_sum(a: Vector, b: Vector) -> Pair:
    """Return a + b exactly, as the rounded sum and its rounding error (Knuth)."""
    high = a + b
    added = high - a
    return high, (a - (high - added)) + (b - added)


def two_product(a: Vector, b: Vector) -> Pair:
    """Return a b exactly, as the rounded product and its rounding error (Dekker)."""
    high = a * b
    wide = _SPLITTER * a
    a1 = wide - (wide - a)
    a2 = a - a1
    wide = _SPLITTER * b
    b1 = wide - (wide - b)
    b2 = b - b1
    return high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)


def add(a: Pair, b: Pair) -> Pair:
    """Return a + b with an error of about 2^-104 times the larger of |a| and |b|."""
    high, low = two_sum(a[0], b[0])
    return two_sum(high, low + (a[1] + b[1]))


def total(pairs: Sequence[Pair]) -> Vector:
    """Return the sum of the pairs, rounded once.

    Rounding errors of all additions are summed too (second-order summation of Ogita, Rump and
    Oishi): the error before the last rounding is about 2^-104 of the sum of absolute values.
    """
    high, low = pairs[0]
    for pair in pairs[1:]:
        high, error = two_sum(high, pair[0])
        low = low + (error + pair[1])
    return high + low


def scale(factor: Vector, pair: Pair) -> Pair:
    """Return ``factor`` times ``pair`` with a relative error of about 2^-104."""
    high, low = two_product(factor, pair[0])
    return two_sum(high, low + factor * pair[1])


def split(number: decimal.Decimal) -> tuple[float, float]:
    """Return a decimal number as a pair: the nearest float, and the float nearest to the error."""
    high = float(number)
    return high, float(number - decimal.Decimal(high))


def exponential(epsilon: float) -> tuple[float, float]:
    """Return e^epsilon as a pair of floats (high, low), for epsilon in [0, 700].

    The relative error is at most 2^-104. Below 1e-17 the pair is (1, epsilon), so that
    e^epsilon - 1 keeps its relative precision.
    """
    if epsilon < 1e-17:
        return 1.0, epsilon
    with decimal.localcontext(decimal.Context(prec=60)):
        return split(decimal.Decimal(epsilon).exp())


@lru_cache(maxsize=1)
def _constants() -> tuple[Pair, Pair, tuple[float, float], tuple[float, float]]:
    """Return ln c of c = 2^10, ..., 2^11 - 1, ln k! of k < 16, ln 2 and ln(2 pi)/2, as pairs."""
    with decimal.localcontext(decimal.Context(prec=60)):
        grid = [split(decimal.Decimal(c).ln()) for c in range(2**_GRID_BITS, 2 ** (_GRID_BITS + 1))]
        small = [split(decimal.Decimal(math.factorial(k)).ln()) for k in range(_SMALL)]
        circle = decimal.Decimal("6.28318530717958647692528676655900576839433879875021164194989")
        two, half_circle = split(decimal.Decimal(2).ln()), split(circle.ln() / 2)
    (grid_high, grid_low), (small_high, small_low) = np.array(grid).T, np.array(small).T
    return (grid_high, grid_low), (small_high, small_low), two, half_circle


def _like(array: Vector, pair: tuple[float, float]) -> Pair:
    return np.full_like(array, pair[0]), np.full_like(array, pair[1])


def log_integer(values: IntVector | Vector) -> Pair:
    """Return ln N as a pair with an absolute error of about 1e-25, for integers N in 1..2^53.

    Write N = 2^e (c + d) with an 11-bit integer c and d in [0, 1). Then ln N = e ln 2 + ln c
    + ln(1 + d/c): the first two terms are tabulated, the last is a series in d/c < 2^-10.
    """
    grid, _, two, _ = _constants()
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    scaled = mantissa * 2.0 ** (_GRID_BITS + 1)
    c = np.floor(scaled)
    d = scaled - c
    index = c.astype(np.int64) - 2**_GRID_BITS
    shift = (exponent - (_GRID_BITS + 1)).astype(np.float64)
    quotient = d / c
    # d/c as a pair, by one step of long division.
    product, error = two_product(quotient, c)
    quotient_low = ((d - product) - error) / c
    square, square_low = two_product(quotient, quotient)
    series = np.zeros_like(quotient)
    for order in range(9, 2, -1):
        series = series * -quotient + 1.0 / order
    # ln(1 + q) = q - q^2/2 + q^3 (1/3 - q/4 + ...); the first two terms as pairs.
    tail = square * quotient * series - 0.5 * square_low - quotient * quotient_low
    small = two_sum(quotient, -0.5 * square)
    small = two_sum(small[0], small[1] + (quotient_low + tail))
    return add(
        scale(shift, _like(shift, two)),
        add((grid[0][index], grid[1][index]), small),
    )


def log_factorial(values: IntVector) -> Pair:
    """Return ln N! as a pair, for integers N in 0..2^52.

    Stirling's series, ln N! = (N + 1/2) ln N - N + ln(2 pi)/2 + 1/(12 N) - 1/(360 N^3) + ...,
    seven terms; below N = 16 tabulated. The absolute error is about 1e-18 + 1e-25 N.
    """
    _, small, _, half_circle = _constants()
    count = np.maximum(np.asarray(values, dtype=np.float64), 1.0)
    inverse = 1.0 / count
    square = inverse * inverse
    series = np.zeros_like(count)
    # Coefficients of N^-1, N^-3, ... in Stirling's series.
    for coefficient in reversed(
        (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    ):
        series = series * square + coefficient
    total = add(scale(count + 0.5, log_integer(count)), (-count, series * inverse))
    total = add(total, _like(count, half_circle))
    index = np.minimum(values, _SMALL - 1)
    tiny = np.asarray(values) < _SMALL
    return np.where(tiny, small[0][index], total[0]), np.where(tiny, small[1][index], total[1])


@lru_cache(maxsize=2)
def factorial_table(largest: int) -> Callable[[IntVector], Pair]:
    """Return a table lookup equal to `log_factorial` on 0, ..., largest, 16 bytes an entry."""
    high, low = np.empty(largest + 1), np.empty(largest + 1)
    for start in range(0, largest + 1, _BLOCK):
        block = slice(start, min(start + _BLOCK, largest + 1))
        high[block], low[block] = log_factorial(np.arange(block.start, block.stop))
    return lambda values: (high.take(values), low.take(values))


def log_sum(logs: npt.NDArray[np.float64]) -> Any:  # noqa: ANN401
    """Return ln sum exp(logs) over the first axis; -inf for an empty sum."""
    top = np.max(logs, axis=0, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(logs - shift).sum(axis=0))
