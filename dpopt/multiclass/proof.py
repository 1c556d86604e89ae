"""The proof that a plurality of integers is private, and the move that makes one so.

All configurations of the reduction theorem are walked once in integers, rounded outward; neither
the program nor a solution is used. b is rounded up to a multiple of 2^-128, with c = 1 - b: larger
b makes a larger polytope of private pairs, which holds the true one. e^(m epsilon) is rounded down.

E A(N) is a sum of non-negative numbers. It is walked in integers of 128 bits below the weights,
rounded up at every step, so that an edge adds less than one unit: less the number of edges it is
E A(N) rounded down. What is 0 stays 0, on either side.

Sizes with too many configurations, and voters with Delta > 0, are proved by the bound of the bound
module, from what the same integers spend where one vote is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, float_up, roughly
from dpopt._progress import track
from dpopt._types import Vector
from dpopt.ballots.audit import worst
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import BITS, Units, checked, quantised, scale
from dpopt.multiclass.bound import budget_below, one_voter
from dpopt.multiclass.corners import (
    MOST_CONFIGURATIONS,
    Configurations,
    Level,
    configuration_count,
    configurations,
    priceable,
    variables,
)
from dpopt.privacy.dominating import DominatingPair, Point, upper_hull
from dpopt.privacy.exact import Certificate
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.least import Least, least_of_ratio

CORNER, FIXED = 128, 128
_MOST_POINTS, _MOST_BITS = 2_000_000, 1 << 16
_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True)
class Target:
    """K private voters, and what their plurality may spend.

    Attributes:
        mechanisms: K, at most 10,000.
        classes: C, in 2..100.
        epsilon: of each voter, above 0.
        allowance: m in (0, K]; the plurality may spend m epsilon.
        delta: of the plurality, in [0, 1).
        mechanism_delta: of each voter, in [0, 1).

    Raises:
        ParameterError: for a parameter out of range.
    """

    mechanisms: int
    classes: int
    epsilon: float
    allowance: float
    delta: float = 0.0
    mechanism_delta: float = 0.0

    def __post_init__(self) -> None:
        voters = _checks.integer("mechanisms", self.mechanisms, 1, 10_000)
        classes = _checks.integer("classes", self.classes, 2, 100)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        allowance = _checks.real("allowance", self.allowance, 0.0, voters, open_lower=True)
        if max(allowance, 1.0) * epsilon > _LARGEST_EXPONENT:
            raise ParameterError(
                f"epsilon is {digits(epsilon)} and allowance {digits(allowance)}; epsilon and "
                f"their product must be at most {_LARGEST_EXPONENT:g}."
            )
        for name, value in (
            ("mechanisms", voters),
            ("classes", classes),
            ("epsilon", epsilon),
            ("allowance", allowance),
            *(
                (name, _checks.real(name, getattr(self, name), 0.0, 1.0, open_upper=True))
                for name in ("delta", "mechanism_delta")
            ),
        ):
            object.__setattr__(self, name, value)

    @property
    def exponent(self) -> Fraction:
        """The exponent m epsilon, exactly."""
        return Fraction(self.allowance) * Fraction(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """(m epsilon, delta), the product rounded up."""
        return Guarantee(float_up(self.exponent), self.delta)

    @property
    def ratio(self) -> Fraction:
        """Rational lower bound of e^(m epsilon)."""
        return exp_lower(self.exponent)

    @property
    def exact(self) -> bool:
        """Whether all configurations decide; otherwise a bound does."""
        return self.mechanism_delta == 0.0 and priceable(self.mechanisms, self.classes)

    @property
    def partitions(self) -> Partitions:
        """The inputs of the plurality."""
        return Partitions(self.mechanisms, self.classes)

    @property
    def sets(self) -> range:
        """Sizes of the sets of outputs that decide: single ones where delta = 0."""
        return range(1, self.classes if self.delta > 0.0 else 2)


@dataclass(frozen=True)
class Judged:
    """All configurations at one kernel.

    Attributes:
        count: how many.
        excess: upper bounds of the largest E A - e^(m epsilon) E' A - delta, by size of S.
        surely: a lower bound of f - delta where it is largest.
        inputs: the voters there, on both sides, in words.
        output: S there, in words.
    """

    count: int
    excess: tuple[Fraction, ...]
    surely: Fraction
    inputs: tuple[str, str]
    output: str


def _tables(
    target: Target, units: Units, sizes: range
) -> Iterator[tuple[Configurations, Level, Any]]:
    """Yield E A over (configuration, loops), rounded up, over scale * 2^FIXED."""
    partitions, unit = target.partitions, 1 << CORNER
    voter = exp_upper(Fraction(target.epsilon), 2 * CORNER)
    b = min(unit, -(-unit * voter.numerator // (voter.numerator + voter.denominator)))
    c = unit - b

    def step(one: Any, two: Any) -> Any:  # noqa: ANN401
        # >> rounds down, and so up once the sign is turned.
        return -((-b * one - c * two) >> CORNER)

    weights = np.array([w << FIXED for row in units for w in row], dtype=object)
    for size in sizes:
        found = configurations(target.mechanisms, target.classes, size)
        first = weights[variables(partitions, size)].sum(axis=1)
        for level, table in found.walk(first, step):
            yield found, level, table


def judged(target: Target, units: Units) -> Judged:
    """Walk over all configurations in integers.

    Raises:
        ParameterError: for integers that are no units, or too many configurations.
    """
    bits = bits_of(target.partitions, units)
    ratio, whole = target.ratio, scale(target.classes, bits) << FIXED
    numerator, denominator = ratio.numerator, ratio.denominator
    most: dict[int, int] = {}
    count, where, surely = 0, ("", ""), 0
    output = ""
    total = (target.mechanisms + 1) * len(target.sets)
    walk = track(_tables(target, units, target.sets), "proof over corner configurations", total)
    for found, level, table in walk:
        count += table.size
        other = found.turned(level, table)
        values = table * denominator - numerator * np.maximum(other - level.edges, 0)
        at = int(values.argmax())
        top, size = int(values.flat[at]), found.outputs
        if size not in most or top > most[size]:
            if not most or top > max(most.values()):
                place, loops = divmod(at, values.shape[1])
                where = found.describe(level, place, loops)
                output = "output 0" if size == 1 else f"outputs 0..{size - 1}"
                low = max(0, int(table.flat[at]) - level.edges)
                surely = low * denominator - numerator * int(other.flat[at])
            most[size] = top
    scaled, delta = whole * denominator, Fraction(target.delta)
    excess = tuple(Fraction(top, scaled) - delta for top in most.values())
    return Judged(count, excess, Fraction(surely, scaled) - delta, where, output)


def bits_of(partitions: Partitions, units: object) -> int:
    """Return the bits of units whose form is right; see `dpopt.ballots.table`.

    Raises:
        ParameterError: for integers that are no units.
    """
    bits, first = BITS, units[0] if isinstance(units, tuple | list) and units else ()
    if isinstance(first, tuple | list) and all(type(w) is int for w in first):
        many = [many for _, many in partitions.levels[0]]
        whole = sum(w * m for w, m in zip(first, many, strict=False))
        bits = max(
            BITS, min(whole // scale(partitions.classes, 0), 1 << _MOST_BITS).bit_length() - 1
        )
    checked(partitions, units, bits)
    return bits


def certify(target: Target, units: Units) -> Certificate:
    """Prove (m epsilon, delta)-DP of a plurality of integer weights.

    Args:
        target: the voters, and what may be spent.
        units: see `dpopt.ballots.table`.

    Raises:
        NotPrivateError: naming the voters on both sides, if a constraint fails.
        ParameterError: for integers that are no units, or too many configurations.
    """
    _checks.instance("target", target, Target)
    if not target.exact:
        return _bounded(target, units)
    found = judged(target, units)
    slack = -max(found.excess)
    guarantee = target.guarantee
    said = f"({guarantee.epsilon:g}, {guarantee.delta:g})-DP"
    where = f"{found.inputs[0]}; neighbour: {found.inputs[1]}"
    if slack < 0:
        how = "breaks" if found.surely > 0 else "is not proved, up to rounding, to keep"
        raise NotPrivateError(
            f"the plurality {how} {said} at {found.output}, by {roughly(-slack)}: {where}.",
            inputs=found.inputs,
            output=found.output.removeprefix("output "),
            excess=float_up(-slack),
        )
    return Certificate(
        claim="this plurality is private for all private voters (reduced corner configurations)",
        guarantee=guarantee,
        ratio=target.ratio,
        constraints=found.count,
        slack=slack,
        tightest=f"{where}; {found.output}",
        arithmetic=f"integers of {FIXED} bits below the weights, rounded outward",
        bits=0,
    )


def _bounded(target: Target, units: Units) -> Certificate:
    """Prove (m epsilon, 0)-DP by the bound on rules that are private in each vote."""
    partitions = target.partitions
    bits_of(partitions, units)
    spent = worst(partitions, units)
    voters, ratio = target.mechanisms, spent.ratio
    one = one_voter(exp_upper(target.epsilon), ratio, Fraction(target.mechanism_delta))
    budget = budget_below(voters, target.epsilon, target.allowance)
    where = f"counts {_counts(spent.first)} and {_counts(spent.second)}, output {spent.place}"
    guarantee = target.guarantee
    if one > budget:
        raise NotPrivateError(
            f"the plurality is not proved ({guarantee.epsilon:g}, {guarantee.delta:g})-DP: one "
            f"vote changes it by a factor of up to {roughly(ratio)}, between {where}, and the "
            f"bound for {voters} private voters is above the budget by {roughly(one - budget)} "
            "for each.",
            inputs=(_counts(spent.first), _counts(spent.second)),
            output=str(spent.place),
            excess=float_up(one - budget),
        )
    return Certificate(
        claim="this plurality is private for all private voters: it is private in each vote",
        guarantee=guarantee,
        ratio=target.ratio,
        constraints=2 * len(partitions.neighbours[0]),
        slack=budget - one,
        tightest=where,
        arithmetic="exact integers, and the bound in rationals",
        bits=0,
    )


def _counts(histogram: tuple[int, ...]) -> str:
    return "-".join(map(str, histogram))


def repaired(target: Target, point: Vector | list[Fraction]) -> Units:
    """Return private units next to a point k[lambda, c]: mixed with the uniform law if need be.

    The uniform law has f = |S| / C (1 - e^(m epsilon)) for every configuration, so that the share
    that it needs follows from the largest f, exactly. The units are rounded once more after that:
    each weight moves by less than C units, and f by (1 + e^(m epsilon)) |S| C of them.

    Raises:
        NotPrivateError: if e^(m epsilon) is so close to 1 that rounding alone breaks it.
        ParameterError: if there are too many configurations.
    """
    _checks.instance("target", target, Target)
    partitions = target.partitions
    units = quantised(partitions, point)
    found = judged(target, units)
    whole, ratio, classes = scale(classes=target.classes), target.ratio, target.classes
    share = Fraction(0)
    for size, excess in zip(target.sets, found.excess, strict=True):
        if excess > 0:
            room = Fraction(size, classes) * (ratio - 1) + Fraction(target.delta)
            moved = (1 + ratio) * size * (classes + 1) / whole
            share = max(share, (excess + moved) / (excess + room))
    if share == 0:
        return units
    if share >= 1:
        raise NotPrivateError(
            f"allowance * epsilon is {target.guarantee.epsilon:g}; integers of {BITS} bits cannot "
            "tell so small a budget."
        )
    uniform = share / classes
    mixed = [(1 - share) * Fraction(w, whole) + uniform for row in units for w in row]
    return quantised(partitions, mixed)


def spent_ratio(target: Target, units: Units) -> tuple[Fraction | None, tuple[str, str]]:
    """Return a bound on Pr[output] / Pr'[output] over all voters and outputs, and the voters.

    At least the largest ratio, and above it by rounding alone; None if an output is possible on one
    side only. Its logarithm is what one query spends, with delta = 0.

    Raises:
        ParameterError: for integers that are no units, or too many configurations.
    """
    _checks.instance("target", target, Target)
    _, upper, where = _enclosed(target, units)
    return upper, where


def _enclosed(target: Target, units: Units) -> tuple[Fraction, Fraction | None, tuple[str, str]]:
    """Return a lower bound of the largest ratio, an upper one, and where."""
    bits_of(target.partitions, units)
    lower = upper = Fraction(0)
    where = ("", "")
    # A voter's b was rounded up by less than two units, and c down: so much of each factor c.
    rounded = Fraction(4, 1 << CORNER) * (1 + exp_upper(target.epsilon))
    for found, level, table in _tables(target, units, range(1, 2)):
        turned = found.turned(level, table)
        other = np.maximum(turned - level.edges, 0)
        possible = table > 0
        missing = np.flatnonzero(possible & (other == 0))
        if missing.size:
            where = found.describe(level, *divmod(int(missing[0]), table.shape[1]))
            return lower, None, where
        # Of the ratios as floats, only those next to the largest can be the largest.
        floats = np.where(possible, table / np.where(possible, other, 1), 0).astype(float)
        for at in np.flatnonzero(floats >= floats.max() * (1 - 1e-12)).tolist():
            ratio = Fraction(int(table.flat[at]), int(other.flat[at]))
            if ratio > upper:
                upper, where = ratio, found.describe(level, *divmod(at, table.shape[1]))
                least = max(0, int(table.flat[at]) - level.edges)
                sure = 1 - level.edges * rounded
                lower = max(lower, Fraction(least, int(turned.flat[at])) * sure)
    return lower, upper, where


def least_epsilon(target: Target, units: Units) -> Least:
    """Return the least epsilon of one query for delta = 0, enclosed; see `spent_ratio`."""
    if target.mechanism_delta > 0.0:
        raise ParameterError(
            f"mechanism_delta is {target.mechanism_delta:g}; a least epsilon is found for voters "
            "without one."
        )
    lower, upper, where = _enclosed(target, units)
    upper = None if upper is None else max(upper, Fraction(1))
    return least_of_ratio(upper, where, (0,), 0.0, lower=max(lower, Fraction(1)))


def dominating(target: Target, units: Units) -> DominatingPair:
    """Return the tight dominating pair of units over all neighbours, for one query.

    Over every configuration and every set of outputs, as the proof of theorem 2 holds at every
    ratio and set. Irrational probabilities are rounded outward, which only raises the hull.

    Raises:
        ParameterError: if there are too many configurations.
    """
    if target.mechanism_delta > 0.0:
        raise ParameterError(
            f"mechanism_delta is {target.mechanism_delta:g}; the privacy loss is found for voters "
            "without one."
        )
    sizes = range(1, target.classes)
    count = configuration_count(target.mechanisms, target.classes)
    if count <= MOST_CONFIGURATIONS:
        count = sum(configurations(target.mechanisms, target.classes, k).count for k in sizes)
    if count > _MOST_POINTS:
        raise ParameterError(
            f"mechanisms is {target.mechanisms} and classes {target.classes}; the privacy loss is "
            f"found from at most {_MOST_POINTS:.0e} events, and these are {count:.1e}."
        )
    whole = scale(target.classes, bits_of(target.partitions, units)) << FIXED

    def points() -> Iterator[Point]:
        for found, level, table in _tables(target, units, sizes):
            other = np.maximum(found.turned(level, table) - level.edges, 0)
            for a, b in zip(table.ravel().tolist(), other.ravel().tolist(), strict=True):
                yield b, min(a, whole)

    return DominatingPair.of_points(upper_hull(points()), whole)
