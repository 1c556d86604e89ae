"""Plurality: the most common class of plain records or votes, told privately and at its best.

Exact choices, by linear programming, where one record may be replaced; the ladder, permute-and-flip
(McKenna, Sheldon 2020) and the exponential mechanism (McSherry, Talwar 2007) beside them.
"""

from dpopt.ballots import Counts
from dpopt.plurality.mode import ModeRelease, mode, mode_design

__all__ = [
    "Counts",
    "ModeRelease",
    "mode",
    "mode_design",
]
