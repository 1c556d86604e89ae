"""Figures on quantised SGD, on small configurations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from dpopt import smoothed
from experiments.smoothed import sgd, sgd_estimates

SETS = sgd._FIGURE_5[2:]
SMALL: Any = sgd.Config(
    batches=(3, 4),
    epsilons=(0.5, 2.0),
    shares=(0.0, 0.5, 1.0),
    databases=5,
)


def test_averages_are_those_of_the_sampled_databases() -> None:
    setting, drawn, first = SETS[1], 4, 8
    rng = np.random.default_rng([SMALL.seed, 1, drawn, first])
    deltas = [
        smoothed.sgd_profile(setting.sample((first, 8), rng), drawn, 2.0).delta[0]
        for _ in range(SMALL.databases)
    ]
    (row,) = (
        r
        for r in sgd.run(SETS, SMALL).tables["compositions"].records
        if (r["setting"], r["drawn"], r["from_first"], r["epsilon"]) == (setting.label, 4, 8, 2.0)
    )
    assert 10 ** row["log10_delta"] == pytest.approx(np.mean(deltas), rel=1e-12)
    assert row["share_of_largest"] == pytest.approx(max(deltas) / sum(deltas))
    quantile = scipy.stats.t.isf(0.01 / 3 / 2, SMALL.databases - 1)
    width = quantile * scipy.stats.sem(deltas) / np.mean(deltas)
    for name, sign in (("log10_lower", -1), ("log10_upper", 1)):
        expected = math.log10(np.mean(deltas)) + sign * width / math.log(10)
        assert row[name] == pytest.approx(expected, abs=1e-10)


def test_the_interval_is_clopper_and_pearsons() -> None:
    # Beta quantiles, as in their paper; each of two probabilities has half the error.
    low, high = sgd_estimates.interval(3, 50, 0.99)
    assert low == pytest.approx(scipy.stats.beta.ppf(0.0025, 3, 48), rel=1e-9)
    assert high == pytest.approx(scipy.stats.beta.isf(0.0025, 4, 47), rel=1e-9)
    # By hand: 30 against 2 of 100 at the first output, 1 against 0 at the last.
    counts = np.array([[30, 69, 1], [2, 98, 0]])
    found = sgd_estimates.estimate(counts, math.log(2), 100, 0.99)
    (p, q), (r, s) = (sgd_estimates.interval(hits, 100, 0.99) for hits in (31, 2))
    assert found == pytest.approx(((31 - 2 * 2) / 100, max(0.0, p - 2 * s), q - 2 * r))
