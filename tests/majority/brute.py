"""Definitions of the DaRRM paper written out, in exact rationals where asked."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product

import numpy as np

from dpopt import Majority, NotPrivateError, verify
from dpopt.majority.program import corner_rows
from dpopt.table import Table
from tests.oracles import exponential, poisson_binomial

ONE = 1 << 62


def corners(r: Fraction, shift: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Vertices of a voter's polygon for e^epsilon = r (lemma 5.1)."""
    zero, one = Fraction(0), Fraction(1)
    b, c = (r + shift) / (r + 1), (1 - shift) / (r + 1)
    found = [(zero, zero), (one, one), (b, c), (c, b)]
    if shift:
        found += [(zero, shift), (shift, zero), (one, 1 - shift), (1 - shift, one)]
    return found


@lru_cache(maxsize=32)
def pmfs(voters: int, r: Fraction, shift: Fraction) -> list[tuple[list[Fraction], ...]]:
    """The distributions of L on both sides, for every choice of a corner for every voter."""
    pmf = cache(poisson_binomial)
    return [
        tuple(pmf(tuple(sorted(side))) for side in zip(*chosen, strict=True))
        for chosen in combinations_with_replacement(corners(r, shift), voters)
    ]


def worst_excess(
    gamma: list[Fraction], r: Fraction, shift: Fraction, target: Fraction, delta: Fraction
) -> Fraction:
    """Largest Pr[o | p] - target Pr[o | p'] - delta over both outputs and every multiset."""
    k, found = len(gamma) - 1, []
    # Algorithm 1: the majority with probability gamma(l), else a fair coin.
    chance = [g * (2 * ones > k) + (1 - g) * Fraction(1, 2) for ones, g in enumerate(gamma)]
    for sides in pmfs(k, r, shift):
        one, other = (sum(m * c for m, c in zip(side, chance, strict=True)) for side in sides)
        found += [one - target * other, (1 - one) - target * (1 - other)]
    return max(found) - delta


def target(setting: Majority) -> Fraction:
    """e^(m epsilon), of the smaller of the product and its float."""
    spent = Fraction(setting.allowance) * Fraction(setting.epsilon)
    return exponential(min(spent, Fraction(setting.guarantee.epsilon)))


def voters_of(setting: Majority) -> tuple[int, Fraction, Fraction]:
    """The voters of a setting, as `pmfs` takes them."""
    r = exponential(Fraction(setting.epsilon))
    return setting.voters, r, Fraction(setting.voter_delta)


def judged(setting: Majority, weights: tuple[int, ...]) -> Fraction:
    """The worst excess over the paper's full set, both outputs, in fractions."""
    gamma = [Fraction(w, ONE) for w in (*reversed(weights), *weights)]
    _, r, shift = voters_of(setting)
    return worst_excess(gamma, r, shift, target(setting), Fraction(setting.delta))


def at_the_limit(setting: Majority, weights: tuple[int, ...]) -> tuple[int, ...]:
    """The multiple of a gamma that is at its limit by fractions, down to units; none is above 1."""
    budget = target(setting) - 1 + 2 * Fraction(setting.delta)
    largest = 2 * judged(setting, weights) + budget
    factor = budget / largest if largest > 0 else Fraction(1)
    return tuple(min(ONE, int(weight * factor)) for weight in weights)


def table(setting: Majority, weights: tuple[int, ...]) -> Table:
    """A gamma over 2^62 as a table."""
    pairs = tuple(mass for weight in weights for mass in (ONE + weight, ONE - weight))
    return Table(setting.domain, pairs, 2 * ONE)


def weights(table: Table) -> tuple[int, ...]:
    """A table as a gamma over 2^62."""
    assert table.total == 2 * ONE
    return tuple(mass - ONE for mass in table.weights[::2])


def chances(weights: Sequence[int]) -> list[int]:
    """The weights of output 1 by the number of ones, over 2^63."""
    return [ONE - w for w in reversed(weights)] + [ONE + w for w in weights]


def voters(setting: Majority) -> verify.Voters:
    """The voters of `dpopt.verify`."""
    return verify.Voters(setting.to_dict(), None)


def verdict(setting: Majority, weights: tuple[int, ...]) -> bool:
    """Whether a gamma is proved private."""
    try:
        setting.judge(table(setting, weights))
    except NotPrivateError:
        return False
    return True


def verdict_of_verify(setting: Majority, weights: tuple[int, ...]) -> bool:
    """Whether `dpopt.verify` accepts a gamma, by going through every multiset itself."""
    plain = setting.to_dict() | {"coefficients": [0.0] * setting.middle}
    try:
        verify.decide(verify.majority(plain, table(setting, weights).plain(), None, {}))
    except verify.Refused:
        return False
    return True


def fold(pmfs: np.ndarray) -> np.ndarray:
    """a(l) - a(K - l) above the middle."""
    middle = pmfs.shape[-1] // 2
    return pmfs[..., middle:] - pmfs[..., :middle][..., ::-1]


def reduced_multisets(setting: Majority) -> list[tuple[tuple[str, int], ...]]:
    """List the reduced set of the theorem, counts by corner, by trying all counts."""
    k, axes = setting.voters, voters(setting).axes
    found: dict[tuple[tuple[str, int], ...], None] = {}
    for *inner, ones in np.ndindex(*(k + 1 for _ in axes), k + 1):
        rest = k - sum(inner) - ones
        if rest < 0:
            continue
        for family in product(*axes):
            pairs = (*zip(family, inner, strict=True), ("11", ones), ("00", rest))
            found[tuple((name, int(n)) for name, n in pairs if n)] = None
    return list(found)


def listed_rows(setting: Majority) -> np.ndarray:
    """The rows of the reduced set, written out; right hand sides are 1."""
    return corner_rows(setting, reduced_multisets(setting)).matrix.toarray()
