"""Laws of the descriptions against subsets, words and exact rationals."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import ParameterError
from dpopt.prob.histograms import histograms
from dpopt.smoothed.mechanisms import (
    AnonymousMechanism,
    KernelMechanism,
    SamplingAverage,
    SamplingHistogram,
    as_anonymous,
)
from tests.smoothed import laws


def as_row(law: laws.Law, drawn: int, categories: int) -> npt.NDArray[np.float64]:
    return np.array([float(law.get(h, 0)) for h in laws.compositions(drawn, categories)])


def test_the_two_exact_laws_are_those_of_subsets_and_words() -> None:
    for histogram in [(4, 3), (0, 5), (2, 1, 3), (1, 0, 2, 2)]:
        for drawn in range(1, 5):
            subsets = laws.by_subsets(histogram, drawn)
            assert subsets == laws.hypergeometric(histogram, drawn)
            assert laws.by_words(histogram, drawn) == laws.multinomial(histogram, drawn)


@pytest.mark.parametrize(
    ("n", "drawn", "m"), [(1, 1, 2), (7, 3, 2), (7, 7, 3), (9, 8, 3), (5, 2, 4), (30, 22, 2)]
)
@pytest.mark.parametrize("replacement", [False, True])
def test_laws_of_the_sampling_histogram(n: int, drawn: int, m: int, replacement: bool) -> None:
    mechanism = as_anonymous(SamplingHistogram(n, drawn, m, replacement))
    exact = laws.multinomial if replacement else laws.hypergeometric
    rows = histograms(n, m)
    found = mechanism.laws(rows)
    wanted = np.array([as_row(exact(tuple(row), drawn), drawn, m) for row in rows.tolist()])
    assert mechanism.outputs == found.shape[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=0)


def test_more_draws_than_records_and_deep_tails() -> None:
    mechanism = as_anonymous(SamplingHistogram(20, 150, 2, replacement=True))
    wanted = as_row(laws.multinomial((1, 19), 150), 150, 2)
    np.testing.assert_allclose(mechanism.laws([[1, 19]])[0], wanted, rtol=1e-12, atol=0)
    assert 0 < wanted[150] < 1e-190
    large = as_anonymous(SamplingHistogram(1000, 500))
    exact = as_row(laws.hypergeometric((500, 500), 500), 500, 2)
    assert 0 < exact[0] < 1e-299
    np.testing.assert_allclose(large.laws([[500, 500]])[0], exact, rtol=1e-12, atol=0)


def sums_of_subsets(values: list[Fraction], records: list[int], drawn: int) -> Counter[Fraction]:
    picked = [values[c] for c in records]
    return Counter(sum(chosen, Fraction(0)) for chosen in combinations(picked, drawn))


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_laws_of_the_sampling_average(data: st.DataObject) -> None:
    m = data.draw(st.integers(2, 4))
    counts = data.draw(st.lists(st.integers(0, 4), min_size=m, max_size=m))
    n = sum(counts)
    if n == 0:
        return
    drawn = data.draw(st.integers(1, n))
    numbers = st.integers(-12, 12).map(lambda k: k / 4)
    values = data.draw(st.lists(numbers, min_size=m, max_size=m))
    mechanism = SamplingAverage(n, drawn, values)
    exact = sums_of_subsets([Fraction(v) for v in values], laws.records_of(tuple(counts)), drawn)
    law = mechanism.laws([counts])[0]
    assert law.shape == (mechanism.outputs,)
    for total, p in zip(mechanism.sums.tolist(), law.tolist(), strict=True):
        assert p == pytest.approx(exact[Fraction(total)] / exact.total(), rel=1e-13)
    assert exact.total() == math.comb(n, drawn)
    assert set(exact) <= {Fraction(total) for total in mechanism.sums.tolist()}


def test_databases_in_any_order_have_the_same_laws() -> None:
    mechanism = SamplingAverage(6, 4, [0, 3, 5])
    rows = histograms(6, 3)
    order = np.random.default_rng(1).permutation(len(rows))
    together = mechanism.laws(rows)
    assert np.array_equal(mechanism.laws(rows[order]), together[order])
    for row, law in zip(rows[::5], together[::5], strict=True):
        assert np.array_equal(mechanism.laws([row])[0], law)


def test_decimals_are_read_as_written() -> None:
    mechanism = SamplingAverage(5, 2, [0.1, 0.2, 0.4])
    assert mechanism.step == Fraction(1, 10)
    assert mechanism.levels == (0, 1, 3)
    assert mechanism.outputs == 7
    assert mechanism.sums.tolist() == [k / 10 for k in range(2, 9)]
    assert mechanism.to_dict()["values"] == ["1/10", "1/5", "2/5"]
    assert SamplingAverage(5, 2, [3, 3]).outputs == 1
    assert SamplingAverage(5, 2, [3, 3]).laws([[2, 3]]).tolist() == [[1.0]]
    assert SamplingAverage(5, 2, ["1/3", "1/2"]).step == Fraction(1, 6)


def test_a_kernel_is_read_back_by_histogram() -> None:
    rows = histograms(4, 3)
    kernel = np.random.default_rng(2).dirichlet(np.ones(5), size=len(rows))
    mechanism = KernelMechanism(4, 3, kernel, "mine")
    order = np.random.default_rng(3).permutation(len(rows))
    np.testing.assert_allclose(mechanism.laws(rows[order]), kernel[order], rtol=1e-15)
    assert mechanism.outputs == 5
    assert not mechanism.kernel.flags.writeable
    assert mechanism.to_dict()["mechanism"] == "mine"
    assert mechanism.to_dict()["kernel"] == mechanism.kernel.tolist()


def test_every_description_is_anonymous_and_says_its_sizes() -> None:
    sampled = as_anonymous(SamplingHistogram(6, 4, 3))
    assert isinstance(sampled, AnonymousMechanism)
    assert as_anonymous(sampled) is sampled
    assert (sampled.records, sampled.categories, sampled.outputs) == (6, 3, 15)
    assert sampled.to_dict() == SamplingHistogram(6, 4, 3).to_dict()
    average = SamplingAverage(6, 4, [0, 1, 2, 7])
    assert (average.records, average.categories, average.outputs) == (6, 4, 29)
    with pytest.raises(ParameterError, match="mechanism is 3"):
        as_anonymous(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 1, [0, 1]), "records is 0"),
        ((5, 6, [0, 1]), "drawn is 6"),
        ((5, 3, [0]), "at least 2 numbers"),
        ((5, 3, "01"), "at least 2 numbers"),
        ((5, 3, [0, float("nan")]), "finite numbers"),
        ((5, 3, [0, "x"]), "finite numbers"),
        ((5, 3, [0, 0.1, 0.123456789]), "coarser values"),
    ],
)
def test_bad_averages_are_refused(arguments: tuple, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        SamplingAverage(*arguments)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ([[1.0], [1.0]], "one row for each"),
        (np.ones(3), "one row for each"),
        (np.ones((3, 0)), "one row for each"),
        ([["a"], ["b"], ["c"]], "other values"),
        ([[0.5, 0.5], [1.0, 0.0], [-0.5, 1.5]], "below 0"),
        ([[0.5, 0.5], [1.0, 0.0], [0.5, np.nan]], "not finite"),
        ([[0.5, 0.5], [1.0, 0.0], [0.5, 0.6]], "sum is not 1"),
    ],
)
def test_bad_kernels_are_refused(kernel: list, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelMechanism(2, 2, kernel)  # pyright: ignore[reportArgumentType]


def test_foreign_histograms_and_large_tables_are_refused() -> None:
    for mechanism in (
        as_anonymous(SamplingHistogram(4, 2)),
        SamplingAverage(4, 2, [0, 1]),
        KernelMechanism(4, 2, np.ones((5, 1))),
    ):
        with pytest.raises(ParameterError, match="4 records over 2"):
            mechanism.laws([[1, 2]])
    with pytest.raises(ParameterError, match="table of laws"):
        as_anonymous(SamplingHistogram(10**5, 10**4)).laws([[1, 10**5 - 1]])
