"""The recursions against the reference values, their linear programs, and definitions."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dpopt
from dpopt import roo, solve
from dpopt.roo.minimum import audited, first_free
from dpopt.roo.setting import UNIT
from dpopt.shape import design, made
from tests.roo.brute import Case, full_weights

RECURSIONS = ("exact", "journal", "journal-repaired", "conference")
RECORDS = (1, 3, 5, 6, 7, 8, 11, 12, 16, 20, 24, 30, 37, 48, 60, 101, 200)
GRID = list(
    product(RECORDS, (2, 3, 4, 5, 7, 10), (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 4.0))
)


def q_of(setting: roo.RooSetting, rule: str) -> npt.NDArray[np.float64]:
    """All of q_0..q_M."""
    return np.array(full_weights(setting, rule), dtype=float) / UNIT


@pytest.mark.slow
def test_the_exact_rule_is_never_above_a_private_rule_and_all_fall_in_m() -> None:
    better = 0
    for n, k, epsilon in GRID:
        setting = roo.RooSetting(n, k, epsilon)
        q = {rule: full_weights(setting, rule) for rule in roo.RULES}
        pairs = zip(q["exact"], q["journal-repaired"], q["roo"], strict=True)
        # Rules rounded to nearest may end up a unit for each m below what they should be.
        assert all(a <= min(b, c) + 1 + n // k for a, b, c in pairs), (n, k, epsilon)
        assert all(a <= b for a, b in zip(q["journal"], q["journal-repaired"], strict=True))
        repaired = np.array(q["journal-repaired"], dtype=float)
        better += bool(np.any(np.array(q["exact"], dtype=float) < repaired - 1e-6 * UNIT))
        for rule in ("exact", "roo", "journal", "conference"):
            assert q[rule] == sorted(q[rule], reverse=True), (n, k, epsilon, rule)
        assert all(0 < values[0] <= UNIT for values in q.values())
    assert better > len(GRID) // 4


@pytest.mark.parametrize(("n", "k"), [(9, 2), (12, 2), (10, 3), (24, 3), (14, 4), (23, 5)])
def test_every_q_is_least_on_its_own(n: int, k: int) -> None:
    for epsilon in (0.05, 0.4):
        setting = roo.RooSetting(n, k, epsilon)
        exact = q_of(setting, "exact")
        for m, value in enumerate(exact):
            problem = dpopt.RevealOrObscure(n, k, epsilon).problem()
            problem.minimise({"q": np.eye(exact.size)[m]})
            assert solve(problem).objective == pytest.approx(value, abs=1e-11)


def test_one_unit_less_anywhere_breaks_a_row() -> None:
    checked = 0
    for n, k, epsilon in product((3, 7, 12, 25, 30), (2, 3, 5), (0.05, 0.3, 1.0)):
        setting = roo.RooSetting(n, k, epsilon)
        weights = list(roo.rule_weights(setting, "exact"))
        assert audited(setting, tuple(weights), constant=False).excess_factor <= 1
        for m, weight in enumerate(weights):
            if weight:
                less = [*weights[:m], weight - 1, *weights[m + 1 :]]
                found = made(dpopt.RevealOrObscure(n, k, epsilon), tuple(less), strict=False)
                assert not found.private, (n, k, epsilon, m)
                checked += 1
    assert checked > 100


def test_rules_are_trimmed_and_counts_free_where_claimed() -> None:
    for n, k, epsilon in product((50, 1000), (2, 3, 10), (0.1, 0.5, 1.0)):
        setting = roo.RooSetting(n, k, epsilon)
        assert (first_free(setting) - 1) * (setting.ratio - 1) < 1
        assert first_free(setting) * (setting.ratio - 1) >= 1
        for rule in RECURSIONS:
            weights = roo.rule_weights(setting, rule)
            assert weights[-1] > 0
            assert all(isinstance(w, int) and 0 <= w <= UNIT for w in weights)
            assert len(weights) <= n // k + 1


def test_large_settings() -> None:
    setting = roo.RooSetting(10**9, 10**6, 0.1)
    weights = roo.rule_weights(setting, "exact")
    assert len(weights) < 30
    paper = [float(value) for value in Case(10**9, 10**6, setting.ratio).q]
    np.testing.assert_allclose(q_of(setting, "exact"), paper, atol=1e-12)
    # Two categories: p_m = max over j >= m of (j / n) e^{-epsilon (j - m)}, M never reached.
    for n, epsilon in ((10**15, 0.05), (10**12, 0.002), (10**6, 0.01)):
        values = roo.rule_weights(roo.RooSetting(n, 2, epsilon), "exact")
        for m in (0, 7, len(values) - 1):
            p = max(j / n * math.exp(-epsilon * (j - m)) for j in range(m, m + 1000))
            expected = (p - m / n) / (0.5 - m / n)
            # Each of the values after m was rounded up.
            assert values[m] / UNIT == pytest.approx(expected, abs=1.2 * len(values) / UNIT)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("backend", ["highs", "cvxpy"])
@pytest.mark.parametrize("rule", roo.RULES)
def test_every_recursion_solves_its_program_by_every_solver(rule: Any, backend: str) -> None:
    for n, k, epsilon in [
        (12, 3, 0.3),
        (5, 2, 1.0),
        (3, 2, 0.5),
        (30, 4, 0.1),
        (20, 3, 0.1),
        (24, 3, 0.05),
        (7, 10, 0.5),
        (101, 10, 0.01),
        (1000, 10, 0.1),
    ]:
        setting = dpopt.RevealOrObscure(n, k, epsilon, rule)
        recursion, solved = design(setting), design(setting, backend=backend)
        assert solved.value == pytest.approx(recursion.value, rel=1e-9), setting
        assert solved.bound == pytest.approx(recursion.value, rel=1e-9), setting
        assert solved.private == recursion.private, setting
        if rule in ("exact", "roo"):
            assert solved.private
        q = full_weights(setting, rule)
        assert recursion.value == pytest.approx(
            float(setting._costs() @ (q[:1] if rule == "roo" else q)) / UNIT, rel=1e-12
        )


def test_the_conference_recursion_is_not_least_in_the_plain_sum() -> None:
    setting = dpopt.RevealOrObscure(101, 10, 0.01, "conference")
    problem = setting.problem()
    problem.minimise({"q": 1.0})
    assert q_of(setting, "conference").sum() - solve(problem).objective == pytest.approx(
        0.78782356624, abs=1e-8
    )


@pytest.mark.parametrize("rule", ["exact", "roo"])
def test_a_point_that_is_not_private_is_raised_until_it_is(rule: Any) -> None:
    for n, k, epsilon in product((7, 12, 30), (2, 3, 5), (0.05, 1.0)):
        setting = dpopt.RevealOrObscure(n, k, epsilon, rule)
        best = setting.point(solve(setting.problem()))
        for less in (0.0, 1e-12, 1e-3, 1.0):
            raised = setting.table(best * (1 - less))
            assert setting.judge(raised).slack >= 0
            assert (
                less == 1e-3
                or less == 1.0
                or (setting.value(raised) == pytest.approx(design(setting).value, rel=1e-9))
            )


@pytest.mark.parametrize("rule", ["exact", "journal"])
def test_rules_of_many_steps(rule: Any) -> None:
    n, k, epsilon = 10**12, 10, 1e-4
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
    assert sampler.private
    # With many records a category's chance at the smallest count, times n, is 1 / s at first, and
    # e^epsilon times that at m is 2 more than that at m - 1, until m itself is as much.
    gain, chance = math.expm1(epsilon), 1 / math.expm1(epsilon)
    for m in range(1, len(sampler.q)):
        chance = (chance + 2) / (1 + gain)
        if m % 1000 == 0:
            assert sampler.q[m] == pytest.approx((chance - m) * k / n, rel=1e-6), m
    assert (chance + 2) / (1 + gain) == pytest.approx(len(sampler.q), abs=1)
