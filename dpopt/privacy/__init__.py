"""What "private" means: guarantees, their composition, and privacy as rows of a program."""

from dpopt.privacy.guarantee import Guarantee, general_composition, simple_composition
from dpopt.privacy.rows import (
    column_minimum_rows,
    complete_graph,
    hockey_stick_rows,
    ratio_rows,
    stochastic_rows,
)

__all__ = [
    "Guarantee",
    "column_minimum_rows",
    "complete_graph",
    "general_composition",
    "hockey_stick_rows",
    "ratio_rows",
    "simple_composition",
    "stochastic_rows",
]
