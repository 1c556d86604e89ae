"""The private plurality: optima from elsewhere, every corner of every voter, data, two classes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import Multiclass, NotPrivateError, ParameterError, verify
from dpopt.multiclass.corners import Pricing, configurations, histograms
from dpopt.multiclass.setting import sampled_plurality
from dpopt.privacy.exact import exp_lower
from tests.multiclass.brute import choices, corner_pairs, largest_excess, told, weights_of

# From a program of other code, which priced one configuration after the other.
ERRORS = {
    Multiclass(5, 3, 0.1, 1.0): 0.257142857143,
    Multiclass(7, 3, 0.1, 3.0): 0.026147348370,
    Multiclass(11, 3, 0.1, 1.0): 0.309325150854,
    Multiclass(11, 3, 0.1, 3.0): 0.060088649761,
    Multiclass(11, 3, 0.5, 3.0): 0.051154700960,
    Multiclass(9, 3, 0.3, 2.0): 0.125918660794,
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("setting", "error"), ERRORS.items(), ids=repr)
def test_optima_known_from_elsewhere(setting: Multiclass, error: float) -> None:
    found = dpopt.design(setting)
    assert found.value == pytest.approx(error, abs=1e-11)
    assert found.private
    assert found.gap is not None
    assert abs(found.gap) < 1e-10
    assert found.certificate is not None
    assert found.certificate.slack < Fraction(1, 10**9)


SMALL = [
    *((2, 3, 0.3, 1.0), (3, 3, 0.5, 1.0), (3, 3, 0.5, 1.7), (4, 3, 0.2, 2.0)),
    *((4, 3, 1.5, 1.0), (2, 4, 0.4, 1.0), (3, 4, 0.7, 1.0), (3, 4, 0.1, 2.0)),
    *((5, 2, 0.4, 2.0), (4, 2, 0.4, 1.0), (2, 5, 0.3, 1.5), (1, 3, 0.5, 0.5)),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("setting", [Multiclass(*numbers) for numbers in SMALL], ids=repr)
def test_every_corner_of_every_voter_decides_the_same(setting: Multiclass) -> None:
    """The largest f over all choices, in order, is the certificate's, up to its rounding."""
    found, epsilon = dpopt.design(setting), setting.epsilon
    worst = largest_excess(found.table, epsilon, Fraction(setting.allowance) * Fraction(epsilon))
    assert found.certificate is not None
    assert worst <= 0
    assert -Fraction(1, 1 << 115) <= worst + found.certificate.slack <= 0


@pytest.mark.parametrize(("voters", "classes"), [(3, 3), (3, 4), (4, 2)])
def test_every_set_of_outputs_for_delta(voters: int, classes: int) -> None:
    found = dpopt.design(dpopt.Multiclass(voters, classes, 0.4, 1.0, delta=1e-4))
    worst = largest_excess(found.table, 0.4, Fraction(0.4), sets=True)
    assert worst <= Fraction(1e-4)
    assert worst == pytest.approx(1e-4, abs=1e-12)
    assert found.value < dpopt.design(dpopt.Multiclass(voters, classes, 0.4, 1.0)).value


@pytest.mark.parametrize(
    ("voters", "epsilon", "allowance"),
    [(5, 0.1, 1.0), (11, 0.1, 3.0), (15, 0.3, 4.0), (9, 1.0, 2.0)],
)
def test_two_classes_are_a_majority(voters: int, epsilon: float, allowance: float) -> None:
    """With every histogram equally likely, error = (1 - mean gamma) / 2 over the upper half.

    Here the best kernel never prefers the minority, so that DaRRM's form loses nothing.
    """
    found = dpopt.design(dpopt.Multiclass(voters, 2, epsilon, allowance))
    middle = (voters + 1) // 2
    other = dpopt.design(dpopt.Majority(voters, epsilon, allowance, coefficients=(1.0,) * middle))
    assert found.value == pytest.approx((1 - other.value / middle) / 2, abs=1e-9)
    signed = 2 * found.kernel[0::2] - 1
    assert signed.min() > -1e-9
    assert np.sum(signed) == pytest.approx(np.sum(other.gamma[middle:]), abs=1e-8)


