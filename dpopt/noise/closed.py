"""Best noise in closed form: the discrete staircase for delta = 0, and sensitivity 1.

**Staircase** (Geng, Viswanath, IEEE Trans. Inf. Theory 62(2), 2016, for integers): p(x) falls by
e^-epsilon at |x| = s, s + D, s + 2 D, ... and is constant in between; the best step s in 1..D is
found by comparing all. Its multipliers: at s and beyond, those of p(x) <= e^epsilon p(x + D) make
the column of every x + D tight; what the D columns from s on require is spread over the rows
p(h) <= e^epsilon p(y), |h| < s <= y <= h + D, so that the columns of h are tight, too.

**Sensitivity 1, delta > 0.** Let F(m) = Pr[Z >= m], r = e^epsilon. The event Z >= m and a shift by
one give F(m) <= r F(m + 1) + delta, and F(0) = 1 - F(1). So every tail is at least

    f(m) = max(0, p_0 r^(1 - m) - delta) / (r - 1),   p_0 = (r - 1 + 2 delta) / (r + 1),

and the noise with these tails is private. A loss that never falls with |x| has a mean that rises
in every F(m) (for symmetric noise): the same noise is best for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from typing import Self

import numpy as np

from dpopt._types import IntVector, Vector
from dpopt.privacy import exp_lower

Loss = Callable[[IntVector], Vector]
"""The loss c(|x|) of distances |x|, which never falls."""

# Periods times epsilon after which the rest of a geometric series is below a float's rounding.
NEGLIGIBLE = 36.0


def signs(distance: IntVector) -> Vector:
    """Return how many integers have each distance from 0: one for 0, two for all others."""
    return np.where(distance > 0, 2.0, 1.0)


def mass(pmf: Vector, ratio: float = 0.0, period: int = 1) -> float:
    """Return the mass of p(0), ..., p(N) and all periods beyond, both signs."""
    beyond = float(pmf[-period:].sum()) * ratio / (1 - ratio)
    return 2 * (float(pmf.sum()) + beyond) - float(pmf[0])


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of the privacy rows p(x) <= e^epsilon p(x + d) + s_d(x), and what they prove.

    Attributes:
        shift: d of each multiplier, in 1..D, shape (rows,).
        position: x of each, in -N..N.
        value: lambda_d(x), above 0; of all others it is 0.
        last: N.
        ends: by shift 0..D, the multiplier of the sum of its rows over all x > N.
        bound: mu - delta sum_d max_x lambda_d(x), in floats: no noise on Z has a lower value.
    """

    shift: IntVector
    position: IntVector
    value: Vector
    last: int
    ends: Vector
    bound: float

    @classmethod
    def of(
        cls,
        shift: IntVector,
        position: IntVector,
        value: Vector,
        ends: Vector,
        last: int,
        delta: float,
        epsilon: float,
        loss: Loss,
        mu: float | None = None,
    ) -> Self:
        """Return multipliers with their bound, where mu is the least column per unit of mass."""
        counted = np.flatnonzero(value > 0)
        shift, position, value = shift[counted], position[counted], value[counted]
        period, growth = ends.size - 1, math.exp(epsilon)
        columns = columns_of(shift, position, value, last, period, epsilon, loss)
        for d in np.flatnonzero(ends).tolist():
            # The sum over x > N: 1 for N < x <= N + d, 1 - e^epsilon beyond.
            columns[last + 1 : last + d + 1] += ends[d]
            columns[last + d + 1 :] += (1.0 - growth) * ends[d]
        columns[0] *= 2
        if mu is not None:
            lifted(columns, shift, position, value, growth, 2 * mu)
        columns /= 2
        largest = np.zeros(period + 1)
        np.maximum.at(largest, shift, value)
        bound = float(columns.min()) - delta * float(np.maximum(largest, ends).sum())
        return cls(shift, position, value, last, ends, bound)


def lifted(
    columns: Vector,
    shift: IntVector,
    position: IntVector,
    value: Vector,
    growth: float,
    least: float,
) -> None:
    """Lift columns to a least value, from the outside in, by smaller multipliers of inner rows.

    A row of p(x) <= e^epsilon p(x + d) weighs on x + d; what it loses is missing at x, once.
    """
    source, target = np.abs(position), np.abs(position + shift)
    order = np.argsort(target, kind="stable")
    starts = np.searchsorted(target[order], np.arange(columns.size + 1))
    for x in range(columns.size - 1, 0, -1):
        missing = least - columns[x]
        if missing <= 0:
            continue
        for row in order[starts[x] : starts[x + 1]][::-1].tolist():
            weight = 1 if source[row] else 2
            cut = min(value[row], max(0.0, missing) / growth)
            if source[row] >= x:
                # Of a row from further out, only what that column can spare.
                cut = min(cut, max(0.0, columns[source[row]] - least) / weight)
            value[row] -= cut
            columns[x] += growth * cut
            columns[source[row]] -= cut * weight
            missing -= growth * cut
            if missing <= 0:
                break


