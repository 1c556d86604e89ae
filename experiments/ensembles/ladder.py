"""The ladder's distribution in fractions, and the computation that proves it private for every K.

The theorem and its proof are on the page docs/theorems/ladder.md; the names here are the page's.
`python -m experiments.ensembles.ladder` prints the least r that it is told for, by classes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, exp, inf, isqrt, log
from typing import NamedTuple

from dpopt.privacy.exact import log_near

Gaps = tuple[int, ...]
"""Distances of the counts to the largest one, rising."""

BITS = 96
_ONE = 1 << BITS

LEAST = {3: "10/9", 4: "1.35", 5: "1.65", 6: "2.25", 7: "2.75", 8: "3.4", 9: "4.1", 10: "5"}
"""For C classes an r from which on `intervals` proves the ladder private for every K."""


class Ladder:
    """The ladder's distribution at r = e^epsilon > 1, each sorted histogram computed once."""

    def __init__(self, ratio: Fraction) -> None:
        self._step = 1 / Fraction(ratio)
        self._known: dict[Gaps, dict[int, Fraction]] = {}

    def pmf(self, counts: Sequence[int]) -> tuple[Fraction, ...]:
        """Return the probability of each class of a histogram, in the order of the counts."""
        top = max(counts)
        first = tuple(sorted(top - count for count in counts))
        waiting = [first]
        # A stack instead of a recursion, which may be deeper than Python's.
        while waiting:
            gaps = waiting[-1]
            above = {gap: _climbed(gaps, gaps.index(gap)) for gap in {*gaps} - {0, 1}}
            missing = [other for other, _, _ in above.values() if other not in self._known]
            if missing and gaps not in self._known:
                waiting += missing
                continue
            waiting.pop()
            share = {gap: self._step * self._known[to][its] for gap, (to, its, _) in above.items()}
            rest = 1 - sum((p * gaps.count(gap) for gap, p in share.items()), Fraction(0))
            share[0] = rest / (gaps.count(0) + gaps.count(1) * self._step)
            # A class one below the top: the replaced ballot swaps the two.
            share[1] = share[0] * self._step
            self._known[gaps] = share
        return tuple(self._known[first][top - count] for count in counts)


def ladder(counts: Sequence[int], ratio: Fraction) -> tuple[Fraction, ...]:
    """Return the ladder's distribution for the counts of the classes, at r = e^epsilon > 1.

    Example:
        >>> from fractions import Fraction
        >>> [str(share) for share in ladder((6, 5, 4), Fraction(2))]
        ['5/9', '5/18', '1/6']
    """
    return Ladder(ratio).pmf(counts)


def _climbed(gaps: Gaps, place: int) -> tuple[Gaps, int, int]:
    """Return the gaps once a class took a ballot of a top one, its own, and how far the top fell.

    Where the top class was alone, its count falls, and every other gap by one.
    """
    moved = list(gaps)
    moved[place] -= 1
    moved[0] = 1
    least = min(moved)
    return tuple(sorted(gap - least for gap in moved)), moved[place] - least, least


class Shares(NamedTuple):
    """Of one class: bounds of its share and of its phi, over 2^96."""

    low: int
    high: int
    phi: int


@dataclass(frozen=True)
class Unbounded:
    """What the ladder spends at most, for every number of ballots.

    Attributes:
        classes: C.
        reach: G.
        excess: the ladder spends at most r * excess, over the interval of r; 1 if it is private.
        states: number of gap vectors.
    """

    classes: int
    reach: int
    excess: Fraction
    states: int

    @property
    def private(self) -> bool:
        """Whether the ladder is r-DP for every number of ballots."""
        return self.excess <= 1


def spent_by_any_number(
    classes: int, ratio: Fraction, reach: int, *, above: Fraction | float | None = None
) -> Unbounded:
    """Return what the ladder spends at most, for every number of ballots and all r of an interval.

    Args:
        classes: C, at least 2.
        ratio: the least r, above 1.
        reach: G, at least 3: the largest gap that is told from others. About 2 log(C / epsilon) /
            epsilon is enough.
        above: the largest r, which may be infinite; ``ratio`` if None.

    Example:
        >>> from fractions import Fraction
        >>> spent_by_any_number(4, Fraction(2), 14).private
        True
    """
    low, high = Fraction(ratio), ratio if above is None else above
    found = [_of_near(near, classes, reach, low, high) for near in range(1, classes + 1)]
    excess = max(most for most, _ in found)
    return Unbounded(classes, reach, excess, sum(states for _, states in found))


