"""Logarithms of integers and factorials to twice the digits of a float (double-double).

What goes in are integers up to 2^53, what comes out is a pair (high, low) of floats that stands for
high + low, low at most half a unit in the last place of high. Three numbers say what for:
ln 10^9! is 19,723,265,848.2...; floats of that size are 4e-6 apart; and the logarithm of a
probability that is built from such factorials, as ln C(10^9, k) is, has to be right to 1e-11. As
pairs, the factorials are known to about 1e-16, and only the result is rounded.

The trick is that float arithmetic knows its own rounding: `two_sum` and `two_product` return the
rounded result and, in a second float, exactly what rounding took: 1 + 2^-60 is (1, 2^-60).
`add`, `scale` and `total` carry these rests along; `log_integer` reads a table of 1024 logarithms,
cut from 60 decimal digits, and adds the first terms of a series; `log_factorial` is Stirling's.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector

Pair = tuple[Vector, Vector]
"""Two arrays of one shape, high and low: the unevaluated sum of two floats."""

_SPLITTER = 134217729.0  # 2^27 + 1: cuts a float of 53 bits into two halves (Dekker)
_GRID_BITS = 10
_SMALL = 16
_BLOCK = 4096
_PI = "3.14159265358979323846264338327950288419716939937510582097494"
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def two_sum(a: Vector, b: Vector) -> Pair:
    """Return a + b without error, as the rounded sum and the rest (Knuth)."""
    high = a + b
    added = high - a
    return high, (a - (high - added)) + (b - added)


def two_product(a: Vector, b: Vector) -> Pair:
    """Return a b without error, as the rounded product and the rest (Dekker)."""
    high = a * b
    wide = _SPLITTER * a
    a1 = wide - (wide - a)
    a2 = a - a1
    wide = _SPLITTER * b
    b1 = wide - (wide - b)
    b2 = b - b1
    return high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)


def add(left: Pair, right: Pair) -> Pair:
    """Return left + right with a relative error of about 2^-104 of the larger of the two."""
    high, low = two_sum(left[0], right[0])
    return two_sum(high, low + (left[1] + right[1]))


def negative(pair: Pair) -> Pair:
    """Return the pair's opposite."""
    return -pair[0], -pair[1]


def total(pairs: Sequence[Pair]) -> Vector:
    """Return the sum of the pairs, rounded once.

    The rests of all additions are collected (Ogita, Rump and Oishi's second-order sum): the
    error before the last rounding is about 2^-104 of the sum of the absolute values.
    """
    high, low = pairs[0]
    for pair in pairs[1:]:
        high, rest = two_sum(high, pair[0])
        low = low + (rest + pair[1])
    return high + low


def scale(factor: Vector, pair: Pair) -> Pair:
    """Return ``factor`` times ``pair`` with a relative error of about 2^-104."""
    high, low = two_product(factor, pair[0])
    return two_sum(high, low + factor * pair[1])


def split(number: decimal.Decimal) -> tuple[float, float]:
    """Return the float nearest to a decimal number and the float nearest to what is left."""
    high = float(number)
    return high, float(number - decimal.Decimal(high))


def _context() -> decimal.Context:
    return decimal.Context(prec=60)


def exponential(epsilon: float) -> tuple[float, float]:
    """Return e^epsilon as high and low float, for epsilon in [0, 700].

    The relative error is at most 2^-104; below 1e-17 the pair is (1, epsilon), so that
    e^epsilon - 1 keeps its relative precision.
    """
    if epsilon < 1e-17:
        return 1.0, epsilon
    with decimal.localcontext(_context()):
        return split(decimal.Decimal(epsilon).exp())


class _Constants(NamedTuple):
    """Logarithms to 60 digits, cut to pairs.

    Attributes:
        grid: ln c for c = 2^10, ..., 2^11 - 1.
        factorials: ln k! for k < 16.
        two: ln 2.
        half_circle: ln(2 pi)/2.
    """

    grid: Pair
    factorials: Pair
    two: tuple[float, float]
    half_circle: tuple[float, float]


