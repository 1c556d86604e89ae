"""The basis at which a simplex method ends: to start from again, and to compute its point anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from dpopt._types import Vector
from dpopt.lp.model import Model, Oracle, Rows
from dpopt.lp.problem import Problem

Statuses = npt.NDArray[np.int8]
"""Statuses in a basis: 0 at the lower limit, 1 basic, 2 at the upper limit, 3 free at zero."""

BASIC = 1
_UPPER = 2
_STEPS = 2
# Beyond it a factorisation could take longer than another way of the solver: a dense basis of 450
# rows, or 70,000 rows of three entries.
_MOST_ENTRIES = 200_000


@dataclass(frozen=True, repr=False)
class Basis:
    """Where a simplex method ended, for ``solve(problem, start=solution)``; not to be looked into.

    Attributes:
        variables: statuses by name of the variables, flat.
        rows: statuses by name of the block, or of the family for its cuts.
        oracles: by family, its oracle and its place in x; lost in pickles, where an oracle is no
            longer the same object, and with them the cuts.
    """

    variables: Mapping[str, Statuses]
    rows: Mapping[str, Statuses]
    oracles: Mapping[str, tuple[Oracle, slice]]

    def __getstate__(self) -> dict[str, Any]:
        return {"variables": self.variables, "rows": self.rows, "oracles": {}}


def joined(
    before: Mapping[str, Statuses],
    parts: Mapping[str, slice | npt.NDArray[np.int64]],
    size: int,
    new: int,
) -> Statuses:
    """Return the statuses of an earlier basis by name, ``new`` where not as many have the name."""
    statuses = np.full(size, new, dtype=np.int8)
    for name, part in parts.items():
        if name in before and before[name].size == statuses[part].size:
            statuses[part] = before[name]
    return statuses


def still_cuts(
    problem: Problem, basis: Basis, cuts: Mapping[str, Rows]
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of earlier cuts that are cuts of this problem, over its variables."""
    for name, (oracle, over) in basis.oracles.items():
        family = problem.families.get(name)
        if family is None or not _same(oracle, family.oracle):
            continue
        if family.over.stop - family.over.start == over.stop - over.start:
            seen = replace(cuts[name], matrix=cuts[name].matrix[:, over])
            yield name, family.over_all(seen, problem.size)


def _same(oracle: Oracle, other: Oracle) -> bool:
    # A method is a new object each time that it is asked for; they are equal if their objects are
    # the same one. Other kinds of equality could be an array, or mean less than it takes.
    return oracle is other or (isinstance(oracle, MethodType) and oracle == other)


def vertex(
    model: Model, columns: Statuses, rows: Statuses, x: Vector, y: Vector
) -> tuple[Vector, Vector] | None:
    """Return a solver's point and multipliers, refined to be those of its basis.

    The rows that are at a limit determine the basic columns, M x = limit, and the costs of these
    columns determine the multipliers, M^T y = cost: two steps of iterative refinement of each by a
    sparse factorisation of M. A solver drops small numbers on its way, 1e-14 in HiGHS; a chain of
    40 inputs, whose basis holds ratios of e^(39 epsilon), makes 1e-7 of them in the reduced costs,
    where this leaves 1e-14.

    Returns:
        The point and the multipliers; None if the basis does not determine them, or its matrix
        has more than 200,000 entries.
    """
    basic, tight = np.flatnonzero(columns == BASIC), np.flatnonzero(rows != BASIC)
    limit = np.where(rows == _UPPER, model.rows.upper, model.rows.lower)[tight]
    if basic.size != tight.size or not np.all(np.isfinite(limit)):
        return None
    at_limit = model.rows.matrix[tight]
    x, full = np.array(x), np.zeros(rows.size)
    if not basic.size:
        return x, full
    square = sp.csc_array(at_limit[:, basic])
    if square.nnz > _MOST_ENTRIES:
        return None
    try:
        factor = splu(square)
    except RuntimeError:
        # It is singular.
        return None
    full[tight] = y[tight]
    for _ in range(_STEPS):
        full[tight] += factor.solve(model.cost[basic] - square.T @ full[tight], trans="T")
        x[basic] += factor.solve(limit - at_limit @ x)
    return x, full
