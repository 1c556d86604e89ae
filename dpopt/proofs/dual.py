"""Dual multipliers that bound the value of every solution: exact, from a float solve.

The input is the program that `dpopt.verify` writes for a saved design; the output is multipliers of
some of its rows, multiples of 2^-`BITS`, and the bound that `dpopt.verify.bound` computes from
them. Nothing here has to be trusted: any multipliers give a true bound, good ones a tight one.

A program of many rows is solved over the rows that are tight at the design: the others have
multiplier 0 at an optimum.

A solver's multipliers have noise, and are optimal up to its tolerance only. So the program is
solved again, magnified around the design's point v0 and the best multipliers y so far (Gleixner,
Steffy and Wolter, INFORMS J. Comput. 28 (2016)): with slacks s of the rows A v + s = b, the cost of
a point is a constant plus (cost + y A) . v + y . s. The steps v - v0 and s - s0 are divided by a
width, and so are these costs, after subtracting the least of each distribution. A tolerance of
1e-10 then means 1e-10 widths. The width falls from 1, with y = 0, to the gap, step by step: a
solver gains a few digits each time, and fails if it is asked for all of them at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from dpopt import verify
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import float_down, float_up
from dpopt._types import Json, Vector
from dpopt.lp import Problem, Solution, solve

Multipliers = list[tuple[verify.Name, Fraction]]

BITS = 160
"""Multipliers are multiples of 2^-BITS."""


# Gaps relative to the value: above the first, try the next share; up to the second, stop.
_FAR, _ENOUGH = Fraction(1, 10**11), Fraction(1, 10**12)
# Solves of a program; the largest cost of a magnified one, in widths; the share of the gap that a
# solve must close for another one; and the factor of the width from one to the next, at least.
_MOST_SOLVES, _LARGEST_COST, _STAYS, _FINER = 6, 1e6, Fraction(1, 1000), Fraction(1, 1000)


SMALL = 4000
"""Number of entries of rows up to which a proof is made unasked: about 0.3 seconds."""


class Bound(float):
    """A bound on the value of every mechanism, and how it is known.

    Attributes:
        how: "proved", in exact arithmetic for the true e^epsilon; "float", from the solver's duals
            in double precision; "stated", by a file.
    """

    how: str

    def __new__(cls, value: float, how: str) -> Self:
        """Return a bound with its origin."""
        bound = super().__new__(cls, value)
        bound.how = how
        return bound

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.how


@dataclass(frozen=True)
class Optimality:
    """An exact bound on the value of every solution of a program, with the proof.

    Attributes:
        value: of the design, exact.
        bound: no solution has a better value, exact.
        multipliers: by row of the program of `dpopt.verify`.
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
    """A program of `dpopt.verify` over some of its rows, with its matrix in floats.

    Attributes:
        program: the exact program.
        names: of the rows that are used.
    """

    program: verify.Program
    names: tuple[verify.Name, ...]

    @cached_property
    def rows(self) -> list[verify.Row]:
        """The exact rows."""
        return [self.program.row(name) for name in self.names]

    @cached_property
    def variables(self) -> dict[verify.Variable, int]:
        """Column of each variable: those of the distributions, then those of the boxes."""
        pmfs = (variable for variables, _ in self.program.pmfs for variable in variables)
        return {v: index for index, v in enumerate([*pmfs, *self.program.boxes])}

    @cached_property
    def entries(self) -> list[tuple[int, int, Fraction]]:
        """(row, column, coefficient) of the pmfs, then of the rows; enclosures by their middle."""
        index, sums = self.variables, [dict.fromkeys(row, 1) for row, _ in self.program.pmfs]
        rows = enumerate([*sums, *(row.terms for row in self.rows)])
        return [(i, index[v], middle(a)) for i, terms in rows for v, a in terms.items()]

    @cached_property
    def scales(self) -> Vector:
        """The largest absolute coefficient of each row, by which the solver's rows are divided."""
        largest = np.zeros(len(self.program.pmfs) + len(self.names))
        rows, sizes = [i for i, *_ in self.entries], [abs(float(a)) for *_, a in self.entries]
        np.maximum.at(largest, rows, sizes)
        return np.where(largest > 0, largest, 1.0)

    @cached_property
    def costs(self) -> list[Fraction]:
        """The cost of each variable, to be minimised."""
        sign = -1 if self.program.maximise else 1
        return [sign * Fraction(self.program.cost.get(v, 0)) for v in self.variables]

    @cached_property
    def limits(self) -> list[tuple[Fraction, Fraction]]:
        """The lower and upper limit of each variable; one of a pmf is at most the pmf's mass."""
        pmfs = ((0, mass) for variables, mass in self.program.pmfs for _ in variables)
        both = (*pmfs, *self.program.boxes.values())
        return [(Fraction(low), Fraction(high)) for low, high in both]

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The coefficients of distributions and rows, each row divided by its scale, in floats."""
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
        """Solve the program magnified around a point and multipliers, in floats; see the module.

        Variables "v" and "slack", rows "pmfs" and "rows". The prices are multipliers of the rows,
        the costs of their slacks; the width is the unit of the steps.
        """
        pmfs, count = self.program.pmfs, len(self.program.pmfs)
        point = [Fraction(0)] * len(self.variables) if point is None else point
        prices = [Fraction(0)] * len(self.names) if prices is None else prices
        costs, row_values = [*self.costs], [Fraction(0)] * self.scales.size
        # Row values at the point, and reduced costs cost + y A.
        for i, j, a in self.entries:
            row_values[i] += a * point[j]
            if i >= count:
                costs[j] += prices[i - count] * a
        # A constant less on all costs of a distribution changes no solution.
        start = 0
        for variables, _ in pmfs:
            block = slice(start, start := start + len(variables))
            least = min(costs[block])
            costs[block] = [cost - least for cost in costs[block]]
        row_limits = [Fraction(mass) for _, mass in pmfs]
        row_limits += [middle(row.limit) for row in self.rows]
        # What the distributions lack at the point, then the slacks of the rows.
        slacks = [limit - total for limit, total in zip(row_limits, row_values, strict=True)]
        problem = Problem("the program of a proof")
        lower, upper = (
            [float((limit[end] - at) / width) for limit, at in zip(self.limits, point, strict=True)]
            for end in (0, 1)
        )
        problem.add_variables("v", len(point), lower=lower, upper=upper)
        if pmfs:
            total = np.array([float(mass / width) for mass in slacks[:count]])
            problem.add_rows("pmfs", {"v": self.matrix[:count]}, lower=total, upper=total)
        objective = {"v": _clipped(costs, width)}
        if self.rows:
            scales = self.scales[count:]
            least = np.array([-float(slack / width) for slack in slacks[count:]]) / scales
            most = np.where([row.equality for row in self.rows], least, np.inf)
            problem.add_variables("slack", scales.size, lower=least, upper=most)
            unit = sp.eye_array(scales.size, format="csr")
            blocks: Any = {"v": self.matrix[count:], "slack": unit}
            problem.add_rows("rows", blocks, lower=0.0, upper=0.0)
            objective["slack"] = _clipped(prices, width) * scales
        problem.minimise(objective)
        # Only the duals and the basis are used: any gap will do.
        return solve(problem, relative_gap=1.0)

    def corrected(
        self, prices: Sequence[Fraction], width: Fraction, solution: Solution
    ) -> Multipliers:
        """Return ``prices`` corrected by the duals of the program around them.

        They are multiples of 2^-`BITS`, without zeros and wrong signs. Clipped costs may make the
        program's basis infeasible for the whole program, but the multipliers stay dual feasible: a
        reduced cost that is at least 0 stays so for a higher cost.
        """
        changes = solution.duals.get("rows", np.zeros(0)) / self.scales[len(self.program.pmfs) :]
        unit, multipliers = 1 << BITS, []
        for name, row, y, change in zip(self.names, self.rows, prices, changes, strict=True):
            # The solver's dual is d optimum / d limit: minus the multiplier of a . v <= b.
            rounded = Fraction(round((y - Fraction(float(change)) * width) * unit), unit)
            if rounded > 0 or (rounded < 0 and row.equality):
                multipliers.append((name, rounded))
        return multipliers


def _clipped(costs: Sequence[Fraction], width: Fraction) -> Vector:
    """Return costs in widths; of a magnified program, clipped."""
    most = np.inf if width == 1 else _LARGEST_COST
    return np.clip([float(cost / width) for cost in costs], -most, most)


def middle(number: verify.Number | verify.Between) -> Fraction:
    """Return a number, or the middle of an enclosure."""
    low, high = number if isinstance(number, tuple) else (number, number)
    return Fraction(low + high) / 2


def tight_rows(program: verify.Program, share: float) -> list[verify.Name]:
    """Return equalities, and rows of a slack of at most a share of their largest coefficient."""
    tight, point = [], {v: float(value) for v, value in program.point.items()}
    for name in program.names():
        row = program.row(name)
        slack, largest = float(verify.ends(row.limit)[0]), 0.0
        for variable, coefficient in row.terms.items():
            size = float(verify.ends(coefficient)[0])
            slack -= size * point.get(variable, 0.0)
            largest = max(largest, abs(size))
        if row.equality or slack <= share * largest:
            tight.append(name)
    return tight


def proved(program: verify.Program, names: Sequence[verify.Name] | None = None) -> Optimality:
    """Return a bound on all solutions of a program, tight if its own point is optimal.

    Args:
        program: with a point.
        names: rows that may have multipliers; those that are tight at the point if None.

    Raises:
        SolverError: if no program over some rows could be solved.
    """
    best: Optimality | None = None
    failed = SolverError("no row of the program was given.", "numerical")
    # A row is tight if its slack is within this share of its largest coefficient: shares in turn.
    for share in (1e-9, 1e-6, 1e-3) if names is None else [None]:
        rows = list(names or []) if share is None else tight_rows(program, share)
        try:
            for found in _bounds(Written(program, tuple(rows))):
                best = found if best is None or found.gap < best.gap else best
        except SolverError as error:
            failed = error
        if best is not None and best.gap <= _FAR * abs(best.value):
            break
    if best is None:
        raise failed
    return best


def _bounds(written: Written) -> Iterator[Optimality]:
    """Yield bounds over some rows, none looser than the one before."""
    program = written.program
    value, width = Fraction(program.value), Fraction(1)
    # Bounds are rounded outward to 2^-200: short, and true for other enclosures, too. Of the
    # enclosures' 320 bits, 120 are left for the rounding of the multipliers.
    unit, outward = 1 << 200, math.ceil if program.maximise else math.floor
    point = [Fraction(program.point.get(v, 0)) for v in written.variables]
    current: Optimality | None = None
    for _ in range(_MOST_SOLVES):
        y = dict(current.multipliers if current is not None else ())
        prices = [y.get(name, Fraction(0)) for name in written.names]
        solution, last = written.solved(point, prices, width), current
        multipliers = written.corrected(prices, width, solution)
        limit = Fraction(outward(Fraction(verify.bound(program, multipliers)) * unit), unit)
        candidate = Optimality(value, limit, tuple(multipliers), program.maximise)
        current = candidate if current is None or candidate.gap < current.gap else current
        yield current
        # If the bound stays, the remaining gap is the design's own suboptimality.
        stays = last is not None and width <= last.gap <= current.gap + _STAYS * last.gap
        if stays or current.gap <= _ENOUGH * abs(value):
            return
        width = max(current.gap, width * _FINER)


def optimality(
    kind: str,
    setting: Json,
    weights: Any,  # noqa: ANN401
    names: Sequence[verify.Name] | None = None,
    data: Json | None = None,
) -> Optimality | None:
    """Return the proof that no mechanism has a better value than a design.

    Args:
        kind: of the design.
        setting: its parameters as plain values, as a file has them.
        weights: its integer weights as plain values ("table" of a file).
        names: rows that may have multipliers; those that are tight at the design if None.
        data: fields of the proof file other than its bound and multipliers.

    Returns:
        The proof; None for a kind that `dpopt.verify` does not know.

    Raises:
        ParameterError: if `dpopt.verify` does not support the setting, or it is too large.
        SolverError: if no multipliers were found.
    """
    display = verify.KINDS.get(kind)
    if display is None:
        return None
    # The values that a file would have: lists for tuples.
    setting, weights, data = json.loads(json.dumps([setting, weights, data or {}]))
    try:
        program = display(setting, weights, None, data)
    except verify.Malformed as error:
        raise ParameterError(f"there is no proof of this {kind!r}: {error}.") from None
    except verify.Refused as error:
        raise SolverError(f"no proof of this {kind!r} was found: {error}.", "numerical") from None
    if not program.cost:
        raise ParameterError(f"there is no proof of this {kind!r}: value{program.note}.")
    return proved(program, names)
