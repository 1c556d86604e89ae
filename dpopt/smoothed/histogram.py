"""The sampling-histogram mechanism: draw T of n records, publish their histogram (Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import decimal_rational
from dpopt._types import Json

LARGEST_RECORDS = 10**10


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
        if not isinstance(self.replacement, bool):
            raise ParameterError(
                f"replacement is {_checks.shown(self.replacement)}; it must be True or False."
            )
        most = LARGEST_RECORDS if self.replacement else records
        drawn = _checks.integer("drawn", self.drawn, 1, most)
        categories = _checks.integer("categories", self.categories, 2)
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "drawn", drawn)
        object.__setattr__(self, "categories", categories)

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
