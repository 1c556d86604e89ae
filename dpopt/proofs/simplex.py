"""Vertices of linear programs in exact arithmetic, from the bases of a float solver.

A basis says which rows hold with equality (tight) and which variables are between their limits
(basic). There are as many of one as of the other, so the tight rows are a square system: its
solution x, and the multipliers y of its transpose, are rational if the program is. They are optimal
if x satisfies all other limits and rows and y has the right signs, which is decided exactly. A
float solver's basis is optimal up to its tolerance only; if it is not optimal, the program is
solved again, magnified around this vertex, see `dpopt.proofs.dual`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq, fmpq_mat

from dpopt import verify
from dpopt._errors import SolverError
from dpopt.proofs.dual import Written

# Solves until a basis is optimal, and the factor of the width from each to the next.
_MOST_SOLVES, _FINER = 6, Fraction(1, 1000)


Sign = tuple[fmpq, int | None, int]
"""A number that may not be negative; the row whose unit it has to some power, if any; the power."""


@dataclass(frozen=True)
class Basis:
    """A basis of a program."""

    columns: tuple[int, ...]  # the basic columns
    tight: tuple[int, ...]  # the tight rows, distributions first; as many as basic columns
    top: frozenset[int]  # nonbasic columns at their upper limit; the others are at their lower one


@dataclass(frozen=True)
class Exact:
    """Minimise c . v over low <= v <= high, a . v = b (distributions, equalities) or a . v <= b.

    A variable of a distribution is at most the distribution's mass.

    Attributes:
        written: the program, whose distributions are the first rows.
        rows: (coefficients by column, limit, whether it is an equality).
    """

    written: Written
    rows: list[tuple[dict[int, fmpq], fmpq, bool]]

    @classmethod
    def of(cls, written: Written) -> Exact:
        """Return a program in exact numbers."""
        index = written.variables
        rows = [
            ({index[v]: fmpq(1) for v in variables}, rational(mass), True)
            for variables, mass in written.program.pmfs
        ]
        for row in written.rows:
            terms = {index[v]: rational(a) for v, a in row.terms.items()}
            rows.append((terms, rational(row.limit), row.equality))
        return cls(written, rows)

    @cached_property
    def costs(self) -> list[fmpq]:
        """The cost of each column, to be minimised."""
        return [rational(cost) for cost in self.written.costs]

    @cached_property
    def limits(self) -> list[tuple[fmpq, fmpq]]:
        """The lower and upper limit of each column."""
        return [(rational(low), rational(high)) for low, high in self.written.limits]

    def square(self, basis: Basis) -> fmpq_mat:
        """Return the square matrix of tight rows over basic columns."""
        size = len(basis.columns)
        position_of = {column: position for position, column in enumerate(basis.columns)}
        matrix = fmpq_mat(size, size)
        for i, row in enumerate(basis.tight):
            for column, a in self.rows[row][0].items():
                if column in position_of:
                    matrix[i, position_of[column]] = a
        return matrix

    def slacks(
        self, point: Sequence[fmpq], columns: Iterable[int], tight: Container[int] = ()
    ) -> list[Sign]:
        """Return the slacks of the limits of columns, and of all rows but the tight ones."""
        slacks: list[Sign] = []
        for j in columns:
            low, high = self.limits[j]
            slacks += [(point[j] - low, None, 0), (high - point[j], None, 0)]
        for i, (terms, limit, equality) in enumerate(self.rows):
            if i not in tight:
                slack = limit - sum((a * point[j] for j, a in terms.items()), fmpq(0))
                slacks += [(slack, i, 1), (-slack, i, 1)] if equality else [(slack, i, 1)]
        return slacks

    def vertex(self, basis: Basis) -> Vertex | None:
        """Return the point and the multipliers of a basis; None if it is singular."""
        matrix, size = self.square(basis), len(basis.columns)
        # Nonbasic columns are at a limit.
        point = [high if j in basis.top else low for j, (low, high) in enumerate(self.limits)]
        for j in basis.columns:
            point[j] = fmpq(0)
        # Limits of the tight rows less the nonbasic columns' share.
        right_side = [
            self.rows[i][1]
            - sum((a * point[j] for j, a in self.rows[i][0].items() if point[j]), fmpq(0))
            for i in basis.tight
        ]
        try:
            basic = matrix.solve(fmpq_mat(size, 1, right_side)).entries()
            costs = fmpq_mat(size, 1, [-self.costs[j] for j in basis.columns])
            multipliers = matrix.transpose().solve(costs).entries()
        except ZeroDivisionError:
            return None
        for j, value in zip(basis.columns, basic, strict=True):
            point[j] = value
        return Vertex(self, basis, point, dict(zip(basis.tight, multipliers, strict=True)))

    def optimum(self) -> Vertex:
        """Return an optimal vertex."""
        solution, pmfs = self.written.solved(), len(self.written.program.pmfs)
        for again in range(1, _MOST_SOLVES + 1):
            columns, tight = self.written.basis(solution)
            statuses = solution.basis
            if statuses is None or len(columns) != len(tight):
                raise SolverError("the solver left no square basis.", solution.status)
            # The solver's status 2 is that of a variable at its upper limit.
            top = frozenset(np.flatnonzero(statuses.variables["v"] == 2).tolist())
            vertex = self.vertex(Basis(tuple(columns), tuple(tight), top))
            if vertex is None:
                break
            if vertex.optimal:
                return vertex
            point = [fraction(x) for x in vertex.point]
            prices = [fraction(vertex.multipliers.get(i, fmpq(0))) for i in range(len(self.rows))]
            solution = self.written.solved(point, prices[pmfs:], _FINER**again)
        raise SolverError(
            "no basis of the float solver is optimal in exact arithmetic.", "numerical"
        )


@dataclass(frozen=True)
class Vertex:
    """The point of a basis, and its multipliers."""

    exact: Exact
    basis: Basis
    point: list[fmpq]  # by column
    multipliers: dict[int, fmpq]  # by tight row

    @property
    def determinant(self) -> fmpq:
        """That of the tight rows over the basic columns."""
        return self.exact.square(self.basis).det()

    @cached_property
    def signs(self) -> list[Sign]:
        """What an optimal vertex has at least 0: slacks, multipliers and reduced costs."""
        exact, basis, reduced = self.exact, self.basis, list(self.exact.costs)
        signs = exact.slacks(self.point, basis.columns, self.multipliers)
        for i, y in self.multipliers.items():
            terms, _, equality = exact.rows[i]
            signs += [] if equality else [(y, i, -1)]
            for j, a in terms.items():
                reduced[j] += y * a
        for j, (low, high) in enumerate(exact.limits):
            if j not in basis.columns and low < high:
                signs.append((-reduced[j] if j in basis.top else reduced[j], None, 0))
        return signs

    @cached_property
    def optimal(self) -> bool:
        """Whether the point is feasible, and multipliers and reduced costs have the right signs."""
        return all(value >= 0 for value, *_ in self.signs)


def rational(value: verify.Number | verify.Between) -> fmpq:
    """Return a number as a python-flint rational."""
    low, high = verify.ends(value)
    if low != high:
        raise SolverError("a coefficient is no rational number.", "numerical")
    return fmpq(low.numerator, low.denominator)


def fraction(value: fmpq) -> Fraction:
    """Return a python-flint rational as a Fraction."""
    return Fraction(int(value.p), int(value.q))
