"""The relative mollifier: the baseline that projects each user's law into a box around the prior.

Husain, Balle, Cranko, Nock, "Local Differential Privacy for Sampling" (AISTATS 2020).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector, frozen
from dpopt.lp import Problem
from dpopt.public_prior.prior import PublicPrior, laws_over, public_prior

# Probabilities held at once while users are projected.
_CHUNK = 1 << 20


def mollify(prior: npt.ArrayLike | PublicPrior, laws: npt.ArrayLike, epsilon: float) -> Matrix:
    """Return the laws nearest in KL to the users' within the relative epsilon-mollifier.

    argmin KL(p || r) over laws r with q e^(-epsilon/2) <= r <= q e^(epsilon/2) is
    r(x) = min{max{q(x) e^(-epsilon/2), p(x) / C}, q(x) e^(epsilon/2)} (equation 3). The sum is
    piecewise linear in 1/C: the piece is found among the 2 n sorted breakpoints and C computed
    from it, in O(n log n), not approached by bisection over C. The result also attains the least
    total variation (`mollifier_tv`).

    Where p is 0 on so much of q that even its support at the upper limit sums to less than 1, KL
    does not tell the rest apart: the letters with p = 0 get it in proportion to q.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        laws: p, shape (n,) or (users, n), may hold zeros.
        epsilon: above 0, in nats, at most 600.

    Returns:
        r, of the shape of ``laws``, read-only. Floats: a draw from it by floating point is not
        covered by a certificate.

    Raises:
        ParameterError: if an argument is out of range.

    Example:
        >>> from dpopt import public_prior
        >>> public_prior.mollify([0.25, 0.25, 0.5], [1.0, 0.0, 0.0], 1.0).round(4).tolist()
        [0.4122, 0.1959, 0.3919]
    """
    q = public_prior(prior).masses
    p = laws_over(laws, q.size)
    low, high = _limits(q, epsilon)
    rows = p.reshape(-1, q.size)
    found = np.empty_like(rows)
    step = max(1, _CHUNK // q.size)
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        found[part] = _project(rows[part], q, low, high)
    return frozen(found.reshape(p.shape))


def mollifier_tv(prior: npt.ArrayLike | PublicPrior, laws: npt.ArrayLike, epsilon: float) -> Vector:
    """Return the least total variation between each user's law and the relative mollifier.

    max{sum_x (q(x) e^(-epsilon/2) - p(x))_+, sum_x (p(x) - q(x) e^(epsilon/2))_+}, the value of
    `mollifier_problem`: each sum is forced on any law within the limits, and what is left over
    can be moved without raising the larger one.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        laws: p, shape (n,) or (users, n).
        epsilon: above 0, in nats, at most 600.

    Returns:
        Shape () or (users,), read-only.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_prior(prior).masses
    p = laws_over(laws, q.size)
    low, high = _limits(q, epsilon)
    below = np.maximum(0.0, low - p).sum(axis=-1)
    above = np.maximum(0.0, p - high).sum(axis=-1)
    return frozen(np.maximum(below, above))


def mollifier_problem(
    prior: npt.ArrayLike | PublicPrior, law: npt.ArrayLike, epsilon: float
) -> Problem:
    """Return the program of appendix A.8: the least total variation to the relative mollifier.

    Minimise sum_x Z(x) subject to Z >= 0, Z(x) >= p(x) - r(x), sum_x r(x) = 1 and
    q e^(-epsilon/2) <= r <= min{1, q e^(epsilon/2)}; variables "law" (r) and "shortfall" (Z).

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        law: p, shape (n,).
        epsilon: above 0, in nats, at most 600.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_prior(prior).masses
    p = laws_over(law, q.size)
    if p.ndim != 1:
        raise ParameterError(f"law has shape {p.shape}; it must be ({q.size},).")
    low, high = _limits(q, epsilon)
    problem = Problem("relative mollifier")
    problem.add_variables("law", q.size, lower=low, upper=np.minimum(high, 1.0))
    problem.add_variables("shortfall", q.size, lower=0.0, upper=1.0)
    problem.add_rows("sum", {"law": np.ones((1, q.size))}, lower=1.0, upper=1.0)
    eye = sp.eye_array(q.size)
    problem.add_rows("distance", {"law": eye, "shortfall": eye}, lower=p)
    problem.minimise({"shortfall": 1.0})
    return problem


def _limits(q: Vector, epsilon: float) -> tuple[Vector, Vector]:
    half = _checks.real("epsilon", epsilon, 0.0, 600.0, open_lower=True) / 2.0
    return q * math.exp(-half), q * math.exp(half)


def _project(p: Matrix, q: Vector, low: Vector, high: Vector) -> Matrix:
    """Return the projections of laws, shape (users, n)."""
    scale, held = _scale(p, low, high)
    found = _clipped(p, scale, low, high)
    if np.any(held):
        empty = p[held] == 0.0
        rest = 1.0 - np.where(empty, 0.0, found[held]).sum(axis=1)
        share = np.maximum(np.where(empty, q, 0.0).sum(axis=1), np.finfo(float).tiny)
        spread = np.clip(q * (rest / share)[:, None], low, high)
        found[held] = np.where(empty, spread, found[held])
    return found


def _clipped(p: Matrix, scale: Vector, low: Vector, high: Vector) -> Matrix:
    """Return p times the scale of its row, within the limits; an infinite scale means high."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(p > 0.0, p * scale[:, None], 0.0)
    return np.clip(scaled, low, high)


def _scale(p: Matrix, low: Vector, high: Vector) -> tuple[Vector, npt.NDArray[np.bool_]]:
    """Return 1/C for each row, and the rows that sum to less than 1 whatever the scale."""
    with np.errstate(over="ignore", divide="ignore"):
        first, last = low / p, high / p
    points = np.sort(np.concatenate([first, last], axis=1), axis=1)
    users = np.arange(p.shape[0])
    left, right = np.zeros_like(users), np.full_like(users, points.shape[1])
    # Search for the first breakpoint where the sum reaches 1; each sum is of positive terms.
    while np.any(left < right):
        middle = np.minimum((left + right) // 2, points.shape[1] - 1)
        reached = _clipped(p, points[users, middle], low, high).sum(axis=1) >= 1.0
        open_rows = left < right
        right = np.where(open_rows & reached, middle, right)
        left = np.where(open_rows & ~reached, middle + 1, left)
    held = left == points.shape[1]
    point = points[users, np.minimum(left, points.shape[1] - 1)]
    lowest, highest = first >= point[:, None], last < point[:, None]
    active = np.where(lowest | highest, 0.0, p).sum(axis=1)
    limited = np.where(lowest, low, 0.0).sum(axis=1) + np.where(highest, high, 0.0).sum(axis=1)
    inside = ~held & (active > 0.0)
    scale = np.where(held, np.inf, point)
    np.divide(1.0 - limited, active, out=scale, where=inside)
    return scale, held
