"""What is believed of the voters' probabilities, and the weights it gives to the noise function.

The error of DaRRM at p is |1/2 sum over l >= mid of (alpha_l - alpha_{K-l}) (1 - gamma(l))|, with
alpha the law of L (the paper's definition 2.4 and lemma 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, spherical_jn

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.mechanisms.majority.setting import MajoritySetting, fold
from dpopt.prob import binomial_pmf, poisson_binomial_pmf

_MOST_TERMS, _LARGEST_ERROR = 1 << 20, 1e-9
_CHUNK = 1 << 16


@dataclass(frozen=True)
class UniformPrior:
    """p_1, ..., p_K independent, each uniform on a union of intervals.

    Attributes:
        intervals: disjoint (lower, upper) pairs in [0, 1], ascending, each of positive length.
    """

    intervals: tuple[tuple[float, float], ...] = ((0.0, 1.0),)

    def __post_init__(self) -> None:
        if not self.intervals:
            raise ParameterError("prior has no interval; give at least one, such as (0, 1).")
        end, checked = 0.0, []
        for lower, upper in self.intervals:
            lower = _checks.real("prior's lower end", lower, 0.0, 1.0)
            upper = _checks.real("prior's upper end", upper, 0.0, 1.0)
            if not lower < upper:
                raise ParameterError(f"prior has interval [{lower:g}, {upper:g}]; it is empty.")
            if checked and lower < end:
                raise ParameterError("prior's intervals overlap; they must be disjoint, ascending.")
            end = upper
            checked.append((lower, upper))
        object.__setattr__(self, "intervals", tuple(checked))

    @classmethod
    def parse(cls, text: str) -> UniformPrior:
        """Read ``"uniform:0,1"`` or, for a union, ``"uniform:0,0.3,0.7,1"``.

        Raises:
            ParameterError: for any other form, or ends outside [0, 1].
        """
        kind, _, rest = text.partition(":")
        form = "uniform:LOW,HIGH or uniform:LOW,HIGH,LOW,HIGH"
        if kind != "uniform":
            raise ParameterError(f"prior is {text!r}; it must have the form {form}.")
        try:
            ends = [float(part) for part in rest.split(",")]
        except ValueError:
            raise ParameterError(f"prior is {text!r}; it must have the form {form}.") from None
        if len(ends) % 2:
            raise ParameterError(f"prior is {text!r}; it must have the form {form}.")
        return cls(tuple(zip(ends[::2], ends[1::2], strict=True)))

    def __str__(self) -> str:
        """Return the form that `parse` reads."""
        ends = (repr(end).removesuffix(".0") for pair in self.intervals for end in pair)
        return "uniform:" + ",".join(ends)

    @property
    def mean(self) -> float:
        """E p."""
        total = sum(b - a for a, b in self.intervals)
        return sum((b - a) * (a + b) / 2 for a, b in self.intervals) / total

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Vector:
        """Draw independent p's; for experiments, not private."""
        lengths = np.array([b - a for a, b in self.intervals])
        edges = np.concatenate([[0.0], np.cumsum(lengths)])
        u = rng.random(shape) * edges[-1]
        which = np.minimum(np.searchsorted(edges, u, side="right") - 1, lengths.size - 1)
        return np.array([a for a, _ in self.intervals])[which] + (u - edges[which])

    def tilted(self, t: Vector) -> tuple[np.ndarray, np.ndarray]:
        """Return E[p e^{it(p - 1/2)}] and E[(1 - p) e^{it(p - 1/2)}], shape of t."""
        total = sum(b - a for a, b in self.intervals)
        one, zero = np.zeros(t.shape, complex), np.zeros(t.shape, complex)
        for a, b in self.intervals:
            centre, radius = (a + b) / 2, (b - a) / 2
            turn = np.exp(1j * t * (centre - 0.5)) * ((b - a) / total)
            flat = spherical_jn(0, radius * t)
            slope = 1j * radius * spherical_jn(1, radius * t)
            one += turn * (centre * flat + slope)
            zero += turn * ((1 - centre) * flat - slope)
        return one, zero


@dataclass(frozen=True)
class Weights:
    """Linear weights on gamma's upper half.

    Attributes:
        values: shape ((K + 1) / 2,).
        error: a bound on the error of each value from truncating the quadrature; rounding, about
            1e-15, comes on top.
        method: how they were computed.
    """

    values: Vector
    error: float
    method: str


def surrogate_weights(mechanisms: int, prior: UniformPrior | None = None) -> Weights:
    """Return the weights of the paper's objective: 1/2 E[alpha_l - alpha_{K-l}].

    By multi-affinity E alpha is the law of Binomial(K, E p), in closed form. The paper takes p
    uniform on [0.5, 1] (its equation 3 and algorithms 4 and 5), the default here.
    """
    prior = UniformPrior(((0.5, 1.0),)) if prior is None else prior
    return Weights(frozen(0.5 * fold(binomial_pmf(mechanisms, prior.mean))), 0.0, "closed form")


