"""Permute-and-flip and the exponential mechanism drawn exactly, for counts of any size.

Their laws are not written out: at 10^9 records they would take a million digits. Coins decide, each
of chance e^-x for a rational x, compared with a uniform number of which no more bits are drawn than
the comparison needs.

*Permute-and-flip* asks the classes in uniformly random order, and takes the first whose coin of
chance p_y = e^(-epsilon gap / 2) comes up. The coins do not depend on the order. So all can be
tossed beforehand, and the first in a uniform order of those that came up is uniform among them;
there is one, since the coin of a class of the largest count always comes up.

*The exponential mechanism* takes y in proportion to p_y: y is drawn uniformly and kept if its coin
comes up, until one is.

*A coin of chance e^-x.* With U uniform in [0, 1) and u = floor(2^b U), U < e^-x is true if u < a,
and false if u >= c, where integers a <= 2^b e^-x <= c are proved; else more bits of U are drawn,
and b grows. Since e^-x is irrational for rational x > 0, this ends with probability 1, and the
chance is e^-x itself, without rounding. So both rules are epsilon-DP exactly: in any neighbour each
gap differs by 2 at most (McKenna, Sheldon 2020; McSherry, Talwar 2007).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.exponential import exp_bounds

Words = Callable[[int], npt.NDArray[np.uint64]]
"""Draws that many uniform words of 64 bits."""

_WORD = 64
_ROUND = 1 << 14
"""Classes that the exponential mechanism tries at once."""


class Coins:
    """Coins of chance e^(-rate gap), the bounds of each gap computed once.

    Args:
        rate: what a gap of 1 costs, epsilon / 2, as a fraction above 0.
        words: where random bits are from.
    """

    def __init__(self, rate: Fraction, words: Words) -> None:
        self._rate, self._words = rate, words
        self._known: dict[int, tuple[int, int]] = {}

    def toss(self, gaps: IntVector) -> npt.NDArray[np.bool_]:
        """Return which coins come up, one for each gap of at least 0."""
        distinct, place = np.unique(gaps, return_inverse=True)
        bounds = [self._bounds(gap) for gap in distinct.tolist()]
        # A gap of 0 has the chance 1, which no word is; it is decided apart.
        most = (1 << _WORD) - 1
        low = np.array([min(a, most) for a, _ in bounds], dtype=np.uint64)[place]
        last = np.array([min(c - 1, most) for _, c in bounds], dtype=np.uint64)[place]
        drawn = self._words(len(gaps))
        up = drawn < low
        for undecided in np.flatnonzero(~up & (drawn <= last) & (gaps > 0)).tolist():
            up[undecided] = self._decided(int(gaps[undecided]), int(drawn[undecided]))
        return up | (gaps == 0)

    def below(self, limit: int, count: int) -> IntVector:
        """Return integers, each uniform below a limit of at most 2^62."""
        # Words of the last, incomplete run of `limit` values are drawn again.
        last = np.uint64((1 << _WORD) // limit * limit - 1)
        drawn = self._words(count)
        while (again := np.flatnonzero(drawn > last)).size:
            drawn[again] = self._words(again.size)
        return (drawn % np.uint64(limit)).astype(np.int64)

    def _bounds(self, gap: int) -> tuple[int, int]:
        if gap not in self._known:
            self._known[gap] = _bounds(gap * self._rate, _WORD)
        return self._known[gap]

    def _decided(self, gap: int, drawn: int) -> bool:
        """Return U < e^-x for a U that begins with a word which does not decide."""
        bits = _WORD
        while True:
            drawn, bits = (drawn << _WORD) | int(self._words(1)[0]), bits + _WORD
            low, high = _bounds(gap * self._rate, bits)
            if drawn < low or drawn >= high:
                return drawn < low


def permute_and_flip_draw(counts: IntVector, coins: Coins) -> int:
    """Return the place of a class, drawn from permute-and-flip's law.

    Args:
        counts: of the classes, shape (C,).
        coins: of rate epsilon / 2.
    """
    up = np.flatnonzero(coins.toss(counts.max() - counts))
    return int(up[coins.below(up.size, 1)[0]])


def exponential_draw(counts: IntVector, coins: Coins) -> int:
    """Return the place of a class, drawn from the exponential mechanism's law.

    The number of tries depends on the counts, and so does the time that it takes.
    """
    gaps = counts.max() - counts
    tries = min(len(gaps), _ROUND)
    while True:
        places = coins.below(len(gaps), tries)
        up = np.flatnonzero(coins.toss(gaps[places]))
        if up.size:
            return int(places[up[0]])


def _bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers a <= 2^bits e^-exponent <= c."""
    # log 2 < 7/10: a power below 2^-bits needs no more than that.
    if 10 * exponent > 7 * bits:
        return 0, 1
    return exp_bounds(-exponent, bits)
