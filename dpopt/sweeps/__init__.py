"""A function over a grid of parameters: in parallel, resumable, on one machine or a cluster."""

from dpopt.sweeps.pools import WorkerError
from dpopt.sweeps.result import Effort, Failure, SweepResult
from dpopt.sweeps.run import sweep

__all__ = ["Effort", "Failure", "SweepResult", "WorkerError", "sweep"]
