"""Vertices of linear programs in exact arithmetic, from the bases at which a float solver ends.

A basis says which rows hold with equality (the tight ones) and which variables are between their
limits (the basic ones). Both are equally many, so the rows are a square system: its solution x,
and the multipliers l of its transpose, are rationals where the program is rational. They are an
optimum if x keeps all other limits and rows and l has the right signs; that is decided here
exactly and never believed. A float solver keeps both up to a tolerance, so its basis may be a few
pivots short of an optimum. Those are made here: of the dual simplex method until x keeps
everything, then of the primal one until l does.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import fmpq, fmpq_mat

from dpopt import verify
from dpopt._errors import SolverError
from dpopt.proofs.dual import Written

_PIVOTS = 60
_UPPER = 2


@dataclass(frozen=True)
class Basis:
    """Which columns are basic, which rows are tight, and which other columns are at their top.

    Attributes:
        columns: basic.
        tight: rows, laws first; as many.
        top: columns at their upper limit; all others are at their lower one.
    """

    columns: tuple[int, ...]
    tight: tuple[int, ...]
    top: frozenset[int]


@dataclass(frozen=True)
class Exact:
    """minimise c . v over low <= v <= high, a . v = b (laws, equalities) or a . v <= b.

    A variable of a law is at most the law's mass.

    Attributes:
        written: the program, whose laws are the first rows.
        rows: (coefficients by column, limit, whether it is an equality).
    """

    written: Written
    rows: list[tuple[dict[int, fmpq], fmpq, bool]]

    @classmethod
    def of(cls, written: Written) -> Exact:
        """Return a program in exact numbers.

        Raises:
            SolverError: if a coefficient is enclosed and not known exactly.
        """
        place = written.variables
        rows = [
            ({place[v]: fmpq(1) for v in variables}, rational(mass), True)
            for variables, mass in written.program.laws
        ]
        rows += [
            (
                {place[v]: rational(a) for v, a in row.terms.items()},
                rational(row.limit),
                row.equality,
            )
            for row in written.rows
        ]
        return cls(written, rows)

    @cached_property
    def costs(self) -> list[fmpq]:
        """By column, of a program that minimises."""
        return [rational(cost) for cost in self.written.costs]

    @cached_property
    def limits(self) -> list[tuple[fmpq, fmpq]]:
        """The lower and upper limit of each column."""
        laws, boxes = self.written.program.laws, self.written.program.boxes
        found = [(fmpq(0), rational(mass)) for variables, mass in laws for _ in variables]
        return found + [(rational(low), rational(high)) for low, high in boxes.values()]

    def float_basis(self) -> Basis:
        """Return the basis at which the float solver ends.

        Raises:
            SolverError: if it found no optimum, or leaves no square basis.
        """
        solution = self.written.solved()
        columns, tight = self.written.basis(solution)
        statuses = solution.basis
        if statuses is None or len(columns) != len(tight):
            raise SolverError("the solver left no square basis.", solution.status)
        top = frozenset(j for j, at in enumerate(statuses.variables["v"]) if at == _UPPER)
        return Basis(tuple(columns), tuple(tight), top)

    def square(self, basis: Basis) -> fmpq_mat:
        """Return the tight rows over the basic columns."""
        size = len(basis.columns)
        at = {column: place for place, column in enumerate(basis.columns)}
        entries = [fmpq(0)] * (size * size)
        for i, row in enumerate(basis.tight):
            for column, a in self.rows[row][0].items():
                if column in at:
                    entries[i * size + at[column]] = a
        return fmpq_mat(size, size, entries)

    def vertex(self, basis: Basis, matrix: fmpq_mat | None = None) -> Vertex | None:
        """Return the point and the multipliers of a basis; None if it is singular."""
        matrix = self.square(basis) if matrix is None else matrix
        size, point = len(basis.columns), self.outside(basis)
        left = [
            self.rows[i][1]
            - sum((a * point[j] for j, a in self.rows[i][0].items() if point[j]), fmpq(0))
            for i in basis.tight
        ]
        try:
            basic = matrix.solve(fmpq_mat(size, 1, left)).entries()
            costs = fmpq_mat(size, 1, [-self.costs[j] for j in basis.columns])
            multipliers = matrix.transpose().solve(costs).entries()
        except ZeroDivisionError:
            return None
        for j, value in zip(basis.columns, basic, strict=True):
            point[j] = value
        return Vertex(self, basis, point, dict(zip(basis.tight, multipliers, strict=True)))

    def outside(self, basis: Basis) -> list[fmpq]:
        """Return the point with 0 for the basic columns."""
        point = [high if j in basis.top else low for j, (low, high) in enumerate(self.limits)]
        for j in basis.columns:
            point[j] = fmpq(0)
        return point

    def optimum(self) -> Vertex:
        """Return an optimal vertex: that of the float basis, or one a few exact pivots from it.

        Raises:
            SolverError: if none of them is optimal.
        """
        return self.optimum_from(self.float_basis())

    def optimum_from(self, basis: Basis) -> Vertex:
        """Return an optimal vertex a few exact pivots from a basis.

        Raises:
            SolverError: if none of them is optimal.
        """
        vertex = self.vertex(basis)
        for _ in range(_PIVOTS):
            if vertex is None:
                break
            pivoted = vertex.pivot() if vertex.feasible else vertex.repaired()
            if pivoted is None:
                return vertex
            vertex = self.vertex(pivoted)
        raise SolverError(
            "no basis near that of the float solver is optimal in exact arithmetic.", "numerical"
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

    def slack(self, row: int) -> fmpq:
        """Return b - a . v of a row."""
        terms, limit, _ = self.exact.rows[row]
        return limit - sum((a * self.point[j] for j, a in terms.items() if self.point[j]), fmpq(0))

    @cached_property
    def slacks(self) -> dict[int, fmpq]:
        """By row that is not tight, b - a . v."""
        tight = set(self.basis.tight)
        return {i: self.slack(i) for i in range(len(self.exact.rows)) if i not in tight}

    @cached_property
    def reduced(self) -> dict[int, fmpq]:
        """By column that is not basic, c + l . a."""
        basic = set(self.basis.columns)
        found = {j: cost for j, cost in enumerate(self.exact.costs) if j not in basic}
        for row, multiplier in self.multipliers.items():
            if multiplier:
                for j, a in self.exact.rows[row][0].items():
                    if j in found:
                        found[j] += multiplier * a
        return found

    @cached_property
    def feasible(self) -> bool:
        """Whether the point keeps all limits and rows."""
        return self.broken is None

    @cached_property
    def broken(self) -> tuple[int, bool] | None:
        """The first that breaks a limit, and whether that is its upper one; None if none does.

        Columns come first, then slacks: that of row i is count + i, and 0 of an equality.
        """
        for j in self.basis.columns:
            low, high = self.exact.limits[j]
            if not low <= self.point[j] <= high:
                return j, self.point[j] > high
        count = len(self.exact.costs)
        for i, slack in self.slacks.items():
            if slack < 0 or (slack > 0 and self.exact.rows[i][2]):
                return count + i, slack > 0
        return None

    def repaired(self) -> Basis:
        """Return the next basis of the dual simplex method by Bland's rule.

        The point breaks a limit. Multipliers of the wrong sign count as 0, and are left to `pivot`.

        Raises:
            SolverError: if no point keeps all limits and rows.
        """
        exact, basis, count = self.exact, self.basis, len(self.exact.costs)
        if self.broken is None:
            raise ValueError("the point keeps all limits")
        leaving, above = self.broken
        # How the leaving one moves with each of the others: a row of the tableau.
        own = exact.rows[leaving - count][0] if leaving >= count else {}
        unit = [
            fmpq(j == leaving) if leaving < count else -own.get(j, fmpq(0)) for j in basis.columns
        ]
        transposed = exact.square(basis).transpose()
        shares = transposed.solve(fmpq_mat(len(unit), 1, unit)).entries()
        moves = {j: -own.get(j, fmpq(0)) for j in self.reduced}
        for i, share in zip(basis.tight, shares, strict=True):
            if share:
                for j, a in exact.rows[i][0].items():
                    if j in moves:
                        moves[j] -= share * a
        # (how soon its multiplier is 0, who enters)
        ends: list[tuple[fmpq, int]] = []
        way = -1 if above else 1
        for j, move in moves.items():
            low, high = exact.limits[j]
            side = -1 if j in basis.top else 1
            if low < high and move * way * side > 0:
                ends.append((max(self.reduced[j] * side, fmpq(0)) / abs(move), j))
        for i, share in zip(basis.tight, shares, strict=True):
            if not exact.rows[i][2] and -share * way > 0:
                ends.append((max(self.multipliers[i], fmpq(0)) / abs(share), count + i))
        if not ends:
            raise SolverError("no point keeps all rows.", "infeasible")
        return self.exchanged(min(ends)[1], leaving, above and leaving < count)

    def exchanged(self, entering: int, leaving: int, at_top: bool) -> Basis:
        """Return the basis after an exchange of columns or slacks; ``at_top`` is of the leaving."""
        count, basis = len(self.exact.costs), self.basis
        columns, tight, top = set(basis.columns), set(basis.tight), set(basis.top)
        if entering < count:
            columns.add(entering)
            top.discard(entering)
        else:
            tight.discard(entering - count)
        if leaving < count:
            columns.discard(leaving)
            if at_top:
                top.add(leaving)
        else:
            tight.add(leaving - count)
        return Basis(tuple(sorted(columns)), tuple(sorted(tight)), frozenset(top))

    def pivot(self) -> Basis | None:
        """Return the next basis of the simplex method by Bland's rule; None if this is optimal.

        Raises:
            SolverError: if the program has no least value.
        """
        exact, basis = self.exact, self.basis
        size, count = len(basis.columns), len(exact.costs)
        # Columns first, then the slacks of rows: the first with the wrong sign enters.
        entering = next(
            (j for j, d in sorted(self.reduced.items()) if (d > 0 if j in basis.top else d < 0)),
            None,
        )
        if entering is None:
            wrong = (
                count + i
                for i, y in sorted(self.multipliers.items())
                if y < 0 and not exact.rows[i][2]
            )
            entering = next(wrong, None)
        if entering is None:
            return None
        sign = -1 if entering in basis.top else 1
        if entering < count:
            change = [-sign * exact.rows[i][0].get(entering, fmpq(0)) for i in basis.tight]
        else:
            change = [fmpq(-(i == entering - count)) for i in basis.tight]
        step = exact.square(basis).solve(fmpq_mat(size, 1, change)).entries()
        moves = dict(zip(basis.columns, step, strict=True))
        if entering < count:
            moves[entering] = fmpq(sign)
        # (how far, who leaves, whether at its top)
        ends: list[tuple[fmpq, int, bool]] = []
        for j, move in moves.items():
            low, high = exact.limits[j]
            if move > 0:
                ends.append(((high - self.point[j]) / move, j, True))
            elif move < 0:
                ends.append(((self.point[j] - low) / -move, j, False))
        for i, slack in self.slacks.items():
            move = sum((a * moves[j] for j, a in exact.rows[i][0].items() if j in moves), fmpq(0))
            if move > 0 or (move < 0 and exact.rows[i][2]):
                ends.append((slack / abs(move), count + i, False))
        if not ends:
            raise SolverError("the program is unbounded.", "unbounded")
        _, leaving, at_top = min(ends)
        return self.exchanged(entering, leaving, at_top)


def rational(value: verify.Number | verify.Between) -> fmpq:
    """Return a number of python-flint.

    Raises:
        SolverError: if only an enclosure of it is known.
    """
    low, high = verify.ends(value)
    if low != high:
        raise SolverError("a coefficient is no rational number.", "numerical")
    return fmpq(low.numerator, low.denominator)


def fraction(value: fmpq) -> Fraction:
    """Return a number of Python."""
    return Fraction(int(value.p), int(value.q))
