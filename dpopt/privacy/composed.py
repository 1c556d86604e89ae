"""What different mechanisms spend together: rounded up, from their guarantees alone.

A *part* is a guarantee (epsilon_j, delta_j) and how many of the mechanisms have it, n_j. Each
mechanism's randomness is independent of the others', given data and earlier outputs; which of them
is asked next, and of which data, may depend on earlier outputs.

How many there are, and how much each may spend, is fixed before the first output is seen. Where
both may depend on earlier outputs, a bound on what they spend together is a *filter*: whoever
stops before it is crossed is as private as it says (Rogers, Roth, Ullman, Vadhan 2016). The sums of
`simple` and of `concentrated` are filters, with a slack that was fixed (Whitehouse, Ramdas, Rogers,
Wu 2023, theorem 1); those of `general` and `optimal` are not known to be, and of `optimal` it is
wrong: `tests/ledger/test_filters.py` has an adversary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_up
from dpopt.privacy.exponential import exp_lower, exp_upper, log_upper, sqrt_upper
from dpopt.privacy.guarantee import Guarantee, mean_loss, power_below

Parts = Sequence[tuple[Guarantee, int]]
"""Guarantees, each with the number of mechanisms that have it."""

MOST_OUTCOMES = 20_000
"""Outcomes that `optimal` goes through; beyond these it knows nothing."""

_BITS = 512
_LARGEST = 100
_SMALLEST = Fraction(1, 1 << 1200)


def simple(parts: Parts) -> Guarantee | None:
    """Return (sum n_j epsilon_j, sum n_j delta_j); None where delta reaches 1.

    References:
        Theorem 2.2 of the DaRRM paper.
    """
    epsilon = float_up(_sum(parts, 1))
    delta = float_up(sum((n * Fraction(g.delta) for g, n in parts), Fraction(0)))
    return Guarantee(epsilon, delta) if delta < 1 and math.isfinite(epsilon) else None


def larger(parts: Parts, others: Parts) -> Guarantee | None:
    """Return what covers either of two, by simple composition; None where one promises nothing."""
    both = simple(parts), simple(others)
    if both[0] is None or both[1] is None:
        return None
    return Guarantee(max(g.epsilon for g in both if g), max(g.delta for g in both if g))


def least_delta(parts: Parts) -> float:
    """Return 1 - prod (1 - delta_j)^n_j, rounded up: below it, no composition is known."""
    return float_up(1 - _kept(parts))


def general(parts: Parts, delta: float) -> Guarantee | None:
    """Return the least epsilon of theorem 3.5 for a delta of all; None if the delta is too small.

    With slack s, delta = 1 - (1 - s) prod (1 - delta_j)^n_j, sums over all mechanisms, and
    A = sum epsilon_j (e^epsilon_j - 1) / (e^epsilon_j + 1), V = sum epsilon_j^2:

        epsilon = min{ sum epsilon_j, A + sqrt(2 V log(e + sqrt(V) / s)), A + sqrt(2 V log(1/s)) }.

    Args:
        parts: see `dpopt.privacy.composed`.
        delta: in [0, 1).

    References:
        Kairouz, Oh, Viswanath (2015), theorem 3.5; theorem 2.3 of the DaRRM paper where all are
        equal.
    """
    slack = slack_of(parts, delta)
    if slack is None:
        return None
    total = _sum(parts, 1)
    if slack > 0:
        exact = [(Fraction(g.epsilon), n) for g, n in parts]
        mean = sum((n * e * mean_loss(e) for e, n in exact), Fraction(0))
        squares = _sum(parts, 2)
        logs = log_upper(exp_upper(1) + sqrt_upper(squares) / slack), log_upper(1 / slack)
        total = min(total, mean + sqrt_upper(2 * squares * Fraction(min(logs))))
    return _guarantee(float_up(total), delta)


def concentrated(parts: Parts, delta: float) -> Guarantee | None:
    """Return the epsilon by zero-concentrated privacy; None if the delta is too small.

    epsilon_j-DP is epsilon_j^2 / 2-zCDP, and an (epsilon_j, delta_j) it but for delta_j. With rho
    the sum of these and s = delta - sum delta_j: rho + 2 sqrt(rho log(1 / s)). Never less than
    `general`; it holds where the epsilons depend on earlier outputs, too.

    Args:
        parts: see `dpopt.privacy.composed`.
        delta: in [0, 1).

    References:
        Bun, Steinke (2016), propositions 1.4 and 1.3; Whitehouse, Ramdas, Rogers, Wu (2023).
    """
    delta = _delta(delta)
    slack = Fraction(delta) - sum((n * Fraction(g.delta) for g, n in parts), Fraction(0))
    if slack <= _SMALLEST:
        return None
    return _guarantee(concentrated_bound(_sum(parts, 2), slack), delta)


def concentrated_bound(squares: Fraction, slack: Fraction) -> float:
    """Return rho + 2 sqrt(rho log(1 / slack)), rounded up, with rho half a sum of epsilon^2.

    Args:
        squares: sum of epsilon_j^2.
        slack: in (0, 1).
    """
    rho = squares / 2
    return float_up(rho + 2 * sqrt_upper(rho * Fraction(log_upper(1 / slack))))


def optimal(parts: Parts, delta: float) -> Guarantee | None:
    """Return the least epsilon that all mechanisms of these guarantees together have at a delta.

    The worst mechanism of an (epsilon_j, delta_j) tells the truth with probability delta_j, and
    else answers as randomised response does, rightly with e^epsilon_j / (1 + e^epsilon_j). Of n_j
    such answers only the number i of wrong ones counts; their loss is (n_j - 2 i) epsilon_j. With
    s as in `general`, P and Q the laws of all these numbers, and S the events "the loss is at least
    l", which are the best ones (Neyman, Pearson):

        e^epsilon = max_S (P(S) - s) / Q(S).

    P is bounded from above and Q from below, in integers; losses are compared exactly.

    Args:
        parts: see `dpopt.privacy.composed`.
        delta: in [0, 1).

    Returns:
        None if the delta is too small, or there are more than `MOST_OUTCOMES` numbers.

    References:
        Kairouz, Oh, Viswanath (2015), theorem 3.3; Murtagh, Vadhan (2016) where they differ.
    """
    slack = slack_of(parts, delta)
    counts: dict[float, int] = {}
    for guarantee, n in parts:
        if guarantee.epsilon > 0:
            counts[guarantee.epsilon] = counts.get(guarantee.epsilon, 0) + n
    outcomes = math.prod(n + 1 for n in counts.values())
    if slack is None or outcomes > MOST_OUTCOMES or max(counts, default=0.0) > _LARGEST:
        return None
    if slack == 0 or not counts:
        return _guarantee(float_up(_sum(parts, 1)), delta)
    unit = math.lcm(*(Fraction(epsilon).denominator for epsilon in counts))
    laws = [_answers(epsilon, n) for epsilon, n in counts.items()]
    steps = [int(Fraction(epsilon) * unit) for epsilon in counts]
    found = []
    for places in product(*(range(n + 1) for n in counts.values())):
        loss, upper, lower = 0, 1 << _BITS, 1 << _BITS
        for step, n, (high, low), i in zip(steps, counts.values(), laws, places, strict=True):
            loss += step * (n - 2 * i)
            upper = -(-(upper * high[i]) >> _BITS)
            # By symmetry, the truth and the lie exchange their parts in Q.
            lower = lower * low[n - i] >> _BITS
        found.append((loss, upper, lower))
    found.sort(reverse=True)
    above = accumulate(upper for _, upper, _ in found)
    below = accumulate(lower for _, _, lower in found)
    allowed = slack.numerator * (1 << _BITS) // slack.denominator
    top, bottom = 0, 1
    for p, q in zip(above, below, strict=True):
        spent = min(p, 1 << _BITS) - allowed
        if spent > 0 and q == 0:
            return None
        if spent * bottom > top * q:
            top, bottom = spent, q
    exact = log_upper(Fraction(top, bottom)) if top > bottom else 0.0
    return _guarantee(min(exact, float_up(_sum(parts, 1))), delta)


def slack_of(parts: Parts, delta: float) -> Fraction | None:
    """Return s with delta = 1 - (1 - s) prod (1 - delta_j)^n_j, rounded down; None below 0.

    Args:
        parts: see `dpopt.privacy.composed`.
        delta: of all together, in [0, 1).
    """
    delta = _delta(delta)
    if delta == 0:
        return Fraction(0) if all(g.delta == 0 for g, _ in parts) else None
    kept = _kept(parts)
    if kept <= 0 or 1 - Fraction(delta) > kept:
        return None
    slack = 1 - (1 - Fraction(delta)) / kept
    # As few digits as a float of that size has, and some more.
    shift = 1200
    slack = Fraction(slack.numerator * (1 << shift) // slack.denominator, 1 << shift)
    return slack if slack > _SMALLEST else Fraction(0)


def _answers(epsilon: float, n: int) -> tuple[list[int], list[int]]:
    """Return bounds on the law of the number of wrong answers among n, over 2^_BITS.

    Weights C(n, i) e^(-i epsilon) relative to the largest, by their ratios from there both ways,
    one time rounded up and one time down; divided by the sum of the others.
    """
    low, high = exp_lower(epsilon, _BITS), exp_upper(epsilon, _BITS)
    # The weights grow while (n - i) / ((i + 1) e^epsilon) is at least 1.
    top = min(n, max(0, int((n + 1) / (1 + float(low)))))
    most, least = [0] * (n + 1), [0] * (n + 1)
    most[top] = least[top] = 1 << _BITS
    for i in range(top, n):
        most[i + 1] = -(-most[i] * (n - i) * low.denominator // ((i + 1) * low.numerator))
        least[i + 1] = least[i] * (n - i) * high.denominator // ((i + 1) * high.numerator)
    for i in range(top, 0, -1):
        most[i - 1] = -(-most[i] * i * high.numerator // ((n - i + 1) * high.denominator))
        least[i - 1] = least[i] * i * low.numerator // ((n - i + 1) * low.denominator)
    over, under = sum(least), sum(most)
    return (
        [-(-(weight << _BITS) // over) for weight in most],
        [(weight << _BITS) // under for weight in least],
    )


def _sum(parts: Parts, power: int) -> Fraction:
    """Return sum n_j epsilon_j^power exactly."""
    return sum((n * Fraction(g.epsilon) ** power for g, n in parts), Fraction(0))


def _kept(parts: Parts) -> Fraction:
    """Return prod (1 - delta_j)^n_j, rounded down."""
    kept = Fraction(1)
    for guarantee, n in parts:
        if guarantee.delta > 0:
            kept *= power_below(1 - Fraction(guarantee.delta), n)
            kept = Fraction(kept.numerator * _SMALLEST.denominator // kept.denominator) * _SMALLEST
    return kept


def _guarantee(epsilon: float, delta: float) -> Guarantee | None:
    return Guarantee(epsilon, delta) if math.isfinite(epsilon) else None


def _delta(delta: float) -> float:
    found = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    if 0 < found < 1e-300:
        raise ParameterError(f"delta is {found}; it must be 0, or at least 1e-300.")
    return found
