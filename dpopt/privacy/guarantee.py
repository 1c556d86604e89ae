"""What a mechanism promises, and what several mechanisms promise together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpopt import _checks

# Integers up to here are floats.
_MOST_FOLDS = 2**53


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy.

    For all neighbouring inputs and every event S: Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] +
    delta.

    Attributes:
        epsilon: at least 0, in nats.
        delta: in [0, 1).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.real("epsilon", self.epsilon, 0.0))
        delta = _checks.real("delta", self.delta, 0.0, 1.0, open_upper=True)
        object.__setattr__(self, "delta", delta)


def simple_composition(guarantee: Guarantee, folds: int) -> Guarantee:
    """Return the guarantee of ``folds`` mechanisms together: (k epsilon, k delta).

    References:
        Theorem 2.2 of the DaRRM paper. Where k delta reaches 1 nothing is promised, and a
        ParameterError says so.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    k = _checks.integer("folds", folds, 1, _MOST_FOLDS)
    return Guarantee(k * guarantee.epsilon, k * guarantee.delta)


def general_composition(guarantee: Guarantee, folds: int, slack: float) -> Guarantee:
    """Return the guarantee of ``folds`` mechanisms together, epsilon traded against ``slack``.

    epsilon' = min{ k e, A + e sqrt(2k log(E + sqrt(k e^2) / slack)), A + e sqrt(2k log(1 / slack))
    } with e = epsilon, E = exp(1), A = k e (exp(e) - 1) / (exp(e) + 1), and
    delta' = 1 - (1 - delta)^k (1 - slack).

    Args:
        guarantee: of each mechanism.
        folds: k >= 1.
        slack: the theorem's delta', in (0, 1).

    References:
        Kairouz, Oh, Viswanath (2015); theorem 2.3 of the DaRRM paper.

    Example:
        >>> from dpopt.privacy import Guarantee, general_composition
        >>> round(general_composition(Guarantee(0.1), 100, slack=1e-6).epsilon, 4)
        5.7561
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    k = _checks.integer("folds", folds, 1, _MOST_FOLDS)
    slack = _checks.real("slack", slack, 0.0, 1.0, open_lower=True, open_upper=True)
    e = guarantee.epsilon
    base = k * e * math.tanh(e / 2)
    spread = e * math.sqrt(2 * k)
    epsilon = min(
        k * e,
        base + spread * math.sqrt(math.log(math.e + math.sqrt(k) * e / slack)),
        base + spread * math.sqrt(math.log(1 / slack)),
    )
    # log1p keeps deltas of 1e-12 and below.
    delta = -math.expm1(k * math.log1p(-guarantee.delta) + math.log1p(-slack))
    return Guarantee(epsilon, delta)
