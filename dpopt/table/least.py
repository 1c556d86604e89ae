"""The privacy cost of a table: its least epsilon or delta, and its tight dominating pair.

For two neighbours with distributions P and Q and an event S, privacy says P(S) <= r Q(S) + delta
with r = e^epsilon. So the least r of a table is the largest (P(S) - delta) / Q(S) over all
neighbours and events, a rational number, and the least epsilon is its logarithm. With m outputs,
only m events matter: the first 1, 2, ..., m outputs by descending P / Q (Neyman-Pearson). The least
delta for an epsilon is the largest sum_y max(0, P(y) - r Q(y)).

What k releases spend is decided by the recursion of `dpopt.composition`, whose step is the largest
sum_y w(a P_y, b Q_y) over all pairs (P, Q) of neighbours. As w(a, b) = b f(a / b) with f convex,
f(0) = 0 and f rising, f is a mixture of the functions max(t - alpha, 0): so a pair counts for
nothing if at every alpha another single pair has at least its sum_y max(P_y - alpha Q_y, 0), in
other words if its curve of events (Q(S), P(S)) lies under the other's. With two outputs the sum is
a convex function of (P_1, Q_1), so that the vertices of the hull of all pairs are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, float_up
from dpopt._types import Vector
from dpopt.privacy.cost import DominatingPair, Least, least_of_ratio
from dpopt.privacy.exact import exp_lower, exp_upper
from dpopt.table.table import Table

Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""Two distributions as integers over a common total."""

# A larger e^epsilon may overflow in products of floats.
_LARGEST_FLOAT = 1e300
# Events of the largest dominating pair, and entries processed at once; memory fixes both.
_MOST_EVENTS, _TOGETHER = 4_000_000, 4_000_000


def least_of_table(table: Table, epsilon: float | None, delta: float | None) -> Least:
    """Return an enclosure of a table's least epsilon for a delta; if epsilon is given, of delta."""
    if epsilon is not None:
        # Largest epsilon in nats of `exp_lower` and `exp_upper`.
        return _least_delta(table, _checks.real("epsilon", epsilon, 0.0, 10_000))
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    return _least_epsilon_pure(table) if delta == 0 else _least_epsilon(table, delta)


def _least_epsilon_pure(table: Table) -> Least:
    """Return the least epsilon for delta = 0, where events of one output suffice."""
    weights, inputs = table.weights, table.inputs
    high, low, at = 1, 1, None
    for group in inputs.neighbours.tolist():
        most, least = max(group, key=weights.__getitem__), min(group, key=weights.__getitem__)
        if weights[most] * low > high * weights[least]:
            high, low, at = weights[most], weights[least], (most, least)
            if low == 0:
                break
    if at is None:
        return least_of_ratio(Fraction(1), _first_neighbours(table), ())
    one, other, output = inputs.words(*at)
    return least_of_ratio(Fraction(high, low) if low else None, (one, other), (output,))


def _first_neighbours(table: Table) -> tuple[int | str, int | str]:
    """Return some neighbours, for a result that holds with equality for all of them."""
    groups = table.inputs.neighbours
    ends = next(((a, b) for a, *others in groups.tolist() for b in others if a != b), None)
    return (0, 0) if ends is None else table.inputs.words(*ends)[:2]


def _least_epsilon(table: Table, delta: float) -> Least:
    """Return the least epsilon for delta > 0: the worst edge raises it until none exceeds delta."""
    edges, limit = DirectedEdges(table), Fraction(delta)
    exp_epsilon, where = Fraction(1), (_first_neighbours(table), tuple[int | str, ...]())
    while exp_epsilon is not None:
        excess, edge = edges.worst(exp_epsilon, limit)
        if excess <= limit:
            break
        exp_epsilon = edges.least_exp_epsilon(edge, limit)
        where = edges.event(edge, exp_epsilon)
    return least_of_ratio(exp_epsilon, *where, delta)


def _least_delta(table: Table, epsilon: float) -> Least:
    """Return the least delta for an epsilon."""
    # Fractional bits of e^epsilon: enough for a delta as small as the least float, 2^-1074.
    low, high = exp_lower(epsilon, 1280), exp_upper(epsilon, 1280)
    edges = DirectedEdges(table)
    excess, edge = edges.worst(low, Fraction(0))
    if excess == 0:
        return Least("delta", 0.0, 0.0, epsilon, _first_neighbours(table), ())
    # The same edge at the upper bound of e^epsilon gives a lower bound of the least delta.
    under = float_down(edges.excess(edge, high))
    return Least("delta", under, float_up(excess), epsilon, *edges.event(edge, low))


