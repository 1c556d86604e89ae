"""Lemmas B.1 to B.11 of the DaRRM paper, each in fractions over a grid that is chosen beforehand.

All voters are equal, as in the paper's appendix B, and Delta = delta = 0. Each votes 1 with
probability p, and with probability q on the neighbouring data. H(p) = E h(L), L ~ Binomial(K, p),
h = gamma above K / 2 and -gamma below; f(p, q) = H(p) - e^(m epsilon) H(q). A lemma's margin is the
least slack of its inequality; for an identity, minus the largest difference. Identities between
polynomials in p of degree K are proved by K + 1 points; the others are checked, not proved. What
each lemma says stands in docs/findings/majority.md.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from random import Random

import pytest

from tests.oracles import binomial, majority_of_sample, poisson_binomial

Gamma = tuple[Fraction, ...]
"""gamma's upper half, l = (K + 1) / 2..K."""
RATIOS = (Fraction(11, 10), Fraction(2), Fraction(5))


def noise_functions(voters: int, random: int) -> list[Gamma]:
    """Upper halves that rise from above 0 at the middle to at most 1, some of them random."""
    n, rng = (voters + 1) // 2, Random(1000 + voters)
    found = [(Fraction(1),) * n, (Fraction(1, 1000),) * (n - 1) + (Fraction(1),)]
    found.append(tuple(Fraction(i + 1, n) for i in range(n)))
    drawn = [[rng.randint(1, 100) for _ in range(n)] for _ in range(random)]
    return [*found, *(tuple(Fraction(x, 100) for x in sorted(each)) for each in drawn)]


@cache
def _pmf(k: int, p: Fraction) -> tuple[Fraction, ...]:
    return tuple(binomial(k, p))


@cache
def mean_output(gamma: Gamma, p: Fraction) -> Fraction:
    """Return H(p)."""
    h = (*(-g for g in reversed(gamma)), *gamma)
    return sum((a * b for a, b in zip(_pmf(len(h) - 1, p), h, strict=True)), Fraction(0))


