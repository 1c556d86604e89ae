"""GNMax: the label with the most votes after Gaussian noise, a baseline to compare with.

M(x) = argmax_i {n_i(x) + N(0, sigma^2)}, n_i the number of voters for class i; a neighbour changes
one vote, so the counts move by at most sqrt 2 in Euclidean norm.

References:
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable Private Learning with
    PATE" (2018); section D.2 of the DaRRM paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtr

from dpopt import ParameterError
from dpopt.privacy import Guarantee
from experiments.arrays import Floats
from experiments.majority.renyi import gaussian_rho, least_feasible

SENSITIVITY = math.sqrt(2.0)


def calibrate_gnmax(guarantee: Guarantee) -> tuple[float, float]:
    """Return the noise with which GNMax meets a guarantee as in the paper, and its Renyi order.

    The least sigma^2 = lambda / (epsilon - log(1/delta) / (lambda - 1)) over lambda: with l =
    log(1/delta), lambda = 1 + (l + sqrt(l^2 + epsilon l)) / epsilon and sigma = (sqrt(l + epsilon)
    + sqrt(l)) / epsilon. For the noisy counts `gaussian_sigma` is enough, for the label
    `label_sigma`.

    Example:
        >>> from dpopt import Guarantee
        >>> from experiments.majority import noisy_max
        >>> round(noisy_max.calibrate_gnmax(Guarantee(0.2676, 0.0003))[0], 2)
        21.46
    """
    epsilon, loss = guarantee.epsilon, _loss(guarantee)
    order = 1.0 + (loss + math.sqrt(loss * (loss + epsilon))) / epsilon
    return (math.sqrt(loss + epsilon) + math.sqrt(loss)) / epsilon, order


def label_sigma(voters: int, guarantee: Guarantee) -> float:
    """Return a sigma for which the label of two classes meets a guarantee, by bisection.

    The least one if delta = 0, else perhaps not; see `label_epsilon`.
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if epsilon == delta == 0.0:
        raise ParameterError("epsilon and delta are 0; no noise meets that.")
    return least_feasible(lambda sigma: label_epsilon(voters, sigma, delta) <= epsilon, 1.0)


def least_order(guarantee: Guarantee) -> float:
    """Return 1 + log(1/delta) / epsilon, above which a Renyi order is; both must be above 0."""
    return 1.0 + _loss(guarantee) / guarantee.epsilon


def variance_at_order(guarantee: Guarantee, orders: npt.ArrayLike) -> Floats:
    """Return sigma^2 = lambda / (epsilon - log(1/delta) / (lambda - 1)) for given orders.

    Epsilon, delta and lambda - 1 - log(1/delta) / epsilon must be above 0.

    References:
        Section D.2.1 and Figure 10 of the DaRRM paper.
    """
    array = np.asarray(orders, dtype=float)
    least = least_order(guarantee)
    if not np.all((array > least) & np.isfinite(array)):
        raise ParameterError(f"orders holds a value that is not finite or not above {least:.6g}.")
    return array / (guarantee.epsilon - _loss(guarantee) / (array - 1.0))


def label_probabilities(voters: int, sigma: float) -> Floats:
    """Return Pr[label 1] = Phi((2 n - K) / (sigma sqrt 2)) on n votes for it, n = 0..K."""
    return ndtr(_gaps(voters, sigma))


def label_epsilon(voters: int, sigma: float, delta: float = 0.0) -> float:
    """Return the exact epsilon of the label, for two classes: its largest loss, at least 0.

    The losses are log((p_(n+1) - delta) / p_n), n = 0..K-1, with p_n of `label_probabilities`;
    since p_(K-n) = 1 - p_n, they cover class 0 and the other direction too. With delta > 0, more
    noise can cost more, because it lifts a rare label above delta. The difference of logarithms
    has an absolute error of a few 1e-16, which matters only for a tiny epsilon.
    """
    logs = log_ndtr(_gaps(voters, sigma))
    least = math.log(delta) if delta > 0.0 else -math.inf
    above = logs[1:] > least
    shares = np.exp(least - np.where(above, logs[1:], 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = np.where(above, logs[1:] + np.log1p(-shares) - logs[:-1], -np.inf)
    return float(max(0.0, np.max(losses)))


def _gaps(voters: int, sigma: float) -> Floats:
    with np.errstate(over="ignore"):
        return (2.0 * np.arange(voters + 1.0) - voters) / sigma / SENSITIVITY


def data_dependent_rdp(counts: Sequence[int], sigma: float, order: float) -> float | None:
    """Return a bound on D_lambda(M(x) || M(x')) for the given x and every neighbour x'.

    With q = sum_(i != i*) erfc((n_i* - n_i) / (2 sigma)) / 2, at most 1 - 1/classes, mu_2 = sigma
    sqrt(log 1/q), mu_1 = mu_2 + 1 and e_j = mu_j / sigma^2: if lambda <= mu_1, mu_2 > 1 and
    q <= exp((mu_2 - 1) e_2) / (mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1))^mu_2, then
    log((1 - q) A^(lambda - 1) + q B^(lambda - 1)) / (lambda - 1) with
    A = (1 - q) / (1 - (q e^e_2)^((mu_2 - 1) / mu_2)) and B = e^e_1 / q^(1 / (mu_1 - 1)).

    None where the conditions fail; the bound may be above `gaussian_rdp`.

    References:
        Papernot et al. (2018), theorem 6, propositions 7 and 10.
    """
    *others, first = sorted(counts)
    with np.errstate(over="ignore"):
        gaps = (np.array(others, dtype=float) - first) / sigma / SENSITIVITY
    # The union bound on any other class; for gaps above 1e150 its logarithm overflows.
    union = float(logsumexp(log_ndtr(gaps)))
    log_q = max(-1e300, min(union, math.log1p(-1.0 / len(counts))))
    mu = sigma * math.sqrt(-log_q)
    spent = mu / sigma / sigma
    # The last condition keeps the denominator of A positive.
    if mu <= 1.0 or order > mu + 1.0 or log_q + spent >= 0.0:
        return None
    if log_q > (mu - 1.0) * spent - mu * (math.log1p(1.0 / mu) - math.log1p(-1.0 / mu)):
        return None
    stay = math.log1p(-math.exp(log_q))
    power = (log_q + spent) * (1.0 - 1.0 / mu)
    # log(1 - e^power), each form where it keeps its digits.
    rest = math.log1p(-math.exp(power)) if power < -1.0 else math.log(-math.expm1(power))
    log_b = (mu + 1.0) / sigma / sigma - log_q / mu
    parts = (order * stay - (order - 1.0) * rest, log_q + (order - 1.0) * log_b)
    return max(0.0, float(np.logaddexp(*parts)) / (order - 1.0))


def gaussian_rdp(sigma: float, order: float) -> float:
    """Return lambda / sigma^2, the Renyi divergence of the counts (Papernot, proposition 8)."""
    return gaussian_rho(sigma, SENSITIVITY) * order


def _loss(guarantee: Guarantee) -> float:
    """Return log(1 / delta)."""
    if not guarantee.epsilon > 0.0 < guarantee.delta:
        raise ParameterError(f"guarantee is {guarantee}; epsilon and delta must be above 0.")
    return -math.log(guarantee.delta)
