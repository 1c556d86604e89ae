"""Linear programs: one builder, several solvers, and lazy rows from a separation oracle."""

from dpopt.lp.backends import Backend
from dpopt.lp.loop import Progress, solve
from dpopt.lp.problem import Model, Problem, Rows, Separation, make_rows
from dpopt.lp.solution import Solution, Status

__all__ = [
    "Backend",
    "Model",
    "Problem",
    "Progress",
    "Rows",
    "Separation",
    "Solution",
    "Status",
    "make_rows",
    "solve",
]
