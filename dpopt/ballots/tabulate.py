"""The tables k[lambda, c] of the rules for all sorted histograms at once, as arrays.

Permute-and-flip and the exponential mechanism are those of `dpopt.ballots.rules`. *The ladder* at
r = e^epsilon gives a class y below the largest count the probability

    u_y(l) = u_y(l - e_top + e_y) / r,    top any class of the largest count;

the classes of the largest count share the remaining probability equally. No epsilon-DP mechanism
has a smaller u_y(l) for the same u_y at the other histogram, since replacing a ballot for a top
class by one for y raises u_y by a factor of at most r. For some C and epsilon the ladder is not
private (docs/theorems/ladder.md), so only audited tables of it are released.

Numbers are floats, for the search of a parameter, or integers over 2^bits, rounded down after every
product. Releases are drawn from the integer table, and this table is audited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import IntVector
from dpopt.table.histograms import IntMatrix, SortedHistograms

Values = npt.NDArray[Any]
"""Floats, or Python integers over 2^bits."""


@dataclass(frozen=True)
class Numbers:
    """The arithmetic of a table: floats, or fixed-point integers.

    Attributes:
        bits: numbers are integers over 2^bits; None for floats.
    """

    bits: int | None = None

    def of(self, value: Fraction) -> Any:  # noqa: ANN401
        """Return a rational in this arithmetic; integers are rounded down."""
        return (
            float(value)
            if self.bits is None
            else (value.numerator << self.bits) // value.denominator
        )

    @property
    def one(self) -> Any:  # noqa: ANN401
        """The number 1."""
        return 1.0 if self.bits is None else 1 << self.bits

    def ones(self, size: int) -> Values:
        """Return an array of ones, shape (size,)."""
        return np.full(size, self.one, dtype=float if self.bits is None else object)

    def multiples(self, counts: IntVector, unit: Any) -> Values:  # noqa: ANN401
        """Return small integers times a number."""
        return counts * unit if self.bits is None else counts.astype(object) * unit

    def times(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        """Return the product."""
        return a * b if self.bits is None else (a * b) >> self.bits

    def product(self, a: Values, b: Values) -> Values:
        """Return the product of matrices."""
        return a @ b if self.bits is None else (a @ b) >> self.bits

    def over(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        """Return the quotient."""
        return a / b if self.bits is None else (a << self.bits) // b

    def powers(self, base: Fraction, most: int) -> Values:
        """Return base^0, ..., base^most."""
        factor, powers = self.of(base), [self.one]
        for _ in range(most):
            powers.append(self.times(powers[-1], factor))
        return np.array(powers, dtype=float if self.bits is None else object)


# Arithmetic of tables in double precision.
FLOATS = Numbers()


@dataclass(frozen=True)
class Rungs:
    """The ladder's recursion over the sorted histograms: its variables, rows and order."""

    inputs: SortedHistograms

    @cached_property
    def above(self) -> IntVector:
        """For each variable v the variable u with k_v = k_u / r, shape (size,).

        u is v's class after it took a ballot from a top class. It is v itself for classes of the
        largest count, and for those of one ballot less, which swap with the top.
        """
        histograms, variables = self.inputs.histograms, self.inputs.variables
        above = np.arange(self.inputs.size)
        for move in self.inputs.moves:
            # Of all moves of a ballot, those whose giver is a top class.
            top = histograms[move.before, move.giver] == histograms[move.before, 0]
            before, after = move.before[top], move.after[top]
            above[variables[before, move.taker]] = variables[after, move.taker]
        return above

    @cached_property
    def pairs(self) -> tuple[IntVector, IntVector]:
        """The ladder's rows k_v = r k_u, as arrays v and u over the classes u below the top.

        For a class with one ballot less than the top, v is the top of the same histogram.
        """
        below = np.flatnonzero(self.above != np.arange(self.above.size))
        tops = np.intersect1d(self.inputs.swaps, self.inputs.starts[:-1])
        return np.append(self.above[below], tops), np.append(below, tops + 1)

    @cached_property
    def layers(self) -> tuple[IntVector, ...]:
        """The histograms in the order of the recursion: a layer depends on earlier ones only."""
        # The first variable of a histogram is its largest count.
        tops = self.inputs.starts[:-1]
        # Sort by (largest count, number of classes with it).
        height = self.inputs.values[tops] * (self.inputs.categories + 1) + self.inputs.counts[tops]
        order = np.argsort(height, kind="stable")
        return tuple(np.split(order, np.flatnonzero(np.diff(height[order])) + 1))

    def ladder(self, ratio: Fraction, numbers: Numbers = FLOATS) -> Values:
        """Return the ladder's k[lambda, c] by variable at r = ``ratio``, shape (size,)."""
        inputs = self.inputs
        step, kernel = numbers.of(1 / ratio), numbers.ones(inputs.size)
        multiplicities, counts, starts = inputs.counts, inputs.values, inputs.starts
        for layer, lower in zip(self.layers, self._lower, strict=True):
            kernel[lower] = numbers.times(kernel[self.above[lower]], step)
            tops = starts[layer]
            # The variable after the top; it swaps with the top if it has one ballot less.
            second = np.minimum(tops + 1, inputs.size - 1)
            swaps = (second < starts[layer + 1]) & (counts[tops] - counts[second] == 1)
            remaining = numbers.ones(len(layer))
            if lower.size:
                masses = kernel[lower] * multiplicities[lower]
                # Subtract from each histogram of the layer the mass of its lower classes.
                owner = np.searchsorted(layer, inputs.rows[lower])
                begins = np.flatnonzero(np.diff(owner, prepend=-1))
                remaining[owner[begins]] -= np.add.reduceat(masses, begins)
            # Each top class has x, each class with one ballot less x / r: solve for x.
            top = numbers.multiples(multiplicities[tops], numbers.one)
            swapped = numbers.multiples(np.where(swaps, multiplicities[second], 0), step)
            kernel[tops] = numbers.over(remaining, top + swapped)
            kernel[second[swaps]] = numbers.times(kernel[tops[swaps]], step)
        return kernel

    @cached_property
    def _lower(self) -> tuple[IntVector, ...]:
        """For each layer the variables that are 1/r of another one, by histogram."""
        sizes, rows = [layer.size for layer in self.layers], np.concatenate(self.layers)
        number = np.empty_like(rows)
        number[rows] = np.repeat(np.arange(len(sizes)), sizes)
        below = np.flatnonzero(self.above != np.arange(self.above.size))
        numbers = number[self.inputs.rows[below]]
        ends = np.cumsum(np.bincount(numbers, minlength=len(sizes)))
        return tuple(np.split(below[np.argsort(numbers, kind="stable")], ends[:-1]))


