"""A private table in a linear program: its probabilities, rows of privacy, and losses.

Variables are the masses M_v = counts_v K_v of all outputs of each variable v of the table:

    sum_v of x  M_v = 1                                    for each input x     "sums"
    e^-epsilon K_v <= K_u                                  for neighbours u, v  "privacy"

For delta > 0, with the excess s >= 0 of each entry of an edge (x, x'),

    e^-epsilon K_v - K_u <= e^-epsilon s                   for each entry       "privacy"
    sum of counts s <= delta                               for each edge        "delta"

In groups of pairwise neighbours (a complete graph), K_v = e^-epsilon w + V_v with the ceiling w of
the group and 0 <= V_v <= (1 - e^-epsilon) w: one row for each variable instead of each pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import IntVector, Json, SparseMatrix, Vector, frozen
from dpopt.lp import Separation, Solution, make_rows
from dpopt.privacy import Problem
from dpopt.privacy.graph import require_rows
from dpopt.privacy.guarantee import Guarantee
from dpopt.table.inputs import Inputs
from dpopt.table.table import Table


def add_table(
    problem: Problem,
    inputs: Inputs,
    guarantee: Guarantee,
    written: tuple[str, IntVector, IntVector] | None = None,
) -> None:
    """Add the variables and the rows of a private table; see `over_masses` for further rows.

    Args:
        problem: without a table.
        inputs: of the table.
        guarantee: of the table.
        written: a name, and variables v and u of neighbours whose rows e^-epsilon K_v <= K_u are
            written out under it; all others are lazy. For delta = 0 and pairs of neighbours; if
            None, all rows are written out.

    Raises:
        ParameterError: for more than 2,000,000 rows of privacy that are written out.
    """
    if written is None:
        # Check sizes before allocating arrays.
        require_rows(inputs.size)
        require_rows(2 * len(inputs.edges.first) if guarantee.delta > 0 else inputs.neighbours.size)
    counts = np.asarray(inputs.counts, dtype=np.float64)
    groups, shrink = inputs.neighbours, math.exp(-guarantee.epsilon)
    # Ceilings serve two inputs as well: rows between the two small probabilities of a rare output
    # would be far below a solver's tolerance.
    group = _group_of(inputs) if guarantee.delta == 0 and written is None else None
    if group is None and guarantee.delta == 0 and groups.shape[1] > 2:
        raise ParameterError("groups of more than two neighbours must hold each variable once.")
    if group is not None:
        # In masses: excess_v <= (1 - e^-epsilon) counts_v ceiling of v's group.
        lift = sp.csr_array((counts, (np.arange(inputs.size), group)))
        problem.add_variables("ceiling", len(groups), lower=0.0, upper=1.0)
        problem.add_variables("excess", inputs.size, lower=0.0, upper=1.0)
        rows: dict[str, Any] = {"excess": sp.eye_array(inputs.size, format="csr")}
        rows["ceiling"] = -(1.0 - shrink) * lift
        sums = over_masses(problem, inputs, guarantee, inputs.sums.sign())
        problem.add_rows("sums", sums, lower=1.0, upper=1.0)
        problem.add_rows("privacy", rows, upper=0.0)
        return
    problem.add_variables("kernel", inputs.size, lower=0.0, upper=1.0)
    problem.add_rows("sums", {"kernel": inputs.sums.sign()}, lower=1.0, upper=1.0)
    if guarantee.delta == 0:
        if not groups.size:
            return
        first, second = np.concatenate([groups, groups[:, ::-1]]).T
        ratios = _ratios(first, second, counts, shrink)[0]
        if written is not None:
            name, v, u = written
            is_written = np.isin(first * inputs.size + second, v * inputs.size + u)
            problem.add_rows(name, {"kernel": ratios[is_written]}, upper=0.0)
            _add_lazily(problem, ratios[~is_written])
        else:
            problem.add_rows("privacy", {"kernel": ratios}, upper=0.0)
        return
    edges = inputs.edges
    if not edges.first.size:
        return
    first, second, totals = edges.directed()
    ratios, unit = _ratios(first, second, counts, shrink)
    multiplicities = np.tile(edges.counts, 2).astype(np.float64)
    # Two copies of the entries, one for each direction. A variable is counts times the excess s of
    # an entry; its row is divided by `unit`, as in `ratios`.
    problem.add_variables("excess_mass", first.size, lower=0.0, upper=1.0)
    excess = sp.diags_array(-shrink / multiplicities / unit)
    problem.add_rows("privacy", {"kernel": ratios, "excess_mass": excess}, upper=0.0)
    # A row "delta" for each directed edge sums the excess masses of its entries.
    problem.add_rows("delta", {"excess_mass": totals}, upper=guarantee.delta)


def _add_lazily(problem: Problem, rows: SparseMatrix) -> None:
    """Add rows "privacy" that a separation oracle adds where they are violated."""

    def separate(masses: Vector) -> Separation:
        excess = rows @ masses
        # Violation above which the separation oracle returns a row.
        violated = make_rows(rows[np.flatnonzero(excess > 1e-10)], upper=0.0)
        return Separation(violated, float(excess.max(initial=0.0)), excess.size)

    problem.add_family("privacy", separate, over="kernel")


def over_masses(
    problem: Problem, inputs: Inputs, guarantee: Guarantee, matrix: SparseMatrix
) -> dict[str, SparseMatrix]:
    """Return rows over the masses M, shape (rows, size), as rows over the program's variables.

    Args:
        problem: to which `add_table` added a table.
        inputs: of this table.
        guarantee: of this table.
        matrix: the rows, a column for each variable of the inputs.
    """
    if "kernel" in problem.variables:
        return {"kernel": matrix}
    return {"excess": matrix, "ceiling": sp.csr_array(matrix @ _floor(inputs, guarantee))}


def probabilities_of(inputs: Inputs, guarantee: Guarantee, solution: Solution) -> Vector:
    """Return the probability of one output of each variable in a solution, shape (size,)."""
    counts = np.asarray(inputs.counts, dtype=np.float64)
    if "kernel" in solution.values:
        return solution["kernel"].ravel() / counts
    masses = solution["excess"] + _floor(inputs, guarantee) @ solution["ceiling"]
    return masses / counts


def _floor(inputs: Inputs, guarantee: Guarantee) -> SparseMatrix:
    """Return the matrix from ceilings w to masses e^-epsilon w counts, shape (size, groups)."""
    counts = np.asarray(inputs.counts, dtype=np.float64) * math.exp(-guarantee.epsilon)
    entries = (counts, (np.arange(inputs.size), _group_of(inputs)))
    return sp.csr_array(entries, shape=(inputs.size, len(inputs.neighbours)))


def _group_of(inputs: Inputs) -> IntVector | None:
    """Return the group of neighbours of each variable; None if some are in none, or in two."""
    groups = inputs.neighbours
    numbers = np.arange(len(groups))[:, None]
    group = np.full(inputs.size, -1)
    group[groups] = numbers
    return None if np.any(group < 0) or np.any(group[groups] != numbers) else group


def _ratios(
    first: IntVector, second: IntVector, counts: Vector, shrink: float
) -> tuple[SparseMatrix, Vector]:
    """Return rows e^-epsilon K_first - K_second over masses and their scale: largest entry 1."""
    above, below = shrink / counts[first], 1.0 / counts[second]
    unit = np.maximum(above, below)
    row = np.arange(first.size)
    entries = np.concatenate([above / unit, -below / unit])
    where = (np.tile(row, 2), np.concatenate([first, second]))
    return sp.csr_array((entries, where), shape=(first.size, counts.size)), unit


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
