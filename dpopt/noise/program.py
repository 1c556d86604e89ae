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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from dpopt._errors import SolverError
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.lp.backends.highs import Highs
from dpopt.noise.closed import (
    NEGLIGIBLE,
    Loss,
    Multipliers,
    best_step,
    columns_of,
    level,
    mass,
    signs,
    staircase_multipliers,
)
from dpopt.privacy import Problem

# Periods of head and end at first, and how often both are doubled for a tighter bound.
_HEAD, _END, DOUBLINGS = 3, 5, 3
# Tolerances of a solve, one after the other until it succeeds: while rows are added, and then. Of
# ill-conditioned bases, answers violate rows by more than a solver's own tolerance.
_ROUGH, _FINE = (1e-3,), (1e-9, 1e-8, 1e-7, 1e-6)
# Relative gap at which head and end are long enough, and rounds of added rows, at most.
_TIGHT, _ROUNDS = 1e-9, 60
# Slack of a row, as a share of its left side, below which it is the solver's rounding; likewise the
# mass of a tail, as a share of delta over e^epsilon.
_ROUNDING = 1e-9
# Share of a left side that may be missing on the right where the noise ends.
_ENDS = 1e-6
# By how much rows without slack are satisfied after the solve, relative: more than floats lose.
_SPARE = 1e-12
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

    def slack(self, z: Vector) -> Vector:
        """Return z[v] - ratio z[w] of each row."""
        return z[self.v] - self.ratio * z[self.w]


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
class Optimum:
    """The optimum of the finite program.

    p(0), ..., p(N) satisfy the rows with a little to spare; the ratio of a period beyond N to the
    one before is 0 if the noise ends at N.
    """

    pmf: Vector
    ratio: float
    multipliers: Multipliers
    solution: Solution


Active = Mapping[int, Sequence[IntVector]]
"""Rows in the program, by shift: their indices among its `Rows`, one array for each round."""


