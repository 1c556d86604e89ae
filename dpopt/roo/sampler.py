"""What all samplers of one letter share: data in, one letter out."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._types import IntVector, Vector
from dpopt.data.tally import Tally, tally
from dpopt.privacy import Guarantee
from dpopt.privacy.vouched import Vouched
from dpopt.roo.setting import RooSetting

_LARGE = 1 << 40

Below = Callable[[int], int]
"""Returns a uniform integer below its argument."""


class LetterSampler(Vouched):
    """A mechanism that releases one letter of a public alphabet from the counts of n records."""

    setting: RooSetting

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, 0) that the sampler was meant to have."""
        return self.setting.guarantee

    @abstractmethod
    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return the law of the released letter given the counts, both of shape (k,)."""

    @abstractmethod
    def _draw(self, counts: IntVector, below: Below) -> int:
        """Return the index of one letter, from exactly uniform integers."""

    @abstractmethod
    def require_private(self) -> None:
        """Refuse a sampler without a certificate.

        Raises:
            NotPrivateError: naming neighbours whose ratio is too large.
        """

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
        return self._letter(data, counts, alphabet, secrets.randbelow)

    def simulate(
        self,
        data: object = None,
        rng: np.random.Generator | None = None,
        *,
        counts: npt.ArrayLike | Mapping[Any, Any] | None = None,
        alphabet: object = None,
    ) -> Hashable:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        if not isinstance(rng, np.random.Generator):
            raise ParameterError(
                f"rng is {_checks.shown(rng)}; it must be a numpy random Generator."
            )
        return self._letter(data, counts, alphabet, lambda limit: _seeded_below(rng, limit))

    def _letter(
        self,
        data: object,
        counts: npt.ArrayLike | Mapping[Any, Any] | None,
        alphabet: object,
        below: Below,
    ) -> Hashable:
        if (data is None) == (counts is None):
            raise ParameterError("data and counts: give exactly one of them.")
        letters = self.setting.letters if alphabet is None else alphabet
        if isinstance(data, Tally) and alphabet is None:
            found = data
        else:
            found = tally(data, letters) if counts is None else Tally.of_counts(counts, letters)
        return found.letters[self._draw(self.fitting(found.counts), below)]

    def fitting(self, counts: npt.ArrayLike | Mapping[Any, Any]) -> IntVector:
        """Return counts as integers, checked against the setting.

        Raises:
            ParameterError: for another number of letters or records, or negative counts.
        """
        found = Tally.of_counts(counts, self.setting.letters).counts
        total = sum(found.tolist()) if found.max() > _LARGE else int(found.sum())
        if total != self.setting.records:
            raise ParameterError(
                f"counts sum to {total}; the sampler is for {self.setting.records} records."
            )
        return found


def certified(private: bool, why: str, sides: tuple[str, str], excess: float) -> None:
    """Raise unless a sampler is private.

    Raises:
        NotPrivateError: if it is not.
    """
    if not private:
        raise NotPrivateError(why, inputs=sides, output="letter 0", excess=excess)


def draw_record(counts: IntVector, below: Below) -> int:
    """Return the letter of a uniformly random record, compared with every letter's place."""
    total = np.cumsum(counts)
    return int(np.count_nonzero(total <= below(int(total[-1]))))


def _seeded_below(rng: np.random.Generator, limit: int) -> int:
    """Return an integer uniform below any limit, up to a bias of 2^-64."""
    limit = _checks.integer("limit", limit, 1)
    if limit < 1 << 63:
        return int(rng.integers(limit))
    bits = limit.bit_length() + 64
    return int.from_bytes(rng.bytes(-(-bits // 8))) % limit
