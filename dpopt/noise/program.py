"""The program of additive noise on all integers, in finitely many variables, and its bound.

The optimum falls by e^-epsilon with every period of D integers, but near 0, where its levels begin,
and near the end of its support, where delta is spent. So the program has one variable for each
distance in a *head* 0..H and in an *end* of E distances, and between them the last period of the
head is repeated, times e^-epsilon, J times (for ever, if delta = 0). Privacy rows of a repeated
period are those of the first one, scaled; they are stated once, with the sum of their scales.

That p falls so between head and end is a restriction, which is not assumed of other noise: a bound
for all noise on Z is computed from the multipliers of the rows. Those of repeated rows are the
same in every period, but for shift D. There the columns of the repeated periods determine them,
from the end inward:

    lambda_D(x - D) = (lambda_D(x) + 2 c(x) + others(x) - 2 mu) / e^epsilon.

Any multipliers of at least 0 give a bound; if these are not tight, head and end are doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np
import scipy.sparse as sp

from dpopt._errors import SolverError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Backend, Solution, solve
from dpopt.noise.closed import (
    NEGLIGIBLE,
    Loss,
    Multipliers,
    columns_of,
    mass,
    signs,
    staircase_multipliers,
)
from dpopt.noise.interior import Point, Rows, optimum_of
from dpopt.privacy import Problem

# Periods of head and end at first, and how often both are doubled for a tighter bound.
_HEAD, _END, DOUBLINGS = 3, 5, 3
# Relative gap at which head and end are long enough; above it another solver is asked in the end.
_TIGHT = 3e-8
# By how much e^epsilon, in nats, a point inside all rows rises from one period to the next over the
# slowest fall that is private; at most so large a share of epsilon.
_INSIDE = 0.1
# Least scale of a distance, as a share of delta.
_LEAST = 1e-3
# Mass of a tail, as a share of delta over e^epsilon, below which it is the solver's rounding.
_MISSED = 1e-9
# Bound of scaled probabilities that is no restriction: 1 is about the probability of 0.
_LARGEST = 1e12
# Bounds of slacks, over the largest that they can be.
_ROOM = 2.0
# Rows of all shifts that `Noise.problem` writes out.
WRITTEN = 200_000


@dataclass(frozen=True)
class Grid:
    """Distances 0..N with head, repeated periods and end; p(x) = z e^(-epsilon x / D).

    Attributes:
        sensitivity: D, the length of a period.
        epsilon: in nats.
        head: H, the last distance of the head, at least D.
        periods: J, repetitions of the last period of the head.
        end: E, the number of distances after them.
        endless: whether repetitions go on for ever, as for delta = 0; then E = 0, and the grid
            shows the first J.
        least: scale of the distances of the end at which e^(-epsilon x / D) is smaller, and far
            below what delta leaves there: columns of very different size cost accuracy.
    """

    sensitivity: int
    epsilon: float
    head: int
    periods: int
    end: int
    endless: bool = False
    least: float = 0.0

    @classmethod
    def of(cls, sensitivity: int, epsilon: float, delta: float, doublings: int = 0) -> Self:
        """Return a grid that ends beyond the support of the optimum, or repeats for ever."""
        head, end = (_HEAD << doublings) * sensitivity, (_END << doublings) * sensitivity
        if delta == 0:
            return cls(sensitivity, epsilon, head, 2 + math.ceil(NEGLIGIBLE / epsilon), 0, True)
        reach = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
        periods = math.ceil(reach) + 3 + 2 * doublings
        grid = cls(sensitivity, epsilon, head, max(0, periods - (head + end) // sensitivity), end)
        least = min(_LEAST * delta, math.exp(-epsilon * grid.repeated / sensitivity))
        return replace(grid, least=least)

    @property
    def last(self) -> int:
        """N, the last distance."""
        return self.repeated + self.end

    @property
    def repeated(self) -> int:
        """H + J D, the last distance of a repeated period."""
        return self.head + self.periods * self.sensitivity

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.head + 1 + self.end

    @cached_property
    def variable(self) -> IntVector:
        """Variable of each distance, shape (N + 1,)."""
        x, period = np.arange(self.last + 1), self.sensitivity
        repetition = np.clip(-(-(x - self.head) // period), 0, self.periods)
        return x - period * repetition

    @cached_property
    def scale(self) -> Vector:
        """The scale of each distance of the grid, shape (N + 1,)."""
        return self.scale_of(np.arange(self.last + 1))

    def scale_of(self, distance: IntVector) -> Vector:
        """Return e^(-epsilon x / D) of distances x, or the least scale."""
        exact = np.exp(-distance * (self.epsilon / self.sensitivity))
        return np.maximum(exact, self.least)

    @property
    def inner(self) -> int:
        """The last |x| of a privacy row: x + d is on the grid for every shift."""
        return self.last if self.endless else self.last - self.sensitivity

    def rows(self, shift: int) -> tuple[IntVector, IntVector, Vector, Vector, IntVector]:
        """Return the rows z[v] - ratio z[w] <= slack of one shift, once for each pair.

        They are v and w, the variables of |x| and |x + d|; the ratio, e^epsilon times the scale of
        |x + d| over that of |x|; the sum of the scales of all x with this pair; and the row of each
        x of the grid, -1 if v is w, which always holds.
        """
        x, period = np.arange(-self.inner, self.inner + 1), self.sensitivity
        source, target = np.abs(x), np.abs(x + shift)
        # Beyond an endless grid, the variable is that of the last period.
        inside = target - period * np.maximum(0, -((self.last - target) // period))
        v, w = self.variable[source], self.variable[inside]
        key = ((v * self.size + w) * (2 * shift + 1)) + source - target + shift
        _, first, of = np.unique(np.where(v == w, -1, key), return_index=True, return_inverse=True)
        weight = np.bincount(of, self.scale[source]).astype(float)
        ratio = math.exp(self.epsilon) * self.scale_of(target) / self.scale_of(source)
        always = int(v[first[0]] == w[first[0]])
        first = first[always:]
        return v[first], w[first], ratio[first], weight[always:], of - always

    def folded(self, values: Vector) -> Vector:
        """Return the sums over distances of values times multiplicity and scale, by variable."""
        weights = signs(np.arange(self.last + 1)) * self.scale
        sums = np.bincount(self.variable, weights * values, minlength=self.size)
        return sums.astype(float)


@dataclass(frozen=True)
class Program:
    """The program on a grid; with delta, its last variable is all mass beyond, on either side."""

    grid: Grid
    # What each shift may spend; 0 for pure privacy.
    delta: float
    loss: Loss

    @cached_property
    def rows(self) -> Rows:
        """The rows of all shifts, in shares of delta where there is any."""
        shifts, unit = range(1, self.grid.sensitivity + 1), self.delta or 1.0
        v, w, ratio, weight, of = zip(*map(self.grid.rows, shifts), strict=True)
        counts = [part.size for part in v]
        starts = np.cumsum([0, *counts[:-1]])
        places = [
            np.where(each < 0, -1, each + start) for each, start in zip(of, starts, strict=True)
        ]
        v, w, ratio, a = map(np.concatenate, (v, w, ratio, weight))
        a, group = a / unit, np.repeat(np.arange(len(shifts)), counts)
        entries = np.append(a, -a * ratio), (np.tile(np.arange(v.size), 2), np.append(v, w))
        matrix = sp.csr_array(entries, shape=(v.size, self.masses.size))
        if not self.grid.endless:
            group = np.append(group, np.arange(len(shifts)))
            matrix = sp.csr_array(sp.vstack([matrix, self.beyond * (self.edge / unit)]))
        return Rows(matrix, group, np.array(places))

    @cached_property
    def count(self) -> int:
        """Number of rows of pairs of variables."""
        return self.rows.group.size - (0 if self.grid.endless else self.grid.sensitivity)

    @cached_property
    def norms(self) -> Vector:
        """The unit of each row of the program written out: its largest entry, or the tail's."""
        norms = abs(self.rows.matrix).max(axis=1).toarray().ravel()
        norms[self.count :] = self.edge / (self.delta or 1.0)
        return norms

    @cached_property
    def masses(self) -> Vector:
        """How much mass a unit of each variable is."""
        return self._folded(np.ones(self.grid.last + 2))

    @cached_property
    def costs(self) -> Vector:
        """The loss of each variable, in units of `unit`."""
        return self._folded(self.loss(np.arange(self.grid.last + 2))) / self.unit

    @cached_property
    def unit(self) -> float:
        """A loss of about the size of the value: that of discrete Laplace noise."""
        loss = self._folded(self.loss(np.arange(self.grid.last + 2)))[: self.grid.size]
        return float(loss.sum() / self.masses[: self.grid.size].sum())

    def _folded(self, values: Vector) -> Vector:
        """Return the sums by variable of values of x = 0..N, and of N + 1 for all beyond."""
        beyond = [] if self.grid.endless else [2 * self.edge * values[-1]]
        return np.append(self.grid.folded(values[:-1]), beyond)

    @property
    def edge(self) -> float:
        """The scale of the last distance that has privacy rows, in which the tail is measured."""
        return float(self.grid.scale[self.grid.inner])

    @cached_property
    def beyond(self) -> Matrix:
        """For each shift, the sum of its rows beyond the last of the grid, over `edge`."""
        grid, period = self.grid, self.grid.sensitivity
        steps, price = np.arange(1, period + 1), -math.expm1(grid.epsilon)
        rows = np.zeros((period, self.masses.size))
        of_steps = np.where(steps[None, :] <= steps[:, None], 1.0, price)
        scale = grid.scale[grid.inner + steps] / self.edge
        rows[:, grid.variable[grid.inner + steps]] = of_steps * scale
        rows[:, -1] = price
        return rows

    @cached_property
    def inside(self) -> Vector:
        """A point inside all rows that spends nothing: from period to period it falls slower."""
        grid, period = self.grid, self.grid.sensitivity
        rise = _INSIDE * min(grid.epsilon, 1.0)
        z = np.exp(rise / period * np.arange(grid.size))
        if not grid.endless:
            last = z[-period:] @ grid.scale[-period:] / self.edge
            z = np.append(z, last / math.expm1(grid.epsilon - rise))
        return z / (self.masses @ z)

    def endless(self, levels: int) -> Program:
        """Return the program of noise without an end, for a loss that levels off.

        Such a loss leaves open how the mass beyond the grid lies, which need not be private.
        """
        period, epsilon = self.grid.sensitivity, self.grid.epsilon
        head = max(self.grid.head, levels + 2 * period)
        periods = 2 + math.ceil(NEGLIGIBLE / epsilon)
        return replace(self, grid=Grid(period, epsilon, head, periods, 0, endless=True))

    def problem(self) -> Problem:
        """Return the program in full: rows "sum", "privacy", and with delta "delta"."""
        problem, rows = Problem("noise"), self.rows
        most = np.minimum(1 / self.masses, _LARGEST)
        problem.add_variables("p", self.masses.size, lower=0.0, upper=most)
        problem.add_rows("sum", {"p": self.masses[None, :]}, lower=1.0, upper=1.0)
        problem.minimise({"p": self.costs})
        privacy = {"p": sp.csr_array(sp.diags_array(1 / self.norms) @ rows.matrix)}
        if self.delta > 0:
            # The unit of a slack is between those of its row and of delta.
            a = rows.matrix.max(axis=1).toarray().ravel()
            unit = np.clip(1 / np.sqrt(a), 1e-6, 1e3)
            most = np.minimum(_ROOM / unit, _ROOM / (unit * a))
            problem.add_variables("s", a.size, lower=0.0, upper=most)
            privacy["s"] = sp.csr_array(sp.diags_array(-unit * a / self.norms))
            spent = sp.csr_array(rows.sums @ sp.diags_array(unit * a))
            problem.add_rows("delta", {"s": spent}, upper=1.0)
        problem.add_rows("privacy", privacy, upper=0.0)
        return problem

    def solved(self, time_limit: float | None) -> Point:
        """Return the optimum by the interior-point method."""
        return optimum_of(self.rows, self.costs, self.masses, self.inside, time_limit)

    def point(self, solution: Solution) -> Point:
        """Return what a solver found for `problem`."""
        duals, prices = solution.duals, np.zeros(self.grid.sensitivity)
        of_rows = -duals["privacy"] / self.norms
        if self.delta > 0:
            prices = -duals["delta"]
        return Point(solution["p"], of_rows, prices, float(duals["sum"][0]))

    def pmf(self, point: Vector, inside: float, ended: bool) -> Vector:
        """Return p(0), ..., p(N) of a point, a share of it `inside`, and the ratio beyond.

        The ratio is 0 where the noise is ended at N, or has so little beyond that no shift would
        miss it.
        """
        grid, period = self.grid, self.grid.sensitivity
        z = (1 - inside) * np.maximum(point, 0.0) + inside * self.inside
        tail = 0.0
        if not grid.endless:
            # What no shift would miss is the solver's rounding, and where it begins, noise ends.
            tail, found = z[-1] * self.edge, np.maximum(point, 0.0)
            outer = np.cumsum((found[grid.variable] * grid.scale)[::-1])[::-1]
            ends = outer + found[-1] * self.edge <= _MISSED * self.delta / math.exp(grid.epsilon)
            z[grid.variable[ends & (np.arange(grid.last + 1) > grid.repeated)]] = 0.0
            tail = 0.0 if ends[-1] or ended else tail
        pmf = z[grid.variable] * grid.scale
        decay = math.nextafter(math.exp(-grid.epsilon), 1.0)
        for start in range(grid.head + 1, grid.repeated, period):
            # Never below e^-epsilon times the period before.
            pmf[start : start + period] = np.nextafter(pmf[start - period : start] * decay, 1.0)
        ratio = decay if grid.endless else 0.0
        if tail > 0:
            # Of endless noise, all mass beyond the grid.
            ratio = max(decay, tail / (tail + float(pmf[-period:].sum())))
        return np.append(pmf / mass(pmf, ratio, period), ratio)

    def multipliers(self, point: Point, delta: float) -> Multipliers:
        """Return the multipliers of all rows -N <= x <= N of Z, and of those beyond, for a delta.

        None is above the price of its shift's delta, where it would count for the bound.
        """
        grid, period = self.grid, self.grid.sensitivity
        if self.delta == 0:
            return staircase_multipliers(period, grid.epsilon, self.loss)
        last, growth, rows = grid.inner, math.exp(grid.epsilon), self.rows
        prices, unit = np.maximum(point.prices, 0.0), self.unit / self.delta
        found = np.minimum(np.maximum(point.rows, 0.0), prices[rows.group]) * unit
        value = np.append(found[: self.count], 0.0)[rows.of]
        ends = np.append(0.0, found[self.count :])
        # The columns of repeated periods without the rows of shift D that they determine.
        outward = value[-1, last:].copy()
        value[-1, last:] = 0.0
        position = np.tile(np.arange(-last, last + 1), period)
        shift = np.repeat(np.arange(1, period + 1), 2 * last + 1)
        columns = columns_of(shift, position, value.ravel(), last, period, grid.epsilon, self.loss)
        mu = 2 * point.mass * self.unit
        for start in range(grid.repeated - 2 * period, grid.head - period - 1, -period):
            block = slice(start + 1, start + period + 1)
            ahead = slice(block.start + period, block.stop + period)
            inward = (outward[ahead] + columns[ahead] - mu) / growth
            outward[block] = np.clip(inward, 0.0, prices[-1] * unit)
        value[-1, last:] = outward
        return Multipliers.of(
            shift, position, value.ravel(), ends, last, delta, grid.epsilon, self.loss, mu / 2
        )


