"""Anonymous mechanisms: the law of the output depends on the histogram of the records only.

`SamplingHistogram` holds numbers alone, since its divergences are known in closed form for up to
10^10 records; every other mechanism is an `AnonymousMechanism`, which lists the laws of its output.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import decimal_rational, exact_text
from dpopt._types import Json, Matrix, Vector, brief, frozen
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histograms,
    histogram_count,
    histograms,
    index_of,
    unit_sums,
)
from dpopt.prob.pmf import binomial_pmf

LARGEST_RECORDS = 10**10
LARGEST_ENTRIES = 50_000_000
_SUM_TOLERANCE = 1e-9


def settle(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass to their checked values."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


class AnonymousMechanism(ABC):
    """A mechanism that treats all records alike, given by the law of its output.

    Attributes:
        records: n, the same for all databases, and public.
        categories: m, the number of values that a record can take.
    """

    records: int
    categories: int

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs."""

    @abstractmethod
    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the law of the output for each database.

        Args:
            histograms: counts of the categories, shape (N, m), each row summing to n.

        Returns:
            Probabilities, shape (N, outputs), rows summing to 1 up to rounding.

        Raises:
            ParameterError: if a row is no histogram of n records over m categories.
        """

    @abstractmethod
    def to_dict(self) -> Json:
        """Return the parameters as plain values."""


@dataclass(frozen=True, eq=False)
class KernelMechanism(AnonymousMechanism):
    """Any anonymous mechanism, by its law over all histograms.

    Attributes:
        records: n, at least 1.
        categories: m, at least 2.
        kernel: Pr[output | histogram], shape (C(n + m - 1, m - 1), outputs), rows in the order of
            `histograms`, divided by their sums, which must be 1 to 1e-9; read-only.
        name: what `to_dict` calls it.
    """

    records: int
    categories: int
    kernel: Matrix
    name: str = "kernel"

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        n = _checks.integer("records", self.records, 1)
        m = _checks.integer("categories", self.categories, 2)
        wanted = histogram_count(n, m)
        rows = _checks.floats("kernel", self.kernel)
        if rows.ndim != 2 or rows.shape[0] != wanted or rows.shape[1] < 1:
            raise ParameterError(
                f"kernel has shape {rows.shape}; it must be ({wanted}, outputs), one row for each "
                "histogram."
            )
        if not np.all(np.isfinite(rows) & (rows >= 0)):
            raise ParameterError("kernel holds a value that is not finite or below 0.")
        sums = rows.sum(axis=1, keepdims=True)
        if np.any(np.abs(sums - 1.0) > _SUM_TOLERANCE):
            raise ParameterError("kernel has a row whose sum is not 1.")
        kernel = frozen(rows / unit_sums(sums, rows.shape[1]))
        settle(self, records=n, categories=m, kernel=kernel)

    @property
    def outputs(self) -> int:
        """Number of columns of the kernel."""
        return self.kernel.shape[1]

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return rows of the kernel; see `AnonymousMechanism.laws`."""
        rows = checked_histograms(histograms, self.records, self.categories)
        return self.kernel[index_of(rows)]

    def to_dict(self) -> Json:
        """Return the parameters and the kernel as plain values."""
        return {
            "mechanism": self.name,
            "records": self.records,
            "categories": self.categories,
            "kernel": self.kernel.tolist(),
        }


@dataclass(frozen=True)
class SamplingHistogram:
    """Draw T of the n records at random and publish how many of each category were drawn.

    Attributes:
        records: n, at least 1; the same for all databases, and public.
        drawn: T, from 1 to n; with replacement any T of at least 1.
        categories: m, at least 2: the number of values that a record can take.
        replacement: whether records are put back before the next draw (Theorem 5).

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Algorithm 2 and Appendix F.
    """

    records: int
    drawn: int
    categories: int = 2
    replacement: bool = False

    def __post_init__(self) -> None:
        records = _checks.integer("records", self.records, 1, LARGEST_RECORDS)
        again = _checks.flag("replacement", self.replacement)
        drawn = _checks.integer("drawn", self.drawn, 1, LARGEST_RECORDS if again else records)
        categories = _checks.integer("categories", self.categories, 2)
        settle(self, records=records, drawn=drawn, categories=categories, replacement=again)

    @classmethod
    def of_lost_rate(
        cls, records: int, lost_rate: float | str | Fraction, categories: int = 2
    ) -> SamplingHistogram:
        """Return the mechanism that loses a share r of the records: T = ceil((1 - r) n).

        Args:
            records: n.
            lost_rate: r, in [0, 1); a float is read as its shortest decimal, so that 0.002 of
                1000 records are exactly 2.
            categories: m.

        Raises:
            ParameterError: if the rate is no number in [0, 1).
        """
        n = _checks.integer("records", records, 1, LARGEST_RECORDS)
        try:
            rate = decimal_rational(lost_rate)
        except ValueError:
            rate = None
        if rate is None or not 0 <= rate < 1:
            raise ParameterError(
                f"lost_rate is {_checks.shown(lost_rate)}; it must be a number in [0, 1)."
            )
        return cls(n, math.ceil((1 - rate) * n), categories)

    @property
    def lost(self) -> int:
        """L = n - T, the number of records that are not drawn; without replacement only."""
        return self.records - self.drawn

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return {"mechanism": "sampling-histogram", **asdict(self)}