def permute_and_flip_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return permute-and-flip's k[lambda, c] by variable at s = ``step``.

    With q_y = s^-gap, a class y has probability q_y sum_j E_j(1 - q_z : z != y) / (C
    binom(C - 1, j)), with E_j the elementary symmetric polynomial: j other classes were rejected
    before y. In a sorted histogram only the first K classes can have ballots ("shown"); the others
    ("hidden") are all rejected with the same probability.
    """
    chances = numbers.powers(1 / step, inputs.records)[_gaps(inputs)]
    rejected = numbers.one - chances
    size, row = inputs.categories, inputs.rows
    shown = min(size, inputs.records)
    # A class, by index in the sorted histogram, that each variable stands for.
    classes = np.empty(inputs.size, dtype=np.int64)
    classes[inputs.variables.ravel()] = np.tile(np.arange(size), len(inputs.histograms))
    # sums[i]: E_i of the rejection probabilities of the other shown classes, by variable.
    sums = [numbers.ones(inputs.size)]
    for other in range(shown):
        value = np.where(classes == other, 0, rejected[row, other])
        shifted = [numbers.times(term, value) for term in sums]
        sums = [sums[0], *(a + b for a, b in zip(sums[1:], shifted, strict=False)), shifted[-1]]
    # powers[j, top]: the probability that j hidden classes are rejected, given the largest count.
    base = (numbers.one - numbers.powers(1 / step, inputs.records))[None]
    powers = [numbers.ones(base.size)[None]]
    for _ in range(size - shown):
        powers.append(numbers.times(powers[-1], base))
    weights = numbers.product(_orders(size, shown, numbers), np.concatenate(powers))
    top, is_hidden = inputs.histograms[row, 0], (classes >= shown).astype(np.int64)
    terms = [numbers.times(term, weights[is_hidden, i, top]) for i, term in enumerate(sums)]
    return numbers.times(chances[row, classes], sum(terms))


@lru_cache(maxsize=8)
def _orders(size: int, shown: int, numbers: Numbers) -> Values:
    """Return the weights of i shown and j hidden classes being rejected before a class.

    Shape (2, i, j): axis 0 is 0 for a shown class, 1 for a hidden one. The weight is the number of
    sets of j hidden classes over C binom(C - 1, i + j).
    """
    hidden = size - shown
    weights = np.zeros((2, shown + 1, hidden + 1), dtype=numbers.ones(0).dtype)
    for i, j in np.ndindex(weights.shape[1:]):
        for is_hidden, others in enumerate((hidden, max(hidden - 1, 0))):
            if i + j < size:
                orders = size * math.comb(size - 1, i + j)
                weights[is_hidden, i, j] = numbers.of(Fraction(math.comb(others, j), orders))
    return weights


def exponential_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return the exponential mechanism's k[lambda, c] by variable at s = ``step``."""
    shares = numbers.powers(1 / step, inputs.records)[_gaps(inputs)]
    kernel = numbers.ones(inputs.size)
    kernel[inputs.variables.ravel()] = numbers.over(
        shares, shares.sum(axis=1, keepdims=True)
    ).ravel()
    return kernel


def _gaps(inputs: SortedHistograms) -> IntMatrix:
    return inputs.histograms[:, :1] - inputs.histograms
