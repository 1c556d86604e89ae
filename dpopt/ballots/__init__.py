"""Ballots over C classes: sorted histograms, equivariant mechanisms, selection rules."""

from dpopt.ballots.audit import (
    Audited,
    Spent,
    audit_rule,
    auditable,
    audited,
    rule_spending,
    spent_ratio,
    table_bits,
    worst,
)
from dpopt.ballots.flips import Coins, Words, exponential_draw, permute_and_flip_draw
from dpopt.ballots.leaps import ladder_bounds, ladder_draw, ladder_leaps
from dpopt.ballots.partitions import Partitions, partition_count
from dpopt.ballots.rules import Ladder, exponential, ladder, permute_and_flip
from dpopt.ballots.table import checked, flat, law, quantised, scale
from dpopt.ballots.unbounded import (
    Unbounded,
    from_ratio,
    proved_for_any_number,
    spent_by_any_number,
    surely_broken,
)

__all__ = [
    "Audited",
    "Coins",
    "Ladder",
    "Partitions",
    "Spent",
    "Unbounded",
    "Words",
    "audit_rule",
    "auditable",
    "audited",
    "checked",
    "exponential",
    "exponential_draw",
    "flat",
    "from_ratio",
    "ladder",
    "ladder_bounds",
    "ladder_draw",
    "ladder_leaps",
    "law",
    "partition_count",
    "permute_and_flip",
    "permute_and_flip_draw",
    "proved_for_any_number",
    "quantised",
    "rule_spending",
    "scale",
    "spent_by_any_number",
    "spent_ratio",
    "surely_broken",
    "table_bits",
    "worst",
]