def expected_error_weights(mechanisms: int, prior: UniformPrior) -> Weights:
    """Return c_l = 1/2 E[sign(sum p - K/2) (alpha_l - alpha_{K-l})], l >= (K + 1) / 2.

    sum_l c_l (1 - gamma(l)) is the expected error wherever the error's sign is that of
    sum p - K/2, and a lower bound on it otherwise; `sampled_error` measures the difference.

    E[sign; L = l] = C(K, l) E[sign(sum p_i - K/2) p_1 .. p_l (1 - p_{l+1}) .. (1 - p_K)]; with the
    sign as a square wave of half-period W >= max |sum p - K/2| this is
    C(K, l) (4 / pi) sum over odd k of Im(A_1^l A_0^{K-l})(pi k / W) / k, where A_1 and A_0 are the
    transforms of `UniformPrior.tilted`. |A| <= 2 J / (t w) for J intervals of total length w
    bounds the tail.
    """
    k = _checks.integer("mechanisms", mechanisms, 1)
    low, high = prior.intervals[0][0] - 0.5, prior.intervals[-1][1] - 0.5
    if low >= 0 or high <= 0:
        sign = 1.0 if low >= 0 else -1.0
        return Weights(frozen(sign * 0.5 * fold(binomial_pmf(k, prior.mean))), 0.0, "closed form")
    if k == 1:
        return Weights(frozen([_mean_distance(prior)]), 0.0, "closed form")
    by_count, error = _signed_law(k, prior, k * max(-low, high))
    if error > _LARGEST_ERROR:
        raise ParameterError(
            f"prior is {prior}; its intervals are too narrow for their distance: the expected "
            f"error would be known to {error:.1g} only. Widen them."
        )
    return Weights(frozen(0.5 * fold(by_count)), error, "quadrature")


def _mean_distance(prior: UniformPrior) -> float:
    """Return E|p - 1/2|."""
    total = sum(b - a for a, b in prior.intervals)

    def part(a: float, b: float) -> float:
        return ((b - 0.5) * abs(b - 0.5) - (a - 0.5) * abs(a - 0.5)) / 2

    return sum(part(a, b) for a, b in prior.intervals) / total


def _signed_law(k: int, prior: UniformPrior, width: float) -> tuple[Vector, float]:
    """Return E[sign(sum p - K/2) 1{L = l}] for l = 0..K, and a bound on the truncation error."""
    length = sum(b - a for a, b in prior.intervals)
    decay = 2 * len(prior.intervals) / length * width / math.pi
    log_largest = math.log(math.comb(k, k // 2)) + math.log(2 / (math.pi * k)) + k * math.log(decay)
    enough = math.exp(min((log_largest + 16 * math.log(10)) / k, 60.0)) / 2
    terms = min(_MOST_TERMS, math.ceil(enough) + 8)
    counts = np.arange(k + 1)
    log_choose = gammaln(k + 1) - gammaln(counts + 1) - gammaln(k - counts + 1)
    law = np.zeros(k + 1)
    for start in range(0, terms, _CHUNK):
        odd = 2.0 * np.arange(start, min(terms, start + _CHUNK), dtype=np.float64) + 1.0
        one, zero = prior.tilted(np.asarray(odd * (math.pi / width), dtype=np.float64))
        with np.errstate(divide="ignore"):
            log_one, log_zero = np.log(np.abs(one)), np.log(np.abs(zero))
        for count in range(k + 1):
            size = log_choose[count] + _times(count, log_one) + _times(k - count, log_zero)
            angle = count * np.angle(one) + (k - count) * np.angle(zero)
            law[count] += float(np.sum(np.exp(size) * np.sin(angle) / odd))
    tail = math.exp(min(log_largest - k * math.log(2.0 * terms), 700.0))
    return law * (4 / math.pi), tail


def _times(count: int, log: Vector) -> Vector:
    return count * log if count else np.zeros_like(log)


def linear_error(weights: Weights, gamma: Vector) -> float:
    """Return sum over l >= mid of weights_l (1 - gamma(l))."""
    return float(np.sum(weights.values * (1.0 - gamma[gamma.size // 2 :])))


def sampled_margins(
    mechanisms: int, prior: UniformPrior, rng: np.random.Generator, draws: int = 10_000
) -> np.ndarray:
    """Return 1/2 (alpha_l - alpha_{K-l}) for sampled p, l = (K + 1) / 2..K.

    The error of gamma at the sampled p's is |margins @ (1 - gamma's upper half)|.

    Args:
        mechanisms: K.
        prior: where p is drawn from.
        rng: numpy generator; this is an experiment, not a release.
        draws: number of p's, at least 1.

    Returns:
        Shape (draws, (K + 1) / 2).
    """
    draws = _checks.integer("draws", draws, 1)
    return 0.5 * fold(poisson_binomial_pmf(prior.sample((draws, mechanisms), rng)))


def sampled_error(
    setting: MajoritySetting,
    gamma: Vector,
    prior: UniformPrior,
    rng: np.random.Generator,
    draws: int = 10_000,
) -> tuple[float, float]:
    """Return mean and standard error of |error(p)| over sampled p, by definition 2.4.

    Args:
        setting: the voters.
        gamma: noise function on 0..K.
        prior: where p is drawn from.
        rng: numpy generator; this is an experiment, not a release.
        draws: number of p's, at least 2.
    """
    draws = _checks.integer("draws", draws, 2)
    margins = sampled_margins(setting.mechanisms, prior, rng, draws)
    errors = np.abs(margins @ (1.0 - gamma[setting.middle :]))
    return float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(draws))
