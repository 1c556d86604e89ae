"""Figures on quantised SGD, on small configurations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from dpopt import smoothed
from experiments.registry import Outcome
from experiments.smoothed import sgd, sgd_bias, sgd_estimates
from experiments.smoothed.gradients import QuantisedGradient
from experiments.smoothed.sgd_bias import databases

SETS = sgd._FIGURE_5[2:]
SMALL: Any = sgd.Config(
    batches=(3, 4),
    epsilons=(0.5, 2.0),
    shares=(0.0, 0.5, 1.0),
    databases=5,
)
SMALL_BIAS = sgd_bias.Config(
    records=60, drawn=6, epsilons=(0.5, 1.0, 3.0), draws=(10**4, 10**5, 10**6), estimates=6
)

SMALL_ESTIMATES = sgd_estimates.Config(
    batches=(4, 6), epsilons=(0.5, 2.0), databases=2, draws=10**5
)


def records(outcome: Outcome, name: str) -> list[dict]:
    return outcome.tables[name].records


@pytest.fixture(scope="module")
def figure() -> Outcome:
    return sgd.run(SETS, SMALL)


@pytest.fixture(scope="module")
def estimates() -> Outcome:
    return sgd_estimates.run(SMALL_ESTIMATES)


@pytest.fixture(scope="module")
def bias() -> Outcome:
    return sgd_bias.run(SMALL_BIAS)


def test_averages_are_those_of_the_sampled_databases(figure: Outcome) -> None:
    setting, drawn, first = SETS[1], 4, 8
    rng = np.random.default_rng([SMALL.seed, 1, drawn, first])
    deltas = [
        smoothed.sgd_profile(setting.sample((first, 8), rng), drawn, 2.0).delta[0]
        for _ in range(SMALL.databases)
    ]
    (row,) = (
        r
        for r in records(figure, "compositions")
        if (r["setting"], r["drawn"], r["from_first"], r["epsilon"]) == (setting.label, 4, 8, 2.0)
    )
    assert 10 ** row["log10_delta"] == pytest.approx(np.mean(deltas), rel=1e-12)
    assert row["share_of_largest"] == pytest.approx(max(deltas) / sum(deltas))
    quantile = scipy.stats.t.isf(0.01 / 3 / 2, SMALL.databases - 1)
    width = quantile * scipy.stats.sem(deltas) / np.mean(deltas)
    for name, sign in (("log10_lower", -1), ("log10_upper", 1)):
        expected = math.log10(np.mean(deltas)) + sign * width / math.log(10)
        assert row[name] == pytest.approx(expected, abs=1e-10)


def test_the_figure_takes_the_largest_composition(figure: Outcome) -> None:
    averages = records(figure, "compositions")
    largest = records(figure, "smoothed")
    assert len(averages) == 2 * 2 * 2 * 3
    assert len(largest) == 2 * 2 * 2
    for row in largest:
        names = ("setting", "records", "epsilon")
        part = [r for r in averages if all(r[name] == row[name] for name in names)]
        assert len(part) == 3
        assert row["log10_delta"] == max(r["log10_delta"] for r in part)
        assert row["dp_delta"] == row["drawn"] / row["records"] == 1 / row["drawn"]
        assert row["log10_lower"] <= row["log10_delta"] <= row["log10_upper"] + 1e-12
        assert row["log10_upper"] <= math.log10(row["dp_delta"])


def test_fits_go_through_two_sizes(figure: Outcome) -> None:
    for fit in records(figure, "fits"):
        for row in records(figure, "smoothed"):
            if (row["setting"], row["epsilon"]) == (fit["setting"], fit["epsilon"]):
                line = (fit["a"] + fit["b"] * row[fit["variable"]]) / math.log(10)
                assert line == pytest.approx(row["log10_delta"], abs=1e-10)


def test_estimates_are_compared_with_exact_values(bias: Outcome) -> None:
    found = databases(SMALL_BIAS.records, SMALL_BIAS.seed)
    rows = records(bias, "estimates")
    assert len(rows) == 2 * 3 * 3
    for row in rows:
        exact = smoothed.sgd_profile(found[row["database"]], 6, row["epsilon"]).delta[0]
        assert row["delta"] == pytest.approx(exact, rel=1e-12)
        assert row["least_factor"] <= row["factor"] <= row["largest_factor"]
    formula = {(r["epsilon"], r["draws"]): r["factor"] for r in rows if r["database"] == "formula"}
    assert formula[3.0, 10**4] > 5 * formula[3.0, 10**5] > 25
    assert formula[3.0, 10**5] > formula[1.0, 10**5]


def test_heuristic_neighbours_miss_the_largest_delta_on_two_values(bias: Outcome) -> None:
    rows = records(bias, "neighbours")
    assert all(row["heuristic"] <= row["delta"] * (1 + 1e-12) for row in rows)
    for row in rows:
        if row["database"] == "-127, 128":
            assert row["delta"] == pytest.approx(6 / 60, rel=1e-12)
            assert row["heuristic"] < 0.01
        if row["database"] in ("formula", "N(0, .12²)"):
            assert row["delta"] == pytest.approx(row["heuristic"], rel=1e-12)


def test_estimates_and_their_intervals(estimates: Outcome) -> None:
    config = SMALL_ESTIMATES
    rng = np.random.default_rng([config.seed, 6])
    values = QuantisedGradient(0.2, 0.12).sample(36, rng)
    rows = records(estimates, "estimates")
    assert len(rows) == 2 * 2
    (row,) = (r for r in rows if (r["drawn"], r["epsilon"]) == (6, 0.5))
    first = smoothed.sgd_profile(values, 6, 0.5).delta[0]
    assert 0.2 * first < row["exact"] < row["dp_delta"] == 1 / 6
    for each in rows:
        assert each["lower"] <= each["estimate"] <= each["upper"]
        assert each["covers"] == (each["lower"] <= each["exact"] <= each["upper"])


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
