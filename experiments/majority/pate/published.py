"""Tables 1 (m = 3), 6 (1), 8 (5) and 10 (7) of the DaRRM paper, and when our numbers agree.

The rule is stated before it is applied. The paper prints the mean and the standard deviation s of
ten draws of Q images. Ours are the exact expected accuracies x_1, ..., x_S of S training runs, mean
x and standard deviation d. Both means have an error: d / sqrt(S) and s / sqrt(10). They agree if

    |printed - x| <= t sqrt(d^2 / S + s^2 / 10) + 0.005,

t the 97.5 % quantile of Student's distribution at the degrees of freedom of Welch,
(d^2/S + s^2/10)^2 / ((d^2/S)^2 / (S - 1) + (s^2/10)^2 / 9), and 0.005 half of the last
printed digit. A method agrees if all its printed entries do. An order of methods is confirmed if it
holds in every training run. One run has no spread, and no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import variance

from scipy.special import stdtrit

Printed = tuple[float, float]

PRINTED_METHODS = ("gnmax", "subsampling", "surrogate")
"""The columns of the printed tables: GNMax, gamma_Sub, gamma_opt."""

QUERIES = (20, 50, 100)

# For each m, one row for each Q: mean and standard deviation over 10 draws, for each method.
_TABLES: dict[str, dict[int, tuple[tuple[Printed, Printed, Printed], ...]]] = {
    "mnist": {
        1: (
            ((0.54, 0.11), (0.68, 0.07), (0.74, 0.08)),
            ((0.51, 0.07), (0.67, 0.05), (0.66, 0.05)),
            ((0.57, 0.03), (0.71, 0.03), (0.69, 0.04)),
        ),
        3: (
            ((0.63, 0.09), (0.76, 0.09), (0.79, 0.09)),
            ((0.66, 0.06), (0.75, 0.06), (0.79, 0.05)),
            ((0.64, 0.04), (0.76, 0.04), (0.80, 0.04)),
        ),
        5: (
            ((0.73, 0.11), (0.76, 0.09), (0.84, 0.07)),
            ((0.75, 0.07), (0.82, 0.04), (0.83, 0.04)),
            ((0.72, 0.04), (0.79, 0.05), (0.83, 0.03)),
        ),
        7: (
            ((0.79, 0.07), (0.80, 0.09), (0.85, 0.08)),
            ((0.80, 0.05), (0.82, 0.05), (0.85, 0.04)),
            ((0.80, 0.04), (0.80, 0.04), (0.83, 0.03)),
        ),
    },
    "fashion-mnist": {
        1: (
            ((0.56, 0.10), (0.92, 0.05), (0.89, 0.06)),
            ((0.52, 0.05), (0.89, 0.04), (0.92, 0.03)),
            ((0.56, 0.04), (0.89, 0.04), (0.91, 0.04)),
        ),
        3: (
            ((0.65, 0.11), (0.90, 0.07), (0.96, 0.03)),
            ((0.59, 0.06), (0.94, 0.03), (0.96, 0.02)),
            ((0.64, 0.04), (0.93, 0.02), (0.96, 0.02)),
        ),
        5: (
            ((0.72, 0.10), (0.96, 0.04), (0.97, 0.04)),
            ((0.72, 0.08), (0.96, 0.02), (0.97, 0.02)),
            ((0.72, 0.06), (0.97, 0.01), (0.97, 0.01)),
        ),
        7: (
            ((0.79, 0.07), (0.95, 0.04), (0.96, 0.04)),
            ((0.79, 0.05), (0.96, 0.03), (0.97, 0.03)),
            ((0.79, 0.03), (0.96, 0.02), (0.96, 0.02)),
        ),
    },
}

DRAWS = 10
"""Number of draws in a mean that the paper prints."""

_HALF_UNIT, _LEVEL = 0.005, 0.975

WITHIN = (
    "agrees if each printed mean lies within Welch's 95 % interval around the mean of the training "
    "runs, plus half of the last printed digit; with few runs the interval is wide, and "
    "agreement says little"
)
ORDERED = "agrees if it holds in every training run"


def printed(dataset: str, allowance: int, queries: int, method: str) -> Printed | None:
    """Return the printed mean and standard deviation; None where the paper prints none."""
    rows = _TABLES.get(dataset, {}).get(allowance)
    if rows is None or queries not in QUERIES or method not in PRINTED_METHODS:
        return None
    return rows[QUERIES.index(queries)][PRINTED_METHODS.index(method)]


def allowed_difference(runs: Sequence[float], printed_std: float) -> float | None:
    """Return the allowed difference of a printed mean from that of the runs; None for one run."""
    if len(runs) < 2:
        return None
    ours, theirs = variance(runs) / len(runs), printed_std**2 / DRAWS
    whole = ours + theirs
    if whole == 0.0:
        return _HALF_UNIT
    freedom = whole**2 / (ours**2 / (len(runs) - 1) + theirs**2 / (DRAWS - 1))
    return float(stdtrit(freedom, _LEVEL)) * sqrt(whole) + _HALF_UNIT
