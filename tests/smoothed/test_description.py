"""Distributions of the descriptions against subsets, words and exact rationals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dpopt.prob.histograms import histograms
from dpopt.smoothed.mechanisms import SamplingHistogram
from tests import oracles
from tests.smoothed import pmfs


def as_row(pmf: oracles.Pmf, drawn: int, categories: int) -> npt.NDArray[np.float64]:
    return np.array([float(pmf.get(h, 0)) for h in oracles.compositions(drawn, categories)])


def test_the_two_exact_distributions_are_those_of_subsets_and_words() -> None:
    for histogram in [(4, 3), (0, 5), (2, 1, 3), (1, 0, 2, 2)]:
        for drawn in range(1, 5):
            subsets = pmfs.by_subsets(histogram, drawn)
            assert subsets == oracles.hypergeometric(histogram, drawn)
            assert pmfs.by_words(histogram, drawn) == oracles.multinomial(histogram, drawn)


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
