"""A statistical lower bound on epsilon from draws, to test that code samples what was certified."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from dpopt import _checks
from dpopt._errors import ParameterError


@dataclass(frozen=True)
class Audit:
    """A lower bound on epsilon, wrong with probability at most 1 - confidence.

    Attributes:
        epsilon: the bound, in nats; 0 if the draws show no privacy loss.
        output: the output that attains the bound; None if it is 0.
        reversed: whether this output is likelier in the second sample.
        delta: the delta of the claim that is tested.
        confidence: of the bound, simultaneously over all outputs and both directions.
    """

    epsilon: float
    output: int | None
    reversed: bool
    delta: float
    confidence: float


def audit_epsilon(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outputs: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> Audit:
    """Return a lower bound on epsilon from the outputs drawn on two neighbouring inputs.

    It is the largest log((lower bound of P(y) - delta) / upper bound of P'(y)) over all outputs y
    and both directions, with Clopper-Pearson bounds and a Bonferroni correction.

    Args:
        first: outputs drawn on x, integers in 0..outputs-1, shape (n,).
        second: outputs drawn on the neighbour x', likewise, of any length.
        outputs: number of outputs.
        delta: of the mechanism, in [0, 1].
        confidence: in (0, 1).

    Raises:
        ParameterError: if a sample is empty or holds anything but outputs, or a number is out of
            range.
    """
    # Outputs whose draws are counted; memory fixes it.
    size = _checks.integer("outputs", outputs, 1, 10**8)
    delta = _checks.real("delta", delta, 0.0, 1.0)
    confidence = _checks.real("confidence", confidence, 0.0, 1.0, open_lower=True, open_upper=True)
    counts = [_counts(name, s, size) for name, s in (("first", first), ("second", second))]
    # Two bounds for each output and direction share the error probability.
    level = (1.0 - confidence) / (4 * size)
    best = Audit(0.0, None, False, delta, confidence)
    for reverse, (one, other) in enumerate((counts, counts[::-1])):
        # A bound on epsilon for each output, -inf where P(y) may be at most delta.
        low = _lower(one, level) - delta
        high = _upper(other, level)
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = np.where(low > 0, np.log(low / high), -math.inf)
        output = int(np.argmax(bounds))
        if bounds[output] > best.epsilon:
            best = Audit(float(bounds[output]), output, bool(reverse), delta, confidence)
    return best


def _counts(name: str, sample: npt.ArrayLike, outputs: int) -> npt.NDArray[np.int64]:
    array = _checks.array(name, sample)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ParameterError(f"{name} must be a non-empty one-dimensional array of integers.")
    if array.min() < 0 or array.max() >= outputs:
        raise ParameterError(f"{name} holds an output outside 0..{outputs - 1}.")
    return np.bincount(array.astype(np.int64), minlength=outputs)


def _lower(counts: npt.NDArray[np.int64], level: float) -> npt.NDArray[np.float64]:
    """Return the Clopper-Pearson lower bound on each output's probability, with error ``level``."""
    n = counts.sum()
    with np.errstate(invalid="ignore"):
        bounds = betaincinv(counts, n - counts + 1, level)
    return np.where(counts == 0, 0.0, bounds)


def _upper(counts: npt.NDArray[np.int64], level: float) -> npt.NDArray[np.float64]:
    """Return the upper bound, likewise."""
    n = counts.sum()
    with np.errstate(invalid="ignore"):
        bounds = betainccinv(counts + 1, n - counts, level)
    return np.where(counts == n, 1.0, bounds)
