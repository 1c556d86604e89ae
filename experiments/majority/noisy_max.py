"""GNMax: the label with the most votes after Gaussian noise, a baseline to compare with.

M(x) = argmax_i {n_i(x) + N(0, sigma^2)}, n_i the number of voters for class i; a neighbour changes
one vote, so the counts move by at most sqrt 2 in Euclidean norm. The noise is drawn in floating
point, which realises other probabilities than the ones analysed: there is no ``release`` here.

References:
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable Private Learning with
    PATE" (2018); section D.2 of the DaRRM paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtr

from dpopt import ParameterError
from dpopt.privacy import Guarantee
from experiments.majority.renyi import (
    ConcentratedGuarantee,
    gaussian_concentrated,
    gaussian_sigma,
    least_feasible,
)

__all__ = [
    "DataDependentRdp",
    "GNMax",
    "GNMaxCalibration",
    "calibrate_gnmax",
    "data_dependent_rdp",
    "gnmax_concentrated",
    "label_epsilon",
    "label_losses",
    "variance_at_order",
]

Floats = npt.NDArray[np.float64]

SENSITIVITY = math.sqrt(2.0)

METHODS = ("rdp", "analytic", "label")


@dataclass(frozen=True)
class GNMaxCalibration:
    """The noise that a guarantee asks for.

    Attributes:
        sigma: standard deviation of the noise on each class's count.
        order: the Renyi order lambda behind it; None unless the method is "rdp".
        epsilon: of the guarantee.
        delta: of the guarantee.
        method: see `calibrate_gnmax`.
    """

    sigma: float
    order: float | None
    epsilon: float
    delta: float
    method: str


def calibrate_gnmax(
    guarantee: Guarantee, method: str = "rdp", *, voters: int | None = None
) -> GNMaxCalibration:
    """Return the noise with which GNMax meets a guarantee.

    - "rdp": the least sigma^2 = lambda / (epsilon - log(1/delta) / (lambda - 1)) over lambda, as
      in the paper; with l = log(1/delta), lambda = 1 + (l + sqrt(l^2 + epsilon l)) / epsilon and
      sigma = (sqrt(l + epsilon) + sqrt(l)) / epsilon.
    - "analytic": the least sigma for which the noisy counts meet the guarantee.
    - "label": a sigma for which the label itself does, for two classes, by bisection; the least
      one if delta = 0, else perhaps not; see `label_epsilon`.

    Args:
        guarantee: of one label; delta above 0 unless the method is "label".
        method: "rdp", "analytic" or "label".
        voters: K, for "label" only.

    Raises:
        ParameterError: if epsilon or delta is 0 with "rdp".

    Example:
        >>> from dpopt import Guarantee
        >>> from experiments.majority import noisy_max
        >>> round(noisy_max.calibrate_gnmax(Guarantee(0.2676, 0.0003)).sigma, 2)
        21.46
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    order = None
    if method == "label":
        if voters is None:
            raise ParameterError("voters is None; method 'label' needs the number of voters.")
        if epsilon == delta == 0.0:
            raise ParameterError("epsilon and delta are 0; no noise meets that.")
        sigma = least_feasible(lambda s: label_epsilon(voters, s, delta) <= epsilon, 1.0)
    elif method == "analytic":
        sigma = gaussian_sigma(guarantee, SENSITIVITY)
    else:
        loss = _loss(guarantee)
        order = 1.0 + (loss + math.sqrt(loss * (loss + epsilon))) / epsilon
        sigma = (math.sqrt(loss + epsilon) + math.sqrt(loss)) / epsilon
    return GNMaxCalibration(sigma, order, epsilon, delta, method)


def variance_at_order(guarantee: Guarantee, orders: npt.ArrayLike) -> Floats:
    """Return sigma^2 = lambda / (epsilon - log(1/delta) / (lambda - 1)) for given orders.

    Args:
        guarantee: epsilon and delta above 0.
        orders: lambda above 1 + log(1/delta) / epsilon, shape (n,).

    Returns:
        The variance that each order proves to be enough, shape (n,).

    References:
        Section D.2.1 and Figure 10 of the DaRRM paper.
    """
    array = np.asarray(orders, dtype=float)
    loss = _loss(guarantee)
    least = 1.0 + loss / guarantee.epsilon
    if not np.all((array > least) & np.isfinite(array)):
        raise ParameterError(f"orders holds a value that is not finite or not above {least:.6g}.")
    return array / (guarantee.epsilon - loss / (array - 1.0))


