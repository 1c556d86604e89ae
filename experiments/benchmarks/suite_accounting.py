"""Benchmarks of accounting: what releases spend together, beside Google's dp-accounting.

The composition of dominating pairs in `dpopt.interop.accounting` is dp-accounting's own, so
nothing of ours stands beside it. These two are ours from end to end, and rounded up: the k-fold
composition of pure mechanisms (Kairouz, Oh, Viswanath 2015), whose worst case is randomised
response, and the epsilon of Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dpopt.plurality import PluralitySetting
from dpopt.votes import Spending
from experiments.benchmarks.spec import LIBRARY, OURS, Answer, Benchmark, Contender
from experiments.majority.renyi import gaussian_epsilon

_EPSILON, _DELTA, _INTERVAL = 0.1, 1e-6, 1e-4
_SIGMAS = (0.5, 50.0)
_DP_ACCOUNTING = ("dp_accounting", "interop")


@dataclass(frozen=True)
class Releases:
    """How many, and what answers for them."""

    count: int
    mechanism: Any


def ballots(count: int) -> Releases:
    """Return the spending of labels of 0.1 each."""
    setting = PluralitySetting(records=5, classes=2, epsilon=_EPSILON)
    return Releases(count, Spending(setting, slack=_DELTA))


def same(count: int) -> Releases:
    """Return the number alone."""
    return Releases(count, None)


def compose(instance: Releases) -> Answer:
    """Return the least epsilon of all together, from integers of 512 bits."""
    spending: Spending = instance.mechanism
    found = spending.compositions(instance.count)
    return Answer(found.get("optimal", found["simple"]).epsilon, note="rounded up")


def _losses() -> Any:  # noqa: ANN401
    from dp_accounting.pld import (  # pyright: ignore[reportMissingImports]
        privacy_loss_distribution,
    )

    return privacy_loss_distribution


def convolve(instance: Releases) -> Answer:
    """Compose the randomised response of dp-accounting, as its constructor makes it."""
    changed = 2.0 / (1.0 + math.exp(_EPSILON))
    one = _losses().from_randomized_response(
        changed, 2, pessimistic_estimate=True, value_discretization_interval=_INTERVAL
    )
    epsilon = one.self_compose(instance.count).get_epsilon_for_delta(_DELTA)
    return Answer(epsilon, note=f"pessimistic, losses in steps of {_INTERVAL:g}")


def convolve_on_the_grid(instance: Releases) -> Answer:
    """Compose two losses that are multiples of dp-accounting's interval: nothing is rounded."""
    right = math.exp(_EPSILON) / (1.0 + math.exp(_EPSILON))
    one = _losses().PrivacyLossDistribution.create_from_rounded_probability(
        {1: right, -1: 1.0 - right}, 0.0, _EPSILON, pessimistic_estimate=True
    )
    epsilon = one.self_compose(instance.count).get_epsilon_for_delta(_DELTA)
    return Answer(epsilon, note="floats; the interval is epsilon itself")


def _mean(epsilon_of: Callable[[float], float], count: int, note: str) -> Answer:
    sigmas = np.geomspace(*_SIGMAS, count) if count > 1 else np.array([1.0])
    return Answer(float(np.mean([epsilon_of(float(sigma)) for sigma in sigmas])), note=note)


def gaussian(instance: Releases) -> Answer:
    """Return the mean epsilon of Gaussian noise of so many sizes."""
    return _mean(lambda sigma: gaussian_epsilon(_DELTA, sigma), instance.count, "rounded up")


def gaussian_in_floats(instance: Releases) -> Answer:
    """Ask dp-accounting for the same."""
    import dp_accounting  # pyright: ignore[reportMissingImports]

    ask = cast(Any, dp_accounting).get_epsilon_gaussian
    return _mean(lambda sigma: ask(sigma, _DELTA), instance.count, "floats")


COMPOSED = Benchmark(
    name="accounting-composed",
    title="Accounting: many pure releases together",
    measures="Finding the least epsilon of k releases together.",
    setting="epsilon = 0.1 each, delta = 1e-6 of all; dp-accounting's own constructor rounds each "
    "loss up to its grid, so its value is larger by up to k steps",
    axis="releases k",
    value="epsilon",
    sizes=(50, 200, 1000, 5000, 19_999),
    contenders=(
        Contender("dpopt, exact", OURS, ballots, compose),
        Contender("dp-accounting", LIBRARY, same, convolve, same=False, needs=_DP_ACCOUNTING),
        Contender(
            "dp-accounting, on its grid", LIBRARY, same, convolve_on_the_grid, needs=_DP_ACCOUNTING
        ),
    ),
    tolerance=1e-8,
    warm_up=50,
)

GAUSSIAN = Benchmark(
    name="accounting-gaussian",
    title="Accounting: Gaussian noise",
    measures="Finding the least epsilon of Gaussian noise of each of so many sizes.",
    setting="delta = 1e-6, sensitivity 1, sigma from 0.5 to 50; both invert the same formula",
    axis="standard deviations",
    value="mean epsilon",
    sizes=(10, 30, 100, 300, 1000),
    contenders=(
        Contender("dpopt", OURS, same, gaussian),
        Contender("dp-accounting", LIBRARY, same, gaussian_in_floats, needs=_DP_ACCOUNTING),
    ),
    tolerance=1e-6,
    warm_up=10,
)

BENCHMARKS = (COMPOSED, GAUSSIAN)
