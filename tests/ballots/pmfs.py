"""The distributions of permute-and-flip and of the exponential mechanism, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Pmf = tuple[Fraction, ...]


def permute_and_flip(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the pmf of permute-and-flip, exactly.

    With q_y = s^-gap, a class y has probability q_y sum_j E_j(1 - q_z : z != y) / (C
    binom(C - 1, j)), with E_j the elementary symmetric polynomial: j other classes were rejected
    before y.

    Args:
        counts: of the C classes.
        step: s = e^(epsilon / 2), a fraction above 1.
    """
    top, size = max(counts), len(counts)
    chances = [Fraction(1) / Fraction(step) ** (top - count) for count in counts]
    # Classes of the same count have the same probability.
    by_count: dict[int, Fraction] = {}
    for index, count in enumerate(counts):
        if count not in by_count:
            others = [1 - chance for at, chance in enumerate(chances) if at != index]
            sums, binomial, total = _elementary(others), 1, Fraction(0)
            for j, value in enumerate(sums):
                total += value / (size * binomial)
                binomial = binomial * (size - 1 - j) // (j + 1)
            by_count[count] = chances[index] * total
    return tuple(by_count[count] for count in counts)


def _elementary(values: Sequence[Fraction]) -> list[Fraction]:
    """Return E_0, E_1, ... of values: the coefficients of the product of 1 + value x."""
    sums = [Fraction(1)]
    for value in values:
        sums = [a + value * b for a, b in zip([*sums, 0], [0, *sums], strict=True)]
    return sums


def exponential(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the pmf of the exponential mechanism, proportional to s^count, exactly."""
    top = max(counts)
    shares = [Fraction(1) / Fraction(step) ** (top - count) for count in counts]
    total = sum(shares, Fraction(0))
    return tuple(share / total for share in shares)
