"""What the kernels of a public prior share: pK, the certified integers, releases, pictures."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._plot import new_axes
from dpopt._types import IntVector, Json, Matrix, Vector, brief
from dpopt.privacy import Certificate, Guarantee
from dpopt.privacy.release import Words, random_words, seeded_words
from dpopt.privacy.vouched import Coherent, Implied
from dpopt.public_prior.inputs import counts_of, in_order, own_letters, places_of
from dpopt.public_prior.prior import PublicPrior, distributions
from dpopt.public_prior.quantise import CertifiedRows, Maker, certified_rows
from dpopt.public_prior.utility import diagonal_bounds, minimax_utility

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_EPSILON = 600.0
LEAST_EPSILON = 1e-9
LARGEST_MATRIX = 5000
"""Letters up to which `SamplingKernel.matrix` makes n^2 floats (200 MB)."""


@dataclass(frozen=True, eq=False)
class SamplingKernel(Coherent, ABC):
    """An epsilon-LDP kernel K with qK = q: a user with distribution p releases a letter of pK.

    Letters and arrays are in the caller's order.

    Attributes:
        prior: q.
        epsilon: in nats.
        diagonal: K_ii, shape (n,), read-only.
        provenance: versions that made it.
    """

    prior: PublicPrior
    epsilon: float
    diagonal: Vector
    provenance: dict[str, str]

    def _implied(self) -> Iterator[Implied]:
        for name, value in self._floats(self.prior, checked_epsilon(self.epsilon)).items():
            own = np.asarray(getattr(self, name))
            # Another machine's exp and long doubles may differ in the last digits.
            fits = own.shape == np.shape(value) and np.allclose(own, value, rtol=1e-9, atol=1e-15)
            yield name, fits, True

    @staticmethod
    @abstractmethod
    def _floats(prior: PublicPrior, epsilon: float) -> dict[str, Any]:
        """Return the fields in floating point: what is applied and reported, not released."""

    @property
    def letters(self) -> int:
        """Number of letters, n."""
        return self.prior.size

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), between any two users."""
        return Guarantee(self.epsilon)

    @property
    def gamma_tv(self) -> float:
        """Gamma_TV = (1 - q_min) / (e^epsilon q_min + 1 - q_min), the least possible (theorem 1).

        The largest total variation between p and pK over all p, for the best kernel with qK = q.
        """
        return minimax_utility(self.prior, self.epsilon)

    @property
    def worst_tv(self) -> float:
        """Largest total variation between p and pK over all p: 1 - min K_ii (lemma 1)."""
        return float(1 - self.diagonal.min())

    def apply(self, p: npt.ArrayLike) -> Vector:
        """Return pK for one user or many, in O(n) each; for reading only.

        Args:
            p: shape (n,) or (users, n), at least 0, rows summing to 1 up to 1e-9.

        Returns:
            Of the shape of ``p``.

        Raises:
            ParameterError: for another shape or other values.
        """
        order = self.prior.order
        values = distributions(p, self.letters)
        found = np.empty_like(values)
        found[..., order] = self._apply_sorted(values[..., order])
        return found

    @abstractmethod
    def _apply_sorted(self, p: Vector) -> Vector:
        """Return pK, letters by ascending prior mass."""

    @abstractmethod
    def _maker(self) -> Maker:
        """Return what makes the integers, letters by ascending prior mass."""

    def matrix(self) -> Matrix:
        """Return K as floats, shape (n, n); for reading only.

        Raises:
            ParameterError: for more than 5000 letters.
        """
        if self.letters > LARGEST_MATRIX:
            raise ParameterError(
                f"the kernel has {self.letters} letters; its matrix is made for at most "
                f"{LARGEST_MATRIX}: use apply."
            )
        found = self._matrix()
        found.setflags(write=False)
        return found

    def _matrix(self) -> Matrix:
        return self.apply(np.eye(self.letters))

    @cached_property
    def exact(self) -> CertifiedRows:
        """The integers that `release` draws from and their proof, made when first asked for.

        Raises:
            NotPrivateError: if no precision gives integers that pass.
        """
        masses = self.prior.masses[self.prior.order]
        return certified_rows(masses, self.epsilon, self._maker())

    @property
    def certificate(self) -> Certificate:
        """The proof that the kernel drawn from is epsilon-LDP."""
        return self.exact.certificate

    @property
    def drift(self) -> float:
        """Upper bound of the total variation between qK and q for the kernel drawn from.

        Invariance is utility, not privacy: rounding may break it by this much.
        """
        return self.exact.drift

    def weights(self) -> list[list[int]]:
        """Return the integers that `release` draws from, over 2^bits, shape (n, n).

        Raises:
            ParameterError: for more than 5000 letters.
        """
        if self.letters > LARGEST_MATRIX:
            raise ParameterError(
                f"the kernel has {self.letters} letters; its weights are listed for at most "
                f"{LARGEST_MATRIX}."
            )
        rows, rank = self.exact.rows.weights(), self._rank
        return [[rows[i][j] for j in rank] for i in rank]

    @cached_property
    def _rank(self) -> IntVector:
        rank = np.empty(self.letters, dtype=np.int64)
        rank[self.prior.order] = np.arange(self.letters)
        return rank

    def release(self, own: object) -> Hashable | list[Hashable] | IntVector:
        """Return one private letter for each user's letter, with the system's randomness.

        A user whose distribution is a single letter; the law is exactly the row of `weights`.
        No seed; Python is not constant-time, and timing is outside the guarantee.

        Args:
            own: a letter, or a sequence of letters, one for each user.

        Returns:
            A letter, or as many as there are users: a list of names, or an array of places where
            letters have no names.

        Raises:
            ParameterError: for an unknown letter. That it is unknown is not covered by the
                guarantee: the refusal is for the user alone.
        """
        places, single = places_of(self.prior, own)
        return self._named(self._released(places), single)

    def release_from(self, counts: object) -> Hashable | list[Hashable] | IntVector:
        """Return one private letter for each user's distribution p, with the system's randomness.

        A letter is drawn from p with exactly uniform integers, then one from that letter's row:
        the law is exactly pK. Each user spends epsilon, whatever the counts.

        Args:
            counts: p in proportion, integers or Fractions, shape (n,) or (users, n), at least 0,
                no user without any.

        Returns:
            As `release`.

        Raises:
            ParameterError: for another shape or other values; the refusal is for the user alone.
        """
        table, single = counts_of(in_order(counts, self.prior.letters), self.letters)
        places = own_letters(table, secrets.randbelow)
        return self._named(self._released(places), single)

    def simulate(
        self, own: object, rng: np.random.Generator
    ) -> Hashable | list[Hashable] | IntVector:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        places, single = places_of(self.prior, own)
        words = seeded_words(self.exact.rows.bits, places.size, _generator(rng))
        return self._named(self._drawn(places, words), single)

    def simulate_from(
        self, counts: object, rng: np.random.Generator
    ) -> Hashable | list[Hashable] | IntVector:
        """Return what `release_from` would, from a seeded generator: NOT private."""
        table, single = counts_of(in_order(counts, self.prior.letters), self.letters)
        rng = _generator(rng)
        # At least 64 bits more than the counts have: the bias is below 2^-64.
        longest = max((int(total).bit_length() for total in table.sum(axis=1)), default=0)
        size = -(-longest // 8) + 8
        places = own_letters(table, lambda limit: int.from_bytes(rng.bytes(size)) % limit)
        words = seeded_words(self.exact.rows.bits, places.size, rng)
        return self._named(self._drawn(places, words), single)

    def _released(self, places: IntVector) -> IntVector:
        return self._drawn(places, random_words(self.exact.rows.bits, places.size))

    def _drawn(self, places: IntVector, words: Words) -> IntVector:
        return self.prior.order[self.exact.rows.draw(self._rank[places], words)]

    def _named(self, places: IntVector, single: bool) -> Hashable | list[Hashable] | IntVector:
        letters = self.prior.letters
        if single:
            return letters[int(places[0])]
        return places if isinstance(letters, range) else [letters[place] for place in places]

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw K_ii against q_i, lemma 3's bound as a line; return the axes."""
        axes = new_axes(ax)
        order = self.prior.order
        q = self.prior.masses[order]
        axes.plot(q, diagonal_bounds(self.prior, self.epsilon)[order], color="grey", linewidth=1)
        axes.plot(q, self.diagonal[order], marker="o", markersize=3, linestyle="", label=label)
        axes.set_xlabel("prior mass, $q_i$")
        axes.set_ylabel("probability to keep the letter, $K_{ii}$")
        axes.set_ylim(0.0, 1.0)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            letters=self.letters,
            epsilon=self.epsilon,
            worst_tv=self.worst_tv,
        )

    def to_dict(self) -> Json:
        """Return the kernel as plain values, ready for JSON; certifies it."""
        names = [letter if _plain(letter) else repr(letter) for letter in self.prior.letters]
        return {
            "kernel": type(self).__name__,
            "epsilon": self.epsilon,
            "letters": names,
            "prior": self.prior.masses.tolist(),
            "diagonal": self.diagonal.tolist(),
            "gamma_tv": self.gamma_tv,
            "worst_tv": self.worst_tv,
            "drift": self.drift,
            "certificate": self.certificate.to_dict(),
            "provenance": self.provenance,
        }


def checked_epsilon(epsilon: float) -> float:
    """Return epsilon if the kernels can be made for it: in [1e-9, 600]."""
    return _checks.real("epsilon", epsilon, LEAST_EPSILON, LARGEST_EPSILON)


def _generator(rng: np.random.Generator) -> np.random.Generator:
    if not isinstance(rng, np.random.Generator):
        raise ParameterError(f"rng is {_checks.shown(rng)}; it must be a numpy random Generator.")
    return rng


def _plain(letter: Hashable) -> bool:
    return isinstance(letter, str | int | float | bool)
