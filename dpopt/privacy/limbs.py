"""Whole numbers of any size, many at a time: exact arithmetic in numpy, chunk by chunk.

`Integers` keeps a vector of them in 64-bit words. `Limbs` is a part of such a vector while it is
calculated with: digits below 2^28, so that 2^7 products of two digits add up within 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector, Vector

Bools = npt.NDArray[np.bool_]
Digits = npt.NDArray[np.int64]

CHUNK = 1 << 13
"""Numbers calculated with at once: what stays in a core's cache."""

_BITS = 28
_BASE = 1 << _BITS
_MASK = _BASE - 1
_WORD = 64
# Floats hold quotients of numbers of up to so many bits.
_FLOAT_BITS = 900
# A share by which a quotient in floats is lessened, so that it is never too large.
_BELOW = 1 - 2.0**-46


class Limbs:
    """A vector of whole numbers as digits to the base 2^28.

    Attributes:
        digits: shape (digits, numbers), the lowest first, in 0..2^28 - 1; only the highest may be
            negative, and then the number is. With one number it meets vectors of any length.
    """

    __slots__ = ("digits",)

    def __init__(self, digits: Digits) -> None:
        self.digits = digits

    @classmethod
    def one(cls, value: int) -> Limbs:
        """Return a single number."""
        count = max(1, -(-(value.bit_length() + 1) // _BITS))
        low = [(value >> (_BITS * k)) & _MASK for k in range(count - 1)]
        return cls(np.array([*low, value >> (_BITS * (count - 1))], dtype=np.int64)[:, None])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.digits.shape[1]

    @property
    def negative(self) -> Bools:
        """Which are below 0."""
        return self.digits[-1] < 0

    @property
    def zero(self) -> Bools:
        """Which are 0."""
        return ~np.any(self.digits, axis=0)

    def __getitem__(self, part: slice | Bools) -> Limbs:
        return Limbs(self.digits[:, part])

    def __add__(self, other: Limbs | int) -> Limbs:
        return self._with(other, np.add)

    def __sub__(self, other: Limbs | int) -> Limbs:
        return self._with(other, np.subtract)

    def _with(self, other: Limbs | int, combine: Callable[..., Any]) -> Limbs:
        a, b = self.digits, _of(other).digits
        shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
        total = np.zeros((max(len(a), len(b)) + 1, *shape), dtype=np.int64)
        total[: len(a)] = a
        combine(total[: len(b)], b, out=total[: len(b)])
        return _carried(total)

    def __rsub__(self, other: int) -> Limbs:
        return Limbs.one(other) - self

    def __mul__(self, other: Limbs | int) -> Limbs:
        a, b = self.digits, _of(other).digits
        if len(a) > len(b):
            a, b = b, a
        shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
        total = np.zeros((len(a) + len(b), *shape), dtype=np.int64)
        product = np.empty((len(b), *shape), dtype=np.int64)
        for k, digit in enumerate(a):
            np.multiply(b, digit, out=product)
            total[k : k + len(b)] += product
        return _carried(total)

    def __lshift__(self, bits: int) -> Limbs:
        whole, rest = divmod(bits, _BITS)
        digits = self.digits
        total = np.zeros((len(digits) + whole + 1, digits.shape[1]), dtype=np.int64)
        np.left_shift(digits, rest, out=total[whole:-1])
        return _carried(total)

    def __rshift__(self, bits: int) -> Limbs:
        """Return the quotients by 2^bits, rounded down."""
        whole, rest = divmod(bits, _BITS)
        if whole >= len(self.digits):
            return Limbs(self.digits[-1:] >> (_WORD - 1))
        kept = self.digits[whole:].copy()
        if rest:
            above = kept[1:] << (_BITS - rest)
            kept >>= rest
            kept[:-1] |= above & _MASK
        return _trimmed(kept)

    def floor_divided(self, other: Limbs | int) -> tuple[Limbs, Limbs]:
        """Return quotients, rounded down, and remainders.

        Digit by digit, each as a quotient of floats that is never too large: what it leaves is
        below twice the divisor, and so is at the end.

        Args:
            other: above 0; self at least 0.
        """
        a, b = self.digits, _of(other).digits
        if _BITS * (len(a) + len(b) + 2) > _FLOAT_BITS:
            return _divided_one_by_one(self, Limbs(b))
        shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
        left = np.zeros((len(a) + 2, *shape), dtype=np.int64)
        left[: len(a)] = a
        divisor = _float(b, 0)
        least = int(np.floor(np.log2(divisor.min(initial=1.0 if not b.size else np.inf))))
        first = max(0, (_BITS * len(a) - least) // _BITS)
        found = np.zeros((first + 2, *shape), dtype=np.int64)
        for place in range(first, -1, -1):
            end = min(place + len(b) + 2, len(left))
            start = max(0, place - 1)
            top = _float(left[start:end], _BITS * (start - place))
            digit = (top / divisor * _BELOW).astype(np.int64)
            found[place] = digit
            window = left[place:end]
            reach = min(len(b), len(window))
            window[:reach] -= digit * b[:reach]
            for k in range(len(window) - 1):
                window[k + 1] += window[k] >> _BITS
                window[k] &= _MASK
        rest = _trimmed(left)
        over = ~(rest - Limbs(b)).negative
        while np.any(over):
            found[0] += over
            rest = where(over, rest - Limbs(b), rest)
            over = ~(rest - Limbs(b)).negative
        return _carried(found), rest

    def __floordiv__(self, other: Limbs | int) -> Limbs:
        return self.floor_divided(other)[0]

    def absolute(self) -> Limbs:
        """Return the numbers without their signs."""
        return where(self.negative, 0 - self, self)

    def sums(self, before: int = 0) -> Limbs:
        """Return the sums of the first, the first two, ... numbers, and of ``before``."""
        return _carried(np.cumsum(_padded(self.digits, 1), axis=1)) + before

    def total(self) -> int:
        """Return the sum of all numbers."""
        parts = self.digits.sum(axis=1).tolist()
        return sum(part << (_BITS * k) for k, part in enumerate(parts))

    def running_largest(self, before: Limbs) -> Limbs:
        """Return ``before``, and the largest of it and of the first, the first two, ... numbers.

        From the highest digit down: a number that falls behind in one digit is out, until the
        largest grows; the numbers between two such places are compared among themselves.

        Args:
            before: one number; it and all others at least 0.
        """
        count = max(len(self.digits), len(before.digits))
        stretches = np.zeros(self.size + 1, dtype=np.int64)
        ahead = np.ones(self.size + 1, dtype=bool)
        found = np.empty((count, self.size + 1), dtype=np.int64)
        mine, first = (_padded(part.digits, count - len(part.digits)) for part in (self, before))
        for k in range(count - 1, -1, -1):
            digit = np.concatenate([first[k], mine[k]])
            keys = (stretches << _BITS) + np.where(ahead, digit, 0)
            best = np.maximum.accumulate(keys)
            found[k] = best & _MASK
            ahead &= keys == best
            np.cumsum(best[1:] != best[:-1], out=stretches[1:])
        return Limbs(found)

    def running_least(self, before: Limbs) -> Limbs:
        """Return ``before``, and the least of it and of the first, the first two, ... numbers."""
        count = max(len(self.digits), len(before.digits))
        mine, first = (
            Limbs(_MASK - _padded(part.digits, count - len(part.digits))) for part in (self, before)
        )
        return Limbs(_MASK - mine.running_largest(first).digits)

    def least(self) -> tuple[int, int]:
        """Return the least number and its first place."""
        places = np.arange(self.size)
        for row in self.digits[::-1]:
            values = row[places]
            places = places[values == values.min()]
        place = int(places[0])
        return self.value(place), place

    def value(self, place: int) -> int:
        """Return one number."""
        return sum(int(digit) << (_BITS * k) for k, digit in enumerate(self.digits[:, place]))

    def floats(self) -> Vector:
        """Return numbers of at least 0 as floats, up to a few units of their last place."""
        if _BITS * len(self.digits) > _FLOAT_BITS:
            return np.array([float(value) for value in self.ints()])
        return _float(self.digits, 0)

    def ints(self) -> list[int]:
        """Return the numbers as Python's."""
        return _listed(self.words(-(-self.bits // _WORD)))

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return two's complements of so many words, the lowest first, shape (count, numbers)."""
        digits, found = self.digits, np.zeros((count, self.size), dtype=np.uint64)
        for k, digit in enumerate(digits):
            # The highest digit's sign goes on through all words above it.
            word, shift = divmod(_BITS * k, _WORD)
            if word < count:
                found[word] |= (digit << shift).astype(np.uint64)
            if word + 1 < count and (shift + _BITS > _WORD or k == len(digits) - 1):
                found[word + 1] |= (digit >> (_WORD - shift if shift else _WORD - 1)).astype(
                    np.uint64
                )
            if k == len(digits) - 1:
                found[word + 2 :] |= (digit >> (_WORD - 1)).astype(np.uint64)
        return found

    @property
    def bits(self) -> int:
        """So many bits hold each of the numbers, with its sign."""
        top = self.digits[-1]
        widest = max(int(top.max(initial=0)).bit_length(), int(top.min(initial=0)).bit_length())
        return _BITS * (len(self.digits) - 1) + widest + 1


def where(chosen: Bools, one: Limbs, other: Limbs) -> Limbs:
    """Return the numbers of one where they are chosen, else those of the other."""
    count = max(len(one.digits), len(other.digits))
    a, b = (_widened(part.digits, count) for part in (one, other))
    return Limbs(np.where(chosen, a, b))


def smaller(one: Limbs, other: Limbs) -> Limbs:
    """Return the smaller of each two numbers."""
    return where((one - other).negative, one, other)


def larger(one: Limbs, other: Limbs) -> Limbs:
    """Return the larger of each two numbers."""
    return where((one - other).negative, other, one)


class Integers(Sequence[int]):
    """A vector of whole numbers, kept as two's complements in words of 64 bits.

    Attributes:
        words: shape (words, numbers), the lowest first.
    """

    __slots__ = ("words",)

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self.words = words

    @classmethod
    def of(cls, values: Iterable[int], size: int | None = None) -> Integers:
        """Return Python's integers as a vector.

        Args:
            values: any integers; a vector of them is returned as it is.
            size: bytes that hold each of them with its sign, a multiple of 8; found if None.
        """
        if isinstance(values, Integers):
            return values
        if size is None:
            values = list(values)
            longest = max((value.bit_length() for value in values), default=0)
            size = 8 * (longest // _WORD + 1)
        given = iter(values)
        parts = list[npt.NDArray[np.uint64]]()
        while part := list(islice(given, CHUNK)):
            data = b"".join([value.to_bytes(size, "little", signed=True) for value in part])
            parts.append(np.frombuffer(data, dtype="<u8").reshape(len(part), -1).T)
        empty = np.zeros((size // 8, 0), dtype=np.uint64)
        return cls(np.concatenate([empty, *parts], axis=1).astype(np.uint64, copy=False))

    @classmethod
    def of_limbs(cls, parts: Iterable[Limbs], bits: int | None = None) -> Integers:
        """Return parts of a vector, one after the other.

        Args:
            parts: of any lengths.
            bits: that hold each number with its sign; found if None.
        """
        if bits is None:
            parts = list(parts)
            bits = max((part.bits for part in parts), default=1)
        count = -(-bits // _WORD)
        empty = np.zeros((count, 0), dtype=np.uint64)
        return cls(np.concatenate([empty, *(part.words(count) for part in parts)], axis=1))

    def __len__(self) -> int:
        return self.words.shape[1]

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice | IntVector) -> Integers: ...

    def __getitem__(self, place: int | slice | IntVector) -> int | Integers:
        if isinstance(place, slice | np.ndarray):
            return Integers(self.words[:, place])
        return _listed(self.words[:, place][:, None].copy())[0]

    def __iter__(self) -> Iterator[int]:
        for start in range(0, len(self), CHUNK):
            yield from _listed(self.words[:, start : start + CHUNK])

    def put(self, place: int, value: int) -> None:
        """Set one of the numbers; the words of this vector hold it."""
        self.words[:, place] = Integers.of([value], 8 * len(self.words)).words[:, 0]

    def limbs(self, start: int, stop: int) -> Limbs:
        """Return a part of the vector to calculate with."""
        words = self.words[:, start:stop]
        count = -(-_WORD * len(words) // _BITS)
        digits = np.empty((count, words.shape[1]), dtype=np.int64)
        for k in range(count):
            word, shift = divmod(_BITS * k, _WORD)
            digit = words[word] >> np.uint64(shift)
            if shift + _BITS > _WORD and word + 1 < len(words):
                digit |= words[word + 1] << np.uint64(_WORD - shift)
            digits[k] = (digit & np.uint64(_MASK)).astype(np.int64)
        # Of the highest digit only these bits are there; the first of them is the sign.
        there = _WORD * len(words) - _BITS * (count - 1)
        digits[-1] -= (digits[-1] >> (there - 1)) << there
        return _trimmed(digits)

    def parts(self) -> Iterator[Limbs]:
        """Yield the vector in parts, chunk by chunk."""
        for start in range(0, len(self), CHUNK):
            yield self.limbs(start, start + CHUNK)

    @property
    def negative(self) -> bool:
        """Whether one of the numbers is below 0."""
        return bool(np.any(self.words[-1] >> np.uint64(_WORD - 1)))

    def _highest(self) -> int:
        """Return more than the highest words, and what the others carry into them, add up to."""
        return int(self.words[-1].sum(dtype=np.float64) * 1.001) + len(self)

    def sums(self) -> Integers:
        """Return 0 and the sums of the first, the first two, ... numbers."""

        def summed() -> Iterator[Limbs]:
            before = 0
            yield Limbs.one(0)
            for part in self.parts():
                sums = part.sums(before)
                before = sums.value(-1)
                yield sums

        # The highest words bound a sum that only grows; else its terms may come in any order.
        highest = _WORD if self.negative else self._highest().bit_length()
        bits = _WORD * (len(self.words) - 1) + highest + 1
        bits += len(self).bit_length() if self.negative else 0
        return Integers.of_limbs(summed(), bits)


def _listed(words: npt.NDArray[np.uint64]) -> list[int]:
    """Return two's complements as Python's integers."""
    found = words[-1].view(np.int64).tolist()
    for word in words[-2::-1]:
        found = [high << _WORD | low for high, low in zip(found, word.tolist(), strict=True)]
    return found


def _of(value: Limbs | int) -> Limbs:
    return value if isinstance(value, Limbs) else Limbs.one(value)


def _carried(digits: Digits) -> Limbs:
    """Return numbers whose digits may be too large or negative; the array is used up."""
    for k in range(len(digits) - 1):
        digits[k + 1] += digits[k] >> _BITS
        digits[k] &= _MASK
    while digits.size and (digits[-1].max() >= _BASE or digits[-1].min() < -_BASE):
        digits = _padded(digits, 1)
        digits[-1] = digits[-2] >> _BITS
        digits[-2] &= _MASK
    return _trimmed(digits)


def _trimmed(digits: Digits) -> Limbs:
    """Return numbers without highest digits that are all 0."""
    count = len(digits)
    while count > 1 and not np.any(digits[count - 1]):
        count -= 1
    return Limbs(digits[:count])


def _padded(digits: Digits, more: int) -> Digits:
    return np.concatenate([digits, np.zeros((more, digits.shape[1]), dtype=np.int64)])


def _widened(digits: Digits, count: int) -> Digits:
    """Return as many digits as asked for, the sign in the highest."""
    if len(digits) == count:
        return digits
    wide = _padded(digits, count - len(digits))
    for k in range(len(digits) - 1, count - 1):
        wide[k + 1] = wide[k] >> _BITS
        wide[k] &= _MASK
    return wide


def _float(digits: Digits, bits: int) -> Vector:
    """Return numbers times 2^bits."""
    found = np.zeros(digits.shape[1])
    for k, digit in enumerate(digits):
        found += digit * 2.0 ** (_BITS * k + bits)
    return found


def _divided_one_by_one(one: Limbs, other: Limbs) -> tuple[Limbs, Limbs]:
    """Divide numbers beyond all floats."""
    size = max(one.size, other.size)
    tops, bottoms = (part.ints() * (size if part.size == 1 else 1) for part in (one, other))
    pairs = [divmod(a, b) for a, b in zip(tops, bottoms, strict=True)]
    quotients, rests = zip(*pairs, strict=True) if pairs else ((), ())
    found = (Integers.of(part).limbs(0, size) for part in (quotients, rests))
    return next(found), next(found)
