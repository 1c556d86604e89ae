"""Objectives with a loss for each input and output: the mean loss, or that of the worst input."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import Json, Vector, frozen
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Guarantee
from dpopt.table.inputs import Inputs
from dpopt.table.program import over_masses
from dpopt.table.table import Table


@dataclass(frozen=True, eq=False)
class Losses:
    """Objective: minimise sum_x weight_x sum_y cost_xy K[x, y], or max_x sum_y cost_xy K[x, y].

    Attributes:
        costs: cost of one output of each variable, shape (size,), in the order of the variables.
        weights: weight of each orbit of inputs in the mean, shape (rows,): at least 0, not all 0,
            scaled to sum 1. None minimises the loss of the worst input.
        maximise: whether costs are utilities: then the mean, or the least sum, is maximised.

    Raises:
        ParameterError: for costs or weights of another shape or out of range.
    """

    costs: Vector
    weights: Vector | None = None
    maximise: bool = False

    def __post_init__(self) -> None:
        for name in ("costs", "weights"):
            numbers = getattr(self, name)
            if numbers is not None:
                object.__setattr__(self, name, _numbers(name, numbers))
        if self.weights is not None and not (min(self.weights) >= 0 < sum(self.weights)):
            raise ParameterError(
                f"weights is {shown(self.weights)}; they must be at least 0, and not all of them 0."
            )

    def add(self, problem: Problem, inputs: Inputs, guarantee: Guarantee) -> float:
        """Add the objective to a program of tables; for the worst input with rows "losses".

        Returns:
            The loss that a value 1 of the variable "worst" stands for; 1 for a mean.

        Raises:
            ParameterError: if costs or weights do not have one number for each variable or input.
        """
        costs, rows = self.costs, len(inputs.starts) - 1
        if costs.size != inputs.size:
            raise ParameterError(
                f"costs has {costs.size} numbers; it must have {inputs.size}, one for each "
                "variable."
            )
        optimise = problem.maximise if self.maximise else problem.minimise
        if self.weights is not None:
            weights = self.weights
            if weights.size != rows:
                raise ParameterError(
                    f"weights has {weights.size} numbers; it must have {rows}, one for each input "
                    "up to symmetry."
                )
            mean = sp.csr_array(((weights / weights.sum())[inputs.rows] * costs)[None, :])
            sides = over_masses(problem, inputs, guarantee, mean)
            optimise({name: side.toarray()[0] for name, side in sides.items()})
            return 1.0
        # The scale of losses.
        unit = float(np.abs(costs).max()) or 1.0
        each = sp.csr_array((costs / unit, (inputs.rows, np.arange(inputs.size))))
        problem.add_variables("worst", 1, lower=costs.min() / unit, upper=costs.max() / unit)
        sides = dict(over_masses(problem, inputs, guarantee, each))
        limits: Any = {"lower" if self.maximise else "upper": 0.0}
        problem.add_rows("losses", {**sides, "worst": -np.ones((rows, 1))}, **limits)
        optimise({"worst": unit})
        return unit

    def value(self, table: Table) -> Fraction:
        """Return the objective of a table, exactly."""
        means = table.means(self.costs)
        if self.weights is None:
            return min(means) if self.maximise else max(means)
        weights = [Fraction(float(weight)) for weight in self.weights]
        return sum((w * m for w, m in zip(weights, means, strict=True)), Fraction(0)) / sum(weights)

    def plain(self) -> Json:
        """Return the numbers for a file."""
        weights = None if self.weights is None else self.weights.tolist()
        return {"costs": self.costs.tolist(), "weights": weights}


def _numbers(name: str, numbers: object) -> Vector:
    values = _checks.floats(name, numbers)
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
        what = f"has shape {values.shape}" if values.ndim != 1 else f"is {shown(numbers)}"
        raise ParameterError(f"{name} {what}; it must be finite numbers, shape (n,).")
    return frozen(values)
