"""What a table of an equivariant mechanism spends, exactly; selection rules that were audited.

An equivariant mechanism is e^epsilon-private if k[v] <= r k[w] and k[w] <= r k[v] for each pair of
variables that one replaced ballot can exchange (`Partitions.neighbours`), with r = e^epsilon. What
it spends is the largest such ratio, a rational number. Logarithms in floats find the pairs that may
need it, up to a bound on their rounding; among these it is decided in integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import Vector
from dpopt.ballots.partitions import MOST_PARTITIONS, Histogram, Partitions, partition_count
from dpopt.ballots.table import Units, Values, shared
from dpopt.ballots.tabulate import (
    FLOATS,
    Numbers,
    Rungs,
    exponential_table,
    permute_and_flip_table,
)
from dpopt.privacy.exponential import exp_lower

Rule = Literal["ladder", "permute-and-flip", "exponential"]
RULES: tuple[str, ...] = get_args(Rule)

MOST_EPSILON = 100.0
_MOST_BITS = 1 << 33
"""Of the weights of a table together: a gigabyte."""
_MOST_STEPS = 2 * 10**9
"""Products of permute-and-flip's table, about min(C, K)^2 / 2 for each weight."""
_GUARD = 64
"""Bits that are computed beyond those of the weights."""
_BISECTIONS = 44
_SHORTFALLS = (2.0**-34, 2.0**-24, 2.0**-14, 2.0**-8)
"""Parts of a step's logarithm found in floats that are left, in turn, until integers agree."""


@dataclass(frozen=True)
class Spent:
    """The largest ratio of a table, and where it is needed.

    Attributes:
        ratio: P(class | first) / P(class | second), at least 1: e to the epsilon that is spent.
        first: a histogram.
        second: its neighbour, one ballot replaced; the classes in the same order.
        place: of the class in both.
    """

    ratio: Fraction
    first: Histogram
    second: Histogram
    place: int


@dataclass(frozen=True)
class Audited:
    """A rule's table that was found private by enumeration.

    Attributes:
        rule: ladder, permute-and-flip or exponential.
        step: the rule's own parameter: r of the ladder, otherwise s.
        spent: the largest ratio of the table, at most e^epsilon.
        bits: the weights are integers over `dpopt.ballots.scale(classes, bits)`.
        units: the table.
    """

    rule: str
    step: Fraction
    spent: Spent
    bits: int
    units: Units


def worst(partitions: Partitions, units: Units) -> Spent:
    """Return the largest ratio, with two neighbours and a class that need it.

    The logarithm of a weight to base 2 is computed with an error of at most 2^-50 of its size, or
    of 1, and the difference of two with one of at most 2^-48 of the largest. A pair that falls
    short of the largest difference by more than twice that has a smaller ratio.

    Raises:
        NotPrivateError: if a weight is 0 beside one that is not: no epsilon is enough.
    """
    weights = list(chain.from_iterable(units))
    _refuse_zeros(partitions, np.array([weight > 0 for weight in weights]))
    logs = np.array([math.log2(weight) if weight else 0.0 for weight in weights])
    error = 2.0**-48 * max(1.0, float(logs.max()))
    least = _spread(partitions, logs) - 2 * error
    # Of the pairs that need a ratio only that large, the first.
    high, low, found = 0, 1, None
    swaps = partitions.swaps
    kept = swaps[np.abs(logs[swaps] - logs[swaps + 1]) >= least]
    for v in kept.tolist():
        more, less = sorted((weights[v], weights[v + 1]), reverse=True)
        if more * low > high * less:
            high, low, found = more, less, _swap(partitions, v, weights[v] >= weights[v + 1])
    for move in partitions.moves:
        before, after = partitions.variables[move.states], partitions.variables[move.to]
        row, place = np.nonzero(np.abs(logs[before] - logs[after]) >= least)
        pairs = zip(before[row, place].tolist(), after[row, place].tolist(), strict=True)
        for at, (v, w) in enumerate(pairs):
            more, less = weights[v], weights[w]
            if more < less:
                more, less = less, more
            if more * low > high * less:
                high, low = more, less
                ends = int(move.states[row[at]]), int(move.to[row[at]])
                first, second = (partitions.states[end] for end in ends)
                if weights[v] < weights[w]:
                    first, second = second, first
                found = first, second, int(place[at])
    if found is None:
        raise ParameterError("units hold zeros alone.")
    return Spent(Fraction(high, low), *found)


def _spread(partitions: Partitions, logs: Vector) -> float:
    """Return the largest difference of logarithms over all pairs of neighbours."""
    swaps = partitions.swaps
    found = float(np.abs(logs[swaps] - logs[swaps + 1]).max(initial=0.0))
    for move in partitions.moves:
        before, after = partitions.variables[move.states], partitions.variables[move.to]
        found = max(found, float(np.abs(logs[before] - logs[after]).max()))
    return found


def _swap(partitions: Partitions, v: int, forward: bool) -> tuple[Histogram, Histogram, int]:
    """Return two histograms that swap the classes of the variables v and v + 1, and the class."""
    row = partitions.states[int(partitions.state_of[v])]
    place = row.index(int(partitions.counts[v + 1]))
    other = (*row[: place - 1], row[place], row[place - 1], *row[place + 1 :])
    return (row, other, place - 1) if forward else (other, row, place - 1)


def _refuse_zeros(partitions: Partitions, positive: npt.NDArray[np.bool_]) -> None:
    """Refuse a table in which one of two neighbours has a weight of 0, the other not."""
    if not positive.all() and _spread(partitions, positive.astype(float)) > 0:
        raise NotPrivateError(
            "the table is private for no epsilon: a class that one histogram can choose, its "
            "neighbour cannot."
        )


