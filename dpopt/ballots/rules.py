"""Rules that choose a class from its count, in exact arithmetic: the laws of their outputs.

Neighbouring histograms differ by one replaced ballot, l' = l - e_a + e_b.

*The ladder.* With r = e^epsilon, and for a class y below the largest count,

    u_y(l) = u_y(l - e_top + e_y) / r,    top any class of the largest count,

classes that share the largest count are equal, and the rest is normalisation. It depends on the
differences of the counts only. No epsilon-DP mechanism has a smaller u_y(l) for the same u_y of the
other histogram: replacing a ballot for a top class by one for y raises u_y by at most r. Not every
C and epsilon keep it private. For some it is proved for every number of ballots
(`dpopt.ballots.unbounded`); for others only instances that were audited release.

*Permute-and-flip* (McKenna, Sheldon 2020): in random order, a class of gap g is taken with
probability s^-g. *The exponential mechanism* (McSherry, Talwar 2007): u_y in proportion to s^{l_y}.
With s^2 = r both are epsilon-DP: a replaced ballot changes a gap by 2 at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Law = tuple[Fraction, ...]
"""The probability of each class, in the order of the counts."""


class Ladder:
    """The ladder's law, each sorted histogram computed once.

    Args:
        ratio: r = e^epsilon as a fraction above 1.
    """

    def __init__(self, ratio: Fraction) -> None:
        self._step = 1 / Fraction(ratio)
        self._known: dict[tuple[int, ...], dict[int, Fraction]] = {}

    def law(self, counts: Sequence[int]) -> Law:
        """Return the probability of each class of a histogram."""
        found = self._levels(counts)
        top = max(counts)
        return tuple(found[top - count] for count in counts)

    def _levels(self, counts: Sequence[int]) -> dict[int, Fraction]:
        """Return the probability of one class of each gap to the top."""
        top = max(counts)
        first = tuple(sorted(top - count for count in counts))
        waiting = [first]
        # A stack instead of a recursion, which may be deeper than Python's.
        while waiting:
            gaps = waiting[-1]
            if gaps in self._known:
                waiting.pop()
                continue
            below = {gap: _climbed(gaps, gap) for gap in set(gaps) if gap >= 2}
            missing = [other for other, _ in below.values() if other not in self._known]
            if missing:
                waiting += missing
                continue
            self._known[gaps] = self._of(gaps, below)
            waiting.pop()
        return self._known[first]

    def _of(
        self, gaps: tuple[int, ...], below: dict[int, tuple[tuple[int, ...], int]]
    ) -> dict[int, Fraction]:
        found = {gap: self._step * self._known[other][its] for gap, (other, its) in below.items()}
        rest = 1 - sum((share * gaps.count(gap) for gap, share in found.items()), Fraction(0))
        # A class one below the top: the replaced ballot swaps the two.
        found[0] = rest / (gaps.count(0) + gaps.count(1) * self._step)
        if 1 in gaps:
            found[1] = found[0] * self._step
        return found


def _climbed(gaps: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    """Return the gaps after a class of a gap of 2 or more took a ballot of a top one, and its own.

    Where the top class was alone, its count falls, and every other gap by one.
    """
    moved = list(gaps)
    moved[moved.index(gap)] = gap - 1
    moved[0] = 1
    least = min(moved)
    return tuple(sorted(value - least for value in moved)), gap - 1 - least


def ladder(counts: Sequence[int], ratio: Fraction) -> Law:
    """Return the ladder's law of one histogram.

    Args:
        counts: of the classes.
        ratio: r = e^epsilon, a fraction above 1.

    Example:
        >>> from fractions import Fraction
        >>> [str(share) for share in ladder((6, 5, 4), Fraction(2))]
        ['5/9', '5/18', '1/6']
    """
    return Ladder(ratio).law(counts)


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
