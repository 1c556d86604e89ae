"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.graph import directed_pairs
from dpopt.kernel.optimal import design_of, optimal_kernel
from dpopt.kernel.program import ExtraRows, kernel_problem
from dpopt.kernel.rays import solve_kernel
from dpopt.kernel.result import KernelDesign
from dpopt.kernel.setting import KernelSetting
from dpopt.kernel.variables import kernel_of, over_kernel

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
