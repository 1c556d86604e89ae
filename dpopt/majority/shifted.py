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
of the order d e Delta^2, and only where it cannot tell that a row holds are all d and e priced:
place by place, or, where these are many, by O(K^2) steps for all places at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector
from dpopt.majority.voters import Counts

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Binomial probabilities below this are left out: all of them together are no rounding of a row.
_NOTHING = 1e-22
# Places, in units of K^2, from which steps for all of them at once are faster than one by one.
_MANY = 0.5


@dataclass(frozen=True)
class Best:
    """The largest left side over the voters near 0 and 1, for each place.

    Attributes:
        values: over (corner of D0 and 0D, of 1m and m1, of bc and cb, s, o); -inf for s + o > K.
            Without Delta nobody is near 0 or 1, and the first two have length 1.
        table: T, over (corner of bc and cb, s, o); of no meaning for s + o > K.
        complete: whether all places were looked at.
    """

    values: Values
    table: Values
    complete: bool = True


@dataclass(frozen=True)
class Reaching:
    """The multisets whose left side is within limits.

    Attributes:
        top: no left side is larger, but for rounding.
        worst: a multiset where it is about as large.
        near: those within the limits, with their left sides.
    """

    top: float
    worst: Counts
    near: list[tuple[float, Counts]]


