"""The optimum of a small program as a function of r = e^epsilon: rational on each of some pieces.

For a fixed basis the optimum of a linear program, its solution and its multipliers are rational
functions of the coefficients. They are computed exactly: the coefficients of the rows are
polynomials in r, Cramer's rule bounds the degrees of the numerators and of the determinant, and
that many solves at integer r determine them by interpolation. The basis is optimal at every r where
no slack, multiplier or reduced cost is negative. All of these are rational functions of r, and
their changes of sign are roots of polynomials, which Arb isolates: between two of them, a basis
that is optimal at one r is optimal at all. So each piece is proved, and ends at algebraic numbers.
The search goes on in the gaps between pieces until none is left.

At a single r where the determinant is 0 but no function has a pole, the solution is still feasible
and the multipliers still prove its value: both are limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from numbers import Rational
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from flint import fmpq, fmpq_mat, fmpq_poly, fmpz_poly

from dpopt import verify
from dpopt._errors import DpoptError, ParameterError, SolverError
from dpopt._figure import new_axes
from dpopt._numbers import shown
from dpopt._types import Json, brief
from dpopt.proofs.dual import Written
from dpopt.proofs.exact import (
    Exact,
    Vertex,
    displayed,
    exact_optimum,
    fraction,
    plain_setting,
    rational,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.shape import Setting


# Limits of size: variables, rows, pieces.
_MOST_COLUMNS, _MOST_ROWS, _MOST_PIECES = 400, 2_000, 400

# Position of the next r in a gap, as a share of its width; not simple, as breaks tend to be.
_SHARES = [Fraction(a, 1009) for a in (433, 613, 211, 797, 101, 907, 31, 983)]

# Kinds whose rows are proved to be polynomials of the degrees of `_degrees`; others are tried.
_VOTERS = ("majority", "multiclass")
_PROVED = {"kernel", *_VOTERS, "best-sampler", "plurality", "public-prior", "reveal-or-obscure"}


def _degrees(kind: str, setting: Json, name: verify.Name) -> tuple[int, int]:
    """Return n such that (1 + r)^n times a row is polynomial in r, and the degree of that.

    Rows are affine, but for n voters at corners, whose pmf is over (1 + r)^n.
    """
    if kind not in _VOTERS or name[0] != "corner":
        return 0, 1
    if kind == "majority":
        n = sum(count for corner, count in name[2] if corner in verify.AXES[0])
    else:
        n = sum(map(abs, name[2]))
    return n, n + int(setting["allowance"])


@dataclass(frozen=True)
class Root:
    """A real algebraic number: the one root of an irreducible polynomial in an interval.

    Attributes:
        coefficients: of the polynomial, integers, the constant first.
        low: a rational below the root; the root itself if the polynomial is linear.
        high: a rational above it; the root itself if the polynomial is linear.
    """

    coefficients: tuple[int, ...]
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, value: Fraction) -> Root:
        """Return a rational number as a root."""
        return cls((-value.numerator, value.denominator), value, value)

    @property
    def rational(self) -> Fraction | None:
        """The number, if it is rational."""
        return self.low if len(self.coefficients) == 2 else None

    def within(self, width: Fraction) -> tuple[Fraction, Fraction]:
        """Return rationals around the root, at most ``width`` apart."""
        low, high = self.low, self.high
        if low == high:
            return low, high
        below = self.sign(low)
        while high - low > width:
            half = (low + high) / 2
            low, high = (half, high) if self.sign(half) == below else (low, half)
        return low, high

    def sign(self, x: Fraction) -> int:
        """Return the sign of the polynomial at x."""
        value = fmpq_poly(list(self.coefficients))(fmpq(x.numerator, x.denominator))
        return (value > 0) - (value < 0)

    def __float__(self) -> float:
        return float(self.within(Fraction(1, 1 << 80))[0])

    def __lt__(self, other: Root) -> bool:
        if self == other:
            return False
        # This ends: different irreducible polynomials share no root, and the isolating intervals
        # of one polynomial are disjoint.
        width = Fraction(1)
        while True:
            (a, b), (c, d) = self.within(width), other.within(width)
            if b < c or (b == c and (a < b or c < d)):
                return True
            if d < a or (d == a and (a < b or c < d)):
                return False
            width /= 4

    @property
    def polynomial(self) -> str:
        """The polynomial in r, as text."""
        return sum_text(self.coefficients)

    def __str__(self) -> str:
        exact = self.rational
        return f"{float(self):.6g}" if exact is None else str(exact)


@cache
def roots_above_one(coefficients: tuple[int, ...]) -> tuple[Root, ...]:
    """Return the roots above 1 of an irreducible polynomial, in order, in disjoint intervals."""
    if len(coefficients) < 2:
        return ()
    if len(coefficients) == 2:
        root = Fraction(-coefficients[0], coefficients[1])
        return (Root(coefficients, root, root),) if root > 1 else ()
    if len({a > 0 for a in coefficients if a}) == 1:
        return ()  # All coefficients have one sign: no root is positive.
    # Disjoint balls, each around one root, and real around a real one. An irreducible polynomial of
    # degree > 1 has no rational root, so their ends are none.
    balls: Any = fmpz_poly(list(coefficients)).complex_roots()
    real = [ball.real for ball, _ in balls if ball.imag.is_zero()]
    ends = ((fraction(ball.mid().fmpq()), fraction(ball.rad().fmpq())) for ball in real)
    roots = [Root(coefficients, middle - radius, middle + radius) for middle, radius in ends]
    return tuple(sorted(root for root in roots if Root.of(Fraction(1)) < root))


def _roots(polynomial: fmpq_poly, every: bool = True) -> set[Root]:
    """Return the roots above 1 of a polynomial that is not 0; all, or those of odd order."""
    factors = polynomial.numer().factor()[1]
    lines = [tuple(map(int, f.coeffs())) for f, power in factors if every or power % 2]
    return {root for line in lines for root in roots_above_one(line)}


def sum_text(coefficients: Sequence[int]) -> str:
    """Return a polynomial in r as text: 2 r^2 - 1, or 8 - r where the highest power is negative."""
    words: list[str] = []
    order = list(enumerate(coefficients))
    for power, a in order if coefficients and coefficients[-1] < 0 else reversed(order):
        if a:
            power_text = "" if power == 0 else "r" if power == 1 else f"r^{power}"
            size = "" if abs(a) == 1 and power_text else str(abs(a))
            sign = ("-" if a < 0 else "") if not words else (" - " if a < 0 else " + ")
            words.append(sign + " ".join(piece for piece in (size, power_text) if piece))
    return "".join(words) or "0"


def product_text(polynomial: fmpz_poly) -> str:
    """Return a polynomial in r as text: a product of irreducible ones, or a sum if irreducible."""
    constant, factors = polynomial.factor() if polynomial.degree() > 0 else (polynomial[0], [])
    coefficients = [int(a) for a in polynomial.coeffs()]
    if not factors or (abs(constant) == 1 and len(factors) == 1 and factors[0][1] == 1):
        return sum_text(coefficients)
    words = [] if abs(constant) == 1 else [str(abs(int(constant)))]
    negative = constant < 0
    for factor, power in sorted(factors, key=lambda pair: (pair[0].degree(), str(pair[0]))):
        terms = [int(a) for a in factor.coeffs()]
        if negative and power % 2 and len(terms) > 2 - (terms[0] != 0):
            terms, negative = [-a for a in terms], False
        text = sum_text(terms)
        text = text if text == "r" else f"({text})"
        words.append(text if power == 1 else f"{text}^{power}")
    return ("-" if negative else "") + " ".join(words)


@dataclass(frozen=True)
class Ratio:
    """A rational function of r in lowest terms.

    Attributes:
        over: integer coefficients of the numerator, the constant first.
        under: those of the denominator; the leading one is positive.
    """

    over: tuple[int, ...]
    under: tuple[int, ...] = (1,)

    @classmethod
    def of(cls, over: fmpq_poly, under: fmpq_poly) -> Ratio:
        """Return a quotient in lowest terms."""
        common = over.gcd(under)
        over, under = over // common, under // common
        # (over.p / over.q) / (under.p / under.q), in integers without a common factor.
        sides = over.numer() * under.denom(), under.numer() * over.denom()
        shared = math.gcd(*(int(side.content()) for side in sides))
        shared = -shared if sides[1].leading_coefficient() < 0 else shared
        return cls(*(tuple(int(a) // shared for a in side.coeffs()) for side in sides))

    def __call__(self, r: Fraction) -> Fraction:
        """Return the value at a rational r, exactly."""
        at = rational(r)
        return fraction(fmpq_poly(list(self.over))(at) / fmpq_poly(list(self.under))(at))

    def __str__(self) -> str:
        over, under = (product_text(fmpz_poly(list(side))) for side in (self.over, self.under))
        if self.under == (1,):
            return over
        # Bracket what binds less tightly than the quotient.
        return f"{_enclosed(over, '+-')}/{_enclosed(under, '+- ')}"


def _enclosed(text: str, signs: str) -> str:
    """Return a text, in brackets if one of these signs occurs outside all brackets."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and at and character in signs:
            return f"({text})"
    return text


