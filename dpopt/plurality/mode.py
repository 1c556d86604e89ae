"""The private mode of a column: its most common category, for any number of records."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from dpopt import _checks, verify
from dpopt.ballots.audit import few_histograms
from dpopt.plurality.setting import Plurality
from dpopt.shape import Design, design
from dpopt.table.histograms import partition_count

Rule = Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"]
# What `rule` may be.
RULES: tuple[str, ...] = get_args(Rule)


def mode_design(records: int, classes: int, epsilon: float, *, rule: Rule = "best") -> Design:
    """Return the mechanism for the most common of C categories of K records; both are public.

    It releases the place of a category, for a `dpopt.roo.tally` of the records over an alphabet
    that was fixed before looking at the data.

    Args:
        records: K, at least 1.
        classes: C, at least 2.
        epsilon: in (0, 50], in nats.
        rule: of a `Plurality`; or "best": of the ladder, permute-and-flip and the exponential
            mechanism the one with the least mean regret over all counts, equally likely, if their
            tables take seconds. For larger sizes it is permute-and-flip, which loses no more than
            the exponential mechanism at the same step.

    Raises:
        ParameterError: for a parameter out of range, or sizes that are too large for the rule.

    Example:
        >>> from dpopt import plurality, roo
        >>> cities, records = ["Basel", "Bern", "Chur"], ["Bern"] * 9000 + ["Chur"] * 10
        >>> rule = plurality.mode_design(len(records), len(cities), 1.0)
        >>> cities[rule.release(roo.tally(records, cities))], rule.setting.rule
        ('Bern', 'permute-and-flip')
    """
    _checks.choice("rule", rule, RULES)
    records = _checks.integer("records", records, 1)
    classes = _checks.integer("classes", classes, 2)
    setting = partial(Plurality, records, classes, epsilon)
    if rule != "best":
        return design(setting(rule=rule))
    if not _few(records, classes):
        return design(setting(rule="permute-and-flip"))
    tables = [design(setting(rule=name)) for name in ("ladder", "permute-and-flip", "exponential")]
    return min(tables, key=lambda each: each.mean_regret)


def _few(records: int, classes: int) -> bool:
    """Return whether the tables over all sorted histograms take seconds to compute."""
    if classes > 50 or not few_histograms(verify.SOLVED, records, classes):
        return False
    # Permute-and-flip takes min(C, K)^2 multiplications for each histogram, so many in seconds.
    return partition_count(records, classes) * min(classes, records) ** 2 <= 2_000_000
