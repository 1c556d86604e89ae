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

# The least unit of losses in a program, as a share of the largest loss.
_LEAST_UNIT = 2.0**-12


@dataclass(frozen=True, eq=False)
class Losses:
    """What a table loses: minimise sum_x weight_x sum_y cost_xy K[x, y], or the largest such sum.

    Attributes:
        costs: of one output of each variable, shape (size,).
        weights: of the inputs up to symmetry in the mean, of at least 0, shape (rows,); None
            minimises the loss of the worst input.
        maximise: whether costs are utilities: the mean, or the least sum, is maximised.
    """

    costs: Vector
    weights: Vector | None = None
    maximise: bool = False

    def add(self, problem: Problem, inputs: Inputs, guarantee: Guarantee) -> float:
        """Add the objective to a program of tables; of the worst case with rows "losses".

        Returns:
            The loss that 1 of the variable "worst" stands for; 1 of a mean.

        Raises:
            ParameterError: if the costs or the weights are of other inputs.
        """
        costs, rows = np.asarray(self.costs, dtype=np.float64), len(inputs.starts) - 1
        if costs.shape != (inputs.size,) or not np.all(np.isfinite(costs)):
            raise ParameterError(f"costs must be {inputs.size} finite numbers.")
        optimise = problem.maximise if self.maximise else problem.minimise
        shape = (rows, inputs.size)
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.shape != (rows,):
                raise ParameterError(f"weights must be {rows} numbers.")
            mean = sp.csr_array(((weights / weights.sum())[inputs.rows] * costs)[None, :])
            sides = over_masses(problem, inputs, guarantee, mean)
            optimise({name: side.toarray()[0] for name, side in sides.items()})
            return 1.0
        # Rows of K sum to 1: what most losses of an input are may go to the other side.
        common = _common(costs, inputs)
        rest = costs - common[inputs.rows]
        unit = _unit(rest, inputs)
        variables = np.flatnonzero(rest)
        entries = (rest[variables] / unit, (inputs.rows[variables], variables))
        problem.add_variables("worst", 1, lower=costs.min() / unit, upper=costs.max() / unit)
        sides = dict(over_masses(problem, inputs, guarantee, sp.csr_array(entries, shape=shape)))
        limits: Any = {"lower" if self.maximise else "upper": -common / unit}
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
        weights = None if self.weights is None else np.asarray(self.weights).tolist()
        return {"costs": np.asarray(self.costs, dtype=np.float64).tolist(), "weights": weights}


def _common(costs: Vector, inputs: Inputs) -> Vector:
    """Return the cost of more than half of the outputs, for each input; 0 where there is none."""
    common, rows = np.zeros(len(inputs.starts) - 1), inputs.rows
    # Variables by row and cost; those that are alike in both are one group.
    order = np.lexsort((costs, rows))
    new = (np.diff(rows[order], prepend=-1) != 0) | (np.diff(costs[order], prepend=np.nan) != 0)
    outputs = np.bincount(np.cumsum(new) - 1, np.asarray(inputs.counts, dtype=np.float64)[order])
    firsts = order[np.flatnonzero(new)][outputs > float(inputs.outputs) / 2]
    common[rows[firsts]] = costs[firsts]
    return common


def _unit(costs: Vector, inputs: Inputs) -> float:
    """Return a small cost that many inputs have: a solver's tolerance is a share of it.

    In units of the largest one, 3,481 on a path of 60 with squared losses, it would be 1e-7.
    """
    sizes = np.abs(costs)
    least = np.minimum.reduceat(np.where(sizes > 0, sizes, np.inf), inputs.starts[:-1])
    largest = float(sizes.max()) or 1.0
    return float(np.clip(np.median(least), largest * _LEAST_UNIT, largest))
