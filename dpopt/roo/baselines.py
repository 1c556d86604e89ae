"""The samplers that Reveal-or-Obscure is compared with: SubRR, and Laplace noise with projection.

Cheu and Nayak, "Differentially private multi-sampling from distributions" (ALT 2025);
Raskhodnikova, Sivakumar, Smith, Swanberg, "Differentially private sampling from distributions"
(NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Vector
from dpopt.privacy import Certificate, Guarantee
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.vouched import Implied, Vouched
from dpopt.roo.minimum import MinCount, MinCountSampler, from_weights
from dpopt.roo.rules import round_up
from dpopt.roo.sampler import Below, LetterSampler, generator, tallied
from dpopt.roo.setting import RooSetting

_LARGEST = 1e300

AMPLIFICATIONS = ("published", "tight")


@dataclass(frozen=True)
class SubRRSampler(LetterSampler, Vouched):
    """A uniformly random record through k-ary randomised response.

    Randomised response of privacy e_0 keeps the letter, or with probability
    q = k / (e^{e_0} + k - 1) replaces it with a uniform one: K(y | counts) = q/k + (1 - q) c_y / n,
    so SubRR is ROO with another q.

    Attributes:
        setting: n, k and epsilon; that of ``roo``.
        amplification: "published" or "tight"; see `subrr`.
        roo: the same mechanism as ROO with another q, audited in exact arithmetic.
    """

    setting: MinCount
    amplification: str
    roo: MinCountSampler

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0)."""
        return self.setting.guarantee

    @property
    def obscuring(self) -> float:
        """The q of the class's formula."""
        return self.roo.obscuring(0)

    @property
    def response_epsilon(self) -> float:
        """The privacy e_0 = log(1 + k (1/q - 1)) of the randomised response alone, in nats."""
        return float(np.log1p(self.setting.letters * (1 / self.obscuring - 1)))

    @property
    def bound(self) -> float:
        """Largest total variation to the law that the records are drawn from: q (1 - 1/k).

        (k - 1) / (n epsilon + k - 1) with the published amplification where n epsilon >= 1.
        """
        return self.obscuring * (1 - 1 / self.setting.letters)

    @property
    def certificate(self) -> Certificate | None:
        """The proof that it is epsilon-DP."""
        return self.roo.certificate

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        return self.roo.private

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return m and q as one tidy table; q is that of every m."""
        return self.roo.setting.columns(self.roo.units)

    def dominating(self) -> DominatingPair:
        """Return the tight dominating pair of all neighbours; see `MinCount.dominating`.

        Raises:
            NotPrivateError: if it is not proved private.
        """
        self.require_private()
        return self.roo.setting.dominating(self.roo.units)

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return q / k + (1 - q) c_y / n for each letter, shape (k,)."""
        return self.roo.output_distribution(counts)

    def require_private(self) -> None:
        """Refuse a sampler whose audit failed; see `MinCountSampler.require_private`."""
        self.roo.require_private()

    def _subject(self) -> tuple[object, ...]:
        return self.roo._subject()

    def _implied(self) -> Iterator[Implied]:
        yield "setting", self.setting, self.roo.setting

    def _prove(self) -> Certificate:
        return self.roo._prove()

    def _proved_again(self) -> Self:
        return self

    def _draw(self, counts: IntVector, below: Below) -> int:
        return self.roo._draw(counts, below)

    def to_dict(self) -> Json:
        """Return the sampler as plain values, ready for JSON."""
        return {**self.roo.to_dict(), "rule": "subrr", "amplification": self.amplification}


