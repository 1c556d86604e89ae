"""The sign of one privacy constraint, decided as a sum of exponentials: ties included.

With voters at b = (r + Delta) / (r + 1) and c = 1 - b, r = e^epsilon, a constraint times the powers
of r + 1 is a sum of a_i r^(x_i), with rational a_i and different rational x_i. By the theorem of
Lindemann and Weierstrass it is 0 only if every a_i is: then the constraint is an identity in
e^epsilon, a tie, and holds. Else enough digits tell its sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import comb

from dpopt.majority.voters import BITS, Multiset, Units, Voters
from dpopt.privacy.exponential import exp_lower, exp_upper

_FIRST_BITS = 512


def sign(setting: Voters, weights: Units, at: Multiset, delta: float | None = None) -> int:
    """Return the sign of e^(m epsilon) Pr[1 | p'] + delta - Pr[1 | p] at a multiset of corners.

    Args:
        setting: the voters and the target.
        weights: gamma's upper half over 2^62.
        at: the voters by corner.
        delta: that of the setting if None.
    """
    unit, growth = 1 << BITS, Fraction(setting.allowance)
    chances = [unit - w for w in reversed(weights)] + [unit + w for w in weights]
    # Coefficients by the power of r; of e^(m epsilon) it is m.
    total = defaultdict[Fraction, Fraction](Fraction)
    for side, factor, power in ((0, -1, Fraction(0)), (1, 1, growth)):
        for (ones, more), mass in _law(setting, at, side).items():
            total[power + more] += factor * mass * chances[ones]
    # delta times (r + 1)^n, for the n voters of the last axis, which is that of b and c.
    share = 2 * unit * Fraction(setting.delta if delta is None else delta)
    for more in range(at.counts[-1] + 1):
        total[Fraction(more)] += share * comb(at.counts[-1], more)
    epsilon = Fraction(setting.epsilon)
    terms = [(power * epsilon, mass) for power, mass in total.items() if mass]
    bits = _FIRST_BITS
    while terms:
        for side in (1, -1):
            if _at_least([(x, side * mass) for x, mass in terms], bits) > 0:
                return side
        bits *= 2
    return 0


def _law(setting: Voters, at: Multiset, side: int) -> dict[tuple[int, int], Fraction]:
    """Return the law of L times (r + 1)^n: coefficients by (ones, power of r)."""
    law = {(at.ones, 0): Fraction(1)}
    for axis, count, choice in zip(setting.axes, at.counts, at.family, strict=True):
        joined = defaultdict[tuple[int, int], Fraction](Fraction)
        for ones, power, mass in _votes(setting, axis.names[choice][side], count):
            for (before, other), coefficient in law.items():
                joined[before + ones, other + power] += coefficient * mass
        law = {place: mass for place, mass in joined.items() if mass}
    return law


def _votes(setting: Voters, letter: str, count: int) -> Iterator[tuple[int, int, Fraction]]:
    """Yield (ones, power, coefficient) of the votes of ``count`` voters at one corner value."""
    delta = Fraction(setting.mechanism_delta)
    if letter not in "bc":
        p = {"0": Fraction(0), "1": Fraction(1), "D": delta, "m": 1 - delta}[letter]
        for ones in range(count + 1):
            yield ones, 0, comb(count, ones) * p**ones * (1 - p) ** (count - ones)
        return
    for large in range(count + 1):
        # (r + Delta)^large (1 - Delta)^rest: the large one is that of a 1 at b, and of a 0 at c.
        scale = comb(count, large) * (1 - delta) ** (count - large)
        ones = large if letter == "b" else count - large
        for power in range(large + 1) if delta else (large,):
            yield ones, power, scale * comb(large, power) * delta ** (large - power)


def _at_least(terms: list[tuple[Fraction, Fraction]], bits: int) -> Fraction:
    """Return a lower bound of the sum of a e^x for (x, a), each e^x bounded to 2^-bits."""
    below = (mass * (exp_lower if mass > 0 else exp_upper)(x, bits) for x, mass in terms)
    return sum(below, Fraction(0))
