"""Quantised gradients, databases of them, and the published estimate of their delta."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpopt import ParameterError
from dpopt.prob.batches import batch_distribution
from experiments.arrays import Floats, Ints

_FAMILIES = {"gaussian": "N", "laplace": "L"}


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

    def __post_init__(self) -> None:
        if not self._masses().sum() > 0:
            raise ParameterError(
                f"mean is {self.mean} and deviation {self.deviation}; the distribution must have "
                "mass in (-1/2, 1/2] that a double can hold."
            )

    @property
    def values(self) -> Ints:
        """All values in ascending order, shape (256,)."""
        return np.arange(-127, 129)

    @property
    def probabilities(self) -> Floats:
        """The probability of each value, shape (256,)."""
        masses = self._masses()
        return masses / masses.sum()

    def _masses(self) -> Floats:
        edges = np.arange(-128, 129) / 256
        with np.errstate(over="ignore"):
            scaled = (edges - self.mean) / self.deviation
        # Each interval as a difference of the tails on its own side of the mean.
        left, right = scaled[:-1], scaled[1:]
        return np.where(
            left >= 0,
            self._below(-left) - self._below(-right),
            self._below(right) - self._below(left),
        )

    def _below(self, scaled: Floats) -> Floats:
        """Return the probability below the mean plus ``scaled`` standard deviations."""
        if self.family == "gaussian":
            return np.asarray(ndtr(scaled))
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(scaled))
        return np.where(scaled <= 0, tail, 1.0 - tail)

    def sample(self, size: int, rng: np.random.Generator) -> Ints:
        """Return independent values, shape (size,); for experiments, not private."""
        return rng.choice(self.values, size=size, p=self.probabilities)


@dataclass(frozen=True)
class Gradients:
    """A set Pi of distributions of one gradient.

    Attributes:
        label: what figures and tables call it.
        members: the distributions.
    """

    label: str
    members: tuple[QuantisedGradient, ...]

    def sample(self, composition: Sequence[int], rng: np.random.Generator) -> Ints:
        """Return x ~ pi with ``composition[j]`` records from the j-th member, shape (n,)."""
        counted = zip(self.members, composition, strict=True)
        return np.concatenate([member.sample(count, rng) for member, count in counted])


def gradients(*sets: tuple[QuantisedGradient, ...]) -> tuple[Gradients, ...]:
    """Return sets with their labels; several are numbered, as the paper numbers its settings."""
    labels = [", ".join(map(_label, members)) for members in sets]
    if len(sets) > 1:
        labels = [f"{number}: {label}" for number, label in enumerate(labels, start=1)]
    return tuple(map(Gradients, labels, sets))


def _label(member: QuantisedGradient) -> str:
    """Return a distribution as the paper prints it, without a 0 before the point."""
    mean, deviation = (f"{number:g}" for number in (member.mean, member.deviation))
    mean, deviation = (re.sub(r"^(-?)0\.", r"\1.", text) for text in (mean, deviation))
    return f"{_FAMILIES[member.family]}({mean}, {deviation}²)"


def drawn_counts(
    values: Ints,
    drawn: int,
    draws: int,
    rng: np.random.Generator,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> Ints:
    """Return how often each output is drawn from a database and its two published neighbours.

    A record of the least value is moved to ``highest``, or one of the largest to ``lowest``.
    Counts of independent draws are multinomial, so they are drawn as such from the exact
    distribution of a batch, which takes no longer for 1e12 draws than for ten.

    Shape (3, outputs); drawn and rounded are those of `dpopt.smoothed.sgd_profile`.
    """
    neighbours = (moved(values, values.min(), highest), moved(values, values.max(), lowest))
    pmfs = [batch_distribution(each, drawn, rounded=rounded) for each in (values, *neighbours)]
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
    own, *others = counts / draws
    pairs = [pair for other in others for pair in ((own, other), (other, own))]
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in pairs)


def moved(values: Ints, replaced: int, replacement: int) -> Ints:
    """Return the database with the first record of a value replaced."""
    other = values.copy()
    other[int(np.argmax(other == replaced))] = replacement
    return other


def of_two_neighbours(
    values: np.ndarray, drawn: int, epsilons: Sequence[float], low: int = -127, high: int = 128
) -> list[float]:
    """Return the largest divergence of the two neighbours on which published estimates are based.

    A record of the least value is at ``high``, or one of the largest value at ``low``.
    """
    raised, lowered = values.copy(), values.copy()
    raised[values.argmin()], lowered[values.argmax()] = high, low
    own, *others = (
        batch_distribution(each, drawn, rounded=True).over(low, high - low + 1)
        for each in (values, raised, lowered)
    )
    pairs = [pair for other in others for pair in ((own, other), (other, own))]
    return [
        max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in pairs)
        for epsilon in epsilons
    ]
