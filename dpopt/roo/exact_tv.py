"""Law of the released letter under a distribution of the records: exact, without sampling draws.

With M the smallest of the counts, Pr(Y = y) - P(y) = E[q_M (1/k - c_y / n)].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector, frozen
from dpopt.prob.minimum_law import MinimumLaw
from dpopt.roo.floor import SmoothFloorSampler
from dpopt.roo.minimum import MinCountSampler

IntMatrix = npt.NDArray[np.int64]

_LARGEST_RECORDS = 10**7
_MOST_LETTERS = 10**5
_MOST_COUNTS = 1_000_000
_CHUNK = 1 << 15


@dataclass(frozen=True)
class ExpectedOutput:
    """What a sampler releases when its records are drawn from P.

    Attributes:
        distribution: P, shape (k,).
        difference: Pr(Y = y) - P(y), shape (k,).
        mean_obscuring: E[q_M], the probability of a uniform letter; for a smooth floor
            E[(Z - n) / Z], that of a letter for what the floor lifts it by.
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


def expected_output(
    sampler: MinCountSampler | SmoothFloorSampler, distribution: npt.ArrayLike
) -> ExpectedOutput:
    """Return the law of the released letter for n records drawn independently from P.

    For a smooth floor it is the sum over all counts, of which there may be at most 1e6.

    Letters of the same probability are convolved together. Sums are cut where what is left out is
    below 1e-18 k E[q_M] for a q_m that does not increase; rounding is of the order of
    1e-13 E[q_M]. What is below 1e-280 is returned as 0. Milliseconds for n = 1,000; the time grows
    with the number of m that matter and with the square of the width of the counts' laws.

    Args:
        sampler: any rule in the smallest count, private or not; n at most 1e7, k at most 1e5; or
            a smooth floor of a small n and k.
        distribution: P, shape (k,): probabilities that sum to 1 within 1e-9.

    Raises:
        ParameterError: for another shape, another sum, or a larger n or k.
    """
    if isinstance(sampler, SmoothFloorSampler):
        return _of_floor(sampler, _probabilities(distribution, sampler.setting.letters))
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


def floor_laws(sampler: SmoothFloorSampler) -> Iterator[tuple[IntMatrix, Matrix, Vector]]:
    """Yield all counts in parts, the law of the letter given them, and 1 - n / Z.

    Shapes (part, k), (part, k) and (part,).

    Raises:
        ParameterError: if there are more than 1e6 counts.
    """
    n, k = sampler.setting.records, sampler.setting.letters
    if max(n, k) > _MOST_COUNTS or comb(n + k - 1, k - 1) > _MOST_COUNTS:
        raise ParameterError(
            f"records is {n} over {k} letters; a smooth floor is summed over all counts, of which "
            f"there may be at most {_MOST_COUNTS:,}."
        )
    table = np.arange(n + 1, dtype=float)
    low = min(n + 1, sampler.floor.size)
    table[:low] = sampler.floor[:low]
    bars = combinations(range(n + k - 1), k - 1)
    while part := list(islice(bars, _CHUNK)):
        edges = np.full((len(part), k + 1), -1)
        edges[:, 1:-1], edges[:, -1] = np.array(part), n + k - 1
        counts = np.diff(edges, axis=1) - 1
        weights = table[counts]
        total = weights.sum(axis=1)
        lifted = (weights - counts).sum(axis=1) / total
        yield counts, weights / total[:, None], lifted


def _of_floor(sampler: SmoothFloorSampler, p: Vector) -> ExpectedOutput:
    n, difference, mean, mass = sampler.setting.records, np.zeros(p.size), 0.0, 0.0
    for counts, laws, lifted in floor_laws(sampler):
        logs = gammaln(n + 1) + (xlogy(counts, p) - gammaln(counts + 1)).sum(axis=1)
        chances = np.exp(logs)
        difference += chances @ (laws - counts / n)
        mean += float(chances @ lifted)
        mass += float(chances.sum())
    return ExpectedOutput(frozen(p), frozen(difference / mass), mean / mass)


def _probabilities(distribution: npt.ArrayLike, letters: int) -> Vector:
    p = _checks.floats("distribution", distribution)
    if p.shape != (letters,):
        raise ParameterError(f"distribution has shape {p.shape}; it must be ({letters},).")
    if not np.all((p >= 0) & (p <= 2)) or not abs(p.sum() - 1) <= 1e-9:
        raise ParameterError("distribution must hold probabilities that sum to 1.")
    return p / p.sum()
