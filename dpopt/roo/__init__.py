"""Reveal-or-Obscure: one private category from n records, by the best certified rule.

Tasnim, Gilani, Sankar, Kosut, "Differentially Private Sampling via Reveal-or-Obscure" (journal)
and its conference version (ITW 2025).
"""

from dpopt.data.tally import Tally, tally, tally_file
from dpopt.roo.minimum import RULES, RooAudit, Witness, rule_weights
from dpopt.roo.setting import CategorySetting, RooSetting

__all__ = [
    "RULES",
    "CategorySetting",
    "RooAudit",
    "RooSetting",
    "Tally",
    "Witness",
    "rule_weights",
    "tally",
    "tally_file",
]
