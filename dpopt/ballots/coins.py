"""Permute-and-flip and the exponential mechanism drawn exactly, for counts of any size.

Their distributions are not written out: at 10^9 records they would take a million digits. Coins
decide, each of chance s^-gap for a rational step s, compared with a uniform number of which no more
bits are drawn than the comparison needs.

*Permute-and-flip* asks the classes in uniformly random order, and takes the first whose coin comes
up. The coins do not depend on the order. So all can be tossed beforehand, and the first in a
uniform order of those that came up is uniform among them; there is one, since the coin of a class
of the largest count always comes up.

*The exponential mechanism* takes y in proportion to s^-gap: y is drawn uniformly and kept if its
coin comes up, until one is.

*A coin of chance p.* With U uniform in [0, 1) and u = floor(2^b U), U < p is true if u < a, and
false if u >= c, where integers a <= 2^b p <= c are proved; else more bits of U are drawn, and b
grows. The bounds meet, so this ends with probability 1, and the chance is p itself. In any
neighbour each gap differs by 2 at most: both rules are log(s^2)-DP, exactly (McKenna, Sheldon 2020;
McSherry, Talwar 2007).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.release import Source, below_each, random_words

_WORD = 64
_MOST_WORD = (1 << _WORD) - 1
# Classes that the exponential mechanism tries at once.
_ROUND = 1 << 14


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