def _of_near(
    near: int, classes: int, limit: int, low: Fraction, high: Fraction | float
) -> tuple[Fraction, int]:
    """Return the excess where some number of classes is near, the others far; and the states."""
    # x below and above, and the root of the upper one.
    least = 0 if high == inf else int(_ONE / Fraction(high))
    x = (least, -(-_ONE * low.denominator // low.numerator))
    root = isqrt(x[1] << BITS) + 1
    known = listed(near, limit + 2, x, root)
    # f x^(h / 2) of lemma 2, for far gaps of G + 1 in l and of G - 1 in its neighbour.
    errors = []
    for gap in (limit + 1, limit - 1):
        error = (classes - near) << BITS
        for _ in range(gap):
            error = -(-error * root >> BITS)
        errors.append(error)
    best = Fraction(1)
    for gaps, moved, monotone in _moves(known, near, limit, far=classes > near):
        one, other = known[gaps][0], known[_sorted(moved)][0]
        slips = (-(-errors[0] * one.phi >> BITS), -(-errors[1] * other.phi >> BITS))
        # (A) allows r, (B) nothing.
        for more, less, allowed in (
            (one.high + slips[0], other.low - slips[1], Fraction(1) if monotone else low),
            (other.high + slips[1], one.low - slips[0], low),
        ):
            if less <= 0:
                # It may be no distribution: no ratio is enough.
                best = max(best, Fraction(2))
            elif more > best * less * allowed:
                best = Fraction(more, less) / allowed
    return best, len(known)


def listed(
    classes: int, limit: int, x: tuple[int, int], root: int
) -> dict[Gaps, dict[int, Shares]]:
    """Return bounds of the share of one class of each gap, for all gap vectors up to a limit.

    In the order of the spread of the counts: each step of a class towards the top lowers it.

    Args:
        classes: C.
        limit: the largest gap.
        x: at most the least and at least the largest 1 / r, over 2^96.
        root: at least the root of the largest, over 2^96.
    """
    states = [(0, *rest) for rest in combinations_with_replacement(range(limit + 1), classes - 1)]
    states.sort(key=lambda gaps: classes * sum(gap * gap for gap in gaps) - sum(gaps) ** 2)
    known: dict[Gaps, dict[int, Shares]] = {}
    for gaps in states:
        found: dict[int, Shares] = {}
        low = high = 0
        phi = _ONE
        for place, gap in enumerate(gaps):
            if gap < 2:
                continue
            if gap not in found:
                other, its, fell = _climbed(gaps, place)
                then = known[other][its]
                # x r^(1/2) where the top falls by one is the root of x.
                factor = root if fell else x[1]
                found[gap] = Shares(
                    then.low * x[0] >> BITS,
                    -(-then.high * x[1] >> BITS),
                    -(-then.phi * factor >> BITS),
                )
            low += found[gap].low
            high += found[gap].high
            phi += found[gap].phi
        alone, ones = gaps.count(0) << BITS, gaps.count(1)
        most, least = alone + ones * x[1], alone + ones * x[0]
        top = Shares(
            max(0, ((_ONE - high) << BITS) // most),
            -(-((_ONE - low) << BITS) // least),
            -(-(phi << BITS) // least),
        )
        found[0] = top
        if ones:
            found[1] = Shares(
                top.low * x[0] >> BITS, -(-top.high * x[1] >> BITS), -(-top.phi * x[1] >> BITS)
            )
        known[gaps] = found
    return known


def _moves(
    known: dict[Gaps, dict[int, Shares]], near: int, limit: int, *, far: bool
) -> Iterator[tuple[Gaps, Gaps, bool]]:
    """Yield the gaps of l, of a neighbour in which y = 0 is on top too, and whether (B) is asked.

    None stands for a far class.
    """
    places = [*range(near), *([None] if far else [])]
    for gaps in known:
        if gaps[-1] > limit:
            continue
        seen: set[tuple[tuple[bool, int] | None, ...]] = set()
        for loser in places:
            for gainer in places:
                # Classes of one gap are alike, but for y.
                kind = tuple(
                    None if place is None else (place == 0, gaps[place])
                    for place in (loser, gainer)
                )
                if (loser == gainer and loser is not None) or kind in seen:
                    continue
                seen.add(kind)
                moved = list(gaps)
                if loser is not None:
                    moved[loser] += 1
                if gainer is not None:
                    moved[gainer] -= 1
                if min(moved) < moved[0]:
                    continue
                yield gaps, tuple(moved), _monotone(gaps, loser, gainer)


def _monotone(gaps: Gaps, loser: int | None, gainer: int | None) -> bool:
    if gainer == 0:
        return any(gap == 0 and place not in (0, loser) for place, gap in enumerate(gaps))
    shares = loser is not None and loser != 0 and gaps[loser] == 0
    return shares and (gainer is None or gaps[gainer] >= 2)


def _sorted(gaps: Gaps) -> Gaps:
    least = min(gaps)
    return tuple(sorted(gap - least for gap in gaps))


def surely_broken(classes: int, ratio: Fraction) -> bool:
    """Return whether a pair of the page breaks r-DP at some number of ballots, C classes, r > 1."""
    c, r = classes, ratio
    second = (
        12 * r**4 + (25 - c) * r**3 - (c * c - 7 * c + 18) * r**2 - (c * c - 7 * c + 16) * r + c - 3
    )
    return 4 * r < c - 2 or (c >= 4 and second < 0)


def intervals(classes: int, ratio: Fraction) -> tuple[Unbounded, ...]:
    """Return proofs that the ladder is r-DP for every number of ballots and every r from one on.

    Intervals of r are tried from the left, longer after each that is proved, shorter after each
    that is not; the last has no end.
    """
    low, proofs = Fraction(ratio), []
    width = log_near(low) / 50
    while True:
        epsilon = log_near(low)
        # Enough in most cases.
        reach = max(6, ceil(2 / epsilon * log(10 * classes / min(epsilon, 1.0) ** 2)))
        if epsilon > 1:
            last = spent_by_any_number(classes, low, reach, above=inf)
            if last.private:
                return (*proofs, last)
        high = Fraction(exp(epsilon + width)).limit_denominator(1_000_000)
        found = spent_by_any_number(classes, low, reach, above=high)
        if found.private:
            proofs.append(found)
            low, width = high, 1.5 * width
        else:
            width /= 2
            if width < 1e-3 * epsilon:
                raise ValueError(f"no proof for {classes} classes at epsilon {epsilon:.6g}")


if __name__ == "__main__":
    for count, least in LEAST.items():
        proofs = intervals(count, Fraction(least))
        most = max(proof.states for proof in proofs)
        sys.stdout.write(
            f"{count} classes, from r = {least}: {len(proofs)} intervals, {most:,} gap vectors\n"
        )
