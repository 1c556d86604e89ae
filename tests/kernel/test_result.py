"""What a design gives: draws, files, figures, and its own numbers measured again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpopt import NotPrivateError, ParameterError, Status, load
from dpopt.shape import design, made
from tests.kernel.brute import optimal, rows_of, sure


def some_design(objective: str = "mean", sense: str = "minimise") -> Any:
    loss = np.random.default_rng(3).normal(size=(4, 3))
    return optimal(loss, epsilon=0.8, delta=0.02, graph="path", objective=objective, sense=sense)


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_the_value_is_that_of_the_integers(objective: str, sense: str) -> None:
    design = some_design(objective, sense)
    by_input = [
        sum(Fraction(a) * w for a, w in zip(line, row, strict=True)) / design.table.total
        for line, row in zip(design.setting.loss_table.tolist(), rows_of(design), strict=True)
    ]
    worst = max(by_input) if sense == "minimise" else min(by_input)
    expected = sum(by_input) / 4 if objective == "mean" else worst
    assert design.value == float(expected)
    assert design.expected_losses.tolist() == pytest.approx([float(v) for v in by_input])
    sign = 1 if sense == "minimise" else -1
    assert sure(design.gap) == sign * (design.value - sure(design.bound))
    assert 0 <= sure(design.gap) <= 1e-9
    assert design.status is Status.OPTIMAL


def test_a_pair_of_invariances_comes_back_from_a_file(tmp_path: Path) -> None:
    fixed = (np.eye(2), np.array([[0.6, 0.4], [0.4, 0.6]]))
    design = optimal(1 - np.eye(2), epsilon=1.0, invariant=fixed)
    design.save(tmp_path / "design.json")
    again = load(tmp_path / "design.json")
    assert again.residuals == design.residuals
    assert again.residuals["invariance"] <= 1e-12


def test_a_table_of_another_graph_or_size_is_no_design() -> None:
    setting = some_design().setting
    other = design(replace(setting, graph="complete"))
    with pytest.raises(ParameterError, match="over these inputs"):
        made(setting, other.table)
    larger = replace(setting, loss=np.zeros((5, 3)), inputs=None)
    with pytest.raises(ParameterError, match="over these inputs"):
        made(larger, some_design().table)
    # A table is judged anew, for whatever guarantee.
    with pytest.raises(NotPrivateError):
        made(replace(setting, epsilon=0.1), some_design().table)
