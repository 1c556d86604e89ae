"""The setting of Reveal-or-Obscure: n records over k letters, of which one letter is released."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector
from dpopt.data.tally import Tally, tally
from dpopt.privacy import Guarantee, exp_lower

BITS = 62
UNIT = 1 << BITS
"""Obscuring probabilities, and chances of letters, are integers over this."""

LONGEST_FLOOR = 2_000_000
"""A smooth floor reaches up to this count at most."""

_LARGEST_EPSILON = 600.0
_LARGEST_RECORDS = 10**15
# Counts whose sum may overflow 64 bits are added as Python integers.
_LARGE = 1 << 40


@dataclass(frozen=True)
class RooSetting:
    """n records over a public alphabet of k letters; neighbours differ in one record.

    What bounds are about, and what the settings of all samplers of one letter share.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        letters: k, at least 2.
        epsilon: above 0, in nats, at most 600.
    """

    records: int
    letters: int
    epsilon: float

    def __post_init__(self) -> None:
        records = _checks.integer("records", self.records, 1, _LARGEST_RECORDS)
        letters = _checks.integer("letters", self.letters, 2, _LARGEST_RECORDS)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, _LARGEST_EPSILON, open_lower=True)
        checked = {"records": records, "letters": letters, "epsilon": epsilon}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def largest_minimum(self) -> int:
        """M = floor(n / k): the largest count that every letter can reach."""
        return self.records // self.letters

    def largest_count(self, minimum: int) -> int:
        """Return n - (k - 1) m: the largest count of a letter where the smallest is m."""
        return self.records - (self.letters - 1) * minimum

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0)."""
        return Guarantee(self.epsilon)

    @property
    def ratio(self) -> Fraction:
        """Rational lower bound of e^epsilon, of 128 bits: what everything is proved against."""
        return exp_lower(self.epsilon)

    @property
    def obscuring(self) -> float:
        """q_0 = 1 / (1 + (n / k) (e^epsilon - 1)): the least q of ROO (theorem 1)."""
        return 1.0 / (1.0 + self.records / self.letters * math.expm1(self.epsilon))

    def fitting(self, counts: npt.ArrayLike | Mapping[Any, Any]) -> IntVector:
        """Return counts as integers, checked against the setting.

        Raises:
            ParameterError: for another number of letters or records, or negative counts.
        """
        checked = Tally.of_counts(counts, self.letters).counts
        total = sum(checked.tolist()) if checked.max() > _LARGE else int(checked.sum())
        if total != self.records:
            raise ParameterError(
                f"counts sum to {total}; the sampler is for {self.records} records."
            )
        return checked

    def queries(self, numbers: Sequence[int]) -> list[Tally]:
        """Return the data that a line of integers stands for: the counts of all letters."""
        return [Tally.of_counts(list(numbers), self.letters)]

    def counted(self, data: object) -> IntVector:
        """Return the counts of records over the letters 0..k-1, or of a `Tally`, checked.

        Raises:
            ParameterError: for data that do not fit the setting.
        """
        records = data if isinstance(data, Tally) else tally(data, self.letters)
        return self.fitting(records.counts)


def checked_law(distribution: npt.ArrayLike, letters: int) -> Vector:
    """Return a law P of the records as floats that sum to 1, shape (k,).

    Raises:
        ParameterError: for another shape, negative values or another sum.
    """
    law = _checks.floats("distribution", distribution)
    if law.shape != (letters,):
        raise ParameterError(f"distribution has shape {law.shape}; it must be ({letters},).")
    if not np.all((law >= 0) & (law <= 2)) or not abs(law.sum() - 1) <= 1e-9:
        raise ParameterError("distribution must hold probabilities that sum to 1.")
    return law / law.sum()
