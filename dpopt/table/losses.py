"""Objectives that are a loss of each input and output: the mean, or that of the worst input."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt._errors import ParameterError
from dpopt._types import Json, Vector
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Guarantee
from dpopt.table.inputs import Inputs
from dpopt.table.program import over_masses
from dpopt.table.table import Table


@dataclass(frozen=True, eq=False)
class Losses:
    """What a table loses: minimise sum_x weight_x sum_y cost_xy K[x, y], or the largest such sum.

    Attributes:
        costs: of one output of each variable, shape (size,).
        weights: of the inputs up to symmetry in the mean, of at least 0, shape (rows,); None
            minimises the loss of the worst input.
    """

    costs: Vector
    weights: Vector | None = None

    def add(self, problem: Problem, inputs: Inputs, guarantee: Guarantee) -> None:
        """Add the objective to a program of tables; of the worst case with rows "losses".

        Raises:
            ParameterError: if the costs or the weights are of other inputs.
        """
        costs, rows = np.asarray(self.costs, dtype=np.float64), len(inputs.starts) - 1
        if costs.shape != (inputs.size,) or not np.all(np.isfinite(costs)):
            raise ParameterError(f"costs must be {inputs.size} finite numbers.")
        shape = (rows, inputs.size)
        matrix = sp.csr_array((costs, (inputs.rows, np.arange(inputs.size))), shape=shape)
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.shape != (rows,):
                raise ParameterError(f"weights must be {rows} numbers.")
            mean = sp.csr_array((weights / weights.sum())[None, :]) @ matrix
            sides = over_masses(problem, inputs, guarantee, sp.csr_array(mean))
            problem.minimise({name: side.toarray()[0] for name, side in sides.items()})
            return
        low, high = float(costs.min()), float(costs.max())
        problem.add_variables("worst", 1, lower=low, upper=high)
        sides: dict[str, Any] = dict(over_masses(problem, inputs, guarantee, matrix))
        problem.add_rows("losses", {**sides, "worst": -np.ones((rows, 1))}, upper=0.0)
        problem.minimise({"worst": 1.0})

    def value(self, table: Table) -> Fraction:
        """Return the objective of a table, exactly."""
        means = table.means(self.costs)
        if self.weights is None:
            return max(means)
        weights = [Fraction(float(weight)) for weight in self.weights]
        return sum((w * m for w, m in zip(weights, means, strict=True)), Fraction(0)) / sum(weights)

    def plain(self) -> Json:
        """Return the numbers for a file."""
        weights = None if self.weights is None else np.asarray(self.weights).tolist()
        return {"costs": np.asarray(self.costs, dtype=np.float64).tolist(), "weights": weights}