def as_anonymous(mechanism: SamplingHistogram | AnonymousMechanism) -> AnonymousMechanism:
    """Return the mechanism with the laws of its output; an `AnonymousMechanism` is returned as is.

    Raises:
        ParameterError: if it is no mechanism.
    """
    given = checked_mechanism(mechanism)
    return DrawnHistogram(given) if isinstance(given, SamplingHistogram) else given


@dataclass(frozen=True)
class DrawnHistogram(AnonymousMechanism):
    """The sampling-histogram with all its laws; outputs are histograms of T, in their order.

    Without replacement Pr[h | H] = prod_c C(H_c, h_c) / C(n, T); with replacement the multinomial
    law T! prod_c (H_c / n)^h_c / h_c!.

    Attributes:
        mechanism: the parameters.
    """

    mechanism: SamplingHistogram

    def __post_init__(self) -> None:
        settle(self, records=self.mechanism.records, categories=self.mechanism.categories)

    @property
    def outputs(self) -> int:
        """Number of histograms of T records."""
        return histogram_count(self.mechanism.drawn, self.categories)

    @cached_property
    def _parts(self) -> tuple[Matrix, IntMatrix]:
        weights = count_weights(self.mechanism)
        return weights, histograms(self.mechanism.drawn, self.categories)

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return laws over the drawn histograms; see `AnonymousMechanism.laws`.

        Each probability has a relative error of about n + T rounding errors, down to 1e-300.
        """
        rows = checked_histograms(histograms, self.records, self.categories)
        weights, drawn = self._parts
        law = np.ones((rows.shape[0], drawn.shape[0]))
        for c in range(self.categories):
            law *= weights[rows[:, c]][:, drawn[:, c]]
        law /= law.sum(axis=1, keepdims=True)
        return law

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return self.mechanism.to_dict()


@dataclass(frozen=True)
class SamplingAverage(AnonymousMechanism):
    """Draw T of n quantised records without replacement and publish their average (Algorithm 3).

    The output is the sum of the drawn values, which tells as much as the average. Theorem 4 (no
    privacy) is about continuous values; these are finitely many.

    Attributes:
        records: n.
        drawn: T, from 1 to n.
        values: the value of each category, m >= 2 numbers; a float is read as its shortest
            decimal.
    """

    records: int
    drawn: int
    values: tuple[Fraction, ...]

    def __repr__(self) -> str:
        return brief(self)

    def __init__(self, records: int, drawn: int, values: npt.ArrayLike) -> None:
        n = _checks.integer("records", records, 1)
        table = _checks.array("values", values)
        given = list(np.asarray(values, dtype=object)) if table.ndim == 1 else []
        if len(given) < 2:
            raise ParameterError(
                f"values is {_checks.shown(values)}; it must hold at least 2 numbers."
            )
        drawn, exact = _checks.integer("drawn", drawn, 1, n), tuple(map(_fraction, given))
        settle(self, records=n, drawn=drawn, values=exact, categories=len(exact))
        entries = (self.drawn + 1) * self.outputs * self.categories
        if max(entries, (n + 1) * (self.drawn + 1)) > LARGEST_ENTRIES:
            raise ParameterError(
                f"drawn is {self.drawn} with sums on {self.outputs} levels; the law's table would "
                f"hold {entries:,} entries, more than {LARGEST_ENTRIES:,}. Use coarser values."
            )

    @cached_property
    def step(self) -> Fraction:
        """The largest number of which all differences of values are multiples; 1 if all agree."""
        common = math.lcm(*(value.denominator for value in self.values))
        low = min(self.values)
        divisor = math.gcd(*(int((value - low) * common) for value in self.values))
        return Fraction(max(divisor, 1), common if divisor else 1)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Each value in steps above the smallest one."""
        low = min(self.values)
        return tuple(int((value - low) / self.step) for value in self.values)

    @property
    def outputs(self) -> int:
        """Number of levels between T times the smallest and T times the largest value."""
        return self.drawn * max(self.levels) + 1

    @property
    def sums(self) -> Vector:
        """The sum of the drawn values at each output, shape (outputs,), read-only."""
        base = self.drawn * min(self.values)
        return frozen([float(base + i * self.step) for i in range(self.outputs)])

    @cached_property
    def _weights(self) -> Matrix:
        return count_weights(SamplingHistogram(self.records, self.drawn))

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return laws of the sum; see `AnonymousMechanism.laws`.

        The count of T-subsets by sum is the coefficient of z^T in prod_c sum_j C(H_c, j) z^j
        y^(j v_c): categories are added one at a time to a table over (drawn, sum), with positive
        terms only. Databases that agree in their first categories share that table.
        """
        rows = checked_histograms(histograms, self.records, self.categories)
        weights = np.empty((rows.shape[0], self.outputs))
        start = np.zeros((self.drawn + 1, self.outputs))
        start[0, 0] = 1.0
        tables, before = [start], np.full(self.categories, -1)
        for i, row in enumerate(rows):
            # tables[c] is over the first c categories; those that agree with the last row are kept.
            same = int(np.argmin(np.append(row[:-1] == before[:-1], False)))
            del tables[same + 1 :]
            for c in range(same, self.categories - 1):
                tables.append(self._with_category(tables[-1], c, int(row[c])))
            weights[i] = self._closed(tables[-1], int(row[-1]))
            before = row
        return weights / weights.sum(axis=1, keepdims=True)

    def _with_category(self, table: Matrix, category: int, count: int) -> Matrix:
        """Return the table after the records of one more category may be drawn."""
        if count == 0:
            return table
        level, (size, sums) = self.levels[category], table.shape
        wider = np.zeros_like(table)
        for j in range(min(count, self.drawn) + 1):
            fewer = table[: size - j, : sums - j * level]
            wider[j:, j * level :] += self._weights[count, j] * fewer
        return wider

    def _closed(self, table: Matrix, count: int) -> Vector:
        """Return the weights of the sums once the last category fills up the T drawn."""
        level, sums = self.levels[-1], self.outputs
        total = np.zeros(sums)
        for j in range(min(count, self.drawn) + 1):
            others = table[self.drawn - j, : sums - j * level]
            total[j * level :] += self._weights[count, j] * others
        return total

    def to_dict(self) -> Json:
        """Return the parameters as plain values, the values as "numerator/denominator"."""
        return {
            "mechanism": "sampling-average",
            "records": self.records,
            "drawn": self.drawn,
            "values": [exact_text(value) for value in self.values],
        }


def count_weights(mechanism: SamplingHistogram) -> Matrix:
    """Return weights W[c, j] with Pr[h | H] proportional to prod_c W[H_c, h_c].

    Without replacement the number drawn of each category is as if every record were drawn with
    probability T/n, given that T are drawn in all: W[c, j] = Pr[Bin(c, T/n) = j]. With replacement
    it is Poisson(T c / n) given the same: W[c, j] is proportional to (T c / n)^j / j!, scaled to
    sum 1 over j <= T.

    Args:
        mechanism: n, T and whether there is replacement.

    Returns:
        Shape (n + 1, T + 1).

    Raises:
        ParameterError: if the table has more than 5e7 entries.
    """
    n, drawn = mechanism.records, mechanism.drawn
    if (n + 1) * (drawn + 1) > LARGEST_ENTRIES:
        raise ParameterError(
            f"records is {n} and drawn {drawn}; the table of laws would hold "
            f"{(n + 1) * (drawn + 1):,} entries, more than {LARGEST_ENTRIES:,}."
        )
    weights = np.zeros((n + 1, drawn + 1))
    for count in range(n + 1):
        if mechanism.replacement:
            weights[count] = _poisson(drawn * count / n, drawn)
        else:
            law = binomial_pmf(count, drawn / n)[: drawn + 1]
            weights[count, : law.size] = law
    return weights


def _poisson(rate: float, most: int) -> Vector:
    """Return the law of Poisson(rate) given that it is at most ``most``, by ratios."""
    law = np.ones(most + 1)
    mode = min(most, int(rate))
    law[mode + 1 :] = np.cumprod(rate / np.arange(mode + 1, most + 1))
    if mode:
        law[:mode] = np.cumprod(np.arange(mode, 0, -1) / rate)[::-1]
    return law / law.sum()


def _fraction(value: object) -> Fraction:
    try:
        return decimal_rational(value)
    except ValueError:
        raise ParameterError(
            f"values holds {_checks.shown(value)}; it must hold finite numbers."
        ) from None


Mechanism = SamplingHistogram | AnonymousMechanism
"""Whose delta(x) can be asked for."""


def checked_mechanism(given: object) -> Mechanism:
    """Return a mechanism as it is.

    Raises:
        ParameterError: if it is none.
    """
    if isinstance(given, SamplingHistogram | AnonymousMechanism):
        return given
    raise ParameterError(
        f"mechanism is {_checks.shown(given)}; it must be a SamplingHistogram or an "
        "AnonymousMechanism."
    )
