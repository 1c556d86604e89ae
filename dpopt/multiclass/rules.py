"""Selection rules for private voters: the strongest of a family that keeps the budget.

Where all corner configurations can be priced, the rule's own parameter is raised until the budget
is used: by bisection in floats; the repair decides. Elsewhere, and for voters with Delta > 0, it is
the largest that the bound on stable rules allows (docs/theorems/stable.md).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.ballots.audit import Rule, audit_rule, rule_at
from dpopt.ballots.tabulate import FLOATS
from dpopt.multiclass.bound import vote_ratio_below
from dpopt.multiclass.oracle import Pricing
from dpopt.multiclass.subsampling import sampled_plurality
from dpopt.privacy.exponential import log_near
from dpopt.table import Table

# Epsilon of one vote, beyond which a rule is the plurality up to e^-30.
_LARGEST, _BISECTIONS = 30.0, 50
# Of f in floats.
_ROUNDING = 1e-14


def strongest(rule: str, pricing: Pricing) -> Vector | list[Fraction]:
    """Return the kernel of the largest epsilon of one vote that keeps f <= delta, up to rounding.

    The ladder has r = e^epsilon, the others s = e^(epsilon / 2).

    Raises:
        ParameterError: if the budget is too small.
    """
    if rule == "subsampling":
        return _sampled(pricing)
    at, root = rule_at(rule, pricing.inputs), 1 if rule == "ladder" else 2

    def kernel(epsilon: float) -> Vector:
        return at(Fraction(math.exp(epsilon / root)), FLOATS)

    def fits(epsilon: float) -> bool:
        found = kernel(epsilon)
        return bool(np.all(found >= 0.0)) and _keeps(pricing, found)

    low, high = 0.0, _LARGEST
    if fits(high):
        return kernel(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return kernel(low)


def _sampled(pricing: Pricing) -> list[Fraction]:
    """Return the plurality of as many voters as is private, drawn without replacement."""
    for sample in range(pricing.inputs.records, 0, -1):
        kernel = sampled_plurality(pricing.inputs, sample)
        # What is spent is often m epsilon exactly: the repair makes up for rounding.
        if _keeps(pricing, np.array([float(share) for share in kernel])):
            return list(kernel)
    raise ParameterError(
        "allowance is below 1; it must be at least 1 with rule 'subsampling', which tells the vote "
        "of one voter at least."
    )


def _keeps(pricing: Pricing, kernel: Vector) -> bool:
    return pricing.price(kernel).excess <= pricing.delta + _ROUNDING


def bounded_rule(
    rule: Rule,
    mechanisms: int,
    classes: int,
    epsilon: float,
    allowance: float,
    mechanism_delta: float,
) -> Table:
    """Return the strongest table of a rule that the bound on stable rules proves.

    Args:
        rule: ladder, permute-and-flip or exponential.
        mechanisms: K.
        classes: C.
        epsilon: of each voter.
        allowance: m.
        mechanism_delta: Delta of each voter.

    Raises:
        ParameterError: if the budget is too small, or the table too large.
    """
    ratio = vote_ratio_below(mechanisms, epsilon, allowance, mechanism_delta)
    # What is rounded next to the limit would be above it.
    of_vote = _LARGEST if ratio is None else min(_LARGEST, log_near(ratio) * (1 - 2.0**-40))
    if not of_vote > 0.0:
        raise ParameterError(
            f"allowance * epsilon is {allowance * epsilon:g}; no rule is proved for so small a "
            "budget."
        )
    return audit_rule(rule, mechanisms, classes, of_vote).table
