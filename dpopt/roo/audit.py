"""The largest ratio of a min-count rule over all neighbouring data sets, as an exact rational."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpopt._progress import track
from dpopt._types import brief
from dpopt.roo.rules import UNIT
from dpopt.roo.setting import RooSetting
from dpopt.roo.transitions import Move, moves
from dpopt.roo.witness import Witness, witness_of

_CLOSE = 1e-9


@dataclass(frozen=True)
class RooAudit:
    """What a rule spends, exactly.

    Attributes:
        worst_ratio: largest K(y | x') / K(y | x) over all neighbours and letters; None if
            unbounded.
        excess_factor: worst_ratio over e^epsilon, as a float; above 1 if the rule is not private.
        private: whether worst_ratio <= r, the rational lower bound of e^epsilon.
        slack: smallest r K(y | x) - K(y | x') over all rows, exactly.
        rows: number of inequalities decided; they imply all others.
        witness: neighbours that attain the worst ratio.
    """

    worst_ratio: Fraction | None
    excess_factor: float
    private: bool
    slack: Fraction
    rows: int
    witness: Witness

    def __repr__(self) -> str:
        return brief(self)


def audit_weights(setting: RooSetting, weights: Sequence[int], *, constant: bool) -> RooAudit:
    """Compare all neighbours of a rule in exact arithmetic.

    Rows from a smallest count m with q_{m-1} = q_m = q_{m+1} = 0 compare c + 1 to c with c >= m,
    so those of the first such m are the worst and imply all that follow: the work is that of the
    weights given, whatever n is.

    Args:
        setting: n, k and epsilon.
        weights: q_0, q_1, ... over 2^62, 0 afterwards.
        constant: instead, the one weight is that of every m.
    """
    rows = list(_rows(setting, weights, constant=constant))
    sides = [_scaled(setting, weights, rows, side, constant=constant) for side in (0, 1)]
    r, scale = setting.ratio, setting.letters * setting.records * UNIT
    slacks = [r.numerator * a - r.denominator * b for a, b in zip(*sides, strict=True)]
    worst = _worst(sides[0], sides[1])
    before, after = sides[0][worst], sides[1][worst]
    ratio = Fraction(after, before) if before else None
    return RooAudit(
        worst_ratio=ratio,
        excess_factor=float("inf") if ratio is None else float(ratio / r),
        private=min(slacks) >= 0,
        slack=Fraction(min(slacks), scale * r.denominator),
        rows=len(rows),
        witness=witness_of(setting, rows[worst]),
    )


def _rows(setting: RooSetting, weights: Sequence[int], *, constant: bool) -> Iterator[Move]:
    last = setting.largest_minimum
    # With one q for all, the ratio is largest where a count is smallest.
    end = 1 if constant else len(weights) + 2
    for m in track(range(min(end, last) + 1), "audit of neighbours"):
        yield from moves(setting, m)
    if min(end, last) < last:
        # A pair with the largest possible smallest counts, in case rows there were forgotten.
        yield from moves(setting, last)


def _scaled(
    setting: RooSetting,
    weights: Sequence[int],
    rows: Sequence[Move],
    side: int,
    *,
    constant: bool,
) -> list[int]:
    """Return K(letter) over k n 2^62 on one side of each row."""
    n, k = setting.records, setting.letters
    found = []
    for move in rows:
        m, c = (move.new_minimum, move.new_count) if side else (move.minimum, move.count)
        q = weights[0] if constant else weights[m] if m < len(weights) else 0
        found.append(q * n + (UNIT - q) * c * k)
    return found


def _worst(before: list[int], after: list[int]) -> int:
    """Return the place of the largest after / before; floats choose, fractions decide."""
    if 0 in before:
        zero = [i for i, value in enumerate(before) if value == 0 and after[i] > 0]
        if zero:
            return zero[0]
    quotients = np.array([a / b if b else 0.0 for a, b in zip(after, before, strict=True)])
    close = np.flatnonzero(quotients >= quotients.max() * (1 - _CLOSE))
    return max(close.tolist(), key=lambda i: Fraction(after[i], before[i] or 1))
