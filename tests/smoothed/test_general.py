"""Distributions of the mechanisms, and the general profile of any of them, in exact rationals."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import numpy.typing as npt
import pytest

from dpopt import ParameterError
from dpopt.prob.histograms import histogram_count, histograms
from dpopt.smoothed import profile
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import general_log_profile, privacy_profile
from tests import oracles
from tests.smoothed import pmfs
from tests.smoothed.pmfs import KernelMechanism


def as_row(pmf: oracles.Pmf, drawn: int, categories: int) -> npt.NDArray[np.float64]:
    return np.array([float(pmf.get(h, 0)) for h in oracles.compositions(drawn, categories)])


def test_the_two_exact_distributions_are_those_of_subsets_and_words() -> None:
    for histogram in [(4, 3), (0, 5), (2, 1, 3), (1, 0, 2, 2)]:
        records = [c for c, count in enumerate(histogram) for _ in range(count)]
        for drawn in range(1, 5):
            for exact, ways in (
                (oracles.hypergeometric, combinations(records, drawn)),
                (oracles.multinomial, product(records, repeat=drawn)),
            ):
                tally = Counter(tuple(way.count(c) for c in range(len(histogram))) for way in ways)
                pmf = {key: Fraction(count, tally.total()) for key, count in tally.items()}
                assert pmf == exact(histogram, drawn)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("n", "drawn", "m"), [(1, 1, 2), (7, 3, 2), (7, 7, 3), (9, 8, 3), (5, 2, 4), (30, 22, 2)]
)
@pytest.mark.parametrize("replacement", [False, True])
def test_distributions_of_the_sampling_histogram(
    n: int, drawn: int, m: int, replacement: bool
) -> None:
    mechanism = SamplingHistogram(n, drawn, m, replacement)
    exact = oracles.multinomial if replacement else oracles.hypergeometric
    rows = histograms(n, m)
    found = mechanism.pmfs(rows)
    wanted = np.array([as_row(exact(tuple(row), drawn), drawn, m) for row in rows.tolist()])
    assert mechanism.outputs == found.shape[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=0)


def test_more_draws_than_records_and_deep_tails() -> None:
    mechanism = SamplingHistogram(20, 150, 2, replacement=True)
    wanted = as_row(oracles.multinomial((1, 19), 150), 150, 2)
    np.testing.assert_allclose(mechanism.pmfs([[1, 19]])[0], wanted, rtol=1e-12, atol=0)
    assert 0 < wanted[150] < 1e-190
    large = SamplingHistogram(1000, 500)
    exact = as_row(oracles.hypergeometric((500, 500), 500), 500, 2)
    assert 0 < exact[0] < 1e-299
    np.testing.assert_allclose(large.pmfs([[500, 500]])[0], exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("n", "drawn", "m", "epsilon"),
    [(1, 1, 2, 0.5), (7, 4, 2, 0.0), (7, 7, 3, 1.0), (6, 5, 3, 0.3), (4, 3, 4, 0.7), (9, 6, 2, 3)],
)
@pytest.mark.parametrize("replacement", [False, True])
def test_against_exact_rationals(
    n: int, drawn: int, m: int, epsilon: float, replacement: bool
) -> None:
    mechanism = SamplingHistogram(n, drawn, m, replacement)
    found = general_log_profile(mechanism, epsilon)
    deltas = pmfs.profile(n, drawn, m, oracles.exponential(epsilon), replacement)
    exact = [pmfs.log_of(delta) for delta in deltas.values()]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
    for row, value in zip(histograms(n, m)[::3], found[::3], strict=True):
        assert general_log_profile(mechanism, epsilon, row).tolist() == pytest.approx([value])


def test_delta_is_the_largest_gain_of_any_event() -> None:
    n, m, outputs, epsilon = 3, 3, 5, 0.4
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(outputs), size=histogram_count(n, m))
    rows = list(oracles.compositions(n, m))
    pmf = dict(zip(rows, kernel, strict=True))
    places = range(outputs)
    events = list(chain.from_iterable(combinations(places, k) for k in range(outputs + 1)))
    wanted = []
    for row in rows:
        gains = [
            sum(p[list(event)]) - math.exp(epsilon) * sum(q[list(event)])
            for other in oracles.neighbours(row)
            for p, q in ((pmf[row], pmf[other]), (pmf[other], pmf[row]))
            for event in events
        ]
        wanted.append(max(gains))
    found = general_log_profile(KernelMechanism(n, m, kernel), epsilon)
    assert np.exp(found).tolist() == pytest.approx(wanted, rel=1e-12)


def test_portions_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for mechanism in (SamplingHistogram(8, 6, 3), SamplingHistogram(20, 15)):
        whole = general_log_profile(mechanism, 0.3)
        for held in (1, 40, 300):
            monkeypatch.setattr(profile, "_HELD_ENTRIES", held)
            assert np.array_equal(general_log_profile(mechanism, 0.3), whole)
            monkeypatch.undo()


def test_bad_arguments_are_refused() -> None:
    mechanism = SamplingHistogram(5, 3, replacement=True)
    for epsilon in (-1.0, math.nan, 701.0):
        with pytest.raises(ParameterError, match="epsilon is"):
            privacy_profile(mechanism, epsilon)
    with pytest.raises(ParameterError, match="5 records over 2"):
        privacy_profile(mechanism, 1.0, [1, 2])
    with pytest.raises(ParameterError, match="outputs"):
        privacy_profile(SamplingHistogram(5000, 4999, 3, replacement=True), 1.0, [5000, 0, 0])
