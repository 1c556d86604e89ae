"""The distance of discrete distributions, which are the last axis of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError

Array = npt.NDArray[np.float64]


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the total variation distance 1/2 sum_x |p(x) - q(x)|, shape (...).

    Args:
        p: pmfs, shape (..., outcomes).
        q: pmfs, shape (..., outcomes); broadcast against p.

    Raises:
        ParameterError: if an entry is below 0 or not finite, or the shapes differ.
    """
    a, b = _checks.floats("p", p), _checks.floats("q", q)
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-1]:
        raise ParameterError(
            f"p has shape {a.shape} and q {b.shape}; their last axes must have the same length."
        )
    # Largest entry of p and q; larger ones could overflow in a sum.
    if not all(np.all((pmf >= 0) & (pmf <= 1e100)) for pmf in (a, b)):
        raise ParameterError(
            "p or q holds a value below 0, or one that is no finite number; probabilities must be "
            "at least 0."
        )
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise ParameterError(
            f"p has shape {a.shape} and q {b.shape}; they must broadcast against each other."
        ) from None
    return np.asarray(0.5 * np.sum(np.abs(a - b), axis=-1))
