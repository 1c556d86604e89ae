"""What all samplers of one letter share: data in, one letter out."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector
from dpopt.data.tally import Tally, tally
from dpopt.privacy.release import seeded_below

Below = Callable[[int], int]
"""Returns a uniform integer below its argument."""


class LetterSampler(ABC):
    """A mechanism that releases one letter of a public alphabet from the counts of n records."""

    setting: Any

    if TYPE_CHECKING:

        def require_private(self) -> None:
            """Refuse a sampler without a certificate."""

    @abstractmethod
    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return the law of the released letter given the counts, both of shape (k,)."""

    @abstractmethod
    def _draw(self, counts: IntVector, below: Below) -> int:
        """Return the index of one letter, from exactly uniform integers."""

    def asked(
        self,
        data: object = None,
        *,
        counts: npt.ArrayLike | Mapping[Any, Any] | None = None,
        alphabet: object = None,
    ) -> int:
        """Return how many letters `release` draws for data, which are checked: 1.

        Args:
            data: see `release`, as for the rest and what is raised.
            counts: see there.
            alphabet: see there.
        """
        self.require_private()
        self.fitting(tallied(self.setting.letters, data, counts, alphabet).counts)
        return 1

    def release(
        self,
        data: object = None,
        *,
        counts: npt.ArrayLike | Mapping[Any, Any] | None = None,
        alphabet: object = None,
    ) -> Hashable:
        """Return one private letter, with the operating system's randomness.

        Spends the whole guarantee. No seed; Python is not constant-time, and timing is outside
        the guarantee.

        Args:
            data: the records: a sequence, an array, a pandas or polars column, a mapping from
                letters to counts, or a `Tally`.
            counts: instead, the counts of the letters, shape (k,), or a mapping from letters.
            alphabet: the k letters, public: fixed before the data are looked at, since which
                letters occur is private. 0..k-1 if None. A record outside it is an error, and
                that there was one is not covered by the guarantee: it is for the curator alone.

        Returns:
            A letter of the alphabet.

        Raises:
            ParameterError: for data that do not fit the setting.
            NotPrivateError: if the sampler has no certificate.
        """
        self.require_private()
        records = tallied(self.setting.letters, data, counts, alphabet)
        return records.letters[self._draw(self.fitting(records.counts), secrets.randbelow)]

    def simulate(
        self,
        data: object = None,
        rng: np.random.Generator | None = None,
        *,
        counts: npt.ArrayLike | Mapping[Any, Any] | None = None,
        alphabet: object = None,
    ) -> Hashable:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        seeded = generator(rng)
        records = tallied(self.setting.letters, data, counts, alphabet)
        fitting = self.fitting(records.counts)
        return records.letters[self._draw(fitting, lambda limit: seeded_below(seeded, limit))]

    def fitting(self, counts: npt.ArrayLike | Mapping[Any, Any]) -> IntVector:
        """Return counts as integers, checked against the setting.

        Raises:
            ParameterError: for another number of letters or records, or negative counts.
        """
        return self.setting.fitting(counts)


def tallied(
    size: int,
    data: object,
    counts: npt.ArrayLike | Mapping[Any, Any] | None,
    alphabet: object,
) -> Tally:
    """Return data or counts as a tally over an alphabet, 0..size-1 if None; see `LetterSampler`.

    Raises:
        ParameterError: for data that do not fit the alphabet, or both or none of the two.
    """
    if (data is None) == (counts is None):
        raise ParameterError("data and counts: give exactly one of them.")
    if isinstance(data, Tally) and alphabet is None:
        return data
    letters = size if alphabet is None else alphabet
    return tally(data, letters) if counts is None else Tally.of_counts(counts, letters)


def generator(rng: object) -> np.random.Generator:
    """Return a seeded generator, checked."""
    if not isinstance(rng, np.random.Generator):
        raise ParameterError(f"rng is {_checks.shown(rng)}; it must be a numpy random Generator.")
    return rng


def draw_record(counts: IntVector, below: Below) -> int:
    """Return the letter of a uniformly random record, compared with every letter's place."""
    total = np.cumsum(counts)
    return int(np.count_nonzero(total <= below(int(total[-1]))))


def place_of(weights: Sequence[int], below: Below) -> int:
    """Return a place with a chance in proportion to its integer; every sum is compared."""
    sums = list(accumulate(weights))
    drawn = below(sums[-1])
    return sum(total <= drawn for total in sums)
