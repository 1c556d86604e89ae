"""The sign of one privacy constraint, decided as a sum of exponentials: ties included.

With voters at b = (r + Delta) / (r + 1) and c = 1 - b, r = e^epsilon, a constraint times the powers
of r + 1 is a sum of a_i e^(x_i), with rational a_i and different rational x_i. By the theorem of
Lindemann and Weierstrass it is 0 only if every a_i is: then the constraint is an identity in
e^epsilon, a tie, and holds. Else enough digits tell its sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import comb

from dpopt.majority.voters import BITS, Multiset, Units, VoterGroup, Voters
from dpopt.privacy.exponential import exp_lower, exp_upper

Exponentials = dict[Fraction, Fraction]
"""Coefficient of e^x for each x."""

_FIRST_BITS = 512


def sign(setting: Voters, weights: Units, at: Multiset, delta: float | None = None) -> int:
    """Return the sign of e^(m epsilon) Pr[1 | p'] + delta - Pr[1 | p] at a multiset of corners.

    Args:
        setting: the voters and the target.
        weights: gamma's upper half over 2^62.
        at: the voters by corner.
        delta: that of the setting if None.
    """
    delta = setting.delta if delta is None else delta
    chances = [(1 << BITS) - w for w in reversed(weights)] + [(1 << BITS) + w for w in weights]
    total = _slack(setting, chances, at)
    for exponent, mass in _powers(setting, at).items():
        total[exponent] += Fraction(delta) * mass * (2 << BITS)
    return _sign_of(setting, total)


def raising(setting: Voters, places: Iterable[int], at: Multiset) -> list[int]:
    """Return at which of the places a larger weight makes the slack of `sign` smaller."""
    by_ones: defaultdict[int, Exponentials] = defaultdict(lambda: defaultdict(Fraction))
    for ones, exponent, mass in _difference(setting, at):
        by_ones[ones][exponent] += mass
    found = []
    for place in places:
        total: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for ones, side in ((setting.middle + place, 1), (setting.middle - 1 - place, -1)):
            for exponent, mass in by_ones.get(ones, {}).items():
                total[exponent] += side * mass
        if _sign_of(setting, total) < 0:
            found.append(place)
    return found


def _slack(setting: Voters, chances: list[int], at: Multiset) -> defaultdict[Fraction, Fraction]:
    """Return e^(m epsilon) E'[chances of L] - E[chances of L], times the powers of r + 1."""
    total: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
    for ones, exponent, mass in _difference(setting, at):
        total[exponent] += mass * chances[ones]
    return total


def _difference(setting: Voters, at: Multiset) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Yield (ones, exponent, coefficient) of e^(m epsilon) times one law less the other one."""
    target = Fraction(setting.allowance) * Fraction(setting.epsilon)
    for side, factor, shift in ((0, -1, Fraction(0)), (1, 1, target)):
        for (ones, exponent), mass in _law(setting, at, side).items():
            yield ones, exponent + shift, factor * mass


def _law(setting: Voters, at: Multiset, side: int) -> dict[tuple[int, Fraction], Fraction]:
    """Return the law of L times the powers of r + 1: coefficients by (ones, exponent)."""
    law = {(at.ones, Fraction(0)): Fraction(1)}
    for axis, count, choice in zip(setting.axes, at.counts, at.family, strict=True):
        letter = axis.names[choice].partition("@")[0][side]
        joined: defaultdict[tuple[int, Fraction], Fraction] = defaultdict(Fraction)
        for ones, exponent, mass in _votes(setting.voters[axis.group], letter, count):
            for (before, other), coefficient in law.items():
                joined[before + ones, other + exponent] += coefficient * mass
        law = {place: mass for place, mass in joined.items() if mass}
    return law


def _votes(group: VoterGroup, letter: str, count: int) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Yield (ones, exponent, coefficient) of the votes of ``count`` voters at one corner value."""
    delta, epsilon = Fraction(group.mechanism_delta), Fraction(group.epsilon)
    if letter not in "bc":
        p = {"0": Fraction(0), "1": Fraction(1), "D": delta, "m": 1 - delta}[letter]
        for ones in range(count + 1):
            yield ones, Fraction(0), comb(count, ones) * p**ones * (1 - p) ** (count - ones)
        return
    for large in range(count + 1):
        # (r + Delta)^large (1 - Delta)^rest: the large one is that of a 1 at b, and of a 0 at c.
        scale = comb(count, large) * (1 - delta) ** (count - large)
        ones = large if letter == "b" else count - large
        for power in range(large + 1) if delta else (large,):
            mass = comb(large, power) * delta ** (large - power)
            yield ones, power * epsilon, scale * mass


def _powers(setting: Voters, at: Multiset) -> Exponentials:
    """Return the product of (r + 1)^n over the groups' n voters at b or c."""
    product = {Fraction(0): Fraction(1)}
    for axis, count in zip(setting.axes, at.counts, strict=True):
        if not axis.names[0].startswith("b"):
            continue
        epsilon = Fraction(setting.voters[axis.group].epsilon)
        wider: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for power in range(count + 1):
            for exponent, mass in product.items():
                wider[exponent + power * epsilon] += comb(count, power) * mass
        product = wider
    return product


def _sign_of(setting: Voters, total: Exponentials) -> int:
    """Return the sign of a sum of exponentials; of a sum of powers where e^epsilon is rational."""
    total = {exponent: mass for exponent, mass in total.items() if mass}
    if setting.voter_ratio is not None:
        unit, r = Fraction(setting.epsilon), setting.voter_ratio
        value = sum((mass * r ** int(x / unit) for x, mass in total.items()), Fraction(0))
        return (value > 0) - (value < 0)
    if not total:
        return 0
    bits = _FIRST_BITS
    while True:
        if _at_least(total, bits) > 0:
            return 1
        if _at_least({x: -mass for x, mass in total.items()}, bits) > 0:
            return -1
        bits *= 2


def _at_least(total: Exponentials, bits: int) -> Fraction:
    """Return a lower bound of a sum of exponentials, each bounded to 2^-bits."""
    terms = (mass * (exp_lower if mass > 0 else exp_upper)(x, bits) for x, mass in total.items())
    return sum(terms, Fraction(0))
