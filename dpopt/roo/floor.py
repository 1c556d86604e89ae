"""The smooth floor: a category is drawn in proportion to its count, lifted to a smooth floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, exact_text, whole
from dpopt._types import IntVector, T, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, Problem
from dpopt.privacy.cost import Least, least_of_ratio, require_pure
from dpopt.roo.setting import CategorySetting
from dpopt.table import SortedHistograms

# Largest c*: number of weights of a floor.
_LONGEST = 2_000_000
# Fractional bits of a weight, besides log2(1 + s).
_GUARD_BITS = 62
# Largest c* of the program, and the largest growth whose reciprocal a solver resolves.
_LARGEST_PROGRAM, _LARGEST_GROWTH = 20_000, 1e6

Floor = tuple[int, tuple[int, ...]]
"""b, and the integer weights W(0)..W(c* - 1) over 2^b; from c* on, W(c) = c 2^b."""


@dataclass(frozen=True)
class SmoothFloor(CategorySetting):
    """One category y with probability proportional to w(c_y), its count with a smooth floor.

    For a growth s the floor lifts the counts as little as possible so that no weight grows faster:

        minimise   sum over c < c* of w(c) - c
        subject to w(c + 1) <= (1 + s) w(c)      "growth"
                   w(c) >= c,  w(c*) = c*,  c* = ceil(1 / s)

    One solution minimises every w(c): max over j >= c of j (1 + s)^(c - j). A category with count 0
    has positive weight; if every count is at least c*, the distribution is the empirical one.

    Privacy is not linear in (s, w), but `dpopt.verify.Floor` decides it exactly for each s. s is
    found by bisection: it has 40 significant bits, is private, and the next such number is not.
    That no much larger s is private is computed, not proved. No table of this growth lifts less
    than the bound, but other private samplers may be better. The program is written out for c* up
    to 20,000 and s up to 1e6.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        categories: k, at least 2.
        epsilon: in nats, above log(1 + 1/n) and at most 600.

    Example:
        >>> import dpopt
        >>> floor = dpopt.design(dpopt.SmoothFloor(6, 3, 1.0))
        >>> floor.output_distribution([6, 0, 0]).round(4).tolist()
        [0.8845, 0.0578, 0.0578]
    """

    kind: ClassVar[str] = "smooth-floor"
    summary: ClassVar[tuple[str, ...]] = ("rate",)

    records: int
    categories: int
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        least = math.log1p(1 / self.records)
        if self.epsilon <= least:
            raise ParameterError(
                f"epsilon is {digits(self.epsilon)}; a smooth floor for {self.records} records "
                f"is for epsilon above log(1 + 1/n) = {digits(least)}. Use RevealOrObscure."
            )

    @cached_property
    def growth(self) -> float:
        """A private growth s of 40 bits such that the next larger one is not private."""

        @cache
        def excess(growth: float) -> float:
            return float((_worst(self, floor_of(growth))[0] - self.ratio) / (self.ratio - 1))

        # At s = e^epsilon - 1 the ratio W(1) / W(0) alone is e^epsilon up to rounding.
        top = math.exp(self.epsilon) if self.epsilon > 30 else math.expm1(self.epsilon)
        unit = _unit_of(top)
        low = high = (math.floor(top / unit) + 2) * unit
        while excess(low) > 0:
            low, high = low / 2, low
        unit = _unit_of(high)
        units = round((brentq(excess, low, high, xtol=unit) if low < high else low) / unit)
        while excess(units * unit) > 0:
            units -= 1
        while excess((units + 1) * unit) <= 0:
            units += 1
        return units * unit

    def problem(self) -> Problem:
        """Return the program for the growth: variable "lift", rows "growth"."""
        growth = self.growth
        if growth > _LARGEST_GROWTH or growth < 1 / _LARGEST_PROGRAM:
            raise ParameterError(
                f"epsilon is {digits(self.epsilon)}, and 1 / s = {digits(1 / growth)} for it; the "
                f"program is written out for 1 / s from {digits(1 / _LARGEST_GROWTH)} to "
                f"{_LARGEST_PROGRAM}. The closed form has no such limit."
            )
        last = math.ceil(1 / Fraction(growth))
        counts = np.arange(last + 1.0)
        problem = Problem("smooth floor")
        # "lift" is w(c) - c: a solver's tolerance is small relative to it, even for large c.
        problem.add_variables("lift", last, lower=0.0, upper=counts[-1])
        # Row c: w(c + 1) - (1 + s) w(c) <= 0 for c < c*, where w(c*) = c* is a constant.
        shape = (last, last)
        grows = sp.eye_array(last, k=1) - (1 + growth) * sp.eye_array(last)
        problem.add_rows(
            "growth", {"lift": sp.csr_array(grows, shape=shape)}, upper=growth * counts[:-1] - 1
        )
        problem.minimise({"lift": 1.0})
        return problem

    def closed_form(self) -> Floor:
        """Return the table of the growth."""
        return floor_of(self.growth)

    def point(self, solution: Solution) -> Vector:
        """Return w(0), ..., w(c*)."""
        lift = solution["lift"]
        return np.append(lift + np.arange(lift.size), float(lift.size))

    def table(self, point: Vector) -> Floor:
        """Return a floor at or above a solution, whose growth has 40 bits."""
        slowest = min(float(np.min(point[1:] / point[:-1])) - 1, self.growth)
        unit = _unit_of(slowest)
        # A unit is about 2^-40 of the growth, less than what solvers differ by.
        return floor_of(math.floor(slowest / unit) * unit)

    def value(self, table: Floor) -> float:
        """Return the sum of w(c) - c over c < c*."""
        bits, lifted = table
        last = len(lifted)
        return float(Fraction(sum(lifted) - ((last * (last - 1) // 2) << bits), 1 << bits))

    def judge(self, table: Floor) -> Certificate:
        """Return the exact proof of a table."""
        try:
            growth = verify.exp(self.epsilon)[0]
            verdict = _judged(self, self.checked(table), lambda floor: floor.decide(growth))
        except verify.Refused as refusal:
            if refusal.at is None:
                raise ParameterError(f"table is refused: {refusal}.") from None
            after, before = _ends(*refusal.at)
            excess = float(_worst(self, table)[0] / self.ratio - 1)
            raise NotPrivateError(
                f"the smooth floor is not {self.epsilon:g}-DP: for counts {after} category 0 is "
                f"{1 + excess:.6g} e^epsilon times as likely as for {before}.",
                inputs=(before, after),
                output="category 0",
                excess=excess,
            ) from None
        return Certificate(
            claim="the smooth-floor sampler is private for all neighbouring data sets",
            guarantee=self.guarantee,
            constraints=verdict.rows,
            slack=Fraction(verdict.slack),
            tightest=f"a category whose count goes from {verdict.at[0]} to {verdict.at[0] + 1}",
        )

    def _proof_size(self, table: Floor) -> int:
        """Return about the number of rows: one for each weight."""
        return len(table[1]) + 1

    def spent(self, table: Floor, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for delta = 0: the worst ratio is attained."""
        require_pure(self.kind, epsilon, delta)
        ratio, at, _ = _worst(self, table)
        return least_of_ratio(ratio, _ends(*at), (0,))

    def weights(self, table: Floor, counts: IntVector, categories: IntVector) -> list[int]:
        """Return the integer weight W(c) of each count."""
        del categories
        bits, lifted = table
        return [lifted[c] if c < len(lifted) else c << bits for c in counts.tolist()]

    def worst_case(self, table: Floor) -> float:
        """Return the largest total variation of K(x) from the empirical pmf, over all data x."""
        counts = SortedHistograms(self.records, self.categories).histograms
        values, low = np.arange(self.records + 1.0), _floats(table)[: self.records + 1]
        values[: low.size] = low
        weights = values[counts]
        short = counts / self.records - weights / weights.sum(axis=1, keepdims=True)
        return float(np.maximum(short, 0.0).sum(axis=1).max())

    def report(self, table: Floor) -> Mapping[str, Callable[[], Any]]:
        """Return W(0)..W(c* - 1) over 2^bits as floats, and how fast they grow.

        ``growth`` is s, with W(c + 1) <= (1 + s) W(c); ``rate`` the a of 1 + s = e^a, in nats; and
        ``worst_ratio`` the largest ratio of a category's probabilities under neighbours, exactly.
        """
        return {
            **super().report(table),
            "floor": lambda: frozen(_floats(table)),
            "growth": lambda: growth_of(table),
            "rate": lambda: math.log1p(growth_of(table)),
            "worst_ratio": lambda: _worst(self, table)[0],
        }

    def columns(self, table: Floor) -> Mapping[str, Sequence[Any]]:
        """Return count and weight up to c* - 1; from c* on the weight is the count."""
        return {"count": list(range(len(table[1]))), "weight": _floats(table).tolist()}

    def plain(self, table: Floor) -> list[Any]:
        """Return the bits and the integer weights for a file."""
        return [table[0], [exact_text(weight) for weight in table[1]]]

    def read(self, plain: Any) -> Floor:  # noqa: ANN401
        """Return the table of a file; see `checked`."""
        bits, lifted = plain
        return self.checked((bits, tuple(whole(weight) for weight in lifted)))

    def checked(self, table: object) -> Floor:
        """Return a table, checked in form."""
        if not isinstance(table, tuple) or len(table) != 2 or not isinstance(table[1], tuple):
            raise ParameterError("table must be a number of bits and a list of weights.")
        # Of a growth up to e^700.
        bits = _checks.integer("bits", table[0], 1, _GUARD_BITS + 1010)
        if set(map(type, table[1])) != {int} or min(table[1]) <= 0 or len(table[1]) > _LONGEST:
            raise ParameterError(f"table must hold 1 to {_LONGEST} whole weights above 0.")
        return bits, table[1]


