"""Distributions and their distances by definition, in exact rationals; nothing is dpopt's."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations
from typing import Any

import mpmath
import numpy as np
from scipy.stats import chi2

Counts = tuple[int, ...]
Pmf = dict[Counts, Fraction]


def exponential(exponent: float | Fraction) -> Fraction:
    """Return e^exponent rounded down to 100 digits after the point."""
    exact = Fraction(exponent)
    with mpmath.workdps(500):
        value = mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)
        return Fraction(int(mpmath.floor(value * mpmath.mpf(10) ** 100)), 10**100)


def poisson_binomial(chances: Iterable[Any]) -> list[Any]:
    """Return the distribution of a sum of independent bits, one convolution for each."""
    pmf: list[Any] = [1]
    for p in chances:
        pmf = [(1 - p) * stay + p * one for stay, one in zip([*pmf, 0], [0, *pmf], strict=True)]
    return pmf


def binomial(trials: int, p: Any) -> list[Any]:
    """Return C(n, k) p^k (1 - p)^(n - k) for all k."""
    return [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def majority_of_sample(voters: int, size: int) -> list[Fraction]:
    """Return Pr[majority of ``size`` of the voters is 1 | l] on 0..K; a tie counts half."""
    found = []
    for ones in range(voters + 1):
        ways = Fraction(0)
        for j in range(size + 1):
            share = Fraction(1, 2) if 2 * j == size else Fraction(int(2 * j > size))
            ways += share * math.comb(ones, j) * math.comb(voters - ones, size - j)
        found.append(ways / math.comb(voters, size))
    return found


def compositions(total: int, parts: int) -> Iterator[Counts]:
    """Yield all counts of so many parts, smallest first counts first."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def votes(counts: Counts, pairs: Any, share: Fraction) -> Pmf:
    """The distribution of counts with more voters, each for one of a pair, the first by a share."""
    pmf = {counts: Fraction(1)}
    for y, z in pairs:
        wider: Pmf = defaultdict(Fraction)
        for before, mass in pmf.items():
            for vote, chance in ((y, share), (z, 1 - share)):
                wider[tuple(n + (x == vote) for x, n in enumerate(before))] += mass * chance
        pmf = wider
    return pmf


def neighbours(counts: Counts) -> Iterator[Counts]:
    """Yield what one replaced record makes of counts, the categories in the same order."""
    for loss, gain in permutations(range(len(counts)), 2):
        if counts[loss] > 0:
            moved = list(counts)
            moved[loss] -= 1
            moved[gain] += 1
            yield tuple(moved)


def counts_of_votes(pmfs: Sequence[Sequence[Any]]) -> dict[Counts, Any]:
    """Return the distribution of the counts where voter i votes by pmfs[i], one after the other."""
    counts: dict[Counts, Any] = {(0,) * len(pmfs[0]): 1}
    for pmf in pmfs:
        after: dict[Counts, Any] = {}
        for before, mass in counts.items():
            for y, p in enumerate(pmf):
                if p:
                    voted = (*before[:y], before[y] + 1, *before[y + 1 :])
                    after[voted] = after.get(voted, 0) + mass * p
        counts = after
    return counts


@cache
def hypergeometric(histogram: Counts, drawn: int) -> Pmf:
    """Return prod C(H_c, h_c) / C(n, T)."""
    total = math.comb(sum(histogram), drawn)
    pmf = {
        h: math.prod(math.comb(a, b) for a, b in zip(histogram, h, strict=True))
        for h in compositions(drawn, len(histogram))
    }
    return {h: Fraction(count, total) for h, count in pmf.items() if count}


@cache
def multinomial(histogram: Counts, drawn: int) -> Pmf:
    """Return T! prod (H_c / n)^h_c / h_c!."""
    total = sum(histogram) ** drawn
    pmf = {}
    for h in compositions(drawn, len(histogram)):
        ways = math.factorial(drawn)
        for count in h:
            ways //= math.factorial(count)
        pmf[h] = ways * math.prod(a**b for a, b in zip(histogram, h, strict=True))
    return {h: Fraction(count, total) for h, count in pmf.items() if count}


def stick(
    p: Mapping[Any, Any] | Sequence[Any], q: Mapping[Any, Any] | Sequence[Any], ratio: Fraction
) -> Fraction:
    """Return sum (p - ratio q)_+, of distributions by output or of lists."""
    one, other = (pmf if isinstance(pmf, Mapping) else dict(enumerate(pmf)) for pmf in (p, q))
    return sum((max(one[y] - ratio * other.get(y, 0), Fraction(0)) for y in one), Fraction(0))


def follow(draws: Sequence[Any], pmf: Mapping[Any, float] | Sequence[float]) -> bool:
    """Whether draws may be of a pmf, by output or of a list: one run in 1e9 says no of those."""
    shares = pmf if isinstance(pmf, Mapping) else dict(enumerate(pmf))
    counts, means = Counter(draws), {y: len(draws) * float(p) for y, p in shares.items() if p > 0}
    cells = [(counts[y], mean) for y, mean in means.items() if mean >= 5]
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    likely = chi2.sf(statistic, max(1, len(cells) - 1)) > 1e-9
    return counts.keys() <= means.keys() and bool(likely)


def delta(pmf: Callable[[Counts], Pmf], histogram: Counts, ratio: Fraction) -> Fraction:
    """Return delta of one database, from its distribution and those of its neighbours."""
    own, worst = pmf(histogram), Fraction(0)
    for other in map(pmf, neighbours(histogram)):
        worst = max(worst, stick(own, other, ratio), stick(other, own, ratio))
    return worst


def corners(voters: int, epsilon: float, gamma: Sequence[float]) -> list[tuple[Any, Any]]:
    """Pr[label] under both neighbours for all voters at corners, none left out."""
    b, pairs = 1 / (1 + math.exp(-epsilon)), []
    kinds = (b, 1 - b), (1 - b, b), (0.0, 0.0), (1.0, 1.0)
    signs = np.where(np.arange(voters + 1) > voters / 2, 1, -1)
    for chosen in combinations_with_replacement(kinds, voters):
        pmfs = (np.array(poisson_binomial(side)) for side in zip(*chosen, strict=True))
        ones = [min(1.0, float(pmf @ (1 + signs * np.asarray(gamma)) / 2)) for pmf in pmfs]
        pairs.append(tuple([1 - one, one] for one in ones))
    return pairs


def by_histories(rounds: Sequence[Sequence[tuple[Any, Any]]], growth: Any) -> Any:
    """The largest max(a - e b, 0) over the plans of an adversary who sees every output."""

    @cache
    def worth(at: int, a: Any, b: Any) -> Any:
        if at == len(rounds):
            return max(a - growth * b, Fraction(0))
        plans = (
            sum((worth(at + 1, a * p, b * q) for p, q in zip(one, other, strict=True)), Fraction(0))
            for one, other in rounds[at]
        )
        return max(plans)

    return worth(0, Fraction(1), Fraction(1))


def in_floats(pairs: Sequence[tuple[Any, Any]], releases: int, epsilon: float) -> float:
    """The same of one round again and again, in floats."""
    return float(by_histories([pairs] * releases, math.exp(epsilon)))