@dataclass(frozen=True, repr=False)
class Piece:
    """The optimum on an interval of r = e^epsilon.

    Attributes:
        value: the optimum as a function of r.
        low: lower end of the interval.
        high: upper end; None if there is none.
        status: "proved"; "fitted" if the coefficients of the rows were checked to be polynomials in
            r at some values of r only.
        parts: subintervals on which the optimal point has one formula, as (upper end, formula by
            variable); the last end is ``high``.
    """

    value: Ratio
    low: Root
    high: Root | None
    status: str
    parts: tuple[tuple[Root | None, Mapping[verify.Variable, Ratio]], ...]

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low} <= r" + ("" if self.high is None else f" <= {self.high}")

    def __repr__(self) -> str:
        return f"Piece({self.value} for {self.interval}, {self.status})"


@dataclass(frozen=True, repr=False)
class ClosedForm:
    """The optimum of a program as a function of r = e^epsilon.

    Call it with r: a fraction or integer gives a fraction, a float a float.

    Attributes:
        kind: of the setting.
        setting: its parameters as plain values; the epsilon is ignored.
        pieces: in order of r; adjacent ones have different formulas.
        ends: optimum at the rational ends of pieces, each solved on its own.
    """

    kind: str
    setting: Json
    pieces: tuple[Piece, ...]
    ends: Mapping[Fraction, Fraction]

    @property
    def breaks(self) -> tuple[Root, ...]:
        """The values of r at which the formula changes."""
        return tuple(piece.low for piece in self.pieces[1:])

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The values of epsilon at which the formula changes, in nats."""
        return tuple(math.log(float(root)) for root in self.breaks)

    def piece(self, r: Rational | float) -> Piece:
        """Return the piece that contains r.

        Raises:
            ParameterError: if r is below 1.
        """
        at = Root.of(_exact(r))
        return next(p for p in reversed(self.pieces) if not at < p.low)

    @overload
    def __call__(self, r: Rational | int) -> Fraction: ...  # pyright: ignore[reportOverlappingOverload]

    @overload
    def __call__(self, r: float) -> float: ...

    def __call__(self, r: Rational | float) -> Fraction | float:
        """Return the optimum at r = e^epsilon, at least 1."""
        exact = _exact(r)
        at_end = self.ends.get(exact)
        value = self.piece(exact).value(exact) if at_end is None else at_end
        return float(value) if isinstance(r, float) else value

    def point(self, r: Rational | int) -> dict[verify.Variable, Fraction]:
        """Return an optimal point at a rational r of at least 1, by variable, without zeros."""
        exact = _exact(r)
        at = Root.of(exact)
        segments = self.piece(exact).parts
        formulas = next(segment for end, segment in segments if end is None or not end < at)
        point = {variable: formula(exact) for variable, formula in formulas.items()}
        return {variable: value for variable, value in point.items() if value}

    def __str__(self) -> str:
        return "\n".join(f"{p.value}    for {p.interval} ({p.status})" for p in self.pieces)

    def __repr__(self) -> str:
        shortest = "; ".join(f"{piece.value} for {piece.interval}" for piece in self.pieces)
        return brief(self, kind=self.kind, pieces=len(self.pieces), value=shortest)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the optimum over epsilon, with a mark where the formula changes.

        Args:
            ax: a new figure if None.
        """
        # The grid ends beyond the last break, by half of that break's epsilon.
        axes, last = new_axes(ax), 1.5 * max([*self.epsilons, 1.0])
        grid = np.linspace(0.0, last, 101).tolist()
        axes.plot(grid, [self(math.exp(epsilon)) for epsilon in grid])
        for epsilon in self.epsilons:
            axes.axvline(epsilon, linestyle=":", color="0.6", linewidth=0.8)
        axes.set_xlabel("epsilon")
        axes.set_ylabel("optimum")
        return axes


