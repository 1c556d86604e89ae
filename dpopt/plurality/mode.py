"""The private mode of a column: its most common category, for any number of records."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast, get_args

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt.ballots.audit import few_histograms
from dpopt.data.tally import Tally, tally
from dpopt.plurality.setting import Plurality
from dpopt.privacy import Certificate, Guarantee
from dpopt.shape import Design, design
from dpopt.table.histograms import partition_count

Rule = Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"]
# What `rule` may be.
RULES: tuple[str, ...] = get_args(Rule)


@dataclass(frozen=True)
class ModeRelease:
    """A released category and its privacy guarantee.

    Attributes:
        category: of the alphabet.
        rule: the rule that drew it: ladder, permute-and-flip, exponential or optimal.
        guarantee: the differential privacy of the release; neighbours replace one record.
        records: K, which is public.
        proof: why the guarantee holds.
    """

    category: Hashable
    rule: str
    guarantee: Guarantee
    records: int
    proof: str = field(repr=False)


def mode(
    data: object, epsilon: float, *, labels: object = None, rule: Rule = "best"
) -> ModeRelease:
    """Return the most common category of some records, privately.

    Neighbours differ in one record that is replaced by another, so the number of records is public.
    So is the alphabet: fix it before looking at the data, since which categories occur is private.
    The category is drawn with the operating system's randomness. The guarantee covers neither the
    running time nor the error for a record outside the alphabet.

    Args:
        data: records (a sequence, an array, a column of a table), a mapping from categories to
            counts, or a `Tally`; if ``labels`` is None, the counts of the categories 0..C-1, shape
            (C,).
        epsilon: of the release, in (0, 50], in nats.
        labels: the alphabet: C >= 2 categories in order.
        rule: see `mode_design`.

    Raises:
        ParameterError: for a parameter out of range, for no records, or for a record outside the
            alphabet, which the message does not show.

    Example:
        >>> from dpopt import plurality
        >>> cities = ["Basel", "Bern", "Chur"]
        >>> city = plurality.mode({"Bern": 9000, "Chur": 10}, 1.0, labels=cities)
        >>> city.category, city.rule
        ('Bern', 'permute-and-flip')
    """
    counted = _tallied(data, labels)
    mechanism = mode_design(int(counted.counts.sum()), len(counted.counts), epsilon, rule=rule)
    category = counted.labels[int(mechanism.release(counted))]
    return ModeRelease(
        category,
        mechanism.setting.rule,
        mechanism.guarantee,
        mechanism.setting.records,
        proof(mechanism),
    )


def mode_design(records: int, classes: int, epsilon: float, *, rule: Rule = "best") -> Design:
    """Return the mechanism that `mode` draws from; it depends on public numbers only.

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


def proof(mechanism: Design) -> str:
    """Return why a design's guarantee holds, in words."""
    return cast(Certificate, mechanism.certificate).claim


def _few(records: int, classes: int) -> bool:
    """Return whether the tables over all sorted histograms take seconds to compute."""
    if classes > 50 or not few_histograms(verify.SOLVED, records, classes):
        return False
    # Permute-and-flip takes min(C, K)^2 multiplications for each histogram, so many in seconds.
    return partition_count(records, classes) * min(classes, records) ** 2 <= 2_000_000


def _tallied(data: object, labels: object) -> Tally:
    """Return data as counts of categories; without an alphabet the data are the counts."""
    if isinstance(data, Tally) and labels is None:
        counted = data
    elif labels is None:
        counts: Any = _checks.array("counts", data)
        if counts.ndim != 1 or counts.size < 2:
            raise ParameterError(
                f"counts has shape {counts.shape}; without an alphabet it must be (C,), a count "
                "for each of at least 2 categories."
            )
        counted = Tally.of_counts(counts, counts.size)
    else:
        counted = tally(data, labels)
    if not counted.counts.any():
        raise ParameterError("data holds no records; a mode needs at least one.")
    return counted
