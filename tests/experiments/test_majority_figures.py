"""DaRRM's figures at parameters of a reader's own: they run, and nothing of them is cut or hidden.

Numbers at the papers' parameters are tested elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError, majority
from experiments.drawing import columns_for, nested
from experiments.majority import composition, figures, gnmax, priors
from experiments.majority.words import cases, law_words, under, whole
from experiments.registry import Table
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn

FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8 = figures.EXPERIMENTS
(FIGURE_9,) = priors.EXPERIMENTS
(FIGURE_10,) = gnmax.EXPERIMENTS
(TOTALS,) = composition.EXPERIMENTS
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
    assert under(config.prior) in panels[-1].get_title()
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
        (FIGURE_2, {"mechanisms": 503}, "mechanisms is 503; every constraint"),
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


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"mechanisms": 15, "allowance": (0.5,), "actual": ("common-beta:2,2",)},
        {"mechanisms": 3, "priors": ("beta:2,2", "uniform:0,1", "beta:3,1"), "allowance": (2.5,)},
        {"mechanisms": 23, "allowance": (2.0, 3.0, 4.0), "actual": ("point:0.5", "beta:1,1")},
        {"mechanisms": 13, "mechanism_delta": 1e-3, "delta": 0.01, "allowance": (2.0,)},
    ],
)
def test_figure_9_is_drawn_whole_at_other_parameters(changed: dict[str, Any]) -> None:
    config = replace(FIGURE_9.quick, **changed)
    outcome = ran(FIGURE_9, config)
    panels = drawn(FIGURE_9, outcome).get_axes()
    assert len(panels) == 2 * len(config.allowance)
    for right in panels[1::2]:
        words = " ".join(text.get_text() for text in right.texts)
        assert ("0 for every" in words) == ("point:0.5" in config.actual)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mechanisms": 10}, "mechanisms is 10; it must be odd"),
        ({"allowance": ()}, r"allowance is \(\); it must hold"),
        ({"allowance": (20.0,)}, "allowance is 20.0; it must be a number"),
        ({"priors": ()}, r"priors is \(\); it must hold"),
        ({"actual": ()}, r"actual is \(\); it must hold"),
        ({"actual": ("uniform",)}, "prior is 'uniform'; it must have"),
        ({"priors": ("point:0.5",)}, "priors holds 'point:0.5'; it must hold uniform or beta"),
        ({"priors": tuple(f"beta:{a},1" for a in range(2, 11))}, "priors holds 9 laws; it must"),
    ],
)
def test_figure_9_refuses_what_it_cannot_show(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=f"^{words}"):
        replace(FIGURE_9.quick, **changed)


def test_the_paper_s_objective_takes_the_upper_half_of_a_law() -> None:
    """U[.5, 1] and U[.7, 1] as the paper has it; for a beta law the mean of its samples."""
    for prior, half in ((priors.UNIFORM, "uniform:0.5,1"), (priors.PEAKED, "uniform:0.7,1")):
        assert str(priors.upper_half(prior)) == half
    drawn_p = np.random.default_rng(3).beta(2, 5, 400_000)
    half = priors.upper_half("beta:2,5")
    assert isinstance(half, majority.UniformPrior)
    (interval,) = half.intervals
    mean = np.maximum(drawn_p, 1 - drawn_p).mean()
    assert sum(interval) / 2 == pytest.approx(mean, abs=1e-3)
    assert str(priors.upper_half("uniform:0,1e-9")) != "point:0.5"


@pytest.mark.parametrize(
    ("experiment", "changed"),
    [
        (FIGURE_10, {}),
        (FIGURE_10, {"epsilon": (0.5, 1.0, 2.0), "delta": (1e-3, 1e-4, 1e-5)}),
        (FIGURE_10, {"epsilon": (0.2676,)}),
        (TOTALS, {}),
        (TOTALS, {"allowance": (2.5,), "epsilon": (0.3,)}),
        (TOTALS, {"epsilon": (0.0892, 0.1, 0.2, 0.4, 0.8), "queries": (1, 20)}),
    ],
)
def test_losses_are_drawn_whole_at_other_parameters(
    experiment: Any, changed: dict[str, Any]
) -> None:
    config = replace(experiment.quick, **changed)
    outcome = ran(experiment, config)
    assert len(drawn(experiment, outcome).get_axes()) == len(config.epsilon)
    known = {0.2676, 0.0892} & set(config.epsilon)
    assert bool(outcome.comparisons) == bool(known)


@pytest.mark.parametrize(
    ("experiment", "changed", "words"),
    [
        (FIGURE_10, {"epsilon": ()}, "epsilon holds 0 values and delta 1; epsilon must"),
        (FIGURE_10, {"delta": (0.1, 0.2, 0.3)}, "epsilon holds 2 values and delta 3; epsilon must"),
        (FIGURE_10, {"epsilon": (0.5, 0.5)}, r"epsilon is \(0.5, 0.5\); each panel must differ"),
        (FIGURE_10, {"step": 0.0}, "step is 0; it must be above 0"),
        (FIGURE_10, {"voters": 0}, "voters is 0; it must be at least 1"),
        (FIGURE_10, {"low_orders": (1.0,)}, "low_orders and votes_order hold 1; an order must"),
        (FIGURE_10, {"votes": (1, 2, 3)}, r"votes is \(1, 2, 3\); it must hold two"),
        (FIGURE_10, {"delta": (0.0,)}, "delta is 0.0; it must be"),
        (TOTALS, {"epsilon": ()}, r"epsilon is \(\); it must hold at least one"),
        (TOTALS, {"allowance": (12.0,)}, r"allowance is \(12.0,\); it must hold at least one"),
        (TOTALS, {"queries": (0,)}, r"queries is \(0,\); it must hold at least one"),
        (TOTALS, {"mechanism_delta": 0.0}, "mechanism_delta is 0; it must be above 0"),
        (TOTALS, {"mechanism_delta": 0.01}, "mechanism_delta is 0.01; it must be above 0"),
        (TOTALS, {"slack": 0.0}, "slack is 0.0; it must be"),
    ],
)
def test_losses_out_of_range_are_refused(
    experiment: Any, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{words}"):
        replace(experiment.quick, **changed)
