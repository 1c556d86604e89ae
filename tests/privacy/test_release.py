"""Draws: every word against plain integers, laws against chi-square, bits against a coin."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpopt import Guarantee, Problem, solve
from dpopt.privacy import ExactKernel, quantise_kernel, ratio_rows, stochastic_rows
from dpopt.privacy.release import (
    Words,
    cumulative_words,
    draw,
    random_words,
    seeded_words,
)
from tests.privacy.known import distance, path, response

BITS = [1, 2, 5, 62, 63, 64, 65, 95, 127, 128, 129, 200]


def words_of(values: list[int], bits: int) -> Words:
    words = -(-bits // 64)
    parts = [[(u >> (64 * (words - 1 - i))) % 2**64 for u in values] for i in range(words)]
    return np.array(parts, dtype=np.uint64)


def drawn(weights: list[list[int]], bits: int, row: int, values: list[int]) -> list[int]:
    rows = np.full(len(values), row, dtype=np.int64)
    return draw(cumulative_words(weights, bits), rows, words_of(values, bits)).tolist()


def random_row(rng: random.Random, bits: int, outputs: int) -> list[int]:
    cuts = sorted(rng.randint(0, 2**bits) for _ in range(outputs - 1))
    ends = [0, *cuts, 2**bits]
    return [b - a for a, b in pairwise(ends)]


@given(bits=st.integers(1, 8), outputs=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_every_word_of_few_bits_gives_each_output_its_weight(
    bits: int, outputs: int, seed: int
) -> None:
    rng = random.Random(seed)
    weights = [random_row(rng, bits, outputs) for _ in range(3)]
    for row in range(3):
        found = drawn(weights, bits, row, list(range(2**bits)))
        assert np.bincount(found, minlength=outputs).tolist() == weights[row]


def edges_of(row: list[int], bits: int) -> list[int]:
    near = {end + step for end in accumulate(row) for step in (-1, 0, 1)}
    halves = {2**power + step for power in range(0, bits, 8) for step in (-1, 0)}
    return sorted(u for u in near | halves | {0, 2**bits - 1} if 0 <= u < 2**bits)


def check_bisect(weights: list[list[int]], bits: int, extra: list[int]) -> None:
    for index, row in enumerate(weights):
        values = edges_of(row, bits) + extra
        ends = list(accumulate(row))
        found = drawn(weights, bits, index, values)
        assert found == [bisect_right(ends, u) for u in values]
        assert all(row[output] > 0 for output in found)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("outputs", [1, 2, 3, 17])
def test_boundary_words_against_bisection(bits: int, outputs: int) -> None:
    rng = random.Random(1000 * bits + outputs)
    weights = [random_row(rng, bits, outputs) for _ in range(5)]
    check_bisect(weights, bits, [rng.getrandbits(bits) for _ in range(100)])


@pytest.mark.parametrize("bits", BITS)
def test_outputs_of_weight_zero_are_never_drawn(bits: int) -> None:
    half, whole = 2 ** (bits - 1), 2**bits
    weights = [
        [0, half, half, 0],
        [0, 0, 0, whole],
        [whole, 0, 0, 0],
        [half, half, 0, 0],
        [0, whole, 0, 0],
        [half, 0, 0, half],
    ]
    check_bisect(weights, bits, [])


@pytest.mark.parametrize("bits", [63, 64, 127, 128])
def test_single_units_are_drawn_by_their_word_only(bits: int) -> None:
    whole = 2**bits
    weights = [[1, whole - 2, 1]]
    assert drawn(weights, bits, 0, [0, 1, whole - 2, whole - 1]) == [0, 1, 1, 2]


def test_words_that_differ_in_one_place_only() -> None:
    end = (5 << 64) | 7
    weights = [[end, 2**127 - end]]
    below = [(5 << 64) | 6, (4 << 64) | 8, (4 << 64) | 7, 6, 7, 8]
    above = [(5 << 64) | 7, (5 << 64) | 8, (6 << 64) | 6, 6 << 64]
    assert drawn(weights, 127, 0, below) == [0] * 6
    assert drawn(weights, 127, 0, above) == [1] * 4


def test_many_draws_are_cut_into_parts_without_a_seam() -> None:
    rng = random.Random(5)
    weights = [random_row(rng, 20, 40) for _ in range(7)]
    count = 10_007
    rows = np.array([rng.randrange(7) for _ in range(count)])
    values = [rng.getrandbits(20) for _ in range(count)]
    found = draw(cumulative_words(weights, 20), rows, words_of(values, 20))
    ends = [list(accumulate(row)) for row in weights]
    pairs = zip(rows.tolist(), values, strict=True)
    assert found.tolist() == [bisect_right(ends[row], u) for row, u in pairs]


def integers(words: Words) -> list[int]:
    return [sum(int(w) << (64 * i) for i, w in enumerate(reversed(column))) for column in words.T]


@pytest.mark.parametrize("bits", BITS)
def test_words_stay_below_the_power(bits: int) -> None:
    for words in (
        random_words(bits, 300),
        seeded_words(bits, 300, np.random.default_rng(bits)),
    ):
        assert words.shape == (-(-bits // 64), 300)
        found = integers(words)
        assert max(found) < 2**bits
        if bits >= 62:
            assert len(set(found)) == 300
            assert max(found) >= 2 ** (bits - 1) > min(found)


def test_no_words() -> None:
    assert random_words(95, 0).shape == (2, 0)


@pytest.mark.parametrize("bits", [1, 63, 64, 95])
def test_each_bit_is_a_fair_coin(bits: int) -> None:
    count = 100_000
    words = random_words(bits, count)
    for place in range(bits):
        word = words[words.shape[0] - 1 - place // 64]
        ones = int(np.count_nonzero((word >> np.uint64(place % 64)) & np.uint64(1)))
        assert abs(ones - count / 2) <= 7 * math.sqrt(count / 4)


def linear_program_kernel() -> ExactKernel:
    n, guarantee = 16, Guarantee(0.4)
    pairs = path(n)
    problem = Problem()
    problem.add_variables("kernel", n * n, lower=0.0, upper=1.0)
    problem.add_rows("stochastic", stochastic_rows(n, n))
    problem.add_rows("privacy", ratio_rows(pairs, n, n, guarantee.epsilon))
    problem.minimise(distance(n).reshape(-1) / n)
    solution = solve(problem)
    return quantise_kernel(solution["kernel"].reshape(n, n), guarantee, pairs=pairs)


def two_output_kernel() -> ExactKernel:
    end = (1 << 94) // 3
    weights = [[end, 2**95 - end], [2**95 - end, end]]
    return ExactKernel.make(weights, 95, Guarantee(2.0))


KERNELS = {
    "program": linear_program_kernel,
    "response": lambda: response(7, 1.5),
    "binary": two_output_kernel,
}


def merged(
    counts: npt.NDArray[np.int64], expected: npt.NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """Put every cell with fewer than 100 expected draws into one."""
    rare = expected < 100
    if not np.any(rare):
        return counts.tolist(), expected.tolist()
    order = np.argsort(~rare)
    first = int(np.count_nonzero(rare))
    first = max(first, int(np.searchsorted(np.cumsum(expected[order]), 100)) + 1)
    some, rest = order[:first], order[first:]
    return (
        [float(counts[some].sum()), *counts[rest].tolist()],
        [float(expected[some].sum()), *expected[rest].tolist()],
    )


@pytest.mark.parametrize("name", KERNELS)
def test_a_million_draws_follow_the_certified_law(name: str) -> None:
    kernel = KERNELS[name]()
    count = 1_000_000
    chosen = kernel.inputs // 2
    found = kernel.release(np.full(count, chosen))
    counts = np.bincount(found, minlength=kernel.outputs)
    law = np.array([weight / 2**kernel.bits for weight in kernel.weights[chosen]])
    assert counts.size == kernel.outputs
    assert not np.any(counts[law == 0])
    observed, expected = merged(counts, law * count)
    assert len(observed) >= 2
    assert chisquare(observed, np.array(expected) * count / sum(expected)).pvalue > 1e-10


def test_the_law_is_the_one_of_each_draws_own_input() -> None:
    kernel = response(5, 1.5)
    inputs = np.arange(200_000) % 5
    found = np.asarray(kernel.release(inputs))
    for x in range(5):
        counts = np.bincount(found[inputs == x], minlength=5)
        expected = np.array([w / 2**kernel.bits for w in kernel.weights[x]]) * 40_000
        assert chisquare(counts, expected * 40_000 / expected.sum()).pvalue > 1e-10
