"""How private a database is: delta(x), of one or of all, and the worst of them (Definition 2)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Matrix, Numbers, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Problem
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histogram,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.shape import Answer, Question, design
from dpopt.smoothed import sampling
from dpopt.smoothed.bounds import log_exposure
from dpopt.smoothed.mechanisms import (
    AnonymousMechanism,
    Mechanism,
    SamplingHistogram,
    as_anonymous,
    plain_mechanism,
    read_mechanism,
    settle,
)
from dpopt.smoothed.program import LARGEST_PROGRAM, gains_of, sticks_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")
LN10 = math.log(10.0)
LARGEST_EPSILON = 700.0
_LARGEST_LISTED = 10**7
_LOG_TINY = -745.2
_HELD_ENTRIES = 1 << 24
_LARGEST_OUTPUTS = 10**7
_LARGEST_WORK = 10**11

Divergence = Callable[[Matrix, Matrix], Vector]
"""Of the laws in the rows of two arrays, at least 0."""


def finite(value: float) -> float | None:
    """Return the value for JSON: None if it is not finite (log10 of a delta that is 0)."""
    return value if math.isfinite(value) else None


def log_or_none(value: float) -> float:
    """Return the logarithm of what a solver found, -inf if that is 0 or below."""
    return math.log(value) if value > 0.0 else -math.inf


class OfMechanism:
    """What questions about an anonymous mechanism share; each declares the fields itself."""

    mechanism: Any
    records: Any
    categories: Any
    drawn: Any
    replacement: Any
    lost_rate: Any

    def _describe(self, *, records: int | None, categories: int | None) -> Mechanism:
        """Settle the mechanism's fields: a sample is told by numbers, all others by themselves.

        Returns:
            The mechanism, for the checks of the other fields.

        Raises:
            ParameterError: if they do not fit each other.
        """
        again = _checks.flag("replacement", self.replacement)
        drawn, rate = self.drawn, self.lost_rate
        if self.mechanism is None:
            if (drawn is None) == (rate is None):
                raise ParameterError("drawn and lost_rate: give one of them, or a mechanism.")
            if again and drawn is None:
                raise ParameterError("lost_rate is of a sample without replacement; give drawn.")
            m = 2 if categories is None else _checks.integer("categories", categories, 1)
            n = cast(int, records)
            if drawn is None:
                given: Mechanism = SamplingHistogram.of_lost_rate(n, str(rate), m)
            else:
                given = SamplingHistogram(n, drawn, m, again)
        else:
            given = read_mechanism(self.mechanism)
            if drawn is not None or rate is not None or again:
                raise ParameterError(
                    "mechanism is given; drawn, lost_rate and replacement are not of it."
                )
            for name, value in (("records", records), ("categories", categories)):
                if value is not None and _checks.integer(name, value, 1) != getattr(given, name):
                    raise ParameterError(
                        f"{name} is {_checks.shown(value)}; the mechanism has "
                        f"{getattr(given, name)}."
                    )
        sampled = isinstance(given, SamplingHistogram)
        settle(
            self,
            mechanism=None if sampled else given,
            records=given.records,
            drawn=given.drawn if sampled else None,
            replacement=sampled and given.replacement,
            lost_rate=None,
        )
        return given

    @cached_property
    def whole(self) -> Mechanism:
        """The mechanism asked about."""
        if self.mechanism is not None:
            return self.mechanism
        return SamplingHistogram(self.records, self.drawn, self.categories, self.replacement)

    def to_dict(self) -> Json:
        """Return the parameters as plain values; a mechanism as its own."""
        plain = super().to_dict()  # type: ignore[misc]
        if self.mechanism is not None:
            plain["mechanism"] = plain_mechanism(self.mechanism)
        return plain


class Asked(Generic[T]):
    """An attribute of an answer that is its setting's: read-only, and not a field."""

    def __init__(self, name: str, doc: str) -> None:
        self._of = attrgetter(f"setting.{name}")
        self.__doc__ = doc

    def __get__(self, answer: Any, owner: type | None = None) -> T:  # noqa: ANN401
        """Return the setting's attribute."""
        return cast(T, self if answer is None else self._of(answer))


