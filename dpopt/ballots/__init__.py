"""Ballots over C classes: votes and their counts, selection rules, and their audited tables."""

from dpopt.ballots.audit import Audited, audit_rule, auditable, table_bits
from dpopt.ballots.priors import VotePrior
from dpopt.ballots.rules import Coins, exponential, permute_and_flip
from dpopt.ballots.votes import Counts

__all__ = [
    "Audited",
    "Coins",
    "Counts",
    "VotePrior",
    "audit_rule",
    "auditable",
    "exponential",
    "permute_and_flip",
    "table_bits",
]
