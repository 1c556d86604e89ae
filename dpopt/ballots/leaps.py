r"""The ladder at counts of any size: its law in fractions, its bounds in integers, an exact draw.

Below the top a class y follows u_y(l) = x u_y(l - e_top + e_y), x = 1 / r, until its gap is 0 or 1.
These steps are one leap: after k of them y is at a gap of 0 or 1 in m, and u_y(l) = x^k T(m), or
x^(k + 1) T(m) from a gap of 1, with T the share of one top class. In m the class joins those of gap
0 or 1, and these stay there while others leap. So at most 2^(C - 1) histograms occur, however many
ballots there are.

*Bounds.* T(m) = (1 - sum of u_w(m) over gaps of 2 and more) / (n_0 + n_1 x), n_0 and n_1 the
numbers of classes of gap 0 and 1. For given b all is computed in integers over 2^b, rounded
outward. Where the ladder is a law, a class of gap g has a share of at most x^(g / 2): a step brings
it 2 nearer at most, and from a gap of 1 there is a factor x left. As log r >= 2 (r - 1) / (r + 1),
the share is below 2^-b where g (r - 1) >= b (r + 1), and such a class leaps nowhere: its bounds are
0 and 1. The divisor is at least 1 and powers are at most 1, so all bounds meet as b grows.

*The draw.* Let F_y be the sum of the shares of the classes up to y, F_C = 1, and U uniform in
[0, 1). The class is the first y with U < F_y: its law is u, exactly. Of U the first b bits are
drawn, u = floor(2^b U). With integers L_y <= 2^b F_y <= H_y, U < F_y is true if u < L_y (then
u + 1 <= 2^b F_y), and false if u >= H_y. So y is decided if H_{y-1} <= u < L_y. If no class is, U
gets 64 bits more and the bounds are computed anew. Other bits of the same U never change what was
decided; and as the bounds meet, the chance that b bits do not decide goes to 0. So the draw ends
with probability 1, and its law is that of the rational r, without rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

Gaps = tuple[int, ...]
"""Distances of the counts to the largest one, rising."""

_WORD = 64


def ladder_leaps(counts: Sequence[int], ratio: Fraction) -> tuple[Fraction, ...]:
    """Return the ladder's law as `dpopt.ballots.ladder` does, for counts of any size.

    The fractions have as many digits as r to the power of the gaps: thousands are quick, 10^5 are
    not; `ladder_bounds` and `ladder_draw` are.

    Args:
        counts: of the classes.
        ratio: r, above 1.

    Example:
        >>> from fractions import Fraction
        >>> law = ladder_leaps((1_000_000, 999_995, 999_990), Fraction(2))
        >>> [round(float(share), 4) for share in law]
        [0.9071, 0.0825, 0.0104]
    """
    x, known = 1 / Fraction(ratio), {}

    def top(gaps: Gaps) -> Fraction:
        if gaps not in known:
            rest = 1 - sum(
                (share(gaps, gap) * gaps.count(gap) for gap in {*gaps} - {0, 1}), Fraction(0)
            )
            known[gaps] = rest / (gaps.count(0) + gaps.count(1) * x)
        return known[gaps]

    def share(gaps: Gaps, gap: int) -> Fraction:
        if gap < 2:
            return top(gaps) * x**gap
        other, its, steps = _leapt(gaps, gaps.index(gap))
        return top(other) * x ** (steps + its)

    most = max(counts)
    gaps = tuple(sorted(most - count for count in counts))
    shares = {gap: share(gaps, gap) for gap in set(gaps)}
    return tuple(shares[most - count] for count in counts)


def ladder_bounds(counts: Sequence[int], ratio: Fraction, bits: int) -> tuple[tuple[int, int], ...]:
    """Return integers a <= 2^bits u_y <= b of each class y, close together, for counts of any size.

    Args:
        counts: of the classes.
        ratio: r, above 1, at which the ladder is a law: as where it is private.
        bits: at least 1.

    Example:
        >>> from fractions import Fraction
        >>> ladder_bounds((10**9, 10**9 - 2, 0), Fraction(2), 8)
        ((191, 193), (63, 64), (0, 1))
    """
    bounds = _Bounds(ratio, bits)
    most = max(counts)
    gaps = tuple(sorted(most - count for count in counts))
    found = {gap: bounds.share(gaps, gap) for gap in set(gaps)}
    return tuple(found[most - count] for count in counts)


def ladder_draw(counts: Sequence[int], ratio: Fraction, word: Callable[[], int]) -> int:
    """Return the place of a class, drawn from the ladder's law, exactly.

    How many words are drawn depends on the counts, and so does the time that it takes.

    Args:
        counts: of the classes.
        ratio: r, above 1, at which the ladder is a law: as where it is private.
        word: draws a uniform integer below 2^64.
    """
    drawn, bits = 0, 0
    while True:
        drawn, bits = (drawn << _WORD) | word(), bits + _WORD
        place = _decided(ladder_bounds(counts, ratio, bits), drawn, bits)
        if place is not None:
            return place


def _decided(bounds: Sequence[tuple[int, int]], drawn: int, bits: int) -> int | None:
    """Return the class of every U that begins with these bits; None if they do not decide it."""
    low = high = 0
    for place, (least, most) in enumerate(bounds):
        before, low, high = high, low + least, high + most
        if place == len(bounds) - 1:
            low = 1 << bits
        if drawn < low:
            return place if drawn >= before else None
    return None


class _Bounds:
    """Bounds of shares over 2^bits, each histogram computed once."""

    def __init__(self, ratio: Fraction, bits: int) -> None:
        above, below = Fraction(ratio).as_integer_ratio()
        self._bits, self._one = bits, 1 << bits
        self._x = (below << bits) // above, -((-below << bits) // above)
        # Gaps from here on: shares below 2^-bits.
        self._far = -(-bits * (above + below) // (above - below))
        self._known: dict[Gaps, tuple[int, int]] = {}

    def share(self, gaps: Gaps, gap: int) -> tuple[int, int]:
        """Return bounds of the share of one class of a gap."""
        if gap >= max(self._far, 2):
            return 0, 1
        if gap < 2:
            return self._times(self._top(gaps), self._power(gap))
        other, its, steps = _leapt(gaps, gaps.index(gap))
        return self._times(self._top(other), self._power(steps + its))

    def _top(self, gaps: Gaps) -> tuple[int, int]:
        if gaps not in self._known:
            low = high = self._one
            for gap in {*gaps} - {0, 1}:
                least, most = self.share(gaps, gap)
                many = gaps.count(gap)
                low, high = low - many * most, high - many * least
            alone, ones = gaps.count(0) << self._bits, gaps.count(1)
            least = (max(0, low) << self._bits) // (alone + ones * self._x[1])
            most = -(-(high << self._bits) // (alone + ones * self._x[0]))
            self._known[gaps] = least, min(most, self._one)
        return self._known[gaps]

    def _times(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return one[0] * other[0] >> self._bits, -(-one[1] * other[1] >> self._bits)

    def _power(self, exponent: int) -> tuple[int, int]:
        found, square = (self._one, self._one), self._x
        while exponent:
            if exponent & 1:
                found = self._times(found, square)
            square, exponent = self._times(square, square), exponent >> 1
        return found


def _leapt(gaps: Gaps, place: int) -> tuple[Gaps, int, int]:
    """Return the gaps once a class has come to a gap of 0 or 1, its own, and its steps.

    After k steps the top has fallen by the largest L at which the others have lost no more than k
    on the way: sum of (L - gap)^+ <= k. What is left of the k lowers as many of them by one more.
    """
    others, gap = [*gaps[:place], *gaps[place + 1 :]], gaps[place]

    def fallen(steps: int) -> int:
        lost = steps
        for many, (other, further) in enumerate(pairwise(others), 1):
            lost += other
            if lost // many <= further:
                return lost // many
        return (lost + others[-1]) // len(others)

    low, high = 1, gap - 1
    while low < high:
        middle = (low + high) // 2
        near = gap - middle - fallen(middle) <= 1
        low, high = (low, middle) if near else (middle + 1, high)
    fell = fallen(low)
    left = low - sum(max(0, fell - other) for other in others)
    moved = [max(0, other - fell) for other in others]
    for at in range(left):
        moved[at] += 1
    its = gap - low - fell
    return tuple(sorted([*moved, its])), its, low
