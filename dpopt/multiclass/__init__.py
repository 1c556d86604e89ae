"""A private plurality of voters that are private themselves: DaRRM for more than two classes."""

from dpopt.ballots import VotePrior
from dpopt.multiclass.setting import MulticlassSetting, design

__all__ = [
    "MulticlassSetting",
    "VotePrior",
    "design",
]
