"""The optimum of a small program as a fraction, where e^epsilon is rational.

A float solver's basis says which rows hold with equality (tight) and which variables are between
their limits (basic). There are as many of one as of the other, so the tight rows are a square
system: its solution x, and the multipliers y of its transpose, are rational if the program is. They
are optimal if x satisfies all other limits and rows and y has the right signs, which is decided
exactly. If they are not, the program is solved again, magnified around this vertex, see
`dpopt.proofs.dual`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from flint import fmpq, fmpq_mat

from dpopt import verify
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import exact_text, shown
from dpopt._types import Json, brief
from dpopt.files import versions, write_json
from dpopt.lp.solution import BASIC
from dpopt.proofs.dual import Written

if TYPE_CHECKING:
    from dpopt.shape import Setting

# Limits of size; solves until a basis is optimal, and the factor of the width from one to the next.
_MOST_ROWS, _MOST_COLUMNS, _MOST_SOLVES, _FINER = 20_000, 2_000, 6, Fraction(1, 1000)


@dataclass(frozen=True, repr=False)
class ExactOptimum:
    """The optimum of a program at a rational e^epsilon, with its proof.

    Attributes:
        kind: of the setting.
        setting: its parameters as plain values; ``ratio`` replaces e^epsilon.
        ratio: e^epsilon.
        value: the optimum.
        point: an optimal solution, by variable of the program of `dpopt.verify`, without zeros.
        multipliers: by row; the bound that they prove is ``value``.
        provenance: versions of the software that computed it.
    """

    kind: str
    setting: Json
    ratio: Fraction
    value: Fraction
    point: Mapping[verify.Variable, Fraction]
    multipliers: Mapping[verify.Name, Fraction]
    provenance: Mapping[str, str] = field(default_factory=versions)

    def __repr__(self) -> str:
        return brief(self, kind=self.kind, ratio=self.ratio, value=self.value)

    def to_dict(self) -> Json:
        """Return the optimum as plain values, ready for JSON; fractions as text."""
        return {
            "format": "dpopt exact optimum",
            "kind": self.kind,
            "setting": self.setting,
            "ratio": exact_text(self.ratio),
            "value": exact_text(self.value),
            "point": [[*v, exact_text(x)] for v, x in self.point.items()],
            "multipliers": [[*name, exact_text(y)] for name, y in self.multipliers.items()],
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | Path) -> None:
        """Write the optimum to a JSON file that `dpopt.verify` checks on its own.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


def exact_optimum(setting: Setting, ratio: Rational | int = Fraction(5, 2)) -> ExactOptimum:
    """Return the optimum of a setting's program as a fraction, with its proof.

    The program is the one that `dpopt.verify` writes, with ``ratio`` instead of e^epsilon; the
    epsilon of the setting is ignored. In a majority of voters ``ratio`` is e^epsilon of one voter
    and the target is ratio^allowance, so the allowance has to be an integer. The basis of a float
    solver is solved again in fractions, and it is decided exactly that the solution is feasible and
    that the multipliers prove its value.

    Args:
        setting: of a kind that `dpopt.verify` supports, with at most 2,000 variables and 20,000
            rows.
        ratio: e^epsilon, rational, at least 1; numerator and denominator of at most 256 bits.

    Raises:
        ParameterError: if the setting is not supported, or the ratio is out of range.
        SolverError: if no basis was optimal in exact arithmetic.
    """
    kind, plain = plain_setting(setting)
    rational = isinstance(ratio, Rational) and not isinstance(ratio, bool)
    exact = Fraction(ratio) if rational else Fraction(0)
    if exact < 1 or max(exact.numerator, exact.denominator).bit_length() > verify.RATIO_BITS:
        raise ParameterError(
            f"ratio is {shown(ratio)}; it must be an integer or fraction of at least 1, numerator "
            f"and denominator of at most {verify.RATIO_BITS} bits."
        )
    program = displayed(kind, plain, exact)
    rows = written(program)
    vertex = Exact.of(rows).optimum()
    point = {v: fraction(x) for v, x in zip(rows.variables, vertex.point, strict=True) if x}
    # Rows of the vertex are numbered distributions first.
    prices = {i - len(program.pmfs): y for i, y in vertex.multipliers.items() if y}
    multipliers = {rows.names[i]: fraction(y) for i, y in prices.items() if i >= 0}
    program.point = dict(point)
    try:
        program.private = None
        verify.decide(program)
        bound = verify.bound(program, multipliers.items())
    except verify.Refused as error:
        raise SolverError(f"the optimum found is refused: {error}.", "numerical") from error
    value = Fraction(program.value)
    if bound != value:
        raise SolverError("the multipliers found do not prove the optimum.", "numerical")
    return ExactOptimum(kind, plain, exact, value, point, multipliers)


