"""A budget holds against whoever looks at every output before asking the next: all of them tried.

The adversary asks the worst mechanism of a guarantee (Kairouz, Oh, Viswanath 2015), looks at its
output, and chooses again, as long as the rule allows it. The least delta for which what it sees is
(E, delta)-DP is found backwards over the tree of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import pytest

from dpopt import Guarantee
from dpopt.privacy.guarantee import allowed, concentrated_bound, room

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
