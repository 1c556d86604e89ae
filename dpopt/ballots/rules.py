"""Exact draws of permute-and-flip and of the exponential mechanism, for any size.

Neighbouring histograms differ by one replaced ballot, l' = l - e_a + e_b, so the gap of a class,
the largest count minus its own, changes by at most 2. A class of gap g has a coin that comes up
with probability s^-g.

*Permute-and-flip* (McKenna, Sheldon 2020) visits the classes in uniformly random order and returns
the first whose coin comes up. *The exponential mechanism* (McSherry, Talwar 2007) returns a class
with probability proportional to s^-g. With s^2 = r = e^epsilon both are exactly epsilon-DP.

Draws do not compute the distribution: for 10^9 records it would take a million digits. They toss
coins, comparing each with a uniform number of which only as many bits are drawn as needed. The
coins of permute-and-flip do not depend on the order, so all are tossed first; the first of the
successes in a uniform order is uniform among them. There is always one, since the coin of a class
of the largest count always comes up. The exponential mechanism is rejection sampling: draw a class
uniformly, and accept it if its coin comes up.

*A coin of probability p.* Let U be uniform in [0, 1) and u = floor(2^b U). Given integers
a <= 2^b p <= c, U < p is true if u < a and false if u >= c; otherwise more bits of U are drawn, and
b grows. The bounds converge, so this ends with probability 1, and the probability is exactly p.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.privacy.release import WORD, Source, below_each, random_words


class Coins:
    """Coins that come up with probability s^-gap; the bounds for each gap are cached.

    Args:
        step: s, a fraction above 1.
        source: of random bytes.
    """

    def __init__(self, step: Fraction, source: Source) -> None:
        self._step, self._source = step, source
        self._bounds = cache(partial(power_bounds, step, bits=WORD))

    def toss(self, gaps: IntVector) -> npt.NDArray[np.bool_]:
        """Return which coins come up, one for each gap; gaps are at least 0."""
        distinct, index = np.unique(gaps, return_inverse=True)
        bounds = [self._bounds(gap) for gap in distinct.tolist()]
        # A gap of 0 has probability 1, which exceeds every word; it is handled in the last line.
        low = np.array([min(a, 2**WORD - 1) for a, _ in bounds], dtype=np.uint64)[index]
        last = np.array([min(c - 1, 2**WORD - 1) for _, c in bounds], dtype=np.uint64)[index]
        drawn = random_words(len(gaps), self._source)
        up = drawn < low
        # Few draws fall between the bounds; these need more bits.
        for undecided in np.flatnonzero(~up & (drawn <= last) & (gaps > 0)).tolist():
            up[undecided] = self._decided(int(gaps[undecided]), int(drawn[undecided]))
        return up | (gaps == 0)

    def permute_and_flip(self, counts: IntVector) -> int:
        """Return the index of a class drawn by permute-and-flip; counts have shape (C,)."""
        up = np.flatnonzero(self.toss(counts.max() - counts))
        return int(up[below_each(np.array([up.size]), self._source)[0]])

    def exponential(self, counts: IntVector) -> int:
        """Return the index of a class drawn by the exponential mechanism; counts have shape (C,).

        The number of tries, and so the running time, depends on the counts.
        """
        gaps = counts.max() - counts
        # Classes that the exponential mechanism tries in one vectorised round.
        tries = min(len(gaps), 1 << 14)
        while True:
            classes = below_each(np.full(tries, len(gaps)), self._source)
            up = np.flatnonzero(self.toss(gaps[classes]))
            if up.size:
                return int(classes[up[0]])

    def _decided(self, gap: int, drawn: int) -> bool:
        """Return whether U < s^-gap, for a U whose first word ``drawn`` does not decide it."""
        bits = WORD
        while True:
            drawn = (drawn << WORD) | int(random_words(1, self._source)[0])
            bits += WORD
            low, high = power_bounds(self._step, gap, bits)
            if drawn < low or drawn >= high:
                return drawn < low


def power_bounds(step: Fraction, gap: int, bits: int) -> tuple[int, int]:
    """Return integers a <= 2^bits s^-gap <= c that differ by at most a few units."""
    # Repeated squaring: every product rounds by one unit, and squaring doubles the error.
    guard = gap.bit_length() + 8
    work, one = bits + guard, 1 << (bits + guard)
    low, high = one, one
    least = (step.denominator << work) // step.numerator
    most = -((-step.denominator << work) // step.numerator)
    while gap:
        if gap & 1:
            low, high = low * least >> work, -(-high * most >> work)
        least, most, gap = least * least >> work, -(-most * most >> work), gap >> 1
    return low >> guard, -(-high >> guard)
