"""Why a smooth floor is private: a theorem with O(c*) inequalities, decided in integers.

A letter y has probability W(c_y) / Z, Z the sum over all letters; W(c) = c U from c* on, with
U = 2^bits.

Theorem. Let D(c) = W(c + 1) - W(c), and let L(t) be the least sum of W over k - 1 letters with t
records. If r >= 1 and

    (1) W(0) > 0 and 0 <= D(0) <= D(1) <= ... <= D(c* - 1) <= D(c*) = U,
    (2) W(c + 1) Z <= r W(c) (Z + min(0, D(c) - D(n - c - 1))), with Z = W(c) + L(n - c), for
        c = 0..min(c*, n - 1),

then K(y | x') <= r K(y | x) for all neighbours x, x' and all letters y. By (1) W is convex, so L(t)
spreads t records evenly: with t = (k - 1) q + p, it is (k - 1 - p) W(q) + p W(q + 1).

Proof. Going from x to x', one letter g gains a record, from count c, and one letter loses one, from
count d <= n - c. The sum of all weights moves from Z_x to Z_x' = Z_x + D(c) - D(d - 1), and the
ratio of K(y) is W(c'_y) / W(c_y) times Z_x / Z_x'. W does not decrease, so the first factor is at
most 1 for every letter but g: the ratio of g is the largest, and it is enough to bound it. D does
not decrease either, so D(d - 1) <= D(n - c - 1), and with b = min(0, D(c) - D(n - c - 1)) the
ratio of g is at most (W(c + 1) / W(c)) Z_x / (Z_x + b), which does not increase in
Z_x >= W(c) + L(n - c). That is (2). For c > c*, D(c) = U makes b = 0, and (c + 1) / c is below its
value at c*. Neighbours are symmetric, so this covers both directions. For k = 2 and b < 0 nothing
was lost: Z_x is W(c) + W(n - c) and d = n - c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dpopt._errors import ParameterError
from dpopt._types import short_repr
from dpopt.mechanisms.roo.setting import RooSetting

_LONGEST = 2_000_000


@dataclass(frozen=True)
class FloorAudit:
    """What the theorem's inequalities give for one table of weights.

    Attributes:
        private: whether all of them hold.
        worst_bound: the largest left side over right side of (2), times r: K(y | x') / K(y | x) is
            nowhere larger.
        slack: the smallest r W(c) / Z - W(c + 1) / (Z + b) of (2), as a probability.
        count: the c where it is smallest.
        rows: number of inequalities decided.
    """

    private: bool
    worst_bound: Fraction
    slack: Fraction
    count: int
    rows: int

    def __repr__(self) -> str:
        return short_repr(self)


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
    found, weight = [], first << bits
    for _ in range(first):
        weight = -(-weight * step.denominator // step.numerator)
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
    n, last, r = setting.records, len(weights), setting.ratio
    table = [*weights, last << bits]
    steps = [after - before for before, after in pairwise(table)] + [1 << bits]
    if table[0] <= 0 or steps[0] < 0 or any(a > b for a, b in pairwise(steps)):
        raise ParameterError("weights must be positive, increasing and convex, up to c 2^bits.")
    tightest: tuple[int, int] | None = None
    worst, place = (0, 1), 0
    rows = min(last, n - 1) + 1
    for c in range(rows):
        total = table[c] + _least_sum(setting, table, bits, n - c)
        moved = total + min(0, steps[c] - steps[min(n - c - 1, last)])
        after, before = (table[c] + steps[c]) * total, table[c] * moved
        if after * worst[1] > worst[0] * before:
            worst, place = (after, before), c
        margin = r.numerator * before - r.denominator * after, total * moved
        if tightest is None or margin[0] * tightest[1] < tightest[0] * margin[1]:
            tightest = margin
    slack = Fraction(*(tightest or (0, 1))) / r.denominator
    return FloorAudit(slack >= 0, Fraction(*worst), slack, place, rows + last + 2)


def _least_sum(setting: RooSetting, table: Sequence[int], bits: int, records: int) -> int:
    """Return L(records): convex weights of k - 1 letters are least where counts are even."""
    others = setting.letters - 1
    each, more = divmod(records, others)
    if each >= len(table) - 1:
        return records << bits
    return (others - more) * table[each] + more * table[each + 1]
