"""What the experiments on linear queries share: names, ranges, and a figure's keywords."""

from __future__ import annotations

from collections.abc import Mapping

from dpopt import ParameterError
from dpopt.local import queries

PAPER = "Linear queries"
WORKLOADS = queries.NAMES

PROGRAM = (
    r"\min_{\theta \ge 0} \; \mathrm{tr}(M^{-1} W^\top W), \quad"
    r" M = \sum_s \theta_s \frac{s s^\top}{s \cdot p}, \quad \sum_s \theta_s s = 1, \quad"
    r" s \in \{1, e^\varepsilon\}^n",
    r"\frac{1}{N} \mathrm{E} \| V y - W x \|^2 = \sum_u p_u \Big( \sum_o Q_{ou} \|V_o\|^2"
    r" - \|W_u\|^2 \Big), \quad p = x / N",
)
"""The program, and what it makes least."""


def least_of(variances: Mapping[str, float]) -> str:
    """Return the name of the least variance, the first of those that rounding alone tells apart.

    Subset selection of single letters is randomised response.
    """
    return min(variances, key=lambda name: float(f"{variances[name]:.9g}"))


def require(name: str, value: object, words: str, *, holds: bool) -> None:
    """Refuse a parameter unless ``holds``.

    Raises:
        ParameterError: "name is value; it must be words."
    """
    if not holds:
        raise ParameterError(f"{name} is {value}; it must be {words}.")


def require_letters(name: str, values: tuple[int, ...], most: int) -> None:
    """Refuse numbers of letters that are none, repeated, or outside 2..most.

    Raises:
        ParameterError: for these.
    """
    fine = len(set(values)) == len(values) > 0 and all(2 <= n <= most for n in values)
    require(name, values, f"different integers from 2 to {most}", holds=fine)


def require_epsilons(values: tuple[float, ...]) -> None:
    """Refuse epsilons that are none, repeated, or outside 0.01..12.

    Raises:
        ParameterError: for these.
    """
    fine = len(set(values)) == len(values) > 0 and all(0.01 <= e <= 12.0 for e in values)
    require("epsilons", values, "different numbers from 0.01 to 12", holds=fine)
