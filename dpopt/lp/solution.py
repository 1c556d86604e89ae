"""The result of a solve: solution, dual bound, residual, statistics, and the final basis.

The basis of a simplex method is a warm start, and its vertex is computed accurately. Bounds are
recomputed from the program's own arrays: no solver is believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from dpopt._types import Vector, brief
from dpopt.lp.problem import Model, Oracle, Problem, Rows, known, stack

Statuses = npt.NDArray[np.int8]
"""Basis statuses: 0 at the lower limit, 1 basic, 2 at the upper limit, 3 free at zero."""

# Status of a basic variable or row.
BASIC = np.int8(1)
# Unit roundoff of a double.
_UNIT = 2.0**-53


class Status(StrEnum):
    """Status of a solve."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    ITERATION_LIMIT = "iteration_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    NUMERICAL = "numerical"
    GAP = "gap"


# What helps against a status, for messages.
_ADVICE: Mapping[Status, str] = {
    Status.UNBOUNDED: "give every variable finite bounds, or check the sign of the objective",
    Status.TIME_LIMIT: "raise time_limit, or solve a smaller instance",
    Status.ITERATION_LIMIT: "raise max_rounds of dpopt.solve, or try {other}",
    Status.MEMORY_LIMIT: "solve a smaller instance, or state large constraint sets as families",
    Status.INTERRUPTED: "run it again without interrupting it",
    Status.STALLED: "try {other}, or a larger tolerance in dpopt.solve",
    Status.GAP: "give stop_at_gap to dpopt.solve, which then stops by itself",
    Status.NUMERICAL: "rescale the rows to similar size, or try {other}",
}


def advice(status: Status, backend: str) -> str:
    """Return advice for a failed solve; a suggested backend is never the one in use."""
    other = "cvxpy:CLARABEL" if backend == "highs" else "highs"
    return _ADVICE[status].format(other=f"backend={other!r}")


@dataclass(frozen=True, repr=False)
class Basis:
    """The final basis of a solve, for ``solve(problem, start=solution)``; its form may change.

    Attributes:
        variables: statuses by name of the variables, flat in C order.
        rows: statuses by name of the block, or of the family for its cuts.
        oracles: by family, its oracle and its slice of x. Pickles drop them, and with them the
            cuts, since an unpickled oracle is another object.
    """

    variables: Mapping[str, Statuses]
    rows: Mapping[str, Statuses]
    oracles: Mapping[str, tuple[Oracle, slice]]

    def __getstate__(self) -> dict[str, Any]:
        return {"variables": self.variables, "rows": self.rows, "oracles": {}}


