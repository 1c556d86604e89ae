"""What is proved of the integers of a public prior: privacy, and how far they move the prior."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._types import Vector
from dpopt.privacy import Certificate, Guarantee, exp_lower
from dpopt.privacy.layers import LayeredRows, Part
from dpopt.privacy.least import Least, least_of_ratio
from dpopt.privacy.limbs import CHUNK, Integers, Limbs, larger, smaller, where

_WORD = 64
# Bits beyond the weights' own of the ratios that splits are bounded by.
_FINE = 28
# Bits beyond the weights' own of the splits that a drift sums.
_GUARD = 64
_ZERO, _ONE = Limbs.one(0), Limbs.one(1)
# Bits of the room that the rarest letter has in the box of the mollifier.
_ROOM = 40


def extremes(rows: LayeredRows) -> Iterator[tuple[Limbs, Limbs]]:
    """Yield lower and upper bounds of the columns' entries, off by two units at most.

    A split gives letter j either the floor or the ceiling of rest_i k_j / S_i, so the largest
    and smallest rest_i / S_i decide. In a staircase these are integers over 2^(bits + 28), rounded
    outward.

    Args:
        rows: the kernel, none of whose weights is negative.

    Raises:
        NotPrivateError: if the rest of a row is negative, or has nowhere to go.
    """
    return _staircase_extremes(rows) if rows.staircase else _flat_extremes(rows)


def _staircase_extremes(rows: LayeredRows) -> Iterator[tuple[Limbs, Limbs]]:
    fine, last = rows.bits + _FINE, rows.size - 1
    least, largest = Limbs.one(1 << (fine + rows.bits)), _ZERO
    for part in _lawful(rows):
        split = ~part.total.zero
        ratio, over = (part.rest << fine).floor_divided(where(split, part.total, _ONE))
        lows = where(split, ratio, least).running_least(least)
        highs = where(split, ratio + _up(over), largest).running_largest(largest)
        # A column has the splits of the rows before it; the first column has none.
        place = np.arange(part.start, part.start + part.extra.size)
        low = (lows[:-1] * part.shares) >> fine
        high = (highs[:-1] * part.shares + ((1 << fine) - 1)) >> fine
        low = where(place > 0, smaller(low, part.extra), part.extra)
        high = where(place > 0, larger(high, part.extra), part.extra)
        yield (
            where(place < last, smaller(low, part.base), low),
            where(place < last, larger(high, part.base), high),
        )
        least, largest = lows[-1:], highs[-1:]


def _flat_extremes(rows: LayeredRows) -> Iterator[tuple[Limbs, Limbs]]:
    total = rows.share_sums[rows.size] or 1
    ends = [_two_least(part.rest * sign for part in _lawful(rows)) for sign in (1, -1)]
    for part in rows.parts():
        place = np.arange(part.start, part.start + part.extra.size)
        # Of the other rows; the letter's own has its extra weight on top.
        least, largest = (
            where(place == row, Limbs.one(abs(second)), Limbs.one(abs(first)))
            for (first, row), (second, _) in ends
        )
        own, own_over = (part.rest * part.shares).floor_divided(total)
        high, over = (largest * part.shares).floor_divided(total)
        own += part.extra
        yield (
            part.base + smaller((least * part.shares) // total, own),
            part.base + larger(high + _up(over), own + _up(own_over)),
        )


def _up(rest: Limbs) -> Limbs:
    """Return 1 where a division left something, else 0."""
    return where(rest.zero, _ZERO, _ONE)


def _two_least(parts: Iterable[Limbs]) -> list[tuple[int, int]]:
    """Return the two least numbers of a vector with their places; a single one twice."""
    found, start = list[tuple[int, int]](), 0
    for part in parts:
        value, place = part.least()
        found.append((value, start + place))
        if part.size > 1:
            value, other = Limbs(np.delete(part.digits, place, axis=1)).least()
            found.append((value, start + other + (other >= place)))
        start += part.size
    return (sorted(found) * 2)[:2]


def certify_rows(rows: LayeredRows, epsilon: float) -> Certificate:
    """Prove that a kernel in layers is epsilon-LDP, in O(n) integer operations.

    For each letter j: no entry of column j is above r times another, r a rational <= e^epsilon.

    Raises:
        NotPrivateError: if a layer is negative, the rest of a row has nowhere to go, or a column
            fails.
    """
    if any(Integers.of(values).negative for values in (rows.base, rows.extra, rows.shares)):
        raise NotPrivateError("the kernel holds a negative weight.")
    r, start, found = exp_lower(epsilon), 0, list[tuple[int, int]]()
    for low, high in extremes(rows):
        room, place = (low * r.numerator - high * r.denominator).least()
        found.append((room, start + place))
        start += low.size
    worst, place = min(found)
    slack = Fraction(worst, r.denominator << rows.bits)
    if worst < 0:
        raise NotPrivateError(
            f"column {place} of the kernel breaks {epsilon:g}-LDP by {roughly(-slack)}.",
            output=str(place),
            excess=float(-slack),
        )
    n = rows.size
    claim = f"kernel is private between all {n} letters"
    if n == 1:
        claim = "kernel has one letter, which has no neighbour: there was nothing to prove"
    return Certificate(
        claim=claim,
        guarantee=Guarantee(epsilon),
        ratio=r,
        constraints=n * n * (n - 1),
        slack=slack,
        tightest=f"output {place}, in the order of the kernel's rows",
        arithmetic="exact integers; the extremes of each column bounded within two units",
        bits=rows.bits,
    )


def _lawful(rows: LayeredRows) -> Iterator[Part]:
    """Yield the parts of a kernel, of which each row sums to 2^bits.

    Raises:
        NotPrivateError: for the first row that does not.
    """
    for part in rows.parts():
        wrong = part.rest.negative | (~part.rest.zero & part.total.zero)
        if np.any(wrong):
            row = part.start + int(np.argmax(wrong))
            raise NotPrivateError(f"row {row} of the kernel does not sum to 2^{rows.bits}.")
        yield part


def least_of_rows(rows: LayeredRows) -> Least:
    """Return the least epsilon of a kernel in layers, in O(n) integer operations.

    Upper end: the largest ratio of the bounds of a column, which `extremes` gives. Lower end: the
    ratio of two entries of the column that has it.

    Args:
        rows: a kernel that `certify_rows` has passed, so that no entry is 0.
    """
    if rows.size == 1:
        return least_of_ratio(Fraction(1), (0, 0), ())
    (high, low), best = _largest_ratio(rows)
    ends, start = list[tuple[int, int, int, int]](), 0
    for part in rows.column(best):
        least, most = part.least(), (0 - part).least()
        ends.append((most[0], start + most[1], least[0], start + least[1]))
        start += part.size
    (top, x), (bottom, other) = min(end[:2] for end in ends), min(end[2:] for end in ends)
    attained = Fraction(-top, bottom)
    return least_of_ratio(Fraction(high, low), (x, other), (best,), lower=attained)


def _largest_ratio(rows: LayeredRows) -> tuple[tuple[int, int], int]:
    """Return the bounds of the column whose ratio is the largest, and the column: the first such.

    Ratios are compared as integers over 2^(2 bits), and those that are the same there exactly.
    """
    best, at, start = (0, 1), 0, 0
    for low, high in extremes(rows):
        ratio = (high << (2 * rows.bits + 2)) // low
        # All that are above the best so far, or as much as it there.
        _, place = (0 - ratio).least()
        alike = np.flatnonzero((ratio - ratio[place : place + 1]).zero)
        for j in alike.tolist():
            top, bottom = high.value(j), low.value(j)
            if top * best[1] > best[0] * bottom:
                best, at = (top, bottom), start + j
        start += low.size
    return best, at


def worst_ratio(rows: LayeredRows) -> float:
    """Return an upper bound of the largest ratio of two entries of a column, as a float."""
    if rows.size == 1:
        return 1.0
    (high, low), _ = _largest_ratio(rows)
    return high / low


def drift(rows: LayeredRows, prior: Sequence[int]) -> Fraction:
    """Return an upper bound of the total variation between qK and q, in exact arithmetic.

    The splits of a column are summed as fractions over 2^64 units and bounded: the rounding adds
    at most n units of 2^-bits.

    Args:
        rows: K.
        prior: q as n integers, in proportion.
    """
    kept = Integers.of(prior)
    mass = sum(part.total() for part in kept.parts())
    moved = above = came = 0
    if not rows.staircase:
        came = sum(
            _spread(part, kept.limbs(part.start, part.start + CHUNK)).total()
            for part in rows.parts()
        )
    for part in rows.parts():
        q = kept.limbs(part.start, part.start + CHUNK)
        base, before = Limbs.one(mass), Limbs.one(came)
        if rows.staircase:
            spread = _spread(part, q)
            sums = spread.sums(came)
            before, through = sums - spread, q.sums(above)
            base = mass - through
            came, above = sums.value(-1), through.value(-1)
        stayed = part.base * base + part.extra * q - (q << rows.bits)
        moved += ((stayed << _GUARD) + before * part.shares).absolute().total()
    shares = rows.share_sums[rows.size]
    rounding = rows.size * mass + (shares * rows.size >> _GUARD) + 1
    return Fraction((moved >> _GUARD) + 1 + rounding, (2 * mass) << rows.bits)


def _spread(part: Part, prior: Limbs) -> Limbs:
    """Return q_i rest_i / S_i over 2^64."""
    total = where(part.total.zero, _ONE, part.total)
    return ((prior * part.rest) << _GUARD) // total


def box_bits(masses: Vector, epsilon: float) -> int:
    """Return the bits at which every letter has room for more than 2^40 integers."""
    width = math.log2(float(masses.min())) + math.log2(-math.expm1(-epsilon)) - epsilon
    return _WORD * math.ceil((_ROOM - width) / _WORD)


def integer_box(masses: Vector, epsilon: float, bits: int) -> list[tuple[int, int]]:
    """Return the least and the largest integer over 2^bits for each letter of the mollifier.

    With h a rational <= e^(epsilon/2): q / h <= r <= q h, so that h^2 <= e^epsilon bounds the ratio
    of any two laws. For a letter j: floor(q_j h 2^bits) and ceil(q_j 2^bits / h).

    Args:
        masses: q, shape (n,).
        epsilon: in nats.
        bits: of the integers.
    """
    half = exp_lower(epsilon / 2)
    exact = [Fraction(mass) for mass in masses.tolist()]
    unit = (1 << bits) / sum(exact)
    return [(math.ceil(mass * unit / half), math.floor(mass * unit * half)) for mass in exact]


def certify_mollified(units: Sequence[int], masses: Vector, epsilon: float) -> Certificate:
    """Prove that a law is in the relative epsilon-mollifier of a prior.

    Every law there is within e^epsilon of every other one, so that a mechanism which draws from
    such laws only is epsilon-LDP, however it chose them.

    Args:
        units: the law, integers that sum to a power of two.
        masses: q, shape (n,).
        epsilon: in nats.

    Raises:
        ParameterError: if units are no law over the letters.
        NotPrivateError: if the law is outside.
    """
    bits = box_bits(masses, epsilon)
    whole = all(type(weight) is int and weight >= 0 for weight in units)
    if len(units) != masses.size or not whole or sum(units) != 1 << bits:
        raise ParameterError(
            f"units must be {masses.size} integers of at least 0 that sum to 2^{bits}."
        )
    limits = integer_box(masses, epsilon, bits)
    room = [
        (min(weight - low, high - weight), place)
        for place, (weight, (low, high)) in enumerate(zip(units, limits, strict=True))
    ]
    slack, place = min(room)
    if slack < 0:
        raise NotPrivateError(
            f"letter {place} is outside the {epsilon:g}-mollifier by "
            f"{roughly(Fraction(-slack, 1 << bits))}.",
            output=str(place),
            excess=float(Fraction(-slack, 1 << bits)),
        )
    return Certificate(
        claim=f"law of {len(units)} letters is in the relative mollifier of the prior, where all "
        "laws are private from each other",
        guarantee=Guarantee(epsilon),
        ratio=exp_lower(epsilon / 2) ** 2,
        constraints=2 * len(units),
        slack=Fraction(slack, 1 << bits),
        tightest=f"letter {place}",
        arithmetic="exact integers",
        bits=bits,
    )