@dataclass(frozen=True)
class Program:
    """The program on a grid."""

    grid: Grid
    # What each shift may spend; 0 for pure privacy.
    delta: float
    loss: Loss

    @cached_property
    def rows(self) -> dict[int, Rows]:
        """Rows by shift 1..D."""
        return {d: self.grid.rows(d) for d in range(1, self.grid.sensitivity + 1)}

    @cached_property
    def costs(self) -> Vector:
        """The loss of each variable, in units of `unit`."""
        return self.grid.folded(self.loss(np.arange(self.grid.last + 1))) / self.unit

    @cached_property
    def unit(self) -> float:
        """A loss of about the size of the value: that of discrete Laplace noise."""
        x = np.arange(self.grid.last + 1)
        loss, total = self.grid.folded(self.loss(x)), self.grid.folded(np.ones(x.size))
        return float(loss.sum() / total.sum())

    def first(self) -> dict[int, list[IntVector]]:
        """Return the first rows: all of shift D, and where the best staircase falls first."""
        grid, period = self.grid, self.grid.sensitivity
        step, _ = best_step(period, grid.epsilon, self.loss)
        x, active = np.arange(-grid.inner, grid.inner + 1), dict[int, list[IntVector]]()
        for d, rows in self.rows.items():
            falls = (np.abs(x) <= step) & (
                level(np.abs(x + d), step, period) > level(np.abs(x), step, period)
            )
            active[d] = [np.unique(rows.of[falls | (d == period)])]
        return active

    def problem(self, active: Active | None = None) -> Problem:
        """Return the program with the chosen rows, or all: "sum", "privacy d" and "delta d".

        Rows of a later round i are a block "privacy d i" with slacks of their own, so that the last
        solution is a start.

        With delta, "tail" is all mass beyond the grid, on either side, and the rows "beyond" are
        the sums of all rows of a shift beyond the last ones of the grid.
        """
        problem, grid, period = Problem("noise"), self.grid, self.grid.sensitivity
        masses = grid.folded(np.ones(grid.last + 1))
        problem.add_variables("p", grid.size, lower=0.0, upper=np.minimum(1 / masses, _LARGEST))
        total, cost = {"p": masses[None, :]}, {"p": self.costs}
        if self.delta > 0:
            edge = self.edge
            most = min(_ROOM * self.delta / edge, _LARGEST)
            problem.add_variables("tail", 1, lower=0.0, upper=min(1 / edge, _LARGEST))
            problem.add_variables("slack", period, lower=0.0, upper=most)
            total["tail"] = np.array([[2 * edge]])
            cost["tail"] = 2 * edge * self.loss(np.array([grid.last + 1])) / self.unit
            steps = np.arange(1, period + 1)
            signs = np.where(steps[None, :] <= steps[:, None], 1.0, -math.expm1(grid.epsilon))
            position = grid.variable[grid.inner + steps]
            entries = sp.csr_array(
                (
                    (signs * grid.scale[grid.inner + steps] / edge).ravel(),
                    (np.repeat(steps - 1, period), np.tile(position, period)),
                ),
                shape=(period, grid.size),
            )
            tail = np.full((period, 1), -math.expm1(grid.epsilon))
            blocks = {"p": entries, "tail": tail, "slack": -sp.eye_array(period).tocsr()}
            problem.add_rows("beyond", blocks, upper=0.0)
        problem.add_rows("sum", total, lower=1.0, upper=1.0)
        for d, rows in self.rows.items():
            spent = dict[str, Matrix]()
            for i, index in enumerate([np.arange(rows.v.size)] if active is None else active[d]):
                if not index.size:
                    continue
                name = shift_name(d, i)
                norm, row = 1.0 / np.maximum(1.0, rows.ratio[index]), np.arange(index.size)
                entries = np.concatenate([norm, -rows.ratio[index] * norm])
                positions = np.tile(row, 2), np.concatenate([rows.v[index], rows.w[index]])
                blocks = {"p": sp.csr_array((entries, positions), shape=(index.size, grid.size))}
                if self.delta > 0:
                    share, unit = rows.weight[index] / self.delta, self.slack_unit(rows, index)
                    most = np.minimum(_ROOM / unit, _ROOM / (unit * share))
                    problem.add_variables(f"s{name}", index.size, lower=0.0, upper=most)
                    blocks[f"s{name}"] = -sp.diags_array(norm * unit).tocsr()
                    spent[f"s{name}"] = (unit * share)[None, :]
                problem.add_rows(f"privacy {name}", blocks, upper=0.0)
            if self.delta > 0:
                one = np.arange(1, period + 1) == d
                spent["slack"] = one[None, :] * (self.edge / self.delta)
                problem.add_rows(f"delta {d}", spent, upper=1.0)
        problem.minimise(cost)
        return problem

    def slack_unit(self, rows: Rows, index: IntVector) -> Vector:
        """Return the unit of each slack: between those of its row and of delta, in 1e-6..1e3."""
        return np.clip(np.sqrt(self.delta / rows.weight[index]), 1e-6, 1e3)

    @property
    def edge(self) -> float:
        """The scale of the last distance that has privacy rows."""
        return float(self.grid.scale[self.grid.inner])

    def solved(self, backend: str | Backend, time_limit: float | None) -> Optimum:
        """Solve it, adding rows of shifts that spend too much, until none does."""
        active, solution, tolerances = self.first(), None, _ROUGH
        for _ in range(_ROUNDS):
            solution = tried(self.problem(active), backend, time_limit, tolerances, solution)
            for d, rows in self.rows.items():
                slack = rows.slack(solution["p"])
                spent = np.maximum(slack, 0.0) @ rows.weight
                within = self.delta * (1 + 1e-9) or 1e-9
                violated = (slack > _ROUNDING * solution["p"][rows.v]) & (spent > within)
                new = np.setdiff1d(np.flatnonzero(violated), np.concatenate(active[d]))
                active[d].append(new)
            if any(rounds[-1].size for rounds in active.values()):
                continue
            if tolerances == _FINE:
                best = self.multipliers(solution, active, limited=True)
                if not self.tight(solution, best):
                    # Where the solver does not resolve the duals of delta.
                    other = self.multipliers(solution, active, limited=False)
                    best = max(best, other, key=attrgetter("bound"))
                return Optimum(*self.pmf(solution, active), best, solution)
            tolerances = _FINE
        raise SolverError("rows were still violated after many rounds.", Status.STALLED)

    def tight(self, solution: Solution, multipliers: Multipliers) -> bool:
        """Return whether multipliers prove the value of a solution."""
        value = solution.objective * self.unit
        return value - multipliers.bound <= _TIGHT * value

    def multipliers(self, solution: Solution, active: Active, limited: bool) -> Multipliers:
        """Return the multipliers of all rows -N <= x <= N of Z, and of those beyond.

        Args:
            solution: of the last solve.
            active: rows in its program.
            limited: whether no multiplier is above the dual of its shift's delta: it would count
                for the bound, and can be larger where nothing has mass.
        """
        grid, period = self.grid, self.grid.sensitivity
        if self.delta == 0:
            return staircase_multipliers(period, grid.epsilon, self.loss)
        last, growth = grid.inner, math.exp(grid.epsilon)
        positions, by_shift = np.arange(-last, last + 1), list[tuple[int, IntVector, Vector]]()
        prices = np.full(period + 1, np.inf)
        if limited:
            of_delta = [-float(solution.duals[f"delta {d}"][0]) for d in self.rows]
            prices[1:] = np.array(of_delta) * (self.unit / self.delta)
        for d, rows in self.rows.items():
            index, of_rows = np.concatenate(active[d]), np.zeros(rows.v.size)
            norm = 1.0 / np.maximum(1.0, rows.ratio[index])
            duals = np.maximum(-joined(solution.duals, "privacy ", d, active), 0.0)
            of_rows[index] = np.minimum(duals * norm * self.unit / rows.weight[index], prices[d])
            by_shift.append((d, positions, of_rows[rows.of]))
        ends = np.append(0.0, np.maximum(-solution.duals["beyond"], 0.0) * self.unit / self.edge)
        ends = np.minimum(ends, prices)
        # The columns of repeated periods without the rows of shift D that they determine.
        outward = by_shift[-1][2][last:]
        inner = [*by_shift[:-1], (period, positions[:last], by_shift[-1][2][:last])]
        shift = np.concatenate([np.full(at.size, d) for d, at, _ in inner])
        position, value = (np.concatenate([row[i] for row in inner]) for i in (1, 2))
        columns = columns_of(shift, position, value, last, period, grid.epsilon, self.loss)
        mu = 2 * float(solution.duals["sum"][0]) * self.unit
        for start in range(grid.repeated - 2 * period, grid.head - period - 1, -period):
            block = slice(start + 1, start + period + 1)
            ahead = slice(block.start + period, block.stop + period)
            inward = (outward[ahead] + columns[ahead] - mu) / growth
            outward[block] = np.clip(inward, 0.0, prices[period])
        return Multipliers.of(by_shift, ends, last, self.delta, grid.epsilon, self.loss, mu / 2)

    def pmf(self, solution: Solution, active: Active) -> tuple[Vector, float]:
        """Return p(0), ..., p(N) of a solution, and the ratio beyond, without solvers' rounding."""
        grid, z = self.grid, np.maximum(solution["p"], 0.0)
        tail = float(solution["tail"][0]) * self.edge if self.delta > 0 else 0.0
        if self.delta > 0:
            # Mass that no shift would miss is the solver's rounding; so is all beyond it.
            negligible = _ROUNDING * self.delta / math.exp(grid.epsilon)
            outer = np.cumsum((z[grid.variable] * grid.scale)[::-1])[::-1] + tail
            ends = outer <= negligible
            z[grid.variable[ends & (np.arange(grid.last + 1) > grid.repeated)]] = 0.0
            tail = 0.0 if ends[-1] else tail
        allowed = {}
        for d, rows in self.rows.items():
            # Rows outside the program spend what they do, but for the solver's rounding.
            slack = rows.slack(z)
            allowed[d] = np.where(slack > _ROUNDING * z[rows.v], slack, 0.0)
            index = np.concatenate(active[d])
            allowed[d][index] = 0.0
            if self.delta > 0:
                slacks = joined(solution.values, "s", d, active)
                allowed[d][index] = slacks * self.slack_unit(rows, index)
        for _ in range(_ROUNDS):
            before = z.copy()
            for d, rows in self.rows.items():
                least = (z[rows.v] - allowed[d]) / rows.ratio * (1 + _SPARE)
                # Of a row that is nearly all slack, what is missing is the solver's rounding.
                ends = least * rows.ratio < _ENDS * z[rows.v]
                short = (least > z[rows.w]) & (rows.v != rows.w) & ~ends
                np.maximum.at(z, rows.w[short], least[short])
            if np.array_equal(z, before):
                break
        head, period = grid.head, grid.sensitivity
        pmf = z[grid.variable] * grid.scale
        decay = math.nextafter(math.exp(-grid.epsilon), 1.0)
        for start in range(head + 1, grid.repeated, period):
            # Never below e^-epsilon times the period before.
            pmf[start : start + period] = np.nextafter(pmf[start - period : start] * decay, 1.0)
        ratio = 0.0
        if grid.endless:
            ratio = decay
        elif tail > 0:
            # Of endless noise, all mass beyond the grid.
            ratio = max(decay, tail / (tail + float(pmf[-period:].sum())))
        return pmf / mass(pmf, ratio, period), ratio


