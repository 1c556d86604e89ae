"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.own import ExtraRows, OwnRows, read_own_rows
from dpopt.privacy import directed_pairs

__all__ = [
    "ExtraRows",
    "OwnRows",
    "directed_pairs",
    "read_own_rows",
]
