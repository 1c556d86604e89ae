"""From a prior to a certified kernel of integers: precision, margin, proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpopt._errors import NotPrivateError
from dpopt._types import Vector
from dpopt.privacy import Certificate, exp_lower
from dpopt.privacy.layers import LayeredRows
from dpopt.public_prior.proof import certify_rows, drift, worst_ratio

# The kernel is made for r - (r - 1) 2^-40, so that rounding has room below r; this moves no
# diagonal entry by more than about 1e-12 of itself.
_MARGIN_BITS = 40
_HEADROOM_BITS = 12
_WORD = 64
_RAISES = 3

Maker = Callable[[list[int], Fraction, int], LayeredRows]
"""Makes rows from integer masses in ascending order, a ratio and bits."""


@dataclass(frozen=True, eq=False)
class CertifiedRows:
    """The integers of a kernel, letters by ascending prior mass, and what was proved of them.

    Attributes:
        rows: the integers.
        certificate: the proof that they are epsilon-LDP.
        drift: upper bound of the total variation between qK and q.
    """

    rows: LayeredRows
    certificate: Certificate
    drift: float

    @cached_property
    def worst_ratio(self) -> float:
        """Upper bound of the largest K_ij / K_i'j, at most e^epsilon up to the float's rounding."""
        return worst_ratio(self.rows)


def certified_rows(masses: Vector, epsilon: float, make: Maker) -> CertifiedRows:
    """Return a kernel's integers, certified; precision is raised until they pass.

    Args:
        masses: q in ascending order, shape (n,).
        epsilon: in nats, above 0.
        make: makes the rows.

    Raises:
        NotPrivateError: if no precision tried is enough.
    """
    ratio = _reduced_ratio(epsilon)
    bits = _least_bits(float(masses[0]), epsilon)
    largest = bits + _RAISES * _WORD
    while True:
        whole = integer_masses(masses, bits)
        rows = make(whole, ratio, bits)
        try:
            certificate = certify_rows(rows, epsilon)
        except NotPrivateError:
            if bits >= largest:
                raise
            bits += _WORD
        else:
            return CertifiedRows(rows, certificate, float(drift(rows, whole)))


def integer_masses(masses: Vector, bits: int) -> list[int]:
    """Return floats as integers over 2^bits, rounded down; their order is kept."""
    found = []
    for mass in masses.tolist():
        fraction, exponent = math.frexp(mass)
        mantissa, shift = int(math.ldexp(fraction, 53)), bits + exponent - 53
        found.append(mantissa << shift if shift >= 0 else mantissa >> -shift)
    return found


def _reduced_ratio(epsilon: float) -> Fraction:
    r = exp_lower(epsilon)
    smaller = r - (r - 1) / (1 << _MARGIN_BITS)
    bits = _WORD + _MARGIN_BITS + max(0, -math.floor(math.log2(epsilon)))
    return Fraction((smaller.numerator << bits) // smaller.denominator, 1 << bits)


def _least_bits(least_mass: float, epsilon: float) -> int:
    """Return bits, two less than whole words, that leave a rounding unit well inside the margin."""
    below = math.log2(-math.expm1(-epsilon))
    scale = math.log2(1 + math.expm1(epsilon) * least_mass) + epsilon / math.log(2)
    needed = _MARGIN_BITS + _HEADROOM_BITS - below - math.log2(least_mass) + scale
    return _WORD * math.ceil((needed + 2) / _WORD) - 2