@dataclass(frozen=True)
class Optimum:
    """The optimum of a program: a point of it, multipliers, and the solve behind both."""

    program: Program
    point: Point
    multipliers: Multipliers
    solution: Solution | None

    @property
    def gap(self) -> float:
        """By how much the value is above the bound, as a share of the value."""
        value = float(self.program.costs @ self.point.z) * self.program.unit
        return 1 - self.multipliers.bound / value


def optimum(
    grid_of: Callable[[int], Grid],
    delta: float,
    spare: float,
    loss: Loss,
    backend: str | Backend | None,
    time_limit: float | None,
) -> Optimum:
    """Return the optimum for a little less than delta, on the first grid that is long enough.

    Where the interior-point method leaves a gap on every grid, HiGHS solves the first one, too.
    """

    def solved(doublings: int, backend: str | Backend | None) -> Optimum:
        program, solution = Program(grid_of(doublings), delta - spare, loss), None
        if backend is None:
            point = program.solved(time_limit)
        else:
            solution = solve(program.problem(), backend, relative_gap=1.0, time_limit=time_limit)
            point = program.point(solution)
        return Optimum(program, point, program.multipliers(point, delta), solution)

    found = [solved(0, backend)]
    if backend is not None:
        return found[0]
    while found[-1].gap > _TIGHT and len(found) <= DOUBLINGS:
        found.append(solved(len(found), None))
    if found[-1].gap > _TIGHT and found[0].program.count <= WRITTEN:
        with suppress(SolverError):
            found.append(solved(0, "highs"))
    return max(found, key=attrgetter("multipliers.bound"))
