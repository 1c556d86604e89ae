"""Voters near 0 and 1, priced all at once: the rows of O(K^4) multisets from O(K^3) numbers.

Let s voters stand at bc or cb, with p and p', d at D0 or 0D, e at 1m or m1, and o in all near one:
e of them and those at 11. With X ~ Bin(d, Delta) and Y ~ Bin(e, Delta), independent of each other
and of the s voters, T(o) = E h(o + Bin(s, p)), T'(o) the same with p', and R = e^(m epsilon), the
left side of the row is

    D0, 1m:  E T(o + X) - R E T'(o - Y)         0D, m1:  E T(o - Y) - R E T'(o + X)
    D0, m1:  E T(o + X - Y) - R T'(o)           0D, 1m:  T(o) - R E T'(o + X - Y)

for d <= K - s - o and e <= o. In the first two, d and e are on different sides, and their best
values are found one by one: O(K) steps for each of O(K^2) places (s, o).

Lemma. With w = max T - min T over 0..K - s,

    |E T(o + X - Y) - (E T(o + X) + E T(o - Y) - T(o))| <= 2 w Pr[X > 0] Pr[Y > 0].

Proof. By independence the left side is |E M(X, Y)| with
M(x, y) = (T(o + x - y) - T(o - y)) - (T(o + x) - T(o)). M is 0 for x = 0 and for y = 0, and each of
its two differences is at most w in absolute value. QED.

So the other two are, up to this bound, sums of a function of d and one of e. For small Delta it is
of the order d e Delta^2, and only where it cannot tell that a row holds are all d and e priced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector
from dpopt.majority.voters import Voters, last_axis_table, reduced_size
from dpopt.prob import binomial_pmf

Table = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Binomial probabilities below this are left out: all of them together are no rounding of a row.
_NOTHING = 1e-22
# Multisets priced one by one at the places left, as a share of all of them, at most.
_MOST_PRICED = 0.2


@dataclass(frozen=True)
class Best:
    """The largest f / budget - 1 over the voters near 0 and 1, for each place.

    Attributes:
        values: over (corner of D0 and 0D, of 1m and m1, of bc and cb, s, o); -inf for s + o > K.
        low: d there, of voters at D0 or 0D.
        high: e there, of voters at 1m or m1.
    """

    values: Table
    low: Places
    high: Places


class ShiftedPricing:
    """Prices of all multisets of voters who are alike, with Delta above 0.

    Args:
        setting: the voters and the target; without groups, and Delta above 0.
    """

    def __init__(self, setting: Voters) -> None:
        self.setting, k = setting, setting.mechanisms
        self._shift = setting.mechanism_delta
        laws = [binomial_pmf(n, self._shift) for n in range(k + 1)]
        width = max(int(np.flatnonzero(law > _NOTHING)[-1]) + 1 for law in laws)
        # laws[n, x] = Pr[Bin(n, Delta) = x].
        self._laws = np.zeros((k + 1, width))
        for n, law in enumerate(laws):
            self._laws[n, : min(width, n + 1)] = law[:width]
        steps = np.arange(k + 1)
        left = k - steps[:, None] - steps
        self._outside = left < 0
        self._mirror = np.maximum(left, 0)[None]
        hit = -np.expm1(steps * np.log1p(-self._shift))
        # Twice Pr[X > 0] Pr[Y > 0] for the most voters that can stand near 0 and near 1.
        self._second = 2.0 * hit[self._mirror[0]] * hit

    def best(self, h: Vector) -> Best | None:
        """Return the best rows of all places; None if too many are left to price one by one.

        For the pairs D0, m1 and 0D, 1m a value is -inf where no number of voters makes a violated
        row, or a better one than the other two pairs have there.

        Args:
            h: antisymmetric, on 0..K.
        """
        setting, ratio = self.setting, self.setting.ratio
        inner = np.array(setting.axes[-1].chances)
        table = last_axis_table(h / setting.budget, inner, 1.0 - inner, setting.mechanisms)
        table[:, self._outside] = np.nan
        up, most, down, least = self._extremes(table)
        # T of the other corner at K - s - o is -T at o, and so X and Y change places.
        lowered, fewest = -self._mirrored(up[::-1]), self._mirrored(most[::-1])
        raised, many = -self._mirrored(down[::-1]), self._mirrored(least[::-1])
        values = np.empty((2, 2, *table.shape))
        low, high = np.zeros(values.shape, np.int64), np.zeros(values.shape, np.int64)
        values[0, 0] = up - ratio * lowered[::-1] - 1.0
        low[0, 0], high[0, 0] = most, fewest[::-1]
        values[1, 1] = raised - ratio * down[::-1] - 1.0
        low[1, 1], high[1, 1] = least[::-1], many
        width = np.nanmax(table, axis=-1) - np.nanmin(table, axis=-1)
        room = width[..., None] * self._second
        bounds = np.stack(
            [
                up + raised - table + room - ratio * table[::-1] - 1.0,
                table - ratio * (down + lowered - table - room)[::-1] - 1.0,
            ]
        )
        known = np.maximum(np.maximum(values[0, 0], values[1, 1]), 0.0)
        with np.errstate(invalid="ignore"):
            left = np.argwhere((bounds > known) & (self._second > 0.0))
        values[0, 1] = values[1, 0] = -np.inf
        values[..., self._outside] = -np.inf
        work = np.sum((self._mirror[0] + 1)[left[:, 2], left[:, 3]] * (left[:, 3] + 1))
        if work > _MOST_PRICED * reduced_size(setting):
            return None
        for pair, corner, s, o in left.tolist():
            own = corner if pair == 0 else 1 - corner
            mixed = self._mixed(table[own, s], s, o)
            if pair == 0:
                mixed = mixed - ratio * table[1 - corner, s, o] - 1.0
            else:
                mixed = table[corner, s, o] - ratio * mixed - 1.0
            d, e = divmod(int(mixed.argmax()), mixed.shape[1])
            at = (pair, 1 - pair, corner, s, o)
            values[at], low[at], high[at] = mixed[d, e], d, e
        return Best(values, low, high)

    def _mixed(self, row: Vector, s: int, o: int) -> Table:
        """Return E T(o + X - Y) for all d and e, from T over 0..K - s."""
        last = self.setting.mechanisms - s
        near0, near1 = self._laws[: last - o + 1], self._laws[: o + 1]
        x, y = np.arange(min(near0.shape)), np.arange(min(near1.shape))
        steps = row[o + x[:, None] - y]
        return near0[:, : x.size] @ steps @ near1[:, : y.size].T

    def _mirrored(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values over (corner, s, o) at (corner, s, K - s - o)."""
        return np.take_along_axis(values, np.broadcast_to(self._mirror, values.shape), axis=2)

    def _extremes(self, table: Table) -> tuple[Table, Places, Table, Places]:
        """Return the largest E T(o + X) of any d and that d, and the least and its d."""
        up, down = table.copy(), table.copy()
        most, least = (np.zeros(table.shape, np.int64) for _ in range(2))
        with np.errstate(invalid="ignore"):
            for d, step in self._steps(table):
                n = step.shape[-1]
                # What is not a number is outside, and never better.
                for best, place, better in (
                    (up, most, step > up[:, :n, :n]),
                    (down, least, step < down[:, :n, :n]),
                ):
                    np.copyto(best[:, :n, :n], step, where=better)
                    np.copyto(place[:, :n, :n], d, where=better)
        return up, most, down, least

    def _steps(self, table: Table) -> Iterator[tuple[int, Table]]:
        """Yield d and E T(o + X), for s and o up to K - d each."""
        for d in range(1, self.setting.mechanisms + 1):
            table = self._shift * table[:, :-1, 1:] + (1.0 - self._shift) * table[:, :-1, :-1]
            yield d, table
