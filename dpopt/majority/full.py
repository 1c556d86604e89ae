"""The program of DaRRM as the paper writes it: a row for every multiset of corners.

For comparison: `gamma_problem` has the same optimum; it prices a reduced set and writes few rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.majority.check import full_size, multisets
from dpopt.majority.voters import CORNERS, Voters, fold, require_voters
from dpopt.privacy import Problem
from dpopt.prob import poisson_binomial_pmf

FULL_ROWS = 200_000
"""Most rows that are written: K = 15 for Delta > 0, K = 103 for Delta = 0."""

_BLOCK = 20_000


def full_problem(setting: Voters, weights: npt.ArrayLike) -> Problem:
    """Return the paper's own program over gamma's upper half, with all of its privacy rows.

    Maximise weights @ gamma subject to 0 <= gamma <= 1 and f(p, p') <= e^(m epsilon) - 1 + 2 delta
    at every multiset of the corners of lemma 5.1: C(K+3, 3) rows if Delta = 0, else C(K+7, 7).
    Variable "gamma", rows "corners", divided by the right side as those of `gamma_problem` are.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.

    Raises:
        ParameterError: for more than 200,000 rows.

    Example:
        >>> from dpopt import majority, solve
        >>> setting = majority.MajoritySetting(mechanisms=3, epsilon=0.5, allowance=1.0)
        >>> solution = solve(majority.full_problem(setting, [1.0, 1.0]))
        >>> solution["gamma"].round(4).tolist()
        [1.0, 0.3856]
    """
    require_voters(setting)
    size = full_size(setting)
    if size > FULL_ROWS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}, with {size} multisets of corners; at most "
            f"{FULL_ROWS} are written, so take gamma_problem."
        )
    problem = Problem("DaRRM noise function, every corner multiset")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    problem.maximise({"gamma": _checks.floats("weights", weights)})
    problem.add_rows("corners", np.concatenate(list(_rows(setting))), upper=1.0)
    return problem


def _rows(setting: Voters) -> Iterator[npt.NDArray[np.float64]]:
    """Yield (alpha - e^(m epsilon) alpha') / budget, folded, for blocks of multisets."""
    names = CORNERS if setting.mechanism_delta > 0.0 else ("00", "11", "bc", "cb")
    sides = np.array([setting.corner(name) for name in names]).T
    for whole in multisets(setting.mechanisms, len(names)):
        for block in np.array_split(whole, len(whole) // _BLOCK + 1):
            here, there = (poisson_binomial_pmf(p[_voters(block)]) for p in sides)
            yield fold(here - setting.ratio * there) / setting.budget


def _voters(counts: IntVector) -> IntVector:
    """Return the place of each voter's corner, shape (multisets, K), from counts by corner."""
    voter = np.arange(int(counts[0].sum()))
    return (voter[None, :, None] >= np.cumsum(counts, axis=1)[:, None, :]).sum(axis=2)
