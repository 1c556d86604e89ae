"""Why a smooth floor is private, and when it is not: a theorem decided in integers.

A letter y has probability W(c_y) / Z, Z the sum over all letters; W(c) = c U from c* on, with
U = 2^bits.

Theorem. Let D(c) = W(c + 1) - W(c), and let L(l, t) be the least sum of W over l letters with t
records. If r >= 1 and

    (1) W(0) > 0 and 0 <= D(0) <= D(1) <= ... <= D(c* - 1) <= D(c*) = U,

then K(y | x') <= r K(y | x) for all neighbours x, x' and all letters y if and only if

    (2) W(c + 1) Z <= r W(c) (Z + D(c) - D(d - 1))

for all c >= 0 and d >= 1 with c + d <= n, where Z is W(c) + W(d) plus the sum over the other k - 2
letters, L(k - 2, n - c - d) where D(d - 1) >= D(c), else the largest they can have.

Proof. Going from x to x', one letter g gains a record, from count c, and one letter loses one, from
count d. The sum of all weights moves from Z to Z + D(c) - D(d - 1), and the ratio of K(y) is
W(c'_y) / W(c_y) times Z / (Z + D(c) - D(d - 1)). W does not decrease, so the first factor is at
most 1 for every letter but g: the ratio of g is the largest. It does not increase in Z where
D(d - 1) >= D(c), and does not decrease otherwise; that is (2), and all of it occurs. Neighbours are
symmetric, so this covers both directions.

Few d need a look. W is convex by (1), so L spreads records evenly, and Z falls in d up to
v = floor((n - c) / (k - 1)), where all letters but g are even, and rises from there on; D(d - 1)
rises up to d = c* + 1, and not after. So no d below both is worse than the lesser of the two, and
of the d above c* one is worst: v if it is among them, else c* + 1. (For k = 2, d is n - c = v.)
Where D(d - 1) < D(c) for all d, n - c is worst. From c* on, (2) is at most c + 1 <= r c.

Blocks of the others, c1 <= c <= c2 and d1 <= d <= d2, are decided at once where they can be:

    (3) (W(c1) + D(c2)) Z <= r W(c1) (Z + min(0, D(c1) - D(d2 - 1)))

implies (2) on the block for Z = W(c1) + L(k - 1, n - c2), or the larger
W(c1) + W(d1) + L(k - 2, n - c2 - d2). Blocks are halved until (3) holds with the largest ratio
found so far in the place of r, or a single c and d are left, which (2) is for.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dpopt._errors import ParameterError
from dpopt._progress import advance
from dpopt._types import brief
from dpopt.roo.setting import RooSetting

_LONGEST = 2_000_000
_STAGE = "proof of the smooth floor"

Block = tuple[int, int, int, int]
"""c1, c2, d1, d2."""


@dataclass(frozen=True)
class FloorAudit:
    """What the theorem's inequalities give for one table of weights.

    Attributes:
        private: whether K(y | x') <= r K(y | x) for all neighbours and letters.
        worst_ratio: the largest K(y | x') / K(y | x), attained.
        slack: no r K(y | x) - K(y | x') is smaller, as a probability: r - worst_ratio times the
            least K; below 0 if not private.
        count: the c where the ratio is largest.
        loser: the d there.
        rows: number of inequalities decided; they imply all others.
    """

    private: bool
    worst_ratio: Fraction
    slack: Fraction
    count: int
    loser: int
    rows: int

    def __repr__(self) -> str:
        return brief(self)


def floor_weights(growth: float, bits: int) -> tuple[int, ...]:
    """Return W(0)..W(c* - 1) for s > 0, from the top down; c* = ceil(1 / s).

    Raises:
        ParameterError: if there are more than 2e6.
    """
    step = 1 + Fraction(growth)
    first = math.ceil(1 / (step - 1)) if growth > 0.5 / _LONGEST else _LONGEST + 1
    if first > _LONGEST:
        raise ParameterError(
            f"the floor's rate is {math.log1p(growth):g}, so it would reach to counts above "
            f"{_LONGEST}; take a larger epsilon, or min_count."
        )
    above, below = step.denominator, step.numerator
    found, weight = [], first << bits
    for _ in range(first):
        weight = -(-weight * above // below)
        found.append(weight)
    return tuple(reversed(found))


def audit_floor(setting: RooSetting, weights: Sequence[int], bits: int) -> FloorAudit:
    """Decide the inequalities of the theorem in integers.

    Args:
        setting: n, k and epsilon.
        weights: W(0)..W(c* - 1).
        bits: W(c) = c 2^bits from c* on.

    Raises:
        ParameterError: if the weights break (1), without which (2) proves nothing.
    """
    table = _Table(setting, weights, bits)
    worst, place, rows = (0, 1), (0, 1), len(weights) + 2
    whole = (0, min(table.last, table.records - 1), 1, min(table.records, table.last + 1))
    heap: list[tuple[float, Block]] = [(-math.inf, whole)]
    while heap:
        if rows % (1 << 12) == 0:
            advance(_STAGE, rows)
        _, block = heapq.heappop(heap)
        rows += 1
        after, before = table.bound(block)
        if before > 0 and after * worst[1] <= worst[0] * before:
            continue
        if block[0] < block[1] or block[2] < block[3]:
            for part in _halves(block):
                if table.occurs(part):
                    heapq.heappush(heap, (_order(*table.bound(part)), part))
            continue
        c, d, after, before = table.exact(block[0], block[2])
        if after * worst[1] > worst[0] * before:
            worst, place = (after, before), (c, d)
    for c in range(table.last + 1, table.records):
        if (c + 1) * worst[1] <= worst[0] * c:
            break
        rows += 1
        _, d, after, before = table.exact(c, min(table.records - c, table.last + 1))
        if after * worst[1] > worst[0] * before:
            worst, place = (after, before), (c, d)
    advance(_STAGE, 1, 1)
    ratio, n = Fraction(*worst), table.records
    least = Fraction(table.weight(0), table.weight(n) + (table.letters - 1) * table.weight(0))
    slack = (setting.ratio - ratio) * least
    return FloorAudit(slack >= 0, ratio, slack, *place, rows)


def _order(after: int, before: int) -> float:
    """Return what puts the block with the largest bound first."""
    return math.log(before) - math.log(after) if before > 0 else -math.inf


def _halves(block: Block) -> Iterator[Block]:
    """Yield both halves of a block, cut across its longer side."""
    c1, c2, d1, d2 = block
    if c2 - c1 >= d2 - d1:
        middle = (c1 + c2) // 2
        yield from ((c1, middle, d1, d2), (middle + 1, c2, d1, d2))
    else:
        middle = (d1 + d2) // 2
        yield from ((c1, c2, d1, middle), (c1, c2, middle + 1, d2))


class _Table:
    """W, its steps, and the sums that the theorem speaks of; d = c* + 1 stands for all above."""

    def __init__(self, setting: RooSetting, weights: Sequence[int], bits: int) -> None:
        self.records, self.letters = setting.records, setting.letters
        self.bits, self.last = bits, len(weights)
        self.values = [*weights, self.last << bits]
        self.steps = [b - a for a, b in pairwise(self.values)] + [1 << bits]
        convex = not any(a > b for a, b in pairwise(self.steps))
        if self.values[0] <= 0 or self.steps[0] < 0 or not convex:
            raise ParameterError("weights must be positive, increasing and convex, up to c 2^bits.")

    def weight(self, count: int) -> int:
        """Return W."""
        return self.values[count] if count <= self.last else count << self.bits

    def step(self, count: int) -> int:
        """Return D."""
        return self.steps[min(count, self.last)]

    def least(self, letters: int, records: int) -> int:
        """Return L: convex weights are least where counts are even."""
        if letters == 0:
            return 0
        each, more = divmod(records, letters)
        if each >= self.last:
            return records << self.bits
        return (letters - more) * self.values[each] + more * self.values[each + 1]

    def most(self, letters: int, records: int) -> int:
        """Return the largest sum: convex weights are largest where one letter has all records."""
        return self.weight(records) + (letters - 1) * self.weight(0) if letters else 0

    def even(self, c: int) -> int:
        """Return v."""
        return (self.records - c) // (self.letters - 1)

    def occurs(self, block: Block) -> bool:
        """Whether some c and d of a block are counts of two letters, and d not below the worst."""
        c1, c2, d1, d2 = block
        if d2 < min(self.even(c2), self.last + 1):
            return False
        return c1 + d1 <= self.records if self.letters > 2 else d1 <= self.records - c1

    def bound(self, block: Block) -> tuple[int, int]:
        """Return both sides of (3) without r, the second not above 0 if they bound nothing."""
        c1, c2, d1, d2 = block
        total = self.weight(c1) + self.least(self.letters - 1, self.records - c2)
        if d2 <= self.last or self.even(c1) <= self.last + 1:
            rest = max(0, self.records - c2 - d2)
            other = self.weight(c1) + self.weight(d1) + self.least(self.letters - 2, rest)
            total = max(total, other)
        change = min(0, self.step(c1) - self.step(d2 - 1))
        return (self.weight(c1) + self.step(c2)) * total, self.weight(c1) * (total + change)

    def exact(self, c: int, d: int) -> tuple[int, int, int, int]:
        """Return c, d and both sides of (2) without r."""
        if d > self.last:
            d = max(d, self.even(c))
        rest, change = self.records - c - d, self.step(c) - self.step(d - 1)
        others = (self.least if change <= 0 else self.most)(self.letters - 2, rest)
        total = self.weight(c) + self.weight(d) + others
        return c, d, self.weight(c + 1) * total, self.weight(c) * (total + change)
