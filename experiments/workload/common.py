"""What the experiments on linear queries share: names, ranges and the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import Ge, Le

PAPER = "Linear queries"

PROGRAM = (
    r"\min_{\theta \ge 0} \; \mathrm{tr}(M^{-1} W^\top W), \quad"
    r" M = \sum_s \theta_s \frac{s s^\top}{s \cdot p}, \quad \sum_s \theta_s s = 1, \quad"
    r" s \in \{1, e^\varepsilon\}^n",
    r"\frac{1}{N} \mathrm{E} \| V y - W x \|^2 = \sum_u p_u \Big( \sum_o Q_{ou} \|V_o\|^2"
    r" - \|W_u\|^2 \Big), \quad p = x / N",
)
"""The program, and what it makes least."""


def least_of(variances: Mapping[str, float]) -> str:
    """Return the name of the least variance, the first of those that are equal up to rounding.

    Subset selection of single categories is randomised response.
    """
    return min(variances, key=lambda name: float(f"{variances[name]:.9g}"))


Categories = Annotated[int, Ge(2), Le(20)]
"""Number of categories for which all patterns are enumerated."""
Epsilon = Annotated[float, Ge(0.01), Le(12.0)]
Queries = Literal["histogram", "prefix", "range", "marginals"]
