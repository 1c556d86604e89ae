"""Pmfs of counts, binomial and Poisson-binomial in batches, and the distance of pmfs.

The pmfs are products and sums of positive terms, so that every probability has a small *relative*
error (about as many units in the last place as there are trials).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector

# Most entries of a pmf, 8 GB.
_MOST = 10**9


def binomial_pmf(trials: int, p: float) -> Vector:
    """Return the pmf of Binomial(n, p) at k = 0..n: C(n, k) p^k (1 - p)^(n - k).

    Args:
        trials: n >= 0.
        p: success probability in [0, 1].

    Raises:
        ParameterError: if an argument is out of range.
    """
    n = _checks.integer("trials", trials, 0, _MOST)
    p = _checks.real("p", p, 0.0, 1.0)
    if p in (0.0, 1.0):
        pmf = np.zeros(n + 1)
        pmf[n if p == 1.0 else 0] = 1.0
        return pmf
    k = np.arange(n)
    mode = min(n, int((n + 1) * p))
    return from_ratios((n - k) / (k + 1) * (p / (1 - p)), mode)


def from_ratios(ratios: Vector, mode: int) -> Vector:
    """Return the pmf with ratios Pr[k + 1] / Pr[k], computed outwards from its mode."""
    pmf = np.ones(ratios.size + 1)
    pmf[mode + 1 :] = np.cumprod(ratios[mode:])
    pmf[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    return pmf / pmf.sum()


def poisson_binomial_pmf(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the pmf, shape (..., n + 1), of a sum of n independent Bernoulli(p_i).

    Trials are added one at a time: Pr_{i+1}[k] = p_i Pr_i[k - 1] + (1 - p_i) Pr_i[k].

    Args:
        p: probabilities in [0, 1], shape (..., n).

    Raises:
        ParameterError: if a probability is outside [0, 1] or not a number.

    Example:
        >>> from dpopt.prob import poisson_binomial_pmf
        >>> poisson_binomial_pmf([0.5, 0.2]).round(6).tolist()
        [0.4, 0.5, 0.1]
    """
    array = _checks.floats("p", p)
    if array.ndim == 0:
        raise ParameterError("p is a single number; it must have shape (..., n).")
    if not np.all((array >= 0) & (array <= 1)):
        raise ParameterError("p holds a value outside [0, 1]; probabilities must lie in it.")
    n, batch = array.shape[-1], array.shape[:-1]
    # Axes of flat: trial, batch; of pmf: count, batch.
    flat = np.ascontiguousarray(array.reshape(math.prod(batch), n).T)
    pmf = np.zeros((n + 1, flat.shape[1]))
    pmf[0] = 1.0
    for i, q in enumerate(flat):
        moved = pmf[: i + 1] * q
        pmf[: i + 1] *= 1.0 - q
        pmf[1 : i + 2] += moved
    return np.ascontiguousarray(pmf.T).reshape(*batch, n + 1)


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the total variation distance 1/2 sum_x |p(x) - q(x)|, shape (...).

    Args:
        p: pmfs, shape (..., outcomes).
        q: pmfs, shape (..., outcomes); broadcast against p.

    Raises:
        ParameterError: if an entry is below 0 or not finite, or the shapes differ.
    """
    a, b = _checks.floats("p", p), _checks.floats("q", q)
    # Larger entries could overflow in a sum.
    if not all(np.all((pmf >= 0) & (pmf <= 1e100)) for pmf in (a, b)):
        raise ParameterError(
            "p or q holds a value below 0, or one that is no finite number; probabilities must be "
            "at least 0."
        )
    try:
        if a.shape[-1:] == b.shape[-1:] != ():
            return np.asarray(0.5 * np.sum(np.abs(a - b), axis=-1))
    except ValueError:
        pass
    raise ParameterError(
        f"p has shape {a.shape} and q {b.shape}; they must broadcast against each other, with last "
        "axes of the same length."
    )