def plain_setting(setting: Setting) -> tuple[str, Json]:
    """Return a setting's kind, and its parameters as the plain values of a file."""
    kind = getattr(setting, "kind", None)
    if isinstance(setting, type) or kind not in verify.KINDS:
        raise ParameterError(
            f"setting is {shown(setting)}; it must be of a kind whose program can be checked: "
            f"{', '.join(kind for kind in verify.KINDS if kind != 'table')}."
        )
    return kind, json.loads(json.dumps(setting.to_dict()))


def displayed(kind: str, plain: Json, ratio: Fraction) -> verify.Program:
    """Return the program of a setting at a rational e^epsilon."""
    try:
        return verify.KINDS[kind](plain, None, (ratio, ratio), {})
    except (verify.Malformed, *verify.MISSING) as error:
        why = f" ({error})" if isinstance(error, verify.Malformed) else ""
        raise ParameterError(
            f"setting is {shown(plain)}; it must have a program whose numbers are rational where "
            f"e^epsilon is{why}."
        ) from error


def written(
    program: verify.Program, columns: int = _MOST_COLUMNS, rows: int = _MOST_ROWS
) -> Written:
    """Return a program of at most so many variables and rows together with all its rows."""
    all_rows = Written(program, tuple(islice(program.names(), rows + 1)))
    if len(all_rows.names) > rows or len(all_rows.variables) > columns:
        raise ParameterError(
            f"setting is too large; its program must have at most {columns:,} variables and "
            f"{rows:,} rows."
        )
    return all_rows


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
    ) -> list[fmpq]:
        """Return the slacks of the limits of columns, and of all rows but the tight ones."""
        slacks: list[fmpq] = []
        for j in columns:
            low, high = self.limits[j]
            slacks += [point[j] - low, high - point[j]]
        for i, (terms, limit, equality) in enumerate(self.rows):
            if i not in tight:
                slack = limit - sum((a * point[j] for j, a in terms.items()), fmpq(0))
                slacks += [slack, -slack] if equality else [slack]
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
            statuses = solution.basis
            if statuses is None:
                raise SolverError("the solver left no basis.", solution.status)
            columns = np.flatnonzero(statuses.variables["v"] == BASIC).tolist()
            rows = [statuses.rows[name] for name in ("pmfs", "rows") if name in statuses.rows]
            is_tight = np.concatenate([*rows, []]) != BASIC
            if "slack" in statuses.variables:
                is_tight[pmfs:] &= statuses.variables["slack"] != BASIC
            tight = np.flatnonzero(is_tight).tolist()
            if len(columns) != len(tight):
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

    @cached_property
    def determinant(self) -> fmpq:
        """That of the tight rows over the basic columns."""
        return self.exact.square(self.basis).det()

    @cached_property
    def signs(self) -> list[fmpq]:
        """What an optimal vertex has at least 0: slacks, multipliers and reduced costs."""
        exact, basis, reduced = self.exact, self.basis, list(self.exact.costs)
        signs = exact.slacks(self.point, basis.columns, self.multipliers)
        for i, y in self.multipliers.items():
            terms, _, equality = exact.rows[i]
            signs += [] if equality else [y]
            for j, a in terms.items():
                reduced[j] += y * a
        for j, (low, high) in enumerate(exact.limits):
            if j not in basis.columns and low < high:
                signs.append(-reduced[j] if j in basis.top else reduced[j])
        return signs

    @cached_property
    def optimal(self) -> bool:
        """Whether the point is feasible, and multipliers and reduced costs have the right signs."""
        return all(value >= 0 for value in self.signs)


def rational(value: verify.Number | verify.Between) -> fmpq:
    """Return a number as a python-flint rational."""
    low, high = verify.ends(value)
    if low != high:
        raise SolverError("a coefficient is no rational number.", "numerical")
    return fmpq(low.numerator, low.denominator)


def fraction(value: fmpq) -> Fraction:
    """Return a python-flint rational as a Fraction."""
    return Fraction(int(value.p), int(value.q))
