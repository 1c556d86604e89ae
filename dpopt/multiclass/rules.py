"""Selection rules for private voters: the strongest of a family that keeps the budget.

Where all corner configurations can be priced, the rule's own parameter is raised until the budget
is used: by bisection in floats; the repair decides. Elsewhere, and for voters with Delta > 0, it is
the largest that the bound on stable rules allows: if replacing one vote changes a probability by a
factor of v = e^{epsilon_v} at most, voters that are (epsilon, 0)-DP, r = e^epsilon, spend K psi
with e^psi = (r v + 1) / (r + v). With a Delta see the page docs/theorems/stable.md, where both are
proved. Rationals rounded to the safe side decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import Vector
from dpopt.ballots.audit import Rule, audit_rule, rule_at
from dpopt.ballots.tabulate import FLOATS
from dpopt.multiclass.oracle import Pricing
from dpopt.privacy.exponential import exp_lower, exp_upper, log_near
from dpopt.table import SortedHistograms, Table

# Epsilon of one vote, beyond which a rule is the plurality up to e^-30.
_LARGEST, _BISECTIONS = 30.0, 50
# Of f in floats.
_ROUNDING = 1e-14
_BITS = 128


def strongest(rule: str, pricing: Pricing) -> Vector | list[Fraction]:
    """Return the kernel of the largest epsilon of one vote that keeps f <= delta, up to rounding.

    The ladder has r = e^epsilon, permute-and-flip and the exponential mechanism s = e^(epsilon /
    2); "subsampling" draws as many voters as is private.
    """

    def keeps(kernel: Vector) -> bool:
        return pricing.price(kernel).excess <= pricing.delta + _ROUNDING

    if rule == "subsampling":
        for sample in range(pricing.inputs.records, 0, -1):
            exact = sampled_plurality(pricing.inputs, sample)
            # What is spent is often m epsilon exactly: the repair makes up for rounding.
            if keeps(np.array([float(share) for share in exact])):
                return list(exact)
        raise ParameterError(
            "allowance is below 1; it must be at least 1 with rule 'subsampling', which tells the "
            "vote of one voter at least."
        )
    at, root = rule_at(rule, pricing.inputs), 1 if rule == "ladder" else 2

    def kernel(epsilon: float) -> Vector:
        return at(Fraction(math.exp(epsilon / root)), FLOATS)

    def fits(epsilon: float) -> bool:
        values = kernel(epsilon)
        return bool(np.all(values >= 0.0)) and keeps(values)

    low, high = 0.0, _LARGEST
    if fits(high):
        return kernel(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return kernel(low)


def bounded_rule(
    rule: Rule,
    voters: int,
    classes: int,
    epsilon: float,
    allowance: float,
    voter_delta: float,
) -> Table:
    """Return the strongest table of a rule that the bound on stable rules proves."""
    ratio = vote_ratio_below(voters, epsilon, allowance, voter_delta)
    # What is rounded next to the limit would be above it.
    of_vote = _LARGEST if ratio is None else min(_LARGEST, log_near(ratio) * (1 - 2.0**-40))
    if not of_vote > 0.0:
        raise ParameterError(
            f"allowance * epsilon is {allowance * epsilon:g}; no rule is proved for so small a "
            "budget."
        )
    return audit_rule(rule, voters, classes, of_vote).table


def vote_ratio_below(
    voters: int, epsilon: float, allowance: float, voter_delta: float = 0.0
) -> Fraction | None:
    """Return the largest multiple v of 2^-128, up to rounding, with K psi <= m epsilon.

    None where every rule is private: m = K and Delta = 0.

    Args:
        voters: K.
        epsilon: of each voter, positive.
        allowance: m, in (0, K].
        voter_delta: Delta of each voter, in [0, 1).

    Raises:
        ParameterError: for so small a budget that v is 1.

    Example:
        >>> from dpopt.multiclass.rules import vote_ratio_below
        >>> round(float(vote_ratio_below(11, 0.1, 3)), 6)
        1.750795
    """
    delta = Fraction(voter_delta)
    budget = exp_lower(Fraction(allowance) * Fraction(epsilon) / voters)
    voter = (exp_upper(Fraction(epsilon)) + delta) / (1 - delta)
    limits = []
    # g(r, v) is below r for every v: m = K bounds nothing, though the budget is rounded down.
    if budget < voter and (delta or allowance < voters):
        limits.append((voter * budget - 1) / (voter - budget))
    if delta:
        limits.append(1 + (budget - 1) / delta)
    if not limits:
        return None
    ratio = Fraction(int(min(limits) * (1 << _BITS)), 1 << _BITS)
    if ratio <= 1:
        raise ParameterError(
            f"epsilon is {digits(epsilon)}; with allowance {digits(allowance)} and {voters} "
            "mechanisms it must be larger: no rule but a constant one is proved."
        )
    return ratio


def sampled_plurality(inputs: SortedHistograms, sample: int) -> tuple[Fraction, ...]:
    """Return k[lambda, c], the pmf of the plurality of M voters drawn without replacement, exactly.

    A fair draw decides between classes that share the largest count of the sample:
    k = sum over sub-histograms h of M votes of prod_x binom(l_x, h_x) / binom(K, M), times
    1 / (number of top classes of h) where the class is one of them.

    Args:
        inputs: the sorted histograms of K votes over C classes.
        sample: M, in 1..K.
    """
    size = _checks.integer("sample", sample, 1, inputs.records)
    ways_in_all, shares = comb(inputs.records, size), list[Fraction]()
    for state in inputs.listed():
        told = dict.fromkeys(state, Fraction(0))
        for drawn, ways in _samples(state, size):
            top = max(drawn)
            fair = Fraction(ways, ways_in_all * drawn.count(top))
            for count, votes in zip(state, drawn, strict=True):
                if votes == top:
                    told[count] += fair
        shares += [share / state.count(count) for count, share in told.items()]
    return tuple(shares)


def _samples(counts: Sequence[int], size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the histograms of ``size`` votes drawn, each with its number of ways."""
    if len(counts) == 1:
        if size <= counts[0]:
            yield (size,), comb(counts[0], size)
        return
    for first in range(min(counts[0], size) + 1):
        ways = comb(counts[0], first)
        for rest, others in _samples(counts[1:], size - first):
            yield (first, *rest), ways * others
