"""Differential privacy: guarantees, rows of programs, certificates, and privacy costs."""

from dpopt.privacy.cost import Least
from dpopt.privacy.exact import exp_lower, exp_upper
from dpopt.privacy.graph import directed_pairs
from dpopt.privacy.guarantee import Certificate, Guarantee, general_composition, simple_composition
from dpopt.privacy.program import Problem

__all__ = [
    "Certificate",
    "Guarantee",
    "Least",
    "Problem",
    "directed_pairs",
    "exp_lower",
    "exp_upper",
    "general_composition",
    "simple_composition",
]