def gnmax_concentrated(sigma: float) -> ConcentratedGuarantee:
    """Return what one label spends: (lambda, lambda / sigma^2)-RDP for every lambda > 1.

    References:
        Papernot et al. (2018), proposition 8.
    """
    return gaussian_concentrated(sigma, SENSITIVITY)


def label_losses(voters: int, sigma: float, delta: float = 0.0) -> Floats:
    """Return log((p_(n+1) - delta) / p_n), n = 0..K-1; -inf where p_(n+1) <= delta.

    p_n = Phi((2 n - K) / (sigma sqrt 2)) is the probability of class 1 on n votes for it. Since
    p_(K-n) = 1 - p_n, these losses cover class 0 and the other direction too.

    Args:
        voters: K, from 1 to 10^8.
        sigma: standard deviation of the noise on each class's count, above 0.
        delta: in [0, 1).
    """
    with np.errstate(over="ignore"):
        places = (2.0 * np.arange(voters + 1) - voters) / sigma / SENSITIVITY
    logs = log_ndtr(places)
    least = math.log(delta) if delta > 0.0 else -math.inf
    above = logs[1:] > least
    shares = np.exp(least - np.where(above, logs[1:], 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(above, logs[1:] + np.log1p(-shares) - logs[:-1], -np.inf)


def label_epsilon(voters: int, sigma: float, delta: float = 0.0) -> float:
    """Return the exact epsilon of the label, for two classes: its largest loss, at least 0.

    An analysis of noisy counts pays for what the mechanism does not show, and for any K. With
    delta > 0, more noise can spend more: it lifts a rare label above delta. A difference of
    logarithms: right to a few 1e-16, which is little of an epsilon of 1e-8 and all of one of 1e-16.

    Args:
        voters: K, from 1 to 10^8.
        sigma: above 0.
        delta: in [0, 1).
    """
    return float(max(0.0, np.max(label_losses(voters, sigma, delta))))


@dataclass(frozen=True)
class GNMax:
    """The mechanism, for experiments: its noise is floating-point, so it has no ``release``.

    Attributes:
        sigma: standard deviation of the noise on each count, above 0.
        classes: at least 2.
    """

    sigma: float
    classes: int = 2

    def count(self, votes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the number of votes for each class.

        Args:
            votes: classes in 0..classes-1, shape (K,) or (queries, K).

        Returns:
            Shape (classes,) or (queries, classes).
        """
        array = np.asarray(votes)
        if array.ndim not in (1, 2) or not np.issubdtype(array.dtype, np.integer):
            raise ParameterError(
                f"votes has shape {array.shape} and type {array.dtype}; it must be integers of "
                "shape (K,) or (queries, K)."
            )
        if array.size and (array.min() < 0 or array.max() >= self.classes):
            raise ParameterError(f"votes holds a class outside 0..{self.classes - 1}.")
        return np.stack([np.sum(array == c, axis=-1) for c in range(self.classes)], axis=-1)

    def simulate(
        self, counts: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int64] | int:
        """Return the noisy label of each query, from a seeded generator: NOT private.

        Args:
            counts: votes for each class, shape (classes,) or (queries, classes).
            rng: the generator.

        Returns:
            A class for one query; an array of them, shape (queries,), for several.
        """
        array = _counts(counts, self.classes)
        noisy = array + self.sigma * rng.standard_normal(array.shape)
        drawn = np.argmax(noisy, axis=-1)
        return int(drawn) if array.ndim == 1 else drawn

    def output_distribution(self, counts: npt.ArrayLike) -> Floats:
        """Return the probability of each of two classes: Phi((n_i - n_j) / (sigma sqrt 2)).

        Args:
            counts: votes for each class, shape (2,) or (queries, 2).

        Returns:
            Probabilities of the same shape.
        """
        if self.classes != 2:
            raise ParameterError(f"classes is {self.classes}; the exact law is for 2 only.")
        array = _counts(counts, self.classes)
        with np.errstate(over="ignore"):
            gaps = (array - array[..., ::-1]) / self.sigma / SENSITIVITY
        return ndtr(gaps)


@dataclass(frozen=True)
class DataDependentRdp:
    """A Renyi bound that holds for the votes at hand; it must not be published: it tells of them.

    Attributes:
        divergence: the smaller of ``gaussian`` and ``bound``.
        gaussian: lambda / sigma^2.
        bound: theorem 6 of Papernot et al.; None where its conditions fail.
        q: bound on the probability of any label but the likeliest.
        q_limit: the largest q that the theorem allows, at most 1; 0 if mu_2 <= 1.
        order_limit: mu_1, the largest lambda that the theorem allows.
    """

    divergence: float
    gaussian: float
    bound: float | None
    q: float
    q_limit: float
    order_limit: float

    @property
    def applies(self) -> bool:
        """Whether the theorem's conditions held."""
        return self.bound is not None


def data_dependent_rdp(counts: npt.ArrayLike, sigma: float, order: float) -> DataDependentRdp:
    """Return a bound on D_lambda(M(x) || M(x')) for the given x and every neighbour x'.

    With q = sum_(i != i*) erfc((n_i* - n_i) / (2 sigma)) / 2, at most 1 - 1/classes, mu_2 = sigma
    sqrt(log 1/q), mu_1 = mu_2 + 1 and e_j = mu_j / sigma^2: if lambda <= mu_1, mu_2 > 1 and
    q <= exp((mu_2 - 1) e_2) / (mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1))^mu_2, then
    log((1 - q) A^(lambda - 1) + q B^(lambda - 1)) / (lambda - 1) with
    A = (1 - q) / (1 - (q e^e_2)^((mu_2 - 1) / mu_2)) and B = e^e_1 / q^(1 / (mu_1 - 1)).

    Algorithm 6 of the DaRRM paper prints (mu_2 - 1)^e_2 for (mu_2 - 1) e_2, leaves q outside the
    power in A, and leaves out the logarithm; this is the published theorem. Over several queries
    the divergences of one order add; `convert_renyi` takes the sum as a
    curve.

    Args:
        counts: votes for each class, shape (classes,).
        sigma: above 0.
        order: lambda > 1.

    References:
        Papernot et al. (2018), theorem 6, propositions 7 and 10.
    """
    array = np.asarray(counts, dtype=float)
    if array.ndim != 1:
        raise ParameterError(f"counts has shape {array.shape}; it must be (classes,).")
    array = _counts(array, array.size)
    gaussian = gnmax_concentrated(sigma).divergence(order)
    log_q = _log_miss(array, sigma)
    mu = sigma * math.sqrt(-log_q)
    spent = mu / sigma / sigma
    log_limit = -math.inf
    if mu > 1.0:
        log_limit = (mu - 1.0) * spent - mu * (math.log1p(1.0 / mu) - math.log1p(-1.0 / mu))
    bound = None
    # The last condition keeps the denominator of A positive.
    if order <= mu + 1.0 and log_q <= log_limit and log_q + spent < 0.0:
        bound = _theorem_6(log_q, mu, sigma, order)
    return DataDependentRdp(
        divergence=gaussian if bound is None else min(gaussian, bound),
        gaussian=gaussian,
        bound=bound,
        q=math.exp(log_q),
        q_limit=math.exp(min(0.0, log_limit)),
        order_limit=mu + 1.0,
    )


def _theorem_6(log_q: float, mu: float, sigma: float, order: float) -> float:
    """Return the bound where its conditions hold; mu = mu_2."""
    stay = math.log1p(-math.exp(log_q))
    power = (log_q + mu / sigma / sigma) * (1.0 - 1.0 / mu)
    # log(1 - e^power), each form where it keeps its digits.
    rest = math.log1p(-math.exp(power)) if power < -1.0 else math.log(-math.expm1(power))
    log_b = (mu + 1.0) / sigma / sigma - log_q / mu
    parts = (order * stay - (order - 1.0) * rest, log_q + (order - 1.0) * log_b)
    return max(0.0, float(np.logaddexp(*parts)) / (order - 1.0))


def _log_miss(counts: Floats, sigma: float) -> float:
    """Return log q, the union bound on the probability of any but the likeliest class."""
    ordered = np.sort(counts)
    with np.errstate(over="ignore"):
        gaps = (ordered[:-1] - ordered[-1]) / sigma / SENSITIVITY
    total = float(logsumexp(log_ndtr(gaps)))
    # Gaps beyond 1e150 have a q whose logarithm is no float.
    return max(-1e300, min(total, math.log1p(-1.0 / counts.size)))


def _counts(counts: npt.ArrayLike, classes: int) -> Floats:
    array = np.asarray(counts, dtype=float)
    if classes < 2 or array.ndim not in (1, 2) or array.shape[-1] != classes:
        wanted = max(2, classes)
        raise ParameterError(
            f"counts has shape {array.shape}; it must be ({wanted},) or (queries, {wanted})."
        )
    if not np.all((array >= 0) & np.isfinite(array)):
        raise ParameterError("counts holds a value that is not a finite number of at least 0.")
    return array


def _loss(guarantee: Guarantee) -> float:
    """Return log(1 / delta)."""
    if not guarantee.epsilon > 0.0 < guarantee.delta:
        raise ParameterError(f"guarantee is {guarantee}; epsilon and delta must be above 0.")
    return -math.log(guarantee.delta)
