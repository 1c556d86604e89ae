"""Tables of the closed forms over n categories, stored as O(n) integers instead of n^2.

`dpopt.verify.Layers` defines how a row is the sum of three layers, and `dpopt.verify.layers`
computes the layers of Algorithm 1 and of the leximin kernel. This module draws from them and
returns them as floats.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dpopt import verify
from dpopt._types import IntVector, Vector, frozen
from dpopt.privacy.guarantee import fingerprint
from dpopt.privacy.release import Source
from dpopt.public_prior.prior import PublicDistribution


@dataclass(frozen=True, eq=False)
class LayeredTable:
    """A kernel K with q K = q whose integer weights are computed from its parameters.

    Categories are in the caller's order. It has the interface of `dpopt.table.Table`, which stores
    every entry.

    Attributes:
        public: q.
        epsilon: in nats.
        objective: "minimax" or "leximin".
        bits: integer weights are over T = 2^bits.
    """

    public: PublicDistribution
    epsilon: float
    objective: str
    bits: int

    @classmethod
    def of(cls, public: PublicDistribution, epsilon: float, objective: str) -> LayeredTable:
        """Return the table with enough bits for rounding, two less than a multiple of 64."""
        smallest = float(public.masses.min())
        log_gap = math.log2(-math.expm1(-epsilon))
        log_scale = math.log2(1 + math.expm1(epsilon) * smallest) + epsilon / math.log(2)
        # Bits of the least entry: r - 1 is lowered by 2^-40 of itself, which changes no entry by
        # more than about 1e-12 of itself, and rounding must stay within that; 12 bits more make
        # sure that it does.
        needed = (40 + 12) - log_gap - math.log2(smallest) + log_scale
        return cls(public, epsilon, objective, 64 * math.ceil((needed + 2) / 64) - 2)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the parameters only; the integers are computed and proved again."""
        return type(self), (self.public, self.epsilon, self.objective, self.bits)

    @property
    def key(self) -> tuple[object, ...]:
        """The parameters that determine the integers."""
        return "layers", self.public.masses, self.epsilon, self.objective, self.bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayeredTable) and fingerprint(*self.key) == fingerprint(*other.key)

    def __hash__(self) -> int:
        return hash(fingerprint(*self.key))

    @cached_property
    def layers(self) -> verify.Layers:
        """The integers, categories by ascending mass."""
        setting = {"public": self.public.masses.tolist(), "epsilon": self.epsilon}
        return verify.layers(setting | {"objective": self.objective}, self.bits)

    @cached_property
    def decided(self) -> tuple[verify.Verdict, Fraction]:
        """The verdict of `dpopt.verify` on the integers, and the least K_ii."""
        return verify.decide_layers(self.layers, verify.growth(Fraction(self.epsilon)))

    @cached_property
    def _sums(self) -> tuple[list[int], list[int]]:
        """Cumulative w and k from 0, n + 1 integers each."""
        w, k = (list(accumulate(each, initial=0)) for each in (self.layers.w, self.layers.k))
        return w, k

    @cached_property
    def _rank(self) -> IntVector:
        """Rank of each category by ascending mass, from 0: the inverse permutation of ``order``."""
        return np.argsort(self.public.order)

    # --- integers ---

    def row(self, category: int) -> list[int]:
        """Return the weights of a category's row, which sum to 2^bits."""
        # Base weights w on the categories below i (all if flat), the extra e on i itself, and the
        # rest split among those above i (all if flat) in proportion to k.
        i, layers, n = int(self._rank[category]), self.layers, self.public.size
        first, end = (0, n) if layers.flat else (i + 1, i)
        row = [*layers.w[:end], *[0] * (n - end)]
        row[i] += layers.e[i]
        # floor(rest C / S): where a share begins, after shares of sum C.
        remainder, of = layers.rests[i]
        marks = [remainder * c // of for c in accumulate(layers.k[first:], initial=0)]
        for j, (before, after) in enumerate(pairwise(marks), first):
            row[j] += after - before
        return [row[rank] for rank in self._rank]

    def drawn(self, labels: IntVector, source: Source) -> tuple[IntVector, bool]:
        """Return a category drawn exactly from the row of each label; see `Table.drawn`."""
        size = -(-self.bits // 8)
        data, drop = source(size * labels.size), 8 * size - self.bits
        drawn = (
            self.category(i, int.from_bytes(data[size * index : size * (index + 1)]) >> drop)
            for index, i in enumerate(self._rank[labels].tolist())
        )
        return self.public.order[np.fromiter(drawn, np.int64, labels.size)], False

    def category(self, i: int, u: int) -> int:
        """Return the category that an integer u in 0..T-1 selects in row i, by ascending mass."""
        layers, (base, shares), (remainder, of) = self.layers, self._sums, self.layers.rests[i]
        first, end = (0, self.public.size) if layers.flat else (i + 1, i)
        past = u - base[end] - layers.e[i]
        # Search all three layers. floor(rest C / S) <= x iff C <= ((x + 1) S - 1) // rest.
        mark = ((past + 1) * of - 1) // (remainder or 1)
        in_base = bisect_right(base, u) - 1
        in_rest = bisect_right(shares, shares[first] + mark) - 1
        return in_base if u < base[end] else i if past < 0 else in_rest

    # --- floats, for reading ---

    @cached_property
    def _floats(self) -> tuple[Vector, Vector, Vector, Vector]:
        """The layers, categories by ascending mass, with T = 2^bits: w / T, e / T, k / sum(k).

        Last the probability that a row splits, over the sum of the shares it is split among.
        """
        layers, unit, total = self.layers, 1 << self.bits, self._sums[1][-1] or 1
        rates = [remainder * total / (of << self.bits) for remainder, of in layers.rests]
        over = (layers.w, unit), (layers.e, unit), (layers.k, total)
        base, extra, share = (frozen([n / whole for n in numbers]) for numbers, whole in over)
        return base, extra, share, frozen(rates)

    @cached_property
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""
        weights = [weight / (1 << self.bits) for weight, _, _ in self.layers.columns()]
        return frozen(np.array(weights)[self._rank])

    def apply(self, p: Vector) -> Vector:
        """Return p K for distributions p of shape (..., n), in O(n) each."""
        order, users = self.public.order, p.reshape(-1, self.public.size)
        released = np.empty_like(users)
        # In batches of users, whose temporaries stay in a core's cache.
        step = max(1, (1 << 16) // self.public.size)
        for start in range(0, len(users), step):
            block = slice(start, start + step)
            sorted_users = np.take(users[block], order, axis=1)
            np.take(self._applied(sorted_users), self._rank, axis=1, out=released[block])
        return released.reshape(p.shape)

    def _applied(self, p: Vector) -> Vector:
        """Return p K, shape (users, n), with categories by ascending mass."""
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
