"""What tables spend and the audited rules, against enumeration of ordered histograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from dpopt import NotPrivateError
from dpopt.ballots.tabulate import audit_rule
from dpopt.privacy import Guarantee
from dpopt.privacy.exact import exp_lower, exp_upper
from dpopt.table import SortedHistograms, certify_table, rounded
from dpopt.table.least import least_of_table
from experiments.ensembles.ladder import ladder
from tests.ballots.pmfs import exponential, permute_and_flip
from tests.oracles import compositions, neighbours

Weights = Callable[[tuple[int, ...]], Sequence[Fraction | int]]
RULES = {"ladder": ladder, "permute-and-flip": permute_and_flip, "exponential": exponential}


def largest_ratio(voters: int, classes: int, weights: Weights) -> Fraction:
    """Every histogram with names of classes, every replaced ballot, every class."""
    pmfs = {h: weights(h) for h in compositions(voters, classes)}
    return max(
        Fraction(p) / Fraction(q)
        for h, pmf in pmfs.items()
        for other in neighbours(h)
        for p, q in zip(pmf, pmfs[other], strict=True)
    )


@pytest.mark.parametrize(("voters", "classes"), [(1, 2), (2, 3), (5, 3), (4, 4), (3, 5)])
def test_what_a_table_spends_is_the_largest_over_all_ordered_histograms(
    voters: int, classes: int
) -> None:
    inputs = SortedHistograms(voters, classes)
    drawn = np.random.default_rng(voters).integers(1, 1 << 40, inputs.size)
    table = rounded(inputs, drawn.astype(float))
    expected = largest_ratio(voters, classes, lambda h: table.row(np.array(h)))
    found = least_of_table(table, None, 0.0)
    assert exp_lower(found.lower) <= expected <= exp_upper(found.upper)
    assert found.upper == pytest.approx(math.log(expected), rel=1e-15)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("voters", "classes", "epsilon"), [(7, 3, 0.5), (30, 2, 2.0), (9, 6, 0.01), (14, 10, 0.1)]
)
def test_an_audited_table_is_the_rule_and_private(
    rule: str, voters: int, classes: int, epsilon: float
) -> None:
    step, table = audit_rule(rule, voters, classes, epsilon)  # pyright: ignore[reportArgumentType]
    assert certify_table(table, Guarantee(epsilon)).slack >= 0
    for state in list(SortedHistograms(voters, classes).listed())[:40]:
        weights = table.row(np.array(state))
        for share, weight in zip(RULES[rule](state, step), weights, strict=True):
            relative = Fraction(weight, table.total) / share - 1
            assert abs(relative) < Fraction(epsilon) / (1 << 58)
    # Nothing is left to take: where the spent epsilon is short of epsilon, it is by the search.
    assert least_of_table(table, None, 0.0).upper == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "classes"), [(1, 300), (2, 300), (2, 1000)])
def test_permute_and_flip_over_many_classes(voters: int, classes: int) -> None:
    """Of one class with all ballots: with q = s^-K, int_0^1 (1 - q t)^(C - 1) dt."""
    step, table = audit_rule("permute-and-flip", voters, classes, 1.0)
    q = step**-voters
    exact = (1 - (1 - q) ** classes) / (classes * q)
    assert abs(Fraction(table.weights[0], table.total) / exact - 1) < Fraction(1, 1 << 58)
    others = (1 - exact) / (classes - 1)
    assert abs(Fraction(table.weights[1], table.total) / others - 1) < Fraction(1, 1 << 58)
    assert least_of_table(table, None, 0.0).upper == pytest.approx(1.0, rel=1e-9)


def test_calibrated_steps_are_at_least_the_proved_ones() -> None:
    for rule in ("permute-and-flip", "exponential"):
        step = audit_rule(rule, 10, 3, 0.5)[0]
        assert math.log(step) > 0.25


def test_a_table_with_an_impossible_output_is_private_for_no_epsilon() -> None:
    table = rounded(SortedHistograms(2, 2), np.array([1.0, 0.0, 0.5]))
    assert math.isinf(least_of_table(table, None, 0.0).lower)
    with pytest.raises(NotPrivateError, match="by 0.5"):
        certify_table(table, Guarantee(50.0))


def test_what_is_uniform_spends_nothing() -> None:
    inputs = SortedHistograms(4, 3)
    assert least_of_table(rounded(inputs, np.full(inputs.size, 1 / 3)), None, 0.0).upper < 1e-18


# The failures of the specification: C, K, epsilon, by how much the ladder at e^epsilon spends more.
FAILURES = [
    (7, 25, 0.1, 7.7e-3),
    (8, 27, 0.1, 4.0e-2),
    (9, 22, 0.1, 1.6e-1),
    (10, 14, 0.1, 3.4e-1),
    (10, 14, 0.5, 3.9e-2),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("classes", "voters", "epsilon", "excess"), FAILURES)
def test_the_ladder_fails_from_seven_classes_on(
    classes: int, voters: int, epsilon: float, excess: float
) -> None:
    step, _ = audit_rule("ladder", voters, classes, epsilon)
    assert math.log(step) < epsilon * (1 - excess / 2)


def test_a_ladder_that_is_no_distribution_is_lowered() -> None:
    # In fractions: with fifty classes and a small r the top is left less than nothing.
    step = exp_lower(0.1)
    assert min(ladder((6, 1, *[0] * 48), step)) < 0
    _, table = audit_rule("ladder", 7, 50, 0.1)
    # Its top is a small difference, which floats search a little less finely.
    assert least_of_table(table, None, 0.0).upper == pytest.approx(0.1, rel=1e-6)
