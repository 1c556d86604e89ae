"""DaRRM's figures at parameters of a reader's own: they run, and nothing of them is cut or hidden.

Numbers at the papers' parameters are tested elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, majority
from experiments.catalogue import named
from experiments.majority import priors
from tests.experiments.comparing import ran

FIGURE_2 = named("majority-figure-2")
FAST: dict[str, Any] = {"draws": 50, "repeats": 2}


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["beta:2,2", "uniform:0,0.2,0.4,1", "common-beta:1,3"])
def test_errors_are_those_of_the_prior(prior: str) -> None:
    """The design for a prior has the least expected error under it; samples are drawn from it."""
    config = replace(FIGURE_2.quick, draws=20_000, repeats=3, allowance=(3.0,), prior=prior)
    errors = ran(FIGURE_2, config).tables["errors"]
    assert set(errors.column("prior")) == {prior}
    at = dict(zip(errors.column("curve"), errors.column("expected_error"), strict=True))
    own = dpopt.design(dpopt.Majority(11, 0.1, 3, voter_delta=1e-5, delta=3e-5, prior=prior))
    assert at["mean"] == pytest.approx(own.expected_error, rel=1e-3)
    assert at["mean"] == min(at.values())
    pmf = majority.parse_prior(prior).sample((40_000, 11), np.random.default_rng(7))
    for curve, expected in at.items():
        (row,) = errors.select(curve=curve).records
        assert row["sampled_error"] == pytest.approx(expected, rel=0.05, abs=2e-4)
    # Subsampling's error by its definition: votes of the p_i, and of three of them.
    votes = np.random.default_rng(8).random(pmf.shape) < pmf
    truth = (votes.sum(axis=1) > 5).mean() - (votes[:, :3].sum(axis=1) > 1).mean()
    assert abs(truth) <= at["subsampling"] + 0.01


def test_subsampling_draws_the_most_voters_within_the_target() -> None:
    config = replace(FIGURE_2.quick, allowance=(0.5, 1.0, 2.5, 7.0))
    assert [target.sample for target in config.targets] == [0, 1, 2, 7]
    assert config.drawn == ("mean", "surrogate", "constant")
    # 1 - (1 - 1e-5)^M is at most 3e-5 up to M = 3.
    few = replace(FIGURE_2.quick, allowance=(7.0,), delta=3e-5)
    assert [target.sample for target in few.targets] == [3]
    none = replace(FIGURE_2.quick, allowance=(0.5, 1.0), curves=("subsampling",))
    with pytest.raises(ParameterError, match=r"^size is 0; it must be an integer of at least 1"):
        FIGURE_2.run(none)


@pytest.mark.slow
def test_verdicts_are_of_the_uniform_prior_and_of_all_curves() -> None:
    for changed in ({"prior": "beta:1,1"}, {"curves": ("surrogate", "subsampling")}):
        config = replace(FIGURE_2.quick, **FAST, allowance=(1.0,), **changed)
        assert ran(FIGURE_2, config).comparisons == ()
    effort = replace(FIGURE_2.quick, draws=3, repeats=5, seed=9)
    assert FIGURE_2.at_paper(effort)
    assert not FIGURE_2.at_paper(replace(effort, prior="beta:1,1"))


def test_the_paper_s_objective_takes_the_upper_half_of_a_distribution() -> None:
    """U[.5, 1] and U[.7, 1] as the paper has it; for a beta pmf the mean of its samples."""
    for prior, half in ((priors.UNIFORM, "uniform:0.5,1"), (priors.PEAKED, "uniform:0.7,1")):
        assert str(priors.upper_half(prior)) == half
    drawn_p = np.random.default_rng(3).beta(2, 5, 400_000)
    half = priors.upper_half("beta:2,5")
    assert isinstance(half, majority.UniformPrior)
    (interval,) = half.intervals
    mean = np.maximum(drawn_p, 1 - drawn_p).mean()
    assert sum(interval) / 2 == pytest.approx(mean, abs=1e-3)
    assert str(priors.upper_half("uniform:0,1e-9")) != "point:0.5"