@dataclass(frozen=True, eq=False)
class DirectedEdges:
    """The edges of a table in both directions: 2 e is edge e, and 2 e + 1 its reverse."""

    table: Table

    @property
    def count(self) -> int:
        """Number of directed edges."""
        return 2 * len(self.table.inputs.edges.starts) - 2

    def worst(self, exp_epsilon: Fraction, above: Fraction) -> tuple[Fraction, int]:
        """Return the largest excess, and its first edge; 0 and some edge if none is ``above``.

        Floats show that most edges do not have it; integers decide the others. A positive term of a
        sum is at most P(y) and has at most five roundings of that size; a negative one has the
        positive part 0 in any case: m terms are off by less than (m + 10) 2^-51.
        """
        contenders = np.ones(self.count, dtype=bool)
        if exp_epsilon < _LARGEST_FLOAT:
            error = (int(np.diff(self.table.inputs.edges.starts).max(initial=0)) + 10) * 2.0**-51
            floats = self.excesses(float(exp_epsilon))
            contenders = floats >= max(floats.max(initial=0.0) - 2 * error, float(above) - error)
        edges = np.flatnonzero(contenders).tolist()
        excess, edge = max(
            ((self.excess(e, exp_epsilon), -e) for e in edges), default=(Fraction(0), 0)
        )
        return excess, -edge

    def excesses(self, exp_epsilon: float) -> Vector:
        """Return sum_y max(0, P(y) - ratio Q(y)) of each directed edge in floats."""
        edges, values = self.table.inputs.edges, self.table.probabilities
        sums, starts = np.zeros((2, len(edges.starts) - 1)), edges.starts
        # Edges in chunks of bounded size; axis 0 of `sums` is the direction, axis 1 the edge.
        step = max(1, _TOGETHER // int(np.diff(starts).max(initial=1)))
        for begin in range(0, len(starts) - 1, step):
            ends = starts[begin : begin + step + 1]
            entries, counts = slice(ends[0], ends[-1]), edges.counts[ends[0] : ends[-1]]
            p, q = values[edges.first[entries]] * counts, values[edges.second[entries]] * counts
            for direction, (one, other) in enumerate(((p, q), (q, p))):
                gains = np.maximum(one - exp_epsilon * other, 0.0)
                sums[direction, begin : begin + step] = np.add.reduceat(gains, ends[:-1] - ends[0])
        return sums.T.ravel()

    def rows(self, edge: int) -> tuple[list[int], list[int]]:
        """Return the numerators of P and Q by entry, over the table's total."""
        edges, weights = self.table.inputs.edges, self.table.weights
        entries = slice(*edges.starts[edge // 2 : edge // 2 + 2])
        counts = edges.counts[entries].tolist()
        first, second = (
            [n * weights[v] for n, v in zip(counts, side[entries].tolist(), strict=True)]
            for side in (edges.first, edges.second)
        )
        return (second, first) if edge % 2 else (first, second)

    def excess(self, edge: int, exp_epsilon: Fraction) -> Fraction:
        """Return sum_y max(0, P(y) - ratio Q(y)), exactly."""
        up, down = exp_epsilon.denominator, exp_epsilon.numerator
        total = sum(max(0, up * p - down * q) for p, q in zip(*self.rows(edge), strict=True))
        return Fraction(total, up * self.table.total)

    def least_exp_epsilon(self, edge: int, delta: Fraction) -> Fraction | None:
        """Return the largest (P(S) - delta) / Q(S), at least 1; None if it is infinite."""
        best, limit = Fraction(1), delta * self.table.total
        for below, above in verify.curve_of(self.rows(edge)):
            if above > limit:
                if below == 0:
                    return None
                best = max(best, (above - limit) / below)
        return best

    def event(
        self, edge: int, exp_epsilon: Fraction | None
    ) -> tuple[tuple[int | str, int | str], tuple[int | str, ...]]:
        """Return the two inputs of a directed edge, and the outputs with P > e^epsilon Q there."""
        # Beyond all ratios of weights, so that Q is 0.
        growth = Fraction(self.table.total + 1) if exp_epsilon is None else exp_epsilon
        up, down = growth.denominator, growth.numerator
        begin = int(self.table.inputs.edges.starts[edge // 2])
        rows = enumerate(zip(*self.rows(edge), strict=True), begin)
        entries = [entry for entry, (p, q) in rows if up * p > down * q]
        (one, other), outputs = self.table.inputs.event(edge // 2, entries)
        return ((other, one) if edge % 2 else (one, other)), outputs


def dominating_pair(table: Table) -> DominatingPair:
    """Return the tight dominating pair over all neighbours.

    Outputs with the same two variables for a pair of neighbours count as one outcome.
    """
    edges = DirectedEdges(table)
    events = 2 * len(table.inputs.edges.first)
    if events > _MOST_EVENTS:
        raise ParameterError(
            f"the table has {events:.1e} events of neighbours; the privacy loss is found from at "
            f"most {_MOST_EVENTS:.0e}."
        )

    curves = (verify.curve_of(edges.rows(edge)) for edge in range(edges.count))
    return DominatingPair.of_points(chain.from_iterable(curves), table.total)


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
