"""The tables k[lambda, c] of selection rules over all sorted histograms, and their audit.

Permute-and-flip and the exponential mechanism are those that `dpopt.plurality.setting` draws from.
*The ladder* at r = e^epsilon gives a class y below the largest count the probability

    u_y(l) = u_y(l - e_top + e_y) / r,    top any class of the largest count;

the classes of the largest count share the remaining probability equally. No epsilon-DP mechanism
has a smaller u_y(l) for the same u_y at the other histogram, since replacing a ballot for a top
class by one for y raises u_y by a factor of at most r. For some C and epsilon the ladder is not
private (docs/theorems/ladder.md), so only audited tables of it are released.

A rule has one parameter. Its largest private value for given K and C is searched in floats. The
table at that value is computed in integers over 2^bits, rounded down after every product, and
`dpopt.verify` verifies it; releases are drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate
from operator import floordiv
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from flint import fmpz_poly

from dpopt import verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Vector
from dpopt.privacy.exact import exp_lower
from dpopt.privacy.guarantee import Guarantee
from dpopt.table import SortedHistograms, Table, certify_table, rounded
from dpopt.table.histograms import partition_count, sorted_histograms

Rule = Literal["ladder", "permute-and-flip", "exponential"]
# Largest numbers of ballots and of classes for which histograms are listed.
_LONGEST_LIST = 10_000, 1_000

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
        if self.bits is None:
            return float(value)
        return (value.numerator << self.bits) // value.denominator

    @property
    def dtype(self) -> type:
        """Of arrays of these numbers."""
        return float if self.bits is None else object

    @property
    def one(self) -> Any:  # noqa: ANN401
        """The number 1."""
        return 1.0 if self.bits is None else 1 << self.bits

    def times(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        """Return the product."""
        return a * b if self.bits is None else (a * b) >> self.bits

    def over(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        """Return the quotient."""
        return a / b if self.bits is None else (a << self.bits) // b

    def powers(self, base: Any, most: int) -> Values:  # noqa: ANN401
        """Return base^0, ..., base^most."""
        powers = accumulate([base] * most, self.times, initial=self.one)
        return np.array(list(powers), dtype=self.dtype)


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

    def ladder(self, ratio: Fraction, numbers: Numbers = FLOATS) -> Values:
        """Return the ladder's k[lambda, c] by variable at r = ``ratio``, shape (size,)."""
        inputs, step, one = self.inputs, numbers.of(1 / ratio), numbers.one
        above, classes, starts = (a.tolist() for a in (self.above, inputs.counts, inputs.starts))
        swaps, kernel = set(inputs.swaps.tolist()), [one] * inputs.size
        # A histogram depends on those of a smaller largest count, or with fewer classes of it.
        tops = inputs.starts[:-1]
        for row in np.lexsort((inputs.counts[tops], inputs.values[tops])).tolist():
            top = starts[row]
            # Each top class has x, each class with one ballot less x / r.
            second = top + 1 if top in swaps else None
            remaining, divisor = one, classes[top] * one
            for v in range(top + 1, starts[row + 1]):
                if v == second:
                    divisor += classes[v] * step
                else:
                    kernel[v] = numbers.times(kernel[above[v]], step)
                    remaining -= classes[v] * kernel[v]
            kernel[top] = numbers.over(remaining, divisor)
            if second:
                kernel[second] = numbers.times(kernel[top], step)
        return np.array(kernel, dtype=numbers.dtype)


def permute_and_flip_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return permute-and-flip's k[lambda, c] by variable at s = ``step``.

    If class y, whose coin has q_y = s^-gap, comes at a uniform time t, another class z is before it
    and accepted with probability t q_z. So y is chosen with probability q_y times the integral of
    prod_z (1 - t q_z) over t in [0, 1] and all z != y, by Gauss's rule in floats. In integers
    1 - t q = (1 - t) + t (1 - q), so that the integral is sum_j E_j(1 - q_z) / (C binom(C - 1, j)),
    with E_j the elementary symmetric polynomial: a sum of positive numbers.
    """
    size, counts = inputs.categories, inputs.counts
    gaps = inputs.histograms[inputs.rows, 0] - inputs.values
    chances = numbers.powers(numbers.of(1 / step), inputs.records)[gaps]
    if numbers.bits is None:
        t, weights = _gauss(-(-size // 2))
        logs = np.log1p(-chances[:, None] * t)
        sums = np.add.reduceat(counts[:, None] * logs, inputs.starts[:-1], axis=0)
        return chances * (np.exp(sums[inputs.rows] - logs) @ weights)
    orders = [size * math.comb(size - 1, j) for j in range(size)]
    starts, kernel = inputs.starts.tolist(), list[Any]()

    @cache
    def symmetric(gap: int, n: int) -> fmpz_poly:
        """Return sum_j E_j x^j of n classes of one gap."""
        rejected = numbers.one - numbers.powers(numbers.of(1 / step), gap)[-1]
        powers = enumerate(numbers.powers(rejected, n).tolist())
        return fmpz_poly([math.comb(n, j) * power for j, power in powers])

    for v, row in enumerate(inputs.rows.tolist()):
        begin, end = starts[row : row + 2]
        terms = (symmetric(int(gaps[u]), int(counts[u]) - (u == v)) for u in range(begin, end))
        others = math.prod(terms, start=fmpz_poly([chances[v]])).coeffs()
        kernel.append(int(sum(map(floordiv, others, orders)) >> numbers.bits * (end - begin)))
    return np.array(kernel, dtype=object)


@lru_cache(maxsize=8)
def _gauss(nodes: int) -> tuple[Vector, Vector]:
    """Return nodes and weights of Gauss's rule on [0, 1]."""
    x, weights = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, weights / 2


