"""The privacy rows of a plurality as a family: all corner configurations priced, few written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector
from dpopt.lp import Rows, Separation, make_rows
from dpopt.multiclass.corners import (
    Configurations,
    Level,
    configurations,
    histograms,
    variables,
)
from dpopt.multiclass.proof import Target

CUTS = 150
# What rows of a proof may have left of the room that the uniform kernel has, and how many of them
# there are for each variable.
_TIGHT, _MOST_TIGHT = 1e-9, 100


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
        target: the voters without a Delta, and what the plurality may spend; with a delta above
            0, sets S of more than one output are priced, too.
        cuts: most rows to return at once.

    Raises:
        ParameterError: if there are too many configurations, or the voters have a Delta.
    """

    def __init__(self, target: Target, cuts: int = CUTS) -> None:
        _checks.instance("target", target, Target)
        if target.mechanism_delta > 0.0:
            raise ParameterError(
                f"mechanism_delta is {target.mechanism_delta:g}; it must be 0 where "
                "configurations are priced."
            )
        voters, classes, epsilon = target.mechanisms, target.classes, target.epsilon
        product, delta = target.allowance * epsilon, target.delta
        self.delta, self.cuts = delta, _checks.integer("cuts", cuts, 1)
        self.partitions = target.partitions
        self.ratio = math.exp(product)
        self.b = 1.0 / (1.0 + math.exp(-epsilon))
        self.c = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
        # By mixing a kernel with the uniform one, f falls towards this for a single output.
        self._room = math.expm1(product) / classes + delta
        self._sets = [configurations(voters, classes, outputs) for outputs in target.sets]

    @cached_property
    def checked(self) -> int:
        """Number of configurations that are priced."""
        return sum(found.count for found in self._sets)

    def excesses(
        self, kernel: npt.ArrayLike
    ) -> Iterator[tuple[Configurations, Level, npt.NDArray[np.float64]]]:
        """Yield f over (configuration, loops) for each set of outputs and number of edges."""
        for found, level, table, other in self.sides(kernel):
            yield found, level, table - self.ratio * other

    def sides(
        self, kernel: npt.ArrayLike
    ) -> Iterator[tuple[Configurations, Level, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Yield E A and E' A likewise."""
        values = self._checked(kernel)
        for found in self._sets:
            first = values[variables(self.partitions, found.outputs)].sum(axis=1)
            for level, table in found.walk(first, lambda one, two: self.b * one + self.c * two):
                yield found, level, table, found.turned(level, table)

    def price(self, kernel: npt.ArrayLike) -> Priced:
        """Return the configuration where f is largest.

        Args:
            kernel: k[lambda, c] by the variables of `dpopt.ballots.Partitions`, shape (size,).
        """
        best = Priced(-math.inf, 1, (), ())
        for found, level, values in self.excesses(kernel):
            place, loops = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[place, loops] > best.excess:
                best = self._priced(found, level, values, int(place), int(loops))
        return best

    def spent(self, kernel: npt.ArrayLike) -> tuple[float, Priced]:
        """Return the largest log(E A / E' A) of a single output, and where; inf for E' A = 0."""
        largest, where = -math.inf, Priced(-math.inf, 1, (), ())
        for found, level, table, other in self.sides(kernel):
            if found.outputs > 1:
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(table > 0.0, table / other, 0.0)
            place, loops = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            if ratio[place, loops] > largest:
                largest = float(ratio[place, loops])
                values = table - self.ratio * other
                where = self._priced(found, level, values, int(place), int(loops))
        return math.log(largest), where

    def __call__(self, kernel: Vector) -> Separation:
        """Separate k[lambda, c] from the set of private kernels; see `dpopt.Problem`."""
        worst, rows = -math.inf, []
        for found in self._sets:
            peaks: list[npt.NDArray[np.float64]] = []
            levels: list[Level] = []
            first = np.asarray(kernel, dtype=float)
            first = first[variables(self.partitions, found.outputs)].sum(axis=1)
            for level, table in found.walk(first, lambda one, two: self.b * one + self.c * two):
                values = table - self.ratio * found.turned(level, table)
                best = values.argmax(axis=1)
                tops = values[np.arange(len(best)), best]
                worst = max(worst, (float(tops.max()) - self.delta) / self._room)
                broken = np.flatnonzero(tops > self.delta)
                levels.append(level)
                if broken.size:
                    at = np.full(broken.size, level.edges)
                    rows_of = (tops[broken], at, broken, best[broken])
                    peaks.append(np.stack([part.astype(float) for part in rows_of], axis=1))
            if peaks:
                every = np.concatenate(peaks)
                every = every[np.argsort(-every[:, 0], kind="stable")][: self.cuts]
                rows.append(self._rows(found, levels, every[:, 1:].astype(np.int64)))
        size = self.partitions.size
        matrix = np.concatenate(rows) if rows else np.empty((0, size))
        cut = make_rows(matrix / self._room, upper=self.delta / self._room)
        return Separation(cut, max(0.0, worst), self.checked)

    def row(self, at: Priced) -> Vector:
        """Return f's coefficients on k[lambda, c] at a configuration."""
        found = configurations(self.partitions.voters, self.partitions.classes, at.outputs)
        return self._laws(found, np.array([at.signed]), np.array([at.loops]))[0]

    def tight(self, kernel: npt.ArrayLike) -> list[tuple[object, ...]]:
        """Return the rows that are tight at a kernel, named as `dpopt.verify` names them.

        Returns:
            ("corner", k, signed, loops), see `Priced`; the tightest first.
        """
        rows: dict[object, tuple[float, tuple[object, ...]]] = {}
        for found, level, values in self.excesses(kernel):
            loops = histograms(found.voters - level.edges, found.classes)
            for place, at in np.argwhere(values >= self.delta - _TIGHT * self._room).tolist():
                signed, own = tuple(level.signed[place].tolist()), tuple(loops[at].tolist())
                named = ("corner", found.outputs, signed, own)
                # Of rows that renaming classes makes the same, one.
                rows[found.outputs, found.alike(signed, own)] = float(values[place, at]), named
        chosen = sorted(rows.values(), key=lambda row: -row[0])
        return [named for _, named in chosen[: _MOST_TIGHT * self.partitions.size]]

    def rows(self, configurations: list[Priced]) -> Rows:
        """Return the rows f <= delta of some configurations."""
        if not configurations:
            raise ParameterError("configurations is empty; it must hold at least one.")
        return make_rows(np.array([self.row(at) for at in configurations]), upper=self.delta)

    def _rows(self, found: Configurations, levels: list[Level], chosen: IntVector) -> Vector:
        """Return f's coefficients; chosen: rows (edges, place in the level, place of the loops)."""
        signed = np.array([levels[s].signed[place] for s, place, _ in chosen.tolist()])
        voters, classes = found.voters, found.classes
        loops = np.array([histograms(voters - s, classes)[at] for s, _, at in chosen.tolist()])
        return self._laws(found, signed, loops)

    def _laws(self, found: Configurations, signed: IntVector, loops: IntVector) -> Vector:
        """Return f's coefficients on k[lambda, c], shape (configurations, size)."""
        places, size = variables(self.partitions, found.outputs), self.partitions.size
        sides = [self._law(found, sign * signed, loops) for sign in (1, -1)]
        weights = sides[0] - self.ratio * sides[1]
        rows = np.zeros((len(signed), size))
        for column in range(found.outputs):
            np.add.at(rows.T, places[:, column], weights.T)
        return rows

    def _law(self, found: Configurations, signed: IntVector, loops: IntVector) -> Vector:
        """Return the law of the counts N: the walk's steps transposed, from the loops up."""
        edges = np.abs(signed).sum(axis=1)
        left, law = signed.copy(), np.zeros((len(signed), 1))
        for total in range(found.voters + 1):
            starts = np.flatnonzero(found.voters - edges == total)
            if starts.size:
                known = histograms(total, found.classes)
                same = (loops[starts][:, None, :] == known[None]).all(axis=2)
                law[starts] = same
            if total == found.voters:
                break
            up = found.up[total]
            more = np.zeros((len(signed), len(histograms(total + 1, found.classes))))
            active = found.voters - edges <= total
            # The pair of classes whose edge each configuration gets next.
            pair = (left != 0).argmax(axis=1)
            for at, (y, z) in enumerate(found.pairs):
                for sign in (1, -1):
                    rows = np.flatnonzero(active & (pair == at) & (left[:, at] * sign > 0))
                    if rows.size:
                        one, other = (y, z) if sign > 0 else (z, y)
                        more[rows[:, None], up[one]] += self.b * law[rows]
                        more[rows[:, None], up[other]] += self.c * law[rows]
                        left[rows, at] -= sign
            law = more
        return law

    def _priced(
        self,
        found: Configurations,
        level: Level,
        values: npt.NDArray[np.float64],
        place: int,
        loops: int,
    ) -> Priced:
        counts = histograms(found.voters - level.edges, found.classes)[loops]
        return Priced(
            float(values[place, loops]),
            found.outputs,
            tuple(level.signed[place].tolist()),
            tuple(counts.tolist()),
        )

    def _checked(self, kernel: npt.ArrayLike) -> Vector:
        values = _checks.floats("kernel", kernel)
        if values.shape != (self.partitions.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"kernel has shape {values.shape}; it must hold {self.partitions.size} numbers, "
                "one for each variable of the partitions."
            )
        return values