def _exact(r: object) -> Fraction:
    if isinstance(r, Rational | float) and not isinstance(r, bool):
        exact = Fraction(r) if math.isfinite(r) else Fraction(0)
        if exact >= 1:
            return exact
    raise ParameterError(f"r is {shown(r)}; it must be at least 1.")


class ParametricProgram:
    """The programs of a setting at all r: their rows are polynomials in r."""

    def __init__(self, setting: Setting) -> None:
        self.kind, self.plain = kind, plain = plain_setting(setting)
        first = written(displayed(kind, plain, 1 + _SHARES[0]), _MOST_COLUMNS, _MOST_ROWS)
        self.names, self.pmfs = first.names, len(first.program.pmfs)
        self.variables = list(first.variables)
        self.status = "proved" if kind in _PROVED else "fitted"
        forms = [(0, 0)] * self.pmfs + [_degrees(kind, plain, name) for name in self.names]
        self.powers, self.degrees = [n for n, _ in forms], [d for _, d in forms]
        self.first, self._at = Exact.of(first), dict[Fraction, Exact]()

    def at(self, r: Fraction) -> Exact:
        """Return the exact program at a rational r, with the rows of `dpopt.verify`."""
        if r not in self._at:
            self._at[r] = Exact.of(Written(displayed(self.kind, self.plain, r), self.names))
        exact = self._at[r]
        if exact.costs != self.first.costs or exact.limits != self.first.limits:
            raise ParameterError(
                f"setting is {shown(self.plain)}; only its rows may depend on e^epsilon."
            )
        return exact

    def polynomial(self, r: Fraction) -> Exact:
        """Return the program with each row times (1 + r)^n, what makes it polynomial in r."""
        exact, scales = self.at(r), [rational(1 + r) ** n for n in self.powers]
        rows = [
            ({j: a * scale for j, a in terms.items()}, limit * scale, equality)
            for (terms, limit, equality), scale in zip(exact.rows, scales, strict=True)
        ]
        return Exact(exact.written, rows)

    def interpolated(
        self, values: Callable[[Fraction], list[fmpq] | None], degree: int
    ) -> list[fmpq_poly]:
        """Return polynomials of at most a degree from their values at r = 2, 3, ...

        Values that are None are left out; three more r check each polynomial.
        """
        samples, rows, r = list[Fraction](), list[list[fmpq]](), Fraction(1)
        while len(samples) < degree + 4:
            r += 1
            row = values(r)
            if row is not None:
                samples.append(r)
                rows.append(row)
        count = degree + 1
        # The inverse Vandermonde matrix: from values at the samples to coefficients.
        powers = fmpq_mat([[rational(r) ** j for j in range(count)] for r in samples[:count]])
        coefficients = powers.solve(fmpq_mat(rows[:count])).transpose().tolist()
        polynomials = [fmpq_poly(column) for column in coefficients]
        for r, row in zip(samples[count:], rows[count:], strict=True):
            if any(p(rational(r)) != v for p, v in zip(polynomials, row, strict=True)):
                raise ParameterError(
                    f"setting is {shown(self.plain)}; its rows must be polynomials in e^epsilon of "
                    "a known degree."
                )
        return polynomials

    def piece(self, vertex: Vertex, r0: Fraction) -> Piece | None:
        """Return the piece of a basis that is optimal at r0; None if r0 ends its interval.

        By Cramer's rule the determinant, and its products with the point, slacks, multipliers and
        reduced costs, are polynomials in r, of degree at most the sum over the tight rows and one.
        """
        basis, size = vertex.basis, len(self.variables)

        def values(r: Fraction) -> list[fmpq] | None:
            at = self.polynomial(r).vertex(basis)
            if at is None:
                return None
            return [at.determinant, *(at.determinant * value for value in (*at.point, *at.signs))]

        degree = sum(self.degrees[i] for i in basis.tight) + max(self.degrees, default=0)
        determinant, *others = self.interpolated(values, degree)
        point, ends = others[:size], _ends(others[size:], determinant, r0)
        if ends is None:
            return None
        costs = zip(vertex.exact.costs, point, strict=True)
        value = sum((cost * p for cost, p in costs), fmpq_poly([0]))
        if vertex.exact.written.program.maximise:
            value = -value
        formulas = {
            v: Ratio.of(p, determinant)
            for v, p in zip(self.variables, point, strict=True)
            if p != 0
        }
        low, high = ends
        return Piece(Ratio.of(value, determinant), low, high, self.status, ((high, formulas),))


