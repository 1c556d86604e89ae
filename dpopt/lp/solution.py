"""The result of a solve: solution, dual bound, residual, statistics, and the final basis.

The basis of a simplex method is a warm start, and its vertex is computed accurately.
"""

from __future__ import annotations

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
from dpopt.lp.model import Model, Oracle, Rows
from dpopt.lp.problem import Problem, known

Statuses = npt.NDArray[np.int8]
"""Basis statuses: 0 at the lower limit, 1 basic, 2 at the upper limit, 3 free at zero."""

# Status of a basic variable or row.
BASIC = np.int8(1)


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
