"""What must be so after the cells of ``your_program_proved.ipynb``."""

from __future__ import annotations

from typing import Any

import numpy as np


def after_model(it: Any) -> None:
    assert abs(it.model.objective.value - it.solution.objective) < 1e-6


def after_answer(it: Any) -> None:
    assert abs(it.answer.objective - it.solution.objective) < 1e-8
    assert it.answer.bound <= it.solution.objective + 1e-9
    assert it.solution.bound <= it.answer.objective + 1e-9


def after_tables(it: Any) -> None:
    assert it.design.private
    assert it.risk <= it.RISK + 1e-12
    assert it.design.release(4) in range(9)


def after_by_problem(it: Any) -> None:
    assert abs(it.by_cvxpy.objective - it.by_problem.objective) < 1e-7
    assert abs(1 - it.model.objective.value - it.by_problem.objective) < 1e-5


def after_again(it: Any) -> None:
    assert it.again.private
    assert it.again.residuals == it.design.residuals
    assert max(it.design.residuals.values()) < 1e-9


def after_errors(it: Any) -> None:
    assert len(it.errors) == len(it.grid)
    assert np.all(np.diff(it.errors) < 1e-9)


def after_by_definition(it: Any) -> None:
    assert abs(it.by_definition.objective - it.by_cvxpy.objective) < 1e-7
