"""Selection rules as tables that were audited: the strongest of each that is private at its sizes.

A rule has one parameter. Its largest value is searched in floats; what is found is rounded to
integers, and `dpopt.verify` decides these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
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
# Ballots and classes of which histograms are ever listed.
_LONGEST_LIST = 10_000, 1_000
# Bits of a table's weights; those of a common multiple of 1..1,000 come on top.
_MOST_BITS = 16_000
# Bits that are computed beyond those of the weights.
_GUARD = 64
_BISECTIONS = 44
# Parts of a step's logarithm found in floats that are left, in turn, until integers agree.
_SHORTFALLS = (2.0**-34, 2.0**-24, 2.0**-14, 2.0**-8)


@dataclass(frozen=True)
class Audited:
    """A rule's table that was found private by enumeration.

    Attributes:
        step: the rule's own parameter: r of the ladder, otherwise s.
        table: the integers.
    """

    step: Fraction
    table: Table


def table_bits(voters: int, classes: int, epsilon: float) -> int:
    """Return bits at which a rule's weights are rounded by less than epsilon 2^-60 of them.

    A class becomes a top one by K/2 replaced ballots, rounded up, and then has at least 1/C: its
    probability is at least e^(-epsilon ceil(K/2)) / C under every epsilon-private rule that never
    prefers a class of fewer ballots.
    """
    depth = math.ceil(-(-voters // 2) * epsilon / math.log(2.0))
    small = max(0, -math.floor(math.log2(epsilon)))
    return 64 + 3 * classes.bit_length() + depth + small


def auditable(voters: int, classes: int, epsilon: float) -> bool:
    """Return whether all sorted histograms, and the bits of their weights, are few enough.

    Args:
        voters: K, at least 1.
        classes: C, at least 2.
        epsilon: above 0.
    """
    few = few_histograms(verify.TABLED, voters, classes)
    return few and table_bits(voters, classes, epsilon) <= _MOST_BITS


def few_histograms(most: int, voters: int, classes: int) -> bool:
    """Return whether there are so many sorted histograms at most, of ballots that can be listed."""
    if voters > _LONGEST_LIST[0] or classes > _LONGEST_LIST[1]:
        return False
    # Each is the sorted form of C! histograms at most; small ones are counted.
    logs = math.lgamma(voters + classes) - math.lgamma(voters + 1)
    logs -= math.lgamma(classes) + math.lgamma(classes + 1)
    # 100 ballots in 100 parts have 190,569,292: beyond that they need not be counted.
    if logs > math.log(most) + 1e-6 or min(voters, classes) >= 100:
        return False
    return partition_count(voters, classes) <= most


def rule_at(rule: str, inputs: SortedHistograms) -> Callable[[Fraction, Numbers], Values]:
    """Return the table of a rule as a function of its parameter and of the arithmetic."""
    if rule == "ladder":
        return Rungs(inputs).ladder
    table = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
    return partial(table, inputs)


def table_at(rule: str, inputs: SortedHistograms, step: Fraction, bits: int) -> Table:
    """Return a rule's integers at a step, private or not.

    Raises:
        NotPrivateError: if they are no distribution: the ladder leaves its top less than nothing
            where classes are many and r is small.
    """
    values = rule_at(rule, inputs)(step, Numbers(bits + _GUARD))
    if min(values) <= 0:
        raise NotPrivateError(f"rule {rule!r} is no distribution at a step of {float(step):g}.")
    return rounded(inputs, values.tolist(), bits)


def audit_rule(rule: Rule, voters: int, classes: int, epsilon: float) -> Audited:
    """Return a rule's table for K ballots over C classes that was found epsilon-private, exactly.

    The ladder is taken at r = e^epsilon, up to 2^-50 of epsilon, if it passes. From 7 classes on it
    need not; then its r is the largest that passes. Permute-and-flip and the exponential mechanism
    are private at s = e^(epsilon / 2) for every K; their s is the largest that passes for this K.
    Such a step is found by bisection in floats; what is found is audited in integers.

    Args:
        rule: ladder, permute-and-flip or exponential.
        voters: K, at least 1.
        classes: C, at least 2.
        epsilon: above 0.

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
        with suppress(NotPrivateError):
            table = table_at(rule, inputs, step, bits)
            certify_table(table, Guarantee(epsilon))
            return Audited(step, table)
    raise NotPrivateError(
        f"rule {rule!r} for {voters} ballots over {classes} classes was not found private for "
        f"epsilon = {digits(epsilon)} at any step."
    )


def _shares(rule: str, inputs: SortedHistograms, epsilon: float) -> Iterator[float]:
    """Yield parts of epsilon whose power may be a private step, the most promising first."""
    at, pairs = rule_at(rule, inputs), inputs.neighbours

    def fits(share: float) -> bool:
        values = at(_power(epsilon, share), FLOATS)
        if values.min() <= 0:
            return False
        logs = np.log(values)[pairs]
        return float(np.abs(logs[:, 0] - logs[:, 1]).max(initial=0.0)) <= epsilon

    rung = rule == "ladder"
    least, most = (0.0, 1.0) if rung else (0.5, 1.0)
    if rung:
        yield most - 2.0**-50
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    sure = 0.0 if rung else 0.5 - 2.0**-51
    for shortfall in _SHORTFALLS:
        yield max(least - shortfall * least, sure)


def _power(epsilon: float, share: float) -> Fraction:
    return exp_lower(Fraction(epsilon) * Fraction(share))