def test_a_kernel_that_answers_the_minority_can_be_better() -> None:
    """DaRRM's form, a majority or a coin, is a loss here; judged over all multisets of corners."""
    found = dpopt.design(dpopt.Multiclass(9, 2, 0.1, 1))
    other = dpopt.design(dpopt.Majority(9, 0.1, 1, coefficients=(1.0,) * 5))
    assert found.value == pytest.approx(0.182619923, abs=1e-9)
    assert (1 - other.value / 5) / 2 == pytest.approx(0.189097013, abs=1e-9)
    assert found.kernel[0::2].min() < 0.35
    known = weights_of(found.table)
    budget, worst = exp_lower(Fraction(0.1)), Fraction(-1)
    for chosen in combinations_with_replacement(corner_pairs(2, 0.1), 9):
        one, other_side = (told(known, [pair[side] for pair in chosen]) for side in (0, 1))
        scaled = [p - budget * q for p, q in zip(one, other_side, strict=True)]
        worst = max(worst, max(scaled) / sum(one))
    assert found.certificate is not None
    assert -found.certificate.slack - Fraction(1, 1 << 115) <= worst <= -found.certificate.slack


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "classes"), [(4, 3), (5, 3), (3, 4), (1, 5), (6, 2)])
def test_the_walk_holds_every_configuration_once(voters: int, classes: int) -> None:
    """By brute force: no circle of three, and opposite ones are turned around."""
    found = configurations(voters, classes)
    listed, total, count = set(), 0, 0
    for edges, (signed, _) in enumerate(found.levels):
        assert np.all(np.abs(signed).sum(axis=1) == edges)
        both = np.concatenate([signed, -signed]) if edges else signed
        listed |= set(map(tuple, both.tolist()))
        count += len(both)
        total += len(both) * len(histograms(voters - edges, classes))
    known = set()
    for signed in product(range(-voters, voters + 1), repeat=len(found.pairs)):
        arrows = {
            pair[:: 1 if n > 0 else -1] for pair, n in zip(found.pairs, signed, strict=True) if n
        }
        if sum(map(abs, signed)) <= voters and not any(
            {(y, z), (z, w), (w, y)} <= arrows for y, z, w in permutations(range(classes), 3)
        ):
            known.add(signed)
    assert listed == known
    assert count == len(known)
    assert total <= verify.corner_count(voters, classes)


def test_rows_are_the_prices() -> None:
    """Row @ kernel is f, for the configuration that pricing finds; also of sets of outputs."""
    rng = np.random.default_rng(8)
    for sizes in [(6, 3, 0.3, 2.0, 0.0), (4, 4, 0.5, 1.0, 0.01)]:
        pricing = Pricing(*sizes)
        for _ in range(5):
            kernel = rng.random(pricing.inputs.size) ** 8
            worst, (_, outputs, *ends) = pricing.price(kernel)
            assert worst > 1e-3
            row = pricing.rows(outputs, *(np.array([end]) for end in ends))[0]
            assert row @ kernel == pytest.approx(worst, abs=1e-12)
            cut = pricing(kernel)
            values = cut.rows.matrix @ kernel - cut.rows.upper
            assert values.min() > 0
            if sizes[4] == 0.0:
                assert values.max() == pytest.approx(cut.worst, rel=1e-9)


@pytest.mark.nightly
@pytest.mark.slow
def test_edges_between_other_classes_are_needed() -> None:
    """Without rows of voters on edges between classes 2 and 3, the optimum is not private."""
    setting = Multiclass(11, 3, 0.1, 3)
    pricing, problem = setting.pricing, setting.problem()
    rows = [
        row
        for edges, (level, _) in enumerate(configurations(11, 3).levels)
        for signed in level[level[:, 2] == 0]
        for loops in histograms(11 - edges, 3)
        for sign in (1, -1)
        for row in pricing.rows(1, sign * signed[None], loops[None])
    ]
    model = problem.assemble()
    sums = model.rows.matrix
    found = linprog(
        model.cost,
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        bounds=(0, 1),
    )
    assert found.fun == pytest.approx(0.0441, abs=5e-5)
    assert pricing.price(found.x)[0] == pytest.approx(9.3e-3, abs=5e-5)


@pytest.mark.parametrize(("sizes", "expected"), [((11, 0.1, 3.0), 0.1165), ((7, 0.1, 3.0), 0.0610)])
def test_the_ladder_uses_its_budget(sizes: tuple[int, float, float], expected: float) -> None:
    voters, epsilon, allowance = sizes
    found = dpopt.design(dpopt.Multiclass(voters, 3, epsilon, allowance, rule="ladder"))
    assert found.value == pytest.approx(expected, abs=5e-5)
    assert found.bound is None
    spent = found.setting.spent(found.table, None, 0.0)
    assert spent.upper == pytest.approx(allowance * epsilon, rel=1e-6)
    assert found.value > dpopt.design(dpopt.Multiclass(voters, 3, epsilon, allowance)).value


