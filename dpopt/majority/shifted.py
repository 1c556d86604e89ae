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
from dpopt.majority.voters import Multiset, last_axis_table

Table = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Binomial probabilities below this are left out: all of them together are no rounding of a row.
_NOTHING = 1e-22
# Places looked through, at most, for a row that is larger than any known and of no other interest.
_MOST_LOOSE = 2_000


@dataclass(frozen=True)
class Best:
    """The largest left side over the voters near 0 and 1, for each place.

    Attributes:
        values: over (corner of D0 and 0D, of 1m and m1, of bc and cb, s, o); -inf for s + o > K.
        low: d there, of voters at D0 or 0D.
        high: e there, of voters at 1m or m1.
    """

    values: Table
    low: Places
    high: Places

    def multiset(self, at: tuple[int, ...]) -> Multiset:
        """Return the multiset of a place of the values."""
        return multiset(at, int(self.low[at]), int(self.high[at]))


@dataclass(frozen=True)
class Reaching:
    """The multisets whose left side is within limits.

    Attributes:
        top: no left side is larger, but for rounding.
        worst: a multiset where it is about as large.
        near: those within the limits.
        complete: whether these are all.
    """

    top: float
    worst: Multiset
    near: list[Multiset]
    complete: bool


@dataclass(frozen=True)
class _Parts:
    """What rows are made of, over places (corner of bc and cb, s, o).

    Attributes:
        table: T; not a number for s + o > K.
        best: for D0, 1m and 0D, m1; -inf elsewhere.
        bounds: no row of the pairs D0, m1 and 0D, 1m is larger, but for rounding.
    """

    table: Table
    best: Best
    bounds: Table


