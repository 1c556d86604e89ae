"""What a prior makes of the noise function: linear weights, expected errors, worst cases.

The error of DaRRM at p is |1/2 sum over l >= mid of (alpha_l - alpha_{K-l}) (1 - gamma(l))|, with
alpha the distribution of L (the paper's definition 2.4 and lemma 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d
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
    as_prior,
)
from dpopt.majority.voters import Voters, check_gamma, fold, noise_levels, odd, require_voters
from dpopt.prob import binomial_pmf, poisson_binomial_pmf

_MOST_TERMS, _LARGEST_ERROR = 1 << 20, 1e-9
_CHUNK = 1 << 16
_MOST_DRAWS = 10**8
# Expectations that no formula gives are averages over this many draws of a fixed seed.
_DRAWS, _SEED = 100_000, 5
_MOST_CUTS = 40
# Errors that are less than the largest by up to this share may count in a proof.
_NEAR = 1e-2
# Peaks of each piece that are refined.
_MOST_PEAKS = 5


@dataclass(frozen=True)
class Weights:
    """Linear weights on gamma's upper half.

    Attributes:
        values: shape ((K + 1) / 2,).
        error: a bound on the error of each value from truncating the quadrature (rounding, about
            1e-15, comes on top); for samples, the largest standard error of a value.
        method: how they were computed.
    """

    values: Vector
    error: float
    method: str


def surrogate_weights(voters: int, prior: PriorLike | None = None) -> Weights:
    """Return the weights of the paper's objective: 1/2 E[alpha_l - alpha_{K-l}].

    The paper takes p uniform on [0.5, 1] (its equation 3 and algorithms 4 and 5), the default
    here. By multi-affinity E alpha is the distribution of Binomial(K, E p) for independent p_i, in
    closed form; so it is for a common p.
    """
    k = odd(voters)
    prior = UniformPrior(((0.5, 1.0),)) if prior is None else as_prior(prior)
    if isinstance(prior, CommonPrior):
        pmf = prior.base.binomial(k)
    elif isinstance(prior, IndependentPrior):
        pmf = binomial_pmf(k, prior.mean)
    else:
        return _averaged(k, prior, signed=False)
    return Weights(frozen(0.5 * fold(pmf)), 0.0, "closed form")


def expected_error_weights(voters: int, prior: PriorLike) -> Weights:
    """Return c_l = 1/2 E[sign(sum p - K/2) (alpha_l - alpha_{K-l})], l >= (K + 1) / 2.

    sum_l c_l (1 - gamma(l)) is the expected error wherever the error's sign is that of
    sum p - K/2 (always for a common p), and a lower bound on it otherwise; `sampled_error`
    measures the difference.

    For independent p_i alike, E[sign; L = l] = C(K, l) E[sign(sum p_i - K/2) p_1 .. p_l
    (1 - p_{l+1}) .. (1 - p_K)]; with the sign as a square wave of half-period
    W >= max |sum p - K/2| this is C(K, l) (4 / pi) sum over odd k of Im(A_1^l A_0^{K-l})(pi k / W)
    / k, where A_1 and A_0 are the transforms `tilted` of the prior, and |A| <= v / t with its
    `variation` v bounds the tail. For a common p it is a difference of incomplete beta functions.
    Other priors, and those whose transforms decay too slowly, are averaged over samples.
    """
    k, prior = odd(voters), as_prior(prior)
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


def _margins_at(points: Matrix) -> Matrix:
    """Return 1/2 (alpha_l - alpha_{K-l}) at points, shape (points, (K + 1) / 2)."""
    return 0.5 * fold(poisson_binomial_pmf(points))


def _points(k: int, prior: Prior) -> Matrix:
    """Return the points or samples that a prior lists, or draws of it, shape (points, k)."""
    listed = isinstance(prior, SamplePrior | PointPrior)
    drawn = prior.sample((1 if listed else _DRAWS, k), np.random.default_rng(_SEED))
    return prior.samples if isinstance(prior, SamplePrior) else drawn


def _averaged(k: int, prior: Prior, *, signed: bool) -> Weights:
    """Return the mean margins at the prior's points, times sign(sum p - K/2) if ``signed``."""
    points = _points(k, prior)
    values = _margins_at(points)
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
    """Return the expected error of a noise function: linear where the prior has exact weights.

    Otherwise the mean of |error(p)| over the prior's samples: exact for given points.

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
    k, prior = gamma.size - 1, as_prior(prior)
    weights, noise = expected_error_weights(k, prior), 1.0 - gamma[(k + 1) // 2 :]
    if weights.method in ("closed form", "quadrature") and not isinstance(prior, PointPrior):
        return ErrorEstimate(float(np.sum(weights.values * noise)), 0.0, weights.method)
    errors = np.abs(_margins_at(_points(k, prior)) @ noise)
    if errors.size == 1:
        return ErrorEstimate(float(errors[0]), 0.0, weights.method)
    spread = float(errors.std(ddof=1)) / math.sqrt(errors.size)
    return ErrorEstimate(float(errors.mean()), spread, weights.method)


def _terms(k: int, prior: IndependentPrior, width: float) -> tuple[int, float]:
    """Return how many terms bring the tail below 1e-16, and the tail's logarithm before them."""
    if not math.isfinite(prior.variation):
        return _MOST_TERMS, math.inf
    log_largest = math.log(math.comb(k, k // 2)) + math.log(2 / (math.pi * k))
    log_largest += k * math.log(prior.variation * width / math.pi)
    enough = math.exp(min((log_largest + 16 * math.log(10)) / k, 60.0)) / 2
    return min(_MOST_TERMS, math.ceil(enough) + 8), log_largest


def _signed_pmf(k: int, prior: IndependentPrior, width: float, terms: int) -> Vector:
    """Return E[sign(sum p - K/2) 1{L = l}] for l = 0..K."""
    counts = np.arange(k + 1)
    log_choose = gammaln(k + 1) - gammaln(counts + 1) - gammaln(k - counts + 1)
    pmf = np.zeros(k + 1)
    for start in range(0, terms, _CHUNK):
        odd = 2.0 * np.arange(start, min(terms, start + _CHUNK), dtype=np.float64) + 1.0
        one, zero = prior.tilted(np.asarray(odd * (math.pi / width), dtype=np.float64))
        with np.errstate(divide="ignore"):
            log_one, log_zero = np.log(np.abs(one)), np.log(np.abs(zero))
        for count in range(k + 1):
            size = log_choose[count] + _times(count, log_one) + _times(k - count, log_zero)
            angle = count * np.angle(one) + (k - count) * np.angle(zero)
            pmf[count] += float(np.sum(np.exp(size) * np.sin(angle) / odd))
    return pmf * (4 / math.pi)


def _times(count: int, log: Vector) -> Vector:
    return count * log if count else np.zeros_like(log)


def sampled_margins(
    voters: int, prior: Prior, rng: np.random.Generator, draws: int = 10_000
) -> np.ndarray:
    """Return 1/2 (alpha_l - alpha_{K-l}) for sampled p, l = (K + 1) / 2..K.

    The error of gamma at the sampled p's is |margins @ (1 - gamma's upper half)|.

    Args:
        voters: K.
        prior: where p is drawn from.
        rng: numpy generator; this is an experiment, not a release.
        draws: number of p's, at least 1.

    Returns:
        Shape (draws, (K + 1) / 2).
    """
    draws = _checks.integer("draws", draws, 1, _MOST_DRAWS)
    voters, prior = odd(voters), as_prior(prior)
    _checks.instance("rng", rng, np.random.Generator)
    return _margins_at(prior.sample((draws, voters), rng))


def sampled_error(
    setting: Voters,
    gamma: Vector,
    prior: Prior,
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
    require_voters(setting)
    draws = _checks.integer("draws", draws, 2, _MOST_DRAWS)
    gamma = check_gamma(setting, gamma)
    margins = sampled_margins(setting.voters, prior, rng, draws)
    errors = np.abs(margins @ (1.0 - gamma[setting.middle :]))
    return float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(draws))


class WorstCase:
    """The family |error(p)| <= t over the variables (gamma's upper half, t).

    error(p) is affine in each p_i (the distribution of L is), so over a box its size is largest
    where every p_i is the smallest or the largest p that the prior allows: K + 1 multisets. Samples
    and points are listed; for a common p the polynomial of degree K is searched on a fine grid, and
    its largest values refined.

    Args:
        voters: K.
        prior: where p may lie.
    """

    def __init__(self, voters: int, prior: Prior) -> None:
        voters, prior = odd(voters), as_prior(prior)
        self._k = voters
        self._pieces: list[Vector] = []
        if isinstance(prior, CommonPrior):
            self._pieces = _nodes(voters, prior)
            self._margins = _common(voters, np.concatenate(self._pieces))
        else:
            self._margins = _extremes(voters, prior)

    def __call__(self, point: Vector) -> Separation:
        """Return the rows that gamma and t break most."""
        gamma, t = point[:-1], float(point[-1])
        margins, errors = self._worst(gamma)
        excess = np.abs(errors) - t
        place = np.argsort(-excess, kind="stable")[:_MOST_CUTS]
        place = place[excess[place] > 0.0]
        signed = np.sign(errors[place])[:, None] * margins[place]
        rows = np.column_stack([-signed, -np.ones(place.size)])
        worst = max(0.0, float(excess.max()))
        return Separation(make_rows(rows, upper=-signed.sum(axis=1)), worst, len(self._margins))

    def value(self, gamma: Vector) -> float:
        """Return the largest error of a gamma's upper half."""
        return float(np.max(np.abs(self._worst(gamma)[1])))

    def tight(self, gamma: Vector) -> list[tuple[str, int | str, int]]:
        """Return the rows that may count at a gamma's upper half, as `dpopt.verify` names them."""
        errors = self._margins @ (1.0 - gamma)
        named: list[tuple[int | str, float]] = list(enumerate(errors.tolist()))
        least = (1.0 - _NEAR) * float(np.abs(errors).max())
        if self._pieces:
            points = sorted(set(self._fine(gamma, errors, least)))
            errors = _common(self._k, np.array(points)) @ (1.0 - gamma)
            exact = [str(Fraction(p)) for p in points]
            named = list(zip(exact, errors.tolist(), strict=True))
        found = [(at, error) for at, error in named if abs(error) >= least]
        return [("error", at, 1 if error > 0 else -1) for at, error in found]

    def _worst(self, gamma: Vector) -> tuple[Matrix, Vector]:
        """Return margins, those of a common p with refined peaks, and the errors there."""
        margins = self._margins
        errors = margins @ (1.0 - gamma)
        if self._pieces:
            fine = self._fine(gamma, errors)
            margins = np.vstack([margins, _common(self._k, np.array(fine))])
            errors = margins @ (1.0 - gamma)
        return margins, errors

    def _fine(self, gamma: Vector, errors: Vector, least: float | None = None) -> list[float]:
        """Return refined peaks of |error|: the largest of each piece, or all of at least so much.

        Each is sought within its piece: between the pieces there is no p.
        """
        found, start = [], 0
        for nodes in self._pieces:
            sizes = np.abs(errors[start : start + nodes.size])
            start += nodes.size
            places = _peaks(sizes)
            places = places[:_MOST_PEAKS] if least is None else places
            found += [
                self._refined(gamma, nodes, place)
                for place in places
                if least is None or sizes[place] >= least
            ]
        return found

    def _refined(self, gamma: Vector, nodes: Vector, place: int) -> float:
        low, high = nodes[max(place - 1, 0)], nodes[min(place + 1, nodes.size - 1)]

        from scipy.optimize import minimize_scalar

        def loss(p: float) -> float:
            return -abs(float(_common(self._k, np.array([p]))[0] @ (1.0 - gamma)))

        peak = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        best = float(peak.x)
        return best if loss(best) < loss(nodes[place]) else float(nodes[place])


def _common(k: int, p: Vector) -> Matrix:
    """Return the margins 1/2 (alpha_l - alpha_{K-l}) where all voters have the same p."""
    return 0.5 * fold(np.array([binomial_pmf(k, float(value)) for value in p]))


def _nodes(k: int, prior: CommonPrior) -> list[Vector]:
    """Return nodes of each interval of a prior."""
    pieces = getattr(prior.base, "intervals", ((0.0, 1.0),))
    count = 8 * k + 33
    # Denser towards the ends, where a polynomial turns faster.
    nodes = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, count))
    return [np.clip(low + (high - low) * nodes, low, high) for low, high in pieces]


def _peaks(values: Vector) -> list[int]:
    peak = np.flatnonzero(maxima(values))
    return peak[np.argsort(-values[peak], kind="stable")].tolist()


def maxima(values: npt.NDArray[np.float64], axis: int = -1) -> npt.NDArray[np.bool_]:
    """Return where values are at least as large as those next to them along an axis."""
    return values == maximum_filter1d(values, 3, axis=axis, mode="constant", cval=-np.inf)


def _extremes(k: int, prior: Prior) -> Matrix:
    if isinstance(prior, SamplePrior | PointPrior | RecordedPrior):
        return _margins_at(_points(k, prior))
    low, high = prior.reach
    points = np.where(np.arange(k)[None, :] < np.arange(k + 1)[:, None], high, low)
    return _margins_at(points)
