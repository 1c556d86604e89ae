"""Pairs of distributions of neighbours, for the accounting of several releases.

What k releases spend is decided by the recursion of `dpopt.composition`, whose step is the largest
sum_y w(a P_y, b Q_y) over all pairs (P, Q) of neighbours. As w(a, b) = b f(a / b) with f convex,
f(0) = 0 and f rising, f is a mixture of the functions max(t - alpha, 0): so a pair counts for
nothing if at every alpha another single pair has at least its sum_y max(P_y - alpha Q_y, 0), in
other words if its curve of events (Q(S), P(S)) lies under the other's.

With two outputs the sum is a convex function of (P_1, Q_1), so that the vertices of the hull of all
pairs are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.table.least import DirectedEdges
from dpopt.table.table import Table

Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""Two distributions as integers over a common total."""


def pairs_of(table: Table) -> list[tuple[Vector, Vector]]:
    """Return the pairs (P, Q) of neighbours that count, in both orders, as floats.

    Outputs that share a variable are one outcome: their ratios are equal.
    """
    entries = len(table.inputs.edges.first)
    # Comparing them takes seconds.
    if entries > 500_000:
        raise ParameterError(
            f"neighbours have {entries:,} outcomes; those of several releases are compared up to "
            "500,000."
        )
    edges = DirectedEdges(table)
    sides = {(tuple(p), tuple(q)) for p, q in map(edges.rows, range(edges.count))}
    return as_floats(undominated(sides, table.total), table.total)


def as_floats(sides: Iterable[Sides], total: int) -> list[tuple[Vector, Vector]]:
    """Return pairs of integers over ``total`` as probabilities, each rounded once.

    A P that is not 0 stays above 0, however small it is.
    """
    return [
        (
            np.array([max(p / total, 1e-300) if p else 0.0 for p in one]),
            np.array([q / total for q in other]),
        )
        for one, other in sides
    ]


def undominated(sides: Iterable[Sides], total: int) -> list[Sides]:
    """Return the pairs (P, Q) over ``total`` that no other single pair dominates; exact.

    With two outputs, both orders of each pair must be given.
    """
    try:
        # Some minutes at most.
        return verify.deciding(sides, total, 100_000_000)
    except verify.Malformed:
        raise ParameterError(
            "neighbours have too many pairs of distributions that count; those of several releases "
            "are compared in up to 100,000,000 steps."
        ) from None
