"""Multipliers that prove how good any point of a program can be: exact, from a float solve.

What goes in is the program that `dpopt.verify` displays for a saved design, in exact arithmetic;
what comes out are multipliers of some of its rows, multiples of 2^-`BITS`, and the bound that
`dpopt.verify.bound` makes of them. Nothing here is believed: any multipliers give a bound that is
true, good ones give one that is tight.

A program of many rows is solved over those alone that are tight at the design: multipliers of the
others are 0 at an optimum. A solver's multipliers have 1e-9 of noise. Those of its basis are a
system of equations, M^T y = c; a factorisation in double precision and residuals in integers give y
to as many bits as are asked for (iterative refinement).

A solver's basis is feasible and optimal up to its tolerance only. So the program is solved again,
magnified around the design's point v0 and the multipliers y found so far (Gleixner, Steffy and
Wolter, INFORMS J. Comput. 28 (2016)): with s the slacks of the rows A v + s = b, the cost of a
point is a constant more than (cost + y A) . v + y . s; the steps v - v0 and s - s0 are divided by
a width, and so are these costs, less the least of each distribution. A tolerance of 1e-10 then is
one of 1e-10 widths. The width falls step by step from 1, with y = 0, to the gap, around the best
multipliers so far: a solver gains a few digits each time, and finds nothing where they are asked
for at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from dpopt import verify
from dpopt._errors import SolverError
from dpopt._numbers import float_down, float_up
from dpopt._types import Vector
from dpopt.lp import Problem, Solution, solve
from dpopt.lp.basis import BASIC

Multipliers = list[tuple[verify.Name, Fraction]]

BITS = 160
"""Multipliers are multiples of 2^-BITS."""

# Bounds are multiples of 2^-_SHORT.
_SHORT = 200

# Bits of coefficients in residuals, steps of refinement, and entries of a basis worth a factor.
_FIXED, _STEPS, _MOST_ENTRIES = 256, 12, 1_000_000
# Of a solve: only its basis counts.
_ANY = 1.0
# Rows whose slack is within these shares of their largest coefficient are tight, tried in turn;
# and the gap, as a share of the value, from which the next is tried.
_TIGHT, _FAR, _ENOUGH = (1e-9, 1e-6, 1e-3), Fraction(1, 10**11), Fraction(1, 10**12)
# Times that a program is solved; the largest cost of a magnified one, in widths; the share of the
# gap by which the next one must lower it; and the next width, of the last one.
_AGAIN, _LARGEST_COST, _STAYS, _FINER = 6, 1e6, Fraction(1, 1000), Fraction(1, 1000)


class Bound(float):
    """A bound on the value of every point, and how it is known.

    Attributes:
        how: "proved", in exact arithmetic for the true e^epsilon; "float", from the solver's duals
            in double precision; "stated", by a file.
    """

    how: str

    def __new__(cls, value: float, how: str) -> Self:
        """Return a float that says how it is known."""
        made = super().__new__(cls, value)
        made.how = how
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.how


@dataclass(frozen=True)
class Optimality:
    """A bound on the value of every point of a program, exact, and what proves it.

    Attributes:
        value: of the design, exact.
        bound: no point is better, exact.
        multipliers: by row of the program that `dpopt.verify` displays.
        maximises: whether a larger value is better.
    """

    value: Fraction
    bound: Fraction
    multipliers: tuple[tuple[verify.Name, Fraction], ...]
    maximises: bool = False

    def as_float(self) -> Bound:
        """Return the bound as a float, rounded outward."""
        outward = float_up if self.maximises else float_down
        return Bound(outward(self.bound), "proved")

    @property
    def gap(self) -> Fraction:
        """How far the value is from the bound, at least 0."""
        return self.bound - self.value if self.maximises else self.value - self.bound


@dataclass(frozen=True)
class Written:
    """A program in floats: that of `dpopt.verify`, over some of its rows.

    Attributes:
        program: the exact one.
        names: of its rows.
    """

    program: verify.Program
    names: tuple[verify.Name, ...]

    @cached_property
    def rows(self) -> list[verify.Row]:
        """The exact rows."""
        return [self.program.row(name) for name in self.names]

    @cached_property
    def variables(self) -> dict[verify.Variable, int]:
        """Places of the variables: those of the distributions, then those of the boxes."""
        pmfs = (variable for variables, _ in self.program.pmfs for variable in variables)
        return {v: place for place, v in enumerate([*pmfs, *self.program.boxes])}

    @cached_property
    def entries(self) -> list[tuple[int, int, Fraction]]:
        """(row, column, coefficient) of the pmfs, then of the rows; the middle of an enclosure."""
        place, count = self.variables, len(self.program.pmfs)
        found = [
            (i, place[v], Fraction(1))
            for i, (variables, _) in enumerate(self.program.pmfs)
            for v in variables
        ]
        for i, row in enumerate(self.rows):
            for v, coefficient in row.terms.items():
                found.append((count + i, place[v], middle(coefficient)))
        return found

    @cached_property
    def scales(self) -> Vector:
        """The largest coefficient of each row in size: rows are divided by it for the solver."""
        largest = np.zeros(len(self.program.pmfs) + len(self.names))
        for i, _, a in self.entries:
            largest[i] = max(largest[i], abs(float(a)))
        return np.where(largest > 0, largest, 1.0)

    @cached_property
    def costs(self) -> list[Fraction]:
        """The cost of each variable in a program that minimises."""
        sign = -1 if self.program.maximise else 1
        return [sign * Fraction(self.program.cost.get(v, 0)) for v in self.variables]

    @cached_property
    def limits(self) -> list[tuple[Fraction, Fraction]]:
        """The lower and upper limit of each variable; one of a pmf is at most the pmf's mass."""
        pmfs = [(0, mass) for variables, mass in self.program.pmfs for _ in variables]
        both = [*pmfs, *self.program.boxes.values()]
        return [(Fraction(low), Fraction(high)) for low, high in both]

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The coefficients of the distributions and the rows, each divided by its largest."""
        shape = (self.scales.size, len(self.variables))
        at, column, values = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        floats = np.array(list(map(float, values)))
        matrix = sp.csr_array((floats, (np.array(at, int), np.array(column, int))), shape=shape)
        return sp.csr_array(sp.diags_array(1 / self.scales) @ matrix)

    def solved(
        self,
        point: Sequence[Fraction] | None = None,
        prices: Sequence[Fraction] | None = None,
        width: Fraction = Fraction(1),
    ) -> Solution:
        """Solve for the steps from a point and from prices, in widths, in floats; see the module.

        Variables "v" and "slack", rows "distributions" and "rows".

        Args:
            point: by variable; 0 if None.
            prices: by row, what its slack costs; 0 if None.
            width: above 0.

        Raises:
            SolverError: if the solver found no answer.
        """
        pmfs, count = self.program.pmfs, len(self.program.pmfs)
        point = [Fraction(0)] * len(self.variables) if point is None else point
        prices = [Fraction(0)] * len(self.names) if prices is None else prices
        costs, held = [*self.costs], [Fraction(0)] * self.scales.size
        for i, j, a in self.entries:
            held[i] += a * point[j]
            if i >= count:
                costs[j] += prices[i - count] * a
        start = 0
        for variables, _ in pmfs:
            part = slice(start, start := start + len(variables))
            least = min(costs[part])
            costs[part] = [cost - least for cost in costs[part]]
        masses = [Fraction(mass) for _, mass in pmfs]
        off = [mass - total for mass, total in zip(masses, held[:count], strict=True)]
        slacks = [
            middle(row.limit) - total for row, total in zip(self.rows, held[count:], strict=True)
        ]
        problem = Problem("the program of a proof")
        lower, upper = (
            [float((limit[end] - at) / width) for limit, at in zip(self.limits, point, strict=True)]
            for end in (0, 1)
        )
        problem.add_variables("v", len(point), lower=lower, upper=upper)
        if pmfs:
            total = np.array([float(mass / width) for mass in off])
            problem.add_rows("pmfs", {"v": self.matrix[:count]}, lower=total, upper=total)
        objective = {"v": _clipped(costs, width)}
        if self.rows:
            scales = self.scales[count:]
            least = np.array([-float(slack / width) for slack in slacks]) / scales
            most = np.where([row.equality for row in self.rows], least, np.inf)
            problem.add_variables("slack", len(slacks), lower=least, upper=most)
            unit = sp.eye_array(len(slacks), format="csr")
            parts: Any = {"v": self.matrix[count:], "slack": unit}
            problem.add_rows("rows", parts, lower=0.0, upper=0.0)
            objective["slack"] = _clipped(prices, width) * scales
        problem.minimise(objective)
        return solve(problem, relative_gap=_ANY)

    def multipliers(self, solution: Solution) -> Multipliers:
        """Return the multipliers of a solution's basis to 2^-`BITS`; zeros are left out."""
        y = np.concatenate([solution.duals.get(name, np.zeros(0)) for name in ("pmfs", "rows")])
        exact = self._refined(solution, y / self.scales)
        # The solver's multiplier is the change of the optimum with the limit.
        return [] if exact is None else self._rounded([-y for y in exact[len(self.program.pmfs) :]])

    def corrected(
        self, prices: Sequence[Fraction], width: Fraction, solution: Solution
    ) -> Multipliers:
        """Return prices with the changes that a program around them has for them.

        Its costs are clipped, so that its basis may be none of the program's; its multipliers are
        the program's all the same: what they leave of a cost is at least 0, and more of a higher
        one.
        """
        changes = solution.duals.get("rows", np.zeros(0)) / self.scales[len(self.program.pmfs) :]
        steps = [Fraction(float(change)) * width for change in changes]
        return self._rounded([y - step for y, step in zip(prices, steps, strict=True)])

    def _rounded(self, exact: Sequence[Fraction]) -> Multipliers:
        """Return the multipliers of rows to 2^-`BITS`; those that are 0 are left out."""
        unit, found = 1 << BITS, []
        for name, row, value in zip(self.names, self.rows, exact, strict=True):
            rounded = Fraction(round(value * unit), unit)
            if rounded > 0 or (rounded < 0 and row.equality):
                found.append((name, rounded))
        return found

    def _refined(self, solution: Solution, y: Vector) -> list[Fraction] | None:
        """Return the multipliers of a basis; None if they do not converge."""
        if solution.basis is None:
            return None
        columns, tight = self.basis(solution)
        if len(columns) != len(tight) or not columns:
            return None
        row_of = {row: place for place, row in enumerate(tight)}
        column_of = {column: place for place, column in enumerate(columns)}
        inside = [
            (row_of[i], column_of[j], a)
            for i, j, a in self.entries
            if i in row_of and j in column_of
        ]
        if len(inside) > _MOST_ENTRIES:
            return None
        at, to, values = zip(*inside, strict=True) if inside else ((), (), ())
        shape = (len(tight), len(columns))
        square = sp.csc_array((np.array(list(map(float, values))), (at, to)), shape=shape)
        try:
            factor = splu(square)
        except RuntimeError:
            return None
        unit = 1 << _FIXED
        fixed = [(i, j, round(a * unit)) for i, j, a in inside]
        costs = [round(self.costs[j] * unit) << _FIXED for j in columns]
        found = [round(Fraction(float(y[i])) * unit) for i in tight]
        last = None
        for _ in range(_STEPS):
            left = list(costs)
            for i, j, a in fixed:
                left[j] -= a * found[i]
            size = max(map(abs, left), default=0)
            if size >> (2 * _FIXED - BITS - 20) == 0:
                break
            if last is not None and size > last:
                return None
            last = size
            # The residual in floats, scaled so that nothing underflows.
            shift = max(0, size.bit_length() - 53)
            step = factor.solve(np.array([float(value >> shift) for value in left]), trans="T")
            if not np.all(np.isfinite(step)):
                return None
            for i, change in enumerate(step.tolist()):
                found[i] += int(Fraction(change) * (1 << shift) / unit)
        exact = [Fraction(0)] * self.scales.size
        for i, value in zip(tight, found, strict=True):
            exact[i] = Fraction(value, unit)
        return exact

    def basis(self, solution: Solution) -> tuple[list[int], list[int]]:
        """Return the basic columns, and the rows at a limit: pmfs first, then the others."""
        statuses = solution.basis
        if statuses is None:
            raise SolverError("the solver left no basis.", solution.status)
        columns = np.flatnonzero(statuses.variables["v"] == BASIC).tolist()
        rows = [statuses.rows[name] for name in ("pmfs", "rows") if name in statuses.rows]
        if not rows:
            return columns, []
        tight = np.concatenate(rows) != BASIC
        if "slack" in statuses.variables:
            tight[len(self.program.pmfs) :] &= statuses.variables["slack"] != BASIC
        return columns, np.flatnonzero(tight).tolist()


