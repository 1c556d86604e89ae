"""What a table spends: its least epsilon or delta, and its tight dominating pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import cast

import numpy as np

from dpopt.privacy.dominating import DominatingPair, Point, likelihood_tests, upper_hull
from dpopt.privacy.least import Least, least_delta, least_epsilon, least_of_ratio
from dpopt.table.inputs import Graph
from dpopt.table.table import Table


def least_of_table(table: Table, epsilon: float | None, delta: float | None) -> Least:
    """Return the least epsilon of a table for a delta, or the least delta for an epsilon.

    Args:
        table: private or not.
        epsilon: see `dpopt.privacy.least_delta`; None asks for the least one.
        delta: see `dpopt.privacy.least_epsilon`, where epsilon is None.
    """
    if epsilon is None and delta == 0:
        return _largest_ratio(table)
    if isinstance(table.inputs, Graph):
        starts, weights = table.inputs.starts.tolist(), table.weights
        rows = [list(weights[a:b]) for a, b in pairwise(starts)]
        pairs = table.inputs.pairs
        if epsilon is None:
            return least_epsilon(rows, cast(float, delta), pairs=pairs)
        return least_delta(rows, epsilon, pairs=pairs)
    return _least_of_edges(table, epsilon, delta)


def _largest_ratio(table: Table) -> Least:
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
        return least_of_ratio(Fraction(1), (0, 0), ())
    one, other, output = inputs.words(*at)
    ratio = Fraction(high, low) if low else None
    if isinstance(inputs, Graph) or one.isdigit():
        return least_of_ratio(ratio, (int(one), int(other)), (int(output),))
    return least_of_ratio(ratio, (f"{one}, {output}", other), (0,))


def _least_of_edges(table: Table, epsilon: float | None, delta: float | None) -> Least:
    """Return the least of one edge of each orbit: all others are these, permuted."""
    weights, both, worst, lowest = table.weights, [(0, 1), (1, 0)], None, 0.0
    for first, second, counts in table.inputs.edges.listed():
        rows = [
            [n * weights[v] for n, v in zip(counts, side, strict=True)] for side in (first, second)
        ]
        if epsilon is None:
            least = least_epsilon(rows, cast(float, delta), pairs=both)
        else:
            least = least_delta(rows, epsilon, pairs=both)
        lowest = max(lowest, least.lower)
        if worst is None or least.upper > worst[0].upper:
            worst = least, (first, second)
    if worst is None:
        return least_of_ratio(Fraction(1), (0, 0), ())
    least, (first, second) = worst
    entry = int(least.outputs[0]) if least.outputs else 0
    ends = table.inputs.words(first[entry], second[entry])[:2]
    ends = ends[::-1] if least.inputs == (1, 0) else ends
    return replace(least, lower=lowest, inputs=cast(tuple[str, str], ends))


def dominating_pair(table: Table) -> DominatingPair:
    """Return the tight dominating pair over all neighbours.

    Outputs that two neighbours have with the same two weights are told apart together.
    """
    weights, bits = table.weights, table.total.bit_length()

    def points() -> Iterator[Point]:
        for first, second, counts in table.inputs.edges.listed():
            row = [n * weights[v] for n, v in zip(counts, first, strict=True)]
            other = [n * weights[v] for n, v in zip(counts, second, strict=True)]
            yield from likelihood_tests(row, other, bits)
            yield from likelihood_tests(other, row, bits)

    return DominatingPair.of_points(upper_hull(points()), table.total)
