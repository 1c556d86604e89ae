"""A private plurality of voters that are private themselves: DaRRM for more than two classes."""

from dpopt.ballots.batch import VoteBatch
from dpopt.ballots.spending import Spending
from dpopt.multiclass.oracle import Priced, Pricing
from dpopt.multiclass.priors import VotePrior
from dpopt.multiclass.proof import Target, certify, repaired, spent_ratio
from dpopt.multiclass.setting import MulticlassDesign, MulticlassSetting, design
from dpopt.multiclass.vote import best_design, vote

__all__ = [
    "MulticlassDesign",
    "MulticlassSetting",
    "Priced",
    "Pricing",
    "Spending",
    "Target",
    "VoteBatch",
    "VotePrior",
    "best_design",
    "certify",
    "design",
    "repaired",
    "spent_ratio",
    "vote",
]
