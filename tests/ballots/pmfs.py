"""The distributions of permute-and-flip and of the exponential mechanism, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Pmf = tuple[Fraction, ...]


def permute_and_flip(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the pmf of permute-and-flip, exactly, for a step s = e^(epsilon / 2) above 1.

    A class y has the probability q_y int_0^1 prod_(z != y) (1 - q_z t) dt with q = s^-gap: the
    classes stand in the order of uniform numbers t, and those before y were rejected.
    """
    chances = [Fraction(step) ** (count - max(counts)) for count in counts]

    def share(own: int) -> Fraction:
        product = [Fraction(1)]
        for at, q in enumerate(chances):
            if at != own:
                shifted = zip([*product, 0], [0, *product], strict=True)
                product = [a - q * b for a, b in shifted]
        return chances[own] * sum((c / (k + 1) for k, c in enumerate(product)), Fraction(0))

    # Classes of the same count have the same probability.
    by_count = {count: share(counts.index(count)) for count in set(counts)}
    return tuple(by_count[count] for count in counts)


def exponential(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the pmf of the exponential mechanism, proportional to s^count, exactly."""
    shares = [Fraction(step) ** (count - max(counts)) for count in counts]
    return tuple(share / sum(shares) for share in shares)
