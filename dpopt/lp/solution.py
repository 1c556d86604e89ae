"""The result of a solve: solution, dual bound, residual and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from dpopt._types import Vector, brief
from dpopt.lp.basis import Basis
from dpopt.lp.model import Rows
from dpopt.lp.problem import known


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
