"""Audited tables of selection rules: the largest parameter that is private for given K and C.

A rule has one parameter. Its largest private value is searched in floats; the table at that value
is rounded to integers, which `dpopt.verify` verifies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np

from dpopt import verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt.ballots.tabulate import (
    FLOATS,
    Numbers,
    Rungs,
    Values,
    exponential_table,
    permute_and_flip_table,
)
from dpopt.privacy.exponential import exp_lower
from dpopt.privacy.guarantee import Guarantee
from dpopt.table import SortedHistograms, Table, certify_table, rounded
from dpopt.table.histograms import partition_count, sorted_histograms

Rule = Literal["ladder", "permute-and-flip", "exponential"]
# Largest numbers of ballots and of classes for which histograms are listed.
_LONGEST_LIST = 10_000, 1_000


def table_bits(voters: int, classes: int, epsilon: float) -> int:
    """Return the bits for which a rule's weights have a relative rounding below epsilon 2^-60.

    A class becomes a top one by K/2 replaced ballots, rounded up, and then has at least 1/C: its
    probability is at least e^(-epsilon ceil(K/2)) / C under every epsilon-private rule that never
    prefers a class of fewer ballots.
    """
    depth = math.ceil(-(-voters // 2) * epsilon / math.log(2.0))
    small = max(0, -math.floor(math.log2(epsilon)))
    return 64 + 3 * classes.bit_length() + depth + small


def auditable(voters: int, classes: int, epsilon: float) -> bool:
    """Return whether all sorted histograms, and the bits of their weights, are few enough."""
    few = few_histograms(verify.TABLED, voters, classes)
    # Bits of a table's weights, not counting those of a common multiple of 1..1,000.
    return few and table_bits(voters, classes, epsilon) <= 16_000


def few_histograms(most: int, voters: int, classes: int) -> bool:
    """Return whether there are at most ``most`` sorted histograms, which can be listed."""
    if voters > _LONGEST_LIST[0] or classes > _LONGEST_LIST[1]:
        return False
    # A sorted histogram stands for at most C! histograms, so this is a lower bound on the logarithm
    # of their number; small numbers are counted exactly.
    logs = math.lgamma(voters + classes) - math.lgamma(voters + 1)
    logs -= math.lgamma(classes) + math.lgamma(classes + 1)
    # 100 ballots over 100 classes have 190,569,292: above all limits, so they are not counted.
    if logs > math.log(most) + 1e-6 or min(voters, classes) >= 100:
        return False
    return partition_count(voters, classes) <= most


def rule_at(rule: str, inputs: SortedHistograms) -> Callable[[Fraction, Numbers], Values]:
    """Return the function that maps a rule's parameter and an arithmetic to its table."""
    if rule == "ladder":
        return Rungs(inputs).ladder
    table = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
    return partial(table, inputs)


def audit_rule(rule: Rule, voters: int, classes: int, epsilon: float) -> tuple[Fraction, Table]:
    """Return a rule's step and its table for K ballots over C classes, proved epsilon-private.

    The ladder has r = e^epsilon, up to 2^-50 of epsilon, if that passes. From 7 classes on it can
    fail; then r is the largest that passes. Permute-and-flip and the exponential mechanism are
    private at s = e^(epsilon / 2) for every K; their s is the largest that passes for this K. Such
    a step is found by bisection in floats, and its integer table is audited.

    Args:
        rule: ladder, permute-and-flip or exponential.
        voters: K, at least 1.
        classes: C, at least 2.
        epsilon: above 0, in nats.

    Raises:
        ParameterError: for more than `dpopt.verify.TABLED` sorted histograms
            or weights of more than 16,000 bits.
        NotPrivateError: if no step passed.
    """
    if not auditable(voters, classes, epsilon):
        raise ParameterError(
            f"rule {rule!r} is audited over all sorted histograms of {voters} ballots over "
            f"{classes} classes, which are more than {verify.TABLED:,}, or need too many bits; "
            "permute-and-flip at e^(epsilon / 2) needs no audit."
        )
    inputs, bits = sorted_histograms(voters, classes), table_bits(voters, classes, epsilon)
    for share in _shares(rule, inputs, epsilon):
        step = _power(epsilon, share)
        # Extra bits of the arithmetic, beyond those of the weights.
        values = rule_at(rule, inputs)(step, Numbers(bits + 64))
        # A step at which the ladder is no distribution is too large.
        if min(values) > 0:
            table = rounded(inputs, values.tolist(), bits)
            with suppress(NotPrivateError):
                certify_table(table, Guarantee(epsilon))
                return step, table
    raise NotPrivateError(
        f"rule {rule!r} for {voters} ballots over {classes} classes was not found private for "
        f"epsilon = {digits(epsilon)} at any step."
    )


def _shares(rule: str, inputs: SortedHistograms, epsilon: float) -> Iterator[float]:
    """Yield shares of epsilon for which e^(share epsilon) may be a private step, best first."""
    at, pairs = rule_at(rule, inputs), inputs.neighbours

    def fits(share: float) -> bool:
        values = at(_power(epsilon, share), FLOATS)
        if values.min() <= 0:
            return False
        # Axis 0: pairs of neighbouring variables; axis 1: both of them.
        logs = np.log(values)[pairs]
        return float(np.abs(logs[:, 0] - logs[:, 1]).max(initial=0.0)) <= epsilon

    # The ladder may need any share up to 1; the other rules are private at 1/2 by theorem.
    ladder = rule == "ladder"
    least, most = (0.0, 1.0) if ladder else (0.5, 1.0)
    if ladder:
        yield most - 2.0**-50
    # In floats: more bisections would not change the step.
    for _ in range(44):
        middle = (least + most) / 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    floor = 0.0 if ladder else 0.5 - 2.0**-51
    # Relative reductions of the logarithm of the step found in floats, tried until the integers
    # pass.
    for shortfall in (2.0**-34, 2.0**-24, 2.0**-14, 2.0**-8):
        yield max(least - shortfall * least, floor)


def _power(epsilon: float, share: float) -> Fraction:
    return exp_lower(Fraction(epsilon) * Fraction(share))
