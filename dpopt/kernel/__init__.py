"""The optimal private kernel for a finite set of inputs and outputs, by linear programming."""

from dpopt.kernel.constraints import ConstraintBlock, Constraints, read_constraints
from dpopt.privacy import directed_pairs

__all__ = ["ConstraintBlock", "Constraints", "directed_pairs", "read_constraints"]
