"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.nearest import NearestKernel
from dpopt.kernel.own import ExtraRows, OwnRows, read_own_rows
from dpopt.kernel.setting import KernelSetting
from dpopt.privacy import directed_pairs

__all__ = [
    "ExtraRows",
    "KernelSetting",
    "NearestKernel",
    "OwnRows",
    "directed_pairs",
    "read_own_rows",
]
