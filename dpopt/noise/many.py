"""Noise for k counts at one budget: the k-fold product must be (epsilon, delta)-private.

The constraint is the exact hockey-stick divergence of k independent draws, which is smooth and not
convex in p. So the optimum is *found*, by sequential quadratic programming from discrete Gaussian
and discrete Laplace noise, and no bound is known. What is released is certified whatever the search
did: `dpopt.composition` bounds delta from above for inputs that may depend on earlier outputs.

With losses l(x) = log p(x) / p(x - 1), and L the sum of k - 1 of them,

    delta_k = sum_x p(x) Pr_P[L > epsilon - l(x)] - e^epsilon p(x - 1) Pr_Q[L > epsilon - l(x)],

and by the envelope theorem k times the two factors are the derivatives by p(x) and p(x - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq, minimize

from dpopt._threads import one_blas_thread
from dpopt._types import IntVector, Matrix, Vector
from dpopt.composition import interval
from dpopt.noise.closed import Loss, mass, signs

CANDIDATES = ("gaussian", "laplace", "found")
"""Names of the noise that is compared for several releases."""

# Cells of the grid of privacy losses in the search, a power of 2, and the standard deviations of
# their sum that it covers.
_CELLS, _DEVIATIONS = 1 << 14, 8.0
# Cells of the grid of a certificate, which is then exact to about 3e-5.
_GRID = 16_000
# Mass beyond the window, as a share of delta for each release; and log p that is no mass.
_OUTSIDE, _LEAST_LOG = 1e-3, -60.0
# Largest difference of log p that the search looks at.
_HUGE_LOG = 600.0
# Corrections of a family's parameter by what was certified; share of delta that may be left.
_CORRECTIONS, _LEFT = 8, 2e-4
# Iterations of the search, and the relative change of the mean loss at which it ends.
_ITERATIONS, _TOLERANCE = 200, 1e-8
# Distances from 0 that are variables of their own, and knots beyond.
_OWN, _KNOTS = 12, 20


def certified_delta(pmf: Vector, releases: int, epsilon: float) -> float:
    """Return an upper bound on the delta of k releases of p(0), ..., p(N), adaptively chosen.

    Symmetric noise has the same divergence in both directions, so that one order is enough.
    """
    symmetric = np.concatenate([pmf[:0:-1], pmf])
    pair = np.append(symmetric, 0.0), np.append(0.0, symmetric)
    return interval([pair], releases, epsilon, _GRID, lower=False)[1]


def gaussian(last: int, scale: float) -> Vector:
    """Return p(0), ..., p(N) of discrete Gaussian noise with a parameter sigma."""
    return normalised(np.exp(-((np.arange(last + 1) / scale) ** 2) / 2))


def laplace(last: int, scale: float) -> Vector:
    """Return p(0), ..., p(N) of discrete Laplace noise, p(x) in proportion to e^(-x / scale)."""
    return normalised(np.exp(-np.arange(last + 1) / scale))


def normalised(weights: Vector) -> Vector:
    """Return p(0), ..., p(N) that sum to 1 over -N..N."""
    return weights / mass(weights)


def calibrated(
    family: Callable[[float], Vector],
    low: float,
    high: float,
    releases: int,
    epsilon: float,
    delta: float,
) -> Vector:
    """Return the noise of a family whose certified delta is just below delta."""
    target, best, root = delta, None, high
    for _ in range(_CORRECTIONS):

        def excess(parameter: float, target: float = target) -> float:
            spent = product_delta(family(parameter), releases, epsilon)[0]
            return math.log(max(spent, 1e-300) / target)

        if not excess(low) > 0 > excess(high):
            break
        root = float(brentq(excess, low, high, xtol=1e-9))
        pmf = family(root)
        certified = certified_delta(pmf, releases, epsilon)
        if certified <= delta:
            best = pmf
            if certified >= delta * (1 - _LEFT):
                break
        # The search's delta is a little off, by the same share nearby.
        target *= delta / certified * (1 - _LEFT / 2)
    if best is not None:
        return best
    # Delta jumps there, as that of discrete Laplace noise at pure privacy: just beyond.
    for step in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        if certified_delta(family(root + step), releases, epsilon) <= delta:
            return family(root + step)
    return family(high)


def of_scale(
    shape: Callable[[int, float], Vector], tail: float, releases: int, epsilon: float, delta: float
) -> Vector:
    """Return the noise of a shape with the least scale; N is ``tail`` scales."""

    def family(log_scale: float) -> Vector:
        scale = math.exp(log_scale)
        return shape(max(2, math.ceil(tail * scale)), scale)

    low = high = 0.0
    while product_delta(family(low), releases, epsilon)[0] < 2 * delta:
        low -= 1.0
    while product_delta(family(high), releases, epsilon)[0] > delta / 2:
        high += 1.0
    return calibrated(family, low, high, releases, epsilon, delta)


def product_delta(pmf: Vector, releases: int, epsilon: float) -> tuple[float, Vector]:
    """Return delta of k draws of p(0), ..., p(N), in floats, and its derivatives by p."""
    last = pmf.size - 1
    symmetric = np.concatenate([pmf[:0:-1], pmf])
    one, other = np.append(symmetric, 0.0), np.append(0.0, symmetric)
    both = (one > 0) & (other > 0)
    losses = np.log(one[both] / other[both])
    # The grid covers the sum of all losses; what it leaves out is below its accuracy.
    mean = float(one[both] @ losses)
    deviation = math.sqrt(max(0.0, float(one[both] @ losses**2) - mean**2))
    spread = releases * abs(mean) + _DEVIATIONS * math.sqrt(releases) * deviation
    half = _CELLS // 2
    width = (epsilon + spread + float(np.abs(losses).max())) / half
    tails = []
    for side in (one[both], other[both]):
        masses = np.zeros(_CELLS)
        cell = losses / width
        low = np.floor(cell)
        for at, share in ((low, 1 - (cell - low)), (low + 1, cell - low)):
            index = np.clip(at.astype(int) + half, 0, _CELLS - 1)
            np.add.at(masses, index, side * share)
        product = np.fft.irfft(np.fft.rfft(np.roll(masses, -half)) ** (releases - 1), _CELLS)
        product = np.maximum(np.roll(product, half), 0.0)
        # Pr[L > l] between grid points; what is impossible under Q has an infinite loss.
        tail = np.cumsum(product[::-1])[::-1] - product / 2
        missing = 1 - float(side.sum()) ** (releases - 1) if side is one[both] else 0.0
        tails.append(np.append(tail, 0.0) + missing)
    position = (epsilon - losses) / width + half
    factor_one, factor_other = np.ones(one.size), np.zeros(one.size)
    factor_one[both] = np.interp(position, np.arange(_CELLS + 1), tails[0])
    factor_other[both] = np.interp(position, np.arange(_CELLS + 1), tails[1])
    growth = math.exp(epsilon)
    delta = float(one @ factor_one - growth * (other @ factor_other))
    by_place = releases * (factor_one[:-1] - growth * factor_other[1:])
    folded = by_place[last:].copy()
    folded[1:] += by_place[:last][::-1]
    return delta, folded


def searched(start: Vector, releases: int, epsilon: float, delta: float, loss: Loss) -> Vector:
    """Return a local optimum near a start: least mean loss with the product's delta at most delta.

    The variables are log p up to a constant; what the search returns is flattened a little,
    p^(1 - share), until it is certified. It is never worse than the start.
    """
    distance = np.arange(start.size)
    counts, costs = signs(distance), loss(distance)
    unit = mean_loss(start, loss)
    basis, knots = smooth_basis(start.size)

    def pmf_of(logs: Vector) -> Vector:
        # A step of the search may leave the floats; what is private is certified in the end.
        finite = np.nan_to_num(logs, nan=0.0, posinf=_HUGE_LOG, neginf=-_HUGE_LOG)
        return normalised(np.exp(np.maximum(finite - finite.max(), -_HUGE_LOG)))

    def chained(pmf: Vector, gradient: Vector) -> Vector:
        """Return derivatives by log p from those by p of both signs."""
        return pmf * (gradient - counts * float(pmf @ gradient))

    def objective(logs: Vector) -> tuple[float, Vector]:
        pmf = pmf_of(logs)
        return float(counts * costs @ pmf) / unit, chained(pmf, counts * costs) / unit

    @cache
    def spent(at: bytes) -> tuple[float, Vector]:
        pmf = pmf_of(basis @ np.frombuffer(at))
        total, gradient = product_delta(pmf, releases, epsilon)
        return max(total, 1e-300), chained(pmf, gradient)

    def spare(at: Vector) -> float:
        return -math.log(spent(at.tobytes())[0] / delta)

    def spare_gradient(at: Vector) -> Vector:
        total, gradient = spent(at.tobytes())
        return basis.T @ (-gradient / total)

    first = np.maximum(np.log(start), _LEAST_LOG)
    answer = minimize(
        lambda at: objective(basis @ at)[0],
        first[knots],
        jac=lambda at: basis.T @ objective(basis @ at)[1],
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": spare, "jac": spare_gradient}],
        options={"maxiter": _ITERATIONS, "ftol": _TOLERANCE},
    )
    logs = basis @ answer.x
    logs -= logs.max()

    def flattened(share: float) -> Vector:
        return pmf_of(logs * (1 - share))

    # The search ends near the limit: a little flatter noise is private, a little steeper is not.
    for share in (0.003, 0.03, 0.2):
        at_ends = [product_delta(flattened(side * share), releases, epsilon)[0] for side in (-1, 1)]
        if at_ends[0] > delta > at_ends[1]:
            pmf = calibrated(flattened, -share, share, releases, epsilon, delta)
            # Beside a jump of delta the search may end at noise that is worse than its start.
            private = certified_delta(pmf, releases, epsilon) <= delta
            return pmf if private and mean_loss(pmf, loss) < unit else start
    return start


def smooth_basis(size: int) -> tuple[Matrix, IntVector]:
    """Return the matrix from log p at knots to log p at all distances, and the knots."""
    beyond = np.linspace(min(_OWN, size - 1), size - 1, _KNOTS).round().astype(int)
    knots = np.unique(np.concatenate([np.arange(min(_OWN, size)), beyond]))
    degree = min(3, knots.size - 1)
    spline = make_interp_spline(knots, np.eye(knots.size), k=degree)
    return np.asarray(spline(np.arange(size))), knots


@one_blas_thread  # for its speed, and since rounding decides which local optimum is found
def candidates(releases: int, epsilon: float, delta: float, loss: Loss) -> dict[str, Vector]:
    """Return certified noise by name: discrete Gaussian, discrete Laplace, and found by search."""
    outside = -math.log(delta * _OUTSIDE / releases)
    shapes = (gaussian, math.sqrt(2 * outside)), (laplace, outside)
    starts = [of_scale(shape, tail, releases, epsilon, delta) for shape, tail in shapes]
    optima = [searched(start, releases, epsilon, delta, loss) for start in starts]
    best = min(optima, key=partial(mean_loss, loss=loss))
    return dict(zip(CANDIDATES, (*starts, best), strict=True))


def mean_loss(pmf: Vector, loss: Loss) -> float:
    """Return the mean loss of p(0), ..., p(N)."""
    distance = np.arange(pmf.size)
    return float(signs(distance) * loss(distance) @ pmf)