def exponential_table(
    inputs: SortedHistograms, step: Fraction, numbers: Numbers = FLOATS
) -> Values:
    """Return the exponential mechanism's k[lambda, c] by variable at s = ``step``."""
    gaps = inputs.histograms[inputs.rows, 0] - inputs.values
    shares = numbers.powers(numbers.of(1 / step), inputs.records)[gaps]
    sums = np.add.reduceat(inputs.counts * shares, inputs.starts[:-1])
    return numbers.over(shares, sums[inputs.rows])


def table_bits(voters: int, classes: int, epsilon: float) -> int:
    """Return the bits for which a rule's weights have a relative rounding below epsilon 2^-60.

    A class becomes a top one by K/2 replaced ballots, rounded up, and then has at least 1/C: its
    probability is at least e^(-epsilon ceil(K/2)) / C under every epsilon-private rule that never
    prefers a class of fewer ballots.
    """
    depth = math.ceil(-(-voters // 2) * epsilon / math.log(2.0))
    small = max(0, -math.floor(math.log2(epsilon)))
    return 64 + 3 * classes.bit_length() + depth + small


def auditable(voters: int, classes: int, epsilon: float) -> bool:
    """Return whether all sorted histograms, and the bits of their weights, are few enough."""
    few = few_histograms(verify.TABLED, voters, classes)
    # Bits of a table's weights, not counting those of a common multiple of 1..1,000.
    return few and table_bits(voters, classes, epsilon) <= 16_000


def few_histograms(most: int, voters: int, classes: int) -> bool:
    """Return whether there are at most ``most`` sorted histograms, which can be listed."""
    if voters > _LONGEST_LIST[0] or classes > _LONGEST_LIST[1]:
        return False
    # A sorted histogram stands for at most C! histograms: only small numbers are counted exactly.
    # 100 ballots over 100 classes have 190,569,292, above all limits.
    unsorted, orders = math.comb(voters + classes - 1, voters), math.factorial(classes)
    few = unsorted <= most * orders and min(voters, classes) < 100
    return few and partition_count(voters, classes) <= most


def rule_at(rule: str, inputs: SortedHistograms) -> Callable[[Fraction, Numbers], Values]:
    """Return the function that maps a rule's parameter and an arithmetic to its table."""
    if rule == "ladder":
        return Rungs(inputs).ladder
    table = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
    return partial(table, inputs)


def audit_rule(rule: Rule, voters: int, classes: int, epsilon: float) -> tuple[Fraction, Table]:
    """Return a rule's step and its table for K ballots over C classes, proved epsilon-private.

    The ladder has r = e^epsilon, up to 2^-50 of epsilon, if that passes. From 7 classes on it can
    fail; then r is the largest that passes. Permute-and-flip and the exponential mechanism are
    private at s = e^(epsilon / 2) for every K; their s is the largest that passes for this K. Such
    a step is found by bisection in floats, and its integer table is audited.

    Args:
        rule: ladder, permute-and-flip or exponential.
        voters: K, at least 1.
        classes: C, at least 2.
        epsilon: above 0, in nats.

    Raises:
        ParameterError: for more than `dpopt.verify.TABLED` sorted histograms
            or weights of more than 16,000 bits.
        NotPrivateError: if no step passed.
    """
    if not auditable(voters, classes, epsilon):
        raise ParameterError(
            f"rule {rule!r} is audited over all sorted histograms of {voters} ballots over "
            f"{classes} classes, which are more than {verify.TABLED:,}, or need too many bits; "
            "permute-and-flip at e^(epsilon / 2) needs no audit."
        )
    inputs, bits = sorted_histograms(voters, classes), table_bits(voters, classes, epsilon)
    for share in _shares(rule, inputs, epsilon):
        step = _power(epsilon, share)
        # Extra bits of the arithmetic, beyond those of the weights.
        values = rule_at(rule, inputs)(step, Numbers(bits + 64))
        # A step at which the ladder is no distribution is too large.
        if min(values) > 0:
            table = rounded(inputs, values.tolist(), bits)
            with suppress(NotPrivateError):
                certify_table(table, Guarantee(epsilon))
                return step, table
    raise NotPrivateError(
        f"rule {rule!r} for {voters} ballots over {classes} classes was not found private for "
        f"epsilon = {digits(epsilon)} at any step."
    )


def _shares(rule: str, inputs: SortedHistograms, epsilon: float) -> Iterator[float]:
    """Yield shares of epsilon for which e^(share epsilon) may be a private step, best first."""
    at, pairs = rule_at(rule, inputs), inputs.neighbours

    def fits(share: float) -> bool:
        values = at(_power(epsilon, share), FLOATS)
        if values.min() <= 0:
            return False
        # Axis 0: pairs of neighbouring variables; axis 1: both of them.
        logs = np.log(values)[pairs]
        return float(np.abs(logs[:, 0] - logs[:, 1]).max(initial=0.0)) <= epsilon

    # The ladder may need any share up to 1; the other rules are private at 1/2 by theorem.
    ladder = rule == "ladder"
    if ladder:
        yield 1.0 - 2.0**-50
    least, floor = largest(fits, 0.0 if ladder else 0.5, 1.0), 0.0 if ladder else 0.5 - 2.0**-51
    # Relative reductions of the logarithm of the step found in floats, tried until the integers
    # pass.
    for shortfall in (2.0**-34, 2.0**-24, 2.0**-14, 2.0**-8):
        yield max(least - shortfall * least, floor)


def largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number that fits, by bisection in floats; ``low`` fits in any case."""
    if fits(high):
        return high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _power(epsilon: float, share: float) -> Fraction:
    return exp_lower(Fraction(epsilon) * Fraction(share))
