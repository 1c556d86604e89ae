"""The privacy rows of a plurality as a family: all corner configurations priced, few written."""

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

# Rows that are written at once.
_CUTS = 150
# What rows of a proof may have left of the room that the uniform kernel has, and how many of them
# there are for each variable.
_TIGHT, _MOST_TIGHT = 1e-9, 100
# Configurations whose rows are made at once.
_LOOKED_AT = 2_000
# Decimals in which coefficients of the same row agree.
_ALIKE = 11


Found = dict[int, list[tuple[Vector, IntVector, IntVector]]]
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
    """f at all corner configurations of K voters, at a kernel k[lambda, c].

    Args:
        voters: K.
        classes: C.
        epsilon: of each voter, whose Delta is 0.
        allowance: m.
        delta: of the plurality; above 0, sets S of more than one output are priced, too.

    Raises:
        ParameterError: if there are too many configurations.
    """

    def __init__(
        self, voters: int, classes: int, epsilon: float, allowance: float, delta: float = 0.0
    ) -> None:
        product = allowance * epsilon
        self.delta, self.inputs = delta, sorted_histograms(voters, classes)
        self.found = configurations(voters, classes)
        self.ratio = math.exp(product)
        self.b = 1.0 / (1.0 + math.exp(-epsilon))
        self.c = math.exp(-epsilon) * self.b
        self.sets = range(1, classes if delta > 0.0 else 2)
        # By mixing a kernel with the uniform one, f falls towards this for a single output.
        self.room = math.expm1(product) / classes + delta

    def excesses(self, kernel: npt.ArrayLike) -> Iterator[tuple[int, Level, Matrix]]:
        """Yield f over (configuration, loops) for each size of S and number of edges."""
        values = _checks.floats("kernel", kernel)
        if values.shape != (self.inputs.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"kernel has shape {values.shape}; it must hold {self.inputs.size} numbers, one "
                "for each count of each sorted histogram."
            )
        of_classes = values[variables(self.inputs)]
        for outputs in self.sets:
            told = of_classes[:, :outputs].sum(axis=1)
            for level, here, there in self.found.walk(told, self.b, self.c):
                yield outputs, level, here - self.ratio * there

    def price(self, kernel: npt.ArrayLike) -> Priced:
        """Return the configuration where f is largest."""
        best = Priced(-math.inf, 1, (), ())
        for outputs, level, excess in self.excesses(kernel):
            place, at = divmod(int(np.argmax(excess)), excess.shape[1])
            if excess[place, at] > best.excess:
                loops = self._loops(level)[at]
                most, signed = float(excess[place, at]), level.signed[place]
                best = Priced(most, outputs, tuple(signed.tolist()), tuple(loops.tolist()))
        return best

    def __call__(self, kernel: Vector) -> Separation:
        """Separate k[lambda, c] from the set of private kernels; see `dpopt.Problem`."""
        worst, rows, count = -math.inf, [], 0
        violated: Found = {}
        for outputs, level, excess in self.excesses(kernel):
            count += excess.size
            best = excess.argmax(axis=1)
            tops = excess[np.arange(len(best)), best]
            worst = max(worst, (float(tops.max()) - self.delta) / self.room)
            broken = np.flatnonzero(tops > self.delta)
            found = tops[broken], level.signed[broken], self._loops(level)[best[broken]]
            violated.setdefault(outputs, []).append(found)
        for outputs, _, signed, loops in _ordered(violated):
            rows += self._different(outputs, signed, loops, _CUTS).values()
        matrix = np.array(rows).reshape(-1, self.inputs.size)
        cut = make_rows(matrix / self.room, upper=self.delta / self.room)
        return Separation(cut, max(0.0, worst), count)

    def row(self, at: Priced) -> Vector:
        """Return f's coefficients on k[lambda, c] at a configuration."""
        return self._rows(at.outputs, np.array([at.signed]), np.array([at.loops]))[0]

    def tight(self, kernel: npt.ArrayLike) -> list[tuple[object, ...]]:
        """Return the rows that are tight at a kernel, named as `dpopt.verify` names them.

        Returns:
            ("corner", k, signed, loops), see `Priced`; the tightest first.
        """
        limit, names = self.delta - _TIGHT * self.room, list[tuple[float, tuple[object, ...]]]()
        tight: Found = {}
        for outputs, level, excess in self.excesses(kernel):
            place, at = np.nonzero(excess >= limit)
            found = excess[place, at], level.signed[place], self._loops(level)[at]
            tight.setdefault(outputs, []).append(found)
        for outputs, tops, signed, loops in _ordered(tight):
            for place in self._different(outputs, signed, loops, _MOST_TIGHT * self.inputs.size):
                edges, own = tuple(signed[place].tolist()), tuple(loops[place].tolist())
                names.append((-float(tops[place]), ("corner", outputs, edges, own)))
        return [name for _, name in sorted(names, key=lambda pair: pair[0])]

    def _loops(self, level: Level) -> IntVector:
        return histograms(self.found.voters - level.edges, self.found.classes)

    def _different(
        self, outputs: int, signed: IntVector, loops: IntVector, most: int
    ) -> dict[int, Vector]:
        """Return the first different rows by their place: renaming classes makes several alike."""
        rows, known = dict[int, Vector](), set[bytes]()
        copies = math.factorial(outputs) * math.factorial(self.found.classes - outputs)
        step = min(most * copies, _LOOKED_AT)
        for start in range(0, len(signed), step):
            part = self._rows(outputs, signed[start : start + step], loops[start : start + step])
            # Adding 0 makes the same of both signs of zero.
            for place, (row, key) in enumerate(zip(part, part.round(_ALIKE) + 0.0, strict=True)):
                if len(rows) < most and key.tobytes() not in known:
                    known.add(key.tobytes())
                    rows[start + place] = row
            if len(rows) == most:
                break
        return rows

    def _rows(self, outputs: int, signed: IntVector, loops: IntVector) -> Matrix:
        """Return f's coefficients on k[lambda, c], shape (configurations, size)."""
        sides = [self._pmf(sign * signed, loops) for sign in (1, -1)]
        weights = sides[0] - self.ratio * sides[1]
        rows = np.zeros((len(signed), self.inputs.size))
        for column in range(outputs):
            np.add.at(rows.T, variables(self.inputs)[:, column], weights.T)
        return rows

    def _pmf(self, signed: IntVector, loops: IntVector) -> Matrix:
        """Return the pmf of the counts N: the walk's steps transposed, from the loops up."""
        voters, classes, pairs = self.found.voters, self.found.classes, self.found.pairs
        edges, remaining = np.abs(signed).sum(axis=1), signed.copy()
        pmf = np.zeros((len(signed), 1))
        for total in range(voters + 1):
            starts = np.flatnonzero(voters - edges == total)
            if starts.size:
                known = histograms(total, classes)
                pmf[starts] = (loops[starts][:, None, :] == known[None]).all(axis=2)
            if total == voters:
                break
            up = self.found.up[total]
            wider = np.zeros((len(signed), len(histograms(total + 1, classes))))
            active = voters - edges <= total
            # The pair of classes whose edge each configuration gets next.
            pair = (remaining != 0).argmax(axis=1)
            for at, ends in enumerate(pairs):
                for sign in (1, -1):
                    rows = np.flatnonzero(active & (pair == at) & (remaining[:, at] * sign > 0))
                    if rows.size:
                        y, z = ends[::sign]
                        wider[rows[:, None], up[y]] += self.b * pmf[rows]
                        wider[rows[:, None], up[z]] += self.c * pmf[rows]
                        remaining[rows, at] -= sign
            pmf = wider
        return pmf


def _ordered(found: Found) -> Iterator[tuple[int, Vector, IntVector, IntVector]]:
    """Yield f, edges and loops of the configurations of each size of S, the largest f first."""
    for outputs, parts in found.items():
        tops, signed, loops = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(-tops, kind="stable")
        yield outputs, tops[order], signed[order], loops[order]