def _ends(
    nonnegative: Iterable[fmpq_poly], under: fmpq_poly, r0: Fraction
) -> tuple[Root, Root | None] | None:
    """Return the nearest ends of the interval of r >= 1 around r0 on which quotients are positive.

    Their numerators are given, and one denominator. An end is a root of odd order, or a pole; the
    result is None if a quotient is not positive at r0, or r0 is an end itself.
    """
    at, ends = rational(r0), set[Root]()
    for p in {str(p): p for p in nonnegative if p != 0}.values():
        if p(at) * under(at) <= 0:
            return None
        common = p.gcd(under)
        ends |= _roots(p // common, every=False) | _roots(under // common)
    start = Root.of(r0)
    if any(root.rational == r0 for root in ends):
        return None
    low, high = ([root for root in ends if (root < start) is below] for below in (True, False))
    return max(low, default=Root.of(Fraction(1))), min(high, default=None)


def closed_form(setting: Setting) -> ClosedForm:
    """Return the optimum of a setting's program as a function of r = e^epsilon.

    The program is the one that `dpopt.verify` writes, for all r from 1 on at once, whatever the
    setting's epsilon. In a majority of voters r is e^epsilon of one voter and the target is
    r^allowance, so the allowance has to be an integer.

    Args:
        setting: of a kind that `dpopt.verify` supports, with at most 400 variables and 2,000 rows,
            all polynomials in r. Floats are the binary fractions that they are, and a prior is
            used as it was scaled to sum 1: 0.3 is not 3/10, and leads to formulas with many
            digits; 0.25 is 1/4.

    Returns:
        The function, proved in the interior of each piece and at its rational ends.

    Raises:
        ParameterError: if the setting is not supported.
        SolverError: if no optimal basis was found in a gap, or there are more than 400 pieces.
    """
    program = ParametricProgram(setting)
    pieces: list[Piece] = []
    # Adjacent intervals with the same formula are one piece.
    for piece in _pieces(program):
        joined = pieces and pieces[-1].value == piece.value
        last = pieces.pop() if joined else replace(piece, parts=())
        pieces.append(replace(piece, low=last.low, parts=(*last.parts, *piece.parts)))
    starts = [piece.low.rational for piece in pieces]
    ends = {r: exact_optimum(setting, r).value for r in starts if r is not None}
    return ClosedForm(program.kind, program.plain, tuple(pieces), ends)


def private_where(
    setting: Setting, point: Mapping[verify.Variable, Ratio]
) -> tuple[tuple[Root, Root | None], ...]:
    """Return all r = e^epsilon at which a rule, given by formulas, satisfies the rows of a program.

    For published rules whose probabilities are rational functions of r, such as randomised response
    or a recursion for q_m. Each row's slack is a rational function of r, too, which changes its
    sign at roots and poles only.

    Args:
        setting: as for `closed_form`.
        point: formulas by variable of its program, such as ``{("q", 0): Ratio((2,), (-5, 7))}`` for
            q_0 = 2 / (7 r - 5); variables that it lacks are 0.

    Returns:
        Intervals (low, high) in order; high is None if there is no end. Whether single r between
        intervals, and ends that are poles, are included is not decided.

    Raises:
        ParameterError: if the setting is not supported, a variable is unknown, or a value is not a
            `Ratio`.
    """
    program = ParametricProgram(setting)
    if not isinstance(point, Mapping) or not all(
        variable in program.variables and isinstance(formula, Ratio) and any(formula.under)
        for variable, formula in point.items()
    ):
        raise ParameterError(
            f"point is {shown(point)}; it must have a Ratio for each of its variables, which must "
            "be among those of the program."
        )
    formulas = [point.get(v, Ratio((0,))) for v in program.variables]
    sides = [(fmpq_poly(list(p.over)), fmpq_poly(list(p.under))) for p in formulas]
    common = fmpq_poly([1])
    for _, under in sides:
        common *= under // common.gcd(under)

    def values(r: Fraction) -> list[fmpq] | None:
        times = common(rational(r))
        if times == 0:
            return None
        point = [rational(p(r)) for p in formulas]
        slacks = program.polynomial(r).slacks(point, range(len(formulas)))
        return [times * slack for slack in slacks]

    highest = max(
        [common.degree(), *((over * (common // under)).degree() for over, under in sides)]
    )
    slacks = program.interpolated(values, highest + max(program.degrees, default=0))
    ends = {
        root for polynomial in (*slacks, common) if polynomial != 0 for root in _roots(polynomial)
    }
    starts = [Root.of(Fraction(1)), *sorted(ends)]
    intervals: list[tuple[Root, Root | None]] = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        at = rational(_between(start, end, _SHARES[0]))
        if all(slack(at) * common(at) >= 0 for slack in slacks):
            joined = intervals.pop()[0] if intervals and intervals[-1][1] == start else start
            intervals.append((joined, end))
    return tuple(intervals)


def _pieces(program: ParametricProgram) -> list[Piece]:
    """Return pieces that partition all r >= 1, in order, each of one basis."""
    gaps: list[tuple[Root, Root | None]] = [(Root.of(Fraction(1)), None)]
    pieces: list[Piece] = []
    while gaps:
        gap_low, gap_high = gaps.pop()
        if len(pieces) >= _MOST_PIECES:
            raise SolverError(f"there are more than {_MOST_PIECES} pieces.", "iteration_limit")
        piece = _optimal_piece(program, gap_low, gap_high)
        low, high = max(gap_low, piece.low), piece.high
        if gap_high is not None and (high is None or gap_high < high):
            high = gap_high
        ((_, formulas),) = piece.parts
        pieces.append(replace(piece, low=low, high=high, parts=((high, formulas),)))
        if low != gap_low:
            gaps.append((gap_low, low))
        if high is not None and high != gap_high:
            gaps.append((high, gap_high))
    return sorted(pieces, key=lambda piece: piece.low)


def _optimal_piece(program: ParametricProgram, low: Root, high: Root | None) -> Piece:
    """Return the piece of a basis that is optimal at some r between two ends."""
    reason: DpoptError | None = None
    for share in _SHARES:
        r0 = _between(low, high, share)
        try:
            piece = program.piece(program.at(r0).optimum(), r0)
        except SolverError as error:
            reason = error
            continue
        if piece is not None:
            return piece
    where = f"{low}" if high is None else f"{low} and {high}"
    raise SolverError(f"no optimal basis was found beyond or between {where}.", "numerical") from (
        reason
    )


def _between(low: Root, high: Root | None, share: Fraction) -> Fraction:
    """Return a rational of few digits strictly between two numbers."""
    if high is None:
        return math.ceil(low.within(Fraction(1, 4))[1]) + 1 + share
    width = Fraction(1, 2)
    # Refine both algebraic numbers until rationals a < b separate them.
    while (a := low.within(width)[1]) >= (b := high.within(width)[0]):
        width /= 16
    aim = a + share * (b - a)
    return aim.limit_denominator(math.ceil(4096 / min(b - a, Fraction(1))))
