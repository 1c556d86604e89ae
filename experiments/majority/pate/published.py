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

import csv
from collections.abc import Sequence
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import variance

from scipy.special import stdtrit

PRINTED_METHODS = ("gnmax", "subsampling", "surrogate")
"""The columns of the printed tables: GNMax, gamma_Sub, gamma_opt."""

DRAWS = 10
"""Number of draws in a mean that the paper prints."""

_HALF_UNIT, _LEVEL = 0.005, 0.975

WITHIN = (
    "agrees if each printed mean lies within Welch's 95 % interval around the mean of the training "
    "runs, plus half of the last printed digit; with few runs the interval is wide, and "
    "agreement says little"
)
ORDERED = "agrees if it holds in every training run"


@cache
def _tables() -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the rows of the printed tables, mean and standard deviation over 10 draws each."""
    with (Path(__file__).parent / "votes" / "printed.csv").open(encoding="utf-8") as file:
        return {(row["dataset"], row["m"], row["Q"]): row for row in csv.DictReader(file)}


def printed(dataset: str, allowance: int, queries: int, method: str) -> tuple[float, float] | None:
    """Return the printed mean and standard deviation; None where the paper prints none."""
    row = _tables().get((dataset, str(allowance), str(queries)))
    if row is None or method not in PRINTED_METHODS:
        return None
    return float(row[f"{method}_mean"]), float(row[f"{method}_std"])


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
