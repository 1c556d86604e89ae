"""The sampling-histogram with exponential-mechanism noise, and what it guarantees (App. A.3)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from dpopt.prob.histograms import (
    checked_histograms,
    histogram_count,
    histograms,
    replacements,
)
from dpopt.smoothed.mechanisms import LARGEST_ENTRIES, AnonymousMechanism, SamplingHistogram, settle


@dataclass(frozen=True)
class NoisyHistogram(AnonymousMechanism):
    """Draw T of n records, publish y with weight e^(-epsilon/4 |hist - y|_1) (Algorithm 4).

    y runs over vectors of integers of at least 0, so that each coordinate of the noise is
    independent: with r = e^(-epsilon/4), Pr[y | h] = r^|h - y| / Z(h), Z(h) = (1 + r - r^(h+1)) /
    (1 - r). A drawn count is at most T; from y = T on the distribution falls by the factor r
    whatever h, so the outputs y >= T of a coordinate are merged into one: the ratio of two
    databases is the same on all of them, and no divergence changes.

    Attributes:
        records: n.
        drawn: T, from 1 to n, without replacement.
        epsilon: of the noise, above 0 and at most 600; the noise level is 1 / epsilon.
        categories: m, at least 2.
    """

    records: int
    drawn: int
    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        sampling = SamplingHistogram(self.records, self.drawn, self.categories)
        n, drawn, m = sampling.records, sampling.drawn, sampling.categories
        settle(self, records=n, drawn=drawn, categories=m)

    @property
    def outputs(self) -> int:
        """(T + 1)^m: each coordinate is 0, ..., T - 1, or T and more; of m > 64, that of 64."""
        # More than anybody lists; a power of 10^12 categories would take for ever to be written.
        return (self.drawn + 1) ** min(self.categories, 64)

    @cached_property
    def _noise(self) -> npt.NDArray[np.float64]:
        """Pr[y | h], shape (drawn histograms, outputs)."""
        drawn = histogram_count(self.drawn, self.categories)
        if drawn * self.outputs > LARGEST_ENTRIES:
            raise ParameterError(
                f"drawn is {self.drawn} over {self.categories} categories: the table of the noise "
                f"would hold {drawn * self.outputs:,} entries, more than {LARGEST_ENTRIES:,}."
            )
        table = histograms(self.drawn, self.categories)
        coordinate = coordinate_pmf(self.drawn, self.epsilon)
        pmf = np.ones((drawn, 1))
        for c in range(self.categories):
            pmf = (pmf[:, :, None] * coordinate[table[:, c]][:, None, :]).reshape(drawn, -1)
        return pmf

    def pmfs(self, histograms: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return pmfs over the (T + 1)^m outputs, the last coordinate fastest.

        See `AnonymousMechanism.pmfs`.
        """
        rows = checked_histograms(histograms, self.records, self.categories)
        sampling = SamplingHistogram(self.records, self.drawn, self.categories)
        return sampling.pmfs(rows) @ self._noise

    def to_dict(self) -> dict[str, object]:
        """Return the parameters as plain values."""
        return {"mechanism": "noisy-histogram", **asdict(self)}


def coordinate_pmf(drawn: int, epsilon: float) -> npt.NDArray[np.float64]:
    """Return Pr[y | h] of one coordinate for h = 0..T and y = 0..T, the last y for T or more."""
    r, h = math.exp(-epsilon / 4.0), np.arange(drawn + 1)
    pmf = r ** np.abs(h[:, None] - h[None, :])
    pmf[:, -1] /= -math.expm1(-epsilon / 4.0)
    return pmf / pmf.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class NoisyGuarantee:
    """Bounds in closed form for the pure DP of `NoisyHistogram`; eta = T / n.

    Replacing a drawn record changes the weights by at most r^-2 = e^(epsilon/2), and Z(h_a - 1)
    Z(h_b + 1) / (Z(h_a) Z(h_b)) is largest at h_a = T, h_b = 0, so that the noise has

        eps' = epsilon/2 + ln(1 + r - r^2) + ln((1 + r - r^T) / (1 + r - r^(T+1))),

    in [epsilon/2, 3 epsilon/4], as r - r^2 <= 1 - r <= epsilon/4. The record is drawn with
    probability eta, hence ``amplified``. It is at most eta epsilon

    - for every epsilon if eta >= 1/2: f(eta) = e^(eta epsilon) - 1 - eta (e^eps' - 1) is convex
      with f(0) = 0, and f(1/2) >= r^-2 (1 - (1 + r) / 2) >= 0;
    - for every eta if e^eps' <= 1 + epsilon, as then f'(0) >= 0.

    For every eta < 1/2 the claim of Table 1 fails from some epsilon on: where x has n equal records
    and x' another one, M(x') draws (T - 1, 1) with probability eta and (T, 0) otherwise; the
    largest ratios of M(x') to M(x) and back are 1 + eta (e^(epsilon - eps') - 1), about
    eta e^(epsilon/2), and 1 / (1 - eta + eta e^-eps').

    Attributes:
        claimed: eta epsilon, of Table 1.
        noise: the least epsilon of the noise alone, eps'.
        amplified: ln(1 + eta (e^eps' - 1)), which the mechanism satisfies: sampling amplifies.
        attained: the largest log ratio of the databases of n equal records and their neighbours;
            the mechanism satisfies nothing below it.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Table 1 and Appendix A.3.
    """

    claimed: float
    noise: float
    amplified: float
    attained: float

    @property
    def holds(self) -> bool | None:
        """Whether the claim is true; None if neither bound decides it."""
        if self.amplified <= self.claimed:
            return True
        return False if self.attained > self.claimed else None


def noisy_guarantee(mechanism: NoisyHistogram) -> NoisyGuarantee:
    """Return bounds on the pure DP of a noisy sampling-histogram of any size.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Table 1 and Appendix A.3.
    """
    epsilon, drawn = mechanism.epsilon, mechanism.drawn
    eta, r = drawn / mechanism.records, math.exp(-epsilon / 4.0)
    # (1 + r - r^T) / (1 + r - r^(T+1)) is 1 - x.
    x = r**drawn * -math.expm1(-epsilon / 4.0) / (1.0 + r - r ** (drawn + 1))
    noise = epsilon / 2.0 + math.log1p(r * -math.expm1(-epsilon / 4.0)) + math.log1p(-x)
    amplified = math.log1p(eta * math.expm1(noise))
    upward = math.log1p(eta * math.expm1(epsilon - noise))
    kept = (mechanism.records - drawn) / mechanism.records + eta * math.exp(-noise)
    downward = -math.log(kept) if kept < 0.5 else -math.log1p(eta * math.expm1(-noise))
    attained, claimed = max(upward, downward), eta * epsilon
    return NoisyGuarantee(claimed, noise, amplified, attained)


def least_epsilon(mechanism: AnonymousMechanism) -> npt.NDArray[np.float64]:
    """Return the least epsilon with delta(x) = 0 of every database, in the order of `histograms`.

    It is the largest |ln(P / P')| over neighbours x' and outputs, and infinite if an output is
    possible for one of x and x' only.
    """
    table = histograms(mechanism.records, mechanism.categories)
    pmfs, largest = mechanism.pmfs(table), np.zeros(len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(pmfs)
        for pair in replacements(table).tolist():
            # Where both are 0 the difference is no number.
            gap = np.nanmax(np.abs(logs[pair[0]] - logs[pair[1]]))
            largest[pair] = np.maximum(largest[pair], gap)
    return largest
