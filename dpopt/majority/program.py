"""The program of DaRRM; its privacy rows as a family: all corner multisets priced, few written.

With h the signed gamma and G(p) = E h(L), L ~ PoissonBinomial(p), DaRRM is (m epsilon, delta)-DP
iff f(p, p') = G(p) - e^(m epsilon) G(p') <= e^(m epsilon) - 1 + 2 delta for every choice of a
corner (p_i, p'_i) for each voter (lemmas 3.4 and 5.1): C(K+7, 7) multisets of the corners, or
C(K+3, 3) if Delta = 0.

Theorem (reduction). It is enough to check the multisets in which bc and cb do not both occur,
nor D0 and 0D, nor 1m and m1.

The proof is on the page docs/theorems/corners.md: exchanging the p' of two voters leaves f as it
is, and makes two voters of the segment from 00 to 11, along which f is affine. It asks nothing of
h, so that gamma may be negative, too.

What remains are O(K^2) multisets for Delta = 0, and O(K^4) in eight families otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from dpopt import _checks, verify
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows, solve
from dpopt.majority.objectives import WorstCase, maxima
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

# Relative violation above which rows that are easily found are added before all are priced.
_PLAIN = 1e-7
# Bounds that leave rows with Delta open are followed by prices at so many places, in units of K^2,
# before the rows found are added.
_MOST_PLACES = 0.1
# Slack, as a share of the budget, within which a row is tight; and rows for each level of gamma.
_TIGHT, _MOST_TIGHT, _MOST_LISTED = 1e-9, 8, 200_000
# Times that the rows of a proof are priced, and the slack at their optimum of those that may count.
_MOST_PRICED, _NEAR = 12, 1e-8
# Rows to begin with: voters at bc or cb, each time as many again, and the standard deviations of
# their ones between rows; and the step in voters at bc where all others are at 00.
_FIRST_VOTERS, _APART, _ALONE = 4, 3.0, 3


def gamma_problem(setting: Voters, weights: npt.ArrayLike) -> Problem:
    """Return the program over gamma's upper half: variable "gamma", family "corners".

    Maximise weights @ gamma subject to 0 <= gamma <= 1, or -1 <= gamma <= 1 where the setting is
    contrary, and (m epsilon, delta)-privacy of DaRRM over all corner multisets (equation 2 of the
    paper); add rows of your own before solving.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.
    """
    oracle = CornerOracle(setting)
    problem = Problem("DaRRM noise function")
    problem.add_variables("gamma", setting.middle, lower=setting.least, upper=1.0)
    problem.maximise({"gamma": weights})
    first = None if setting.voter_delta else oracle.spread
    problem.add_family("corners", oracle, over="gamma", first=first)
    # Without gamma the output is a fair coin; the rows are divided by their budget.
    problem.set_inside({"gamma": 0.0}, slack=1.0)
    return problem


def add_worst_case(problem: Problem, family: WorstCase) -> None:
    """Add the variable "worst", its family "worst case" and the objective to a program of gamma."""
    problem.add_variables("worst", 1, lower=0.0, upper=1.0)
    problem.maximise({"worst": -1.0})
    problem.add_family("worst case", family)
    # No error of a fair coin is above 1/2.
    problem.set_inside({"gamma": 0.0, "worst": 1.0}, slack=0.5)


def corner_rows(setting: Voters, multisets: list[Counts]) -> Rows:
    """Return the privacy rows of some multisets over gamma's upper half, divided by the budget.

    They are fold(alpha - e^(m epsilon) alpha') / budget @ gamma <= 1.

    Args:
        setting: the voters and the target.
        multisets: counts that sum to K each.
    """
    sides = [
        np.array([_distribution(setting, counts, side) for counts in multisets]) for side in (0, 1)
    ]
    matrix = (sides[0] - setting.ratio * sides[1]).reshape(-1, setting.voters + 1)
    return make_rows(fold(matrix) / setting.budget, upper=1.0)


def _distribution(setting: Voters, counts: Counts, side: int) -> Vector:
    """Return the distribution of L on one side: binomials of the corners, convolved."""
    pmf, ones = np.ones(1), 0
    for name, count in counts:
        p = setting.corner(name)[side]
        if p == 1.0:
            ones += count
        elif p > 0.0:
            binomial = binomial_pmf(count, p)
            pmf = binomial if pmf.size == 1 else np.convolve(pmf, binomial)
    full = np.zeros(setting.voters + 1)
    full[ones : ones + pmf.size] = pmf
    return full


def proving_corners(
    setting: Voters, gamma: Vector, ask: Callable[[Problem], None]
) -> tuple[list[verify.Name], Vector]:
    """Return rows whose multipliers prove how good gamma is, and an optimum over them.

    The program is solved over the rows that are tight at gamma, and over those that its optimum
    breaks, until it breaks none; those that are tight there are enough.

    Args:
        setting: the voters and the target.
        gamma: its upper half, shape ((K + 1) / 2,).
        ask: adds the objective, and what else it needs, to a program of "gamma".

    Returns:
        ("corner", ones, ((corner, voters), ...)), as `dpopt.verify` names them, the tightest
        first; and the optimum's upper half.
    """
    oracle = CornerOracle(setting)
    chosen = dict.fromkeys(oracle.tight(gamma))
    for _ in range(_MOST_PRICED):
        _, _, best = _optimum(setting, list(chosen), ask)
        broken = [counts for counts in oracle.broken(best)[0] if counts not in chosen]
        if not broken:
            break
        chosen |= dict.fromkeys(broken)
    slack, price, best = _optimum(setting, multisets := list(chosen), ask)
    # Thousands of rows can be tight, few of which bound anything: those with a multiplier first.
    order = [place for place in np.lexsort((slack, -price)).tolist() if slack[place] <= _NEAR]
    return [row_of(multisets[place]) for place in order[: 2 * setting.middle]], best


def row_of(counts: Counts) -> tuple[str, int, Counts]:
    """Return the row of a multiset as `dpopt.verify` names it."""
    placed = tuple((name, n) for name, n in counts if name not in ("00", "11"))
    return "corner", dict(counts).get("11", 0), placed


def _optimum(
    setting: Voters, multisets: list[Counts], ask: Callable[[Problem], None]
) -> tuple[Vector, Vector, Vector]:
    """Return the slacks of the rows and their multipliers' sizes at the optimum, and this gamma."""
    problem = Problem("the rows of a proof")
    problem.add_variables("gamma", setting.middle, lower=setting.least, upper=1.0)
    ask(problem)
    rows = corner_rows(setting, multisets)
    problem.add_rows("corners", {"gamma": rows.matrix}, upper=rows.upper)
    solution = solve(problem)
    best = solution["gamma"]
    return rows.upper - rows.matrix @ best, np.abs(solution.duals["corners"]), best


@dataclass(frozen=True)
class Priced:
    """A multiset and f / budget - 1 at it."""

    violation: float
    counts: Counts


class CornerOracle:
    """The most violated privacy rows at a gamma, out of all multisets of corners.

    Given gamma's upper half it looks at every way to put the K voters on the corners (p, p') that
    are left by the theorem above, and at f = E h(L) - e^(m epsilon) E' h(L), where L counts the
    ones among voters who say 1 with p, and with p' under E'. For one voter with e^epsilon = 3,
    m = 1 and gamma(1) = 1, h is -1 at L = 0 and 1 at L = 1; a voter at bc has p = 3/4, p' = 1/4, so
    that E h = 1/2, E' h = -1/2 and f = 1/2 + 3/2 = 2; at 11 it is 1 - 3 = -2, at 00 2. None is
    above the budget 3 - 1 = 2: one voter needs no noise.

    Of K voters there are K^2 or K^4 such ways, but those that differ in one voter share their work.
    With T[s, o] = E h(o + Bin(s, b)) the table for one voter more at p, whatever the others do, is
    T'[s, o] = p T[s, o + 1] + (1 - p) T[s, o]: one more one, or none. As p' is the other corner of
    the same pair, E' h is the same table with the corners turned around. For Delta > 0 see
    `dpopt.majority.shifted`.

    Args:
        setting: the voters and the target.
        cuts: most rows to return at once.

    Example:
        >>> from dpopt import majority
        >>> import dpopt
        >>> voters = dpopt.Majority(voters=3, epsilon=0.5, allowance=1)
        >>> oracle = majority.CornerOracle(voters)
        >>> round(oracle.price([1.0, 1.0]).violation, 4)  # the majority itself is not private
        0.47
    """

    def __init__(self, setting: Voters, cuts: int | None = None) -> None:
        require_voters(setting)
        self.setting, self.checked = setting, reduced_size(setting)
        most = 2 * setting.middle + 8
        self.cuts = most if cuts is None else _checks.integer("cuts", cuts, 1)
        inner, shift = np.array(setting.corner("bc")), setting.voter_delta
        self._values = CornerValues(
            setting.voters, inner, 1.0 - inner, (shift, 1.0 - shift), setting.ratio
        )

    def spread(self) -> Rows:
        """Return rows from all over the reduced set of voters without Delta.

        The row of s voters at bc is a bump over the number of ones, sqrt(s p (1 - p)) wide, and
        moves with the voters at 11: rows nearer than that to each other say nearly the same. With
        all others at 00, it is the one whose multiplier is largest at most optima.
        """
        k, p = self.setting.voters, self.setting.corner("bc")[0]
        places = [(0, s, 0) for s in range(k, 0, -_ALONE)]
        s = _FIRST_VOTERS
        while s < k:
            count = 1 + max(1, ceil((k - s) / (_APART * sqrt(s * p * (1.0 - p)))))
            ones = np.unique(np.rint(np.linspace(0, k - s, count)).astype(np.int64))
            places += [(corner, s, o) for o in ones.tolist() for corner in (0, 1)]
            s *= 2
        named = [self._values.named((0, 0, *place), 0, 0) for place in dict.fromkeys(places)]
        return corner_rows(self.setting, named)

    def __call__(self, gamma: Vector) -> Separation:
        """Separate gamma's upper half, shape ((K + 1) / 2,), from the set of private ones."""
        multisets, worst = self.broken(gamma)
        return Separation(corner_rows(self.setting, multisets), worst, self.checked)

    def broken(self, gamma: Vector) -> tuple[list[Counts], float]:
        """Return the multisets whose rows gamma's upper half breaks most, and by how much at most.

        Infinity where rows are broken so much that not all were priced.

        Args:
            gamma: shape ((K + 1) / 2,).
        """
        h = self._scaled(gamma)
        best = self._values.best(h, 1.0, _MOST_PLACES * self.setting.voters**2)
        if not best.complete and best.values.max() <= 1.0 + _PLAIN:
            best = self._values.best(h, 1.0, np.inf)
        worst = max(float(best.values.max()) - 1.0, 0.0) if best.complete else np.inf
        places = _peaks(best.values - 1.0)
        order = np.arange(len(places))
        if self.setting.voter_delta:
            # Voters at Delta or 1 - Delta are next to 0 or 1, so multisets with the same voters at
            # b or c and as many near 1 have nearly the same row: one cut speaks for all.
            first = np.unique(places[:, 2:], axis=0, return_index=True)[1]
            others = np.setdiff1d(order[: 2 * self.cuts], first)
            order = np.concatenate([np.sort(first), others])
        chosen: dict[Counts, None] = {}
        for place in order.tolist():
            if len(chosen) == self.cuts:
                break
            chosen[self._values.multiset(best.table, tuple(places[place].tolist()))] = None
        return list(chosen), worst

    def price(self, gamma: npt.ArrayLike) -> Priced:
        """Return the multiset of the reduced set where f is largest."""
        value, worst = self._values.largest(self._scaled(gamma))
        return Priced(value - 1.0, worst)

    def tight(self, gamma: Vector) -> list[Counts]:
        """Return the multisets whose rows are tight at gamma's upper half, the tightest first.

        Those where h is the same for every number of ones that can occur say no more than
        |gamma| <= 1, and are left out.
        """
        h = self._scaled(gamma)
        error = 1e-13 * (1.0 + self.setting.ratio) / self.setting.budget
        near = self._values.reaching(h, 1.0 - _TIGHT, np.inf, error, _MOST_LISTED).near
        changes = np.concatenate([[0], np.cumsum(np.diff(h) != 0.0)])
        tight = list[Counts]()
        for _, counts in sorted(near, key=lambda pair: pair[0], reverse=True):
            if len(tight) == _MOST_TIGHT * self.setting.middle:
                break
            ones = dict(counts).get("11", 0)
            most = self.setting.voters - dict(counts).get("00", 0)
            if changes[ones] != changes[most]:
                tight.append(counts)
        return tight

    def _scaled(self, gamma: npt.ArrayLike) -> Vector:
        """Return h over the budget."""
        return signed(full_gamma(gamma)) / self.setting.budget


def _peaks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return where positive values are maxima over s of the largest over o, the worst first.

    With Delta, also those over o: the voters near 1 are few.
    """
    if len(values) == 1:
        o = values.argmax(axis=-1, keepdims=True)
        peak = np.zeros(values.shape, dtype=bool)
        np.put_along_axis(peak, o, maxima(np.take_along_axis(values, o, axis=-1), -2), axis=-1)
    else:
        peak = maxima(values, -2) | maxima(values, -1)
    places = np.argwhere(peak & (values > 0.0))
    return places[np.argsort(-values[tuple(places.T)], kind="stable")]
