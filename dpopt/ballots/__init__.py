"""Ballots over C classes: votes and their counts, selection rules, and their audited tables."""

from dpopt.ballots.rules import Coins
from dpopt.ballots.tabulate import audit_rule, auditable, table_bits
from dpopt.ballots.votes import Counts

__all__ = [
    "Coins",
    "Counts",
    "audit_rule",
    "auditable",
    "table_bits",
]