@dataclass(frozen=True)
class Solution:
    """An optimal solution of a `Problem`, with its dual bound, gap and residual.

    Attributes:
        status: `Status.OPTIMAL`; or, if ``stop_at_gap`` was set, `Status.GAP` for a feasible point
            within that gap of its bound. Every other status raises an error.
        values: values by variable name, each in the shape it was added with, read-only.
        objective: the objective at the solution.
        bound: a bound on the optimum, recomputed from the dual vector and the original matrix:
            below the optimum when minimising, above it when maximising. By weak duality it is
            valid for any dual vector if every variable has finite bounds, or the rows imply some;
            where a bound is infinite, a reduced cost c_j - A_j'y below 1e-9 of its own terms
            |c_j| + |A_j|'|y| counts as zero.
        gap: distance from objective to bound; positive if the objective is worse than the bound.
        residual: largest violation over all blocks, families and variable bounds, recomputed.
        duals: by block or family name, the change of the objective per unit of the active limit.
        cuts: rows of each family that were added.
        constraints_checked: number of rows of all blocks, plus constraints that the oracles
            covered at the solution.
        rows_used: number of rows in the last relaxation.
        rounds: number of solves in the cutting-plane loop.
        iterations: solver iterations over all rounds.
        seconds: wall time.
        backend: the backend's name.
        basis: final basis, for a warm start; None if the backend has none.
        note: a remark: a later objective that was not reached.
    """

    status: Status
    values: Mapping[str, Vector]
    objective: float
    bound: float
    gap: float
    residual: float
    duals: Mapping[str, Vector]
    cuts: Mapping[str, Rows]
    constraints_checked: int
    rows_used: int
    rounds: int
    iterations: int
    seconds: float
    backend: str
    basis: Basis | None = field(default=None, repr=False, compare=False)
    note: str = ""

    @property
    def x(self) -> Vector:
        """All values, flat: groups in the order in which they were added, each in C order."""
        return np.concatenate([values.reshape(-1) for values in self.values.values()])

    def __getitem__(self, name: str) -> Vector:
        """Return the values of the variables ``name``, in their shape, read-only."""
        known("is no variable", name, self.values)
        return self.values[name]

    def __repr__(self) -> str:
        fields = ("status", "objective", "bound", "gap", "rows_used", "rounds", "backend")
        return brief(self, **{name: getattr(self, name) for name in fields})

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return values and duals as one tidy table: kind, name, index, value.

        The index is flat in C order: ``np.unravel_index(index, shape)`` gives one for each axis.
        """
        groups = [("variable", self.values), ("dual", self.duals)]
        blocks = [(kind, name, array) for kind, arrays in groups for name, array in arrays.items()]
        return {
            "kind": [kind for kind, _, array in blocks for _ in range(array.size)],
            "name": [name for _, name, array in blocks for _ in range(array.size)],
            "index": [index for *_, array in blocks for index in range(array.size)],
            "value": [number for *_, array in blocks for number in array.reshape(-1).tolist()],
        }


def joined(
    earlier: Mapping[str, Statuses],
    blocks: Mapping[str, slice | npt.NDArray[np.int64]],
    size: int,
    new: np.int8,
) -> Statuses:
    """Return the earlier statuses by name; ``new`` where the name or their number differs."""
    statuses = np.full(size, new)
    for name, indices in blocks.items():
        if name in earlier and earlier[name].size == statuses[indices].size:
            statuses[indices] = earlier[name]
    return statuses


def still_cuts(
    problem: Problem, basis: Basis, cuts: Mapping[str, Rows]
) -> Iterator[tuple[str, Rows]]:
    """Yield, by family, the earlier cuts that are valid for this problem, over its variables."""
    for name, (oracle, over) in basis.oracles.items():
        family = problem.families.get(name)
        if family is None or family.over.stop - family.over.start != over.stop - over.start:
            continue
        # Each access to a bound method makes a new object; two are equal if they belong to the same
        # instance. The equality of other objects could return an array, or be too weak.
        method = isinstance(oracle, MethodType)
        if oracle is family.oracle or (method and oracle == family.oracle):
            rows = replace(cuts[name], matrix=cuts[name].matrix[:, over])
            yield name, family.over_all(rows, problem.size)


def vertex(
    model: Model, columns: Statuses, rows: Statuses, x: Vector, y: Vector
) -> tuple[Vector, Vector] | None:
    """Return a solver's solution and multipliers, refined to those of its basis.

    The tight rows determine the basic variables, M x = limit, and the costs of these variables
    determine the multipliers, M^T y = cost; each gets two steps of iterative refinement with a
    sparse factorisation of M. HiGHS drops numbers below 1e-14; on a chain of 40 inputs, whose basis
    spans factors of e^(39 epsilon), they grow to 1e-7 in the reduced costs, refined to 1e-14.

    None if the basis does not determine them, or its matrix has more than 200,000 entries.
    """
    basic, tight = np.flatnonzero(columns == BASIC), np.flatnonzero(rows != BASIC)
    # Status 2 is at the upper limit.
    limit = np.where(rows == 2, model.rows.upper, model.rows.lower)[tight]
    if basic.size != tight.size or not np.all(np.isfinite(limit)):
        return None
    # M: the tight rows and, below, the basic columns.
    tight_rows = model.rows.matrix[tight]
    x, duals = np.array(x), np.zeros(rows.size)
    if not basic.size:
        return x, duals
    square = sp.csc_array(tight_rows[:, basic])
    # Above this number of entries (a dense basis of 450 rows, or 70,000 rows of three entries) a
    # factorisation could take longer than another strategy of the solver.
    if square.nnz > 200_000:
        return None
    try:
        factor = splu(square)
    except RuntimeError:
        # The basis matrix is singular.
        return None
    duals[tight] = y[tight]
    # Steps of iterative refinement; of a matrix that is nearly singular they are beyond all floats.
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(2):
            duals[tight] += factor.solve(model.cost[basic] - square.T @ duals[tight], trans="T")
            x[basic] += factor.solve(limit - tight_rows @ x)
    return x, duals


def dual_bound(model: Model, y: Vector) -> float:
    """Return a lower bound on min cost @ x from any dual vector, by weak duality.

    sum_i (y_i > 0 ? y_i lower_i : y_i upper_i) + sum_j min over the box of (cost - A'y)_j x_j.
    Multipliers that point at an infinite limit are set to 0. Where the box is infinite, a reduced
    cost counts as 0 below 1e-9 of its own terms |c_j| + |A_j|'|y| plus the change of A_j'y if each
    multiplier changes by the rounding error of the largest. The scale is each variable's own: a
    cost of 0.5 is not noise because another cost is 1e9; with it a free variable has no optimum.

    The sums are exact (`math.fsum`), and a bound on the rounding of their terms is subtracted. The
    bound is -inf if the multipliers y, positive at a lower limit, prove none.
    """
    limit = np.where(y > 0, model.rows.lower, model.rows.upper)
    y = np.where(np.isfinite(limit), y, 0.0)
    matrix, size = model.rows.matrix, np.abs(y)
    sizes = np.abs(model.cost) + abs(matrix).T @ size
    reduced = model.cost - matrix.T @ y
    box = np.where(reduced > 0, model.lower, model.upper)
    endless = ~np.isfinite(box)
    if np.any(endless):
        moved = 2.0**-52 * float(np.max(size, initial=0.0)) * (abs(matrix).T @ np.ones(y.size))
        # Reduced costs below this fraction of their own terms count as zero.
        reduced = np.where(endless & (np.abs(reduced) <= 1e-9 * sizes + moved), 0.0, reduced)
    fixed = y * np.where(y == 0.0, 0.0, limit)
    boxed = reduced * np.where(reduced == 0.0, 0.0, box)
    # Largest finite |x_j| in the box, for the rounding of the terms of variable j.
    ends = np.abs(np.array([model.lower, model.upper]))
    reach = np.max(ends, axis=0, initial=0.0, where=np.isfinite(ends))
    entries = np.bincount(matrix.indices, minlength=sizes.size)
    noise = math.fsum((entries + 4) * sizes * reach) * _UNIT + math.fsum(np.abs(fixed)) * 2 * _UNIT
    total = math.fsum([*fixed, *boxed])
    return total - 1.01 * noise - 2 * _UNIT * abs(total)


def implied_bound(model: Model, y: Vector, value: float) -> float:
    """Return a lower bound on min cost @ x from any dual vector, with implied variable bounds.

    Points of cost at most ``value`` lie in the box that the rows and this limit imply, and all
    others cost more. For a variable without bounds, such as the epigraph variable of a maximum, a
    small reduced cost then hardly lowers the bound.
    """
    cost = Rows(sp.csr_array(model.cost[None, :]), np.array([-np.inf]), np.array([value]))
    rows = stack([model.rows, cost], model.cost.size)
    lower, upper = implied_box(rows, model.lower, model.upper)
    return min(value, dual_bound(replace(model, lower=lower, upper=upper), y))


def implied_box(rows: Rows, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds on x that the rows and the given bounds imply (bound propagation).

    A row sum_j a_j x_j <= u implies a_j x_j <= u - min sum_{i != j} a_i x_i. At most eight passes
    over all rows, each rounded outwards.
    """
    # One entry a_ij for each index of row, column and value: of A x <= upper, then -A x <= -lower.
    entries = rows.matrix.tocoo()
    keep = entries.data != 0.0
    row = np.concatenate([entries.row[keep], entries.row[keep] + rows.count])
    column = np.tile(entries.col[keep], 2)
    value = np.concatenate([entries.data[keep], -entries.data[keep]])
    limits = np.concatenate([rows.upper, -rows.lower])
    count = np.bincount(row, minlength=limits.size)
    for _ in range(8):
        # The least value of each a_ij x_j, summed by row without the infinite ones.
        least = np.where(value > 0, value * lower[column], value * upper[column])
        finite = np.isfinite(least)
        terms = np.where(finite, least, 0.0)
        total, size, infinite = (
            np.bincount(row, each, minlength=limits.size) for each in (terms, abs(terms), ~finite)
        )
        # A bound on x_j is finite if no other entry of the row has an infinite least value.
        bounded = (infinite[row] - ~finite == 0) & np.isfinite(limits[row])
        limit = np.where(bounded, limits[row], 0.0)
        error = (count[row] + 4) * 2 * _UNIT * (np.abs(limit) + size[row])
        with np.errstate(over="ignore"):
            ends = (limit - (total[row] - terms) + error) / value
        ends += np.sign(value) * 4 * _UNIT * np.abs(ends)
        before, lower, upper = (lower, upper), lower.copy(), upper.copy()
        above, below = bounded & (value > 0), bounded & (value < 0)
        np.minimum.at(upper, column[above], ends[above])
        np.maximum.at(lower, column[below], ends[below])
        if np.any(lower > upper):
            return before
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper
