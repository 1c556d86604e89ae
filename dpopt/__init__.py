"""Differentially private mechanisms designed by linear programming."""

from dpopt import gnmax, kernel, majority, public_prior, roo
from dpopt._errors import (
    DpoptError,
    InfeasibleError,
    NotPrivateError,
    ParameterError,
    SolverError,
)
from dpopt._load import load
from dpopt.lp import Problem, Solution, Status, solve
from dpopt.privacy import Guarantee

__version__ = "0.1.0"

__all__ = [
    "DpoptError",
    "Guarantee",
    "InfeasibleError",
    "NotPrivateError",
    "ParameterError",
    "Problem",
    "Solution",
    "SolverError",
    "Status",
    "__version__",
    "gnmax",
    "kernel",
    "load",
    "majority",
    "public_prior",
    "roo",
    "solve",
]
