"""From a nearly private float kernel to integer weights that are private, at a measured cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import repeat
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, digits
from dpopt._progress import track
from dpopt._types import Vector
from dpopt.privacy.exact import Pairs, edge_list, resolve_ratio
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.kernel import ExactKernel

_BITS = (63, 95, 127)
# Bits that the rarest letter has beyond those that its rounding takes.
_SPARE_BITS = 32


class _Law(NamedTuple):
    """Probabilities as integers over their sum: without a greatest common divisor at each step."""

    parts: list[int]
    total: int

    def fractions(self) -> list[Fraction]:
        return [Fraction(part, self.total) for part in self.parts]


def quantise_kernel(
    kernel: npt.ArrayLike,
    guarantee: Guarantee,
    *,
    pairs: Pairs | None = None,
    row: npt.ArrayLike | None = None,
    tolerance: float = 1e-7,
    ratio: Rational | None = None,
    one_way: bool = False,
) -> ExactKernel:
    """Return the certified kernel of integer weights next to a float kernel.

    The kernel is mixed with an input-independent row u, K <- (1 - eta) K + eta 1 u^T, with eta
    just large enough for the worst exact violation and for the rounding to come; then each row
    is rounded to integers over 2^bits that sum to 2^bits (largest remainders).

    With tau = max over neighbours of K[x, y] - r K[x', y] and rho = (1 + r) 2^-bits,
    eta = max over y of (tau + rho) / ((r - 1) u[y] + tau); for delta > 0, the least eta that
    brings every hockey-stick divergence to delta less the rounding. No mixing if rounding the
    rows is enough.

    Args:
        kernel: shape (inputs, outputs), rows summing to 1 up to 1e-6.
        guarantee: the (epsilon, delta) to certify.
        pairs: directed neighbours; all pairs of inputs if None.
        row: u, shape (outputs,), positive where the kernel is; if None the mean of the kernel's
            rows, or where that costs too much, as at an output of hardly any mass, its average
            with the uniform law of the outputs that occur. With u = q, a kernel that keeps q
            fixed keeps it up to rounding.
        tolerance: most total variation between a row and its rounded version. Precision is
            raised from 63 to 127 bits, and beyond where a letter is too rare for these, until
            the rounding allows it.
        ratio: e^epsilon as a rational, if it is one.
        one_way: see `certify_kernel`, as for pairs.

    Raises:
        ParameterError: if the kernel is no kernel.
        NotPrivateError: if making it private costs more than the tolerance: it was not nearly
            private, or u has too little mass somewhere.

    Example:
        >>> from dpopt.privacy import Guarantee, quantise_kernel
        >>> exact = quantise_kernel([[0.8, 0.2], [0.2, 0.8]], Guarantee(1.0), tolerance=0.1)
        >>> exact.matrix().round(4).tolist(), exact.certificate.slack >= 0
        ([[0.7311, 0.2689], [0.2689, 0.7311]], True)
    """
    exact, rows = _exact_rows(kernel, row)
    r = resolve_ratio(guarantee, ratio)
    tolerance = _checks.real("tolerance", tolerance, 0.0, 1.0, open_lower=True)
    edges = edge_list(pairs, len(exact), one_way=one_way)
    cost = Fraction(1)
    for u, bits in ((row, bits) for row in rows for bits in _precisions(row, r)):
        for eta in (Fraction(0), _mixing(exact, u, r, Fraction(guarantee.delta), edges, bits)):
            if eta is None:
                continue
            lines = track(exact, f"rounding to {bits} bits")
            weights = [_round_row(_mixed(line, u, eta), bits) for line in lines]
            moved = max(map(_distance, exact, weights, repeat(bits)))
            if moved <= tolerance:
                asked: Any = {"pairs": edges, "ratio": ratio, "one_way": one_way}
                with suppress(NotPrivateError):
                    return ExactKernel.make(weights, bits, guarantee, cost=float(moved), **asked)
            cost = min(cost, moved) if eta else cost
    raise NotPrivateError(
        f"making the kernel ({guarantee.epsilon:g}, {guarantee.delta:g})-DP moves a row by "
        f"{digits(float(cost))} in total variation, above tolerance {digits(tolerance)}; "
        "solve more tightly, or raise tolerance."
    )


def _precisions(u: _Law, r: Fraction) -> Iterator[int]:
    """Yield the precisions to try: a further one where a letter is too rare for the others."""
    yield from _BITS
    rarest = Fraction(min((part for part in u.parts if part), default=u.total), u.total)
    if r > 1:
        bits = _SPARE_BITS + int((1 + r) / ((r - 1) * rarest)).bit_length()
        if _BITS[-1] < bits <= MOST_BITS:
            yield bits


def _mixed(line: _Law, u: _Law, eta: Fraction) -> _Law:
    """Return (1 - eta) K[x, .] + eta u over the product of the three denominators."""
    if not eta:
        return line
    kept = (eta.denominator - eta.numerator) * u.total
    added = eta.numerator * line.total
    parts = [kept * part + added * mass for part, mass in zip(line.parts, u.parts, strict=True)]
    return _Law(parts, eta.denominator * line.total * u.total)


def _exact_rows(kernel: npt.ArrayLike, row: npt.ArrayLike | None) -> tuple[list[_Law], list[_Law]]:
    array = _checks.floats("kernel", kernel)
    if array.ndim != 2 or 0 in array.shape:
        raise ParameterError(f"kernel has shape {array.shape}; it must be (inputs, outputs).")
    if not np.all(np.isfinite(array)) or np.any(array < -1e-6):
        raise ParameterError("kernel holds a negative number, or one that is not finite.")
    if np.any(np.abs(array.sum(axis=1) - 1.0) > 1e-6):
        raise ParameterError("kernel has a row that does not sum to 1.")
    array = np.maximum(array, 0.0)
    exact = [_normalised(line) for line in array]
    mean = array.mean(axis=0) if row is None else _checks.floats("row", row)
    usable = mean.shape == (array.shape[1],) and bool(np.all(np.isfinite(mean) & (mean >= 0)))
    if not usable or not 0 < mean.max() <= 1e300:
        raise ParameterError(f"row must be {array.shape[1]} non-negative numbers, not all zero.")
    if np.any((mean == 0) & np.any(array > 0, axis=0)):
        raise ParameterError("row is 0 at an output that the kernel can give.")
    if row is not None:
        return exact, [_normalised(mean)]
    occurs = (array.max(axis=0) > 0).astype(float)
    return exact, [_normalised(mean), _normalised(mean + occurs / occurs.sum())]


def _normalised(values: Vector) -> _Law:
    ratios = [float(value).as_integer_ratio() for value in values]
    # Denominators of floats are powers of 2: the largest is a multiple of all.
    common = max(denominator for _, denominator in ratios)
    parts = [numerator * (common // denominator) for numerator, denominator in ratios]
    return _Law(parts, sum(parts))


def _mixing(
    rows: Sequence[_Law],
    u: _Law,
    r: Fraction,
    delta: Fraction,
    edges: list[tuple[int, int]] | None,
    bits: int,
) -> Fraction | None:
    """Return eta, or None if this precision leaves no room for rounding."""
    unit, eta = Fraction(1, 1 << bits), Fraction(0)
    # A delta below the rounding is no room: what is private without it will do.
    room, masses = delta - len(u.parts) * (1 + r) * unit, u.fractions()
    if room > 0:
        laws = [row.fractions() for row in rows]
        inputs = range(len(laws))
        chosen = [(x, y) for x in inputs for y in inputs if x != y] if edges is None else edges
        gains = [(r - 1) * mass for mass in masses]
        found = (least_mixing(laws[x], laws[y], r, gains, room) for x, y in chosen)
        return max(found, default=eta)
    for tau, mass in zip(_violations(rows, r, edges), masses, strict=True):
        if mass == 0:
            continue
        # eta (r - 1) u >= (1 - eta) tau + rounding
        rounding, gain = (1 + r) * unit, (r - 1) * mass
        if tau + rounding > 0:
            if gain <= rounding:
                return None
            eta = max(eta, (tau + rounding) / (gain + tau))
    return eta


def _violations(
    rows: Sequence[_Law], r: Fraction, edges: list[tuple[int, int]] | None
) -> list[Fraction]:
    """Return, for each output, the largest K[x, y] - r K[x', y] over the edges."""
    if edges is None:
        columns = zip(*(row.fractions() for row in rows), strict=True)
        return [max(column) - r * min(column) for column in columns]
    worst: list[tuple[int, int]] = [(-1, 1)] * len(rows[0].parts)
    for x, other in edges:
        scale, against = r.denominator * rows[other].total, r.numerator * rows[x].total
        below = scale * rows[x].total
        for y, (part, beside) in enumerate(zip(rows[x].parts, rows[other].parts, strict=True)):
            over = scale * part - against * beside
            most, unit = worst[y]
            # Signs decide most comparisons of over / below with the largest so far.
            if (over >= 0 or most < 0) and over * unit > most * below:
                worst[y] = (over, below)
    return [Fraction(over, below) for over, below in worst]


def least_mixing(
    row: Sequence[Fraction],
    other: Sequence[Fraction],
    r: Fraction,
    gains: Sequence[Fraction],
    room: Fraction,
) -> Fraction:
    """Return the least eta with sum_y max(0, (1 - eta) g_y - eta (r - 1) u_y) <= room.

    g_y = K[x, y] - r K[x', y]. Newton's steps on this convex, piecewise linear function stay left
    of the root and reach it after at most one step for each output.
    """
    terms = [(a - r * b, gain) for a, b, gain in zip(row, other, gains, strict=True)]
    eta = Fraction(0)
    while True:
        active = [(g, gain) for g, gain in terms if (1 - eta) * g > eta * gain]
        excess = sum((g for g, _ in active), Fraction(0))
        slope = excess + sum((gain for _, gain in active), Fraction(0))
        if excess - eta * slope <= room:
            return eta
        eta = (excess - room) / slope


def _round_row(row: _Law, bits: int) -> list[int]:
    """Return integers that sum to 2^bits, each within one of row * 2^bits."""
    divided = [divmod(part << bits, row.total) for part in row.parts]
    floors = [floor for floor, _ in divided]
    short = (1 << bits) - sum(floors)
    by_remainder = sorted(range(len(floors)), key=lambda i: -divided[i][1])
    for place in by_remainder[:short]:
        floors[place] += 1
    return floors


def _distance(row: _Law, weights: Sequence[int], bits: int) -> Fraction:
    """Return the total variation between a row and its integers over 2^bits."""
    pairs = zip(row.parts, weights, strict=True)
    moved = sum(abs((part << bits) - weight * row.total) for part, weight in pairs)
    return Fraction(moved, row.total << (bits + 1))
