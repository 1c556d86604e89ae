"""Rules that choose a class from its count, in exact arithmetic: the distribution of the output.

Neighbouring histograms differ by one replaced ballot, l' = l - e_a + e_b.

*Permute-and-flip* (McKenna, Sheldon 2020): in random order, a class of gap g is taken with
probability s^-g. *The exponential mechanism* (McSherry, Talwar 2007): u_y in proportion to s^{l_y}.
With s^2 = r = e^epsilon both are epsilon-DP: a replaced ballot changes a gap by 2 at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Law = tuple[Fraction, ...]
"""The probability of each class, in the order of the counts."""


def permute_and_flip(counts: Sequence[int], step: Fraction) -> Law:
    """Return the law of permute-and-flip.

    A class y of chance q_y = s^-gap has probability q_y sum_j E_j(1 - q_z : z != y) / (C
    binom(C - 1, j)), with E_j the elementary symmetric polynomial: j others were refused before.

    Args:
        counts: of the classes.
        step: s = e^(epsilon / 2), a fraction above 1.
    """
    top, size = max(counts), len(counts)
    chances = [Fraction(1) / Fraction(step) ** (top - count) for count in counts]
    known: dict[int, Fraction] = {}
    for place, count in enumerate(counts):
        if count not in known:
            others = [1 - chance for at, chance in enumerate(chances) if at != place]
            sums, binomial, total = _elementary(others), 1, Fraction(0)
            for j, value in enumerate(sums):
                total += value / (size * binomial)
                binomial = binomial * (size - 1 - j) // (j + 1)
            known[count] = chances[place] * total
    return tuple(known[count] for count in counts)


def _elementary(values: Sequence[Fraction]) -> list[Fraction]:
    sums = [Fraction(1)]
    for value in values:
        sums = [
            (sums[j] if j < len(sums) else Fraction(0)) + (sums[j - 1] * value if j else 0)
            for j in range(len(sums) + 1)
        ]
    return sums


def exponential(counts: Sequence[int], step: Fraction) -> Law:
    """Return the law of the exponential mechanism, in proportion to s^count.

    Args:
        counts: of the classes.
        step: s = e^(epsilon / 2), a fraction above 1.
    """
    top = max(counts)
    shares = [Fraction(1) / Fraction(step) ** (top - count) for count in counts]
    total = sum(shares, Fraction(0))
    return tuple(share / total for share in shares)
