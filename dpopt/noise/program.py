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
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np
import scipy.sparse as sp

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
from dpopt.noise.interior import Point, Shares, optimum_of
from dpopt.privacy import Problem

# Periods of head and end at first, and how often both are doubled for a tighter bound.
_HEAD, _END, DOUBLINGS = 3, 5, 3
# Relative gap at which head and end are long enough.
_TIGHT = 1e-8
# By how much e^epsilon, in nats, a point inside all rows rises from one period to the next over the
# slowest fall that is private; at most so large a share of epsilon.
_INSIDE = 0.1
# Mass of a tail, as a share of delta over e^epsilon, below which it is the solver's rounding.
_MISSED = 1e-9
# Bound of scaled probabilities that is no restriction: 1 is about the probability of 0.
_LARGEST = 1e12
# Bounds of slacks, over the largest that they can be.
_ROOM = 2.0
# Rows of all shifts that `Noise.problem` writes out.
WRITTEN = 200_000


@dataclass(frozen=True)
class Rows:
    """The privacy rows of one shift d over a grid: z[v] - ratio z[w] <= slack, once for each pair.

    Attributes:
        v: variable of |x|, shape (rows,).
        w: variable of |x + d|.
        ratio: e^epsilon times the scale of |x + d| over that of |x|.
        weight: sum of the scales e^(-epsilon |x| / D) of all x with this pair.
        of: the row of each x of the grid, from the least to the largest.
    """

    v: IntVector
    w: IntVector
    ratio: Vector
    weight: Vector
    of: IntVector


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
    """

    sensitivity: int
    epsilon: float
    head: int
    periods: int
    end: int
    endless: bool = False

    @classmethod
    def of(cls, sensitivity: int, epsilon: float, delta: float, doublings: int = 0) -> Self:
        """Return a grid that ends beyond the support of the optimum, or repeats for ever."""
        head, end = (_HEAD << doublings) * sensitivity, (_END << doublings) * sensitivity
        if delta == 0:
            return cls(sensitivity, epsilon, head, 2 + math.ceil(NEGLIGIBLE / epsilon), 0, True)
        reach = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
        periods = math.ceil(reach) + 3 + 2 * doublings
        return cls(sensitivity, epsilon, head, max(0, periods - (head + end) // sensitivity), end)

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
        """e^(-epsilon x / D) of each distance."""
        return np.exp(-np.arange(self.last + 1) * (self.epsilon / self.sensitivity))

    @property
    def inner(self) -> int:
        """The last |x| of a privacy row: x + d is on the grid for every shift."""
        return self.last if self.endless else self.last - self.sensitivity

    def rows(self, shift: int) -> Rows:
        """Return the rows of one shift, those of repeated periods once."""
        x, period = np.arange(-self.inner, self.inner + 1), self.sensitivity
        source, target = np.abs(x), np.abs(x + shift)
        # Beyond an endless grid, the variable is that of the last period.
        inside = target - period * np.maximum(0, -((self.last - target) // period))
        v, w = self.variable[source], self.variable[inside]
        key = ((v * self.size + w) * (2 * shift + 1)) + source - target + shift
        _, first, of = np.unique(key, return_index=True, return_inverse=True)
        ratio = np.exp(self.epsilon * (1 + (source - target)[first] / period))
        return Rows(
            v[first], w[first], ratio, np.bincount(of, self.scale[source]).astype(float), of
        )

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
    def rows(self) -> dict[int, Rows]:
        """Rows by shift 1..D."""
        return {d: self.grid.rows(d) for d in range(1, self.grid.sensitivity + 1)}

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

    def problem(self) -> Problem:
        """Return the program in full: "sum", "privacy d", and with delta "delta d" and "beyond"."""
        problem, period = Problem("noise"), self.grid.sensitivity
        most = np.minimum(1 / self.masses, _LARGEST)
        problem.add_variables("p", self.masses.size, lower=0.0, upper=most)
        if self.delta > 0:
            most_spent = min(_ROOM * self.delta / self.edge, _LARGEST)
            problem.add_variables("slack", period, lower=0.0, upper=most_spent)
            blocks = {"p": self.beyond, "slack": -sp.eye_array(period).tocsr()}
            problem.add_rows("beyond", blocks, upper=0.0)
        problem.add_rows("sum", {"p": self.masses[None, :]}, lower=1.0, upper=1.0)
        for d, rows in self.rows.items():
            norm, row = 1.0 / np.maximum(1.0, rows.ratio), np.arange(rows.v.size)
            entries = np.concatenate([norm, -rows.ratio * norm])
            positions = np.tile(row, 2), np.concatenate([rows.v, rows.w])
            p = sp.csr_array((entries, positions), shape=(row.size, self.masses.size))
            if self.delta == 0:
                problem.add_rows(f"privacy {d}", {"p": p}, upper=0.0)
                continue
            # The unit of a slack is between those of its row and of delta.
            unit = np.clip(np.sqrt(self.delta / rows.weight), 1e-6, 1e3)
            share = unit * rows.weight / self.delta
            most = np.minimum(_ROOM / unit, _ROOM / share)
            problem.add_variables(f"s{d}", row.size, lower=0.0, upper=most)
            slack = -sp.diags_array(norm * unit).tocsr()
            problem.add_rows(f"privacy {d}", {"p": p, f"s{d}": slack}, upper=0.0)
            last = (np.arange(1, period + 1) == d) * (self.edge / self.delta)
            spent = {f"s{d}": share[None, :], "slack": last[None, :]}
            problem.add_rows(f"delta {d}", spent, upper=1.0)
        problem.minimise({"p": self.costs})
        return problem

    def optimum(self, time_limit: float | None) -> Point:
        """Return the optimum for a delta above 0, by the interior-point method."""
        every, beyond = [*self.rows.values()], np.arange(self.grid.sensitivity)
        v, w = (np.concatenate([getattr(rows, name) for rows in every]) for name in ("v", "w"))
        share = np.concatenate([rows.weight for rows in every]) / self.delta
        other_side = share * np.concatenate([rows.ratio for rows in every])
        group = np.repeat(beyond, [rows.v.size for rows in every])
        # Rows of one variable always hold.
        kept = np.flatnonzero(v != w)
        rows = Shares(
            *(part[kept] for part in (v, w, share, other_side)),
            self.beyond * (self.edge / self.delta),
            np.append(group[kept], beyond),
        )
        found = optimum_of(rows, self.costs, self.masses, self.inside, time_limit)
        multipliers = np.zeros(v.size + beyond.size)
        multipliers[np.append(kept, v.size + beyond)] = found.rows
        return replace(found, rows=multipliers)

    def point(self, solution: Solution) -> Point:
        """Return what a solver found for `problem`."""
        duals, prices = solution.duals, np.zeros(len(self.rows))
        of_rows = [
            -duals[f"privacy {d}"] / np.maximum(1.0, rows.ratio) * self.delta / rows.weight
            for d, rows in self.rows.items()
        ]
        if self.delta > 0:
            prices = np.array([-float(duals[f"delta {d}"][0]) for d in self.rows])
            of_rows.append(-duals["beyond"] * (self.delta / self.edge))
        return Point(solution["p"], np.concatenate(of_rows), prices, float(duals["sum"][0]))

    def pmf(self, point: Point, inside: float) -> Vector:
        """Return p(0), ..., p(N) of a point, a share of it `inside`, and the ratio beyond."""
        grid, period = self.grid, self.grid.sensitivity
        z = (1 - inside) * np.maximum(point.z, 0.0) + inside * self.inside
        tail = 0.0
        if self.delta > 0:
            # What no shift would miss is the solver's rounding, and where it begins, noise ends.
            tail, found = z[-1] * self.edge, np.maximum(point.z, 0.0)
            outer = np.cumsum((found[grid.variable] * grid.scale)[::-1])[::-1]
            ends = outer + found[-1] * self.edge <= _MISSED * self.delta / math.exp(grid.epsilon)
            z[grid.variable[ends & (np.arange(grid.last + 1) > grid.repeated)]] = 0.0
            # It ends, too, where the loss rises for ever.
            beyond = self.loss(np.array([1, 2]) * (grid.last + 1))
            tail = 0.0 if ends[-1] or beyond[0] < beyond[1] else tail
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
        last, growth = grid.inner, math.exp(grid.epsilon)
        positions, by_shift = np.arange(-last, last + 1), list[tuple[int, IntVector, Vector]]()
        prices, share = np.maximum(point.prices, 0.0), self.unit / self.delta
        found, start = np.maximum(point.rows, 0.0), 0
        for d, rows in self.rows.items():
            of_rows = np.minimum(found[start : start + rows.v.size], prices[d - 1]) * share
            by_shift.append((d, positions, of_rows[rows.of]))
            start += rows.v.size
        ends = np.append(0.0, np.minimum(found[start:], prices) * share)
        # The columns of repeated periods without the rows of shift D that they determine.
        outward = by_shift[-1][2][last:]
        inner = [*by_shift[:-1], (period, positions[:last], by_shift[-1][2][:last])]
        shift = np.concatenate([np.full(at.size, d) for d, at, _ in inner])
        position, value = (np.concatenate([row[i] for row in inner]) for i in (1, 2))
        columns = columns_of(shift, position, value, last, period, grid.epsilon, self.loss)
        mu = 2 * point.mass * self.unit
        for start in range(grid.repeated - 2 * period, grid.head - period - 1, -period):
            block = slice(start + 1, start + period + 1)
            ahead = slice(block.start + period, block.stop + period)
            inward = (outward[ahead] + columns[ahead] - mu) / growth
            outward[block] = np.clip(inward, 0.0, prices[period - 1] * share)
        return Multipliers.of(by_shift, ends, last, delta, grid.epsilon, self.loss, mu / 2)


@dataclass(frozen=True)
class Optimum:
    """The optimum of a program: a point of it, multipliers, and the solve behind both."""

    program: Program
    point: Point
    multipliers: Multipliers
    solution: Solution | None


def optimum(
    grid_of: Callable[[int], Grid],
    delta: float,
    spare: float,
    loss: Loss,
    backend: str | Backend | None,
    time_limit: float | None,
) -> Optimum:
    """Return the optimum for a little less than delta, on the first grid that is long enough."""
    found = list[Optimum]()
    for doublings in range(DOUBLINGS + 1):
        program, solution = Program(grid_of(doublings), delta - spare, loss), None
        if backend is None:
            point = program.optimum(time_limit)
        else:
            solution = solve(program.problem(), backend, relative_gap=1.0, time_limit=time_limit)
            point = program.point(solution)
        found.append(Optimum(program, point, program.multipliers(point, delta), solution))
        value = float(program.costs @ point.z) * program.unit
        if value - found[-1].multipliers.bound <= _TIGHT * value or backend is not None:
            break
    return max(found, key=attrgetter("multipliers.bound"))
