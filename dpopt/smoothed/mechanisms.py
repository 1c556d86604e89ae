"""Anonymous mechanisms, whose output pmf depends on the database only through its histogram.

The divergences of a `SamplingHistogram` are closed-form sums for up to 10^10 records; those of any
other `AnonymousMechanism` are summed over its outputs.
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
from dpopt._numbers import decimal_rational
from dpopt._types import Json, Matrix
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histograms,
    histogram_count,
    histograms,
)
from dpopt.prob.pmf import binomial_pmf, from_ratios

# Records of a database; time fixes it.
LARGEST_RECORDS = 10**10
# Entries of the table of count weights, 400 MB.
LARGEST_ENTRIES = 50_000_000


def settle(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass to their checked values."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


class AnonymousMechanism(ABC):
    """A mechanism that is symmetric in the records, given by the pmf of its output.

    Attributes:
        records: n, the size of every database, which is public.
        categories: m, the number of values that a record can take.
    """

    records: int
    categories: int

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of possible outputs."""

    @abstractmethod
    def pmfs(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the pmf of the output for each database, shape (N, outputs).

        Args:
            histograms: counts of the categories, shape (N, m), each row summing to n.

        Raises:
            ParameterError: if a row is no histogram of n records over m categories.
        """

    @abstractmethod
    def to_dict(self) -> Json:
        """Return the parameters as plain values."""


@dataclass(frozen=True)
class SamplingHistogram(AnonymousMechanism):
    """Draw T of the n records at random and publish the histogram of those drawn.

    Without replacement Pr[h | H] = prod_c C(H_c, h_c) / C(n, T); with replacement the multinomial
    T! prod_c (H_c / n)^h_c / h_c!. Outputs are the histograms of T records, in the order of
    `histograms`.

    Attributes:
        records: n, at least 1; the size of every database, which is public.
        drawn: T, from 1 to n; with replacement any T >= 1.
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
        replacement = _checks.flag("replacement", self.replacement)
        drawn = _checks.integer("drawn", self.drawn, 1, LARGEST_RECORDS if replacement else records)
        categories = _checks.integer("categories", self.categories, 2)
        settle(self, records=records, drawn=drawn, categories=categories, replacement=replacement)

    @classmethod
    def of_lost_rate(
        cls, records: int, lost_rate: float | str | Fraction, categories: int = 2
    ) -> SamplingHistogram:
        """Return the mechanism that omits a fraction r of the records: T = ceil((1 - r) n).

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

    @property
    def outputs(self) -> int:
        """Number of histograms of T records."""
        return histogram_count(self.drawn, self.categories)

    @cached_property
    def _parts(self) -> tuple[Matrix, IntMatrix]:
        return count_weights(self), histograms(self.drawn, self.categories)

    def pmfs(self, histograms: npt.ArrayLike) -> Matrix:
        """Return pmfs of the drawn histogram; see `AnonymousMechanism.pmfs`.

        Each probability has a relative error of about n + T rounding errors, down to 1e-300.

        Raises:
            ParameterError: if a row is no histogram, or there are more than 5e7 weights.
        """
        rows = checked_histograms(histograms, self.records, self.categories)
        # Axes of weights: count in the database, count drawn; of pmf: database, output.
        weights, drawn = self._parts
        pmf = np.ones((rows.shape[0], drawn.shape[0]))
        for c in range(self.categories):
            pmf *= weights[rows[:, c]][:, drawn[:, c]]
        pmf /= pmf.sum(axis=1, keepdims=True)
        return pmf

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return {"mechanism": "sampling-histogram", **asdict(self)}


def count_weights(mechanism: SamplingHistogram) -> Matrix:
    """Return weights W[c, j] with Pr[h | H] proportional to prod_c W[H_c, h_c].

    Without replacement the counts drawn are independent Bin(H_c, T/n), conditioned on the sum T:
    W[c, j] = Pr[Bin(c, T/n) = j]. With replacement they are independent Poisson(T H_c / n) under
    the same condition: W[c, j] is proportional to (T c / n)^j / j!, with sum 1 over j <= T. Their
    shape is (n + 1, T + 1).
    """
    n, drawn = mechanism.records, mechanism.drawn
    if (n + 1) * (drawn + 1) > LARGEST_ENTRIES:
        raise ParameterError(
            f"records is {n} and drawn {drawn}; the table of distributions would hold "
            f"{(n + 1) * (drawn + 1):,} entries, more than {LARGEST_ENTRIES:,}."
        )
    weights = np.zeros((n + 1, drawn + 1))
    # Row: count in the database; column: count drawn.
    for count in range(n + 1):
        if mechanism.replacement:
            rate = drawn * count / n
            weights[count] = from_ratios(rate / np.arange(1, drawn + 1), min(drawn, int(rate)))
        else:
            pmf = binomial_pmf(count, drawn / n)[: drawn + 1]
            weights[count, : pmf.size] = pmf
    return weights