@lru_cache(maxsize=1)
def _constants() -> _Constants:
    with decimal.localcontext(_context()):
        grid = [split(decimal.Decimal(c).ln()) for c in range(2**_GRID_BITS, 2 ** (_GRID_BITS + 1))]
        small = [split(decimal.Decimal(math.factorial(k)).ln()) for k in range(_SMALL)]
        two = split(decimal.Decimal(2).ln())
        half_circle = split((2 * decimal.Decimal(_PI)).ln() / 2)
    grid_high, grid_low = np.array(grid).T
    small_high, small_low = np.array(small).T
    return _Constants((grid_high, grid_low), (small_high, small_low), two, half_circle)


def _like(array: Vector, pair: tuple[float, float]) -> Pair:
    return np.full_like(array, pair[0]), np.full_like(array, pair[1])


def log_integer(values: IntVector | Vector) -> Pair:
    """Return ln N as a pair with an absolute error of about 1e-25, for integers N >= 1.

    N = 2^e (c + d) with c an integer of eleven bits and d in [0, 1); then ln N = e ln 2 + ln c
    + ln(1 + d/c), the first two from a table, the last by its series in d/c < 2^-10.

    Args:
        values: integers from 1 to 2^53.
    """
    constants = _constants()
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    scaled = mantissa * 2.0 ** (_GRID_BITS + 1)
    whole = np.floor(scaled)
    rest = scaled - whole
    index = whole.astype(np.int64) - 2**_GRID_BITS
    shift = (exponent - (_GRID_BITS + 1)).astype(np.float64)
    first = rest / whole
    product, error = two_product(first, whole)
    second = ((rest - product) - error) / whole
    square, square_low = two_product(first, first)
    series = np.zeros_like(first)
    for order in range(9, 2, -1):
        series = series * -first + 1.0 / order
    tail = square * first * series - 0.5 * square_low - first * second
    small = two_sum(first, -0.5 * square)
    small = two_sum(small[0], small[1] + (second + tail))
    return add(
        scale(shift, _like(shift, constants.two)),
        add((constants.grid[0][index], constants.grid[1][index]), small),
    )


def log_factorial(values: IntVector) -> Pair:
    """Return ln N! as a pair, for integers N >= 0.

    Stirling's series, ln N! = (N + 1/2) ln N - N + ln(2 pi)/2 + 1/(12 N) - 1/(360 N^3) + ...,
    seven terms; below N = 16 a table. The absolute error is about 1e-18 + 1e-25 N.

    Args:
        values: integers from 0 to 2^52.
    """
    constants = _constants()
    small = constants.factorials
    count = np.maximum(np.asarray(values, dtype=np.float64), 1.0)
    inverse = 1.0 / count
    square = inverse * inverse
    series = np.zeros_like(count)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    total = add(scale(count + 0.5, log_integer(count)), (-count, series * inverse))
    total = add(total, _like(count, constants.half_circle))
    index = np.minimum(values, _SMALL - 1)
    tiny = np.asarray(values) < _SMALL
    return np.where(tiny, small[0][index], total[0]), np.where(tiny, small[1][index], total[1])


@lru_cache(maxsize=2)
def factorial_table(largest: int) -> Callable[[IntVector], Pair]:
    """Return a function equal to `log_factorial` on 0, ..., largest that looks up a table.

    The table takes 16 bytes for each entry; the last two are kept.
    """
    high, low = np.empty(largest + 1), np.empty(largest + 1)
    for start in range(0, largest + 1, _BLOCK):
        block = slice(start, min(start + _BLOCK, largest + 1))
        high[block], low[block] = log_factorial(np.arange(block.start, block.stop))
    return lambda values: (high.take(values), low.take(values))


def log_sum(logs: npt.NDArray[np.float64]) -> Any:  # noqa: ANN401
    """Return ln of the sums of exponentials over the first axis; -inf where there is none."""
    top = np.max(logs, axis=0, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(logs - shift).sum(axis=0))