def _clipped(costs: Sequence[Fraction], width: Fraction) -> Vector:
    """Return costs in widths; around other prices, none beyond what matters."""
    most = np.inf if width == 1 else _LARGEST_COST
    return np.clip([float(cost / width) for cost in costs], -most, most)


def middle(number: verify.Number | verify.Between) -> Fraction:
    """Return a number, or the middle of what encloses it."""
    low, high = verify.ends(number)
    return Fraction(low + high) / 2


def tight_rows(
    program: verify.Program, share: float, names: Iterable[verify.Name] | None = None
) -> list[verify.Name]:
    """Return the rows whose slack at the point is within a share of their largest coefficient.

    Args:
        program: with a point.
        share: at least 0.
        names: of the rows to look at; all of them if None.
    """
    found = []
    point = {v: float(value) for v, value in program.point.items()}
    for name in program.names() if names is None else names:
        row = program.row(name)
        terms = [(v, float(verify.ends(a)[0])) for v, a in row.terms.items()]
        largest = max((abs(a) for _, a in terms), default=0.0)
        slack = float(verify.ends(row.limit)[0]) - sum(a * point.get(v, 0.0) for v, a in terms)
        if row.equality or slack <= share * largest:
            found.append(name)
    return found


def proved(program: verify.Program, names: Sequence[verify.Name] | None = None) -> Optimality:
    """Return a bound on all points of a program, tight at its own point if that is optimal.

    Args:
        program: with a point.
        names: of rows that are enough; those that are tight at the point if None.

    Raises:
        SolverError: if no program over some rows could be solved.
    """
    best: Optimality | None = None
    failed = SolverError("no row of the program was given.", "numerical")
    for share in _TIGHT if names is None else [None]:
        chosen = list(names or []) if share is None else tight_rows(program, share)
        try:
            for found in _better(Written(program, tuple(chosen)), best):
                best = found
        except SolverError as error:
            failed = error
        if best is not None and best.gap <= _FAR * abs(best.value):
            break
    if best is None:
        raise failed
    return best


