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
from dpopt.privacy.dominating import hull, likelihood_tests
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
    bits = total.bit_length()
    # Pairs with the same curve count once.
    unique = {tuple(likelihood_tests(*pair, bits)): pair for pair in sides}
    curves = list(unique.items())
    if all(len(one) <= 2 for _, (one, _) in curves):
        vertices = set(hull([(0, 0), (total, total), *(curve[0] for curve, _ in curves if curve)]))
        by_vertex = {curve[0]: pair for curve, pair in curves if curve and curve[0] in vertices}
        return list(by_vertex.values()) or [pair for _, pair in curves[:1]]
    # The largest P(S) - Q(S) first: such pairs dominate most others.
    curves.sort(key=lambda entry: -max(a - b for b, a in entry[0]))
    exact = [curve for curve, _ in curves]
    # Shape (pairs, 2, points), the last point repeated.
    most = max(map(len, exact), default=0)
    padded = [[*curve, *[curve[-1]] * (most - len(curve))] for curve in exact]
    # Integers may be longer than a float's.
    shares = [[(b / total, a / total) for b, a in curve] for curve in padded]
    floats = np.array(shares).reshape(len(shares), most, 2).swapaxes(1, 2)
    left, kept, compared = np.arange(len(curves)), list[Sides](), 0
    while left.size:
        first, left = int(left[0]), left[1:]
        kept.append(curves[first][1])
        compared += left.size * most
        # Some seconds.
        if compared > 100_000_000:
            raise ParameterError(
                f"neighbours have {len(curves):,} pairs of distributions of up to {most} outcomes, "
                "of which too many count; those of several releases are compared in up to "
                "100,000,000 steps."
            )
        x, y = np.insert(floats[first], 0, 0.0, axis=1)
        rises, runs = np.diff(y), np.diff(x)
        steepest = float(np.max(rises[runs > 0] / runs[runs > 0], initial=0.0))
        # Rounding moves a point along x by 2^-52 at most, and its height by as much times a slope.
        rounding = (1 + steepest) * 2.0**-48
        under = (np.interp(floats[left, 0], x, y) - floats[left, 1]).min(axis=1)
        unclear = np.flatnonzero(np.abs(under) <= rounding)
        decided = [verify.under(exact[left[at]], exact[first]) for at in unclear.tolist()]
        dominated = under > rounding
        dominated[unclear] = decided
        left = left[~dominated]
    return kept
