"""Vertices of linear programs in exact arithmetic, from the bases of a float solver.

A basis says which rows hold with equality (tight) and which variables are between their limits
(basic). There are as many of one as of the other, so the tight rows are a square system: its
solution x, and the multipliers y of its transpose, are rational if the program is. They are optimal
if x satisfies all other limits and rows and y has the right signs, which is decided exactly. A
float solver's basis is optimal up to its tolerance only; if it is not optimal, the program is
solved again, magnified around this vertex, see `dpopt.proofs.dual`.
"""

from __future__ import annotations

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


@dataclass(frozen=True)
class Basis:
    """Which columns are basic, which rows are tight, and which columns are at their upper limit.

    Attributes:
        columns: the basic columns.
        tight: the tight rows, distributions first; as many as basic columns.
        top: nonbasic columns at their upper limit; the others are at their lower one.
    """

    columns: tuple[int, ...]
    tight: tuple[int, ...]
    top: frozenset[int]


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
        entries = [fmpq(0)] * (size * size)
        for i, row in enumerate(basis.tight):
            for column, a in self.rows[row][0].items():
                if column in position_of:
                    entries[i * size + position_of[column]] = a
        return fmpq_mat(size, size, entries)

    def vertex(self, basis: Basis, matrix: fmpq_mat | None = None) -> Vertex | None:
        """Return the point and the multipliers of a basis; None if it is singular."""
        matrix = self.square(basis) if matrix is None else matrix
        size, point = len(basis.columns), self.outside(basis)
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

    def outside(self, basis: Basis) -> list[fmpq]:
        """Return the value of each nonbasic column, and 0 for the basic ones."""
        point = [high if j in basis.top else low for j, (low, high) in enumerate(self.limits)]
        for j in basis.columns:
            point[j] = fmpq(0)
        return point

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
    """The point of a basis, and its multipliers.

    Attributes:
        exact: the program.
        basis: of the vertex.
        point: by column.
        multipliers: by tight row.
    """

    exact: Exact
    basis: Basis
    point: list[fmpq]
    multipliers: dict[int, fmpq]

    @cached_property
    def optimal(self) -> bool:
        """Whether the point is feasible, and multipliers and reduced costs have the right signs."""
        exact, reduced = self.exact, list(self.exact.costs)
        basic, top = set(self.basis.columns), self.basis.top
        for i, (terms, limit, equality) in enumerate(exact.rows):
            y = self.multipliers.get(i)
            if y is None:
                slack = limit - sum((a * self.point[j] for j, a in terms.items()), fmpq(0))
                if slack < 0 or (equality and slack > 0):
                    return False
                continue
            if y < 0 and not equality:
                return False
            for j, a in terms.items():
                reduced[j] += y * a
        for j, (low, high) in enumerate(exact.limits):
            if not low <= self.point[j] <= high:
                return False
            wrong = reduced[j] > 0 if j in top else reduced[j] < 0
            if wrong and low < high and j not in basic:
                return False
        return True


def rational(value: verify.Number | verify.Between) -> fmpq:
    """Return a number as a python-flint rational."""
    low, high = verify.ends(value)
    if low != high:
        raise SolverError("a coefficient is no rational number.", "numerical")
    return fmpq(low.numerator, low.denominator)


def fraction(value: fmpq) -> Fraction:
    """Return a python-flint rational as a Fraction."""
    return Fraction(int(value.p), int(value.q))
