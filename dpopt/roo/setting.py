"""The setting of Reveal-or-Obscure: n records over k categories, one category is released.

Also the base class of all samplers of one category from counts.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector, frozen
from dpopt.data.tally import Tally, tally
from dpopt.privacy import Guarantee, exp_lower
from dpopt.privacy.release import Source, below
from dpopt.shape import Setting
from dpopt.table.table import BITS

UNIT = 1 << BITS
"""Obscuring probabilities are integers over UNIT = 2^62."""


@dataclass(frozen=True)
class RooSetting:
    """n records over a public alphabet of k categories; neighbours differ in one record.

    The setting of bounds, and the base class of the settings of all samplers of one category.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        categories: k, at least 2.
        epsilon: above 0, in nats, at most 600.
    """

    records: int
    categories: int
    epsilon: float

    def __post_init__(self) -> None:
        # Counts times 2^62 stay exact, and their floats distinct.
        records = _checks.integer("records", self.records, 1, 10**15)
        categories = _checks.integer("categories", self.categories, 2, 10**15)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, 600.0, open_lower=True)
        checked = {"records": records, "categories": categories, "epsilon": epsilon}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def largest_minimum(self) -> int:
        """M = floor(n / k): the largest possible value of the smallest count."""
        return self.records // self.categories

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0)."""
        return Guarantee(self.epsilon)

    @property
    def ratio(self) -> Fraction:
        """Rational lower bound r of e^epsilon, of 128 bits, that integer tables satisfy."""
        return exp_lower(self.epsilon)

    def fitting(self, counts: npt.ArrayLike | Mapping[Any, Any]) -> IntVector:
        """Return counts as integers, shape (k,), checked against n and k."""
        checked = Tally.of_counts(counts, self.categories).counts
        # If a count is above this, counts are added as Python integers, as the sum may overflow 64
        # bits.
        total = sum(checked.tolist()) if checked.max() > 1 << 40 else int(checked.sum())
        if total != self.records:
            raise ParameterError(
                f"counts sum to {total}; the sampler is for {self.records} records."
            )
        return checked


class CategorySetting(RooSetting, Setting):
    """A mechanism that releases one category of a public alphabet from the counts of n records.

    Data are the records (a sequence, an array, a pandas or polars column) over the categories
    0..k-1, a mapping from these to their counts, or a `dpopt.roo.Tally` over k categories of any
    type, one of which is released. The alphabet is public: it must be fixed before looking at the
    data.
    """

    @classmethod
    def example(cls) -> Self:
        """Return twelve records of three categories."""
        return cls(records=12, categories=3, epsilon=0.3)

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return pairs of twelve records that differ in one record."""
        return [([0] * a + [1] * (12 - a), [0] * a + [1] * (11 - a) + [2]) for a in range(12)]

    @abstractmethod
    def weights(self, table: Any, counts: IntVector, categories: IntVector) -> list[int]:  # noqa: ANN401
        """Return integers proportional to the probability of one category with each count.

        Args:
            table: of the design.
            counts: the distinct counts, ascending.
            categories: number of categories with each of them.
        """

    @abstractmethod
    def worst_case(self, table: Any) -> float:  # noqa: ANN401
        """Return the largest total variation of K(x) from the empirical pmf, over all data x."""

    def output_weights(self, table: Any, data: Any) -> list[int]:  # noqa: ANN401
        """Return the distribution of the category as integer weights, shape (k,)."""
        counts = self.fitting(self._tally(data).counts)
        distinct, index, categories = np.unique(counts, return_inverse=True, return_counts=True)
        weights = self.weights(table, distinct, categories)
        return [weights[i] for i in index.tolist()]

    def drawn(self, table: Any, data: Any, source: Source) -> Hashable:  # noqa: ANN401
        """Return one category, drawn exactly: first a count, then a category that has it."""
        records = self._tally(data)
        counts, categories = np.unique(self.fitting(records.counts), return_counts=True)
        weights = self.weights(table, counts, categories)
        sums = list(accumulate(map(mul, weights, categories.tolist())))
        index = bisect_right(sums, below(sums[-1], source))
        alike = np.flatnonzero(records.counts == counts[index])
        return records.labels[int(alike[below(alike.size, source)])]

    def release_count(self, table: Any, data: Any) -> int:  # noqa: ANN401
        """Return 1, the number of categories drawn, after checking the data."""
        del table
        self.fitting(self._tally(data).counts)
        return 1

    def report(self, table: Any) -> Mapping[str, Callable[[], Any]]:  # noqa: ANN401
        """Return the function from counts to the output distribution, and the worst case."""
        return {
            "output_distribution": lambda: partial(self._output_distribution, table),
            "worst_case": lambda: self.worst_case(table),
        }

    def _tally(self, data: object) -> Tally:
        return data if isinstance(data, Tally) else tally(data, self.categories)

    def _output_distribution(self, table: Any, counts: npt.ArrayLike) -> Vector:  # noqa: ANN401
        """Return the pmf of the released category given counts, both of shape (k,)."""
        weights = self.output_weights(table, Tally.of_counts(counts, self.categories))
        total = sum(weights)
        return frozen([weight / total for weight in weights])
