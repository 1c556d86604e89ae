"""The settings of a public prior: closed forms against programs, and what their judges refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpopt import Mollifier, NotPrivateError, ParameterError, Population, PublicPrior, load, solve
from dpopt.privacy import exp_lower
from dpopt.public_prior import mollify
from dpopt.shape import design, made
from experiments.public_prior.accuracy import mollifier_tv
from tests.oracles import follow
from tests.public_prior.closed_forms import (
    algorithm_one,
    leximin_kernel,
    over_objectives,
    priors,
)

REFERENCE = [0.05, 0.1, 0.15, 0.2, 0.5]


@pytest.mark.slow
@over_objectives
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 4.0, 8.0, 16.0])
def test_the_programs_land_on_the_closed_forms(objective: Any, epsilon: float) -> None:
    """Whose value no private kernel that keeps the prior is below, by the solvers' bounds."""
    for place, q in enumerate([*priors(6, 8, 9), np.ones(1)]):
        setting = PublicPrior(q, epsilon, objective=objective)
        kernel = (algorithm_one if objective == "minimax" else leximin_kernel)(q, epsilon)
        if objective == "minimax":
            solution = solve(setting.problem())
            assert solution.objective == pytest.approx(1 - np.diag(kernel).min(), abs=1e-9)
            assert solution.bound == pytest.approx(solution.objective, abs=1e-8)
        for backend in ("highs", "cvxpy") if place < 4 else ("highs",):
            solved = design(setting, backend=backend)
            assert solved.value == pytest.approx(1 - np.diag(kernel).min(), rel=1e-9, abs=1e-9)
            assert solved.bound == pytest.approx(solved.value, rel=1e-8, abs=1e-9)
            if objective == "leximin":
                assert solved.diagonal == pytest.approx(np.diag(kernel), abs=1e-7)


def test_rows_of_the_program() -> None:
    blocks = PublicPrior(np.full(7, 1 / 7), 2.0).problem().blocks
    assert blocks["privacy"].count == 7 * 7
    assert set(blocks) == {"sums", "privacy", "invariance", "losses"}


def test_settings_read_their_own_texts() -> None:
    setting = PublicPrior([0.4, 0.6], 1.0, labels="no,yes")  # type: ignore[arg-type]
    assert setting.labels == ("no", "yes")
    again = PublicPrior.from_dict(setting.to_dict())
    assert again.to_dict() == setting.to_dict()


def test_tables_of_another_setting_are_no_design() -> None:
    setting = PublicPrior(REFERENCE, 1.0)
    table = design(setting).table
    for other in (
        PublicPrior(REFERENCE[::-1], 1.0),
        replace(setting, epsilon=0.9),
        replace(setting, objective="leximin"),
    ):
        with pytest.raises(ParameterError, match="another prior, epsilon or objective"):
            made(other, table)
    solved = design(setting, backend="highs").table
    with pytest.raises(NotPrivateError, match=r"breaks \(0.9, 0\)-DP"):
        made(Population(REFERENCE, 0.9, np.eye(5)), solved)


@pytest.mark.parametrize(
    ("objective", "bits", "words"),
    [
        ("leximin", 30, "at category"),
        # Private by how it rounds, and far from keeping the prior.
        ("minimax", 20, "no kernel of this setting: the prior is kept up to"),
    ],
)
def test_a_table_of_few_bits_is_refused(objective: str, bits: int, words: str) -> None:
    setting = PublicPrior(REFERENCE, 1.0, list("abcde"), objective)  # type: ignore[arg-type]
    with pytest.raises(NotPrivateError, match=words) as caught:
        made(setting, replace(setting.closed_form(), bits=bits))
    assert caught.value.output in (list("abcde") if objective == "leximin" else [None])
    assert caught.value.excess > 0
    assert made(setting, replace(setting.closed_form(), bits=100)).private
    for wrong in (0, 63, "62", None):
        with pytest.raises(ParameterError, match="bits"):
            setting.read({"bits": wrong})


@pytest.mark.slow
@given(
    parts=st.lists(st.integers(1, 1000), min_size=2, max_size=7),
    own=st.lists(st.integers(0, 1000), min_size=7, max_size=7).filter(lambda p: p[0] + p[1] > 0),
    epsilon=st.sampled_from([1e-6, 0.3, 1.0, 5.0, 40.0]),
)
def test_every_mollified_distribution_is_private_from_every_other(
    parts: list[int], own: list[int], epsilon: float
) -> None:
    q = np.array(parts) / sum(parts)
    p = np.array(own[: q.size]) / sum(own[: q.size])
    setting = Mollifier(q, epsilon, p)
    found = design(setting)
    first = np.eye(q.size)[0]
    pmfs = [found.table, *(setting.output_weights(found.table, p) for p in (first, q))]
    ratio = exp_lower(epsilon)
    for pmf in pmfs:
        assert sum(pmf) == sum(found.table)
        for other in pmfs:
            assert all(a <= ratio * b for a, b in zip(pmf, other, strict=True))
    assert found.value == pytest.approx(float(mollifier_tv(q, p, epsilon)), abs=1e-9)


@pytest.mark.nightly
@pytest.mark.slow
def test_mollified_labels_follow_the_projection(tmp_path: Path) -> None:
    found = design(replace(Mollifier.example(), labels=("a", "b", "c")))
    rng = np.random.default_rng(3)
    for own, pmf in (
        (None, mollify([0.25, 0.25, 0.5], [0.8, 0.2, 0.0], 1.0)),
        ([0.0, 0.0, 1.0], mollify([0.25, 0.25, 0.5], [0.0, 0.0, 1.0], 1.0)),
    ):
        drawn = [found.simulate(own, rng) for _ in range(4000)]
        assert follow(drawn, dict(zip("abc", pmf, strict=True)))
    found.save(tmp_path / "pmf.json")
    assert load(tmp_path / "pmf.json").table == found.table


@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [(0.05, 0.1, 0.15, 0.2, 0.5), (0.1, 0.2, 0.7), (0.02, 0.48, 0.5)])
def test_a_sampler_that_is_not_linear_can_be_better(q: tuple[float, ...], epsilon: float) -> None:
    """The best box around q, by a program, has the bound of the findings page where it fits."""
    n, ratio, least = len(q), math.exp(epsilon), min(q)
    limits, sides = list[Any](), list[float]()
    for i in range(n):
        unit = np.eye(n)[i]
        limits += [np.append(-ratio * unit, 1.0), np.append(1.0 - unit, 1.0)]
        sides += [0.0, 1.0]
    box = [*((a / ratio, a) for a in q), (0.0, 1.0)]
    found = linprog(np.append(np.zeros(n), -1.0), A_ub=limits, b_ub=sides, bounds=box)
    worst, bound, linear = 1 + found.fun, 1 - ratio * least, design(PublicPrior(q, epsilon)).value
    assert bound - 1e-9 <= worst <= linear + 1e-9
    r = np.maximum(least, np.array(q) / ratio)
    alone = np.minimum(ratio * r, 1 - (r.sum() - r))
    if alone.min() >= ratio * least - 1e-12:
        assert worst == pytest.approx(bound, abs=1e-9)
        assert worst < linear - 1e-4
    else:
        assert epsilon > 1
