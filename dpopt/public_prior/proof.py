"""What is proved of the integers of a public prior: privacy, and how far they move the prior."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._types import Vector
from dpopt.privacy import Certificate, Guarantee, exp_lower
from dpopt.privacy.layers import Layer, LayeredRows
from dpopt.privacy.least import Least, least_of_ratio

_WORD = 64
# Bits of the room that the rarest letter has in the box of the mollifier.
_ROOM = 40


def extremes(rows: LayeredRows, layers: Sequence[Layer]) -> Iterator[tuple[int, int]]:
    """Yield a lower and an upper bound of each column's entries, off by one unit at most.

    A split gives letter j either the floor or the ceiling of rest_i k_j / S_i, so the largest
    and smallest rest_i / S_i decide; rationals are compared in integers.

    Args:
        rows: the kernel.
        layers: its layers, as `LayeredRows.layers` yields them.
    """
    if not rows.staircase:
        total = rows.share_sums[-1] or 1
        order = sorted(range(rows.size), key=lambda i: layers[i][1])
        for j, (w, share) in enumerate(zip(rows.base, rows.shares, strict=True)):
            # Of the other rows; the letter's own has its extra weight on top.
            ends = [next((i for i in way if i != j), j) for way in (order[:2], order[:-3:-1])]
            least, largest = (layers[i][1] * share for i in ends)
            own = w + rows.extra[j], layers[j][1] * share
            yield (
                min(w + least // total, own[0] + own[1] // total),
                max(w - (-largest // total), own[0] - (-own[1] // total)),
            )
        return
    high, low = (0, 1), (1, 0)
    last = rows.size - 1
    for j, (_, rest, total) in enumerate(layers):
        share, entries = rows.shares[j], [rows.extra[j]]
        if j < last:
            entries.append(rows.base[j])
        if j:
            entries += [low[0] * share // low[1], -(-high[0] * share // high[1])]
        yield min(entries), max(entries)
        if rest * high[1] > high[0] * total:
            high = (rest, total)
        if rest * low[1] < low[0] * total:
            low = (rest, total)


def certify_rows(rows: LayeredRows, epsilon: float) -> Certificate:
    """Prove that a kernel in layers is epsilon-LDP, in O(n) integer operations.

    For each letter j: no entry of column j is above r times another, r a rational <= e^epsilon.

    Raises:
        NotPrivateError: if a layer is negative, the rest of a row has nowhere to go, or a column
            fails.
    """
    total = 1 << rows.bits
    if min(rows.base) < 0 or min(rows.extra) < 0 or min(rows.shares) < 0:
        raise NotPrivateError("the kernel holds a negative weight.")
    layers = list(rows.layers())
    for i, (_, rest, share) in enumerate(layers):
        if rest < 0 or (rest and not share):
            raise NotPrivateError(f"row {i} of the kernel does not sum to 2^{rows.bits}.")
    r = exp_lower(epsilon)
    bounds = enumerate(extremes(rows, layers))
    worst, place = min((r.numerator * low - r.denominator * high, j) for j, (low, high) in bounds)
    slack = Fraction(worst, r.denominator * total)
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
        arithmetic="exact integers; the extremes of each column bounded within one unit",
        bits=rows.bits,
    )


def least_of_rows(rows: LayeredRows) -> Least:
    """Return the least epsilon of a kernel in layers, in O(n) integer operations.

    Upper end: the largest ratio of the bounds of a column, which `extremes` gives. Lower end: the
    ratio of two entries of the column that has it.

    Args:
        rows: a kernel that `certify_rows` has passed, so that no entry is 0.
    """
    if rows.size == 1:
        return least_of_ratio(Fraction(1), (0, 0), ())
    bounds = list(extremes(rows, list(rows.layers())))
    best = 0
    for j, (low, high) in enumerate(bounds):
        if high * bounds[best][0] > bounds[best][1] * low:
            best = j
    column = [rows.entry(i, best) for i in range(rows.size)]
    x, other = column.index(max(column)), column.index(min(column))
    low, high = bounds[best]
    attained = Fraction(column[x], column[other])
    return least_of_ratio(Fraction(high, low), (x, other), (best,), lower=attained)


def worst_ratio(rows: LayeredRows) -> float:
    """Return an upper bound of the largest ratio of two entries of a column, as a float."""
    if rows.size == 1:
        return 1.0
    return max(high / low for low, high in extremes(rows, list(rows.layers())))


def drift(rows: LayeredRows, prior: Sequence[int]) -> Fraction:
    """Return an upper bound of the total variation between qK and q, in exact arithmetic.

    The splits of a column are summed as fractions over 2^64 units and bounded: the rounding adds
    at most n units of 2^-bits.

    Args:
        rows: K.
        prior: q as n integers, in proportion.
    """
    guard, mass = 64, sum(prior)
    layers = list(rows.layers())
    pairs = zip(prior, layers, strict=True)
    spread = [(q * rest << guard) // (total or 1) for q, (_, rest, total) in pairs]
    before = list(accumulate(spread, initial=0))
    above = list(accumulate(prior, initial=0))
    moved = 0
    for j, q in enumerate(prior):
        base = mass - above[j + 1] if rows.staircase else mass
        came = before[j] if rows.staircase else before[-1]
        kept = rows.base[j] * base + rows.extra[j] * q
        moved += abs(((kept - (q << rows.bits)) << guard) + came * rows.shares[j])
    rounding = rows.size * mass + (sum(rows.shares) * rows.size >> guard) + 1
    return Fraction((moved >> guard) + 1 + rounding, (2 * mass) << rows.bits)


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
