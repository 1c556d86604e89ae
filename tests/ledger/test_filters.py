"""What guarantees spend together, and a budget against whoever looks at every output first.

Compositions are compared with distributions that are written out and added up. The adversary of a
budget asks the worst mechanism of a guarantee (Kairouz, Oh, Viswanath 2015), looks at its output,
and chooses again, as long as the rule allows it. The least delta for which what it sees is
(E, delta)-DP is found backwards over the tree of outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Guarantee, ParameterError
from dpopt.privacy.guarantee import (
    MOST_FOLDS,
    allowed,
    concentrated_bound,
    optimal_composition,
    room,
    simple,
)

Path = tuple[Guarantee, ...]
Rule = Callable[[Path], bool]


def adversary(rule: Rule, choices: Sequence[Guarantee], epsilon: float, most: int) -> float:
    """max over all strategies of sum (P - e^epsilon Q)_+ over the outputs of all that was asked."""
    may = cache(rule)

    @cache
    def gained(path: Path, p: float, q: float) -> float:
        best = max(0.0, p - math.exp(epsilon) * q)
        for choice in choices if len(path) < most else ():
            if not may((*path, choice)):
                continue
            right = (1 - choice.delta) / (1 + math.exp(-choice.epsilon))
            wrong = (1 - choice.delta) - right
            # The truth under P is told with probability delta; under Q it never is.
            told = p * choice.delta
            later = (*path, choice)
            found = told + gained(later, p * right, q * wrong) + gained(later, p * wrong, q * right)
            best = max(best, found)
        return best

    return gained((), 1.0, 1.0)


def filtered(budget: Guarantee) -> Rule:
    return lambda path: allowed([(guarantee, 1) for guarantee in path], budget)


BUDGETS = [
    (Guarantee(epsilon, delta), most)
    for epsilon in (0.5, 1.0, 2.0)
    for delta, most in ((0.02, 5), (0.2, 5), (0.5, 5))
]
CHOICES = [Guarantee(0.05), Guarantee(0.25), Guarantee(0.7), Guarantee(1.5)]
LEAKING = [Guarantee(0.25), Guarantee(0.7), Guarantee(0.0, 0.1), Guarantee(0.5, 0.02)]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("budget", "most"), BUDGETS)
@pytest.mark.parametrize("choices", [CHOICES, LEAKING], ids=["pure", "with deltas"])
def test_no_adversary_leaves_a_budget(
    choices: list[Guarantee], budget: Guarantee, most: int
) -> None:
    rule = filtered(budget)
    assert adversary(rule, choices, budget.epsilon, most) <= budget.delta * (1 + 1e-9)


def test_a_slack_that_depends_on_outputs_is_no_filter() -> None:
    """Who is near the limit goes on; who is not takes the whole delta instead."""
    budget, choices = Guarantee(3.0, 0.05), [Guarantee(0.3), Guarantee(0.0, 0.05)]

    def wrongly(path: Path) -> bool:
        slack = Fraction(0.05) - sum(Fraction(guarantee.delta) for guarantee in path)
        if slack < 0 or sum(guarantee.epsilon for guarantee in path) <= 3.0:
            return slack >= 0
        squares = sum(Fraction(guarantee.epsilon) ** 2 for guarantee in path)
        return slack > 0 and concentrated_bound(Fraction(squares), slack) <= 3.0

    assert adversary(wrongly, choices, 3.0, 12) > 0.0503
    assert adversary(filtered(budget), choices, 3.0, 12) <= 0.05


def test_what_is_left_is_allowed_and_no_more() -> None:
    for spent in ([], [Guarantee(0.3)] * 4, [Guarantee(0.1)] * 40, [Guarantee(0.3, 0.004)]):
        for budget in (Guarantee(1.5), Guarantee(2.0, 1e-6), Guarantee(3.0, 0.01)):
            rule, before = filtered(budget), tuple(spent)
            left = room([(guarantee, 1) for guarantee in spent], budget)
            assert rule((*before, Guarantee(left))) or left == 0.0
            assert not rule((*before, Guarantee(math.nextafter(left, math.inf))))


def test_a_first_entry_may_take_the_whole_delta() -> None:
    """Nothing was seen before it; then simple composition alone is left."""
    rule = filtered(Guarantee(1.0, 0.1))
    whole, half = Guarantee(1.0, 0.1), Guarantee(0.5, 0.06)
    assert rule((whole,))
    assert rule((half, Guarantee(0.25, 0.04), Guarantee(0.25)))
    assert not rule((half, Guarantee(0.25), Guarantee(0.25, 0.05)))
    # After another first entry, half of it is kept for concentrated composition.
    assert not rule((Guarantee(0.1), half))
    assert rule((Guarantee(0.1), Guarantee(0.5, 0.05)))
    many = (Guarantee(0.01),) * 200
    assert rule(many)
    assert not rule((Guarantee(0.01, 0.06), *many))


Pairs = list[tuple[float, float]]


def response(guarantee: Guarantee) -> Pairs:
    """The worst mechanism of a guarantee: P and Q of each of its four outcomes."""
    right = (1 - guarantee.delta) * math.exp(guarantee.epsilon) / (1 + math.exp(guarantee.epsilon))
    wrong = (1 - guarantee.delta) / (1 + math.exp(guarantee.epsilon))
    return [(guarantee.delta, 0.0), (right, wrong), (wrong, right), (0.0, guarantee.delta)]


def spent_delta(voters: list[Pairs], epsilon: float) -> float:
    """sum (P - e^epsilon Q)_+ over all tuples of outcomes."""
    total = 0.0
    for outcome in itertools.product(*voters):
        p = math.prod(pair[0] for pair in outcome)
        q = math.prod(pair[1] for pair in outcome)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


GUARANTEES = st.builds(
    Guarantee,
    st.sampled_from([0.0, 0.1, 0.25, 1.0, 2.5]),
    st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
)
DELTAS = st.sampled_from([1e-4, 0.02, 0.5, 0.7])


@settings(deadline=None, max_examples=60)
@given(GUARANTEES, st.integers(1, 5), DELTAS)
def test_optimal_composition_is_that_of_all_outcomes(each: Guarantee, k: int, d: float) -> None:
    found = optimal_composition(each, k, d)
    if found is None:
        assert d < 1 - (1 - each.delta) ** k + 1e-12
        return
    voters = [response(each)] * k
    assert spent_delta(voters, found.epsilon) <= d * (1 + 1e-9)
    if found.epsilon > 0:
        # No smaller epsilon would do, up to the steps of floats.
        assert spent_delta(voters, found.epsilon * (1 - 1e-9) - 1e-12) >= d * (1 - 1e-7)


@settings(deadline=None, max_examples=40)
@given(st.lists(GUARANTEES, min_size=1, max_size=5), DELTAS)
def test_simple_and_concentrated_hold_for_the_worst_mechanisms(
    several: list[Guarantee], d: float
) -> None:
    voters, sums = list(map(response, several)), simple([(each, 1) for each in several])
    if sums is not None:
        assert spent_delta(voters, sums.epsilon) <= sums.delta * (1 + 1e-9) + 1e-15
    slack = Fraction(d) - sum(Fraction(each.delta) for each in several)
    if slack > 0:
        squares = sum((Fraction(each.epsilon) ** 2 for each in several), Fraction(0))
        epsilon = concentrated_bound(squares, slack)
        assert spent_delta(voters, epsilon) <= d * (1 + 1e-9)


def test_concentrated_composition_is_its_formula_and_no_less_than_the_optimum() -> None:
    rho, slack = 30 * 0.01 / 2, 1e-6
    found = concentrated_bound(30 * Fraction(0.1) ** 2, Fraction(slack))
    by_hand = rho + 2 * math.sqrt(rho * math.log(1 / slack))
    assert math.isclose(found, by_hand, rel_tol=1e-12)
    best = optimal_composition(Guarantee(0.1), 30, slack)
    assert best is not None
    assert best.epsilon <= found


def test_optimal_composition_of_many_is_the_closed_form() -> None:
    """Theorem 3.3 for k equal ones: a sum of binomials, here as integers over (1 + e)^k."""
    k, ratio, delta = 40, Fraction(5, 4), Fraction(1, 1000)
    epsilon = math.log(1.25)
    found = optimal_composition(Guarantee(epsilon), k, float(delta))
    assert found is not None

    def excess(step: int) -> Fraction:
        total = sum(
            math.comb(k, i) * (ratio ** (k - i) - ratio ** (k - 2 * step + i)) for i in range(step)
        )
        return total / (1 + ratio) ** k

    # epsilon' = (k - 2 i) epsilon are the theorem's; between two of them delta falls.
    above = [step for step in range(k // 2 + 1) if excess(step) <= delta]
    assert (k - 2 * max(above)) * epsilon >= found.epsilon
    assert found.epsilon >= (k - 2 * (max(above) + 1)) * epsilon


def test_what_is_not_known_and_what_is_refused() -> None:
    assert optimal_composition(Guarantee(0.1), MOST_FOLDS, 1e-6) is None
    assert optimal_composition(Guarantee(101.0), 2, 1e-6) is None
    assert optimal_composition(Guarantee(0.1, 0.1), 2, 0.0) is None
    assert optimal_composition(Guarantee(0.25), 3, 0.0) == Guarantee(0.75)
    for wrong in (1.0, 1e-301, -0.1):
        with pytest.raises(ParameterError, match="delta is"):
            optimal_composition(Guarantee(0.1), 2, wrong)