def _outward(bound: Fraction, maximises: bool) -> Fraction:
    """Return a bound rounded to a multiple of 2^-200: short, and true for other enclosures too."""
    unit = 1 << _SHORT
    return Fraction(math.ceil(bound * unit) if maximises else math.floor(bound * unit), unit)


def _better(written: Written, best: Optimality | None) -> Iterator[Optimality]:
    """Yield bounds over some rows, each nearer than the one before, until none is."""
    program = written.program
    value, width = Fraction(program.value), Fraction(1)
    point = [Fraction(program.point.get(v, 0)) for v in written.variables]
    own: Optimality | None = None
    for _ in range(_AGAIN):
        y = dict(own.multipliers if own is not None else ())
        prices = [y.get(name, Fraction(0)) for name in written.names]
        solution, last = written.solved(point, prices, width), own
        for found in (written.corrected(prices, width, solution), written.multipliers(solution)):
            limit = _outward(Fraction(verify.bound(program, found)), program.maximise)
            one = Optimality(value, limit, tuple(found), program.maximise)
            own = one if own is None or one.gap < own.gap else own
        if own is None or own.gap <= _ENOUGH * abs(value):
            break
        if best is None or own.gap < best.gap:
            yield (best := own)
        # Where the bound stays, the gap that is left is the design's own.
        if last is not None and width <= last.gap <= own.gap + _STAYS * last.gap:
            return
        width = max(own.gap, width * _FINER)
    if own is not None and (best is None or own.gap < best.gap):
        yield own
