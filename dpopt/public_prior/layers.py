"""The closed forms as tables of n categories kept as O(n) integers: never written out.

`dpopt.verify.Layers` says how rows are made of three layers, and `dpopt.verify.layers` computes
them, for Algorithm 1 and for the leximin kernel; nothing else does. Here they are drawn from, and
read as floats.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from dpopt import verify
from dpopt._types import IntVector, Vector, frozen
from dpopt.privacy.release import Source
from dpopt.public_prior.prior import PublicDistribution

_WORD = 64
# Of a unit of the integers as a share of the least entry, and what r is lowered by, which rounding
# must stay within: it moves no entry by more than about 1e-12 of itself.
_NEEDED = 40 + 12
# Entries of users' distributions that are released at once: what stays in a core's cache.
_BLOCK = 1 << 16


class _Layers(NamedTuple):
    """The layers as floats, categories by ascending mass, each of shape (n,).

    Attributes:
        base: w / T.
        extra: e / T.
        share: k over their sum.
        rate: what a row splits, over what its categories have of the shares.
    """

    base: Vector
    extra: Vector
    share: Vector
    rate: Vector


@dataclass(frozen=True, eq=False)
class LayeredTable:
    """A kernel that keeps a public prior, in integers that follow from its parameters.

    Categories are in the caller's order. It offers what a `dpopt.table.Table` does, of which every
    entry is written down.

    Attributes:
        public: q.
        epsilon: in nats.
        objective: "minimax" or "leximin".
        bits: weights are over 2^bits.
    """

    public: PublicDistribution
    epsilon: float
    objective: str
    bits: int

    @classmethod
    def of(cls, public: PublicDistribution, epsilon: float, objective: str) -> LayeredTable:
        """Return the table with bits, two less than whole words, that leave rounding its room."""
        least = float(public.masses.min())
        below = math.log2(-math.expm1(-epsilon))
        scale = math.log2(1 + math.expm1(epsilon) * least) + epsilon / math.log(2)
        needed = _NEEDED - below - math.log2(least) + scale
        return cls(public, epsilon, objective, _WORD * math.ceil((needed + 2) / _WORD) - 2)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the parameters; the integers are made and proved again."""
        return type(self), (self.public, self.epsilon, self.objective, self.bits)

    @property
    def key(self) -> tuple[object, ...]:
        """What the integers follow from."""
        return "layers", self.public.masses, self.epsilon, self.objective, self.bits

    def __eq__(self, other: object) -> bool:
        """Whether these are the same integers."""
        if not isinstance(other, LayeredTable):
            return NotImplemented
        same = np.array_equal(self.public.masses, other.public.masses)
        return same and self.key[2:] == other.key[2:]

    def __hash__(self) -> int:
        """Return a number that follows from the parameters."""
        return hash(self.key[2:])

    @cached_property
    def layers(self) -> verify.Layers:
        """The integers, categories by ascending mass."""
        masses, names = self.public.masses.tolist(), ("epsilon", "objective")
        setting = {"public": masses, **{name: getattr(self, name) for name in names}}
        return verify.layers(setting, self.bits)

    @cached_property
    def decided(self) -> tuple[verify.Verdict, Fraction]:
        """What `dpopt.verify` decides of the integers, and the least K_ii.

        Raises:
            verify.Refused: if they are not private.
        """
        return verify.decide_layers(self.layers, verify.growth(Fraction(self.epsilon)))

    @cached_property
    def _sums(self) -> tuple[list[int], list[int]]:
        """Cumulative w and k from 0, n + 1 integers each."""
        return list(accumulate(self.layers.w, initial=0)), list(
            accumulate(self.layers.k, initial=0)
        )

    @cached_property
    def _rank(self) -> IntVector:
        """Place of each category by ascending mass."""
        rank = np.empty(self.public.size, dtype=np.int64)
        rank[self.public.order] = np.arange(self.public.size)
        return rank

    # --- integers ---

    def row(self, category: int) -> list[int]:
        """Return the weights of a category's row, which sum to 2^bits."""
        i, made, n = int(self._rank[category]), self.layers, self.public.size
        first, end = (0, n) if made.flat else (i + 1, i)
        row = [*made.w[:end], *[0] * (n - end)]
        row[i] += made.e[i]
        marks = [self._mark(i, c) for c in self._sums[1][first:]]
        for j in range(first, n):
            row[j] += marks[j - first + 1] - marks[j - first]
        return [row[place] for place in self._rank]

    def _mark(self, i: int, sum_: int) -> int:
        """Return where shares begin that have this sum before them: the floor of left C / S."""
        rest, of = self.layers.rests[i]
        return rest * (sum_ - (0 if self.layers.flat else self._sums[1][i + 1])) // of

    def column(self, category: int) -> Iterator[int]:
        """Yield the weights at a category of all rows, by ascending mass, as `row` has them."""
        j, made = int(self._rank[category]), self.layers
        below, above = self._sums[1][j : j + 2]
        for i in range(self.public.size):
            split = made.flat or i < j
            weight = made.w[j] if made.flat or i > j else 0
            weight += self._mark(i, above) - self._mark(i, below) if split else 0
            yield weight + (made.e[i] if i == j else 0)

    def largest_ratio(self) -> tuple[Fraction, int]:
        """Return a bound of the largest ratio of two entries of a column, and the category."""
        best, at = (1, 1), 0
        # A single row has no other one.
        for j, (_, low, high) in enumerate(self.layers.columns() if self.public.size > 1 else ()):
            if high * best[1] > best[0] * low:
                best, at = (high, low), j
        return Fraction(*best), int(self.public.order[at])

    def drawn(self, labels: IntVector, source: Source) -> tuple[IntVector, bool]:
        """Return one category for each, by exactly the weights of its row; see `Table.drawn`.

        Args:
            labels: places in 0..n-1, shape (draws,).
            source: of random bytes, as many for each draw as hold T.
        """
        size = -(-self.bits // 8)
        data, drop = source(size * labels.size), 8 * size - self.bits
        drawn = (
            self.category(i, int.from_bytes(data[size * place : size * (place + 1)]) >> drop)
            for place, i in enumerate(self._rank[labels].tolist())
        )
        return self.public.order[np.fromiter(drawn, np.int64, labels.size)], False

    def category(self, i: int, u: int) -> int:
        """Return the category of row i, both by ascending mass, for an integer u below T."""
        made, (base, shares), (rest, of) = self.layers, self._sums, self.layers.rests[i]
        first, end = (0, self.public.size) if made.flat else (i + 1, i)
        past = u - base[end] - made.e[i]
        # All three layers are computed. floor(rest C / S) <= x where C <= ((x + 1) S - 1) // rest.
        mark = ((past + 1) * of - 1) // (rest or 1)
        in_base = bisect_right(base, u) - 1
        in_rest = bisect_right(shares, shares[first] + mark) - 1
        return in_base if u < base[end] else i if past < 0 else in_rest

    # --- floats, for reading ---

    @cached_property
    def _floats(self) -> _Layers:
        made, unit, total = self.layers, 1 << self.bits, self._sums[1][-1] or 1
        return _Layers(
            frozen([w / unit for w in made.w]),
            frozen([e / unit for e in made.e]),
            frozen([k / total for k in made.k]),
            frozen([rest * total / (of << self.bits) for rest, of in self.layers.rests]),
        )

    @cached_property
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""
        made, unit, found = self.layers, 1 << self.bits, np.empty(self.public.size)
        kept = [weight for weight, _, _ in made.columns()] if made.flat else made.e
        found[self.public.order] = [weight / unit for weight in kept]
        return frozen(found)

    def apply(self, p: Vector) -> Vector:
        """Return p K for distributions p, shape (..., n), in O(n) each."""
        order, users = self.public.order, p.reshape(-1, self.public.size)
        released = np.empty_like(users)
        # Some users at a time: temporaries of all of them would be written to fresh memory.
        step = max(1, _BLOCK // self.public.size)
        for start in range(0, len(users), step):
            block = slice(start, start + step)
            sorted_users = np.take(users[block], order, axis=1)
            np.take(self._applied(sorted_users), self._rank, axis=1, out=released[block])
        return released.reshape(p.shape)

    def _applied(self, p: Vector) -> Vector:
        """Return p K, categories by ascending mass: of other rows, their base and shares."""
        base, extra, share, rate = self._floats
        if self.layers.flat:
            after, before = p.sum(axis=1, keepdims=True), (p @ rate)[:, None]
        else:
            after, before = np.zeros_like(p), np.zeros_like(p)
            after[:, :-1] = np.cumsum(p[:, :0:-1], axis=1)[:, ::-1]
            np.cumsum((p * rate)[:, :-1], axis=1, out=before[:, 1:])
        return base * after + extra * p + share * before

    def matrix(self) -> Vector:
        """Return K, shape (n, n)."""
        return self.apply(np.eye(self.public.size))