class InLogarithms(ABC, Generic[T]):
    """An answer that is a delta, or a vector of them, kept as logarithms: they may underflow."""

    @property
    @abstractmethod
    def log_delta(self) -> T:
        """Natural logarithm of delta, -inf where it is 0."""

    @property
    def delta(self) -> T:
        """Return delta itself; 0 below 1e-308, where `log10_delta` still tells it."""
        return _like(self.log_delta, np.exp(cast(Any, self.log_delta)))

    @property
    def log10_delta(self) -> T:
        """Decimal logarithm of delta."""
        return _like(self.log_delta, cast(Any, self.log_delta) / LN10)


def _like(given: T, value: Any) -> T:  # noqa: ANN401
    """Return a value as what was given: a float, or a read-only vector."""
    return cast(T, frozen(value) if isinstance(given, np.ndarray) else float(value))


@dataclass(frozen=True, kw_only=True)
class Profile(OfMechanism, Question["PrivacyProfile"]):
    """How private each database x is: delta(x), the largest divergence from or to a neighbour.

        minimise    (1/N) sum_x d_x
        subject to  d_x >= sum_a s_k(a)                       (sides)
                    s_k(a) >= P_k(a) - e^epsilon P'_k(a)      (tests)
                    s >= 0

    over the N databases asked for: k runs over the neighbours of x in both directions, a over the
    outputs. Every d_x sinks to delta(x) on its own, so one program finds them all; its duals
    "tests" are the adversary's best tests. The closed form is a tail sum that starts where
    P(a) > e^epsilon P'(a).

    Solvers keep absolute tolerances: a value of about 1e-7 or less is told by the closed form only.

    Attributes:
        counts: the database, how many records of each category; None for every database.
        drawn: T, how many records are drawn and published as a histogram, from 1 to n.
        epsilon: from 0 to 700, in nats.
        lost_rate: share of the records that is lost, in [0, 1), instead of drawn.
        replacement: whether records are put back before the next draw.
        records: n, at least 1; the sum of the counts where these are given.
        categories: m, at least 2; the number of the counts where these are given.
        mechanism: any other anonymous mechanism, instead of drawn; as text the JSON object of its
            parameters.
    """

    kind: ClassVar[str] = "profile"

    counts: Numbers | None = None
    drawn: int | None = None
    epsilon: float
    lost_rate: float | None = None
    replacement: bool = False
    records: int | None = None
    categories: int | None = None
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        counts, n, m = self.counts, self.records, self.categories
        if counts is not None and self.mechanism is None:
            given = _checks.floats("counts", counts)
            if given.ndim != 1 or given.size < 2 or not np.all((given >= 0) & (given < 2**53)):
                raise ParameterError(
                    f"counts is {_checks.shown(counts)}; it must hold at least two integers of at "
                    "least 0, such as 60,40."
                )
            n, m = int(given.sum()) if n is None else n, given.size if m is None else m
        elif counts is None and self.mechanism is None and n is None:
            raise ParameterError("counts and records: give one of them, or a mechanism.")
        mechanism = self._describe(records=n, categories=m)
        if counts is not None:
            row = checked_histogram(counts, mechanism.records, mechanism.categories)
            settle(self, counts=tuple(row.tolist()))
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, LARGEST_EPSILON)
        settle(self, categories=mechanism.categories, epsilon=epsilon)

    @classmethod
    def example(cls) -> Self:
        """Return a database of five records, of which three are drawn."""
        return cls(counts=(3, 2), drawn=3, epsilon=0.5)

    @property
    def databases(self) -> IntMatrix:
        """The histograms asked for, shape (N, m), read-only."""
        if self.counts is None:
            return histograms(self.whole.records, self.whole.categories)
        row = np.array([self.counts], dtype=np.int64)
        row.setflags(write=False)
        return row

    def problem(self) -> Problem:
        """Return the program of the class's docstring.

        Raises:
            ParameterError: if it would have more than 2,000,000 rows "tests".
        """
        mechanism, asked = as_anonymous(self.whole), self.databases
        n, m = mechanism.records, mechanism.categories
        sides = len(asked) * m * (m - 1) * 2
        if sides * mechanism.outputs > LARGEST_PROGRAM:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: the "
                f"program would have {sides * mechanism.outputs:,} rows; at most "
                f"{LARGEST_PROGRAM:,} are written out. The closed form goes further."
            )
        # sides: (neighbour, direction) of every database, one after the other; owner: which.
        around = [neighbours(row) for row in asked]
        owner = np.repeat(np.arange(len(asked)), [2 * len(rows) for rows in around])
        own = np.repeat(asked, [len(rows) for rows in around], axis=0)
        first, second = mechanism.laws(own), mechanism.laws(np.concatenate(around))
        # gains: (neighbour, direction, output), flattened to (side, output) below.
        gains = np.stack(
            [gains_of(first, second, self.epsilon), gains_of(second, first, self.epsilon)], axis=1
        )
        return sticks_problem("privacy profile", gains.reshape(len(owner), -1), owner)

    def closed_form(self) -> Vector:
        """Return log delta of each database by sums of positive terms."""
        if self.counts is None:
            return frozen(log_profile(self.whole, self.epsilon))
        counts = np.array(self.counts, dtype=np.int64)
        return frozen(log_delta_at(self.whole, self.epsilon, counts))

    def point(self, solution: Solution) -> Vector:
        """Return d, shape (N,)."""
        return solution["delta"]

    def units(self, point: Vector) -> Vector:
        """Return log d, shape (N,)."""
        return frozen([log_or_none(value) for value in point.tolist()])

    def value(self, units: Vector) -> float:
        """Return the mean of delta over the databases asked for: delta itself for one."""
        # Most of a large profile is below the range of floats, where exp is slow and gives 0.
        deltas = np.exp(units, where=units > _LOG_TINY, out=np.zeros(units.size))
        return float(deltas.sum() / units.size)

    def plain(self, units: Vector) -> list[float | None]:
        """Return log delta of each database, None for the logarithm of 0."""
        return [finite(value) for value in units.tolist()]

    def draw(self, axes: Axes, units: Vector, label: str | None = None) -> None:
        """Draw log10 delta against the share of the first category."""
        share = self.databases[:, 0] / self.whole.records
        line = "-" if self.whole.categories == 2 and len(share) > 1 else "."
        axes.plot(share, units / LN10, line, label=label)
        axes.set_xlabel("share of the first category")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")

    def columns(self, units: Vector) -> Mapping[str, Sequence[Any]]:
        """Return the counts and log10 delta of each database."""
        rows = self.databases
        counts = {f"count_{c}": rows[:, c].tolist() for c in range(rows.shape[1])}
        return {**counts, "log10_delta": [finite(v) for v in (units / LN10).tolist()]}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivacyProfile(InLogarithms[Vector], Answer):
    """delta_{epsilon,M}(x) of one database or of all (Definition 2).

    Attributes:
        units: see `log_delta`.
    """

    mechanism = Asked[Mechanism]("whole", "M.")
    epsilon = Asked[float]("epsilon", "In nats.")

    @cached_property
    def histograms(self) -> IntMatrix:
        """One database in each row, shape (N, m), read-only."""
        return self.setting.databases

    @property
    def log_delta(self) -> Vector:
        """Natural logarithm of delta, shape (N,), -inf where delta is 0; read-only."""
        return self.units

    @property
    def method(self) -> str:
        """How it was computed."""
        if self.solution is not None:
            return "linear program"
        if not isinstance(self.mechanism, SamplingHistogram):
            return "every output"
        return "tail sums" if self.mechanism.categories == 2 else "pooled pairs of categories"

    @property
    def worst(self) -> int:
        """Row of the database with the largest delta."""
        return int(np.argmax(self.log_delta))

    def at(self, histogram: npt.ArrayLike) -> float:
        """Return log delta of one of the databases.

        Raises:
            ParameterError: if it is not among the rows.
        """
        rows = np.flatnonzero(np.all(self.histograms == np.asarray(histogram), axis=1))
        if rows.size == 0:
            raise ParameterError(
                f"histogram is {np.asarray(histogram).tolist()}; it must be one of the "
                f"{len(self.histograms)} databases of this profile."
            )
        return float(self.log_delta[rows[0]])

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        told = {"mechanism": self.mechanism, "epsilon": self.epsilon}
        if len(self.log_delta) == 1:
            told["log10_delta"] = float(self.log10_delta[0])
        return {**told, "databases": len(self.log_delta), "method": repr(self.method)}

    def facts(self) -> Json:
        """Return the method."""
        return {"method": self.method}

    def to_records(self) -> list[Json]:
        """Return one record for each database, for tables and frames."""
        columns = self.setting.columns(self.units)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


