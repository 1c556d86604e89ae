"""Kernels that keep a public prior: pK, releases, pictures, and what was proved of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Matrix, Vector, frozen
from dpopt.files import require_room
from dpopt.privacy import Certificate, ExactKernel
from dpopt.privacy.release import Source, seeded, system
from dpopt.prob import total_variation
from dpopt.public_prior.algorithm import ClosedForm, Flat, Staircase
from dpopt.public_prior.prior import (
    PublicPrior,
    counts_of,
    distributions,
    in_order,
    own_letters,
    places_of,
)
from dpopt.public_prior.utility import minimax_utility
from dpopt.shape import Design

# Letters up to which a file, and `to_dict`, tell the diagonal.
_MOST_TOLD = 100_000

Released = Hashable | list[Hashable] | IntVector
Units = ClosedForm | ExactKernel
"""The integers of a kernel that keeps a public prior, letters in the caller's order."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SamplingKernel(Design):
    """An epsilon-LDP kernel K with qK = q: a user with distribution p releases a letter of pK.

    Letters and arrays are in the caller's order. Of a closed form, the integers and their proof are
    made when they are first asked for, by a release or `certificate`.

    Attributes:
        setting: what was asked; `prior` and `epsilon` are its.
        units: a `ClosedForm`, or of a program an `ExactKernel`.
    """

    def __post_init__(self) -> None:
        """Compare a proof that is given with the numbers; without one, nothing is computed.

        Raises:
            ParameterError: if it is about others.
        """
        if "certificate" in vars(self):
            super().__post_init__()

    @property
    def certificate(  # pyright: ignore[reportIncompatibleVariableOverride]
        self,
    ) -> Certificate:
        """The proof that the kernel drawn from is epsilon-LDP."""
        if "certificate" not in vars(self):
            vars(self)["certificate"] = self._prove()
        return vars(self)["certificate"]

    @certificate.setter
    def certificate(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, given: Certificate | None
    ) -> None:
        # Called by the constructor alone: the class is frozen.
        if given is not None:
            vars(self)["certificate"] = given

    @property
    def prior(self) -> PublicPrior:
        """The public prior q."""
        return self.setting.public

    @property
    def epsilon(self) -> float:
        """Of the guarantee, in nats."""
        return self.setting.epsilon

    @property
    def letters(self) -> int:
        """Number of letters, n."""
        return self.prior.size

    @property
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""
        return self.units.diagonal

    @property
    def exact(self) -> Any:  # noqa: ANN401
        """The units: the integers that `release` draws from and their certificate."""
        return self.units

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

    @property
    def drift(self) -> float:
        """Upper bound of the total variation between qK and q for the kernel drawn from.

        Invariance is utility, not privacy: rounding may break it by this much.
        """
        q = self.prior.masses
        if isinstance(self.units, ClosedForm):
            return self.units.drift
        return float(total_variation(q, self.units.apply(q)))

    def apply(self, p: npt.ArrayLike) -> Vector:
        """Return pK for one user or many, of a closed form in O(n) each; for reading only.

        Args:
            p: shape (n,) or (users, n), at least 0, rows summing to 1 up to 1e-9.

        Returns:
            Of the shape of ``p``.

        Raises:
            ParameterError: for another shape or other values.
        """
        return self.units.apply(distributions(p, self.letters))

    def matrix(self) -> Matrix:
        """Return K as floats, shape (n, n), read-only; for reading only.

        Raises:
            ParameterError: for more than 5000 letters.
        """
        self.setting.require_few("its matrix is made", "use apply")
        return frozen(self.units.matrix())

    def weights(self) -> list[list[int]]:
        """Return the integers that `release` draws from, over 2^bits, shape (n, n).

        Raises:
            ParameterError: for more than 5000 letters.
        """
        self.setting.require_few("its weights are listed", "use release")
        return [self.units.row(letter) for letter in range(self.letters)]

    def asked(self, data: object = None) -> int:
        """Return 1: each user's letter is that user's own, so that all of one call count as one.

        Args:
            data: see `release`, as for what is raised.
        """
        self.require_private()
        places_of(self.prior, data)
        return 1

    def release(self, data: object = None) -> Any:  # noqa: ANN401
        """Return one private letter for each user's letter, with the system's randomness.

        The law is exactly the row of `weights`. No seed; timing is outside the guarantee.

        Args:
            data: the users' own: a letter, or a sequence of letters, one for each user.

        Returns:
            A letter, or as many as there are users: a list of names, or an array of places where
            letters have no names.

        Raises:
            ParameterError: for an unknown letter. That it is unknown is not covered by the
                guarantee: the refusal is for the user alone.
        """
        places, single = places_of(self.prior, data)
        return self._released(places, single, system)

    def simulate(self, data: object, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        source = seeded(rng)
        return self._released(*places_of(self.prior, data), source)

    def release_from(self, counts: object) -> Released:
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
        places = own_letters(table, system)
        return self._released(places, single, system)

    def simulate_from(self, counts: object, rng: np.random.Generator) -> Released:
        """Return what `release_from` would, from a seeded generator: NOT private."""
        table, single = counts_of(in_order(counts, self.prior.letters), self.letters)
        source = seeded(rng)
        return self._released(own_letters(table, source), single, source)

    def _released(self, places: IntVector, single: bool, source: Source) -> Released:
        # Nothing is drawn before it is proved.
        self.require_private()
        drawn, letters = self.units.drawn(places, source), self.prior.letters
        if single:
            return letters[int(drawn[0])]
        return drawn if isinstance(letters, range) else [letters[place] for place in drawn]

    def facts(self) -> Json:
        """Return what `to_dict` tells beyond the fields that all answers share.

        The diagonal of more than 100,000 letters is left to `diagonal`.
        """
        few = self.letters <= _MOST_TOLD
        return {
            **({"diagonal": self.diagonal.tolist()} if few else {}),
            "gamma_tv": self.gamma_tv,
            "worst_tv": self.worst_tv,
            "drift": self.drift,
        }

    def headline(self) -> Json:
        """Return what the one-line repr tells; it proves nothing."""
        return {"letters": self.letters, "epsilon": self.epsilon, "worst_tv": self.worst_tv}

    def save(
        self,
        path: str | Path,
        *,
        even_if_not_private: bool = False,
        proof: bool = False,
        verifier: bool = False,
    ) -> None:
        """Write the kernel to a JSON file that `dpopt.load` proves again; see `Design.save`.

        Args:
            path: see there, as for the rest.
            even_if_not_private: see there.
            proof: see there.
            verifier: see there.

        Raises:
            ParameterError: also if letters are neither text nor integers.
        """
        require_room(Path(path), self.prior.masses)
        names = self.prior.letters
        if not isinstance(names, range) and not all(type(name) in (str, int) for name in names):
            raise ParameterError("letters must be texts or integers for a kernel to be saved.")
        super().save(
            path,
            even_if_not_private=even_if_not_private,
            proof=proof,
            verifier=verifier,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PublicPriorKernel(SamplingKernel):
    """A kernel of least worst case: of Algorithm 1, or of the program if it was solved."""

    @property
    def scale(self) -> Vector:
        """The g of Algorithm 1, letters by ascending prior mass, shape (n,), read-only."""
        return Staircase(self.prior, self.epsilon).scale


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LeximinKernel(SamplingKernel):
    """The kernel whose sorted diagonal is largest letter by letter, and its closed form."""

    @property
    def level(self) -> float:
        """M, the largest K_ii."""
        return Flat(self.prior, self.epsilon).level

    @property
    def rest(self) -> Vector:
        """What each row has left for the letters at the level, by ascending mass, shape (n,)."""
        return Flat(self.prior, self.epsilon).rest

    @property
    def shares(self) -> Vector:
        """The law that the rests are split by, in the same order, shape (n,)."""
        return Flat(self.prior, self.epsilon).shares