class ShiftedRows:
    """The left sides of all multisets of voters who are alike, with Delta above 0.

    Args:
        voters: K.
        inner: p of a voter at bc, and at cb.
        rest: 1 - p, likewise.
        shift: Delta, and 1 - Delta.
        ratio: R.

    Attributes:
        width: how many probabilities of a binomial law are summed up at most.
    """

    def __init__(
        self, voters: int, inner: Vector, rest: Vector, shift: tuple[float, float], ratio: float
    ) -> None:
        self._voters, self._inner, self._rest = voters, inner, rest
        self._shift, self._stay = shift
        self._ratio = ratio
        # laws[n, x] = Pr[Bin(n, Delta) = x].
        laws = np.zeros((voters + 1, voters + 1))
        laws[0, 0] = 1.0
        for n in range(voters):
            laws[n + 1] = self._stay * laws[n]
            laws[n + 1, 1:] += self._shift * laws[n, :-1]
        self.width = int(np.flatnonzero((laws > _NOTHING).any(axis=0))[-1]) + 1
        self._laws = laws[:, : self.width]
        steps = np.arange(voters + 1)
        left = voters - steps[:, None] - steps
        self._outside = left < 0
        self._mirror = np.maximum(left, 0)[None]
        # Without voters near 0, or near 1, there is no row of both.
        self._single = (left <= 0) | (steps == 0)
        hit = -np.expm1(steps * np.log1p(-self._shift))
        # Twice Pr[X > 0] Pr[Y > 0] for the most voters that can stand near 0 and near 1.
        self._second = 2.0 * hit[self._mirror[0]] * hit

    def best(self, h: Vector, least: float, most: float) -> Best | None:
        """Return the best rows of all places; None if too many are left to price one by one.

        For the pairs D0, m1 and 0D, 1m a value is -inf where no number of voters makes a row above
        ``least``, or a better one than the other two pairs have there.

        Args:
            h: antisymmetric, on 0..K.
            least: what is of interest.
            most: multisets to price one by one.
        """
        parts = self._parts(h)
        best = parts.best
        known = np.maximum(np.maximum(best.values[0, 0], best.values[1, 1]), least)
        left = np.argwhere(parts.bounds > known)
        near0, near1 = self._mirror[0][left[:, 2], left[:, 3]], left[:, 3]
        if np.sum((near0 + 1) * (near1 + 1)) > most:
            return None
        for pair, corner, s, o in left.tolist():
            rows = self._mixed(parts.table, pair, corner, s, o)
            d, e = divmod(int(rows.argmax()), rows.shape[1])
            at = (pair, 1 - pair, corner, s, o)
            best.values[at], best.low[at], best.high[at] = rows[d, e], d, e
        return best

    def reaching(self, h: Vector, low: float, high: float, error: float, most: int) -> Reaching:
        """Return the multisets whose left sides are ``low`` to ``high``, none twice.

        Args:
            h: antisymmetric, on 0..K.
            low: what is of interest.
            high: what is beyond it: where there is such a row, only the largest is looked for.
            error: by how much a left side may be off.
            most: multisets to return.
        """
        parts = self._parts(h)
        values = parts.best.values
        at = tuple(int(place) for place in np.unravel_index(int(values.argmax()), values.shape))
        top, worst = float(values[at]), parts.best.multiset(at)
        beyond = top > high
        # The bound is made of three tables, each within the error, and of its own rounding.
        bounds = parts.bounds + 8.0 * error
        left = np.argwhere(bounds >= (top if beyond else min(low, top)))
        bounds = bounds[tuple(left.T)]
        order = np.argsort(-bounds, kind="stable")
        near, rest = list[Multiset](), -np.inf
        for number, (bound, place) in enumerate(
            zip(bounds[order].tolist(), left[order].tolist(), strict=True)
        ):
            if beyond or bound < low:
                # Only the largest is wanted.
                if bound <= top:
                    break
                if number >= _MOST_LOOSE:
                    rest = bound
                    break
            pair, corner, s, o = place
            at = (pair, 1 - pair, corner, s, o)
            rows = self._mixed(parts.table, *place)
            d, e = divmod(int(rows.argmax()), rows.shape[1])
            if rows[d, e] > top:
                top, worst = float(rows[d, e]), multiset(at, d, e)
            # Without voters near 0, or near 1, it is a row of the other pairs.
            rows[0] = rows[:, 0] = -np.inf
            near += _listed(at, rows, low, high)
            if len(near) > most:
                return Reaching(top, worst, near, False)
        apart = [] if beyond else np.argwhere(values >= low).tolist()
        for place in apart:
            rows = self._apart(parts.table, *place[1:])
            if place[0]:
                rows[0, 0] = -np.inf
            near += _listed(tuple(place), rows, low, high)
            if len(near) > most:
                return Reaching(top, worst, near, False)
        return Reaching(max(top, rest), worst, near, True)

    def _parts(self, h: Vector) -> _Parts:
        table = last_axis_table(h, self._inner, self._rest, self._voters)
        table[:, self._outside] = np.nan
        up, most, down, least = self._extremes(table)
        # T of the other corner at K - s - o is -T at o, and so X and Y change places.
        lowered, fewest = -self._mirrored(up[::-1]), self._mirrored(most[::-1])
        raised, many = -self._mirrored(down[::-1]), self._mirrored(least[::-1])
        values = np.full((2, 2, *table.shape), -np.inf)
        low, high = np.zeros(values.shape, np.int64), np.zeros(values.shape, np.int64)
        values[0, 0] = up - self._ratio * lowered[::-1]
        low[0, 0], high[0, 0] = most, fewest[::-1]
        values[1, 1] = raised - self._ratio * down[::-1]
        low[1, 1], high[1, 1] = least[::-1], many
        values[..., self._outside] = -np.inf
        width = np.nanmax(table, axis=-1) - np.nanmin(table, axis=-1)
        room = width[..., None] * self._second
        bounds = np.stack(
            [
                up + raised - table + room - self._ratio * table[::-1],
                table - self._ratio * (down + lowered - table - room)[::-1],
            ]
        )
        bounds[..., self._single] = -np.inf
        return _Parts(table, Best(values, low, high), bounds)

    def _apart(self, table: Table, pair: int, corner: int, s: int, o: int) -> Table:
        """Return the rows of D0, 1m, or of 0D, m1 for ``pair`` 1, for all d and e."""
        up, _ = self._alone(table[corner if pair == 0 else 1 - corner, s], s, o)
        _, down = self._alone(table[1 - corner if pair == 0 else corner, s], s, o)
        if pair == 0:
            return up[:, None] - self._ratio * down
        return down - self._ratio * up[:, None]

    def _alone(self, row: Vector, s: int, o: int) -> tuple[Vector, Vector]:
        """Return E T(o + X) for all d, and E T(o - Y) for all e, from T over 0..K - s."""
        near0, near1 = self._near(s, o)
        above, below = np.arange(near0.shape[1]), np.arange(near1.shape[1])
        return near0 @ row[o + above], near1 @ row[o - below]

    def _mixed(self, table: Table, pair: int, corner: int, s: int, o: int) -> Table:
        """Return the rows of D0, m1, or of 0D, 1m for ``pair`` 1, for all d and e."""
        row = table[corner if pair == 0 else 1 - corner, s]
        near0, near1 = self._near(s, o)
        above, below = np.arange(near0.shape[1]), np.arange(near1.shape[1])
        both = near0 @ row[o + above[:, None] - below] @ near1.T
        if pair == 0:
            return both - self._ratio * table[1 - corner, s, o]
        return table[corner, s, o] - self._ratio * both

    def _near(self, s: int, o: int) -> tuple[Table, Table]:
        """Return the laws of X for d <= K - s - o, and of Y for e <= o."""
        d, e = self._voters - s - o, o
        return self._laws[: d + 1, : d + 1], self._laws[: e + 1, : e + 1]

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
        for d in range(1, self._voters + 1):
            table = self._shift * table[:, :-1, 1:] + self._stay * table[:, :-1, :-1]
            yield d, table


def multiset(at: tuple[int, ...], d: int, e: int) -> Multiset:
    """Return the multiset of a place, (pair, pair, corner, s, o), and voters near 0 and 1."""
    near0, near1, corner, s, o = at
    family = (near0 if d else 0, near1 if e else 0, corner if s else 0)
    return Multiset((d, e, s), family, o - e)


def _listed(at: tuple[int, ...], rows: Table, low: float, high: float) -> list[Multiset]:
    """Return the multisets of a place whose left sides, for all d and e, are within limits."""
    if at[2] and not at[3]:
        # Nobody stands at bc or cb: it is the place of the other corner.
        return []
    return [multiset(at, d, e) for d, e in np.argwhere((rows >= low) & (rows <= high)).tolist()]
