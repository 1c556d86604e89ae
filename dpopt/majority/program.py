"""The linear program of DaRRM, with lazy privacy rows: all corner multisets priced, few added.

With h the signed gamma and G(p) = E h(L), L ~ PoissonBinomial(p), DaRRM is (m epsilon, delta)-DP
iff f(p, p') = G(p) - e^(m epsilon) G(p') <= e^(m epsilon) - 1 + 2 delta for every choice of a
corner (p_i, p'_i) for each voter (lemmas 3.4 and 5.1): C(K+7, 7) multisets of the corners, or
C(K+3, 3) if Delta = 0.

Theorem (reduction). It is enough to check the multisets in which bc and cb do not both occur,
nor D0 and 0D, nor 1m and m1.

The proof is on the page docs/theorems/corners.md: exchanging the p' of two voters leaves f as it
is, and makes two voters of the segment from 00 to 11, along which f is affine. It assumes nothing
about h, so gamma may be negative too.

This leaves O(K^2) multisets for Delta = 0, and O(K^4) of eight types otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from dpopt import verify
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows, solve
from dpopt.majority.objectives import maxima
from dpopt.majority.shifted import CornerValues
from dpopt.majority.voters import (
    Counts,
    Voters,
    fold,
    full_gamma,
    reduced_size,
    require_voters,
    signed,
)
from dpopt.privacy import Problem
from dpopt.prob import binomial_pmf

# Slack, as a share of the budget, within which a row is tight; tight rows kept for each level of
# gamma, and multisets enumerated to find them.
_TIGHT, _MOST_TIGHT, _MOST_LISTED = 1e-9, 8, 200_000
# Rounds of pricing for the rows of a proof, and the slack at the optimum up to which they are kept.
_MOST_PRICED, _NEAR = 12, 1e-8
# First rows: the least number of voters at bc or cb, which is then doubled; the distance of rows in
# standard deviations of their ones; and the step in voters at bc where all others are at 00.
_FIRST_VOTERS, _APART, _ALONE = 4, 3.0, 3


def gamma_problem(setting: Voters, weights: npt.ArrayLike) -> Problem:
    """Return the program over gamma's upper half: variable "gamma", lazy rows "corners".

    Maximise weights @ gamma subject to 0 <= gamma <= 1, or -1 <= gamma <= 1 where the setting is
    contrary, and (m epsilon, delta)-privacy of DaRRM over all corner multisets (equation 2 of the
    paper). You may add rows of your own before solving.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.
    """
    require_voters(setting)
    problem = problem_of_targets(setting, [setting])
    problem.maximise({"gamma": weights})
    return problem


def problem_of_targets(setting: Voters, targets: Sequence[Voters]) -> Problem:
    """Return the program without an objective: rows "corners", "corners 1", ... of all targets."""
    problem = Problem("DaRRM noise function")
    problem.add_variables("gamma", setting.middle, lower=setting.least, upper=1.0)
    for j, target in enumerate(targets):
        oracle = CornerOracle(target)
        first = None if target.voter_delta else oracle.spread
        problem.add_family(f"corners {j}" if j else "corners", oracle, over="gamma", first=first)
    # gamma = 0, a fair coin, is strictly feasible: rows are divided by the budget, so slack is 1.
    problem.set_inside({"gamma": 0.0}, slack=1.0)
    return problem


def corner_rows(setting: Voters, multisets: list[Counts]) -> Rows:
    """Return the privacy rows of multisets over gamma's upper half, divided by the budget.

    A row is fold(alpha - e^(m epsilon) alpha') / budget @ gamma <= 1, with alpha and alpha' the
    distributions of L under both neighbours.
    """
    sides = [
        np.array([_distribution(setting, counts, side) for counts in multisets]) for side in (0, 1)
    ]
    matrix = (sides[0] - setting.ratio * sides[1]).reshape(-1, setting.voters + 1)
    return make_rows(fold(matrix) / setting.budget, upper=1.0)


def _distribution(setting: Voters, counts: Counts, side: int) -> Vector:
    """Return the pmf of L under one neighbour, shape (K + 1,): binomials convolved."""
    pmf, ones = np.ones(1), 0
    for name, count in counts:
        p = setting.corner(name)[side]
        if p == 1.0:
            ones += count
        elif p > 0.0:
            binomial = binomial_pmf(count, p)
            pmf = binomial if pmf.size == 1 else np.convolve(pmf, binomial)
    # Voters at 1 shift the pmf; voters at 0 leave zeros above it.
    padded = np.zeros(setting.voters + 1)
    padded[ones : ones + pmf.size] = pmf
    return padded


def proving_corners(
    setting: Voters, gamma: Vector, ask: Callable[[Problem], None]
) -> tuple[list[verify.Name], Vector]:
    """Return rows whose dual multipliers bound the value of gamma, and an optimum over them.

    The program is solved over the rows that are tight at gamma; rows that its optimum violates are
    added until there are none. The rows tight at the last optimum suffice for the dual bound.

    Returns:
        ("corner", ones, ((corner, voters), ...)), as `dpopt.verify` names them, the tightest
        first; and the optimum's upper half.
    """
    oracle = CornerOracle(setting)
    multisets = dict.fromkeys(oracle.tight(gamma))
    best, slack, price = gamma, np.empty(0), np.empty(0)
    for _ in range(_MOST_PRICED):
        problem = Problem("the rows of a proof")
        problem.add_variables("gamma", setting.middle, lower=setting.least, upper=1.0)
        ask(problem)
        rows = corner_rows(setting, list(multisets))
        problem.add_rows("corners", {"gamma": rows.matrix}, upper=rows.upper)
        solution = solve(problem)
        best, price = solution["gamma"], np.abs(solution.duals["corners"])
        slack = rows.upper - rows.matrix @ best
        broken = [counts for counts in oracle.broken(best)[0] if counts not in multisets]
        if not broken:
            break
        multisets |= dict.fromkeys(broken)
    listed = list(multisets)
    # Thousands of rows can be tight, but few have a multiplier: those come first.
    order = [index for index in np.lexsort((slack, -price)).tolist() if slack[index] <= _NEAR]
    return [row_of(listed[index]) for index in order[: 2 * setting.middle]], best


def row_of(counts: Counts) -> tuple[str, int, Counts]:
    """Return the name of a multiset's row in `dpopt.verify`: ("corner", ones, other corners)."""
    placed = tuple((name, n) for name, n in counts if name not in ("00", "11"))
    return "corner", dict(counts).get("11", 0), placed


class CornerOracle:
    """Separation oracle for the privacy rows: the most violated multisets of corners at a gamma.

    For gamma's upper half it evaluates f = E h(L) - e^(m epsilon) E' h(L) at every multiset of
    corners (p, p') that the reduction theorem leaves. L counts the ones among K voters who say 1
    with p, under E' with p'. There are about K^2 or K^4 multisets, but those that differ in one
    voter share their work: with T[s, o] = E h(o + Bin(s, b)), one voter more who says 1 with p
    gives p T[s, o + 1] + (1 - p) T[s, o]. As p' is p of the other corner of a pair, E' h is the
    same table with the corners exchanged. For Delta > 0 see `dpopt.majority.shifted`.

    Args:
        setting: the voters and the target.

    Example:
        >>> from dpopt import majority
        >>> import dpopt
        >>> voters = dpopt.Majority(voters=3, epsilon=0.5, allowance=1)
        >>> oracle = majority.CornerOracle(voters)
        >>> round(oracle.price([1.0, 1.0])[0], 4)  # the majority itself is not private
        0.47
    """

    def __init__(self, setting: Voters) -> None:
        require_voters(setting)
        self.setting, self.checked = setting, reduced_size(setting)
        # Largest number of rows returned at once.
        self.cuts = 2 * setting.middle + 8
        inner, voter_delta = np.array(setting.corner("bc")), setting.voter_delta
        self._values = CornerValues(
            setting.voters, inner, 1.0 - inner, (voter_delta, 1.0 - voter_delta), setting.ratio
        )

    def spread(self) -> Rows:
        """Return initial rows, spread over the reduced set for Delta = 0.

        The row of s voters at bc is a bump over the number of ones, sqrt(s p (1 - p)) wide, that
        moves with the voters at 11: closer rows are nearly the same. At most optima the rows with
        all other voters at 00 have the largest multipliers.
        """
        k, p = self.setting.voters, self.setting.corner("bc")[0]
        entries = [(0, s, 0) for s in range(k, 0, -_ALONE)]
        s = _FIRST_VOTERS
        while s < k:
            count = 1 + max(1, ceil((k - s) / (_APART * sqrt(s * p * (1.0 - p)))))
            # `count` numbers of voters at 11, evenly spaced over 0..K - s.
            ones = np.unique(np.rint(np.linspace(0, k - s, count)).astype(np.int64))
            entries += [(corner, s, o) for o in ones.tolist() for corner in (0, 1)]
            s *= 2
        multisets = [self._values.named((0, 0, *entry), 0, 0) for entry in dict.fromkeys(entries)]
        return corner_rows(self.setting, multisets)

    def __call__(self, gamma: Vector) -> Separation:
        """Separate gamma's upper half, shape ((K + 1) / 2,), from the set of private ones."""
        multisets, worst = self.broken(gamma)
        return Separation(corner_rows(self.setting, multisets), worst, self.checked)

    def broken(self, gamma: Vector) -> tuple[list[Counts], float]:
        """Return the multisets that gamma's upper half violates most, and the worst violation."""
        values, table = self._values.best(self._scaled(gamma), 1.0)
        worst = max(float(values.max()) - 1.0, 0.0)
        peaks = _peaks(values - 1.0)
        order = np.arange(len(peaks))
        if self.setting.voter_delta:
            # Voters at Delta or 1 - Delta are close to 0 or 1, so multisets that agree in (corner,
            # s, o) have nearly the same row: the worst of each comes first.
            first = np.unique(peaks[:, 2:], axis=0, return_index=True)[1]
            duplicates = np.setdiff1d(order[: 2 * self.cuts], first)
            order = np.concatenate([np.sort(first), duplicates])
        multisets: dict[Counts, None] = {}
        for index in order.tolist():
            if len(multisets) == self.cuts:
                break
            multisets[self._values.multiset(table, tuple(peaks[index].tolist()))] = None
        return list(multisets), worst

    def price(self, gamma: npt.ArrayLike) -> tuple[float, Counts]:
        """Return the largest violation f / budget - 1 over the reduced set, and its multiset."""
        reached = self._values.reaching(self._scaled(gamma), np.inf, -np.inf, 0.0, 0)
        return reached.top - 1.0, reached.worst

    def tight(self, gamma: Vector) -> list[Counts]:
        """Return the multisets whose rows are tight at gamma's upper half, the tightest first.

        Rows where h is constant over the numbers of ones that can occur are implied by
        |gamma| <= 1, and are omitted.
        """
        h = self._scaled(gamma)
        error = 1e-13 * (1.0 + self.setting.ratio) / self.setting.budget
        priced = self._values.reaching(h, 1.0 - _TIGHT, np.inf, error, _MOST_LISTED).multisets
        # changes[l]: how often h changes before l; where equal, h is constant between.
        changes = np.concatenate([[0], np.cumsum(np.diff(h) != 0.0)])
        tight = list[Counts]()
        for _, counts in sorted(priced, key=lambda pair: pair[0], reverse=True):
            if len(tight) == _MOST_TIGHT * self.setting.middle:
                break
            ones = dict(counts).get("11", 0)
            most = self.setting.voters - dict(counts).get("00", 0)
            if changes[ones] != changes[most]:
                tight.append(counts)
        return tight

    def _scaled(self, gamma: npt.ArrayLike) -> Vector:
        """Return h / budget on 0..K, so that rows have the right-hand side 1."""
        return signed(full_gamma(gamma)) / self.setting.budget


def _peaks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the indices of positive local maxima, the worst first, shape (peaks, 5).

    Values are over (pair, pair, corner, s, o). Without Delta the largest value over o must be a
    local maximum over s; with Delta a maximum over s or o counts.
    """
    if len(values) == 1:
        o = values.argmax(axis=-1, keepdims=True)
        is_peak = np.zeros(values.shape, dtype=bool)
        np.put_along_axis(is_peak, o, maxima(np.take_along_axis(values, o, axis=-1), -2), axis=-1)
    else:
        is_peak = maxima(values, -2) | maxima(values, -1)
    peaks = np.argwhere(is_peak & (values > 0.0))
    return peaks[np.argsort(-values[tuple(peaks.T)], kind="stable")]
