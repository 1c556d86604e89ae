"""Selection rules for private voters: the largest parameter of each rule within the budget.

Where all corner configurations can be priced, the rule's parameter is found by bisection in floats,
and the repair makes the table private. Elsewhere, and for voters with Delta > 0, it is the largest
that the bound on stable rules allows. If replacing one vote changes a probability by a factor of at
most v = e^{epsilon_v}, and the voters are (epsilon, 0)-DP with r = e^epsilon, then the output is
K psi-DP with e^psi = (r v + 1) / (r + v). This, and the bound for Delta > 0, are proved in
docs/theorems/stable.md. Rationals rounded to the safe side decide.
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
from dpopt.ballots.tabulate import FLOATS, rule_at
from dpopt.multiclass.corners import Pricing
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.table import SortedHistograms

# Largest epsilon of one vote, in nats: there a rule is the plurality up to e^-30; and bisections.
LARGEST, _BISECTIONS = 30.0, 50


def strongest(rule: str, pricing: Pricing) -> Vector | list[Fraction]:
    """Return the rule's kernel with the largest parameter such that f <= delta, up to rounding.

    The parameter is epsilon of one vote: the ladder has r = e^epsilon, permute-and-flip and the
    exponential mechanism s = e^(epsilon / 2). "subsampling" draws as many voters as is private.
    """

    def keeps(kernel: Vector) -> bool:
        # Rounding error of f in floats that is tolerated; the repair makes up for it.
        return pricing.price(kernel)[0] <= pricing.delta + 1e-14

    if rule == "subsampling":
        for sample in range(pricing.inputs.records, 0, -1):
            exact = sampled_plurality(pricing.inputs, sample)
            # The privacy cost is often m epsilon exactly: the repair makes up for rounding.
            if keeps(np.array([float(share) for share in exact])):
                return list(exact)
        raise ParameterError(
            "allowance is below 1; it must be at least 1 with rule 'subsampling', which returns "
            "the vote of one voter at least."
        )
    at, root = rule_at(rule, pricing.inputs), 1 if rule == "ladder" else 2

    def kernel(epsilon: float) -> Vector:
        return at(Fraction(math.exp(epsilon / root)), FLOATS)

    def fits(epsilon: float) -> bool:
        values = kernel(epsilon)
        return bool(np.all(values >= 0.0)) and keeps(values)

    low, high = 0.0, LARGEST
    if fits(high):
        return kernel(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return kernel(low)


def vote_ratio_below(
    voters: int, epsilon: float, allowance: float, voter_delta: float = 0.0
) -> Fraction | None:
    """Return the largest multiple v of 2^-128, up to rounding, with K psi <= m epsilon.

    v bounds the factor by which replacing one vote may change a probability. None if every rule is
    private: m = K and Delta = 0.

    Args:
        voters: K.
        epsilon: of each voter, above 0, in nats.
        allowance: m, in (0, K].
        voter_delta: Delta of each voter, in [0, 1).

    Example:
        >>> from dpopt.multiclass.rules import vote_ratio_below
        >>> round(float(vote_ratio_below(11, 0.1, 3)), 6)
        1.750795
    """
    delta = Fraction(voter_delta)
    budget = exp_lower(Fraction(allowance) * Fraction(epsilon) / voters)
    voter = (exp_upper(Fraction(epsilon)) + delta) / (1 - delta)
    limits = []
    # e^psi is below r for every v, so m = K gives no limit, although the budget is rounded down.
    if budget < voter and (delta or allowance < voters):
        limits.append((voter * budget - 1) / (voter - budget))
    if delta:
        limits.append(1 + (budget - 1) / delta)
    if not limits:
        return None
    # Fractional bits of v.
    ratio = Fraction(int(min(limits) * (1 << 128)), 1 << 128)
    if ratio <= 1:
        raise ParameterError(
            f"epsilon is {digits(epsilon)}; with allowance {digits(allowance)} and {voters} "
            "mechanisms it must be larger: no rule but a constant one is proved."
        )
    return ratio


def sampled_plurality(inputs: SortedHistograms, sample: int) -> tuple[Fraction, ...]:
    """Return k[lambda, c], the exact pmf of the plurality of M voters drawn without replacement.

    Ties for the largest count of the sample are broken uniformly:
    k = sum over sub-histograms h of M votes of prod_x binom(l_x, h_x) / binom(K, M), times
    1 / (number of top classes of h) if the class is one of them.
    """
    size = _checks.integer("sample", sample, 1, inputs.records)
    samples, shares = comb(inputs.records, size), list[Fraction]()
    for histogram in inputs.listed():
        # The probability of all classes of a count together, then of one of them.
        masses = dict.fromkeys(histogram, Fraction(0))
        for drawn, number in _samples(histogram, size):
            top = max(drawn)
            fair = Fraction(number, samples * drawn.count(top))
            for count, votes in zip(histogram, drawn, strict=True):
                if votes == top:
                    masses[count] += fair
        shares += [mass / histogram.count(count) for count, mass in masses.items()]
    return tuple(shares)


def _samples(counts: Sequence[int], size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the histograms of ``size`` drawn votes, each with its number of samples."""
    if len(counts) == 1:
        if size <= counts[0]:
            yield (size,), comb(counts[0], size)
        return
    for first in range(min(counts[0], size) + 1):
        number = comb(counts[0], first)
        for histogram, others in _samples(counts[1:], size - first):
            yield (first, *histogram), number * others
