"""Objectives of a noise function under a prior: linear weights, expected errors, worst cases.

The error of DaRRM at p is |1/2 sum_l (alpha_l - alpha_{K-l}) (1 - gamma(l))| over l >= (K + 1) / 2,
with alpha the distribution of L (the paper's definition 2.4 and lemma 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector, frozen
from dpopt.lp import Separation, make_rows
from dpopt.majority.priors import (
    BetaPrior,
    CommonPrior,
    IndependentPrior,
    PointPrior,
    Prior,
    PriorLike,
    RecordedPrior,
    SamplePrior,
    UniformPrior,
    parse_prior,
)
from dpopt.majority.voters import fold, noise_levels, odd
from dpopt.prob import binomial_pmf, poisson_binomial_pmf

# Terms of the sine series, and its largest truncation error: beyond, sample or refuse.
_MOST_TERMS, _LARGEST_ERROR = 1 << 20, 1e-9
# Terms of the series held in memory at once.
_CHUNK = 1 << 16
# Expectations without a formula are averages over this many draws of a fixed seed.
_DRAWS, _SEED = 100_000, 5


@dataclass(frozen=True)
class Weights:
    """Weights c of a linear objective sum_l c_l gamma(l) over gamma's upper half.

    Attributes:
        values: c, shape ((K + 1) / 2,).
        error: a bound on the truncation error of each value (rounding adds about 1e-15); for
            samples, the largest standard error of a value.
        method: "closed form", "quadrature" or the number of samples.
    """

    values: Vector
    error: float
    method: str


def surrogate_weights(voters: int, prior: PriorLike | None = None) -> Weights:
    """Return the weights of the paper's objective: 1/2 E[alpha_l - alpha_{K-l}].

    The default prior is the paper's, p uniform on [0.5, 1] (equation 3, algorithms 4 and 5). alpha
    is affine in each p_i, so for independent p_i E alpha is the pmf of Binomial(K, E p). A common p
    has a closed form too; other priors are averaged over samples.

    Args:
        voters: K, odd.
        prior: of the voters' p.
    """
    k = odd(voters)
    prior = UniformPrior(((0.5, 1.0),)) if prior is None else parse_prior(prior)
    if isinstance(prior, CommonPrior):
        pmf = prior.base.binomial(k)
    elif isinstance(prior, IndependentPrior):
        pmf = binomial_pmf(k, prior.mean)
    else:
        return _averaged(k, prior, signed=False)
    return Weights(frozen(0.5 * fold(pmf)), 0.0, "closed form")


def expected_error_weights(voters: int, prior: PriorLike) -> Weights:
    """Return c_l = 1/2 E[sign(sum p - K/2) (alpha_l - alpha_{K-l})], l >= (K + 1) / 2.

    sum_l c_l (1 - gamma(l)) is the expected error if the error always has the sign of sum p - K/2
    (as for a common p), and a lower bound on it otherwise; a `SamplePrior` gives the gap.

    For i.i.d. p_i the sign as a square wave of half-period W >= max |sum p - K/2| gives
    C(K, l) (4 / pi) sum over odd k of Im(A_1^l A_0^{K-l})(pi k / W) / k for E[sign; L = l], where
    A_1 and A_0 are the transforms `tilted` of the prior; |A(t)| <= v / t, with v its `variation`,
    bounds the tail. For a common p the weight is a difference of incomplete beta functions. Other
    priors, and those whose transforms decay too slowly, are averaged over samples.

    Args:
        voters: K, odd.
        prior: of the voters' p.

    Raises:
        ParameterError: if the intervals of a uniform prior are too narrow for the quadrature.
    """
    k, prior = odd(voters), parse_prior(prior)
    if isinstance(prior, CommonPrior):
        return Weights(frozen(0.5 * fold(prior.base.binomial(k, signed=True))), 0.0, "closed form")
    if not isinstance(prior, IndependentPrior):
        return _averaged(k, prior, signed=True)
    low, high = prior.reach[0] - 0.5, prior.reach[1] - 0.5
    if low >= 0 or high <= 0:
        sign = 1.0 if low >= 0 else -1.0
        return Weights(frozen(sign * 0.5 * fold(binomial_pmf(k, prior.mean))), 0.0, "closed form")
    if k == 1:
        # One voter has a common p.
        return Weights(frozen(0.5 * fold(prior.binomial(1, signed=True))), 0.0, "closed form")
    width = k * max(-low, high)
    terms, log_largest = _terms(k, prior, width)
    error = math.exp(min(log_largest - k * math.log(2.0 * terms), 700.0))
    if terms == _MOST_TERMS or (isinstance(prior, BetaPrior) and not prior.within(terms / width)):
        if not isinstance(prior, UniformPrior):
            return _averaged(k, prior, signed=True)
        if error > _LARGEST_ERROR:
            raise ParameterError(
                f"prior is {prior}; its intervals are too narrow for their distance: the expected "
                f"error would be known to {error:.1g} only. Widen them."
            )
    pmf = _signed_pmf(k, prior, width, terms)
    return Weights(frozen(0.5 * fold(pmf)), error, "quadrature")


def margins_at(points: Matrix) -> Matrix:
    """Return 1/2 (alpha_l - alpha_{K-l}) at points, shape (points, (K + 1) / 2)."""
    return 0.5 * fold(poisson_binomial_pmf(points))


def _points(k: int, prior: Prior) -> Matrix:
    """Return the points or samples of a prior, or draws from it, shape (points, k)."""
    listed = isinstance(prior, SamplePrior | PointPrior)
    drawn = prior.sample((1 if listed else _DRAWS, k), np.random.default_rng(_SEED))
    return prior.samples if isinstance(prior, SamplePrior) else drawn


def _averaged(k: int, prior: Prior, *, signed: bool) -> Weights:
    """Return the mean margins at the prior's points, times sign(sum p - K/2) if ``signed``."""
    points = _points(k, prior)
    values = margins_at(points)
    if signed:
        values *= np.where(points.sum(axis=1) >= k / 2, 1.0, -1.0)[:, None]
    count = len(values)
    if count == 1:
        return Weights(frozen(values[0]), 0.0, "closed form")
    error = float(np.max(values.std(axis=0, ddof=1))) / math.sqrt(count)
    return Weights(frozen(values.mean(axis=0)), error, f"{count:,} samples")


