"""DaRRM's figures at parameters of a reader's own: they run, and nothing of them is cut or hidden.

Numbers at the papers' parameters are tested elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError, majority
from experiments.majority import figures
from experiments.majority.figures import columns_for, nested
from experiments.majority.words import cases, law_words, under, whole
from experiments.registry import Table
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn

FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8 = figures.EXPERIMENTS
FAST: dict[str, Any] = {"draws": 50, "repeats": 2}


@pytest.mark.parametrize(
    ("experiment", "changed"),
    [
        (FIGURE_2, {}),
        (FIGURE_2, {"mechanisms": 15, "allowance": (1.0, 2.0, 4.0), "prior": "beta:2,2"}),
        (FIGURE_2, {"mechanisms": 3, "allowance": (2.0,), "prior": "point:0.5"}),
        (FIGURE_2, {"mechanisms": 23, "allowance": (0.5, 2.5), "prior": "common-uniform:0,1"}),
        (FIGURE_2, {"mechanisms": 13, "mechanism_delta": 0.0, "delta": 0.01}),
        (FIGURE_2, {"allowance": (1.0, 2.0, 3.0, 4.0, 5.0), "curves": ("surrogate", "constant")}),
        (FIGURE_6, {"mechanisms": 15, "samples": (3, 8)}),
        (FIGURE_6, {"mechanisms": 3, "samples": (1,), "mechanism_delta": 0.0}),
        (FIGURE_7, {}),
        (FIGURE_7, {"mechanisms": 3, "allowance": (1.0, 2.0, 3.0)}),
        (FIGURE_8, {"mechanisms": 51, "allowance": (5.0, 12.5)}),
    ],
)
def test_noise_functions_are_drawn_whole_at_other_parameters(
    experiment: Any, changed: dict[str, Any]
) -> None:
    config = replace(experiment.quick, **FAST, **changed)
    outcome = ran(experiment, config)
    figure = drawn(experiment, outcome)
    panels = figure.get_axes()
    assert len(panels) == len(config.targets) + 1
    assert under(config.prior) in panels[-1].get_ylabel()
    assert all(len(axes.get_lines()) == len(config.drawn) for axes in panels[:-1])


@pytest.mark.parametrize("prior", ["beta:2,2", "uniform:0,0.2,0.4,1", "common-beta:1,3"])
def test_errors_are_those_of_the_prior(prior: str) -> None:
    """The design for a prior has the least expected error under it; samples are drawn from it."""
    config = replace(FIGURE_2.quick, draws=20_000, repeats=3, allowance=(3.0,), prior=prior)
    errors = ran(FIGURE_2, config).tables["errors"]
    assert set(errors.column("prior")) == {prior}
    at = dict(zip(errors.column("curve"), errors.column("expected_error"), strict=True))
    own = majority.design(11, 0.1, 3, mechanism_delta=1e-5, delta=3e-5, prior=prior)
    assert at["expected-error"] == pytest.approx(own.expected_error, rel=1e-3)
    assert at["expected-error"] == min(at.values())
    law = majority.parse_prior(prior).sample((40_000, 11), np.random.default_rng(7))
    for curve, expected in at.items():
        (row,) = errors.select(curve=curve).records
        assert row["sampled_error"] == pytest.approx(expected, rel=0.05, abs=2e-4)
    # Subsampling's error by its definition: votes of the p_i, and of three of them.
    votes = np.random.default_rng(8).random(law.shape) < law
    truth = (votes.sum(axis=1) > 5).mean() - (votes[:, :3].sum(axis=1) > 1).mean()
    assert abs(truth) <= at["subsampling"] + 0.01


def test_subsampling_draws_the_most_voters_within_the_target() -> None:
    config = replace(FIGURE_2.quick, allowance=(0.5, 1.0, 2.5, 7.0))
    assert [target.sample for target in config.targets] == [0, 1, 2, 7]
    assert config.drawn == ("expected-error", "surrogate", "constant")
    # 1 - (1 - 1e-5)^M is at most 3e-5 up to M = 3.
    few = replace(FIGURE_2.quick, allowance=(7.0,), delta=3e-5)
    assert [target.sample for target in few.targets] == [3]
    with pytest.raises(ParameterError, match=r"^allowance is 0.5; it must be at least 1 for"):
        replace(config, curves=("subsampling",))


@pytest.mark.parametrize(
    ("experiment", "changed", "words"),
    [
        (FIGURE_2, {"mechanisms": 4}, "mechanisms is 4; it must be odd"),
        (FIGURE_2, {"mechanisms": 301}, "mechanisms is 301; every constraint"),
        (FIGURE_2, {"allowance": (12.0,)}, r"allowance is 12.0; it must be a number in \(0, 11"),
        (FIGURE_2, {"allowance": ()}, r"allowance is \(\); it must hold at least one"),
        (FIGURE_2, {"allowance": (1.0, 1.0)}, r"allowance is \(1.0, 1.0\); it must hold"),
        (FIGURE_2, {"delta": 1e-9}, "mechanism_delta is 1e-05 and delta"),
        (FIGURE_2, {"prior": "normal:0,1"}, "prior is 'normal:0,1'; it must have"),
        (FIGURE_2, {"prior": "point:0.1,0.2"}, "prior has 2 probabilities; it must have 1 or 11"),
        (FIGURE_2, {"curves": ()}, r"curves is \(\); it must hold"),
        (FIGURE_2, {"curves": ("median",)}, "curves holds 'median'; it must hold some of"),
        (FIGURE_2, {"curves": ("double",)}, "mechanism_delta is 1e-05; it must be 0"),
        (FIGURE_2, {"draws": 0}, "draws is 0; it must be at least 1"),
        (FIGURE_2, {"repeats": 1}, "repeats is 1; it must be at least 2"),
        (FIGURE_6, {"samples": (36,)}, r"samples is \(36,\); it must hold"),
        (FIGURE_6, {"slack": 0.0}, "slack is 0.0; it must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_run(
    experiment: Any, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{words}"):
        replace(experiment.quick, **changed)


def test_panels_leave_few_places_empty_and_curves_lie_within_wider_ones() -> None:
    assert [columns_for(count) for count in range(1, 13)] == [1, 2, 3, 4, 3, 3, 4, 4, 3, 4, 4, 4]
    widths = [nested(place, 5)["linewidth"] for place in range(5)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 5


def test_verdicts_are_of_the_uniform_prior_and_of_all_curves() -> None:
    for changed in ({"prior": "beta:1,1"}, {"curves": ("surrogate", "subsampling")}):
        config = replace(FIGURE_2.quick, **FAST, allowance=(1.0,), **changed)
        assert ran(FIGURE_2, config).comparisons == ()
    effort = replace(FIGURE_2.quick, draws=3, repeats=5, seed=9)
    assert FIGURE_2.at_paper(effort)
    assert not FIGURE_2.at_paper(replace(effort, prior="beta:1,1"))


def test_laws_and_cases_in_words() -> None:
    assert law_words("uniform:0,1") == "U[0, 1]"
    assert law_words("uniform:0,0.3,0.7,1") == "U[0, .3] or [.7, 1]"
    assert law_words("common-beta:2,0.5") == "Beta(2, .5), one p for all"
    assert under("point:0.25") == "$p$ = .25"
    assert [type(whole(value)) for value in (3.0, 2.5)] == [int, float]
    assert cases("pairs", ("11,3", "5,1.5"), "K,m", (int, float)) == [(11, 3.0), (5, 1.5)]
    for text in ("11", "a,b", "1,2,3", "1.5,2"):
        with pytest.raises(ParameterError, match="^pairs holds .*; it must have the form K,m.$"):
            cases("pairs", (text,), "K,m", (int, float))


def test_tables_name_the_prior_and_keep_their_columns() -> None:
    tables = ran(FIGURE_2, replace(FIGURE_2.quick, **FAST, allowance=(1.0,))).tables
    errors: Table = tables["errors"]
    assert errors.columns[:6] == (
        *("target", "curve", "m", "expected_error", "sampled_error", "spread"),
    )
    assert errors.column("target") == [1] * 4
