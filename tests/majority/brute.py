"""Definitions of the DaRRM paper written out, in exact rationals where asked."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np

from dpopt import NotPrivateError
from dpopt.majority import GammaProver, MajoritySetting

ONE = 1 << 62


def corners(r: Fraction, shift: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Vertices of a voter's polygon for e^epsilon = r (lemma 5.1)."""
    zero, one = Fraction(0), Fraction(1)
    b, c = (r + shift) / (r + 1), (1 - shift) / (r + 1)
    found = [(zero, zero), (one, one), (b, c), (c, b)]
    if shift:
        found += [(zero, shift), (shift, zero), (one, 1 - shift), (1 - shift, one)]
    return found


def law(p: tuple[Fraction, ...]) -> list[Fraction]:
    """Law of the number of ones, by summing over all outcomes."""
    found = [Fraction(0)] * (len(p) + 1)
    for outcome in product((0, 1), repeat=len(p)):
        chance = Fraction(1)
        for q, bit in zip(p, outcome, strict=True):
            chance *= q if bit else 1 - q
        found[sum(outcome)] += chance
    return found


Group = tuple[int, Fraction, Fraction]
"""Voters that are alike: their number, e^epsilon and Delta."""


def all_pairs(*groups: Group) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """Every choice of a corner for every voter, once for voters that swap: the vectors p and p'."""
    choices = [combinations_with_replacement(corners(r, shift), n) for n, r, shift in groups]
    for chosen in product(*choices):
        both = [pair for part in chosen for pair in part]
        yield tuple(pair[0] for pair in both), tuple(pair[1] for pair in both)


@lru_cache(maxsize=32)
def laws(*groups: Group) -> list[tuple[list[Fraction], list[Fraction]]]:
    """The laws of L on both sides, of all pairs."""
    known = cache(law)
    return [(known(tuple(sorted(p))), known(tuple(sorted(q)))) for p, q in all_pairs(*groups)]


def largest_excess(
    gamma: list[Fraction], groups: tuple[Group, ...], target: Fraction, delta: Fraction
) -> Fraction:
    """Largest Pr[o | p] - target Pr[o | p'] - delta over both outputs and every multiset."""
    k, found = len(gamma) - 1, []
    # Algorithm 1: the majority with probability gamma(l), else a fair coin.
    chance = [g * (2 * ones > k) + (1 - g) * Fraction(1, 2) for ones, g in enumerate(gamma)]
    for sides in laws(*groups):
        one, other = (sum(m * c for m, c in zip(side, chance, strict=True)) for side in sides)
        found += [one - target * other, (1 - one) - target * (1 - other)]
    return max(found) - delta


def worst_excess(
    gamma: list[Fraction], r: Fraction, shift: Fraction, target: Fraction, delta: Fraction
) -> Fraction:
    """The same for voters that are all alike."""
    return largest_excess(gamma, ((len(gamma) - 1, r, shift),), target, delta)


def exponential(exponent: Fraction) -> Fraction:
    """e^exponent to 100 digits after the point."""
    with mpmath.workdps(400):
        value = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
        return Fraction(int(mpmath.floor(value * mpmath.mpf(10) ** 100)), 10**100)


def target(setting: MajoritySetting) -> Fraction:
    """e^(m epsilon), of the smaller of the product and its float; of a ratio, its power."""
    if setting.voter_ratio is not None:
        return setting.voter_ratio ** int(setting.allowance)
    spent = Fraction(setting.allowance) * Fraction(setting.epsilon)
    return exponential(min(spent, Fraction(setting.guarantee.epsilon)))


def groups_of(setting: MajoritySetting) -> tuple[Group, ...]:
    """The voters of a setting, as the functions above take them."""
    found = []
    for group in setting.voters:
        r = setting.voter_ratio or exponential(Fraction(group.epsilon))
        shift = Fraction(group.mechanism_delta)
        found.append((group.size, r, shift))
    return tuple(found)


def judged(setting: MajoritySetting, weights: tuple[int, ...]) -> Fraction:
    """The worst excess over the paper's full set, both outputs, in fractions."""
    gamma = [Fraction(w, ONE) for w in (*reversed(weights), *weights)]
    return largest_excess(gamma, groups_of(setting), target(setting), Fraction(setting.delta))


def verdict(setting: MajoritySetting, weights: tuple[int, ...]) -> bool:
    """Whether the prover certifies a gamma."""
    try:
        GammaProver(setting).certify(weights)
    except NotPrivateError:
        return False
    return True


def fold(laws: np.ndarray) -> np.ndarray:
    """a(l) - a(K - l) above the middle."""
    middle = laws.shape[-1] // 2
    return laws[..., middle:] - laws[..., :middle][..., ::-1]


def reduced_multisets(setting: MajoritySetting) -> list[tuple[tuple[str, int], ...]]:
    """List the reduced set of the theorem, counts by corner, by trying all counts."""
    k, axes = setting.mechanisms, setting.axes
    found: dict[tuple[tuple[str, int], ...], None] = {}
    for counts in np.ndindex(*(setting.voters[axis.group].size + 1 for axis in axes), k + 1):
        *inner, ones = counts
        rest = k - sum(counts)
        used = [0] * len(setting.voters)
        for axis, n in zip(axes, inner, strict=True):
            used[axis.group] += n
        if rest < 0 or any(u > g.size for u, g in zip(used, setting.voters, strict=True)):
            continue
        for family in product(*(axis.names for axis in axes)):
            pairs = (*zip(family, inner, strict=True), ("11", ones), ("00", rest))
            found[tuple((name, int(n)) for name, n in pairs if n)] = None
    return list(found)