def table_bits(voters: int, classes: int, epsilon: float) -> int:
    """Return bits at which a rule's weights are rounded by less than epsilon 2^-60 of them.

    A class becomes a top one by K/2 replaced ballots, rounded up, and then has at least 1/C: its
    probability is at least e^(-epsilon ceil(K/2)) / C under every epsilon-private rule that never
    prefers a class of fewer ballots.
    """
    depth = math.ceil(-(-voters // 2) * epsilon / math.log(2.0))
    small = max(0, -math.floor(math.log2(epsilon)))
    return 64 + 3 * classes.bit_length() + depth + small


def auditable(rule: str, voters: int, classes: int, epsilon: float) -> bool:
    """Return whether `audit_rule` can list all sorted histograms and the bits of their weights.

    Args:
        rule: ladder, permute-and-flip or exponential.
        voters: K, in 1..10,000.
        classes: C, in 2..1,000.
        epsilon: above 0.
    """
    count, bits = partition_count(voters, classes), table_bits(voters, classes, epsilon)
    # Distinct counts 0, 1, ..., L - 1 take L (L - 1) / 2 ballots at least.
    size = count * min(classes, math.isqrt(2 * voters) + 2)
    steps = size * min(classes, voters) ** 2 if rule == "permute-and-flip" else size
    return count <= MOST_PARTITIONS and size * bits <= _MOST_BITS and steps <= _MOST_STEPS


def audit_rule(rule: Rule, voters: int, classes: int, epsilon: float) -> Audited:
    """Return a rule's table for K ballots over C classes that was found epsilon-private, exactly.

    The ladder is taken at r = e^epsilon, up to 2^-50 of epsilon, if it passes. From 7 classes on it
    need not; then its r is the largest that passes. Permute-and-flip and the exponential mechanism
    are private at s = e^(epsilon / 2) for every K; their s is the largest that passes for this K.
    Such a step is found by bisection in floats; what is found is audited in integers.

    Args:
        rule: ladder, permute-and-flip or exponential.
        voters: K, at least 1.
        classes: C, at least 2.
        epsilon: above 0.

    Raises:
        ParameterError: for other parameters; for more than `MOST_PARTITIONS` sorted histograms or
            a gigabyte of weights.
    """
    epsilon = _checks.real("epsilon", epsilon, 0.0, MOST_EPSILON, open_lower=True)
    table = _Tables.of(rule, voters, classes, epsilon)
    limit = exp_lower(epsilon)
    for share in table.shares():
        found = table.audited(_power(epsilon, share))
        if found is not None and found.spent.ratio <= limit:
            return found
    raise NotPrivateError(
        f"rule {rule!r} for {voters} ballots over {classes} classes was not found private for "
        f"epsilon = {digits(epsilon)} at any step."
    )


@dataclass(frozen=True)
class _Tables:
    """The tables of a rule at any step."""

    rule: str
    partitions: Partitions
    epsilon: float
    bits: int
    at: Callable[[Fraction, Numbers], Values]

    @classmethod
    def of(cls, rule: str, voters: int, classes: int, epsilon: float) -> _Tables:
        """Return the tables for sizes whose number of histograms and of bits can be listed."""
        _checks.choice("rule", rule, RULES)
        voters = _checks.integer("voters", voters, 1, 10_000)
        classes = _checks.integer("classes", classes, 2, 1_000)
        if not auditable(rule, voters, classes, epsilon):
            raise ParameterError(
                f"rule {rule!r} is audited over all {partition_count(voters, classes):,} sorted "
                f"histograms of {voters} ballots over {classes} classes, which are too many, or "
                "need too many bits; permute-and-flip at e^(epsilon / 2) needs no audit."
            )
        bits = table_bits(voters, classes, epsilon)
        partitions = Partitions(voters, classes)
        if rule == "ladder":
            return cls(rule, partitions, epsilon, bits, Rungs(partitions).ladder)
        made = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
        return cls(rule, partitions, epsilon, bits, partial(made, partitions))

    def shares(self) -> Iterator[float]:
        """Yield parts of epsilon whose power may be a private step, the most promising first."""
        rung = self.rule == "ladder"
        least, most = (0.0, 1.0) if rung else (0.5, 1.0)
        if rung:
            yield most - 2.0**-50
        for _ in range(_BISECTIONS):
            middle = (least + most) / 2
            least, most = (middle, most) if self._fits(middle) else (least, middle)
        sure = 0.0 if rung else 0.5 - 2.0**-51
        for shortfall in _SHORTFALLS:
            yield max(least - shortfall * least, sure)

    def _fits(self, share: float) -> bool:
        values = self.at(_power(self.epsilon, share), FLOATS)
        if values.min() <= 0:
            return False
        logs = np.log2(values)
        return _spread(self.partitions, logs) <= self.epsilon / math.log(2.0)

    def audited(self, step: Fraction) -> Audited | None:
        """Return the table in integers at a step, with what it spends; None if it is no law.

        The ladder leaves its top less than nothing where classes are many and r is small.
        """
        values = self.at(step, Numbers(self.bits + _GUARD))
        if min(values) <= 0:
            return None
        units = shared(self.partitions, values, self.bits)
        return Audited(self.rule, step, worst(self.partitions, units), self.bits, units)


def _power(epsilon: float, share: float) -> Fraction:
    return exp_lower(Fraction(epsilon) * Fraction(share))
