"""Ballots over C classes: sorted histograms, equivariant mechanisms, selection rules."""

from dpopt.ballots.audit import Audited, Spent, audit_rule, auditable, table_bits, worst
from dpopt.ballots.coins import Coins
from dpopt.ballots.partitions import Partitions, partition_count
from dpopt.ballots.rules import exponential, permute_and_flip
from dpopt.ballots.table import checked, flat, law, quantised, scale

__all__ = [
    "Audited",
    "Coins",
    "Partitions",
    "Spent",
    "audit_rule",
    "auditable",
    "checked",
    "exponential",
    "flat",
    "law",
    "partition_count",
    "permute_and_flip",
    "quantised",
    "scale",
    "table_bits",
    "worst",
]
