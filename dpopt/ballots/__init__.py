"""Ballots over C classes: sorted histograms, equivariant mechanisms, selection rules."""

from dpopt.ballots.audit import (
    Audited,
    Spent,
    audit_rule,
    audited,
    rule_spending,
    spent_ratio,
    table_bits,
    worst,
)
from dpopt.ballots.flips import Coins, Words, exponential_draw, permute_and_flip_draw
from dpopt.ballots.partitions import Partitions, partition_count
from dpopt.ballots.rules import Ladder, exponential, ladder, permute_and_flip
from dpopt.ballots.table import checked, flat, law, quantised, scale

__all__ = [
    "Audited",
    "Coins",
    "Ladder",
    "Partitions",
    "Spent",
    "Words",
    "audit_rule",
    "audited",
    "checked",
    "exponential",
    "exponential_draw",
    "flat",
    "ladder",
    "law",
    "partition_count",
    "permute_and_flip",
    "permute_and_flip_draw",
    "quantised",
    "rule_spending",
    "scale",
    "spent_ratio",
    "table_bits",
    "worst",
]
