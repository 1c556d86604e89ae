"""Real roots of polynomials over the rationals as exact numbers, and polynomials as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from flint import fmpq, fmpq_poly, fmpz_poly

from dpopt.proofs.simplex import fraction


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
        # Refinements by a factor of 4 before two roots count as impossible to separate.
        for _ in range(4_000):
            (a, b), (c, d) = self.within(width), other.within(width)
            if b < c or (b == c and (a < b or c < d)):
                return True
            if d < a or (d == a and (a < b or c < d)):
                return False
            width /= 4
        raise ArithmeticError("two different roots were not separated")  # pragma: no cover

    @property
    def polynomial(self) -> str:
        """The polynomial in r, as text."""
        return sum_text(self.coefficients)

    def __str__(self) -> str:
        exact = self.rational
        return f"{float(self):.6g}" if exact is None else str(exact)


def roots_above_one(polynomial: fmpz_poly) -> tuple[Root, ...]:
    """Return the roots above 1 of an irreducible polynomial, in order, in disjoint intervals."""
    return _roots(tuple(int(a) for a in polynomial.coeffs()))


@cache
def _roots(coefficients: tuple[int, ...]) -> tuple[Root, ...]:
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
    roots: list[Root] = []
    for ball in real:
        middle, radius = fraction(ball.mid().fmpq()), fraction(ball.rad().fmpq())
        roots.append(Root(coefficients, middle - radius, middle + radius))
    return tuple(sorted(root for root in roots if Root.of(Fraction(1)) < root))


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
