"""Selection rules for private voters: the strongest of a family that keeps the budget.

Where all corner configurations can be priced, the rule's own parameter is raised until the budget
is used: by bisection in floats; the repair of the proof module decides. Elsewhere, and for voters
with Delta > 0, it is the largest that the bound of the bound module allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.ballots.audit import Rule, audit_rule
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import Units
from dpopt.ballots.tabulate import Rungs, exponential_table, permute_and_flip_table
from dpopt.multiclass.bound import vote_ratio_below
from dpopt.multiclass.corners import require_priceable
from dpopt.multiclass.oracle import Pricing
from dpopt.multiclass.proof import Target, repaired
from dpopt.multiclass.subsampling import sampled_plurality
from dpopt.privacy.exponential import log_near

RULES = ("optimal", "ladder", "permute-and-flip", "exponential", "subsampling")
# Epsilon of one vote, beyond which a rule is the plurality up to e^-30.
_LARGEST, _BISECTIONS = 30.0, 50
# Of f in floats.
_ROUNDING = 1e-14


def rule_table(rule: str, partitions: Partitions) -> Callable[[float], Vector]:
    """Return the kernel of a rule as a function of epsilon, of one vote.

    The ladder has r = e^epsilon, the others s = e^(epsilon / 2).
    """
    if rule == "ladder":
        rungs = Rungs(partitions)
        return lambda epsilon: rungs.ladder(Fraction(math.exp(epsilon)))
    table = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
    return lambda epsilon: table(partitions, Fraction(math.exp(epsilon / 2)))


def rule_units(rule: str, target: Target) -> Units:
    """Return the strongest table of a rule that is private for the target, as integers.

    Raises:
        ParameterError: if the budget is too small, or the table too large.
    """
    if rule == "subsampling":
        return sample_units(target)
    if target.exact:
        return repaired(target, strongest(rule, target))
    ratio = vote_ratio_below(
        target.mechanisms, target.epsilon, target.allowance, target.mechanism_delta
    )
    # What is rounded next to the limit would be above it.
    epsilon = _LARGEST if ratio is None else min(_LARGEST, log_near(ratio) * (1 - 2.0**-40))
    if not epsilon > 0.0:
        raise ParameterError(
            f"allowance * epsilon is {target.guarantee.epsilon:g}; no rule is proved for so small "
            "a budget."
        )
    return audit_rule(cast(Rule, rule), target.mechanisms, target.classes, epsilon).units


def sample_units(target: Target) -> Units:
    """Return the plurality of as many voters as is private, drawn without replacement.

    Raises:
        ParameterError: if not all configurations can be priced, m is below 1, or the voters have a
            Delta.
    """
    if target.mechanism_delta > 0.0:
        raise ParameterError(
            f"mechanism_delta is {target.mechanism_delta:g}; it must be 0 with rule 'subsampling'."
        )
    require_priceable(target.mechanisms, target.classes)
    pricing = Pricing(target)
    for sample in range(target.mechanisms, 0, -1):
        kernel = sampled_plurality(target.partitions, sample)
        # What is spent is often m epsilon exactly: the repair makes up for rounding.
        if pricing.price([float(share) for share in kernel]).excess <= target.delta + _ROUNDING:
            return repaired(target, list(kernel))
    raise ParameterError(
        f"allowance is {target.allowance:g}; it must be at least 1 with rule 'subsampling', which "
        "tells the vote of one voter at least."
    )


def strongest(rule: str, target: Target) -> Vector:
    """Return the kernel of the largest epsilon of one vote that keeps f <= delta, in floats."""
    table = rule_table(rule, target.partitions)
    pricing = Pricing(target)

    def fits(epsilon: float) -> bool:
        found = table(epsilon)
        return (
            bool(np.all(found >= 0.0)) and pricing.price(found).excess <= target.delta + _ROUNDING
        )

    low, high = 0.0, _LARGEST
    if fits(high):
        return table(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return table(low)
