"""What a table spends: its least epsilon or delta, and its tight dominating pair.

For two neighbours with distributions P and Q, an event S and a ratio r = e^epsilon, privacy says
P(S) <= r Q(S) + delta. So the least ratio of a table is the largest (P(S) - delta) / Q(S) over all
neighbours and events, a rational number, and its least epsilon is the logarithm. Of all events only
m matter: the first outputs, one, two, ..., by falling P / Q (Neyman, Pearson). The least delta for
an epsilon is the largest sum_y max(0, P(y) - r Q(y)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, float_up
from dpopt._types import Vector
from dpopt.privacy.dominating import DominatingPair, Point, likelihood_tests
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.privacy.least import Least, least_of_ratio
from dpopt.table.table import Table

# Of e^epsilon, where a delta may be as small as the least float.
_BITS = 1280
_LARGEST_EXPONENT = 10_000
# Above this a ratio may leave the floats.
_LARGEST_RATIO = 1e300
# Events of the largest dominating pair, and entries that are looked at together; memory fixes both.
_MOST_EVENTS, _TOGETHER = 4_000_000, 4_000_000


def least_of_table(table: Table, epsilon: float | None, delta: float | None) -> Least:
    """Return the least epsilon of a table for a delta, or the least delta for an epsilon, enclosed.

    Args:
        table: private or not.
        epsilon: in [0, 10,000], in nats; None asks for the least one.
        delta: in [0, 1), where epsilon is None.

    Raises:
        ParameterError: for numbers out of range, or too many edges with their outputs.
    """
    if epsilon is not None:
        return _least_delta(table, _checks.real("epsilon", epsilon, 0.0, _LARGEST_EXPONENT))
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    return _ratio_of_outputs(table) if delta == 0 else _ratio_of_events(table, delta)


def _ratio_of_outputs(table: Table) -> Least:
    """Return the least epsilon for delta = 0: one output is as good as an event.

    The logarithm of a weight to base 2 is computed with an error of at most 2^-50 of its size, or
    of 1, and the difference of two with one of at most 2^-48 of the largest. A group that falls
    short of the largest difference by more than twice that has a smaller ratio.
    """
    weights, inputs = table.weights, table.inputs
    high, low, at = 1, 1, None
    groups, logs = inputs.neighbours, np.array([math.log2(w) if w else -1e300 for w in weights])
    spread = logs[groups].max(axis=1) - logs[groups].min(axis=1) if groups.size else np.zeros(0)
    largest = spread.max(initial=0.0) - 2.0**-47 * max(1.0, float(logs.max()))
    for group in groups[spread >= largest].tolist():
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
    """Return some neighbours, where all of them are alike."""
    groups = table.inputs.neighbours
    ends = next(((a, b) for a, *rest in groups.tolist() for b in rest if a != b), None)
    return (0, 0) if ends is None else table.inputs.words(*ends)[:2]


def _ratio_of_events(table: Table, delta: float) -> Least:
    """Return the least epsilon for delta > 0.

    An edge that is private at the largest ratio so far has no larger one. Floats say so of most
    edges, with room for their rounding, and integers of the others.
    """
    edges, limit = _DirectedEdges(table), Fraction(delta)
    ratio, worst, event = Fraction(1), None, list[int]()
    undecided = np.ones(edges.count, dtype=bool)
    while undecided.any():
        # A smaller ratio says less: what is private for it is so for a larger one.
        excess = edges.excesses(float(min(ratio, Fraction(_LARGEST_RATIO))))
        undecided &= excess > delta - edges.error
        if not undecided.any():
            break
        # The worst first: it raises the ratio for all others.
        edge = int(np.argmax(np.where(undecided, excess, -1.0)))
        undecided[edge] = False
        if edges.excess(edge, ratio) <= limit:
            continue
        larger, event = edges.largest_ratio(edge, limit)
        worst = edge
        if larger is None:
            return least_of_ratio(None, *edges.event(edge, event), delta)
        ratio = larger
    if worst is None:
        return least_of_ratio(Fraction(1), _first_neighbours(table), (), delta)
    return least_of_ratio(ratio, *edges.event(worst, event), delta)


def _least_delta(table: Table, epsilon: float) -> Least:
    """Return the least delta for an epsilon."""
    low, high = exp_lower(epsilon, _BITS), exp_upper(epsilon, _BITS)
    edges = _DirectedEdges(table)
    near = np.ones(edges.count, dtype=bool)
    if low < _LARGEST_RATIO:
        # An edge that is not within the rounding of the largest one is not it.
        floats = edges.excesses(float(low))
        near = floats >= floats.max(initial=0.0) - 2 * edges.error
    candidates = ((edges.excess(edge, low), -edge) for edge in np.flatnonzero(near).tolist())
    excess, edge = max(candidates, default=(Fraction(0), 0))
    if excess == 0:
        return Least("delta", 0.0, 0.0, epsilon, _first_neighbours(table), ())
    # Of the same edge at the upper end: the least delta of all edges is at least that.
    under = edges.excess(-edge, high)
    ends, outputs = edges.event(-edge, edges.above(-edge, low))
    return Least("delta", float_down(under), float_up(excess), epsilon, ends, outputs)


@dataclass(frozen=True, eq=False)
class _DirectedEdges:
    """The edges of a table in both directions: 2 e is edge e, and 2 e + 1 the same turned.

    Attributes:
        table: the integers.
    """

    table: Table

    @property
    def count(self) -> int:
        """Number of directed edges."""
        return 2 * len(self.table.inputs.edges.starts) - 2

    @cached_property
    def error(self) -> float:
        """What `excesses` are off by, at most.

        A term is at most P(y), and off by at most five roundings of it where it is above 0: the
        positive part of what is below 0 is 0 whatever the rounding. So a sum of m terms is off by
        less than (m + 10) 2^-51.
        """
        return (int(np.diff(self.table.inputs.edges.starts).max(initial=0)) + 10) * 2.0**-51

    def excesses(self, ratio: float) -> Vector:
        """Return sum_y max(0, P(y) - ratio Q(y)) of each directed edge in floats."""
        edges, values = self.table.inputs.edges, self.table.probabilities
        sums, starts = np.zeros((2, len(edges.starts) - 1)), edges.starts
        # So many edges at a time that memory does not grow with them.
        step = max(1, _TOGETHER // int(np.diff(starts).max(initial=1)))
        for begin in range(0, len(starts) - 1, step):
            ends = starts[begin : begin + step + 1]
            part, counts = slice(ends[0], ends[-1]), edges.counts[ends[0] : ends[-1]]
            p, q = values[edges.first[part]] * counts, values[edges.second[part]] * counts
            for direction, (one, other) in enumerate(((p, q), (q, p))):
                gains = np.maximum(one - ratio * other, 0.0)
                sums[direction, begin : begin + step] = np.add.reduceat(gains, ends[:-1] - ends[0])
        return sums.T.ravel()

    def rows(self, edge: int) -> tuple[list[int], list[int]]:
        """Return the weights of both ends of a directed edge by entry, over the table's total."""
        edges, weights = self.table.inputs.edges, self.table.weights
        part = slice(*edges.starts[edge // 2 : edge // 2 + 2])
        many = edges.counts[part].tolist()
        first, second = (
            [n * weights[v] for n, v in zip(many, side[part].tolist(), strict=True)]
            for side in (edges.first, edges.second)
        )
        return (second, first) if edge % 2 else (first, second)

    def excess(self, edge: int, ratio: Fraction) -> Fraction:
        """Return sum_y max(0, P(y) - ratio Q(y)), exactly."""
        up, down = ratio.denominator, ratio.numerator
        total = sum(max(0, up * p - down * q) for p, q in zip(*self.rows(edge), strict=True))
        return Fraction(total, up * self.table.total)

    def above(self, edge: int, ratio: Fraction) -> list[int]:
        """Return the entries with P(y) > ratio Q(y)."""
        up, down = ratio.denominator, ratio.numerator
        both = enumerate(zip(*self.rows(edge), strict=True))
        return [entry for entry, (p, q) in both if up * p > down * q]

    def largest_ratio(self, edge: int, delta: Fraction) -> tuple[Fraction | None, list[int]]:
        """Return the largest (P(S) - delta) / Q(S), None if infinite, and the entries of S."""
        p, q = self.rows(edge)
        entries = [entry for entry in range(len(p)) if p[entry]]
        entries.sort(key=lambda entry: (q[entry] > 0, Fraction(q[entry], p[entry])))
        best, size, above, below = Fraction(1), 0, 0, 0
        for count, entry in enumerate(entries, 1):
            above, below = above + p[entry], below + q[entry]
            gain = above - delta * self.table.total
            if gain <= 0:
                continue
            if below == 0:
                return None, entries[:count]
            if gain / below > best:
                best, size = gain / below, count
        return best, entries[:size]

    def event(
        self, edge: int, entries: list[int]
    ) -> tuple[tuple[int | str, int | str], tuple[int | str, ...]]:
        """Return the two inputs of a directed edge, and the outputs of some of its entries."""
        begin = int(self.table.inputs.edges.starts[edge // 2])
        ends, outputs = self.table.inputs.event(edge // 2, [begin + entry for entry in entries])
        one, other = ends
        return ((other, one) if edge % 2 else (one, other)), outputs


def dominating_pair(table: Table) -> DominatingPair:
    """Return the tight dominating pair over all neighbours.

    Outputs that two neighbours have with the same two weights are told apart together.

    Raises:
        ParameterError: for more than 4,000,000 events.
    """
    edges, bits = _DirectedEdges(table), table.total.bit_length()
    events = 2 * len(table.inputs.edges.first)
    if events > _MOST_EVENTS:
        raise ParameterError(
            f"the table has {events:.1e} events of neighbours; the privacy loss is found from at "
            f"most {_MOST_EVENTS:.0e}."
        )

    def points() -> Iterator[Point]:
        for edge in range(edges.count):
            yield from likelihood_tests(*edges.rows(edge), bits)

    return DominatingPair.of_points(points(), table.total)
