"""Law of the released letter under a distribution of the records: exact, without sampling draws.

With M the smallest of the counts, Pr(Y = y) - P(y) = E[q_M (1/k - c_y / n)].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.mechanisms.roo.minimum import MinCountSampler
from dpopt.mechanisms.roo.minimum_law import MinimumLaw

_LARGEST_RECORDS = 10**7
_MOST_LETTERS = 10**5


@dataclass(frozen=True)
class ExpectedOutput:
    """What a sampler releases when its records are drawn from P.

    Attributes:
        distribution: P, shape (k,).
        difference: Pr(Y = y) - P(y), shape (k,).
        mean_obscuring: E[q_M], the probability of a uniform letter.
    """

    distribution: Vector
    difference: Vector
    mean_obscuring: float

    @property
    def law(self) -> Vector:
        """Pr(Y = y), shape (k,)."""
        return frozen(self.distribution + self.difference)

    @property
    def total_variation(self) -> float:
        """Total variation distance between P and the law of the released letter."""
        return float(np.abs(self.difference).sum() / 2)


def expected_output(sampler: MinCountSampler, distribution: npt.ArrayLike) -> ExpectedOutput:
    """Return the law of the released letter for n records drawn independently from P.

    Letters of the same probability are convolved together. Sums are cut where what is left out is
    below 1e-18 k E[q_M] for a q_m that does not increase; rounding is of the order of
    1e-13 E[q_M]. What is below 1e-280 is returned as 0. Milliseconds for n = 1,000; the time grows
    with the number of m that matter and with the square of the width of the counts' laws.

    Args:
        sampler: any rule in the smallest count, private or not; n at most 1e7, k at most 1e5.
        distribution: P, shape (k,): probabilities that sum to 1 within 1e-9.

    Raises:
        ParameterError: for another shape, another sum, or a larger n or k.
    """
    _checks.instance("sampler", sampler, MinCountSampler)
    setting = sampler.setting
    _checks.integer("records", setting.records, 1, _LARGEST_RECORDS)
    _checks.integer("letters", setting.letters, 2, _MOST_LETTERS)
    p = _probabilities(distribution, setting.letters)
    if sampler.rule == "roo" or p.min() == 0.0:
        # A letter that cannot occur keeps the smallest count at 0.
        q = sampler.obscuring(0)
        return ExpectedOutput(frozen(p), frozen(q * (1 / setting.letters - p)), q)
    shares, groups = np.unique(p, return_inverse=True)
    sizes = np.bincount(groups)
    law = MinimumLaw.of(setting.records, shares, sizes, sampler.q)
    means, mean_obscuring = np.zeros(shares.size), 0.0
    for m in law.minima:
        q, (bias, mass) = float(sampler.q[m]), law.bias(m)
        means += q * bias
        mean_obscuring += q * mass
    return ExpectedOutput(frozen(p), frozen(means[groups]), mean_obscuring)


def _probabilities(distribution: npt.ArrayLike, letters: int) -> Vector:
    p = _checks.floats("distribution", distribution)
    if p.shape != (letters,):
        raise ParameterError(f"distribution has shape {p.shape}; it must be ({letters},).")
    if not np.all((p >= 0) & (p <= 2)) or not abs(p.sum() - 1) <= 1e-9:
        raise ParameterError("distribution must hold probabilities that sum to 1.")
    return p / p.sum()
