"""The tables k[lambda, c] of the rules for all sorted histograms at once, as arrays.

Permute-and-flip and the exponential mechanism as in `dpopt.ballots.rules`, there for one histogram
in fractions. *The ladder* at r = e^epsilon gives a class y below the largest count

    u_y(l) = u_y(l - e_top + e_y) / r,    top any class of the largest count,

classes that share the largest count are equal, and the rest is normalisation. No epsilon-DP
mechanism has a smaller u_y(l) for the same u_y of the other histogram: replacing a ballot for a top
class by one for y raises u_y by at most r. Not every C and epsilon keep it private (the page
docs/theorems/ladder.md), so that only tables of it that were audited release.

Numbers are floats, to search a parameter with, or integers over 2^bits, rounded down after every
product: what is released is a table of integers, and the audit is of that table.
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
    """The arithmetic of a table.

    Attributes:
        bits: numbers are integers over 2^bits; None for floats.
    """

    bits: int | None = None

    def of(self, value: Fraction) -> Any:  # noqa: ANN401
        """Return a rational in this arithmetic, rounded down if they are integers."""
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
        """Return ``size`` times 1."""
        return np.full(size, self.one, dtype=float if self.bits is None else object)

    def multiples(self, counts: IntVector, unit: Any) -> Values:  # noqa: ANN401
        """Return small integers times a number."""
        return counts * unit if self.bits is None else counts.astype(object) * unit

    def times(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return the product."""
        return left * right if self.bits is None else (left * right) >> self.bits

    def product(self, left: Values, right: Values) -> Values:
        """Return the product of matrices."""
        return left @ right if self.bits is None else (left @ right) >> self.bits

    def over(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return the quotient."""
        return left / right if self.bits is None else (left << self.bits) // right

    def powers(self, base: Fraction, most: int) -> Values:
        """Return base^0, ..., base^most."""
        factor, found = self.of(base), [self.one]
        for _ in range(most):
            found.append(self.times(found[-1], factor))
        return np.array(found, dtype=float if self.bits is None else object)


FLOATS = Numbers()


@dataclass(frozen=True)
class Rungs:
    """The order in which the ladder's recursion reaches the sorted histograms."""

    inputs: SortedHistograms

    @cached_property
    def above(self) -> IntVector:
        """For each variable the one of which it is 1/r: that after its class took a top's ballot.

        Itself for classes of the largest count, and those of one less: these swap with the top.
        """
        histograms, variables = self.inputs.histograms, self.inputs.variables
        above = np.arange(self.inputs.size)
        for move in self.inputs.moves:
            top = histograms[move.before, move.giver] == histograms[move.before, 0]
            before, after = move.before[top], move.after[top]
            above[variables[before, move.taker]] = variables[after, move.taker]
        return above

    @cached_property
    def pairs(self) -> tuple[IntVector, IntVector]:
        """The ladder's rows: variables v, and u = v / r of classes that are below the top.

        Of a class of one ballot less than the top, v is the top's own.
        """
        below = np.flatnonzero(self.above != np.arange(self.above.size))
        tops = np.intersect1d(self.inputs.swaps, self.inputs.starts[:-1])
        return np.append(self.above[below], tops), np.append(below, tops + 1)

    @cached_property
    def layers(self) -> tuple[IntVector, ...]:
        """The histograms in the order of the recursion: each layer needs the ones before only.

        When a class takes a ballot of a top, the largest count falls, or fewer classes have it.
        """
        tops = self.inputs.starts[:-1]
        height = self.inputs.values[tops] * (self.inputs.categories + 1) + self.inputs.counts[tops]
        order = np.argsort(height, kind="stable")
        return tuple(np.split(order, np.flatnonzero(np.diff(height[order])) + 1))

    def ladder(self, ratio: Fraction, numbers: Numbers = FLOATS) -> Values:
        """Return the ladder's k[lambda, c] by variable at r = ``ratio``."""
        inputs = self.inputs
        step, found = numbers.of(1 / ratio), numbers.ones(inputs.size)
        many, counts, starts = inputs.counts, inputs.values, inputs.starts
        for states, lower in zip(self.layers, self._lower, strict=True):
            found[lower] = numbers.times(found[self.above[lower]], step)
            tops = starts[states]
            second = np.minimum(tops + 1, inputs.size - 1)
            next_to = (second < starts[states + 1]) & (counts[tops] - counts[second] == 1)
            rest = numbers.ones(len(states))
            if lower.size:
                taken = found[lower] * many[lower]
                owner = np.searchsorted(states, inputs.rows[lower])
                begins = np.flatnonzero(np.diff(owner, prepend=-1))
                rest[owner[begins]] -= np.add.reduceat(taken, begins)
            top = numbers.multiples(many[tops], numbers.one)
            swapped = numbers.multiples(np.where(next_to, many[second], 0), step)
            found[tops] = numbers.over(rest, top + swapped)
            found[second[next_to]] = numbers.times(found[tops[next_to]], step)
        return found

    @cached_property
    def _lower(self) -> tuple[IntVector, ...]:
        """For each layer the variables that are 1/r of another's, in the order of their states."""
        all_starts, found = self.inputs.starts, []
        for states in self.layers:
            starts = all_starts[states]
            own = _ranges(starts, all_starts[states + 1] - starts)
            found.append(own[self.above[own] != own])
        return tuple(found)


def permute_and_flip_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return permute-and-flip's k[lambda, c] by variable at s = ``step``.

    See `dpopt.ballots.rules.permute_and_flip`. Classes from the K-th on have no ballot in any
    sorted histogram, so that their refusals are one power.
    """
    chances = numbers.powers(1 / step, inputs.records)[_gaps(inputs)]
    refused = numbers.one - chances
    size, state = inputs.categories, inputs.rows
    shown = min(size, inputs.records)
    own = np.empty(inputs.size, dtype=np.int64)
    own[inputs.variables.ravel()] = np.tile(np.arange(size), len(inputs.histograms))
    # sums[i]: the elementary symmetric polynomial E_i of the refusals of the first K other classes.
    sums = [numbers.ones(inputs.size)]
    for other in range(shown):
        value = np.where(own == other, 0, refused[state, other])
        raised = [numbers.times(term, value) for term in sums]
        sums = [sums[0], *(a + b for a, b in zip(sums[1:], raised, strict=False)), raised[-1]]
    # How often classes without a ballot refuse depends on the largest count alone.
    base = (numbers.one - numbers.powers(1 / step, inputs.records))[None]
    powers = [numbers.ones(base.size)[None]]
    for _ in range(size - shown):
        powers.append(numbers.times(powers[-1], base))
    weights = numbers.product(_orders(size, shown, numbers), np.concatenate(powers))
    top, itself = inputs.histograms[state, 0], (own >= shown).astype(np.int64)
    parts = [numbers.times(term, weights[itself, i, top]) for i, term in enumerate(sums)]
    return numbers.times(chances[state, own], sum(parts))


@lru_cache(maxsize=8)
def _orders(size: int, shown: int, numbers: Numbers) -> Values:
    """Return the weight of i shown classes and j hidden ones that refuse before a class.

    Shape (2, i, j): first for a class that is shown, then for one that is hidden itself.
    """
    hidden = size - shown
    found = np.zeros((2, shown + 1, hidden + 1), dtype=numbers.ones(0).dtype)
    for i, j in np.ndindex(found.shape[1:]):
        for itself, others in enumerate((hidden, max(hidden - 1, 0))):
            if i + j < size:
                orders = size * math.comb(size - 1, i + j)
                found[itself, i, j] = numbers.of(Fraction(math.comb(others, j), orders))
    return found


def exponential_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return the exponential mechanism's k[lambda, c] by variable at s = ``step``."""
    shares = numbers.powers(1 / step, inputs.records)[_gaps(inputs)]
    found = numbers.ones(inputs.size)
    found[inputs.variables.ravel()] = numbers.over(
        shares, shares.sum(axis=1, keepdims=True)
    ).ravel()
    return found


def _gaps(inputs: SortedHistograms) -> IntMatrix:
    return inputs.histograms[:, :1] - inputs.histograms


def _ranges(starts: IntVector, lengths: IntVector) -> IntVector:
    """Return start, start + 1, ... of each range, one after the other."""
    ends = np.cumsum(lengths)
    if not lengths.size or not ends[-1]:
        return np.zeros(0, dtype=np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
