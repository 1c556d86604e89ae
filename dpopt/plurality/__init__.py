"""Private plurality: the most common class of records or of non-private votes.

Neighbours differ in one replaced record. The optimal mechanism is a linear program; the ladder,
permute-and-flip (McKenna, Sheldon 2020) and the exponential mechanism (McSherry, Talwar 2007) are
rules that need none.
"""

from dpopt.ballots.choice import Counts
from dpopt.plurality.setting import mode_design

__all__ = ["Counts", "mode_design"]
