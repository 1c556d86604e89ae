"""A private plurality of voters that are private themselves: DaRRM for more than two classes."""

from dpopt.multiclass.oracle import Priced, Pricing
from dpopt.multiclass.priors import VotePrior
from dpopt.multiclass.proof import Target, certify, repaired, spent_ratio
from dpopt.multiclass.setting import MulticlassDesign, MulticlassSetting, design

__all__ = [
    "MulticlassDesign",
    "MulticlassSetting",
    "Priced",
    "Pricing",
    "Target",
    "VotePrior",
    "certify",
    "design",
    "repaired",
    "spent_ratio",
]