def tried(
    problem: Problem,
    backend: str | Backend,
    time_limit: float | None,
    tolerances: Sequence[float],
    start: Solution | None,
) -> Solution:
    """Solve at the first tolerance that succeeds, to any gap: bounds are computed elsewhere."""
    tolerance, *larger = tolerances
    solver = Highs(perturb=False) if backend == "highs" else backend
    options: dict[str, Any] = {"relative_gap": 1.0, "time_limit": time_limit, "start": start}
    try:
        return solve(problem, solver, tolerance=tolerance, **options)
    except SolverError as error:
        if error.status != Status.NUMERICAL or not larger:
            raise
    return tried(problem, backend, time_limit, larger, start)


def shift_name(d: int, i: int) -> str:
    """Return what names call a shift's rows of round i."""
    return f"{d} {i}" if i else f"{d}"


def joined(named: Mapping[str, Vector], prefix: str, d: int, active: Active) -> Vector:
    """Return what a solution has for a shift's rows, those of all rounds in their order."""
    blocks = [named[prefix + shift_name(d, i)] for i, rows in enumerate(active[d]) if rows.size]
    return np.concatenate([np.empty(0), *blocks])


def optimum(
    grid_of: Callable[[int], Grid],
    delta: float,
    loss: Loss,
    backend: str | Backend,
    time_limit: float | None,
) -> Optimum:
    """Return the optimum, on the first grid on which it is proved optimal."""
    optima = list[Optimum]()
    for doublings in range(DOUBLINGS + 1):
        program = Program(grid_of(doublings), delta, loss)
        optima.append(program.solved(backend, time_limit))
        if program.tight(optima[-1].solution, optima[-1].multipliers):
            break
    return max(optima, key=attrgetter("multipliers.bound"))
