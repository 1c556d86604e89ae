"""The optimal sampler against enumeration, closed forms and the lower bound."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dpopt
from dpopt import solve
from dpopt.ballots.choice import votes_pmf
from dpopt.table import SortedHistograms
from tests.roo import brute
from tests.roo.brute import lower_bound


def best_sampler(*sizes: Any, **options: Any) -> Any:
    """The sampler, typed loosely: where it was solved, bound, solution and proof are not None."""
    return dpopt.design(dpopt.BestSampler(*sizes, **options))


def distance(pmf: npt.ArrayLike, other: npt.ArrayLike) -> float:
    return 0.5 * float(np.abs(np.subtract(pmf, other)).sum())


def test_the_prior_of_histograms() -> None:
    found = SortedHistograms(7, 3)
    orders = [len(set(permutations(row.tolist()))) for row in found.histograms]
    np.testing.assert_allclose(votes_pmf("dirichlet:1.0", found), np.array(orders) / comb(9, 2))


def test_two_records_of_two_categories() -> None:
    """K(1 | 1 of 2) = 1/2, so K of a category that no record has is at least e^-epsilon / 2."""
    for epsilon in (0.1, 0.5, 2.0):
        assert best_sampler(2, 2, epsilon).value == pytest.approx(math.exp(-epsilon) / 2, abs=2e-9)


LARGER = [(30, 2, 0.2), (30, 3, 0.2), (30, 3, 0.5), (60, 3, 0.5), (20, 4, 0.4), (15, 5, 0.5)]


@pytest.mark.parametrize(("n", "k", "epsilon"), LARGER)
def test_the_worst_case_meets_the_lower_bound_and_beats_min_count_rules(
    n: int, k: int, epsilon: float
) -> None:
    sampler = best_sampler(n, k, epsilon)
    assert n * epsilon >= 6
    assert sampler.value == pytest.approx(lower_bound(n, k, epsilon), abs=2e-9)
    assert sampler.worst_case == sampler.value
    for rule in ("exact", "roo"):
        other = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
        distances = [
            distance(other.output_distribution(row), row / n) for row in sampler.histograms
        ]
        assert sampler.value < max(distances)
        if k >= 3:
            assert 2.5 < max(distances) / sampler.value < 3.4


@pytest.mark.nightly
@pytest.mark.slow
def test_no_case_is_below_the_lower_bound_nor_above_a_min_count_rule() -> None:
    for n, k, epsilon in product((1, 2, 3, 5, 9, 14), (2, 3, 4, 5), (0.1, 0.5, 1.5)):
        sampler = best_sampler(n, k, epsilon)
        best = best_sampler(n, k, epsilon, objective="mean")
        rule = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon))
        found = sampler.histograms
        distances = [distance(rule.output_distribution(row), row / n) for row in found]
        prior = votes_pmf("dirichlet:1.0", sampler.setting.domain)
        assert lower_bound(n, k, epsilon) - 1e-12 <= sampler.value <= max(distances) + 2e-9
        assert best.value <= float(prior @ distances) + 1e-9
        assert best.value <= sampler.mean + 1e-9
        assert sampler.value <= best.worst_case + 2e-9
        assert sampler.bound <= sampler.value + 1e-12
        assert best.bound <= best.value + 1e-12


def test_value_is_the_largest_distance_by_enumeration() -> None:
    sampler = best_sampler(9, 3, 0.5)
    distances = []
    for counts in brute.histograms(9, 3):
        pmf = [Fraction(w, sampler.table.total) for w in sampler.table.row(np.array(counts))]
        distances.append(sum(abs(p - Fraction(c, 9)) for p, c in zip(pmf, counts, strict=True)) / 2)
    assert sampler.value == pytest.approx(float(max(distances)), abs=1e-15)
    orders = [
        factorial(3) / prod(factorial(m) for m in Counter(counts).values())
        for counts in brute.histograms(9, 3)
    ]
    mean = sum(w * float(d) for w, d in zip(orders, distances, strict=True)) / comb(11, 2)
    assert sampler.mean == pytest.approx(mean, abs=1e-15)
    assert set(sampler.solution.duals) == {"sums", "privacy", "short", "distance"}
    assert sampler.solution.duals["privacy"].size == sampler.certificate.constraints


def test_among_the_optima_the_mean_is_least() -> None:
    sampler = best_sampler(12, 3, 0.4)
    problem = sampler.setting.problem()
    problem.minimise({"worst": 1.0})
    first = sampler.setting.table(sampler.setting.point(solve(problem)))
    prior = votes_pmf("dirichlet:1.0", sampler.setting.domain)
    mean = float(prior @ sampler.setting.distances(first))
    best = best_sampler(12, 3, 0.4, objective="mean").value
    assert best - 1e-9 <= sampler.mean <= mean + 1e-9
    assert sampler.mean < 1.1 * best


def test_repair_of_a_kernel_that_is_not_private() -> None:
    setting = dpopt.BestSampler(6, 3, 0.5)
    empirical = setting.domain.values / 6
    table = setting.table(empirical)
    assert setting.judge(table).slack >= 0
    # A count of 1 where there was none asks for this much of a uniform category, at least.
    least = 1 / (1 + 6 / 3 * math.expm1(0.5))
    assert setting.value(table) <= setting.value(setting.interior(empirical))
    assert setting.value(table) < least
    private = best_sampler(6, 3, 0.5)
    again = setting.table(private.kernel).probabilities
    np.testing.assert_allclose(again, private.kernel, atol=1e-13)


def test_extreme_epsilons() -> None:
    nearly = best_sampler(6, 3, 600.0)
    np.testing.assert_allclose(nearly.kernel, nearly.setting.domain.values / 6, atol=1e-12)
    assert best_sampler(6, 3, 50.0).value < 1e-12
    for epsilon in (1e-6, 1e-12):
        blind = best_sampler(6, 3, epsilon)
        np.testing.assert_allclose(blind.kernel, 1 / 3, atol=1e-5)
        assert blind.certificate.slack >= 0
