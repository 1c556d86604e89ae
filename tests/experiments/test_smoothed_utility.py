"""The adversary's utility by the definition in exact fractions, and the paper's claims about it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpopt.prob.histograms import histogram_count, histograms
from dpopt.smoothed.mechanisms import SamplingHistogram
from experiments.smoothed.utility import adversary_utility, candidates_utility
from tests import oracles
from tests.smoothed.pmfs import KernelMechanism

Pmf = list[Fraction]
HALF = Fraction(1, 2)


def record_utilities(pmfs: list[Pmf], threshold: Fraction) -> list[Fraction]:
    """E max(0, max posterior - t) / (1 - t) for each value that the record may really have."""
    found = []
    for own in pmfs:
        total = Fraction(0)
        for place, chance in enumerate(own):
            column = [pmf[place] for pmf in pmfs]
            if chance:
                posterior = max(column) / sum(column, Fraction(0))
                total += chance * max(Fraction(0), posterior - threshold)
        found.append(total / (1 - threshold))
    return found


def drawn_pmf(counts: tuple[int, ...], drawn: int, *, replacement: bool = False) -> Pmf:
    """Pr[h | counts] over all h, by counting the places that are drawn."""
    pmf = (oracles.multinomial if replacement else oracles.hypergeometric)(counts, drawn)
    return [pmf.get(h, Fraction(0)) for h in oracles.compositions(drawn, len(counts))]


def with_record(rest: tuple[int, ...], category: int) -> tuple[int, ...]:
    return tuple(count + (c == category) for c, count in enumerate(rest))


def random_pmf(rng: np.random.Generator, outputs: int) -> Pmf:
    weights = rng.integers(0, 6, size=outputs) * rng.integers(1, 30, size=outputs)
    weights[rng.integers(outputs)] += 1
    return [Fraction(int(w), int(weights.sum())) for w in weights]


def threshold_of(growth: Fraction) -> Fraction:
    return growth / (growth + 1)


GROWTHS = [Fraction(1), Fraction(51, 49), Fraction(3, 2), Fraction(4)]


@pytest.mark.parametrize("growth", GROWTHS)
def test_the_utility_is_bounded_by_divergences(growth: Fraction) -> None:
    """Lemma 1 for any number of candidates, and Lemma 10, whose 3 may be 2, for pairs."""
    rng, positive = np.random.default_rng(8), 0
    for m, outputs, _ in product((2, 3, 6), (2, 4, 9), range(15)):
        pmfs = [random_pmf(rng, outputs) for _ in range(m)]
        utilities = record_utilities(pmfs, threshold_of(growth))
        found = candidates_utility(np.array(pmfs, dtype=float), float(threshold_of(growth)))
        assert found == pytest.approx(float(max(utilities)), abs=1e-14)
        deltas = [
            max(oracles.stick(*pair, growth) for o in pmfs for pair in ((pmf, o), (o, pmf)))
            for pmf in pmfs
        ]
        assert all(u <= 2 * delta for u, delta in zip(utilities, deltas, strict=True))
        assert max(utilities) <= (1 + (m - 1) / (growth + 1)) * min(deltas)
        positive += max(utilities) > 0
        if m == 2:
            p, q = pmfs
            both = oracles.stick(p, q, growth) + oracles.stick(q, p, growth)
            assert sum(utilities) == both <= 2 * max(utilities)
    assert positive > 50


def test_lemma_2_fails_with_a_prior_over_three_categories() -> None:
    """n = 3, T = 1, one record of each of two categories known: d = d' = 0 between those two."""
    pmfs = [drawn_pmf(with_record((1, 1, 0), c), 1) for c in range(3)]
    growth = Fraction(2)
    assert oracles.stick(pmfs[0], pmfs[1], growth) == oracles.stick(pmfs[1], pmfs[0], growth) == 0
    assert max(record_utilities(pmfs, threshold_of(growth))) == Fraction(1, 3)
    mechanism = SamplingHistogram(3, 1, 3)
    found = adversary_utility(mechanism, 2 / 3, (2, 1, 0), reading="categories")
    assert found == pytest.approx(math.log(1 / 3), abs=1e-14)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("threshold", [HALF, Fraction(51, 100), Fraction(3, 4), Fraction(19, 20)])
def test_both_readings_against_the_definition(threshold: Fraction, replacement: bool) -> None:
    for n, drawn, m in ((1, 1, 2), (5, 3, 2), (6, 5, 2), (4, 2, 3), (3, 2, 4)):
        mechanism = SamplingHistogram(n, drawn, m, replacement)
        for row in histograms(n, m).tolist():
            pairs, every = Fraction(0), Fraction(0)
            for own in range(m):
                if row[own] == 0:
                    continue
                rest = tuple(count - (c == own) for c, count in enumerate(row))
                pmfs = [
                    drawn_pmf(with_record(rest, c), drawn, replacement=replacement)
                    for c in range(m)
                ]
                every = max(every, *record_utilities(pmfs, threshold))
                for other in range(m):
                    if other != own:
                        two = record_utilities([pmfs[own], pmfs[other]], threshold)
                        pairs = max(pairs, *two)
            for reading, wanted in (("pairs", pairs), ("categories", every)):
                found = adversary_utility(mechanism, float(threshold), row, reading=reading)
                assert math.exp(found) == pytest.approx(float(wanted), abs=1e-14, rel=1e-11)


def test_a_threshold_below_one_half() -> None:
    """Three categories, prior 1/3 each: t = 2/5 is above a guess without output."""
    threshold, rest = Fraction(2, 5), (1, 1, 1)
    pmfs = [drawn_pmf(with_record(rest, c), 2) for c in range(3)]
    wanted = max(record_utilities(pmfs, threshold))
    assert wanted > 0
    found = adversary_utility(SamplingHistogram(4, 2, 3), 0.4, (2, 1, 1), reading="categories")
    others = [drawn_pmf(with_record((2, 0, 1), c), 2) for c in range(3)]
    wanted = max(wanted, *record_utilities(others, threshold))
    assert math.exp(found) == pytest.approx(float(wanted), rel=1e-12)


def test_a_sure_guess_is_worth_one_and_no_output_nothing() -> None:
    assert candidates_utility(np.eye(3), 0.5) == pytest.approx(1.0, abs=1e-15)
    assert candidates_utility(np.full((3, 4), 0.25), 1 / 3) == pytest.approx(0.0, abs=1e-15)
    same = KernelMechanism(2, 2, np.ones((histogram_count(2, 2), 1)))
    assert adversary_utility(same, 0.5, (1, 1)) == -math.inf


def test_a_rare_output_that_gives_the_record_away() -> None:
    tiny = 1e-200
    pmfs = [[1.0 - tiny, tiny], [1.0, 0.0]]
    assert candidates_utility(pmfs, 0.75) == pytest.approx(tiny, rel=1e-14)
