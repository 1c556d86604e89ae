"""Algorithm 1 beside its program: the run's numbers by another solver and by fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from experiments.public_prior import program
from experiments.public_prior.program import PRIORS, Config, printed_algorithm, prior_of
from experiments.registry import Outcome
from tests.experiments.comparing import ran
from tests.kernel.brute import complete, least_loss

SMALL = Config(categories=(2, 3, 5), epsilon=(0.5, 4.0), second_categories=2, pmfs=30, points=7)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(program.run, SMALL)


def test_every_setting_is_solved_and_has_gamma(outcome: Outcome) -> None:
    rows = outcome.tables["settings"].records
    assert len(rows) == 3 * len(PRIORS) * 2
    for row in rows:
        least, e = row["least_mass"], math.exp(row["epsilon"])
        gamma = (1 - least) / (e * least + 1 - least)
        assert row["gamma"] == pytest.approx(gamma, rel=1e-12)
        assert row["optimum"] == pytest.approx(gamma, abs=1e-9)
        assert gamma - 1e-6 <= row["bound"] <= gamma + 1e-9
        assert (row["second"] is not None) == (row["categories"] == 2)
        assert (row["binary_apart"] is not None) == (row["categories"] == 2)
        assert (row["response_apart"] is not None) == (row["prior"] == "uniform")
        assert row["drift"] < 1e-15 < row["slack"] + 1e-15
        only_one = row["categories"] == 2 or row["prior"] == "uniform"
        assert (row["kernels_apart"] < 1e-9) == only_one
    assert {row["sums_exact"] for row in rows} == {True}


@pytest.mark.parametrize("kind", PRIORS)
def test_the_optimum_by_a_dense_program_of_another_library(kind: Any) -> None:
    prior = prior_of(kind, 4, np.random.default_rng(1))
    config = Config(categories=(4,), priors=(kind,), epsilon=(1.5,), second=None, pmfs=5, points=2)
    (row,) = ran(program.run, replace(config, seed=1)).tables["settings"].records
    dense = least_loss(1 - np.eye(4), complete(4), 1.5, fixed=prior)
    assert row["optimum"] == pytest.approx(dense, abs=1e-8)


def test_priors_are_ascending_distributions() -> None:
    for kind in PRIORS:
        for categories in (2, 7, 100):
            prior = prior_of(kind, categories, np.random.default_rng(0))
            assert prior.shape == (categories,)
            assert prior.sum() == pytest.approx(1.0, abs=1e-12)
            assert np.all(np.diff(prior) >= 0)
            assert prior[0] > 0
    assert prior_of("tiny", 5, np.random.default_rng(0))[0] == pytest.approx(1e-12, rel=1e-6)
    skewed = prior_of("skewed", 5, np.random.default_rng(0))
    assert (skewed[1:] / skewed[:-1]).tolist() == pytest.approx([2.0] * 4)


def test_the_printed_recursion_in_fractions() -> None:
    """Two categories by hand."""
    third = printed_algorithm([Fraction(1, 3), Fraction(2, 3)], Fraction(2))
    assert third == [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]]


def test_the_misprint_of_the_appendix() -> None:
    """Row sums of the block of the uniform kernel, by hand: its first column is 1 / (e + n - 1)."""
    for n, e in ((2, Fraction(3, 2)), (5, Fraction(7))):
        kernel = printed_algorithm([Fraction(1, n)] * n, e)
        assert sum(kernel[-1][1:]) == (e + n - 2) / (e + n - 1) != 1


def test_what_fails_in_fractions_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    masses = np.array([0.25, 0.75])
    held = program._in_fractions(masses, Fraction(2))
    assert held == dict.fromkeys(program._EXACT, True)

    def broken(masses: Any, ratio: Any) -> list[list[Fraction]]:
        del masses, ratio
        return [[Fraction(9, 10), Fraction(2, 10)], [Fraction(1, 10), Fraction(8, 10)]]

    monkeypatch.setattr(program, "printed_algorithm", broken)
    assert program._in_fractions(masses, Fraction(2)) == dict.fromkeys(program._EXACT, False)