def columns_of(
    shift: IntVector,
    position: IntVector,
    value: Vector,
    last: int,
    sensitivity: int,
    epsilon: float,
    loss: Loss,
) -> Vector:
    """Return c(x) + y A of both signs of x = 0..N + D, and of N + D + 1 for all beyond."""
    x = np.arange(last + sensitivity + 2)
    columns = signs(x) * loss(x)
    columns += np.bincount(np.abs(position), value, minlength=x.size)
    return columns - math.exp(epsilon) * np.bincount(np.abs(position + shift), value, x.size)


def best_step(sensitivity: int, epsilon: float, loss: Loss) -> tuple[int, float]:
    """Return the best step s of a staircase, and its value in floats."""
    periods = 2 + math.ceil(NEGLIGIBLE / epsilon)
    x = np.arange(periods * sensitivity)
    costs = loss(x)
    best, decay = (1, math.inf), math.exp(-epsilon)
    # From one step to the next, the distances s, s + D, ... rise by a level.
    weights = signs(x) * decay ** ((x + sensitivity - 1) // sensitivity).astype(float)
    for step in range(1, sensitivity + 1):
        if step > 1:
            weights[step - 1 :: sensitivity] /= decay
        value = float(weights @ costs / weights.sum())
        if value < best[1]:
            best = (step, value)
    return best


def staircase_multipliers(sensitivity: int, epsilon: float, loss: Loss) -> Multipliers:
    """Return multipliers that prove the best staircase optimal."""
    step, mu = best_step(sensitivity, epsilon, loss)
    period, growth = sensitivity, math.exp(epsilon)
    last = step - 1 + (2 + math.ceil(NEGLIGIBLE / epsilon)) * period
    inner: list[tuple[int, int, float]] = []
    # excess[i] of the columns at distance x = i + s, from the outside in; beyond, c is constant.
    excess = 2.0 * (loss(np.arange(step, last + 1)) - mu)
    outward = np.zeros(excess.size)
    outward[-period:] = max(0.0, excess[-1]) / (growth - 1)
    for start in range(excess.size - 2 * period, -1, -period):
        block, ahead = slice(start, start + period), slice(start + period, start + 2 * period)
        outward[block] = (outward[ahead] + excess[ahead]) / growth
    # What the first D columns require, from heads with mass to give, the nearest to 0 first.
    required = (outward[:period] + excess[:period]) / growth
    heads = np.arange(step)
    supply = signs(heads) * (mu - loss(heads))
    head = y = 0
    while y < period and head < step:
        distance, final = step + y, head == step - 1
        # p(h) or p(-h), whichever is at most D below.
        position = head if distance - head <= period else -head
        if not 1 <= distance - position <= period or (supply[head] <= 0 and not final):
            head += 1
            continue
        amount = required[y] if final else min(supply[head], required[y])
        inner.append((distance - position, position, max(0.0, amount)))
        supply[head] -= amount
        required[y] -= amount
        if required[y] <= 0:
            y += 1
    outer = zip(repeat(period), range(step, last + 1), outward.tolist(), strict=False)
    shift, position, value = zip(*inner, *outer, strict=True)
    ends = np.zeros(period + 1)
    ends[period] = outward[-1]
    rows = np.array(shift), np.array(position), np.array(value)
    return Multipliers.of(*rows, ends, last, 0.0, epsilon, loss)


def geometric_last(epsilon: float, delta: float) -> int:
    """Return M, the largest |Z| of the best noise for sensitivity 1 and delta > 0."""
    first = (-math.expm1(-epsilon) + 2 * delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    return max(1, math.ceil(math.log(first / delta) / epsilon))


def truncated_geometric(epsilon: float, delta: float, bits: int) -> tuple[int, ...]:
    """Return weights of |x| = 0..M of the best noise for sensitivity 1, delta > 0, over 2^bits.

    Each is the one before over e^epsilon, rounded up; the last is the least for which

        p(M - 1) - e^epsilon p(M) + p(M) <= delta.
    """
    ratio, allowed = exp_lower(epsilon), Fraction(delta)
    last, weights = geometric_last(epsilon, delta), [1 << bits]
    for _ in range(last - 1):
        weights.append(-(-weights[-1] * ratio.denominator // ratio.numerator))
    total = 2 * sum(weights) - weights[0]
    least = (weights[-1] - allowed * total) / (ratio - 1 + 2 * allowed)
    return *weights, max(0, math.ceil(least))


def geometric_multipliers(epsilon: float, delta: float, loss: Loss) -> Multipliers:
    """Return multipliers that prove `truncated_geometric` optimal.

    kappa_m of the event Z >= m is kappa_{m-1} = (2 (c(m) - c(m - 1)) + kappa_m) / e^epsilon, half
    the mirror image counted for m = 0; the row of x is in all events with m <= x.
    """
    last, growth = geometric_last(epsilon, delta), math.exp(epsilon)
    rises = 2.0 * np.diff(loss(np.arange(last + 1)))
    events = np.zeros(last)
    for m in range(last - 1, -1, -1):
        after = events[m + 1] if m + 1 < last else 0.0
        events[m] = (rises[m] + after) / (growth if m else 1 + growth)
    row = np.append(np.cumsum(events), events.sum())
    ends = np.array([0.0, row[-1]])
    places = np.arange(last + 1)
    return Multipliers.of(np.ones_like(places), places, row, ends, last, delta, epsilon, loss)