def allowed(p: Fraction, ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest q that epsilon-privacy allows for p."""
    return max(p / ratio, 1 - ratio * (1 - p)), min(p * ratio, 1 - (1 - p) / ratio)


def _pairs(ratio: Fraction, points: int) -> Iterator[tuple[Fraction, Fraction, Fraction, bool]]:
    """Yield p, q, the smallest q, and whether q is strictly feasible, for 0 < p < 1."""
    for i in range(1, points):
        p = Fraction(i, points)
        low, high = allowed(p, ratio)
        for j in range(1, points + 1):
            yield p, low + (high - low) * Fraction(j, points), low, j < points


def _lowest_q(k: int, gammas: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    for ratio, gamma, m in product(RATIOS, gammas, (1, (k + 1) // 2, k)):
        # f(p, low) - f(p, q) = e^(m epsilon) (H(q) - H(low)).
        for _, q, low, _ in _pairs(ratio, points):
            yield ratio**m * (mean_output(gamma, q) - mean_output(gamma, low))


def _boundary(k: int, gammas: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    for ratio, gamma, m in product(RATIOS, gammas, (1, (k + 1) // 2, k)):
        for p, q, _, inside in _pairs(ratio, points):
            if inside:
                ends = [mean_output(gamma, end) for end in allowed(p, ratio)]
                yield ratio**m * (mean_output(gamma, q) - min(ends))


def _ordered(k: int, gammas: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    flat = (Fraction(0),) * ((k + 1) // 2)
    for ratio, gamma, m in product(RATIOS, (*gammas, flat), (1, k)):
        for p, q, _, _ in _pairs(ratio, points):
            high, low = (mean_output(gamma, x) for x in (max(p, q), min(p, q)))
            yield (high - ratio**m * low) - (low - ratio**m * high)


def _slack(gamma: Gamma, ratio: Fraction, m: int, points: int) -> Iterator[Fraction]:
    """Yield e^(m epsilon) - 1 - f at the smallest q for each p."""
    target = ratio**m
    for i in range(points + 1):
        p = Fraction(i, points)
        low, _ = allowed(p, ratio)
        yield target - 1 - (mean_output(gamma, p) - target * mean_output(gamma, low))


def _whole_majority(k: int, _: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    for ratio, m in product(RATIOS, range((k + 1) // 2, k + 1)):
        yield from _slack((Fraction(1),) * ((k + 1) // 2), ratio, m, points)


def _conditions(gamma: Gamma, ratio: Fraction, m: int, points: int) -> bool:
    """Whether conditions 107 and 108 hold on the grid."""
    k = 2 * len(gamma) - 1
    h = [(1 - g) / 2 for g in reversed(gamma)] + [(1 + g) / 2 for g in gamma]
    rise = [h[i + 1] - h[i] for i in range(k)]

    def mean(p: Fraction) -> Fraction:
        return sum((a * b for a, b in zip(_pmf(k - 1, p), rise, strict=True)), Fraction(0))

    top, bottom = 1 / (1 + ratio), ratio / (1 + ratio)
    for i in range(points + 1):
        q = top * Fraction(i, points)
        if ratio**m * mean(q) < ratio * mean(ratio * q):
            return False
        p = bottom + (1 - bottom) * Fraction(i, points)
        if ratio ** (m + 1) * mean(1 - ratio * (1 - p)) < mean(p):
            return False
    return True


def _sufficient(k: int, gammas: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    for ratio, gamma, m in product(RATIOS, gammas, range(1, k + 1)):
        if _conditions(gamma, ratio, m, points):
            yield from _slack(gamma, ratio, m, points)


def _recurrence(k: int, *_: object) -> Iterator[Fraction]:
    # Both sides are linear in g: the functions that are 1 at one count decide.
    for i in range(k + 2):
        p = Fraction(i, k + 1)
        for j in range(k):
            yield -abs(k * p * _pmf(k - 1, p)[j] - (j + 1) * _pmf(k, p)[j + 1])


def _hypergeometric(k: int, *_: object) -> Iterator[Fraction]:
    for i in range(k + 1):
        p = Fraction(i, k)
        pmf = _pmf(k, p)
        for m in range(k + 1):
            for j in range(m + 1):
                terms = (pmf[x] * comb(x, j) * comb(k - x, m - j) for x in range(k + 1))
                mean = sum(terms, Fraction(0))
                yield -abs(mean / comb(k, m) - _pmf(m, p)[j])


def _sampled(k: int, _: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    for ratio, m in product(RATIOS, range(1, (k - 1) // 2 + 1)):
        # Equation 148's gamma.
        upper = majority_of_sample(k, 2 * m - 1)[(k + 1) // 2 :]
        yield from _slack(tuple(2 * chance - 1 for chance in upper), ratio, m, points)


def _errors(k: int, gammas: Sequence[Gamma], points: int) -> Iterator[Fraction]:
    whole = (Fraction(1),) * ((k + 1) // 2)
    for one, other in product(gammas, repeat=2):
        lower = tuple(map(min, one, other))
        for i in range(points + 1):
            p = Fraction(i, points)
            larger, smaller = (
                abs(mean_output(whole, p) - mean_output(gamma, p)) / 2 for gamma in (lower, one)
            )
            yield larger - smaller


MARGINS: dict[str, Callable[[int, Sequence[Gamma], int], Iterator[Fraction]]] = {
    "B.1": _lowest_q,
    "B.2": _boundary,
    "B.3": _ordered,
    "B.5": _whole_majority,
    "B.7": _sufficient,
    "B.8": _recurrence,
    "B.9": _hypergeometric,
    "B.10": _sampled,
    "B.11": _errors,
}


def test_the_allowed_pairs_are_those_of_privacy() -> None:
    ratio = Fraction(5, 2)

    def private(p: Fraction, q: Fraction) -> bool:
        pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
        return all(a <= ratio * b for a, b in pairs)

    for i, j in product(range(11), repeat=2):
        p, q = Fraction(i, 10), Fraction(j, 10)
        low, high = allowed(p, ratio)
        assert private(p, q) == (low <= q <= high)


# K, steps of the grid of p and of q for each p, and random noise functions.
GRIDS = [
    *((3, 8, 2), (5, 8, 2), (7, 8, 2)),
    *(pytest.param(k, 24, 6, marks=pytest.mark.nightly) for k in (3, 5, 7, 9, 11)),
]


@pytest.mark.parametrize(("voters", "points", "random"), GRIDS)
@pytest.mark.parametrize("lemma", MARGINS)
def test_a_lemma_holds_on_the_grid(lemma: str, voters: int, points: int, random: int) -> None:
    margins = list(MARGINS[lemma](voters, noise_functions(voters, random), points))
    assert len(margins) > 2
    assert min(margins) > 0 if lemma in ("B.1", "B.2") else min(margins) >= 0


def test_the_majority_of_all_voters_in_the_place_of_that_of_2m_minus_1_is_found() -> None:
    margins = [x for m in (1, 2) for x in _slack((Fraction(1),) * 3, Fraction(3, 2), m, 4)]
    assert min(margins) < 0


def test_unequal_voters_break_lemma_b_11() -> None:
    """By all outcomes: the pointwise larger gamma has the larger error."""
    for last, error in ((Fraction(37, 100), 0), (Fraction(1), Fraction(63, 20_000))):
        gamma = (Fraction(99, 100), last)
        here = poisson_binomial((Fraction(9, 10), Fraction(9, 10), Fraction(0)))
        noisy = sum(
            (a * (1 + s * gamma[max(i, 3 - i) - 2]) / 2)
            for i, (a, s) in enumerate(zip(here, (-1, -1, 1, 1), strict=True))
        )
        assert error == abs(noisy - here[2] - here[3])


def test_equation_83_as_printed_is_another_number() -> None:
    half = Fraction(1, 2)
    above = half * (3 * half**3 + half**3)
    printed = above - half * (half**2 + 3 * half * half) + half
    right = above - half * (half**3 + 3 * half**3) + half
    assert (printed, right) == (Fraction(1, 4), half)
