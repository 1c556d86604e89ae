"""Quantised gradients, databases of them, and the published estimate of their delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpopt import ParameterError
from dpopt.prob.batches import BatchLaw, as_values, batch_law
from experiments.smoothed.arrays import IntVector, Vector


@dataclass(frozen=True)
class QuantisedGradient:
    """A gradient rounded up to a multiple of 2^-bits in (-1/2, 1/2], given that it lies there.

    Value v, from 1 - 2^(bits-1) to 2^(bits-1), stands for ((v - 1) 2^-bits, v 2^-bits]; for 8 bits
    from -127 to 128. The paper's Definition 5 names the same intervals by their lower ends, which
    moves all values by one and leaves delta as it is. It does not say what the sigma of a Laplace
    distribution is; here it is the standard deviation before quantisation, so the scale is
    sigma / sqrt(2).

    Attributes:
        mean: mu, before quantisation.
        deviation: sigma > 0, the standard deviation before quantisation.
        family: "gaussian" or "laplace".
        bits: from 1 to 16.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 5 (Appendix G.1).
    """

    mean: float
    deviation: float
    family: str = "gaussian"
    bits: int = 8

    def __post_init__(self) -> None:
        if not self._masses().sum() > 0:
            raise ParameterError(
                f"mean is {self.mean} and deviation {self.deviation}; the distribution must have "
                "mass in (-1/2, 1/2] that a double can hold."
            )

    @property
    def lowest(self) -> int:
        """The least value."""
        return 1 - (1 << (self.bits - 1))

    @property
    def highest(self) -> int:
        """The largest value."""
        return 1 << (self.bits - 1)

    @property
    def values(self) -> IntVector:
        """All values in ascending order, shape (2^bits,)."""
        return np.arange(self.lowest, self.highest + 1)

    @property
    def probabilities(self) -> Vector:
        """The probability of each value, shape (2^bits,)."""
        masses = self._masses()
        return masses / masses.sum()

    def _masses(self) -> Vector:
        edges = np.arange(self.lowest - 1, self.highest + 1) / (1 << self.bits)
        with np.errstate(over="ignore"):
            scaled = (edges - self.mean) / self.deviation
        # Each interval as a difference of the tails on its own side of the mean.
        left, right = scaled[:-1], scaled[1:]
        return np.where(
            left >= 0,
            self._below(-left) - self._below(-right),
            self._below(right) - self._below(left),
        )

    def _below(self, scaled: Vector) -> Vector:
        """Return the probability below the mean plus ``scaled`` standard deviations."""
        if self.family == "gaussian":
            return np.asarray(ndtr(scaled))
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(scaled))
        return np.where(scaled <= 0, tail, 1.0 - tail)

    def sample(self, size: int, rng: np.random.Generator) -> IntVector:
        """Return independent values, shape (size,); for experiments, not private."""
        return rng.choice(self.values, size=size, p=self.probabilities)


def sample_database(
    gradients: Sequence[QuantisedGradient], composition: Sequence[int], rng: np.random.Generator
) -> IntVector:
    """Return x ~ pi with ``composition[j]`` records from ``gradients[j]``, shape (n,).

    Raises:
        ParameterError: if the two differ in length, a count is below 0, or there is no record.
    """
    if len(gradients) != len(composition):
        raise ParameterError(
            f"composition has {len(composition)} counts for {len(gradients)} distributions; "
            "there must be one for each."
        )
    if sum(composition) == 0:
        raise ParameterError("composition holds no record; at least one must be above 0.")
    parts = [g.sample(count, rng) for g, count in zip(gradients, composition, strict=True)]
    return np.concatenate(parts)


def monte_carlo_delta(
    values: npt.ArrayLike,
    drawn: int,
    epsilon: float,
    draws: int,
    rng: np.random.Generator,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> float:
    """Return the published kind of estimate of delta(x), which is biased upwards.

    Batches of x and of two neighbours are drawn (a record of the least value moved to ``highest``,
    one of the largest to ``lowest``), their outputs counted, and the largest hockey-stick between
    the frequencies returned. A hockey-stick is convex, so by Jensen's inequality the estimate is
    too large on average for these neighbours: at an output that x hardly ever produces, a single
    draw counts as 1 / draws against nothing. Other neighbours it does not see. Use `sgd_profile`
    for delta itself; this is here to measure the bias.

    The counts of independent draws are multinomial; they are drawn as such from the exact law of a
    batch, which is the same distribution and takes no longer for 1e12 draws than for ten.

    Args:
        values: as in `dpopt.smoothed.sgd_profile`, likewise drawn and rounded.
        drawn: T.
        epsilon: from 0 to 700, in nats.
        draws: number of batches drawn from each of the three databases, from 1 to 1e15.
        rng: numpy's generator, seeded by the caller.
        lowest: replacement of the largest value.
        highest: replacement of the least value.
        rounded: True for the rounded mean.

    Raises:
        ParameterError: if the law of a batch is too large a table.
    """
    x = as_values(values)
    others_ = moved(x, int(x.min()), highest), moved(x, int(x.max()), lowest)
    own, *others = (
        BatchLaw(law.lowest, rng.multinomial(draws, law.probabilities) / draws)
        for law in (batch_law(values, drawn, rounded=rounded) for values in (x, *others_))
    )
    largest = 0.0
    for other in others:
        first = min(own.lowest, other.lowest)
        count = max(int(law.outputs[-1]) for law in (own, other)) - first + 1
        p, q = own.over(first, count), other.over(first, count)
        for one, two in ((p, q), (q, p)):
            stick = np.maximum(one - math.exp(epsilon) * two, 0.0).sum()
            largest = max(largest, float(stick))
    return largest


def moved(values: IntVector, replaced: int, replacement: int) -> IntVector:
    """Return the database with the first record of a value replaced."""
    other = values.copy()
    other[int(np.argmax(other == replaced))] = replacement
    return other
