"""The largest error over all p that a prior allows, as rows of the program."""

from __future__ import annotations

import numpy as np

from dpopt._types import Matrix, Vector
from dpopt.lp import Separation, make_rows
from dpopt.majority.points import CommonPrior, PointPrior, SamplePrior, as_prior
from dpopt.majority.prior import Prior
from dpopt.majority.setting import fold, odd
from dpopt.prob import binomial_pmf, poisson_binomial_pmf

_MOST_CUTS = 40


class WorstCase:
    """The family |error(p)| <= t over the variables (gamma's upper half, t).

    error(p) is affine in each p_i (the law of L is), so over a box its size is largest where
    every p_i is the smallest or the largest p that the prior allows: K + 1 multisets. Samples and
    points are listed; for a common p the polynomial of degree K is searched on a fine grid, and
    its largest values refined.

    Args:
        mechanisms: K.
        prior: where p may lie.
    """

    def __init__(self, mechanisms: int, prior: Prior) -> None:
        mechanisms, prior = odd(mechanisms), as_prior(prior)
        self._k, self._prior = mechanisms, prior
        self._grid: Vector = np.empty(0)
        if isinstance(prior, CommonPrior):
            self._grid = _grid(mechanisms, prior)
            self._margins = _common(mechanisms, self._grid)
        else:
            self._margins = _extremes(mechanisms, prior)

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

    def _worst(self, gamma: Vector) -> tuple[Matrix, Vector]:
        """Return margins, those of a common p with refined peaks, and the errors there."""
        margins = self._margins
        errors = margins @ (1.0 - gamma)
        if self._grid.size:
            fine = [self._refined(gamma, place) for place in _peaks(np.abs(errors))]
            margins = np.vstack([margins, _common(self._k, np.array(fine))])
            errors = margins @ (1.0 - gamma)
        return margins, errors

    def _refined(self, gamma: Vector, place: int) -> float:
        low, high = self._grid[max(place - 1, 0)], self._grid[min(place + 1, self._grid.size - 1)]

        from scipy.optimize import minimize_scalar

        def loss(p: float) -> float:
            return -abs(float(_common(self._k, np.array([p]))[0] @ (1.0 - gamma)))

        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        best = float(found.x)
        return best if loss(best) < loss(self._grid[place]) else float(self._grid[place])


def _common(k: int, p: Vector) -> Matrix:
    """Return the margins 1/2 (alpha_l - alpha_{K-l}) where all voters have the same p."""
    return 0.5 * fold(np.array([binomial_pmf(k, float(value)) for value in p]))


def _grid(k: int, prior: CommonPrior) -> Vector:
    pieces = getattr(prior.base, "intervals", ((0.0, 1.0),))
    count = 8 * k + 33
    # Denser towards the ends, where a polynomial turns faster.
    nodes = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, count))
    return np.concatenate([low + (high - low) * nodes for low, high in pieces])


def _peaks(values: Vector) -> list[int]:
    inner = np.concatenate([[-np.inf], values, [-np.inf]])
    peak = np.flatnonzero((values >= inner[:-2]) & (values >= inner[2:]))
    return peak[np.argsort(-values[peak], kind="stable")][:5].tolist()


def _extremes(k: int, prior: Prior) -> Matrix:
    if isinstance(prior, SamplePrior):
        prior.sample((1, k), np.random.default_rng(0))
        points = prior.samples
    elif isinstance(prior, PointPrior):
        points = prior.sample((1, k), np.random.default_rng(0))
    else:
        low, high = prior.reach
        points = np.where(np.arange(k)[None, :] < np.arange(k + 1)[:, None], high, low)
    return 0.5 * fold(poisson_binomial_pmf(points))
