"""Algorithm 6 of the DaRRM paper as it is printed, beside the theorem that it is to compute."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfc, log_ndtr

from dpopt import ParameterError, gnmax


def as_printed(
    ones: int, zeros: int, sigma: float, order: float, *, logarithm: bool = False
) -> float | None:
    """Return lines 4 to 11 for one query on two classes; None where line 8's conditions fail.

    Line 7 has (mu_2 - 1)^epsilon_2 for (mu_2 - 1) epsilon_2; line 9 has q exp(epsilon_2)^(...) for
    (q exp(epsilon_2))^(...); line 11 has no logarithm.

    Args:
        ones: votes for one class, at least 0.
        zeros: votes for the other.
        sigma: above 0.
        order: lambda, above 1.
        logarithm: put the logarithm into line 11.
    """
    q = 0.5 * float(erfc(abs(ones - zeros) / (2 * sigma)))
    if not 0.0 < q < 1.0:
        return None
    second = sigma * math.sqrt(-math.log(q))
    first = second + 1.0
    if first < order or second <= 1.0:
        return None
    spent, more = second / sigma**2, first / sigma**2
    limit = _power(second - 1.0, spent) - second * math.log(
        first / (first - 1.0) * second / (second - 1.0)
    )
    share = q * math.exp(spent * (second - 1.0) / second)
    if math.log(q) > limit or share >= 1.0:
        return None
    a = (1.0 - q) / (1.0 - share)
    b = math.exp(more) / q ** (1.0 / (first - 1.0))
    mean = (1.0 - q) * a ** (order - 1.0) + q * b ** (order - 1.0)
    return (math.log(mean) if logarithm else mean) / (order - 1.0)


def _power(base: float, exponent: float) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


def divergence(ones: int, zeros: int, sigma: float, order: float) -> float:
    """Return the Renyi divergence of the label when one vote leaves the larger class, exactly.

    Two classes: label 1 has probability Phi((ones - zeros) / (sigma sqrt 2)).
    """
    ahead = abs(ones - zeros)
    scale = sigma * gnmax.SENSITIVITY
    terms = [
        order * float(log_ndtr(side * ahead / scale))
        + (1.0 - order) * float(log_ndtr(side * (ahead - 2) / scale))
        for side in (1, -1)
    ]
    return float(np.logaddexp(terms[0], terms[1])) / (order - 1.0)


def checked_votes(ones: int, zeros: int) -> None:
    """Refuse votes of which none can move.

    Raises:
        ParameterError: if there are none, or one is negative.
    """
    if min(ones, zeros) < 0 or ones + zeros == 0:
        raise ParameterError(f"votes is {ones}:{zeros}; it must be counts, not both 0.")
