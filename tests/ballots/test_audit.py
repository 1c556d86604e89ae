"""What tables spend and the audited rules, against enumeration of ordered histograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from dpopt import NotPrivateError, ParameterError
from dpopt.ballots import (
    Partitions,
    audit_rule,
    checked,
    exponential,
    flat,
    law,
    permute_and_flip,
    quantised,
    scale,
    worst,
)
from dpopt.privacy.exponential import exp_lower
from experiments.ensembles.ladder import ladder

Weights = Callable[[tuple[int, ...]], Sequence[Fraction | int]]
RULES = {"ladder": ladder, "permute-and-flip": permute_and_flip, "exponential": exponential}


def largest_ratio(voters: int, classes: int, weights: Weights) -> Fraction:
    """Every histogram with names of classes, every replaced ballot, every class."""
    known = {h: weights(h) for h in product(range(voters + 1), repeat=classes) if sum(h) == voters}
    found = Fraction(0)
    for h, before in known.items():
        for a, b in permutations(range(classes), 2):
            moved = tuple(c - (x == a) + (x == b) for x, c in enumerate(h))
            if h[a]:
                pairs = zip(before, known[moved], strict=True)
                found = max(found, *(Fraction(p) / Fraction(q) for p, q in pairs))
    return found


@pytest.mark.parametrize(("voters", "classes"), [(1, 2), (2, 3), (5, 3), (4, 4), (3, 5)])
def test_spent_ratio_is_the_largest_over_all_ordered_histograms(voters: int, classes: int) -> None:
    partitions = Partitions(voters, classes)
    drawn = np.random.default_rng(voters).integers(1, 1 << 40, partitions.size)
    units = quantised(partitions, drawn / (drawn * partitions.multiplicities).sum())
    expected = largest_ratio(voters, classes, lambda h: law(partitions, units, h))
    assert worst(partitions, units).ratio == expected
    found = worst(partitions, units)
    changes = [q - p for p, q in zip(found.first, found.second, strict=True)]
    assert sorted(changes) == [-1, *[0] * (classes - 2), 1]
    pair = (law(partitions, units, h)[found.place] for h in (found.first, found.second))
    assert Fraction(*pair) == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("voters", "classes", "epsilon"), [(7, 3, 0.5), (30, 2, 2.0), (9, 6, 0.01), (14, 10, 0.1)]
)
def test_an_audited_table_is_the_rule_and_private(
    rule: str, voters: int, classes: int, epsilon: float
) -> None:
    made = audit_rule(rule, voters, classes, epsilon)  # pyright: ignore[reportArgumentType]
    partitions = Partitions(voters, classes)
    assert checked(partitions, made.units, made.bits) == made.units
    assert made.spent.ratio == worst(partitions, made.units).ratio <= exp_lower(epsilon)
    for state in partitions.states[:40]:
        weights = law(partitions, made.units, state)
        for share, weight in zip(RULES[rule](state, made.step), weights, strict=True):
            relative = Fraction(weight, scale(classes, made.bits)) / share - 1
            assert abs(relative) < Fraction(epsilon) / (1 << 58)
    # Nothing is left to take: where the spent epsilon is short of epsilon, it is by the search.
    assert math.log(made.spent.ratio) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("voters", "classes"), [(1, 300), (2, 300), (2, 1000)])
def test_permute_and_flip_over_many_classes(voters: int, classes: int) -> None:
    """Of one class with all ballots: with q = s^-K, int_0^1 (1 - q t)^(C - 1) dt."""
    made = audit_rule("permute-and-flip", voters, classes, 1.0)
    q = made.step**-voters
    exact = (1 - (1 - q) ** classes) / (classes * q)
    row, whole = made.units[0], scale(classes, made.bits)
    assert abs(Fraction(row[0], whole) / exact - 1) < Fraction(1, 1 << 58)
    others = (1 - exact) / (classes - 1)
    assert abs(Fraction(row[1], whole) / others - 1) < Fraction(1, 1 << 58)
    assert math.log(made.spent.ratio) == pytest.approx(1.0, rel=1e-9)


def test_calibrated_steps_are_at_least_the_proved_ones() -> None:
    for rule in ("permute-and-flip", "exponential"):
        step = audit_rule(rule, 10, 3, 0.5).step
        assert math.log(step) > 0.25


def test_a_table_with_an_impossible_output_is_refused() -> None:
    partitions = Partitions(2, 2)
    with pytest.raises(NotPrivateError, match="private for no epsilon"):
        worst(partitions, quantised(partitions, [1.0, 0.0, 0.5]))


def test_audits_refuse_what_cannot_be_listed() -> None:
    with pytest.raises(ParameterError, match=r"all [\d,]+ sorted histograms of 252 ballots"):
        audit_rule("ladder", 252, 10, 0.5)
    with pytest.raises(ParameterError, match="epsilon is 0"):
        audit_rule("ladder", 5, 3, 0.0)
    with pytest.raises(ParameterError, match="rule is 'laplace'"):
        audit_rule("laplace", 5, 3, 1.0)  # pyright: ignore[reportArgumentType]


def test_spent_ratio_of_one_where_all_is_uniform() -> None:
    partitions = Partitions(4, 3)
    units = quantised(partitions, np.full(partitions.size, 1 / 3))
    assert worst(partitions, units).ratio == 1
    assert np.ptp(flat(partitions, units)) == 0


# The failures of the specification: C, K, epsilon, by how much the ladder at e^epsilon spends more.
FAILURES = [
    (7, 25, 0.1, 7.7e-3),
    (8, 27, 0.1, 4.0e-2),
    (9, 22, 0.1, 1.6e-1),
    (10, 14, 0.1, 3.4e-1),
    (10, 14, 0.5, 3.9e-2),
]


@pytest.mark.parametrize(("classes", "voters", "epsilon", "excess"), FAILURES)
def test_the_ladder_fails_from_seven_classes_on(
    classes: int, voters: int, epsilon: float, excess: float
) -> None:
    made = audit_rule("ladder", voters, classes, epsilon)
    assert math.log(made.step) < epsilon * (1 - excess / 2)


def test_a_ladder_that_is_no_law_is_lowered() -> None:
    # In fractions: with fifty classes and a small r the top is left less than nothing.
    step = exp_lower(0.1)
    assert min(ladder((6, 1, *[0] * 48), step)) < 0
    made = audit_rule("ladder", 7, 50, 0.1)
    assert made.spent.ratio <= exp_lower(0.1)
    # Its top is a small difference, which floats search a little less finely.
    assert math.log(made.spent.ratio) == pytest.approx(0.1, rel=1e-6)
