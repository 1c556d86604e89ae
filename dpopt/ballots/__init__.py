"""Ballots over C classes: sorted histograms, equivariant mechanisms, selection rules."""

from dpopt.ballots.partitions import Partitions, partition_count
from dpopt.ballots.rules import Ladder, exponential, ladder, permute_and_flip
from dpopt.ballots.table import checked, flat, law, quantised, scale

__all__ = [
    "Ladder",
    "Partitions",
    "checked",
    "exponential",
    "flat",
    "ladder",
    "law",
    "partition_count",
    "permute_and_flip",
    "quantised",
    "scale",
]
