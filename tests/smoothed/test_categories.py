"""More than two categories through the binary divergences, against exact rationals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from mpmath import mp, mpf

from dpopt import ParameterError
from dpopt.prob.histograms import histograms, index_of
from dpopt.smoothed import privacy_profile, profile, smoothed_delta
from dpopt.smoothed.mechanisms import SamplingHistogram
from tests import oracles
from tests.smoothed import pmfs

RELATIVE = 1e-11


def log_profile(
    n: int, drawn: int, m: int, epsilon: float, row: Sequence[int] | None = None, again=False
) -> pmfs.Vector:
    """Return ln delta of all databases, or of one."""
    mechanism = SamplingHistogram(n, drawn, m, again)
    return privacy_profile(mechanism, epsilon, row).log_delta


def exact_delta(
    histogram: oracles.Counts, drawn: int, ratio: Fraction, again: bool = False
) -> Fraction:
    """Return delta; without replacement from integer weights prod C(H_c, l_c) of what is lost."""
    if again:
        return oracles.delta(partial(oracles.multinomial, drawn=drawn), histogram, ratio)
    lost = sum(histogram) - drawn
    (top, bottom), worst = ratio.as_integer_ratio(), 0

    def published(counts: oracles.Counts) -> dict[oracles.Counts, int]:
        return {
            tuple(map(int.__sub__, counts, gone)): math.prod(map(math.comb, counts, gone))
            for gone in oracles.compositions(lost, len(counts))
            if all(map(int.__le__, gone, counts))
        }

    own = published(histogram)
    for other in oracles.neighbours(histogram):
        its = published(other)
        for p, q in ((own, its), (its, own)):
            worst = max(worst, sum(max(0, bottom * w - top * q.get(y, 0)) for y, w in p.items()))
    return Fraction(worst, bottom * math.comb(sum(histogram), lost))


def agrees(found: float, exact: Fraction) -> bool:
    """Whether ln delta is right to a relative error of 1e-11 of delta."""
    wanted = pmfs.log_of(exact)
    return found == wanted if wanted == -math.inf else abs(found - wanted) <= RELATIVE


def test_the_integer_weights_are_the_definition() -> None:
    ratio = oracles.exponential(0.4)
    for histogram in [(3, 2, 4), (0, 5, 2), (1, 1, 1, 4)]:
        for drawn in range(1, sum(histogram) + 1):
            by_pmfs = oracles.delta(partial(oracles.hypergeometric, drawn=drawn), histogram, ratio)
            assert exact_delta(histogram, drawn, ratio) == by_pmfs


WITHOUT = [
    (1, 1, 3, 0.5), (2, 1, 3, 0.0), (9, 9, 3, 1.0), (12, 9, 3, 0.0), (18, 16, 3, 0.7),
    (18, 3, 3, 0.2), (24, 20, 3, 2.0), (8, 6, 4, 0.4), (6, 4, 5, 1.0), (10, 7, 2, 0.3),
]  # fmt: skip
WITH = [
    (1, 3, 3, 0.5), (6, 6, 3, 0.0), (5, 12, 3, 1.0), (12, 5, 3, 0.3), (5, 4, 4, 0.6), (7, 9, 2, 1),
]  # fmt: skip


@pytest.mark.slow_after(7)
@pytest.mark.parametrize(
    ("n", "drawn", "m", "epsilon", "again"),
    [*((*case, True) for case in WITH), *((*case, False) for case in WITHOUT)],
)
def test_every_database(n: int, drawn: int, m: int, epsilon: float, again: bool) -> None:
    logs, ratio = log_profile(n, drawn, m, epsilon, again=again), oracles.exponential(epsilon)
    for row, value in zip(oracles.compositions(n, m), logs.tolist(), strict=True):
        if sorted(row) == list(row):
            assert agrees(value, exact_delta(row, drawn, ratio, again)), row
    if not again:
        assert np.array_equal(logs[index_of(np.sort(histograms(n, m), axis=1))], logs)


SEVERAL = [(3, 2, 2, 1), (4, 0, 3, 0, 1), (2, 5, 3, 4), (0, 9, 0), (1, 1, 6)]


@pytest.mark.parametrize(
    ("histogram", "lost", "epsilon", "again"),
    [
        ((200_000, 150_000, 150_000), 30, 2.0, False),
        ((499_000, 900, 100), 25, 1.0, False),
        ((700, 200, 100), 40, 2.5, False),
        ((10**8, 2 * 10**8, 7 * 10**8), 12, 1.0, False),
        ((300, 300, 200, 200), 12, 0.5, False),
        *((row, 30, 0.5, True) for row in ((20, 20, 20), (1, 19, 40), (0, 30, 30), (5, 5, 50))),
        *((row, 2, 0.3, again) for row in SEVERAL for again in (False, True)),
    ],
)
def test_one_database(histogram: oracles.Counts, lost: int, epsilon: float, again: bool) -> None:
    drawn = sum(histogram) - lost
    exact = exact_delta(histogram, drawn, oracles.exponential(epsilon), again)
    logs = log_profile(sum(histogram), drawn, len(histogram), epsilon, histogram, again)
    assert agrees(float(logs[0]), exact)


@pytest.mark.parametrize("again", [False, True])
def test_the_rarest_categories_tell_most(again: bool) -> None:
    """D(H || H - e_a + e_b) by its definition falls in H_a and in H_b."""
    n, drawn, ratio = 9, 6, oracles.exponential(0.4)
    pmf = oracles.multinomial if again else oracles.hypergeometric

    def directed_stick(a: int, b: int) -> Fraction:
        rest = n - a - b
        return oracles.stick(pmf((a, b, rest), drawn), pmf((a - 1, b + 1, rest), drawn), ratio)

    found = {(a, b): directed_stick(a, b) for a in range(1, n + 1) for b in range(n - a + 1)}
    for (a, b), value in found.items():
        assert found.get((a + 1, b), Fraction(0)) <= value
        assert found.get((a, b + 1), Fraction(0)) <= value


def pooled_by_definition(n: int, drawn: int, size: int, held: int, epsilon: float) -> mpf:
    """Return D(H || H - e_a + e_b) of a pool with ``held`` of a: the mean over what is drawn."""
    total, least = mpf(0), max(0, drawn - (n - size))
    mass = mp.binomial(size, least) * mp.binomial(n - size, drawn - least) / mp.binomial(n, drawn)
    for count in range(least, min(drawn, size) + 1):
        total += mass * pmfs.divergence_by_definition(size, count, epsilon, held - 1)
        mass = mass * (size - count) * (drawn - count)
        mass /= (count + 1) * (n - size - drawn + count + 1)
    return total


@pytest.mark.slow
def test_below_the_range_of_doubles_against_mpmath() -> None:
    row, lost, epsilon = (200_000, 150_000, 150_000), 2600, 7.0
    n = sum(row)
    with mp.workdps(40):
        values = [
            pooled_by_definition(n, n - lost, a + b, held, epsilon)
            for a, b in {*permutations(row, 2)}
            for held in (a, b + 1)
        ]
        exact = float(mp.log(max(values)))
    assert exact < math.log(1e-308)
    found = log_profile(n, n - lost, 3, epsilon, row)[0]
    assert found == pytest.approx(exact, rel=0, abs=RELATIVE)


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "drawn", "size", "held", "epsilon"),
    [
        (1200, 600, 800, 350, 0.0), (1200, 600, 800, 350, 0.4), (3000, 2900, 2500, 2400, 1.0),
        (5000, 100, 4000, 30, 0.02), (5000, 4990, 1000, 400, 0.0), (1400, 700, 1399, 700, 2.0),
    ],
)  # fmt: skip
def test_moderate_sizes_against_mpmath(
    n: int, drawn: int, size: int, held: int, epsilon: float
) -> None:
    """Every T' and every count, summed with 40 digits from the two distributions of the counts."""
    with mp.workdps(40):
        exact = float(mp.log(pooled_by_definition(n, drawn, size, held, epsilon)))
    mechanism, ones = SamplingHistogram(n, drawn, 3), np.array([held - 1])
    found = profile.pooled_log_divergence(mechanism, epsilon, size, ones)
    assert found[0] == pytest.approx(exact, rel=0, abs=2e-12)


def test_bad_arguments_are_refused() -> None:
    for n, drawn in ((2001, 2000), (2000, 1000)):
        with pytest.raises(ParameterError, match="Give one histogram"):
            log_profile(n, drawn, 3, 1.0)
    with pytest.raises(ParameterError, match="outputs"):
        log_profile(9, 10**6, 3, 1.0, (2, 3, 4), again=True)
    with pytest.raises(ParameterError, match="two rarest"):
        log_profile(9 * 10**8, 4 * 10**8, 3, 1.0, (3 * 10**8,) * 3)


def test_too_many_compositions_are_refused_before_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profile, "sampled_log_profile", lambda *_: pytest.fail("was computed"))
    with pytest.raises(ParameterError, match="too many compositions"):
        smoothed_delta(SamplingHistogram(1000, 990, 3), 1.0, [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
