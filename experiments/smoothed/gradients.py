"""Quantised gradients, databases of them, and the published estimate of their delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpopt.prob.batches import BatchDistribution, batch_distribution
from experiments.arrays import Floats, Ints

_LOWEST, _HIGHEST = -127, 128


@dataclass(frozen=True)
class QuantisedGradient:
    """A gradient rounded up to a multiple of 1/256 in (-1/2, 1/2], given that it lies there.

    Value v, from -127 to 128, represents the interval ((v - 1) / 256, v / 256]. The paper's
    Definition 5 names the same intervals by their lower ends. That moves all values by one and
    does not change delta.
    It does not say what the sigma of a Laplace distribution is; here it is the standard deviation
    before quantisation, so the scale is sigma / sqrt(2).

    Attributes:
        mean: mu, before quantisation.
        deviation: sigma > 0, the standard deviation before quantisation.
        family: "gaussian" or "laplace".

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 5 (Appendix G.1).
    """

    mean: float
    deviation: float
    family: str = "gaussian"

    @property
    def values(self) -> Ints:
        """All values in ascending order, shape (256,)."""
        return np.arange(_LOWEST, _HIGHEST + 1)

    @property
    def probabilities(self) -> Floats:
        """The probability of each value, shape (256,)."""
        scaled = (np.arange(_LOWEST - 1, _HIGHEST + 1) / 256 - self.mean) / self.deviation
        # Each interval as a difference of the tails on its own side of the mean.
        left, right = scaled[:-1], scaled[1:]
        masses = np.where(
            left >= 0,
            self._below(-left) - self._below(-right),
            self._below(right) - self._below(left),
        )
        return masses / masses.sum()

    def _below(self, scaled: Floats) -> Floats:
        """Return the probability below the mean plus ``scaled`` standard deviations."""
        if self.family == "gaussian":
            return np.asarray(ndtr(scaled))
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(scaled))
        return np.where(scaled <= 0, tail, 1.0 - tail)

    def sample(self, size: int, rng: np.random.Generator) -> Ints:
        """Return independent values, shape (size,); for experiments, not private."""
        return rng.choice(self.values, size=size, p=self.probabilities)


def drawn_counts(
    values: Ints,
    drawn: int,
    draws: int,
    rng: np.random.Generator,
    *,
    lowest: int = _LOWEST,
    highest: int = _HIGHEST,
    rounded: bool = True,
) -> Ints:
    """Return how often each output is drawn from a database and its two published neighbours.

    A record of the least value is moved to ``highest``, or one of the largest to ``lowest``.
    Counts of independent draws are multinomial, so they are drawn as such from the exact
    distribution of a batch, which takes no longer for 1e12 draws than for ten.

    Shape (3, outputs); drawn and rounded are those of `dpopt.smoothed.sgd_profile`.
    """
    pmfs = _two_neighbours(values, drawn, lowest, highest, rounded=rounded)
    first = min(pmf.lowest for pmf in pmfs)
    counts = np.zeros((3, max(int(pmf.outputs[-1]) for pmf in pmfs) - first + 1), dtype=np.int64)
    for row, pmf in zip(counts, pmfs, strict=True):
        row[pmf.outputs - first] = rng.multinomial(draws, pmf.probabilities)
    return counts


def monte_carlo_delta(counts: Ints, epsilon: float, draws: int) -> float:
    """Return the published kind of estimate of delta(x), which is biased upwards.

    It is the largest hockey-stick between the frequencies of `drawn_counts`. A hockey-stick is
    convex, so by Jensen's inequality the estimate is too large on average for these neighbours: at
    an output that x hardly ever produces, a single draw counts as 1 / draws against nothing. Other
    neighbours it does not see. Use `sgd_profile` for delta itself.
    """
    return _largest_stick(counts / draws, epsilon)


def of_two_neighbours(
    values: Ints,
    drawn: int,
    epsilons: Sequence[float],
    low: int = _LOWEST,
    high: int = _HIGHEST,
) -> list[float]:
    """Return the largest divergence of the two neighbours on which published estimates are based.

    A record of the least value is at ``high``, or one of the largest value at ``low``.
    """
    pmfs = _two_neighbours(values, drawn, low, high, rounded=True)
    rows = np.array([pmf.over(low, high - low + 1) for pmf in pmfs])
    return [_largest_stick(rows, epsilon) for epsilon in epsilons]


def moved(values: Ints, replaced: int, replacement: int) -> Ints:
    """Return the database with the first record of a value replaced."""
    other = values.copy()
    other[int(np.argmax(other == replaced))] = replacement
    return other


def _two_neighbours(
    values: Ints, drawn: int, lowest: int, highest: int, *, rounded: bool
) -> list[BatchDistribution]:
    """Return the distributions of a batch of x and of its two published neighbours."""
    neighbours = (moved(values, values.min(), highest), moved(values, values.max(), lowest))
    return [batch_distribution(each, drawn, rounded=rounded) for each in (values, *neighbours)]


def _largest_stick(rows: Floats, epsilon: float) -> float:
    """Return the largest hockey-stick between the first row and another, in both directions."""
    own, *others = rows
    pairs = [pair for other in others for pair in ((own, other), (other, own))]
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in pairs)
