"""Benchmarks of accounting: what releases spend together, beside Google's dp-accounting.

The composition of dominating pairs in `dpopt.composition` is dp-accounting's own. Ours
from end to end, and rounded up, are the k-fold composition of pure mechanisms (Kairouz, Oh,
Viswanath 2015), whose worst case is randomised response; and the recursion over pairs of
neighbours, beside which the dominating pair of all neighbours allows too much.
"""

from __future__ import annotations

import math
from typing import Any

from dpopt import Majority, Plurality, majority
from dpopt.composition import adaptive_epsilon
from dpopt.privacy.cost import DominatingPair
from dpopt.shape import Design
from dpopt.votes import Spending
from experiments.benchmarks.spec import Answer, Contender, benchmark, same

_EPSILON, _DELTA, _INTERVAL, _LABELS_DELTA = 0.1, 1e-6, 1e-4, 1e-5
_DP_ACCOUNTING = ("dp_accounting", "interop")


def ballots(count: int) -> tuple[Spending, int]:
    """Return the spending of labels of 0.1 each, and how many there are."""
    setting = Plurality(records=5, classes=2, epsilon=_EPSILON)
    return Spending(setting, slack=_DELTA), count


def compose(instance: tuple[Spending, int]) -> Answer:
    """Return the least epsilon of all together, from integers of 512 bits."""
    spending, count = instance
    found = spending.compositions(count)
    return Answer(found.get("optimal", found["simple"]).epsilon, note="rounded up")


def _losses() -> Any:  # noqa: ANN401
    from dp_accounting.pld import (  # pyright: ignore[reportMissingImports]
        privacy_loss_distribution,
    )

    return privacy_loss_distribution


def convolve(count: int) -> Answer:
    """Compose the randomised response of dp-accounting, as its constructor makes it."""
    changed = 2.0 / (1.0 + math.exp(_EPSILON))
    one = _losses().from_randomized_response(
        changed, 2, pessimistic_estimate=True, value_discretization_interval=_INTERVAL
    )
    epsilon = one.self_compose(count).get_epsilon_for_delta(_DELTA)
    return Answer(epsilon, note=f"pessimistic, losses in steps of {_INTERVAL:g}")


def convolve_on_the_grid(count: int) -> Answer:
    """Compose two losses that are multiples of dp-accounting's interval: nothing is rounded."""
    right = math.exp(_EPSILON) / (1.0 + math.exp(_EPSILON))
    one = _losses().PrivacyLossDistribution.create_from_rounded_probability(
        {1: right, -1: 1.0 - right}, 0.0, _EPSILON, pessimistic_estimate=True
    )
    epsilon = one.self_compose(count).get_epsilon_for_delta(_DELTA)
    return Answer(epsilon, note="floats; the interval is epsilon itself")


COMPOSED = benchmark(
    "accounting-composed",
    sizes=(50, 200, 1000, 5000, 19_999),
    contenders=(
        Contender("dpopt, exact", ballots, compose),
        Contender("dp-accounting", same, convolve, same=False, needs=_DP_ACCOUNTING),
        Contender("dp-accounting, on its grid", same, convolve_on_the_grid, needs=_DP_ACCOUNTING),
    ),
    tolerance=1e-8,
    warm_up=50,
)


def bare_majority(count: int) -> tuple[Design, int]:
    """Return the majority itself of 11 voters of epsilon .01, and how many labels there are."""
    return majority.assess(Majority(11, 0.01, 11), [1.0] * 12), count


def adapt(instance: tuple[Design, int]) -> Answer:
    """Return the least epsilon over all pairs of neighbours, chosen after each label."""
    design, count = instance
    spent = adaptive_epsilon(design, count, _LABELS_DELTA, accuracy=1e-3)
    return Answer(spent.upper, note=str(spent.engine))


def hull_of_majority(count: int) -> tuple[DominatingPair, int]:
    """Return the dominating pair of one label, and how many labels there are."""
    design, _ = bare_majority(count)
    return design.setting.dominating(design.table), count


def convolve_hull(instance: tuple[DominatingPair, int]) -> Answer:
    """Compose the dominating pair of all neighbours with dp-accounting."""
    pair, count = instance
    return Answer(
        adaptive_epsilon(pair, count, _LABELS_DELTA).upper, note="one pair for all neighbours"
    )


ADAPTIVE = benchmark(
    "accounting-adaptive",
    sizes=(1, 10, 100, 1000, 10_000),
    contenders=(
        Contender("dpopt", bare_majority, adapt),
        Contender(
            "dominating pair, dp-accounting",
            hull_of_majority,
            convolve_hull,
            same=False,
            needs=_DP_ACCOUNTING,
        ),
    ),
    tolerance=1e-3,
    warm_up=1,
)