@dataclass(frozen=True)
class ErrorEstimate:
    """An expected error.

    Attributes:
        value: E |error(p)|.
        standard_error: of the value; 0 if it does not come from samples.
        method: how it was computed.
    """

    value: float
    standard_error: float
    method: str


def expected_error(gamma: Vector, prior: PriorLike) -> ErrorEstimate:
    """Return E |error(p)| of a noise function under a prior.

    It is sum_l c_l (1 - gamma(l)) if the weights `expected_error_weights` are exact, else the mean
    of |error(p)| over the prior's samples, which is exact for a `PointPrior`.

    Args:
        gamma: on 0..K, shape (K + 1,).
        prior: of the voters' p.

    Raises:
        ParameterError: for another shape, or values outside [-1, 1].
    """
    gamma = _checks.floats("gamma", gamma)
    if gamma.ndim != 1 or gamma.size % 2:
        raise ParameterError(
            f"gamma has shape {gamma.shape}; it must hold K + 1 noise levels, K odd."
        )
    gamma = noise_levels(gamma, -1.0)
    k, prior = gamma.size - 1, parse_prior(prior)
    weights, noise = expected_error_weights(k, prior), 1.0 - gamma[(k + 1) // 2 :]
    if weights.method in ("closed form", "quadrature") and not isinstance(prior, PointPrior):
        return ErrorEstimate(float(np.sum(weights.values * noise)), 0.0, weights.method)
    errors = np.abs(margins_at(_points(k, prior)) @ noise)
    if errors.size == 1:
        return ErrorEstimate(float(errors[0]), 0.0, weights.method)
    spread = float(errors.std(ddof=1)) / math.sqrt(errors.size)
    return ErrorEstimate(float(errors.mean()), spread, weights.method)


@dataclass(frozen=True)
class Regret:
    """The regret of a noise function under one of several priors, as in "least-regret".

    It is the loss against the best private one, in units of the error of a fair coin.

    Attributes:
        prior: its text form.
        error: the expected error of the noise function, sum_l c_l (1 - gamma(l)) with the weights
            c of `expected_error_weights`.
        best: a lower bound on the expected error of every private noise function, from the dual
            solution of this prior's program.
        coin: the expected error of a fair coin, gamma = 0.
        regret: (error - best) / coin.
    """

    prior: str
    error: float
    best: float
    coin: float
    regret: float


def _terms(k: int, prior: IndependentPrior, width: float) -> tuple[int, float]:
    """Return the number of terms for a tail below 1e-16, and the log of the tail's constant."""
    if not math.isfinite(prior.variation):
        return _MOST_TERMS, math.inf
    log_largest = math.log(math.comb(k, k // 2)) + math.log(2 / (math.pi * k))
    log_largest += k * math.log(prior.variation * width / math.pi)
    terms = math.exp(min((log_largest + 16 * math.log(10)) / k, 60.0)) / 2
    return min(_MOST_TERMS, math.ceil(terms) + 8), log_largest


def _signed_pmf(k: int, prior: IndependentPrior, width: float, terms: int) -> Vector:
    """Return E[sign(sum p - K/2) 1{L = l}] for l = 0..K."""
    counts = np.arange(k + 1)
    log_choose = gammaln(k + 1) - gammaln(counts + 1) - gammaln(k - counts + 1)
    pmf = np.zeros(k + 1)
    # The inner arrays run over a chunk of the odd frequencies; terms are added in logarithms.
    for start in range(0, terms, _CHUNK):
        frequencies = 2.0 * np.arange(start, min(terms, start + _CHUNK), dtype=np.float64) + 1.0
        one, zero = prior.tilted(np.asarray(frequencies * (math.pi / width), dtype=np.float64))
        # A power 0 of 0 is 1: no logarithm is infinite.
        log_one, log_zero = np.log(one + 1e-300), np.log(zero + 1e-300)
        for count in range(k + 1):
            powers = np.exp(log_choose[count] + count * log_one + (k - count) * log_zero)
            pmf[count] += float(np.sum(powers.imag / frequencies))
    return pmf * (4 / math.pi)


class WorstCase:
    """Separation oracle for |error(p)| <= t over the variables (gamma's upper half, t).

    error(p) is affine in each p_i, as the distribution of L is, so over a box |error| is largest
    where every p_i is the smallest or the largest p that the prior allows: K + 1 multisets. Samples
    and points are enumerated. For a common p, error(p) is a polynomial of degree K; it is evaluated
    on a fine grid, and the largest values are refined.

    Args:
        voters: K.
        prior: its support is the set of p.
    """

    def __init__(self, voters: int, prior: Prior) -> None:
        voters, prior = odd(voters), parse_prior(prior)
        self._k = voters
        self._pieces: list[Vector] = []
        if isinstance(prior, CommonPrior):
            # Chebyshev nodes: denser towards the ends, where a polynomial oscillates faster.
            nodes = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 8 * voters + 33))
            intervals = getattr(prior.base, "intervals", ((0.0, 1.0),))
            self._pieces = [np.clip(a + (b - a) * nodes, a, b) for a, b in intervals]
            self._margins = _common(voters, np.concatenate(self._pieces))
        elif isinstance(prior, SamplePrior | PointPrior | RecordedPrior):
            self._margins = margins_at(_points(voters, prior))
        else:
            # Row j: j voters at the largest p, K - j at the smallest.
            low, high = prior.reach
            at_high = np.arange(voters) < np.arange(voters + 1)[:, None]
            self._margins = margins_at(np.where(at_high, high, low))

    def __call__(self, point: Vector) -> Separation:
        """Return the rows that gamma and t violate most."""
        gamma, t = point[:-1], float(point[-1])
        margins, errors = self._worst(gamma)
        excess = np.abs(errors) - t
        # Rows of a worst case added in one round.
        order = np.argsort(-excess, kind="stable")[:40]
        order = order[excess[order] > 0.0]
        # signed @ (1 - gamma) <= t, with the sign that the error has at this gamma.
        signed = np.sign(errors[order])[:, None] * margins[order]
        rows = np.column_stack([-signed, -np.ones(order.size)])
        worst = max(0.0, float(excess.max()))
        return Separation(make_rows(rows, upper=-signed.sum(axis=1)), worst, len(self._margins))

    def value(self, gamma: Vector) -> float:
        """Return the largest error of a gamma's upper half."""
        return float(np.max(np.abs(self._worst(gamma)[1])))

    def tight(self, gamma: Vector) -> list[tuple[str, int | str, int]]:
        """Return the nearly tight rows at a gamma's upper half, as `dpopt.verify` names them."""
        errors = self._margins @ (1.0 - gamma)
        named: list[tuple[int | str, float]] = list(enumerate(errors.tolist()))
        # Errors within 1% of the largest are candidate rows of a proof.
        least = 0.99 * float(np.abs(errors).max())
        if self._pieces:
            points = sorted(set(self._fine(gamma, errors, least)))
            errors = _common(self._k, np.array(points)) @ (1.0 - gamma)
            exact = [str(Fraction(p)) for p in points]
            named = list(zip(exact, errors.tolist(), strict=True))
        tight = [(at, error) for at, error in named if abs(error) >= least]
        return [("error", at, 1 if error > 0 else -1) for at, error in tight]

    def _worst(self, gamma: Vector) -> tuple[Matrix, Vector]:
        """Return margins, for a common p with those at refined peaks, and their errors."""
        margins = self._margins
        errors = margins @ (1.0 - gamma)
        if self._pieces:
            fine = self._fine(gamma, errors)
            margins = np.vstack([margins, _common(self._k, np.array(fine))])
            errors = margins @ (1.0 - gamma)
        return margins, errors

    def _fine(self, gamma: Vector, errors: Vector, least: float | None = None) -> list[float]:
        """Return refined peaks of |error|: the largest of each interval, or all of ``least`` up."""
        peaks, start = [], 0
        for nodes in self._pieces:
            sizes = np.abs(errors[start : start + nodes.size])
            start += nodes.size
            tops = np.flatnonzero(maxima(sizes))
            tops = tops[np.argsort(-sizes[tops], kind="stable")]
            # Of each interval five peaks are refined in one round.
            tops = tops[:5] if least is None else tops[sizes[tops] >= least]
            peaks += [self._refined(gamma, nodes, index) for index in tops.tolist()]
        return peaks

    def _refined(self, gamma: Vector, nodes: Vector, index: int) -> float:
        # A grid peak has the polynomial's peak between its two neighbours.
        low, high = nodes[max(index - 1, 0)], nodes[min(index + 1, nodes.size - 1)]

        def loss(p: float) -> float:
            return -abs(float(_common(self._k, np.array([p]))[0] @ (1.0 - gamma)))

        peak = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        best = float(peak.x)
        return best if loss(best) < loss(nodes[index]) else float(nodes[index])


def _common(k: int, p: Vector) -> Matrix:
    """Return the margins 1/2 (alpha_l - alpha_{K-l}) where all voters have the same p."""
    return 0.5 * fold(np.array([binomial_pmf(k, float(value)) for value in p]))


def maxima(values: npt.NDArray[np.float64], axis: int = -1) -> npt.NDArray[np.bool_]:
    """Return where values are at least as large as those next to them along an axis."""
    return values == maximum_filter1d(values, 3, axis=axis, mode="constant", cval=-np.inf)
