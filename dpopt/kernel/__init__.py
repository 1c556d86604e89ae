"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.design import (
    KernelDesign,
    design_of,
    kernel_problem,
    optimal_kernel,
    solve_kernel,
)
from dpopt.kernel.graph import directed_pairs
from dpopt.kernel.program import ExtraRows, kernel_of, over_kernel
from dpopt.kernel.setting import KernelSetting

__all__ = [
    "ExtraRows",
    "KernelDesign",
    "KernelSetting",
    "design_of",
    "directed_pairs",
    "kernel_of",
    "kernel_problem",
    "optimal_kernel",
    "over_kernel",
    "solve_kernel",
]
