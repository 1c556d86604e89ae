"""Guarantees of (epsilon, delta)-differential privacy, and their composition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpopt import _checks, verify
from dpopt._numbers import float_up
from dpopt.privacy.exponential import exp_upper, log_upper, sqrt_upper

# Fractional bits of powers. Deltas go down to 2^-1074; each of up to 107 products loses less than
# 2^54 units.
_POWER_BITS = 1220


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

    def __repr__(self) -> str:
        # 0.1 * 3 as 0.3.
        epsilon, delta = (float(f"{number:.12g}") for number in (self.epsilon, self.delta))
        return f"Guarantee(epsilon={epsilon}, delta={delta})"


def in_short(guarantee: Guarantee) -> str:
    """Return a short text of a guarantee, such as "(0.5, 0)-DP", rounded up to six digits."""
    return f"({verify.not_below(guarantee.epsilon)}, {verify.not_below(guarantee.delta)})-DP"


def simple_composition(guarantee: Guarantee, folds: int) -> Guarantee:
    """Return the guarantee of ``folds`` composed mechanisms: (k epsilon, k delta), rounded up.

    Both are the least floats that are at least the exact products.

    Args:
        guarantee: of each mechanism.
        folds: k >= 1.

    Raises:
        ParameterError: if k delta reaches 1, where nothing is guaranteed.

    References:
        Theorem 2.2 of the DaRRM paper.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    # Number of mechanisms: integers up to here are exact as floats.
    k = _checks.integer("folds", folds, 1, 2**53)
    exact = Fraction(guarantee.epsilon), Fraction(guarantee.delta)
    return Guarantee(float_up(k * exact[0]), float_up(k * exact[1]))


def general_composition(guarantee: Guarantee, folds: int, slack: float) -> Guarantee:
    """Return the guarantee of ``folds`` composed mechanisms, with less epsilon for a larger delta.

    epsilon' = min{ k e, A + e sqrt(2k log(E + sqrt(k e^2) / slack)), A + e sqrt(2k log(1 / slack))
    } with e = epsilon, E = exp(1), A = k e (exp(e) - 1) / (exp(e) + 1), and
    delta' = 1 - (1 - delta)^k (1 - slack). Both are rounded up: every step is taken in rationals
    that are at least the exact value, by a few floats at most.

    The slack in (0, 1), the delta' of the theorem, is the additional delta. The other arguments are
    those of `simple_composition`.

    References:
        Kairouz, Oh, Viswanath (2015); theorem 2.3 of the DaRRM paper.

    Example:
        >>> from dpopt.privacy import Guarantee, general_composition
        >>> round(general_composition(Guarantee(0.1), 100, slack=1e-6).epsilon, 4)
        5.7561
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    k = _checks.integer("folds", folds, 1, 2**53)
    slack = _checks.real("slack", slack, 0.0, 1.0, open_lower=True, open_upper=True)
    e, tail = Fraction(guarantee.epsilon), Fraction(slack)
    # (exp(e) - 1) / (exp(e) + 1), which above e = 100 rounds to 1.
    mean_loss = Fraction(1) if e > 100 else (exp_upper(e) - 1) / (exp_upper(e) + 1)
    base = k * e * mean_loss
    root = sqrt_upper(k) * e / tail
    logs = log_upper(exp_upper(1) + root), log_upper(1 / tail)
    spread = e * sqrt_upper(2 * k * Fraction(min(logs)))
    survival = power_below(1 - Fraction(guarantee.delta), k) * (1 - tail)
    return Guarantee(float_up(min(k * e, base + spread)), float_up(1 - survival))


def power_below(base: Fraction, exponent: int) -> Fraction:
    """Return base^exponent for a base in [0, 1], rounded down by at most 2^-1150."""
    # Square and multiply in integers over 2^_POWER_BITS, each product rounded down.
    scale = 1 << _POWER_BITS
    power, square = scale, base.numerator * scale // base.denominator
    while exponent:
        if exponent & 1:
            power = power * square >> _POWER_BITS
        square = square * square >> _POWER_BITS
        exponent >>= 1
    return Fraction(power, scale)
