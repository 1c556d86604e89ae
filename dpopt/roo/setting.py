"""The setting of Reveal-or-Obscure: n records over k letters, of which one letter is released."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from dpopt import _checks
from dpopt._types import Json
from dpopt.privacy import Guarantee, exp_lower

_LARGEST_EPSILON = 600.0
_LARGEST_RECORDS = 10**15


@dataclass(frozen=True)
class RooSetting:
    """n records over a public alphabet of k letters; neighbours differ in one record.

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
        for name, value in zip(self.__dataclass_fields__, (records, letters, epsilon), strict=True):
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

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return asdict(self)
