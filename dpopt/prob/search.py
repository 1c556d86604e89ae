"""Branch and bound over the compositions of two shares."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from dpopt._progress import advance
from dpopt._types import Vector
from dpopt.prob.expectation import Sequence, allowance, averages, expectation
from dpopt.prob.subdivision import all_compositions
from dpopt.prob.sum_law import Share, sum_law
from dpopt.prob.vshape import candidate_majorants

LEAF = 256
"""Width of the intervals on which all compositions are computed."""

WIDEST = 4096
"""Width of the widest intervals on which V is averaged over the common records."""


@dataclass(frozen=True)
class CompositionMaximum:
    """The largest E_{n1} over n1 = 0..n.

    Attributes:
        log_value: log E_{n1} at ``ones_from_high``.
        ones_from_high: n1, the number of records of share ``high``; of compositions closer than
            twice the `allowance`, any one.
        evaluated: number of compositions whose expectation was computed.
        log_bound: no composition exceeds it; it contains the allowance for rounding.
        certified: whether ``log_bound`` is within twice the allowance of ``log_value``.
        method: "one composition", "ends of a V-shape", "every composition" or "branch and bound".
    """

    log_value: float
    ones_from_high: int
    evaluated: int
    log_bound: float
    certified: bool
    method: str


class Search:
    """Best-first search over intervals of n1; see `composition.maximise` for the two bounds."""

    def __init__(self, values: Vector, low: Share, high: Share) -> None:
        self.low, self.high = low, high
        self.records = values.size - 1
        self.sequence = Sequence(values)
        self.majorants = [Sequence(majorant) for majorant in candidate_majorants(values)]
        self.known: dict[int, float] = {}
        self.lifted: dict[tuple[int, int], float] = {}
        self.best = -math.inf
        self.argmax = 0

    def run(self, most: int) -> CompositionMaximum:
        """Return the maximum, after at most about ``most`` expectations."""
        n = self.records
        heap = [(-self.ceiling(0, n), 0, n)]
        settled = -math.inf
        while heap and -heap[0][0] > self.goal() and len(self.known) < most:
            advance("branch and bound", len(self.known))
            bound, a, b = heapq.heappop(heap)
            bound = min(-bound, self.smooth_ceiling(a, b)) if b - a <= WIDEST else -bound
            if bound <= self.goal():
                settled = max(settled, bound)
            elif b - a <= LEAF:
                settled = max(settled, self.settle(a, b))
            else:
                middle = (a + b) // 2
                for left, right in ((a, middle), (middle, b)):
                    inherited = min(bound, self.ceiling(left, right))
                    heapq.heappush(heap, (-inherited, left, right))
        advance("branch and bound", 1, 1)
        slack = allowance(n, self.best, LEAF)
        log_bound = max(self.best + slack, settled, -heap[0][0] if heap else -math.inf)
        certified = log_bound <= self.goal()
        return CompositionMaximum(
            self.best, self.argmax, len(self.known), log_bound, certified, "branch and bound"
        )

    def goal(self) -> float:
        """Return what a bound must not exceed: the best value and twice the allowance."""
        return self.best + 2.0 * allowance(self.records, self.best, LEAF)

    def value(self, ones: int) -> float:
        """Return log E_{n1}, and keep it if it is the best so far."""
        if ones not in self.known:
            law = sum_law(self.low, self.high, self.records - ones, ones)
            self.known[ones] = expectation(self.sequence, law)
            if self.known[ones] > self.best:
                self.best, self.argmax = self.known[ones], ones
        return self.known[ones]

    def ceiling(self, a: int, b: int) -> float:
        """Bound log E_{n1} on [a, b] by V-shaped majorants of V at both ends."""
        for ones in (a, b):
            self.value(ones)
        bound = math.inf
        for place, majorant in enumerate(self.majorants):
            if bound <= self.goal():
                break
            for ones in (a, b):
                if (place, ones) not in self.lifted:
                    law = sum_law(self.low, self.high, self.records - ones, ones)
                    self.lifted[place, ones] = expectation(majorant, law)
            above = max(self.lifted[place, a], self.lifted[place, b])
            bound = min(bound, above + allowance(self.records, above))
        return bound

    def averages(self, a: int, b: int) -> Vector | None:
        """Return W of [a, b]: V averaged over what its compositions share, or None."""
        law = sum_law(self.low, self.high, self.records - b, a)
        return averages(self.sequence, law, b - a)

    def smooth_ceiling(self, a: int, b: int) -> float:
        """Bound log E_{n1} on [a, b] by V-shaped majorants of W; inf if W takes too long."""
        smooth = self.averages(a, b)
        if smooth is None:
            return math.inf
        bound = math.inf
        for majorant in map(Sequence, candidate_majorants(smooth)):
            laws = [sum_law(self.low, self.high, b - a - ones, ones) for ones in (0, b - a)]
            above = max(expectation(majorant, law) for law in laws)
            bound = min(bound, above + allowance(self.records, above))
            if bound <= self.goal():
                break
        return bound

    def settle(self, a: int, b: int) -> float:
        """Bound all compositions of a short interval, evaluating those that may be the best.

        Returns:
            A bound of log E_{n1} on [a, b].
        """
        smooth = self.averages(a, b)
        if smooth is None:
            upper = np.full(b - a + 1, np.inf)
        else:
            upper = all_compositions(smooth, self.low, self.high)
            upper += allowance(self.records, float(upper.max()), LEAF)
        for k in np.argsort(-upper):
            if upper[k] > self.goal():
                value = self.value(a + int(k))
                upper[k] = value + allowance(self.records, value)
        return float(upper.max())
