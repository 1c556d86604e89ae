"""Categories released by every sampler: their distribution, their labels, their refusals."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import roo
from tests.oracles import follow

SAMPLERS: dict[str, Callable[[int, int, float], Any]] = {
    "exact": lambda n, k, e: dpopt.design(dpopt.RevealOrObscure(n, k, e, "exact")),
    "roo": lambda n, k, e: dpopt.design(dpopt.RevealOrObscure(n, k, e, "roo")),
    "floor": lambda n, k, e: dpopt.design(dpopt.SmoothFloor(n, k, e)),
}


@pytest.mark.parametrize(
    ("n", "epsilon", "counts"),
    [(7, 0.3, [3, 2, 2]), (30, 1.0, [27, 1, 2]), (12, 0.5, [5, 7]), (9, 0.7, [0, 0, 1, 0, 8])],
)
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_distribution_is_that_of_the_integers(
    name: str, n: int, epsilon: float, counts: list[int]
) -> None:
    sampler = SAMPLERS[name](n, len(counts), epsilon)
    data = roo.Tally.of_counts(counts, len(counts))
    weights = sampler.setting.output_weights(sampler.table, data)
    exact = [float(Fraction(w, sum(weights))) for w in weights]
    assert sampler.output_distribution(counts) == pytest.approx(exact, rel=1e-15)
    assert min(exact) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_labels_keep_the_order_of_the_alphabet(name: str) -> None:
    n = 40
    sampler = SAMPLERS[name](n, 3, 6.0)
    words = ["red"] * 32 + ["blue"] * 5 + ["green"] * 3
    pmf = sampler.output_distribution([5, 3, 32])
    labels = ("blue", "green", "red")
    drawn = [sampler.release(roo.tally(words, labels)) for _ in range(4000)]
    assert follow(drawn, dict(zip(labels, pmf, strict=True)))
    numbers = sampler.release(roo.tally(np.array([7] * n), np.array([3, 9, 7])))
    assert type(numbers) is int
    flags = SAMPLERS[name](n, 2, 30.0).release(roo.tally([True] * n, (False, True)))
    assert type(flags) is bool


def test_release_takes_no_seed_and_ignores_global_ones() -> None:
    assert not {"seed", "rng", "random_state"} & set(inspect.signature(dpopt.design).parameters)
    sampler = dpopt.design(dpopt.SmoothFloor(20, 5, 0.5))
    assert "rng" not in inspect.signature(sampler.release).parameters
    draws = []
    for _ in range(2):
        np.random.seed(3)  # noqa: NPY002
        draws.append([sampler.release([0, 1, 2, 3, 4] * 4) for _ in range(200)])
    assert draws[0] != draws[1]


def test_data_of_every_kind_are_the_same_data() -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(4, 3, 1.0))
    records = [2, 0, 2, 2]
    expected = None
    for data in (records, np.array(records), Counter(records), {0: 1, 2: 3}, roo.tally(records, 3)):
        rng = np.random.default_rng(5)
        drawn = [sampler.simulate(data, rng) for _ in range(100)]
        expected = expected or drawn
        assert drawn == expected


def test_a_hundred_million_records_at_once() -> None:
    n, k = 10**8, 10
    counts = np.random.default_rng(1).multinomial(n, np.ones(k) / k)
    for make in SAMPLERS.values():
        assert make(n, k, 0.1).release(roo.Tally.of_counts(counts, k)) in range(k)