def test_samples_of_the_voters() -> None:
    """As many as the theorem of the subsampling module says, told by its own walk in fractions."""
    for allowance, sample in ((1.0, 2), (3.0, 5), (2.3, 4), (2.0, 3)):
        found = dpopt.design(dpopt.Multiclass(11, 3, 0.1, allowance, rule="subsampling"))
        exact = sampled_plurality(found.setting.domain, sample)
        assert found.kernel == pytest.approx([float(share) for share in exact], abs=1e-12)
        assert found.private
    assert dpopt.design(dpopt.Multiclass(11, 3, 0.1, 3, rule="subsampling")).value == pytest.approx(
        0.1655, abs=5e-5
    )
    with pytest.raises(ParameterError, match="at least 1"):
        dpopt.design(dpopt.Multiclass(5, 3, 0.1, 0.9, rule="subsampling"))


def test_the_least_epsilon_is_enclosed() -> None:
    """Of a kernel whose worst voters are found by brute force, in fractions."""
    found = dpopt.design(dpopt.Multiclass(3, 3, 0.5, 1.3))
    least = found.setting.spent(found.table, None, 0.0)
    sides = choices(found.table, 0.5)
    largest = max(Fraction(p, q) for one, other in sides for p, q in zip(one, other, strict=True))
    assert least.lower <= least.upper <= 0.65 * (1 + 1e-12)
    assert least.lower * (1 - 1e-14) <= math.log(largest) <= least.upper * (1 + 1e-14)
    with pytest.raises(ParameterError, match="delta"):
        found.setting.spent(found.table, None, 0.1)


def test_many_classes_by_the_bound() -> None:
    found = dpopt.design(dpopt.Multiclass(11, 10, 0.1, 3, rule="permute-and-flip"))
    assert found.private
    assert found.certificate is not None
    assert "private in each vote" in found.certificate.claim
    shifted = dpopt.design(dpopt.Multiclass(11, 3, 0.1, 3, voter_delta=1e-5, rule="ladder"))
    # The value of the ladder by the bound alone, told in the specification of the rule.
    assert shifted.value == pytest.approx(0.2271, abs=5e-5)


def test_prices_are_of_voters_without_a_delta() -> None:
    with pytest.raises(ParameterError, match=r"^voter_delta is 0\.01; it must be 0"):
        assert Multiclass(3, 3, 0.1, 1.0, voter_delta=0.01, rule="ladder").pricing


def test_integers_of_another_setting_are_judged_anew() -> None:
    found = dpopt.design(dpopt.Multiclass(5, 3, 0.5, 2))
    with pytest.raises(NotPrivateError):
        replace(found.setting, epsilon=0.4).judge(found.table)
    assert found.setting.judge(found.table).constraints == 777
    with pytest.raises(ParameterError):
        Multiclass(5, 4, 0.5, 2).judge(found.table)


def test_the_largest_loss_is_the_budget() -> None:
    """The dominating pair, from all sets of outputs, against the ratio of single ones."""
    found = dpopt.design(dpopt.Multiclass(7, 3, 0.2, 2))
    pair = found.setting.dominating(found.table)
    spent = found.setting.spent(found.table, None, 0.0)
    assert pair.largest_loss == pytest.approx(spent.upper, rel=1e-12)
    assert pair.largest_loss <= 0.4 * (1 + 1e-12)
    assert 0 < pair.delta(0.2) < 0.1
    assert dpopt.design(found.setting).value == found.value


@pytest.mark.parametrize("rule", ["ladder", "permute-and-flip", "exponential"])
def test_many_voters_over_two_classes_have_rules_by_the_bound(rule: Any) -> None:
    """No walk over configurations whose integers grow with the voters."""
    design = dpopt.design(dpopt.Multiclass(1_000, 2, 0.1, 3, rule=rule))
    assert design.private
    assert not design.setting.exact
    with pytest.raises(ParameterError, match="1,000 levels, and at most 300 are priced: take rule"):
        dpopt.design(dpopt.Multiclass(1_000, 2, 0.1, 3, rule="optimal"))
