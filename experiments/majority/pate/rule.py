"""When a printed accuracy agrees with the training runs: the rule, stated before it is applied.

The paper prints the mean and the standard deviation s of ten draws of Q images. Ours are the exact
expected accuracies x_1, ..., x_S of S training runs, mean x and standard deviation d. Both means
have an error: d / sqrt(S) and s / sqrt(10). They agree if

    |printed - x| <= t sqrt(d^2 / S + s^2 / 10) + 0.005,

t the 97.5 % quantile of Student's distribution at the degrees of freedom of Welch,
(d^2/S + s^2/10)^2 / ((d^2/S)^2 / (S - 1) + (s^2/10)^2 / 9), and 0.005 half a unit of the printed
last digit. A method agrees if all its printed entries do. An order of methods is seen if it holds
in every training run. One run has no spread, and no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import variance

from scipy.special import stdtrit

DRAWS = 10
"""Draws behind a mean that the paper prints."""

_HALF_UNIT, _LEVEL = 0.005, 0.975

WITHIN = (
    "agrees if each printed mean lies within Welch's 95 % interval around the mean of the training "
    "runs, plus half a printed unit; with few runs the interval is wide, and to be within it says "
    "little"
)
ORDERED = "agrees if it holds in every training run"


def allowed_difference(runs: Sequence[float], printed_std: float) -> float | None:
    """Return how far a printed mean may lie from the mean of the runs; None for a single run.

    Args:
        runs: exact accuracy of each training run.
        printed_std: s, over ten draws.
    """
    if len(runs) < 2:
        return None
    ours, theirs = variance(runs) / len(runs), printed_std**2 / DRAWS
    whole = ours + theirs
    if whole == 0.0:
        return _HALF_UNIT
    freedom = whole**2 / (ours**2 / (len(runs) - 1) + theirs**2 / (DRAWS - 1))
    return float(stdtrit(freedom, _LEVEL)) * sqrt(whole) + _HALF_UNIT