def growth_of(table: Floor) -> float:
    """Return the growth s of a table: W(c*) / W(c* - 1) - 1, exact despite the rounding of W."""
    bits, lifted = table
    return float(Fraction(len(lifted) << bits, lifted[-1]) - 1)


def _floats(table: Floor) -> Vector:
    bits, weights = table
    return np.array([weight / (1 << bits) for weight in weights])


def _ends(c: int, d: int) -> tuple[str, str]:
    """Describe two neighbours: after a record moved from count d to count c, and before."""
    return f"category 0: {c + 1}, category 1: {d - 1}", f"category 0: {c}, category 1: {d}"


def floor_of(growth: float) -> Floor:
    """Return W(0)..W(c* - 1) for s > 0: W(c) = W(c + 1) / (1 + s), each rounded up."""
    first = math.ceil(1 / Fraction(growth)) if growth > 0.5 / _LONGEST else _LONGEST + 1
    if first > _LONGEST:
        raise ParameterError(
            f"the floor's rate is {math.log1p(growth):g}, so it would reach to counts above "
            f"{_LONGEST}; take a larger epsilon, or RevealOrObscure."
        )
    bits = _GUARD_BITS + math.ceil(math.log2(1 + growth))
    below, above = (1 + Fraction(growth)).as_integer_ratio()
    weight, table = first << bits, list[int]()
    for _ in range(first):
        weight = -(-weight * above // below)
        table.append(weight)
    return bits, tuple(reversed(table))


def _unit_of(growth: float) -> float:
    """Return the unit in the last of the 40 significant bits of a growth."""
    return 2.0 ** (math.frexp(growth)[1] - 40)


@lru_cache(maxsize=2)
def _worst(setting: SmoothFloor, table: Floor) -> tuple[Fraction, tuple[int, int], int]:
    """Return the largest ratio of a category's probabilities; see `dpopt.verify.Floor`."""
    return _judged(setting, table, verify.Floor.worst)


def _judged(setting: SmoothFloor, table: Floor, judge: Callable[[verify.Floor], T]) -> T:
    (n, k), (bits, weights) = (setting.records, setting.categories), table
    try:
        return judge(verify.Floor(n, k, list(weights), 1 << bits))
    except verify.Malformed:
        raise ParameterError(
            f"epsilon is {digits(setting.epsilon)} for n = {n} and k = {k}; the floor takes more "
            f"than {verify.MOST:,} inequalities to decide: use a larger epsilon, or "
            "RevealOrObscure."
        ) from None