class CornerValues:
    """The left sides of all multisets of corners that the reduction leaves.

    Args:
        voters: K.
        inner: p of a voter at bc, and at cb.
        rest: 1 - p, likewise.
        shift: Delta, and 1 - Delta.
        ratio: R.

    Attributes:
        width: how many probabilities of a binomial distribution are summed up at most.
    """

    def __init__(
        self, voters: int, inner: Vector, rest: Vector, shift: tuple[float, float], ratio: float
    ) -> None:
        self._voters, self._inner, self._rest = voters, inner, rest
        self._shift, self._stay = shift
        self._ratio = ratio
        steps = np.arange(voters + 1)
        self._outside = steps[:, None] + steps > voters
        self._pmfs, self.width = np.ones((1, 1)), 1
        if not self._shift:
            return
        # distributions[n, x] = Pr[Bin(n, Delta) = x].
        pmfs = np.zeros((voters + 1, voters + 1))
        pmfs[0, 0] = 1.0
        for n in range(voters):
            pmfs[n + 1] = self._stay * pmfs[n]
            pmfs[n + 1, 1:] += self._shift * pmfs[n, :-1]
        self.width = int(np.flatnonzero((pmfs > _NOTHING).any(axis=0))[-1]) + 1
        self._pmfs = pmfs[:, : self.width]
        left = voters - steps[:, None] - steps
        self._mirror = np.maximum(left, 0)[None]
        # Without voters near 0, or near 1, there is no row of both.
        self._single = (left <= 0) | (steps == 0)
        hit = -np.expm1(steps * np.log1p(-self._shift))
        # Twice Pr[X > 0] Pr[Y > 0] for the most voters that can stand near 0 and near 1.
        self._second = 2.0 * hit[self._mirror[0]] * hit

    def best(self, h: Vector, least: float, most: float) -> Best:
        """Return the best rows of all places.

        For the pairs D0, m1 and 0D, 1m a value is -inf where no number of voters makes a row above
        ``least``, or a better one than the other two pairs have there.

        Args:
            h: antisymmetric, on 0..K.
            least: what is of interest.
            most: places to price those pairs at: those with the largest bounds.
        """
        best, bounds = self._parts(h)
        known = np.maximum(np.maximum(best.values[0, 0], best.values[-1, -1]), least)
        return self._priced(best, bounds, known, most)

    def _priced(
        self, best: Best, bounds: Values | None, least: Values | float, most: float
    ) -> Best:
        """Price the other two pairs, if any, wherever their bounds are at least what is given."""
        if bounds is None:
            return best
        left = _sorted(bounds, least)
        priced = int(min(len(left), most))
        if priced > _MANY * self._voters**2:
            found, priced = self._all_mixed(best.table), len(left)
            for pair in (0, 1):
                np.copyto(best.values[pair, 1 - pair], found[pair], where=bounds[pair] >= least)
        else:
            for pair, corner, s, o in left[:priced].tolist():
                rows = self._mixed(best.table, pair, corner, s, o)
                best.values[pair, 1 - pair, corner, s, o] = rows.max()
        return Best(best.values, best.table, priced == len(left))

    def _all_mixed(self, table: Values) -> Values:
        """Return the largest rows of D0, m1 and of 0D, 1m over d and e, for all places."""
        # The extremes of E T(o + X - Y).
        high, low, down = table.copy(), table.copy(), table
        for e in range(self._voters + 1):
            if e:
                down = self._shift * down[:, :-1, :-1] + self._stay * down[:, :-1, 1:]
            for step in (down, *self._steps(down)):
                n = step.shape[-1]
                for extreme, keep in ((high, np.fmax), (low, np.fmin)):
                    part = extreme[:, :n, e : e + n]
                    keep(part, step, out=part)
        return np.stack([high - self._ratio * table[::-1], table - self._ratio * low[::-1]])

    def largest(self, h: Vector) -> tuple[float, Counts]:
        """Return the largest left side of all, and where it is; for an antisymmetric h."""
        best, bounds = self._parts(h)
        found = self._priced(best, bounds, float(best.values.max()), np.inf)
        at = _where(found.values)
        return float(found.values[at]), self.multiset(found.table, at)

    def reaching(self, h: Vector, low: float, high: float, error: float, most: int) -> Reaching:
        """Return the multisets whose left sides are ``low`` to ``high``, none twice.

        Args:
            h: antisymmetric, on 0..K.
            low: what is of interest.
            high: what is beyond it: where there is such a row, only the largest is looked for.
            error: by how much a left side may be off.
            most: multisets to return: where there are more, some of them, but more than that.
        """
        best, bounds = self._parts(h)
        top = float(best.values.max())
        least = top if top > high else min(low, top)
        # A bound is made of three tables, each within the error, and of its own rounding.
        best = self._priced(best, bounds, least - 8.0 * error, np.inf)
        at = _where(best.values)
        top, worst = float(best.values[at]), self.multiset(best.table, at)
        near = list[tuple[float, Counts]]()
        for at in [] if top > high else np.argwhere(best.values >= low).tolist():
            if at[0] == at[1]:
                rows = self._apart(best.table, at[0], *at[2:])
                if at[0]:
                    rows[0, 0] = -np.inf
            else:
                rows = self._mixed(best.table, at[0], *at[2:])
                # Without voters near 0, or near 1, it is a row of the other pairs.
                rows[0] = rows[:, 0] = -np.inf
            near += self._listed(tuple(at), rows, low, high)
            if len(near) > most:
                break
        return Reaching(top, worst, near)

    def multiset(self, table: Values, at: tuple[int, ...]) -> Counts:
        """Return the multiset of the best row of a place, (pair, pair, corner, s, o)."""
        make = self._apart if at[0] == at[1] else self._mixed
        rows = make(table, at[0], *at[2:])
        return self.named(at, *divmod(int(rows.argmax()), rows.shape[1]))

    def named(self, at: tuple[int, ...], d: int, e: int) -> Counts:
        """Return the multiset of a place with voters near 0 and 1."""
        near0, near1, corner, s, o = at
        placed = (("bc", "cb")[corner], s), (("D0", "0D")[near0], d), (("1m", "m1")[near1], e)
        rest = ("11", o - e), ("00", self._voters - s - d - o)
        return tuple((name, count) for name, count in (*placed, *rest) if count)

    def _listed(
        self, at: tuple[int, ...], rows: Values, low: float, high: float
    ) -> list[tuple[float, Counts]]:
        """Return the multisets of a place whose left sides, for all d and e, are within limits."""
        if at[2] and not at[3]:
            # Nobody stands at bc or cb: it is the place of the other corner.
            return []
        found = np.argwhere((rows >= low) & (rows <= high)).tolist()
        return [(float(rows[d, e]), self.named(at, d, e)) for d, e in found]

    def _parts(self, h: Vector) -> tuple[Best, Values | None]:
        """Return the best rows of D0, 1m and 0D, m1, and bounds on those of D0, m1 and 0D, 1m.

        Bounds are over (which of the two pairs, corner of bc and cb, s, o), and but for rounding.
        Without Delta there are no other pairs, and no bounds.
        """
        table = last_axis_table(h, self._inner, self._rest)
        if not self._shift:
            values = table - self._ratio * table[::-1]
            values[:, self._outside] = -np.inf
            return Best(values[None, None], table), None
        table[:, self._outside] = np.nan
        # The extremes of E T(o + X), over d.
        up, down = table.copy(), table.copy()
        for step in self._steps(table):
            n = step.shape[-1]
            # What is not a number is outside, and passed over.
            np.fmax(up[:, :n, :n], step, out=up[:, :n, :n])
            np.fmin(down[:, :n, :n], step, out=down[:, :n, :n])
        # T of the other corner at K - s - o is -T at o, and so X and Y change places.
        lowered, raised = -self._mirrored(up[::-1]), -self._mirrored(down[::-1])
        values = np.full((2, 2, *table.shape), -np.inf)
        values[0, 0] = up - self._ratio * lowered[::-1]
        values[1, 1] = raised - self._ratio * down[::-1]
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
        return Best(values, table), bounds

    def _apart(self, table: Values, pair: int, corner: int, s: int, o: int) -> Values:
        """Return the rows of D0, 1m, or of 0D, m1 for ``pair`` 1, for all d and e."""
        # X and Y are on different sides, X on that of the corner for ``pair`` 0.
        near0, above, near1, below = self._near(s, o)
        up = near0 @ table[corner ^ pair, s, o + above]
        down = near1 @ table[1 - (corner ^ pair), s, o - below]
        if pair == 0:
            return up[:, None] - self._ratio * down
        return down - self._ratio * up[:, None]

    def _mixed(self, table: Values, pair: int, corner: int, s: int, o: int) -> Values:
        """Return the rows of D0, m1, or of 0D, 1m for ``pair`` 1, for all d and e."""
        near0, above, near1, below = self._near(s, o)
        both = near0 @ table[corner ^ pair, s, o + above[:, None] - below] @ near1.T
        other = table[1 - (corner ^ pair), s, o]
        return both - self._ratio * other if pair == 0 else other - self._ratio * both

    def _near(self, s: int, o: int) -> tuple[Values, Places, Values, Places]:
        """Return the distributions of X for d <= K - s - o and X, those of Y for e <= o and Y."""
        d, e = (self._voters - s - o, o) if self._shift else (0, 0)
        near0, near1 = self._pmfs[: d + 1, : d + 1], self._pmfs[: e + 1, : e + 1]
        return near0, np.arange(near0.shape[1]), near1, np.arange(near1.shape[1])

    def _mirrored(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values over (corner, s, o) at (corner, s, K - s - o)."""
        return np.take_along_axis(values, np.broadcast_to(self._mirror, values.shape), axis=2)

    def _steps(self, table: Values) -> Iterator[Values]:
        """Yield E T(o + X) for d = 1..K, for s and o up to K - d each."""
        for _ in range(self._voters):
            table = self._shift * table[:, :-1, 1:] + self._stay * table[:, :-1, :-1]
            yield table


def _where(values: Values) -> tuple[int, ...]:
    """Return where the largest value is."""
    return tuple(int(place) for place in np.unravel_index(int(values.argmax()), values.shape))


def _sorted(bounds: Values, least: Values | float) -> Places:
    """Return where bounds are at least what is given, the largest first."""
    left = np.argwhere(bounds >= least)
    return left[np.argsort(-bounds[tuple(left.T)], kind="stable")]


def last_axis_table(h: Vector, p: Vector, q: Vector) -> Values:
    """Return E h(o + Bin(s, p)), shape (2, K + 1, K + 1): corner, s, o; 0 for s + o > K."""
    p, q, last = p[:, None], q[:, None], h.size
    table = np.zeros((2, last, last))
    table[:, 0] = h
    for s in range(1, last):
        # Each step is good for one o less.
        before = table[:, s - 1, : last + 1 - s]
        table[:, s, : last - s] = p * before[:, 1:] + q * before[:, :-1]
    return table
