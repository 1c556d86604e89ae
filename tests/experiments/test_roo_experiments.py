"""Figures and tables of the Reveal-or-Obscure papers, on small configurations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import dpopt
from experiments.roo import bounds_figure, conference, table_one, utility
from experiments.roo.baselines import DataSets
from tests.experiments.comparing import ran

pytestmark = pytest.mark.slow


def test_figure_2_has_the_bounds_of_the_papers() -> None:
    config = bounds_figure.Config(gammas=(0.08,), alphabets=(5,), largest=10_000, points=7)
    for row in ran(bounds_figure.run, config).tables["bounds"].records:
        n, k, e = row["records"], row["categories"], row["epsilon"]
        assert row["laplace"] == pytest.approx(2 * k / (n * e))
        assert row["subrr"] == pytest.approx((k - 1) / (n * e + k - 1))
        assert row["roo"] == pytest.approx((1 - 1 / k) / (1 + n / k * math.expm1(e)))
        assert row["lower"] < row["roo"]
        assert (row["exact"] or 0.0) <= row["binomial"] * (1 + 1e-9)
        assert row["binomial"] <= row["ds_roo"] * (1 + 1e-9) <= row["roo"] * (1 + 2e-9)


def test_the_bias_of_the_conference_figures_is_that_of_drawn_data() -> None:
    pmfs = ran(conference.run, conference.Config(points=7)).tables["pmfs"]
    rng = np.random.default_rng(11)
    sampler = dpopt.design(dpopt.RevealOrObscure(1000, 9, 0.1))
    counts = rng.multinomial(1000, pmfs.column("true"), size=100_000)
    q = np.array([sampler.obscuring(m) for m in range(112)])[counts.min(axis=1)]
    bias = q[:, None] * (1 / 9 - counts / 1000)
    errors = bias.std(axis=0) / math.sqrt(100_000)
    assert np.all(np.abs(bias.mean(axis=0) - pmfs.column("difference")) < 5 * errors)


def test_table_1_is_its_formulas() -> None:
    config = table_one.Config(categories=(3, 10), epsilons=(0.5,), accuracies=(0.1, 0.05))
    for row in ran(table_one.run, config).tables["bounds"].records:
        assert row["exact"] <= row["binomial"] * (1 + 1e-9) <= row["bound_50"] * (1 + 2e-9)
        if row["conditions_41"]:
            assert row["q_at_m_0"] == 0.0
            assert row["first_zero_q"] <= row["m_0_40"]
        # exp(2 m_0^2 / n) is what o(1) stands for.
        omitted = math.exp(2 * row["m_0_40"] ** 2 / row["records"])
        assert row["table_i_leading"] == pytest.approx(row["rate_42"] * omitted, rel=1e-9)


def test_utility_has_the_optimum_below_all() -> None:
    table = ran(utility.run, utility.Config(records=(2, 6, 9))).tables["utility"]
    settings = table.grouped("sampler", "categories", "records")
    assert set(settings) == {(k, n) for k in (3, 4) for n in (2, 6, 9)}
    for (k, n), at in settings.items():
        best, proof = at["optimum"], at["optimum-bound"]
        assert at["lower-bound"]["worst_case"] <= best["worst_case"] * (1 + 1e-8)
        assert best["worst_case"] == pytest.approx(proof["worst_case"], abs=1e-7)
        assert best["mean"] == pytest.approx(proof["mean"], abs=1e-7)
        for name in ("subrr", "roo", "journal-repaired", "exact", "smooth-floor", "laplace"):
            slack = [5 * (at[name][column] or 0.0) for column in ("worst_error", "mean_error")]
            assert at[name]["worst_case"] >= best["worst_case"] - slack[0] - 1e-7
            assert at[name]["mean"] >= best["mean"] - slack[1] - 1e-7
        assert at["exact"]["mean"] <= at["journal-repaired"]["mean"] * (1 + 1e-9)
        assert at["roo"]["worst_case"] == pytest.approx(
            (1 - 1 / k) / (1 + n / k * math.expm1(1.0)), rel=1e-12
        )
        assert 0 < at["laplace"]["worst_error"] < 0.01


def test_data_sets_are_all_of_them() -> None:
    data = DataSets.of(5, 3)
    assert data.weights.sum() == pytest.approx(1.0)
    seen = {tuple(row) for counts in data.counts.tolist() for row in permutations(counts)}
    assert len(seen) == math.comb(7, 2)
    assert {sum(row) for row in seen} == {5}
    for counts, weight in zip(data.counts.tolist(), data.weights, strict=True):
        assert weight == pytest.approx(len(set(permutations(counts))) / 21)
