"""Chances that a class wins, without sampling: rules on counts, and the largest noisy count.

Rules are vectors k[v] over the variables of `dpopt.table.SortedHistograms`: the probability of one
class of each count, for each sorted histogram. They are computed in double precision, as are the
ratios by which they are calibrated; what is released is proved in integers by the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpopt.ballots.tabulate import Rungs, exponential_table, largest, permute_and_flip_table
from dpopt.privacy import Guarantee
from dpopt.table import SortedHistograms
from experiments.arrays import Floats, Ints
from experiments.majority.renyi import gaussian_sigma, improved_epsilon

# Of epsilon: what a calibrated rule leaves of it.
_NEAR = 1e-11


class Rules:
    """The rules of K ballots over C classes, and what they spend."""

    def __init__(self, inputs: SortedHistograms) -> None:
        self.inputs = inputs
        self._rungs = Rungs(inputs)

    def exponential(self, step: float) -> Floats:
        """Return the exponential mechanism, in proportion to s^count."""
        return exponential_table(self.inputs, Fraction(step))

    def permute_and_flip(self, step: float) -> Floats:
        """Return permute-and-flip, of the chances s^-gap."""
        return permute_and_flip_table(self.inputs, Fraction(step))

    def ladder(self, ratio: float) -> Floats:
        """Return the ladder at r = ``ratio``."""
        return self._rungs.ladder(Fraction(ratio))

    def plurality(self) -> Floats:
        """Return the plurality without noise, ties shared evenly."""
        share = np.zeros(self.inputs.size)
        tops = self.inputs.starts[:-1]
        share[tops] = 1.0 / self.inputs.counts[tops]
        return share

    def spent(self, share: Floats) -> float:
        """Return the largest |log ratio| between histograms that differ by one replaced ballot."""
        if share.min() <= 0.0:
            return math.inf
        logs = np.log(share)[self.inputs.neighbours]
        return float(np.abs(logs[:, 0] - logs[:, 1]).max())

    def calibrated(self, rule: Callable[[float], Floats], epsilon: float) -> tuple[Floats, float]:
        """Return a rule and its parameter s = e^x, with the largest x found that spends epsilon."""

        def excess(loss: float) -> float:
            return self.spent(rule(math.exp(loss))) - epsilon

        # The ladder spends epsilon at r = e^epsilon at least, the others at s = e^(epsilon / 2).
        low, high = 0.25 * epsilon, epsilon
        near = _NEAR * epsilon
        if excess(high) <= near:
            return rule(math.exp(high)), math.exp(high)
        while excess(low) > 0.0:
            low *= 0.5
        root = float(brentq(excess, low, high, xtol=near))
        # The root's error is near at most; what is spent falls with the parameter.
        loss = root - 2.0 * near
        return rule(math.exp(loss)), math.exp(loss)


@lru_cache(maxsize=8)
def rules_of(voters: int, classes: int) -> Rules:
    """Return the rules of K ballots over C classes."""
    return Rules(SortedHistograms(voters, classes))


@lru_cache(maxsize=16)
def _gauss(count: int) -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1]: exact for polynomials of degree 2 count - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def laplace_wins(histograms: Ints, own: Ints, scale: float) -> Floats:
    """Return the chance that the class with count n_y = own wins after Laplace noise of scale b.

    Histograms have shape (n, C), own (n,). The sum over the line of f(x - n_y) prod_(z != y)
    F(x - n_z): between neighbouring counts a polynomial in e^(x / b), which Gauss' rule sums to ten
    digits; above all counts one in e^(-x / b), summed exactly; below all counts a single power.
    """
    voters = int(histograms.sum(axis=1).max())
    pieces = max(1, math.ceil(1.0 / scale))
    nodes, weights = _gauss(12)
    starts = np.arange(voters * pieces)[:, None] / pieces
    inner = (starts + nodes / pieces).ravel()
    inner_weights = np.tile(weights / pieces, voters * pieces)
    tail, tail_weights = _gauss(math.ceil(histograms.shape[1] / 2))
    places = np.concatenate([inner, voters - scale * np.log(tail)])
    all_weights = np.concatenate([inner_weights, tail_weights * scale / tail])
    away = (places[None, :] - np.arange(voters + 1)[:, None]) / scale
    # log F at and above the count, and below it.
    above = np.log1p(-0.5 * np.exp(-np.maximum(away, 0.0)))
    logs = np.where(away >= 0.0, above, away - math.log(2.0))
    densities = 0.5 / scale * np.exp(-np.abs(away))
    least = 0.5 ** histograms.shape[1] * np.exp(-histograms.sum(axis=1) / scale)
    return _wins(histograms, own, logs, densities, all_weights) + least / histograms.shape[1]


def gaussian_wins(histograms: Ints, own: Ints, sigma: float) -> Floats:
    """Return the chance that the class with count own wins after Gaussian noise: GNMax.

    Histograms have shape (n, C), own (n,). The trapezoidal rule, whose error for smooth integrands
    falls faster than any power of a step.
    """
    voters = int(histograms.sum(axis=1).max())
    step = 0.125 * sigma
    places = np.arange(-9.5 * sigma, voters + 9.5 * sigma + step, step)
    away = (places[None, :] - np.arange(voters + 1)[:, None]) / sigma
    densities = np.exp(-0.5 * away**2) / (sigma * math.sqrt(2.0 * math.pi))
    return _wins(histograms, own, log_ndtr(away), densities, np.full(len(places), step))


def _wins(histograms: Ints, own: Ints, logs: Floats, densities: Floats, weights: Floats) -> Floats:
    """Return the sum of f prod F over nodes; logs and densities have a row for each count."""
    many = np.stack([(histograms == c).sum(axis=1) for c in range(len(logs))], axis=1).astype(float)
    many[np.arange(len(own)), own] -= 1.0
    return np.einsum("nx,nx,x->n", np.exp(many @ logs), densities[own], weights)


def response(epsilon: float, classes: int) -> tuple[float, float]:
    """Return the chances of the true class and of another one, by randomised response."""
    odds = math.exp(epsilon)
    return odds / (odds + classes - 1), 1.0 / (odds + classes - 1)


def pure_delta(epsilon: float, labels: int, label_epsilon: float) -> float:
    """Return the least delta of Q labels that are epsilon-DP each: no bound, for the worst of them.

    The Q-fold randomised response: sum_i max(0, P(i) - e^epsilon P(Q - i)), P the binomial
    distribution of its true answers.

    References:
        Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy" (2015).
    """
    from scipy.stats import binom

    true = math.exp(label_epsilon) / (1.0 + math.exp(label_epsilon))
    losses = (2 * np.arange(labels + 1) - labels) * label_epsilon
    masses = binom.pmf(np.arange(labels + 1), labels, true)
    return float((masses * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum())


def pure_share(total: Guarantee, labels: int) -> float:
    """Return the largest epsilon of a label, of Q that are pure, that a total allows."""
    low, high = total.epsilon / labels, total.epsilon + 1.0
    return largest(lambda e: pure_delta(total.epsilon, labels, e) <= total.delta, low, high)


def ranged_share(total: Guarantee, labels: int) -> float:
    """Return the same for the exponential mechanism, whose losses lie in a range of epsilon.

    Its epsilon^2 / 8 of concentrated privacy, Q times.

    References:
        Cesar, Rogers, "Bounding, Concentrating, and Truncating" (2021), lemma 3.2.
    """

    def fits(epsilon: float) -> bool:
        return improved_epsilon(labels * epsilon**2 / 8.0, total.delta) <= total.epsilon

    return max(largest(fits, 0.0, 8.0 * (total.epsilon + 1.0)), pure_share(total, labels))


def gnmax_noise(total: Guarantee, labels: int) -> float:
    """Return the least sigma of GNMax for Q labels: their counts are one Gaussian vector."""
    return gaussian_sigma(total, math.sqrt(2.0 * labels))


def variables_of(inputs: SortedHistograms, counts: Ints, own: Sequence[int] | Ints) -> Ints:
    """Return the variable k[lambda, c] of one class of each histogram, shapes (n,) and (n, C)."""
    return inputs.variables_of(counts)[np.arange(len(own)), own]