def subrr(
    records: int, letters: int, epsilon: float, *, amplification: str = "published"
) -> SubRRSampler:
    """Return the sampler of Cheu and Nayak.

    A record drawn from n turns randomised response of privacy e_0 into
    epsilon = log(1 + (e^{e_0} - 1) / n). "tight" solves that for e_0: q is then q_0 of ROO.
    "published" is what their bound on the sample size, (k - 1)(1 - alpha) / (alpha epsilon),
    stands for: e^{e_0} = n epsilon, which spends log(1 + epsilon - 1/n); 1 if n epsilon < 1, when
    the letter is uniform.

    The other parameters are those of `RooSetting`.

    Raises:
        ParameterError: for a parameter out of range.
    """
    setting = RooSetting(records, letters, epsilon)
    _checks.choice("amplification", amplification, AMPLIFICATIONS)
    n, k = setting.records, setting.letters
    if amplification == "tight":
        response = 1 + n * (setting.ratio - 1)
    else:
        response = max(Fraction(1), n * Fraction(setting.epsilon))
    sampler = from_weights(setting, "roo", (round_up(k / (response + k - 1)),))
    return SubRRSampler(sampler.setting, amplification, sampler)


@dataclass(frozen=True)
class LaplaceProjection:
    """Laplace noise on the empirical law, projected to the simplex, and a letter from that.

    For experiments only, and there is no `release`: noise in floating point has gaps that depend
    on what it is added to, so the guarantee of the noise on paper does not hold (Mironov 2012).
    On paper it is epsilon-DP, since one record changes the empirical law by 2 / n in the 1-norm,
    with bound 2 k / (n epsilon) on the total variation.

    Attributes:
        setting: n, k and epsilon.
    """

    setting: RooSetting

    def __post_init__(self) -> None:
        _checks.instance("setting", self.setting, RooSetting)

    @property
    def scale(self) -> float:
        """2 / (n epsilon): the scale of the noise on each empirical probability."""
        return 2.0 / (self.setting.records * self.setting.epsilon)

    @property
    def bound(self) -> float:
        """2 k / (n epsilon): the published bound on the total variation; it may be above 1."""
        return self.scale * self.setting.letters

    def noisy_laws(
        self, counts: npt.ArrayLike, rng: np.random.Generator, draws: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return projected noisy laws: NOT private.

        Args:
            counts: shape (k,), n in total.
            rng: a seeded generator.
            draws: number of laws, at least 1.

        Returns:
            Shape (draws, k). Their mean estimates the law of the released letter, with a standard
            error of at most 1 / (2 sqrt(draws)) for each.
        """
        _checks.instance("rng", rng, np.random.Generator)
        number = _checks.integer("draws", draws, 1)
        law = self.setting.fitting(counts) / self.setting.records
        return project_to_simplex(law + rng.laplace(scale=self.scale, size=(number, law.size)))

    def simulate(
        self,
        data: object = None,
        rng: np.random.Generator | None = None,
        *,
        counts: npt.ArrayLike | None = None,
        alphabet: object = None,
    ) -> Hashable:
        """Return one letter, from a seeded generator: for experiments, NOT private.

        Arguments are those of `LetterSampler.simulate`.

        Raises:
            ParameterError: for data that do not fit the setting.
        """
        rng = generator(rng)
        records = tallied(self.setting.letters, data, counts, alphabet)
        law = self.noisy_laws(records.counts, rng)[0]
        return records.letters[int(rng.choice(law.size, p=law / law.sum()))]


def laplace_projection(records: int, letters: int, epsilon: float) -> LaplaceProjection:
    """Return the sampler of Raskhodnikova et al., for experiments only; see `RooSetting`."""
    return LaplaceProjection(RooSetting(records, letters, epsilon))


def project_to_simplex(points: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the nearest probability vector to each point, in the 2-norm.

    It is max(0, v - t), t the mean excess of the largest j entries over 1 / j, with the largest j
    whose entries all stay above t. It is nearest in the 1-norm too, as the paper asks, in which
    others are as near.

    Args:
        points: finite numbers, shape (..., k).

    Raises:
        ParameterError: for other values or no entries.
    """
    v = _checks.floats("points", points)
    if v.ndim == 0 or v.shape[-1] == 0 or not np.all(np.abs(v) <= _LARGEST):
        raise ParameterError(
            f"points have shape {v.shape}; they must hold numbers up to {_LARGEST:g}, at least one."
        )
    falling = -np.sort(-v, axis=-1)
    places = np.arange(1, v.shape[-1] + 1)
    means = (np.cumsum(falling, axis=-1) - 1.0) / places
    last = np.count_nonzero(falling > means, axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(means, last, axis=-1), 0.0)
