"""Hockey-sticks between a batch law and all its neighbours, from the leave-one-out tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpopt._types import Matrix, Vector

FROM_DATABASE = "d(x, x')"
FROM_NEIGHBOUR = "d(x', x)"


@dataclass(frozen=True)
class Outputs:
    """Which sums make one output; sums and values are relative to the least value of x.

    Output b is published for the sums from b W - h to b W - h + W - 1: W = T and h = floor(T / 2)
    for the rounded mean, W = 1 and h = 0 for the sum.

    Attributes:
        width: W.
        half: h.
        first: the least output of any neighbour.
        count: number of outputs from there on.
        low: least replacement.
        high: largest replacement.
    """

    width: int
    half: int
    first: int
    count: int
    low: int
    high: int

    @classmethod
    def of(cls, drawn: int, span: int, low: int, high: int, rounded: bool) -> Outputs:
        """Return the outputs of T of N values in 0..span and one replacement in low..high."""
        width, half = (drawn, drawn // 2) if rounded else (1, 0)
        first = (low + half) // width
        last = ((drawn - 1) * span + high + half) // width
        return cls(width, half, first, last - first + 1, low, high)

    @property
    def replacements(self) -> int:
        """Number of values that a record can be replaced by."""
        return self.high - self.low + 1

    def fixed(self, counts: Vector) -> Vector:
        """Return counts by sum as counts by output, shape (count,)."""
        padded = np.zeros(self.count * self.width)
        place = self.half - self.first * self.width
        padded[place : place + counts.size] = counts
        return padded.reshape(self.count, self.width).sum(axis=1)

    def shifted(self, counts: Vector) -> Matrix:
        """Return counts by output after adding w to every sum, for every w: a view.

        Shape (W, ceil(R / W), count) for R replacements; the place of w is `place_of`.
        """
        width, groups = self.width, -(-self.replacements // self.width)
        columns = self.count + groups - 1
        padded = np.zeros(columns * width + width - 1)
        place = self.half + self.high - self.first * width
        padded[place : place + counts.size] = counts
        sums = np.zeros(columns * width)
        for offset in range(width):
            sums += padded[offset : offset + sums.size]
        rows = np.ascontiguousarray(sums.reshape(columns, width).T)
        step, item = rows.strides
        return np.lib.stride_tricks.as_strided(
            rows, (width, groups, self.count), (step, item, item), writeable=False
        )

    def place_of(self, value: int) -> tuple[int, int]:
        """Return where `shifted` holds the outputs after adding ``value``."""
        group, residue = divmod(self.high - value, self.width)
        return residue, group

    def by_value(self, sums: Matrix) -> Vector:
        """Return numbers of shape (W, groups) for the replacements high, high - 1, ..., low."""
        return sums.T.reshape(-1)[: self.replacements]


class HockeySticks:
    """The largest hockey-stick so far, for each epsilon, in the counts' own scale."""

    def __init__(self, outputs: Outputs, epsilons: Vector) -> None:
        self._outputs = outputs
        self._factors = [(math.exp(e), math.expm1(e)) for e in epsilons.tolist()]
        self.best: list[tuple[float, int, int, str]] = [(0.0, 0, 0, "")] * epsilons.size
        """The value, the record replaced, its replacement, the direction; for each epsilon."""

    def add(
        self, value: int, without: Vector, others: Vector, replacements: Sequence[int] | None
    ) -> None:
        """Compare x with its neighbours in which one record of ``value`` is replaced.

        Args:
            value: a.
            without: L, counts of T-subsets of the other records, by sum from 0.
            others: M, counts of (T-1)-subsets of the other records, by sum from 0.
            replacements: which w; all if None.
        """
        outputs = self._outputs
        targets = range(outputs.high, outputs.low - 1, -1) if replacements is None else replacements
        fixed, moved = outputs.fixed(without), outputs.shifted(others)
        own = moved[outputs.place_of(value)]
        scratch = np.empty(moved.shape)
        for index, (factor, excess) in enumerate(self._factors):
            covered = excess * fixed
            rest = own - covered
            # No neighbour covers less than one that never makes the outputs of the batches with a.
            if np.maximum(rest, 0.0).sum() > self.best[index][0]:
                np.multiply(moved, -factor, out=scratch)
                scratch += rest
                self._keep(index, value, targets, scratch, FROM_DATABASE)
            np.subtract(moved, covered + factor * own, out=scratch)
            self._keep(index, value, targets, scratch, FROM_NEIGHBOUR)

    def _keep(
        self, index: int, value: int, targets: Sequence[int], excess: Matrix, direction: str
    ) -> None:
        """Sum the positive parts for each replacement, and keep the largest of the targets."""
        np.maximum(excess, 0.0, out=excess)
        sums = self._outputs.by_value(excess.sum(axis=-1))
        among = sums[[self._outputs.high - w for w in targets]]
        place = int(np.argmax(among))
        if among[place] > self.best[index][0]:
            self.best[index] = (float(among[place]), value, targets[place], direction)
