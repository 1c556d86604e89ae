"""A function over a grid of parameters: in parallel, resumable, on one machine or a cluster."""

from dpopt.sweeps.result import Failure, SweepResult
from dpopt.sweeps.run import sweep

__all__ = ["Failure", "SweepResult", "sweep"]
