"""A budget holds against whoever looks at every output before asking the next: all of them tried.

The adversary asks the worst mechanism of a guarantee (Kairouz, Oh, Viswanath 2015), looks at its
output, and chooses again, as long as the rule allows it. The least delta for which what it sees is
(E, delta)-DP is found backwards over the tree of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from dpopt import Guarantee
from dpopt.privacy.account import Account
from dpopt.privacy.composed import concentrated, optimal, simple
from dpopt.privacy.ledger import Entry

Path = tuple[Guarantee, ...]
Rule = Callable[[Path], bool]


def entry(guarantee: Guarantee) -> Entry:
    return Entry("", "a count", "d", guarantee)


def adversary(rule: Rule, choices: Sequence[Guarantee], epsilon: float, most: int) -> float:
    """max over all strategies of sum (P - e^epsilon Q)_+ over the outputs of all that was asked."""
    allowed = cache(rule)

    @cache
    def gained(path: Path, p: float, q: float) -> float:
        best = max(0.0, p - math.exp(epsilon) * q)
        for choice in choices if len(path) < most else ():
            if not allowed((*path, choice)):
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
    def allowed(path: Path) -> bool:
        account = Account()
        for guarantee in path:
            account.add(entry(guarantee))
        return account.allowed(budget)

    return allowed


def composed(budget: Guarantee, by: Callable[..., Guarantee | None]) -> Rule:
    """The rule of a ledger that takes a composition of fixed releases for a filter."""

    def allowed(path: Path) -> bool:
        parts = [(guarantee, 1) for guarantee in path]
        sums, found = simple(parts), by(parts, budget.delta)
        within = [g for g in (sums, found) if g is not None and g.delta <= budget.delta]
        return any(g.epsilon <= budget.epsilon for g in within)

    return allowed


BUDGETS = [
    (Guarantee(epsilon, delta), most)
    for epsilon in (0.5, 1.0, 2.0)
    for delta, most in ((0.02, 5), (0.2, 5), (0.5, 5))
]
CHOICES = [Guarantee(0.05), Guarantee(0.25), Guarantee(0.7), Guarantee(1.5)]
LEAKING = [Guarantee(0.25), Guarantee(0.7), Guarantee(0.0, 0.1), Guarantee(0.5, 0.02)]


@pytest.mark.parametrize(("budget", "most"), BUDGETS)
@pytest.mark.parametrize("choices", [CHOICES, LEAKING], ids=["pure", "with deltas"])
def test_no_adversary_leaves_a_budget(
    choices: list[Guarantee], budget: Guarantee, most: int
) -> None:
    rule = filtered(budget)
    assert adversary(rule, choices, budget.epsilon, most) <= budget.delta * (1 + 1e-9)
