"""The smooth floor: each letter in proportion to its count, with a smooth floor under it.

The setting and its program, the table in closed form, and the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._figure import LIMIT
from dpopt._numbers import digits
from dpopt._types import IntVector, Json, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, Problem
from dpopt.privacy.least import Least, require_pure
from dpopt.roo.proof import FloorAudit, audit_floor, least_of_floor, prove_floor
from dpopt.roo.sampler import Below, LetterSampler, draw_record
from dpopt.roo.setting import LONGEST_FLOOR, RooSetting
from dpopt.shape import Design, Setting, design

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GUARD_BITS = 62
_GROWTH_BITS = 40
_LARGEST_RATE = 700.0
# Of the program: variables, and a growth whose reciprocal a solver still sees.
_LARGEST_PROGRAM, _LARGEST_GROWTH = 20_000, 1e6
# Words that sums over all letters of an alphabet do not overflow.
_WORD, _MASK = 32, (1 << 32) - 1

Floor = tuple[int, tuple[int, ...]]
"""b, and W(0)..W(c* - 1) as integers over 2^b; from c* on, W(c) = c 2^b."""


@dataclass(frozen=True)
class SmoothFloor(RooSetting, Setting["SmoothFloorSampler"]):
    """One letter y with probability w(c_y) over the sum of w: counts, with a smooth floor.

    For a growth s the floor lifts the counts by the least that lets no weight grow faster:

        minimise   sum over c < c* of w(c) - c
        subject to w(c + 1) <= (1 + s) w(c)      "growth"
                   w(c) >= c,  w(c*) = c*,  c* = ceil(1 / s)

    Every w(c) is least at once: max over j >= c of j (1 + s)^(c - j). A letter with count 0 keeps
    weight, and where every count is at least c* the law is the empirical one.

    Whether a floor is private is not linear in (s, w), but it is decided exactly for each s
    (`dpopt.roo.proof.audit_floor`), and s, found by bisection, is a number of 40 significant bits
    that is private while the next such number is not, whoever solves the program. That no much
    larger one is private is computed, not proved. The value is the objective, and its bound is for
    the growth that the table has: it says that no table of this growth lifts less, not that no
    private sampler is better. The program is written out for c* up to 20,000 and s up to 1e6.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        letters: k, at least 2.
        epsilon: in nats, above log(1 + 1/n) and at most 600.
        rate: a = log(1 + s) in (0, 700], to look at another: it may not be private; None for the
            largest private one that the search finds.
    """

    kind: ClassVar[str] = "smooth-floor"

    records: int
    letters: int
    epsilon: float
    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        least = math.log1p(1 / self.records)
        if self.epsilon <= least:
            raise ParameterError(
                f"epsilon is {digits(self.epsilon)}; a smooth floor for {self.records} records "
                f"is for epsilon above log(1 + 1/n) = {digits(least)}. Use roo.min_count (dpopt "
                "roo)."
            )
        if self.rate is not None:
            rate = _checks.real("rate", self.rate, 0.0, _LARGEST_RATE, open_lower=True)
            object.__setattr__(self, "rate", rate)

    @classmethod
    def example(cls) -> Self:
        """Return twelve records of three letters."""
        return cls(records=12, letters=3, epsilon=0.3)

    @classmethod
    def example_data(cls) -> object:
        """Return twelve records."""
        return [0] * 8 + [1] * 4

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return twelve records, and one of them changed."""
        return [([0] * a + [1] * (12 - a), [0] * a + [1] * (11 - a) + [2]) for a in range(12)]

    @property
    def may_fail(self) -> bool:
        """Whether the rate is the caller's."""
        return self.rate is not None

    @property
    def growth(self) -> float:
        """S = e^a - 1, a double taken exactly: that of the rate, or the private one found."""
        if self.rate is not None:
            return math.expm1(self.rate)
        return _largest_growth(RooSetting(self.records, self.letters, self.epsilon))

    def problem(self) -> Problem:
        """Return the program for the growth: variable "w", rows "growth".

        Raises:
            ParameterError: if c* is above 20,000 or s above 1e6.
        """
        growth = self.growth
        if growth > _LARGEST_GROWTH or growth < 1 / _LARGEST_PROGRAM:
            raise ParameterError(
                f"epsilon is {digits(self.epsilon)}, and 1 / s = {digits(1 / growth)} for it; the "
                f"program is written out for 1 / s from {digits(1 / _LARGEST_GROWTH)} to "
                f"{_LARGEST_PROGRAM}. The closed form has no such limit."
            )
        last = _reach(growth)
        counts = np.arange(last + 1.0)
        problem = Problem("smooth floor")
        # "lift" is w(c) - c, of which a solver's tolerance is a small part even where c is large.
        problem.add_variables("lift", last, lower=0.0, upper=counts[-1])
        # Row c: w(c + 1) - (1 + s) w(c) <= 0 over c < c*, where w(c*) = c* is no variable.
        shape = (last, last)
        grows = sp.eye_array(last, k=1) - (1 + growth) * sp.eye_array(last)
        problem.add_rows(
            "growth", {"lift": sp.csr_array(grows, shape=shape)}, upper=growth * counts[:-1] - 1
        )
        problem.minimise({"lift": 1.0})
        return problem

    def closed_form(self) -> Floor:
        """Return the table of the growth, from the top down."""
        return _floor_of(self.growth)

    def point(self, solution: Solution) -> Vector:
        """Return w(0), ..., w(c*)."""
        lift = solution["lift"]
        return np.append(lift + np.arange(lift.size), float(lift.size))

    def units(self, point: Vector) -> Floor:
        """Return the least floor above a point whose growth has 40 bits.

        The slowest step of the point decides: the table of its growth, rounded down to 40 bits, is
        at or above the point everywhere, and rounded up itself.
        """
        slowest = min(float(np.min(point[1:] / point[:-1])) - 1, self.growth)
        unit = _unit_of(slowest)
        # A unit is 2^-40 of the growth: solvers agree to that much, and no more is lost here.
        return _floor_of(math.floor(slowest / unit) * unit)

    def value(self, units: Floor) -> float:
        """Return the sum of w(c) - c over c < c*."""
        bits, weights = units
        last = len(weights)
        return float(Fraction(sum(weights) - ((last * (last - 1) // 2) << bits), 1 << bits))

    def audit(self, units: Floor) -> FloorAudit:
        """Return what the proof's theorem gives for a table."""
        return _audited(RooSetting(self.records, self.letters, self.epsilon), units)

    def prove(self, units: Floor) -> Certificate:
        """Return the exact proof of a table.

        Raises:
            NotPrivateError: naming two neighbours, if it is not private.
        """
        return prove_floor(self, self.audit(units), math.log1p(growth_of(units)), units[0])

    def spent(self, units: Floor, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for delta = 0."""
        require_pure(self.kind, epsilon, delta)
        return least_of_floor(self.audit(units))

    def law(self, units: Floor, data: object) -> list[int]:
        """Return W(c_y) of each letter."""
        bits, weights = units
        counts = self.counted(data).tolist()
        return [weights[c] if c < len(weights) else c << bits for c in counts]

    def draw(self, axes: Axes, units: Floor, label: str | None = None) -> None:
        """Draw the weight w(c) against the count c, and c itself."""
        bits, weights = units
        last = min(len(weights) + max(2, len(weights) // 4), self.records)
        counts = np.arange(last + 1)
        lifted = [w / (1 << bits) for w in weights[: last + 1]]
        axes.plot(counts, counts, color=LIMIT, linestyle=":", label="the count itself")
        axes.plot(counts, [*lifted, *counts[len(lifted) :]], marker="o", clip_on=False, label=label)
        axes.set_xlabel("count of the letter, $c$")
        axes.set_ylabel("weight $w(c)$")
        axes.set_ylim(bottom=0.0)

    def columns(self, units: Floor) -> Mapping[str, Sequence[Any]]:
        """Return count and weight; from the first count that is left out, weight is count."""
        bits, weights = units
        floats = [weight / (1 << bits) for weight in weights]
        return {"count": list(range(len(weights))), "weight": floats}

    def read(self, plain: Any) -> Floor:  # noqa: ANN401
        """Return the integers of a file, checked in form.

        Raises:
            ParameterError: if they are not bits and 1 to 2e6 weights.
        """
        units = super().read(plain)
        if not isinstance(units, tuple) or len(units) != 2 or not isinstance(units[1], tuple):
            raise ParameterError("units must be a number of bits and a list of weights.")
        bits = _checks.integer("bits", units[0], 1, _most_bits())
        if not 1 <= len(units[1]) <= LONGEST_FLOOR or not all(
            isinstance(weight, int) and not isinstance(weight, bool) for weight in units[1]
        ):
            raise ParameterError(f"units must hold 1 to {LONGEST_FLOOR} whole weights.")
        return bits, units[1]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothFloorSampler(LetterSampler, Design):
    """One letter y with probability W(c_y) / sum of W; W is a table below c* and linear beyond.

    Attributes:
        setting: n, k and epsilon, and a rate that was asked for.
        units: bits, and W(0)..W(c* - 1) as integers over 2^bits; W(c) = c 2^bits from c* on.
        certificate: the proof that it is epsilon-DP; None if it is not.
        bound: on the objective of `SmoothFloor`; see `Design`.
    """

    setting: SmoothFloor

    @property
    def bits(self) -> int:
        """The weights are integers over 2^bits."""
        return self.units[0]

    @property
    def weights(self) -> tuple[int, ...]:
        """W(0)..W(c* - 1)."""
        return self.units[1]

    @property
    def growth(self) -> float:
        """s: how much faster than W(c) the next weight may be, W(c + 1) <= (1 + s) W(c)."""
        return growth_of(self.units)

    @property
    def rate(self) -> float:
        """The a of 1 + s = e^a, in nats."""
        return math.log1p(self.growth)

    @cached_property
    def floor(self) -> Vector:
        """The weights as floats, read-only."""
        return frozen([weight / (1 << self.bits) for weight in self.weights])

    @property
    def audit(self) -> FloorAudit:
        """What the theorem's inequalities give."""
        return self.setting.audit(self.units)

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return W(c_y) / sum of W for each letter, shape (k,)."""
        checked = self.fitting(counts)
        law = checked.astype(float)
        small = checked < len(self.weights)
        law[small] = self.floor[checked[small]]
        return frozen(law / law.sum())

    def _draw(self, counts: IntVector, below: Below) -> int:
        """Draw a record's letter, or one for what the floor lifts it by, W(c) - c 2^bits.

        Both are found, whichever is taken, and each is compared with every letter's place.
        """
        # Axis 0: words of 32 bits, highest first; axis 1: letters. The carries go up once all words
        # are summed.
        table = self._lifts
        sums = np.cumsum(table[:, np.minimum(counts, table.shape[1] - 1)], axis=1)
        for word in range(len(sums) - 1, 0, -1):
            sums[word - 1] += sums[word] >> _WORD
            sums[word] &= _MASK
        lifted = sum(int(top) << _WORD * place for place, top in enumerate(sums[::-1, -1]))
        drawn = below((self.setting.records << self.bits) + lifted)
        passed = np.count_nonzero(_at_most(sums, _words(drawn, len(sums))))
        record = draw_record(counts, lambda _: max(drawn - lifted, 0) >> self.bits)
        return (int(passed), record)[drawn >= lifted]

    @cached_property
    def _lifts(self) -> IntVector:
        """W(c) - c 2^bits as words, highest first, shape (words, c* + 1); 0 at c*."""
        lifts = [weight - (c << self.bits) for c, weight in enumerate(self.weights)]
        longest = max(lifts, default=0).bit_length()
        count = max(-(-longest // _WORD), -(-(self.bits + 22) // _WORD))
        whole = np.array([*lifts, 0], dtype=object)
        parts = [(whole >> _WORD * place) & _MASK for place in reversed(range(count))]
        return np.array(parts, dtype=np.int64)

    def facts(self) -> Json:
        """Return the growth and what the audit found."""
        audit = self.audit
        return {
            "rate": self.rate,
            "growth": self.growth,
            "worst_ratio": float(audit.worst_ratio),
            "rows": audit.rows,
        }

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "rate": self.rate}


SmoothFloor.answer = SmoothFloorSampler


def smooth_floor(
    records: int, letters: int, epsilon: float, *, rate: float | None = None
) -> SmoothFloorSampler:
    """Return the smooth-floor sampler with the largest rate a found to be epsilon-DP.

    s = e^a - 1 is taken from the floats of 40 significant bits: it is private, and the next such
    float is not, each decided by a theorem that is necessary as well as sufficient. That the ratio
    rises in s, so that no larger rate is private, is computed and not proved. Where n / (k - 1) is
    above 1 / a, e^epsilon is e^a (n + w(0)) / (n + w(0) e^a - 1), w = W / 2^bits.

    The time grows with 1 / a: seconds for 1e5, minutes for the most, 2e6.

    The parameters are the fields of the setting, see `SmoothFloor`; of another rate that is not
    private the sampler refuses to release. a = epsilon - log(1 + 1/n) would do as well.

    Raises:
        ParameterError: for a parameter out of range, or if 1 / a is above 2e6.

    Example:
        >>> from dpopt import roo
        >>> roo.smooth_floor(6, 3, 1.0).output_distribution([6, 0, 0]).round(4).tolist()
        [0.8845, 0.0578, 0.0578]
    """
    return design(SmoothFloor(records, letters, epsilon, rate))


def growth_of(units: Floor) -> float:
    """Return s of a table: W(c*) / W(c* - 1) - 1, which the rounding of W does not change."""
    bits, weights = units
    return float(Fraction(len(weights) << bits, weights[-1]) - 1) if weights[-1] else math.inf


def _reach(growth: float) -> int:
    """Return c* = ceil(1 / s).

    Raises:
        ParameterError: if it is above 2e6.
    """
    first = math.ceil(1 / Fraction(growth)) if growth > 0.5 / LONGEST_FLOOR else LONGEST_FLOOR + 1
    if first > LONGEST_FLOOR:
        raise ParameterError(
            f"the floor's rate is {math.log1p(growth):g}, so it would reach to counts above "
            f"{LONGEST_FLOOR}; take a larger epsilon, or min_count."
        )
    return first


def floor_weights(growth: float, bits: int) -> tuple[int, ...]:
    """Return W(0)..W(c* - 1) for s > 0, from the top down, each rounded up.

    Raises:
        ParameterError: if there are more than 2e6.
    """
    weight = _reach(growth) << bits
    step = 1 + Fraction(growth)
    above, below = step.denominator, step.numerator
    table = []
    for _ in range(weight >> bits):
        weight = -(-weight * above // below)
        table.append(weight)
    return tuple(reversed(table))


def _floor_of(growth: float) -> Floor:
    bits = _GUARD_BITS + math.ceil(math.log2(1 + growth))
    return bits, floor_weights(growth, bits)


def _most_bits() -> int:
    return _GUARD_BITS + math.ceil(_LARGEST_RATE / math.log(2))


def _unit_of(growth: float) -> float:
    """Return the last of the bits that a growth may have."""
    return 2.0 ** (math.frexp(growth)[1] - _GROWTH_BITS)


@lru_cache(maxsize=2)
def _audited(setting: RooSetting, units: Floor) -> FloorAudit:
    """Return the audit; kept, since search, proof and the sampler's facts all speak of it."""
    bits, weights = units
    return audit_floor(setting, weights, bits)


@lru_cache(maxsize=64)
def _largest_growth(setting: RooSetting) -> float:
    """Return the private growth of `_GROWTH_BITS` bits of which the next one is not private.

    At s = e^epsilon - 1 the ratio W(1) / W(0) alone is e^epsilon up to rounding.
    """
    excesses: dict[float, float] = {}

    def excess(growth: float) -> float:
        if growth not in excesses:
            ratio = _audited(setting, _floor_of(growth)).worst_ratio
            excesses[growth] = float((ratio - setting.ratio) / (setting.ratio - 1))
        return excesses[growth]

    top = math.exp(setting.epsilon) if setting.epsilon > 30 else math.expm1(setting.epsilon)
    unit = _unit_of(top)
    low = high = (math.floor(top / unit) + 2) * unit
    while excess(low) > 0:
        low, high = low / 2, low
    unit = _unit_of(high)
    rises, step = False, 0
    while (units := round((high - low) / unit)) > 1:
        # The secant leans over to the end that was not moved last, so that both close in.
        share = 0.5 if step % 4 == 3 else excess(low) / (excess(low) - excess(high))
        place = round(units * share) + (1 if rises else -1)
        middle = low + min(max(place, 1), units - 1) * unit
        rises, step = excess(middle) <= 0, step + 1
        low, high = (middle, high) if rises else (low, middle)
    return low


def _words(value: int, count: int) -> list[int]:
    """Return an integer as words, highest first; the highest keeps all that is left."""
    low = [(value >> _WORD * place) & _MASK for place in reversed(range(count - 1))]
    return [value >> _WORD * (count - 1), *low]


def _at_most(sums: IntVector, values: list[int]) -> npt.NDArray[np.bool_]:
    """Return sums <= value, word by word from the lowest, every word compared."""
    answer = sums[-1] <= values[-1]
    for word in range(len(values) - 2, -1, -1):
        answer = (sums[word] < values[word]) | ((sums[word] == values[word]) & answer)
    return answer
