"""Permute-and-flip and the exponential mechanism, exactly: distributions, and draws of any size.

Neighbouring histograms differ by one replaced ballot, l' = l - e_a + e_b, so that each gap, the
largest count less the own, differs by 2 at most. A class of gap g has the chance s^-g:

*Permute-and-flip* (McKenna, Sheldon 2020) asks the classes in uniformly random order, and takes the
first whose coin comes up. *The exponential mechanism* (McSherry, Talwar 2007) takes one in
proportion to it. With s^2 = r = e^epsilon both are epsilon-DP, exactly.

Distributions are not written out for draws: at 10^9 records they would take a million digits. Coins
decide, each compared with a uniform number of which no more bits are drawn than that needs. Those
of permute-and-flip do not depend on the order. So all can be tossed beforehand, and the first in a
uniform order of those that came up is uniform among them; there is one, since the coin of a class
of the largest count always comes up. For the exponential mechanism a class is drawn uniformly and
kept if its coin comes up, until one is.

*A coin of chance p.* With U uniform in [0, 1) and u = floor(2^b U), U < p is true if u < a, and
false if u >= c, where integers a <= 2^b p <= c are proved; else more bits of U are drawn, and b
grows. The bounds meet, so this ends with probability 1, and the chance is p itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.release import Source, below_each, random_words

_WORD = 64
_MOST_WORD = (1 << _WORD) - 1
# Classes that the exponential mechanism tries at once.
_ROUND = 1 << 14

Pmf = tuple[Fraction, ...]
"""The probability of each class, in the order of the counts."""


def permute_and_flip(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the distribution of permute-and-flip.

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
    """Return E_0, E_1, ... of values: the coefficients of the product of 1 + value x."""
    sums = [Fraction(1)]
    for value in values:
        sums = [a + value * b for a, b in zip([*sums, 0], [0, *sums], strict=True)]
    return sums


def exponential(counts: Sequence[int], step: Fraction) -> Pmf:
    """Return the distribution of the exponential mechanism, in proportion to s^count.

    Args:
        counts: of the classes.
        step: s = e^(epsilon / 2), a fraction above 1.
    """
    top = max(counts)
    shares = [Fraction(1) / Fraction(step) ** (top - count) for count in counts]
    total = sum(shares, Fraction(0))
    return tuple(share / total for share in shares)


class Coins:
    """Coins of chance s^-gap, the bounds of each gap computed once.

    Args:
        step: s, a fraction above 1.
        source: of random bytes.
    """

    def __init__(self, step: Fraction, source: Source) -> None:
        self._step, self._source = step, source
        self._known: dict[int, tuple[int, int]] = {}

    def toss(self, gaps: IntVector) -> npt.NDArray[np.bool_]:
        """Return which coins come up, one for each gap of at least 0."""
        distinct, place = np.unique(gaps, return_inverse=True)
        bounds = [self._bounds(gap) for gap in distinct.tolist()]
        # A gap of 0 has the chance 1, which no word is; it is decided apart.
        low = np.array([min(a, _MOST_WORD) for a, _ in bounds], dtype=np.uint64)[place]
        last = np.array([min(c - 1, _MOST_WORD) for _, c in bounds], dtype=np.uint64)[place]
        drawn = random_words(len(gaps), self._source)
        up = drawn < low
        for undecided in np.flatnonzero(~up & (drawn <= last) & (gaps > 0)).tolist():
            up[undecided] = self._decided(int(gaps[undecided]), int(drawn[undecided]))
        return up | (gaps == 0)

    def permute_and_flip(self, counts: IntVector) -> int:
        """Return the index of a class, drawn by permute-and-flip; counts of shape (C,)."""
        up = np.flatnonzero(self.toss(counts.max() - counts))
        return int(up[below_each(np.array([up.size]), self._source)[0]])

    def exponential(self, counts: IntVector) -> int:
        """Return the index of a class, drawn by the exponential mechanism; counts of shape (C,).

        The number of tries depends on the counts, and so does the time that it takes.
        """
        gaps = counts.max() - counts
        tries = min(len(gaps), _ROUND)
        while True:
            places = below_each(np.full(tries, len(gaps)), self._source)
            up = np.flatnonzero(self.toss(gaps[places]))
            if up.size:
                return int(places[up[0]])

    def _bounds(self, gap: int) -> tuple[int, int]:
        if gap not in self._known:
            self._known[gap] = power_bounds(self._step, gap, _WORD)
        return self._known[gap]

    def _decided(self, gap: int, drawn: int) -> bool:
        """Return U < s^-gap for a U that begins with a word which does not decide."""
        bits = _WORD
        while True:
            drawn = (drawn << _WORD) | int(random_words(1, self._source)[0])
            bits += _WORD
            low, high = power_bounds(self._step, gap, bits)
            if drawn < low or drawn >= high:
                return drawn < low


def power_bounds(step: Fraction, gap: int, bits: int) -> tuple[int, int]:
    """Return integers a <= 2^bits s^-gap <= c, close together."""
    # Every product loses a unit, and squaring doubles what was lost.
    spare = gap.bit_length() + 8
    work, one = bits + spare, 1 << (bits + spare)
    low, high = one, one
    least = (step.denominator << work) // step.numerator
    most = -((-step.denominator << work) // step.numerator)
    while gap:
        if gap & 1:
            low, high = low * least >> work, -(-high * most >> work)
        least, most, gap = least * least >> work, -(-most * most >> work), gap >> 1
    return low >> spare, -(-high >> spare)
