"""What is proved of the integers of a public prior: privacy, and how far they move the prior."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._types import Vector
from dpopt.privacy import Certificate, Guarantee, exp_lower
from dpopt.privacy.least import Least, least_of_ratio
from dpopt.public_prior.layers import LayeredRows, Letter

_WORD = 64
# Bits beyond the weights' own of the ratios that splits are bounded by.
_FINE = 28
# Bits beyond the weights' own of the splits that a drift sums.
_GUARD = 64
# Bits of the room that the rarest letter has in the box of the mollifier.
_ROOM = 40


def extremes(rows: LayeredRows) -> Iterator[tuple[int, int]]:
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


def _staircase_extremes(rows: LayeredRows) -> Iterator[tuple[int, int]]:
    fine, last = rows.bits + _FINE, rows.size - 1
    up, least, largest = (1 << fine) - 1, 1 << (fine + rows.bits), 0
    for j, (base, extra, share, rest, total) in enumerate(_lawful(rows)):
        low = high = extra
        # A column has the splits of the rows before it, and its base in those after it.
        if j:
            low = min(low, least * share >> fine)
            high = max(high, (largest * share + up) >> fine)
        if j < last:
            low, high = min(low, base), max(high, base)
        yield low, high
        if total:
            ratio, over = divmod(rest << fine, total)
            least, largest = min(least, ratio), max(largest, ratio + bool(over))


def _flat_extremes(rows: LayeredRows) -> Iterator[tuple[int, int]]:
    total = sum(rows.shares) or 1
    rests = [(letter.rest, i) for i, letter in enumerate(_lawful(rows))]
    # Of the other rows; the letter's own has its extra weight on top. A single row is both.
    (first, row), (second, _) = (heapq.nsmallest(2, rests) * 2)[:2]
    (most, largest), (next_most, _) = (heapq.nlargest(2, rests) * 2)[:2]
    for j, (base, extra, share, rest, _) in enumerate(rows.letters()):
        own = extra + rest * share // total, extra - (-rest * share // total)
        low = (second if j == row else first) * share // total
        high = -(-(next_most if j == largest else most) * share // total)
        yield base + min(low, own[0]), base + max(high, own[1])


def certify_rows(rows: LayeredRows, epsilon: float) -> Certificate:
    """Prove that a kernel in layers is epsilon-LDP, in O(n) integer operations.

    For each letter j: no entry of column j is above r times another, r a rational <= e^epsilon.

    Raises:
        NotPrivateError: if a layer is negative, the rest of a row has nowhere to go, or a column
            fails.
    """
    if min(map(min, (rows.base, rows.extra, rows.shares))) < 0:
        raise NotPrivateError("the kernel holds a negative weight.")
    r = exp_lower(epsilon)
    top, bottom = r.numerator, r.denominator
    worst, place = min(
        (low * top - high * bottom, place) for place, (low, high) in enumerate(extremes(rows))
    )
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


def _lawful(rows: LayeredRows) -> Iterator[Letter]:
    """Yield the letters of a kernel, of which each row sums to 2^bits.

    Raises:
        NotPrivateError: for the first row that does not.
    """
    for row, letter in enumerate(rows.letters()):
        if letter.rest < 0 or (letter.rest and not letter.total):
            raise NotPrivateError(f"row {row} of the kernel does not sum to 2^{rows.bits}.")
        yield letter


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
    column = list(rows.column(best))
    top, bottom = max(column), min(column)
    attained = (column.index(top), column.index(bottom))
    return least_of_ratio(Fraction(high, low), attained, (best,), lower=Fraction(top, bottom))


def _largest_ratio(rows: LayeredRows) -> tuple[tuple[int, int], int]:
    """Return the bounds of the first column whose ratio is the largest, and the column."""
    best, at = (0, 1), 0
    for j, (low, high) in enumerate(extremes(rows)):
        if high * best[1] > best[0] * low:
            best, at = (high, low), j
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
    mass, shares = sum(prior), sum(rows.shares)
    moved = above = came = 0
    if not rows.staircase:
        came = sum(_spread(letter, q) for letter, q in zip(rows.letters(), prior, strict=True))
    for letter, q in zip(rows.letters(), prior, strict=True):
        above += q if rows.staircase else 0
        stayed = letter.base * (mass - above) + letter.extra * q - (q << rows.bits)
        moved += abs((stayed << _GUARD) + came * letter.share)
        came += _spread(letter, q) if rows.staircase else 0
    rounding = rows.size * mass + (shares * rows.size >> _GUARD) + 1
    return Fraction((moved >> _GUARD) + 1 + rounding, (2 * mass) << rows.bits)


def _spread(letter: Letter, q: int) -> int:
    """Return q rest_i / S_i over 2^64."""
    return (q * letter.rest << _GUARD) // (letter.total or 1)


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
