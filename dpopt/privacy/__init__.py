"""What "private" means: guarantees, rows of programs, exact certificates, exact release."""

from dpopt.privacy.audit import Audit, audit_epsilon
from dpopt.privacy.exact import Certificate, certify_kernel, shrink_to_budget
from dpopt.privacy.exponential import exp_lower, exp_upper
from dpopt.privacy.graph import directed_pairs
from dpopt.privacy.guarantee import Guarantee, general_composition, simple_composition
from dpopt.privacy.kernel import ExactKernel
from dpopt.privacy.least import Least, least_delta, least_epsilon
from dpopt.privacy.program import Problem
from dpopt.privacy.quantise import quantise_kernel
from dpopt.privacy.rows import (
    column_minimum_rows,
    complete_graph,
    hockey_stick_rows,
    ratio_rows,
    stochastic_rows,
)

__all__ = [
    "Audit",
    "Certificate",
    "ExactKernel",
    "Guarantee",
    "Least",
    "Problem",
    "audit_epsilon",
    "certify_kernel",
    "column_minimum_rows",
    "complete_graph",
    "directed_pairs",
    "exp_lower",
    "exp_upper",
    "general_composition",
    "hockey_stick_rows",
    "least_delta",
    "least_epsilon",
    "quantise_kernel",
    "ratio_rows",
    "shrink_to_budget",
    "simple_composition",
    "stochastic_rows",
]
