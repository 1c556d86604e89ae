"""The paper's constraint set of DaRRM, every multiset of corners: a check, and a program.

Neither shares code with the separation oracle of the design: pmfs and the list of all multisets
come from `dpopt.prob`, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

import numpy as np
import numpy.typing as npt

from dpopt import Design, Majority, ParameterError, Problem
from dpopt.majority.voters import CORNERS, check_gamma, fold, signed
from dpopt.prob import poisson_binomial_pmf
from dpopt.prob.histograms import histograms
from experiments.arrays import Floats, Ints

Counts = npt.NDArray[np.int16]

FULL_ROWS = 200_000
"""Most rows that are written: K = 15 for Delta > 0, K = 103 for Delta = 0."""

FULL_LIMIT = 1_200_000
"""Most multisets that are enumerated: K = 21 for Delta > 0, K = 191 for Delta = 0."""

_BLOCK = 20_000


@dataclass(frozen=True)
class PrivacyCheck:
    """What the paper's corner set says of a gamma, in double precision.

    Attributes:
        excess: max of Pr[1 | p] - e^(m epsilon) Pr[1 | p'] - delta.
        rounding: bound on the error of the excess in double precision.
        epsilon: smallest epsilon for which gamma is (epsilon, delta)-DP, up to rounding; infinite
            if there is none.
        worst: how many voters sit at which corner (p, p') where the excess is largest.
    """

    excess: float
    rounding: float
    epsilon: float
    worst: dict[str, int]


def full_size(setting: Majority) -> int:
    """Return the size of the paper's set: C(K+7, 7), or C(K+3, 3) if Delta = 0."""
    others = len(corner_names(setting)) - 1
    return comb(setting.voters + others, others)


def check_full(setting: Majority, gamma: Floats, chances: Floats | None = None) -> PrivacyCheck:
    """Check gamma against every multiset of the paper's corners.

    Args:
        setting: the voters and the target; `full_size` must be at most `FULL_LIMIT`.
        gamma: noise function on 0..K, shape (K + 1,).
        chances: Pr[output 1 | L = l] on 0..K, if they are more accurate than 1/2 +- gamma / 2: a
            gamma close to 1 loses the digits of 1 - gamma.
    """
    gamma = check_gamma(setting, gamma)
    chances = 0.5 + 0.5 * signed(gamma) if chances is None else chances
    counts = every_multiset(setting)
    p, q = (_chances(setting, chances, counts, side) for side in (0, 1))
    excess = p - setting.ratio * q - setting.delta
    top = int(np.argmax(excess))
    # 3 K units in the last place for each probability, as the recurrence adds positive terms; and p
    # rounded in its last place moves Pr[output 1] by at most 1 for each unit and voter.
    noise = 8.0 * setting.voters * 2.0**-53
    # Without it p = delta with q = 0 would count as an infinite loss.
    over = np.maximum(p * (1.0 - noise) - setting.delta, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = float(np.where(over > 0.0, over / q, 0.0).max())
    epsilon = log(loss) if 1.0 < loss < np.inf else (np.inf if loss == np.inf else 0.0)
    where = {name: int(n) for name, n in zip(corner_names(setting), counts[top], strict=True) if n}
    return PrivacyCheck(float(excess[top]), noise * (1.0 + setting.ratio), epsilon, where)


def check_design(design: Design) -> PrivacyCheck | None:
    """Check a design by its integers; None where the set is above `FULL_LIMIT`.

    That is K above 21 for Delta > 0, above 191 for Delta = 0.
    """
    if full_size(design.setting) > FULL_LIMIT:
        return None
    return check_full(design.setting, design.gamma, design.table.matrix()[:, 1])


def full_problem(setting: Majority, weights: npt.ArrayLike) -> Problem:
    """Return the paper's own program over gamma's upper half, with all of its privacy rows.

    Maximise weights @ gamma subject to 0 <= gamma <= 1 and f(p, p') <= e^(m epsilon) - 1 + 2 delta
    at every multiset of the corners of lemma 5.1. Variable "gamma", rows "corners", divided by the
    right side as those of `dpopt.majority.gamma_problem` are, which has the same optimum.
    """
    if full_size(setting) > FULL_ROWS:
        raise ParameterError(
            f"voters is {setting.voters}; the paper's set must have at most {FULL_ROWS} multisets, "
            f"and has {full_size(setting)}."
        )
    problem = Problem("DaRRM noise function, every corner multiset")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    problem.maximise({"gamma": np.asarray(weights, float)})
    rows = rows_of(setting, every_multiset(setting)) / setting.budget
    problem.add_rows("corners", rows, upper=1.0)
    return problem


def corner_names(setting: Majority) -> tuple[str, ...]:
    """Return the paper's corners: 4 if Delta = 0, else 8 (lemma 5.1)."""
    return CORNERS if setting.voter_delta > 0.0 else ("00", "11", "bc", "cb")


def every_multiset(setting: Majority) -> Counts:
    """Return the paper's set: how many voters sit at each corner, shape (multisets, corners)."""
    return histograms(setting.voters, len(corner_names(setting))).astype(np.int16)


def rows_of(setting: Majority, counts: Counts) -> Floats:
    """Return alpha - e^(m epsilon) alpha', folded; a pmf is computed once for all its multisets.

    L is the number of voters at probability 1 plus a Poisson-binomial over the inner values, of
    which there are four at most.
    """
    k = setting.voters
    # Behind K zeros, a pmf is shifted by the voters at 1.
    sides = [
        (np.pad(pmfs, ((0, 0), (k, 0))), place, ones)
        for pmfs, place, ones in (_distinct(setting, counts, side) for side in (0, 1))
    ]
    rows = np.empty((len(counts), setting.middle))
    for start in range(0, len(counts), _BLOCK):
        block = slice(start, start + _BLOCK)
        first, second = (
            pmfs[place[block, None], k - ones[block, None] + np.arange(k + 1)]
            for pmfs, place, ones in sides
        )
        rows[block] = fold(first - setting.ratio * second)
    return rows


def _distinct(setting: Majority, counts: Counts, side: int) -> tuple[Floats, Ints, Ints]:
    """Return the distinct pmfs of inner voters on 0..K, each row's pmf, its voters at 1."""
    k = setting.voters
    values = np.array([setting.corner(name)[side] for name in corner_names(setting)])
    inner = np.unique(values[(values > 0.0) & (values < 1.0)])
    at = np.column_stack([counts[:, values == value].sum(axis=1) for value in inner])
    code = at.astype(np.int64) @ (k + 1) ** np.arange(inner.size, dtype=np.int64)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    # The voters of a pmf: so many at each inner value, the others at 0; shape (pmfs, K).
    ends = np.cumsum(at[first], axis=1)[:, None, :]
    corner = (np.arange(k)[None, :, None] >= ends).sum(axis=2)
    pmfs = poisson_binomial_pmf(np.append(inner, 0.0)[corner])
    return pmfs, place, counts[:, values == 1.0].sum(axis=1)


def _chances(setting: Majority, chances: Floats, counts: Counts, side: int) -> Floats:
    """Return Pr[output 1] for each multiset: sums of non-negative terms, so that a zero stays."""
    pmfs, place, ones = _distinct(setting, counts, side)
    shifted = np.append(chances, np.zeros(setting.voters))
    windows = np.lib.stride_tricks.sliding_window_view(shifted, setting.voters + 1)
    return (pmfs @ windows.T)[place, ones]
