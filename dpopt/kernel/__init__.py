"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.design import (
    KernelDesign,
    design_of,
    kernel_problem,
    optimal_kernel,
)
from dpopt.kernel.nearest import NearestDesign, NearestKernel
from dpopt.kernel.own import ExtraRows, OwnRows, read_own_rows
from dpopt.kernel.program import kernel_of, over_kernel
from dpopt.kernel.setting import KernelSetting
from dpopt.privacy import directed_pairs

__all__ = [
    "ExtraRows",
    "KernelDesign",
    "KernelSetting",
    "NearestDesign",
    "NearestKernel",
    "OwnRows",
    "design_of",
    "directed_pairs",
    "kernel_of",
    "kernel_problem",
    "optimal_kernel",
    "over_kernel",
    "read_own_rows",
]
