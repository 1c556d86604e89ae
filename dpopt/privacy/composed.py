"""What different mechanisms spend together: rounded up, from their guarantees alone.

A *part* is a guarantee (epsilon_j, delta_j) and how many of the mechanisms have it, n_j. Each
mechanism's randomness is independent of the others', given data and earlier outputs; which of them
is asked next, and of which data, may depend on earlier outputs. For `simple`, `concentrated` and
`optimal`, how many there are and how much each may spend is fixed before the first output is seen.

*A budget as a filter*, `allowed`: what is asked next, how much it may spend, and whether anything
is, may depend on all outputs so far. Of a budget (E, D) a slack s is kept: D / 2, or none where the
first entry alone has a delta above D / 2 (nothing was seen before it). Releases are allowed as long
as

    sum delta_j <= D - s   and   ( sum epsilon_j <= E   or   rho + 2 sqrt(rho log(1/s)) <= E ),

with rho = sum epsilon_j^2 / 2. Then all of them together are (E, D)-DP. For an (epsilon_j,
delta_j) mechanism is epsilon_j-DP but for an event of probability delta_j, given all before it, and
these events have probability at most D - s together. Without them, the loss L is at most
sum epsilon_j. And exp(lambda L - lambda (lambda + 1) rho) is a supermartingale for every
lambda > 0, since epsilon-DP is (epsilon^2 / 2)-zCDP: by Ville's inequality, L is ever above E while
the second bound holds with probability at most s. The "or" costs nothing, since the first bound
holds on each path by itself. Were the slack what the deltas of a path leave of D, this would be
wrong, and so it is of `optimal`: `tests/ledger/test_filters.py` has an adversary against each.

References:
    Rogers, Roth, Ullman, Vadhan (2016); Whitehouse, Ramdas, Rogers, Wu (2023), theorem 1, whose
    bound the second one is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, float_up
from dpopt.privacy.exponential import exp_lower, exp_upper, log_upper, sqrt_upper
from dpopt.privacy.guarantee import Guarantee, power_below

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


def concentrated(parts: Parts, delta: float) -> Guarantee | None:
    """Return the epsilon by zero-concentrated privacy; None if the delta is too small.

    epsilon_j-DP is epsilon_j^2 / 2-zCDP, and an (epsilon_j, delta_j) it but for delta_j. With rho
    the sum of these and s = delta - sum delta_j: rho + 2 sqrt(rho log(1 / s)).

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
    such answers only the number i of wrong ones counts; their loss is (n_j - 2 i) epsilon_j. With s
    as in `slack_of`, P and Q the laws of all these numbers, and S the events "the loss is at least
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


def allowed(parts: Parts, budget: Guarantee, first: Guarantee | None) -> bool:
    """Return whether a budget allows all releases so far, as the module's text says it.

    Args:
        parts: see `dpopt.privacy.composed`.
        budget: of all together.
        first: what the first entry of them spends; None where that promises nothing.
    """
    most = Fraction(budget.delta)
    slack = Fraction(0) if first is None or 2 * Fraction(first.delta) > most else most / 2
    if sum((n * Fraction(g.delta) for g, n in parts), Fraction(0)) > most - slack:
        return False
    if _sum(parts, 1) <= Fraction(budget.epsilon):
        return True
    return slack > _SMALLEST and concentrated_bound(_sum(parts, 2), slack) <= budget.epsilon


def room(parts: Parts, budget: Guarantee, first: Guarantee | None) -> float:
    """Return the largest epsilon of one more release without a delta that `allowed` allows.

    Args:
        parts: see `allowed`, as for the rest.
        budget: see there.
        first: see there; None before the first one.
    """

    def fits(epsilon: float) -> bool:
        more = Guarantee(epsilon)
        return allowed([*parts, (more, 1)], budget, first if parts else more)

    over = Fraction(budget.epsilon) - _sum(parts, 1)
    low, high = max(0.0, float_down(max(Fraction(0), over))), budget.epsilon
    if not fits(low):
        low = 0.0
    if not fits(low) or fits(high):
        return high if fits(high) else 0.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


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