Profile.answer = PrivacyProfile


@dataclass(frozen=True, eq=False)
class WorstCase:
    """max over databases of delta_{epsilon,M}(x), which is DP's delta (Theorem 1).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        log_delta: natural logarithm of the maximum.
        histogram: a database that attains it.
        method: "closed form" or "every database".
    """

    mechanism: Mechanism
    epsilon: float
    log_delta: float
    histogram: tuple[int, ...]
    method: str

    @property
    def delta(self) -> float:
        """DP's delta."""
        return math.exp(self.log_delta)

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON."""
        return {
            "kind": "worst-case-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "log10_delta": finite(self.log_delta / LN10),
            "histogram": list(self.histogram),
            "method": self.method,
        }


def privacy_profile(
    mechanism: Mechanism, epsilon: float, histogram: npt.ArrayLike | None = None
) -> PrivacyProfile:
    """Return delta_{epsilon,M}(x) of one database, or of all of them.

    delta(x) = max(0, max over x' of d(x, x'), max over x' of d(x', x)), where x' replaces one
    record of x and d(x, x') = max over S of Pr[M(x) in S] - e^epsilon Pr[M(x') in S]. All
    mechanisms here are anonymous: a database is its histogram.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.
        histogram: counts of the m categories, shape (m,), summing to n; None for every database,
            in the order of `histograms`.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> import math
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> smoothed.privacy_profile(mechanism, math.log(2), [5, 5]).delta.round(6).tolist()
        [0.5]

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2.
    """
    given = read_mechanism(mechanism)
    return design(Profile(mechanism=given, epsilon=epsilon, counts=histogram))


def worst_case_delta(mechanism: Mechanism, epsilon: float) -> WorstCase:
    """Return DP's delta: the largest delta_{epsilon,M}(x) of any database (Theorem 1).

    For `SamplingHistogram` it is the chance r that the replaced record is drawn, at every epsilon:
    T / n, or 1 - (1 - 1/n)^T with replacement. It cannot be more: draw the same places from x and
    x', and the outputs differ only if the replaced place is among them, so Pr[M(x) in S] <=
    Pr[M(x') in S] + r. It is no less: where all records but one are equal, a database without that
    one never shows it.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> round(smoothed.worst_case_delta(mechanism, 1.0).delta, 6)
        0.9
    """
    mechanism = read_mechanism(mechanism)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    if isinstance(mechanism, SamplingHistogram):
        database = (0,) * (mechanism.categories - 1) + (mechanism.records,)
        return WorstCase(mechanism, epsilon, log_exposure(mechanism), database, "closed form")
    profile = privacy_profile(mechanism, epsilon)
    row = profile.worst
    database = tuple(profile.histograms[row].tolist())
    return WorstCase(mechanism, epsilon, float(profile.log_delta[row]), database, "every database")


def log_profile(mechanism: Mechanism, epsilon: float) -> Vector:
    """Return log delta of every database, in the order of `histograms`."""
    n, m = mechanism.records, mechanism.categories
    count = histogram_count(n, m)
    if count > _LARGEST_LISTED:
        raise ParameterError(
            f"records is {n} with {m} categories: {count:,} databases; at most "
            f"{_LARGEST_LISTED:,} can be listed. Give one histogram."
        )
    if not isinstance(mechanism, SamplingHistogram):
        return general_log_profile(mechanism, epsilon)
    return sampling.log_profile(mechanism, epsilon)


def log_delta_at(mechanism: Mechanism, epsilon: float, counts: IntVector) -> Vector:
    """Return log delta of one database, shape (1,)."""
    if not isinstance(mechanism, SamplingHistogram):
        return general_log_profile(mechanism, epsilon, counts)
    return sampling.log_delta_at(mechanism, epsilon, counts)


def general_log_profile(
    mechanism: SamplingHistogram | AnonymousMechanism,
    epsilon: float,
    histogram: npt.ArrayLike | None = None,
) -> Vector:
    """Return log delta of all databases, or of one, from the laws of the output.

    delta(x) = max over x' that replaces one record of x, and both orders, of
    sum over outputs of (P - e^epsilon P')_+.

    The terms are added pairwise, so that log delta is wrong by a few rounding errors and the
    relative error of the laws, times P(S) / delta with S the outputs where P > e^epsilon P'. That
    factor is large only where P is hardly above e^epsilon P' on all of S. Probabilities that
    underflow (below 1e-308) count as 0.

    Takes and returns, and refuses, what `general_epsilon` does, and epsilon from 0 to 700.
    """
    inner = as_anonymous(mechanism)
    factor = math.exp(_checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON))

    def stick(p: Matrix, q: Matrix) -> Vector:
        return np.maximum(0.0, p - factor * q).sum(axis=1)

    with np.errstate(divide="ignore"):
        return np.log(_largest(inner, stick, histogram))


def general_epsilon(
    mechanism: SamplingHistogram | AnonymousMechanism, histogram: npt.ArrayLike | None = None
) -> Vector:
    """Return the least epsilon with delta = 0, for all databases or one: pure DP.

    max over x' that replaces one record of x, and over outputs, of |ln(P / P')|; infinite where an
    output is possible for one database only. The maximum over databases is the epsilon of
    (epsilon, 0)-DP.

    Args:
        mechanism: the laws; a `SamplingHistogram` also works, slowly.
        histogram: counts of the m categories of one database, shape (m,); all if None.

    Returns:
        Shape (N,) in the order of `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there are too many outputs or databases.
    """

    def ratio(p: Matrix, q: Matrix) -> Vector:
        quotient = np.divide(p, q, out=np.where(p > 0.0, np.inf, 1.0), where=q > 0.0)
        return np.log(np.maximum(quotient.max(axis=1), 1.0))

    return _largest(as_anonymous(mechanism), ratio, histogram)


def _largest(
    mechanism: AnonymousMechanism, divergence: Divergence, histogram: npt.ArrayLike | None
) -> Vector:
    """Return the largest divergence between each database and its neighbours, in both orders."""
    if mechanism.outputs > _LARGEST_OUTPUTS:
        raise ParameterError(
            f"mechanism has {mechanism.outputs:,} outputs; the general profile takes at most "
            f"{_LARGEST_OUTPUTS:,}."
        )
    if histogram is None:
        n, m = mechanism.records, mechanism.categories
        pairs = histogram_count(n - 1, m) * m * (m - 1) // 2
        if pairs * mechanism.outputs > _LARGEST_WORK:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: "
                f"{pairs:,} pairs of neighbours, more than {_LARGEST_WORK:.0e} terms in all. Give "
                "one histogram."
            )
        table = histograms(mechanism.records, mechanism.categories)
        return _over_pairs(mechanism, divergence, table, replacements(table))
    one = checked_histogram(histogram, mechanism.records, mechanism.categories)
    table = np.concatenate([one[None], neighbours(one)])
    pairs = np.zeros((table.shape[0] - 1, 2), dtype=np.int64)
    pairs[:, 1] = np.arange(1, table.shape[0])
    return _over_pairs(mechanism, divergence, table, pairs)[:1]


def _over_pairs(
    mechanism: AnonymousMechanism, divergence: Divergence, table: IntMatrix, pairs: IntMatrix
) -> Vector:
    """Return the largest divergence at each row of the table over its pairs, laws in portions."""
    largest = np.zeros(table.shape[0])
    order = np.argsort(pairs[:, 0], kind="stable")
    rows = max(2, _HELD_ENTRIES // mechanism.outputs)
    step = order.size if table.shape[0] <= rows else max(1, rows // 2)
    for start in range(0, order.size, max(1, step)):
        # Rows of pairs are (database, neighbour); used[rows] gives their places in the table.
        portion = pairs[order[start : start + step]]
        used, rows_of = np.unique(portion, return_inverse=True)
        laws = mechanism.laws(table[used])
        pair_values = _both_orders(laws, rows_of.reshape(portion.shape), divergence)
        np.maximum.at(largest, portion[:, 0], pair_values)
        np.maximum.at(largest, portion[:, 1], pair_values)
    return largest


def _both_orders(laws: Matrix, pairs: IntMatrix, divergence: Divergence) -> Vector:
    """Return the larger divergence of each pair of rows, shape (pairs,)."""
    largest = np.empty(pairs.shape[0])
    step = max(1, (_HELD_ENTRIES >> 3) // laws.shape[1])
    for start in range(0, pairs.shape[0], step):
        block = slice(start, start + step)
        left, right = laws[pairs[block, 0]], laws[pairs[block, 1]]
        largest[block] = np.maximum(divergence(left, right), divergence(right, left))
    return largest
