"""Pricing of O(K^4) multisets with voters near 0 and 1, for Delta > 0, from O(K^3) numbers.

Let s voters be at bc or cb, with p and p', d at D0 or 0D, and e at 1m or m1; o counts the voters
near 1, those e and the ones at 11. Let X ~ Bin(d, Delta) and Y ~ Bin(e, Delta) be independent of
each other and of the s voters, T(o) = E h(o + Bin(s, p)), T'(o) the same with p', and
R = e^(m epsilon). Then the left-hand side of the row is

    D0, 1m:  E T(o + X) - R E T'(o - Y)         0D, m1:  E T(o - Y) - R E T'(o + X)
    D0, m1:  E T(o + X - Y) - R T'(o)           0D, 1m:  T(o) - R E T'(o + X - Y)

for d <= K - s - o and e <= o. In the first two, d and e are in different terms and are optimised
separately: O(K) steps for each of O(K^2) pairs (s, o).

Lemma. With w = max T - min T over 0..K - s,

    |E T(o + X - Y) - (E T(o + X) + E T(o - Y) - T(o))| <= 2 w Pr[X > 0] Pr[Y > 0].

Proof. By independence the left side is |E M(X, Y)| with
M(x, y) = (T(o + x - y) - T(o - y)) - (T(o + x) - T(o)). M is 0 for x = 0 and for y = 0, and each of
its two differences is at most w in absolute value. QED.

So up to this bound, of order d e Delta^2 for small Delta, the other two are sums of a function of d
and one of e. Only where the bound does not show that the row holds are all d and e priced, for each
(s, o) separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector
from dpopt.majority.voters import Counts

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reaching:
    """The largest left-hand side, a multiset that attains it, and all multisets within limits."""

    top: float
    worst: Counts
    multisets: list[tuple[float, Counts]]


class CornerValues:
    """The left-hand sides of all multisets of corners that the reduction theorem leaves.

    Args:
        voters: K.
        inner: p of a voter at bc, and at cb.
        complement: 1 - p, likewise.
        deltas: Delta, and 1 - Delta.
        exp_epsilon: R.

    Attributes:
        width: largest number of binomial probabilities that are summed.
    """

    def __init__(
        self,
        voters: int,
        inner: Vector,
        complement: Vector,
        deltas: tuple[float, float],
        exp_epsilon: float,
    ) -> None:
        self._voters, self._inner, self._complement = voters, inner, complement
        self._delta, self._stay = deltas
        self._exp_epsilon = exp_epsilon
        counts = np.arange(voters + 1)
        self._outside = counts[:, None] + counts > voters
        self._pmfs, self.width = np.ones((1, 1)), 1
        if not self._delta:
            return
        # pmfs[n, x] = Pr[Bin(n, Delta) = x].
        pmfs = np.zeros((voters + 1, voters + 1))
        pmfs[0, 0] = 1.0
        for n in range(voters):
            pmfs[n + 1] = self._stay * pmfs[n]
            pmfs[n + 1, 1:] += self._delta * pmfs[n, :-1]
        # Binomial probabilities below this are dropped: their sum is far below the rounding of a
        # row.
        self.width = int(np.flatnonzero((pmfs > 1e-22).any(axis=0))[-1]) + 1
        self._pmfs = pmfs[:, : self.width]
        remaining = voters - counts[:, None] - counts
        self._mirror = np.maximum(remaining, 0)[None]
        # If no voter can be near 0 (or near 1), D0, m1 and 0D, 1m are rows of the other two pairs.
        self._single = (remaining <= 0) | (counts == 0)
        some = -np.expm1(counts * np.log1p(-self._delta))
        # Twice Pr[X > 0] Pr[Y > 0] for the most voters that can stand near 0 and near 1.
        self._second = 2.0 * some[self._mirror[0]] * some

    def best(self, h: Vector, least: float) -> tuple[Values, Values]:
        """Return the largest left-hand side over d and e of every entry, and T.

        They are over (D0 or 0D, 1m or m1, bc or cb, s, o), -inf for s + o > K; without Delta no
        voter is near 0 or 1: the first two axes have length 1. T is over (bc or cb, s, o). For the
        pairs D0, m1 and 0D, 1m the value is -inf where no d and e exceed ``least`` or the values of
        the other two pairs at the same (corner, s, o).
        """
        values, bounds, table = self._parts(h)
        others = np.maximum(values[0, 0], values[-1, -1])
        self._price_both(values, table, bounds >= np.maximum(others, least))
        return values, table

    def _price_both(self, values: Values, table: Values, where: npt.NDArray[np.bool_]) -> None:
        """Price D0, m1 and 0D, 1m where their bounds do not show that they are small."""
        for pair, *at in np.argwhere(where).tolist():
            values[pair, 1 - pair, *at] = self._rows(table, pair, 1 - pair, *at).max()

    def reaching(self, h: Vector, low: float, high: float, error: float, most: int) -> Reaching:
        """Return the multisets whose left-hand sides are in [low, high], each once.

        Args:
            h: antisymmetric, on 0..K.
            low: least left-hand side of interest.
            high: if a left-hand side is above this, only the largest one is returned.
            error: bound on the rounding error of a left-hand side.
            most: the enumeration stops once it has more multisets than this.
        """
        values, bounds, table = self._parts(h)
        top = float(values.max())
        least = top if top > high else min(low, top)
        # A bound adds up three tables, each within the error, and has its own rounding.
        self._price_both(values, table, bounds >= least - 8.0 * error)
        at = tuple(map(int, np.unravel_index(int(values.argmax()), values.shape)))
        top, worst = float(values[at]), self.multiset(table, at)
        multisets = list[tuple[float, Counts]]()
        # s = 0: bc and cb are the same entry, which is listed under bc.
        values[..., 1, 0, :] = -np.inf
        for at in [] if top > high else np.argwhere(values >= low).tolist():
            rows = self._rows(table, *at)
            if at[0] != at[1]:
                # With d = 0 or e = 0 it is a row of the other pairs.
                rows[0] = rows[:, 0] = -np.inf
            elif at[0]:
                rows[0, 0] = -np.inf
            for d, e in np.argwhere((rows >= low) & (rows <= high)).tolist():
                multisets.append((float(rows[d, e]), self.named(tuple(at), d, e)))
            if len(multisets) > most:
                break
        return Reaching(top, worst, multisets)

    def multiset(self, table: Values, at: tuple[int, ...]) -> Counts:
        """Return the multiset of the best d and e at an entry (pair, pair, corner, s, o)."""
        rows = self._rows(table, *at)
        return self.named(at, *divmod(int(rows.argmax()), rows.shape[1]))

    def named(self, at: tuple[int, ...], d: int, e: int) -> Counts:
        """Return the multiset of an entry with d voters near 0 and e near 1."""
        near0, near1, corner, s, o = at
        placed = (("bc", "cb")[corner], s), (("D0", "0D")[near0], d), (("1m", "m1")[near1], e)
        certain = ("11", o - e), ("00", self._voters - s - d - o)
        return tuple((name, count) for name, count in (*placed, *certain) if count)

    def _parts(self, h: Vector) -> tuple[Values, Values, Values]:
        """Return `best` of D0, 1m and 0D, m1, bounds on that of D0, m1 and 0D, 1m, and T.

        Bounds are over (D0, m1 or 0D, 1m; bc or cb; s; o), up to rounding. Without Delta there are
        no voters near 0 or 1, and no bounds.
        """
        table = last_axis_table(h, self._inner, self._complement)
        if not self._delta:
            values = table - self._exp_epsilon * table[::-1]
            values[:, self._outside] = -np.inf
            return values[None, None], np.empty((0, *table.shape)), table
        table[:, self._outside] = np.nan
        # up and down: the extremes of E T(o + X) over d.
        up, down, step = table.copy(), table.copy(), table
        for n in range(self._voters, 0, -1):
            # One voter more, for s and o below n.
            step = self._delta * step[:, :-1, 1:] + self._stay * step[:, :-1, :-1]
            # Entries with s + o > K are nan, which fmax and fmin ignore.
            np.fmax(up[:, :n, :n], step, out=up[:, :n, :n])
            np.fmin(down[:, :n, :n], step, out=down[:, :n, :n])
        # h is antisymmetric: T of the other corner at K - s - o is -T at o, which exchanges X and
        # Y. raised and lowered: the extremes of E T(o - Y) over e.
        lowered, raised = -self._mirrored(up[::-1]), -self._mirrored(down[::-1])
        values = np.full((2, 2, *table.shape), -np.inf)
        values[0, 0] = up - self._exp_epsilon * lowered[::-1]
        values[1, 1] = raised - self._exp_epsilon * down[::-1]
        values[..., self._outside] = -np.inf
        width = np.nanmax(table, axis=-1) - np.nanmin(table, axis=-1)
        error = width[..., None] * self._second
        bounds = np.stack(
            [
                up + raised - table + error - self._exp_epsilon * table[::-1],
                table - self._exp_epsilon * (down + lowered - table - error)[::-1],
            ]
        )
        bounds[..., self._single] = -np.inf
        return values, bounds, table

    def _rows(self, table: Values, near0: int, near1: int, corner: int, s: int, o: int) -> Values:
        """Return the left-hand sides of D0 or 0D, and 1m or m1, over (d, e)."""
        d, e = (self._voters - s - o, o) if self._delta else (0, 0)
        sides = []
        for side in (0, 1):
            # X is in the term of p at D0, of p' at 0D; Y in that of p' at 1m, of p at m1.
            x = self._pmfs[: d + 1, : d + 1] if near0 == side else np.ones((d + 1, 1))
            y = self._pmfs[: e + 1, : e + 1] if near1 != side else np.ones((e + 1, 1))
            ones = o + np.arange(x.shape[1])[:, None] - np.arange(y.shape[1])
            # Over (d, e): E T(o + X - Y), from T over (values of X, values of Y).
            sides.append(x @ table[corner ^ side, s, ones] @ y.T)
        return sides[0] - self._exp_epsilon * sides[1]

    def _mirrored(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values over (corner, s, o) at (corner, s, K - s - o)."""
        return np.take_along_axis(values, np.broadcast_to(self._mirror, values.shape), axis=2)


def last_axis_table(h: Vector, p: Vector, q: Vector) -> Values:
    """Return E h(o + Bin(s, p)) over (bc or cb, s, o), shape (2, K + 1, K + 1); 0 for s + o > K."""
    p, q, last = p[:, None], q[:, None], h.size
    table = np.zeros((2, last, last))
    table[:, 0] = h
    for s in range(1, last):
        # s voters reach from o to o + s <= K: one o fewer in each step.
        before = table[:, s - 1, : last + 1 - s]
        table[:, s, : last - s] = p * before[:, 1:] + q * before[:, :-1]
    return table
