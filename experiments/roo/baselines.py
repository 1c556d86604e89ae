"""The samplers that Reveal-or-Obscure is compared with: SubRR, and Laplace noise with projection.

Cheu and Nayak, "Differentially private multi-sampling from distributions" (ALT 2025);
Raskhodnikova, Sivakumar, Smith, Swanberg, "Differentially private sampling from distributions"
(NeurIPS 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpopt import roo
from dpopt.roo.minimum import RevealOrObscure
from dpopt.roo.rules import round_up
from dpopt.shape import Design, made


def subrr(records: int, categories: int, epsilon: float) -> Design:
    """Return the sampler of Cheu and Nayak: k-ary randomised response on a random record.

    Randomised response of privacy e_0 keeps the category, or with probability
    q = k / (e^{e_0} + k - 1) replaces it with a uniform one: K(y | counts) = q/k + (1 - q) c_y / n,
    so it is ROO with another q, and the same proof applies. Drawing one of n records amplifies e_0
    to epsilon = log(1 + (e^{e_0} - 1) / n); solved for e_0 that is ROO itself. Here e_0 is that of
    their bound on the sample size, (k - 1)(1 - alpha) / (alpha epsilon): e^{e_0} = n epsilon, with
    privacy cost log(1 + epsilon - 1/n). If n epsilon < 1, e^{e_0} = 1 and the category is uniform.

    Args:
        records: n.
        categories: k.
        epsilon: of the category.
    """
    setting = RevealOrObscure(records, categories, epsilon, "roo")
    n, k = setting.records, setting.categories
    response = max(Fraction(1), n * Fraction(setting.epsilon))
    return made(setting, (round_up(k / (response + k - 1)),), float_bound=None)


@dataclass(frozen=True)
class LaplaceProjection:
    """Add Laplace noise to the empirical pmf, project to the simplex, and sample a category.

    There is no `release`: noise in floating point has gaps that depend on what it is added to, so
    the guarantee of the noise on paper does not hold (Mironov 2012). On paper it is epsilon-DP,
    since one record changes the empirical distribution by 2 / n in the 1-norm.

    Attributes:
        setting: n, k and epsilon.
    """

    setting: roo.RooSetting

    @property
    def scale(self) -> float:
        """2 / (n epsilon): the scale of the noise on each empirical probability."""
        return 2.0 / (self.setting.records * self.setting.epsilon)

    def noisy_pmfs(
        self, counts: npt.ArrayLike, rng: np.random.Generator, draws: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return noisy pmfs projected to the simplex: NOT private.

        Args:
            counts: shape (k,), n in total.
            rng: a seeded generator.
            draws: number of pmfs, at least 1.

        Returns:
            Shape (draws, k). Their mean estimates the distribution of the released category, with a
            standard error of at most 1 / (2 sqrt(draws)) for each.
        """
        pmf = self.setting.fitting(counts) / self.setting.records
        return project_to_simplex(pmf + rng.laplace(scale=self.scale, size=(draws, pmf.size)))


def project_to_simplex(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest probability vector to each point, in the 2-norm, shape (..., k).

    It is max(0, v - t), t the mean excess of the largest j entries over 1 / j, with the largest j
    whose entries all stay above t. It is also a nearest point in the 1-norm,
    which the paper uses; that one is not unique.
    """
    falling = -np.sort(-v, axis=-1)
    ranks = np.arange(1, v.shape[-1] + 1)
    means = (np.cumsum(falling, axis=-1) - 1.0) / ranks
    last = np.count_nonzero(falling > means, axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(means, last, axis=-1), 0.0)
