"""Separation oracle for the privacy rows of a plurality: all configurations priced, few added."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Separation, make_rows
from dpopt.multiclass.corners import Level, configurations, histograms, variables
from dpopt.table.histograms import sorted_histograms

# Slack within which a row is tight, as a share of the uniform kernel's; tight rows per variable.
_TIGHT, _MOST_TIGHT = 1e-9, 100


Violations = dict[int, list[tuple[Vector, IntVector, IntVector]]]
"""f, edges and loops of configurations, by the size of the set S of outputs."""


@dataclass(frozen=True)
class Priced:
    """A configuration, and f at it.

    Attributes:
        excess: f = E A(N) - e^(m epsilon) E' A(N).
        outputs: k, the size of the set S of outputs: the first classes.
        signed: number of voters on each pair of classes, see `dpopt.multiclass.corners.Level`.
        loops: number of voters at a loop of each class.
    """

    excess: float
    outputs: int
    signed: tuple[int, ...]
    loops: tuple[int, ...]


class Pricing:
    """Separation oracle: f at all corner configurations of K voters, at a kernel k[lambda, c].

    The voters have Delta = 0. For delta above 0, sets S of several outputs are priced too.

    Raises:
        ParameterError: if there are too many configurations.
    """

    def __init__(
        self, voters: int, classes: int, epsilon: float, allowance: float, delta: float = 0.0
    ) -> None:
        product = allowance * epsilon
        self.delta, self.inputs = delta, sorted_histograms(voters, classes)
        # The variable of each class at each histogram of K votes, (histograms, C), and how many.
        self.variables, self.size = variables(self.inputs), self.inputs.size
        self.configurations = configurations(voters, classes)
        self.exp_epsilon = math.exp(product)
        self.b = 1.0 / (1.0 + math.exp(-epsilon))
        self.c = math.exp(-epsilon) * self.b
        self.sets = range(1, classes if delta > 0.0 else 2)
        # The slack of the uniform kernel for a single output: delta - f, with f = -(R - 1) / C.
        self.uniform_slack = math.expm1(product) / classes + delta

    def excesses(self, kernel: npt.ArrayLike) -> Iterator[tuple[int, Level, Matrix]]:
        """Yield the size of S, the level, and f, shape (configurations, loops), for all of both."""
        values = _checks.floats("kernel", kernel)
        if values.shape != (self.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"kernel has shape {values.shape}; it must hold {self.size} numbers, one "
                "for each count of each sorted histogram."
            )
        # Axis 0: histograms of K votes; axis 1: classes.
        of_classes = values[self.variables]
        for outputs in self.sets:
            in_set = of_classes[:, :outputs].sum(axis=1)
            for level, mean, other_mean in self.configurations.walk(in_set, self.b, self.c):
                yield outputs, level, mean - self.exp_epsilon * other_mean

    def price(self, kernel: npt.ArrayLike) -> Priced:
        """Return the configuration with the largest f."""
        best = Priced(-math.inf, 1, (), ())
        for outputs, level, excess in self.excesses(kernel):
            row, column = divmod(int(np.argmax(excess)), excess.shape[1])
            if excess[row, column] > best.excess:
                loops = self._loops(level)[column]
                value, signed = float(excess[row, column]), level.signed[row]
                best = Priced(value, outputs, tuple(signed.tolist()), tuple(loops.tolist()))
        return best

    def __call__(self, kernel: Vector) -> Separation:
        """Separate k[lambda, c] from the set of private kernels; see `dpopt.Problem`."""
        worst, rows, count = -math.inf, [], 0
        violated: Violations = {}
        for outputs, level, excess in self.excesses(kernel):
            count += excess.size
            at = excess.argmax(axis=1)
            largest = excess[np.arange(len(at)), at]
            worst = max(worst, (float(largest.max()) - self.delta) / self.uniform_slack)
            broken = np.flatnonzero(largest > self.delta)
            loops = self._loops(level)[at[broken]]
            violated.setdefault(outputs, []).append((largest[broken], level.signed[broken], loops))
        for outputs, _, signed, loops in _ordered(violated):
            # Rows added in one round, for each size of S.
            rows += self._distinct(outputs, signed, loops, 150).values()
        matrix = np.array(rows).reshape(-1, self.size)
        cut = make_rows(matrix / self.uniform_slack, upper=self.delta / self.uniform_slack)
        return Separation(cut, max(0.0, worst), count)

    def row(self, at: Priced) -> Vector:
        """Return f's coefficients on k[lambda, c] at a configuration."""
        return self._rows(at.outputs, np.array([at.signed]), np.array([at.loops]))[0]

    def tight(self, kernel: npt.ArrayLike) -> list[tuple[object, ...]]:
        """Return the rows that are tight at a kernel, named as `dpopt.verify` names them.

        Returns:
            ("corner", k, signed, loops), as in `Priced`; the tightest first.
        """
        limit = self.delta - _TIGHT * self.uniform_slack
        names = list[tuple[float, tuple[object, ...]]]()
        tight: Violations = {}
        for outputs, level, excess in self.excesses(kernel):
            row, at = np.nonzero(excess >= limit)
            rows = excess[row, at], level.signed[row], self._loops(level)[at]
            tight.setdefault(outputs, []).append(rows)
        for outputs, tops, signed, loops in _ordered(tight):
            for index in self._distinct(outputs, signed, loops, _MOST_TIGHT * self.size):
                name = outputs, tuple(signed[index].tolist()), tuple(loops[index].tolist())
                names.append((-float(tops[index]), ("corner", *name)))
        return [name for _, name in sorted(names, key=lambda pair: pair[0])]

    def _loops(self, level: Level) -> IntVector:
        return histograms(self.configurations.voters - level.edges, self.configurations.classes)

    def _distinct(
        self, outputs: int, signed: IntVector, loops: IntVector, most: int
    ) -> dict[int, Vector]:
        """Return the first ``most`` distinct rows by index: relabelling classes repeats rows."""
        rows, keys = dict[int, Vector](), set[bytes]()
        copies = math.factorial(outputs) * math.factorial(self.configurations.classes - outputs)
        # Configurations whose rows are computed at once, which bounds memory.
        step = min(most * copies, 2_000)
        for start in range(0, len(signed), step):
            block = self._rows(outputs, signed[start : start + step], loops[start : start + step])
            # Adding 0 turns -0.0 into 0.0, so that equal rows have equal bytes.
            # Rows that agree to this many decimals are duplicates.
            for offset, (row, key) in enumerate(zip(block, block.round(11) + 0.0, strict=True)):
                if len(rows) < most and key.tobytes() not in keys:
                    keys.add(key.tobytes())
                    rows[start + offset] = row
            if len(rows) == most:
                break
        return rows

    def _rows(self, outputs: int, signed: IntVector, loops: IntVector) -> Matrix:
        """Return f's coefficients on k[lambda, c], shape (configurations, size)."""
        sides = [self._pmf(sign * signed, loops) for sign in (1, -1)]
        weights = sides[0] - self.exp_epsilon * sides[1]
        rows = np.zeros((len(signed), self.size))
        # S are the first classes: add up the weights of all histograms that share a variable.
        for column in range(outputs):
            np.add.at(rows.T, self.variables[:, column], weights.T)
        return rows

    def _pmf(self, signed: IntVector, loops: IntVector) -> Matrix:
        """Return the pmf of the counts N, shape (configurations, histograms of K votes).

        This is the walk transposed: start at the loops, and add one edge per step.
        """
        voters, classes, pairs = (
            self.configurations.voters,
            self.configurations.classes,
            self.configurations.pairs,
        )
        edges, remaining = np.abs(signed).sum(axis=1), signed.copy()
        pmf = np.zeros((len(signed), 1))
        for total in range(voters + 1):
            # A configuration whose loops are all its voters so far starts as a point mass there.
            at_loops = np.flatnonzero(voters - edges == total)
            if at_loops.size:
                listed = histograms(total, classes)
                pmf[at_loops] = (loops[at_loops][:, None, :] == listed[None]).all(axis=2)
            if total == voters:
                break
            up = self.configurations.up[total]
            extended = np.zeros((len(signed), len(histograms(total + 1, classes))))
            active = voters - edges <= total
            # For each configuration the pair of classes that its next edge is on.
            pair = (remaining != 0).argmax(axis=1)
            for at, ends in enumerate(pairs):
                for sign in (1, -1):
                    rows = np.flatnonzero(active & (pair == at) & (remaining[:, at] * sign > 0))
                    if rows.size:
                        y, z = ends[::sign]
                        extended[rows[:, None], up[y]] += self.b * pmf[rows]
                        extended[rows[:, None], up[z]] += self.c * pmf[rows]
                        remaining[rows, at] -= sign
            pmf = extended
        return pmf


def _ordered(violations: Violations) -> Iterator[tuple[int, Vector, IntVector, IntVector]]:
    """Yield f, edges and loops of the configurations of each size of S, the largest f first."""
    for outputs, blocks in violations.items():
        tops, signed, loops = map(np.concatenate, zip(*blocks, strict=True))
        order = np.argsort(-tops, kind="stable")
        yield outputs, tops[order], signed[order], loops[order]
