"""Plurality: the most common class of plain records or votes, told privately and at its best.

Exact choices, by linear programming, where one record may be replaced; the ladder, permute-and-flip
(McKenna, Sheldon 2020) and the exponential mechanism (McSherry, Talwar 2007) beside them.
"""

from dpopt.ballots.batch import VoteBatch
from dpopt.ballots.spending import BallotSpending
from dpopt.plurality.mode import ModeRelease, ModeRule, mode, mode_rule
from dpopt.plurality.setting import PluralityDesign, PluralitySetting, design
from dpopt.plurality.vote import best_design, vote

__all__ = [
    "BallotSpending",
    "ModeRelease",
    "ModeRule",
    "PluralityDesign",
    "PluralitySetting",
    "VoteBatch",
    "best_design",
    "design",
    "mode",
    "mode_rule",
    "vote",
]
