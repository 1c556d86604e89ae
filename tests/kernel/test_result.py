"""What a design gives: draws, files, figures, and its own numbers measured again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpopt import ParameterError, Status, load
from dpopt.kernel import KernelDesign, optimal_kernel
from dpopt.shape import design, made
from tests.kernel.brute import sure


def some_design(objective: str = "bayes", sense: str = "minimise") -> KernelDesign:
    loss = np.random.default_rng(3).normal(size=(4, 3))
    return optimal_kernel(
        loss, epsilon=0.8, delta=0.02, graph="path", objective=objective, sense=sense
    )


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
@pytest.mark.parametrize("objective", ["bayes", "minimax"])
def test_the_value_is_that_of_the_integers(objective: str, sense: str) -> None:
    design = some_design(objective, sense)
    by_input = [
        sum(Fraction(a) * w for a, w in zip(line, row, strict=True)) / 2**design.exact.bits
        for line, row in zip(design.setting.losses.tolist(), design.exact.weights, strict=True)
    ]
    worst = max(by_input) if sense == "minimise" else min(by_input)
    expected = sum(by_input) / 4 if objective == "bayes" else worst
    assert design.value == float(expected)
    assert design.expected_losses.tolist() == pytest.approx([float(v) for v in by_input])
    sign = 1 if sense == "minimise" else -1
    assert sure(design.gap) == sign * (design.value - sure(design.bound))
    assert 0 <= sure(design.gap) <= 1e-9
    assert design.status is Status.OPTIMAL


def test_a_pair_of_invariances_comes_back_from_a_file(tmp_path: Path) -> None:
    fixed = (np.eye(2), np.array([[0.6, 0.4], [0.4, 0.6]]))
    design = optimal_kernel(1 - np.eye(2), epsilon=1.0, invariant=fixed)
    design.save(tmp_path / "design.json")
    again = load(tmp_path / "design.json")
    assert again.residuals == design.residuals
    assert again.residuals["invariance"] <= 1e-12


def test_a_kernel_of_another_guarantee_or_graph_is_no_design() -> None:
    setting = some_design().setting
    for change in ({"epsilon": 0.9}, {"delta": 0.0}, {"graph": "complete"}):
        other = design(replace(setting, **change))
        with pytest.raises(ParameterError, match="units were proved for"):
            made(setting, other.exact)
    with pytest.raises(ParameterError, match="shape"):
        made(replace(setting, loss=np.zeros((5, 3))), some_design().exact)


def test_a_kernel_that_ignores_its_input_where_epsilon_is_0() -> None:
    loss = np.random.default_rng(0).normal(size=(5, 4))
    for graph in ("complete", "path"):
        design = optimal_kernel(loss, epsilon=0.0, graph=graph)
        assert len(set(design.exact.weights)) == 1
        assert design.value == pytest.approx(loss.mean(axis=0).min(), abs=1e-12)
