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

*Delta > 0.* Let s voters be at bc or cb, with p and p', d at D0 or 0D, and e at 1m or m1; o counts
the voters near 1, those e and the ones at 11. Let X ~ Bin(d, Delta) and Y ~ Bin(e, Delta) be
independent of each other and of the s voters, T(o) = E h(o + Bin(s, p)), T'(o) the same with p',
and R = e^(m epsilon). Then the left-hand side of the row is

    D0, 1m:  E T(o + X) - R E T'(o - Y)         0D, m1:  E T(o - Y) - R E T'(o + X)
    D0, m1:  E T(o + X - Y) - R T'(o)           0D, 1m:  T(o) - R E T'(o + X - Y)

for d <= K - s - o and e <= o. In the first two, d and e are in different terms and are optimised
separately: O(K) steps for each of O(K^2) pairs (s, o).

Lemma. With w = max T - min T over 0..K - s,

    |E T(o + X - Y) - (E T(o + X) + E T(o - Y) - T(o))| <= 2 w Pr[X > 0] Pr[Y > 0].

Proof. By independence the left side is |E M(X, Y)| with
M(x, y) = (T(o + x - y) - T(o - y)) - (T(o + x) - T(o)). M is 0 for x = 0 and for y = 0, and each of
its two differences is at most w in absolute value. QED.

So up to this bound, of order d e Delta^2 for small Delta, the other two are sums of a function of d
and one of e. Only where the bound does not show that the row holds are all d and e priced, for each
(s, o) separately.

The judge. A noise function, given as integers, is private if `dpopt.verify` accepts every multiset
of the reduction theorem: it checks them in floats with a bound on their rounding error, then in
exact arithmetic where the floats are inconclusive. For Delta > 0 there are O(K^4) multisets, so
`CornerValues` first screens all of them at once, and `dpopt.verify` decides those that the screen
leaves open.

Rounding error of the screen. Let u = 2^-53. p and 1 - p are each rounded once from their exact
values. One step T = p T1 + (1 - p) T0 with |T| <= 1 then adds at most 3 u (1 + 2 u) to the error;
h itself is rounded once. After K steps the error of T is below (3 K + 2) u (1 + 4 K u), and that of
f = T - R T' below (1 + R) times as much plus 3 u, where R = e^(m epsilon) is itself rounded once.
(4 K + 16) u (1 + R) covers this for K below 10^6. For voters near 0 and 1 the expectations are sums
over at most w values of a binomial variable. Its probabilities come from the same steps, with a
relative error of at most 3 u per voter; a sum of w products adds w u, and there are two such sums,
so 2 w u (1 + R) more covers them.

The privacy cost. Let P and P' be the probabilities of output 1 at a multiset of corners and at the
opposite one. The least e^epsilon is the largest (P - delta) / P' over the reduced set of multisets:
the reduction theorem holds for every ratio. Output 0 adds nothing: replacing every p by 1 - p maps
corners to corners and Pr[0] to Pr[1].
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, sqrt
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows, solve
from dpopt.majority.objectives import maxima
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
from dpopt.privacy.cost import DominatingPair, Least, Point, least_of_ratio
from dpopt.privacy.guarantee import Certificate, in_short
from dpopt.prob import binomial_pmf
from dpopt.table import Table

# Slack, as a share of the budget, within which a row is tight; tight rows kept for each level of
# gamma, and multisets enumerated to find them.
_TIGHT, _MOST_TIGHT, _MOST_LISTED = 1e-9, 8, 200_000
# Rounds of pricing for the rows of a proof, and the slack at the optimum up to which they are kept.
_MOST_PRICED, _NEAR = 12, 1e-8
# First rows: the least number of voters at bc or cb, which is then doubled; the distance of rows in
# standard deviations of their ones; and the step in voters at bc where all others are at 00.
_FIRST_VOTERS, _APART, _ALONE = 4, 3.0, 3

Values = npt.NDArray[np.float64]
Priced = tuple[float, Counts]
"""A left-hand side, and its multiset."""


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
    same table with the corners exchanged. For Delta > 0 see the module.

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
        top, worst, _ = self._values.reaching(self._scaled(gamma), np.inf, -np.inf, 0.0, 0)
        return top - 1.0, worst

    def tight(self, gamma: Vector) -> list[Counts]:
        """Return the multisets whose rows are tight at gamma's upper half, the tightest first.

        Rows where h is constant over the numbers of ones that can occur are implied by
        |gamma| <= 1, and are omitted.
        """
        h = self._scaled(gamma)
        error = 1e-13 * (1.0 + self.setting.ratio) / self.setting.budget
        *_, priced = self._values.reaching(h, 1.0 - _TIGHT, np.inf, error, _MOST_LISTED)
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


class CornerValues:
    """The left-hand sides of all multisets of corners that the reduction theorem leaves.

    Args:
        voters: K.
        inner: p of a voter at bc, and at cb.
        complement: 1 - p, likewise.
        deltas: Delta, and 1 - Delta.
        exp_epsilon: R.

    Attributes:
        width: largest number of binomial probabilities that are summed.
    """

    def __init__(
        self,
        voters: int,
        inner: Vector,
        complement: Vector,
        deltas: tuple[float, float],
        exp_epsilon: float,
    ) -> None:
        self._voters, self._inner, self._complement = voters, inner, complement
        self._delta, self._stay = deltas
        self._exp_epsilon = exp_epsilon
        counts = np.arange(voters + 1)
        self._outside = counts[:, None] + counts > voters
        self._pmfs, self.width = np.ones((1, 1)), 1
        if not self._delta:
            return
        # pmfs[n, x] = Pr[Bin(n, Delta) = x].
        pmfs = np.zeros((voters + 1, voters + 1))
        pmfs[0, 0] = 1.0
        for n in range(voters):
            pmfs[n + 1] = self._stay * pmfs[n]
            pmfs[n + 1, 1:] += self._delta * pmfs[n, :-1]
        # Binomial probabilities below this are dropped: their sum is far below the rounding of a
        # row.
        self.width = int(np.flatnonzero((pmfs > 1e-22).any(axis=0))[-1]) + 1
        self._pmfs = pmfs[:, : self.width]
        remaining = voters - counts[:, None] - counts
        self._mirror = np.maximum(remaining, 0)[None]
        # If no voter can be near 0 (or near 1), D0, m1 and 0D, 1m are rows of the other two pairs.
        self._single = (remaining <= 0) | (counts == 0)
        some = -np.expm1(counts * np.log1p(-self._delta))
        # Twice Pr[X > 0] Pr[Y > 0] for the most voters that can stand near 0 and near 1.
        self._second = 2.0 * some[self._mirror[0]] * some

    def best(self, h: Vector, least: float) -> tuple[Values, Values]:
        """Return the largest left-hand side over d and e of every entry, and T.

        They are over (D0 or 0D, 1m or m1, bc or cb, s, o), -inf for s + o > K; without Delta no
        voter is near 0 or 1: the first two axes have length 1. T is over (bc or cb, s, o). For the
        pairs D0, m1 and 0D, 1m the value is -inf where no d and e exceed ``least`` or the values of
        the other two pairs at the same (corner, s, o).
        """
        values, bounds, table = self._parts(h)
        others = np.maximum(values[0, 0], values[-1, -1])
        self._price_both(values, table, bounds >= np.maximum(others, least))
        return values, table

    def _price_both(self, values: Values, table: Values, where: npt.NDArray[np.bool_]) -> None:
        """Price D0, m1 and 0D, 1m where their bounds do not show that they are small."""
        for pair, *at in np.argwhere(where).tolist():
            values[pair, 1 - pair, *at] = self._rows(table, pair, 1 - pair, *at).max()

    def reaching(
        self, h: Vector, low: float, high: float, error: float, most: int
    ) -> tuple[float, Counts, list[Priced]]:
        """Return the largest left-hand side, its multiset, and all in [low, high], each once.

        h is antisymmetric, on 0..K, and ``error`` bounds the rounding of a left-hand side. If the
        largest is above ``high``, no others are enumerated; nor are many more than ``most``.
        """
        values, bounds, table = self._parts(h)
        top = float(values.max())
        least = top if top > high else min(low, top)
        # A bound adds up three tables, each within the error, and has its own rounding.
        self._price_both(values, table, bounds >= least - 8.0 * error)
        at = tuple(map(int, np.unravel_index(int(values.argmax()), values.shape)))
        top, worst = float(values[at]), self.multiset(table, at)
        multisets = list[Priced]()
        # s = 0: bc and cb are the same entry, which is listed under bc.
        values[..., 1, 0, :] = -np.inf
        for at in [] if top > high else np.argwhere(values >= low).tolist():
            rows = self._rows(table, *at)
            if at[0] != at[1]:
                # With d = 0 or e = 0 it is a row of the other pairs.
                rows[0] = rows[:, 0] = -np.inf
            elif at[0]:
                rows[0, 0] = -np.inf
            for d, e in np.argwhere((rows >= low) & (rows <= high)).tolist():
                multisets.append((float(rows[d, e]), self.named(tuple(at), d, e)))
            if len(multisets) > most:
                break
        return top, worst, multisets

    def multiset(self, table: Values, at: tuple[int, ...]) -> Counts:
        """Return the multiset of the best d and e at an entry (pair, pair, corner, s, o)."""
        rows = self._rows(table, *at)
        return self.named(at, *divmod(int(rows.argmax()), rows.shape[1]))

    def named(self, at: tuple[int, ...], d: int, e: int) -> Counts:
        """Return the multiset of an entry with d voters near 0 and e near 1."""
        near0, near1, corner, s, o = at
        placed = (("bc", "cb")[corner], s), (("D0", "0D")[near0], d), (("1m", "m1")[near1], e)
        certain = ("11", o - e), ("00", self._voters - s - d - o)
        return tuple((name, count) for name, count in (*placed, *certain) if count)

    def _parts(self, h: Vector) -> tuple[Values, Values, Values]:
        """Return `best` of D0, 1m and 0D, m1, bounds on that of D0, m1 and 0D, 1m, and T.

        Bounds are over (D0, m1 or 0D, 1m; bc or cb; s; o), up to rounding. Without Delta there are
        no voters near 0 or 1, and no bounds.
        """
        table = last_axis_table(h, self._inner, self._complement)
        if not self._delta:
            values = table - self._exp_epsilon * table[::-1]
            values[:, self._outside] = -np.inf
            return values[None, None], np.empty((0, *table.shape)), table
        table[:, self._outside] = np.nan
        # up and down: the extremes of E T(o + X) over d.
        up, down, step = table.copy(), table.copy(), table
        for n in range(self._voters, 0, -1):
            # One voter more, for s and o below n.
            step = self._delta * step[:, :-1, 1:] + self._stay * step[:, :-1, :-1]
            # Entries with s + o > K are nan, which fmax and fmin ignore.
            np.fmax(up[:, :n, :n], step, out=up[:, :n, :n])
            np.fmin(down[:, :n, :n], step, out=down[:, :n, :n])
        # h is antisymmetric: T of the other corner at K - s - o is -T at o, which exchanges X and
        # Y. raised and lowered: the extremes of E T(o - Y) over e.
        lowered, raised = -self._mirrored(up[::-1]), -self._mirrored(down[::-1])
        values = np.full((2, 2, *table.shape), -np.inf)
        values[0, 0] = up - self._exp_epsilon * lowered[::-1]
        values[1, 1] = raised - self._exp_epsilon * down[::-1]
        values[..., self._outside] = -np.inf
        width = np.nanmax(table, axis=-1) - np.nanmin(table, axis=-1)
        error = width[..., None] * self._second
        bounds = np.stack(
            [
                up + raised - table + error - self._exp_epsilon * table[::-1],
                table - self._exp_epsilon * (down + lowered - table - error)[::-1],
            ]
        )
        bounds[..., self._single] = -np.inf
        return values, bounds, table

    def _rows(self, table: Values, near0: int, near1: int, corner: int, s: int, o: int) -> Values:
        """Return the left-hand sides of D0 or 0D, and 1m or m1, over (d, e)."""
        d, e = (self._voters - s - o, o) if self._delta else (0, 0)
        sides = []
        for side in (0, 1):
            # X is in the term of p at D0, of p' at 0D; Y in that of p' at 1m, of p at m1.
            x = self._pmfs[: d + 1, : d + 1] if near0 == side else np.ones((d + 1, 1))
            y = self._pmfs[: e + 1, : e + 1] if near1 != side else np.ones((e + 1, 1))
            ones = o + np.arange(x.shape[1])[:, None] - np.arange(y.shape[1])
            # Over (d, e): E T(o + X - Y), from T over (values of X, values of Y).
            sides.append(x @ table[corner ^ side, s, ones] @ y.T)
        return sides[0] - self._exp_epsilon * sides[1]

    def _mirrored(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values over (corner, s, o) at (corner, s, K - s - o)."""
        return np.take_along_axis(values, np.broadcast_to(self._mirror, values.shape), axis=2)


def last_axis_table(h: Vector, p: Vector, q: Vector) -> Values:
    """Return E h(o + Bin(s, p)) over (bc or cb, s, o), shape (2, K + 1, K + 1); 0 for s + o > K."""
    p, q, last = p[:, None], q[:, None], h.size
    table = np.zeros((2, last, last))
    table[:, 0] = h
    for s in range(1, last):
        # s voters reach from o to o + s <= K: one o fewer in each step.
        before = table[:, s - 1, : last + 1 - s]
        table[:, s, : last - s] = p * before[:, 1:] + q * before[:, :-1]
    return table


# Probabilities of 1 by their letter in a corner's name.
_WORDS = {"0": "0", "1": "1", "D": "Delta", "m": "1 - Delta", "b": "b", "c": "c"}
# Work, in voters summed over the multisets that floats leave open: takes a minute, and a moment.
MOST_OPEN, FEW_OPEN = 400_000, 300
# Multisets enumerated in Python's integers, which takes about a minute; the bits of these integers
# beyond those of the least positive probability; and the most of them.
_MOST_POINTS, _SPARE_BITS, _MOST_BITS = 4_000_000, 320, 1 << 15


def certify(setting: Voters, table: Table, most: int = MOST_OPEN) -> Certificate:
    """Prove (m epsilon, delta)-DP of the majority of private voters.

    Args:
        setting: the voters and the target.
        table: Pr[the majority's answer] for each number of votes.
        most: limit on the voters summed over the multisets that floats leave open; beyond it gamma
            is refused, with an excess a little above the rounding error of floats.

    Raises:
        NotPrivateError: naming the voters on both sides, if a constraint fails.
        ParameterError: if the table does not belong to this setting.
    """
    if not isinstance(table, Table) or table.inputs != setting.domain:
        raise ParameterError("table is not one of the votes of these voters.")
    statement = json.dumps(["majority", setting.to_dict()], sort_keys=True)
    return table.proof(statement, partial(_certified, setting, table, most))


def _certified(setting: Voters, table: Table, most: int) -> Certificate:
    ones, zeros = table.weights[::2], table.weights[1::2]
    if not setting.contrary and any(map(lt, ones, zeros)):
        raise ParameterError(
            "table has votes whose majority is the less likely answer; contrary must be True."
        )
    voters, chances = verify.Voters(setting.to_dict(), None), [*zeros[::-1], *ones]
    screened = partial(_screened, setting, voters) if setting.voter_delta else voters.screened
    try:
        decided, close = screened(chances, table.total)
        # Exact arithmetic costs about one step per voter off 0 and 1, and 16 per multiset.
        sizes = [len(ones_at) * (sum(n for _, n in placed) + 16) for _, placed, ones_at in close]
        if sum(sizes) > most:
            slack, placed, ones_at = close[0]
            # Decide one multiset: if it fails by more than rounding, the error states by how much.
            voters.settled(chances, table.total, decided, [(slack, placed, ones_at[:1])])
            missed, at = -Fraction(slack) * Fraction(9, 8), ("corner", ones_at[0], placed)
            raise _refusal(setting, at, missed, "no more than floats leave open at many others")
        verdict = voters.settled(chances, table.total, decided, close)
    except verify.Refused as refusal:
        raise _refusal(setting, refusal.at, Fraction(refusal.missed)) from None
    except verify.Malformed as error:
        raise ParameterError(f"the votes of {setting.voters} voters: {error}.") from None
    one, other = sides_of(setting, verdict.at)
    return Certificate(
        claim=table.inputs.claim(),
        guarantee=setting.guarantee,
        constraints=verdict.rows,
        slack=Fraction(verdict.slack),
        tightest=f"{one}; neighbour: {other}; output 1",
    )


def _screened(
    setting: Voters, voters: verify.Voters, chances: list[int], total: int
) -> tuple[verify.Verdict, list[verify.Close]]:
    """Return what `dpopt.verify.Voters.screened` returns, pricing all multisets at once."""
    values, error = screen(voters)
    budget = Fraction(voters.growth[0]) - 1 + 2 * voters.delta
    # h(l) = 2 Pr[output 1 | L = l] - 1, over l = 0..K.
    h = np.array([(2 * chance - total) / total for chance in chances])
    limits = float(budget - 3 * error), math.nextafter(float(budget + error), math.inf)
    top, worst, multisets = values.reaching(h, *limits, float(error), MOST_OPEN // 16)
    # f is in units of h, so it is twice a difference of probabilities.
    slack, at = (budget - Fraction(top) - error) / 2, row_of(worst)
    if slack >= 0:
        return verify.Verdict(reduced_size(setting), slack, at), []
    if top > limits[1]:
        raise _refusal(setting, at, -slack)
    close = dict[verify.Placed, list[int]]()
    for _, counts in sorted(multisets, key=lambda pair: -pair[0]):
        _, ones, placed = row_of(counts)
        close.setdefault(placed, []).append(ones)
    decided = verify.Verdict(reduced_size(setting), error, at)
    return decided, [(float(slack), placed, ones_at) for placed, ones_at in close.items()]


def screen(voters: verify.Voters) -> tuple[CornerValues, Fraction]:
    """Return the oracle for all left-hand sides, and their rounding error (see the module)."""
    exp_epsilon, voter_delta = voters.growth[0], voters.shift
    # At bc the voter says 1 with b, at cb with c: lower ends of both.
    lower_ends = [voters.chance(corner)[0] for corner in "bc"]
    inner, complement = np.array([[float(p), float(1 - p)] for p in lower_ends]).T
    deltas = float(voter_delta), float(1 - voter_delta)
    values = CornerValues(voters.count, inner, complement, deltas, float(exp_epsilon))
    steps = 4 * voters.count + 16 + 2 * values.width
    return values, Fraction(steps, 1 << 53) * (1 + Fraction(exp_epsilon))


def sides_of(setting: Voters, at: verify.Name) -> tuple[str, str]:
    """Describe in words where the voters sit under each neighbour, at a row of `dpopt.verify`."""
    _, ones, placed = at
    zeros = setting.voters - ones - sum(n for _, n in placed)
    one, other = (
        ", ".join(
            f"{count} voters at {name}"
            for count, name in [(n, _WORDS[kind[side]]) for kind, n in placed]
            + [(ones, "1"), (zeros, "0")]
            if count
        )
        for side in (0, 1)
    )
    return one, other


def _refusal(setting: Voters, at: verify.Name, missed: Fraction, why: str = "") -> NotPrivateError:
    """Return the error for a violated constraint, or for one that ``why`` leaves unproved."""
    sides, guarantee = sides_of(setting, at), setting.guarantee
    where, by = f"{sides[0]}; neighbour: {sides[1]}", roughly(missed)
    promise = in_short(guarantee)
    # Rounding moves each gamma(l) by at most 2^-54 + 2^-62, and Pr[output 1] by half of it, under
    # both neighbours: a smaller excess may be due to it.
    if missed <= (1 + Fraction(setting.ratio)) / (1 << 54):
        why = why or "no more than the rounding of gamma itself explains"
    message = f"gamma breaks {promise} at output 1 by {by}: {where}."
    if why:
        message = (
            f"gamma is not proved {promise}: at output 1 it misses by {by}, {why}: {where}. The "
            "repair gives one that is private."
        )
    excess = float(missed) or math.ulp(0.0)
    return NotPrivateError(message, inputs=sides, output="1", excess=excess)


class Chances:
    """Pr[1] under both neighbours at all multisets of corners, as integers over 2^bits.

    Each is off by at most ``error`` units: a step adds one unit for the rounding of a voter's p and
    one for its own rounding. No positive probability is below 2^240 units.
    """

    def __init__(self, setting: Voters, table: Table) -> None:
        if reduced_size(setting) > _MOST_POINTS:
            raise ParameterError(
                f"voters is {setting.voters}; the privacy loss is found over at most "
                f"{_MOST_POINTS:,} choices of corners, and these are {reduced_size(setting):,}."
            )
        delta = setting.voter_delta
        least = min(math.log1p(-delta) - setting.epsilon - 1, math.log(delta) if delta else 0.0)
        bits = _SPARE_BITS + math.ceil(-setting.voters * least / math.log(2))
        if bits > _MOST_BITS:
            raise ParameterError(
                f"voters is {setting.voters} and epsilon {setting.epsilon:g}; the privacy loss is "
                f"not found for probabilities of output 1 that are below 2^-{_MOST_BITS}."
            )
        self.bits, self.unit, self.error = bits, 1 << bits, 2 * setting.voters + 1
        self.voters, self.total = verify.Voters(setting.one_query.to_dict(), None), table.total
        self.voters.fine(bits + verify.BITS)
        self.ones = [*table.weights[1::2][::-1], *table.weights[::2]]

    def __iter__(self) -> Iterator[tuple[int, verify.Placed, int, int]]:
        """Yield the voters at 11, the other voters' corners, and Pr[1] under both neighbours."""
        p_of = {kind[0]: self.voters.chance(kind[0])[0] for pair in verify.AXES for kind in pair}
        chances = {name: int(p * self.unit) for name, p in p_of.items()}

        def step(values: list[int], name: str) -> list[int]:
            """Add a voter who says 1 with p: T'(o) = p T(o + 1) + (1 - p) T(o), rounded down."""
            p, q = chances[name], self.unit - chances[name]
            return [(p * b + q * a) >> self.bits for a, b in pairwise(values)]

        start = [one * self.unit // self.total for one in self.ones]
        for placed, up, down in self.voters.walk(start, step):
            for ones, (p_one, p_other) in enumerate(zip(up, down, strict=True)):
                yield ones, placed, p_one, p_other

    def exceeds(self, ones: int, placed: verify.Placed, delta: Fraction) -> bool:
        """Whether P > delta at a multiset where P' is 0, in exact arithmetic."""
        checker = copy(self.voters)
        checker.delta = delta
        low, high = checker.slack(self.ones, self.total, ones, placed)
        return high < 0 or (low < 0 and checker.broken(self.ones, self.total, ones, placed))


def least_of_gamma(setting: Voters, table: Table, delta: float | None) -> Least:
    """Return bounds on the least epsilon of a gamma for a given delta.

    Its e^epsilon is the largest (P - delta) / P', or 1 if that is below: privacy does not constrain
    ratios below 1. It is infinite where P > delta and P' is 0.
    """
    exact = Fraction(_checks.real("delta", delta, 0.0, 1.0, open_upper=True))
    chances, largest, at = Chances(setting, table), (1, 1), (0, ())
    error, delta_units = chances.error, int(exact * chances.unit)
    # Where the output does not depend on the votes, every ratio is 1.
    for ones, placed, p_one, p_other in chances if len(set(chances.ones)) > 1 else ():
        numerator, denominator = p_one + error - delta_units, p_other - error
        if numerator * largest[1] <= denominator * largest[0] or numerator <= 0:
            continue
        if denominator > 0:
            largest, at = (numerator, denominator), (ones, placed)
        elif chances.exceeds(ones, placed, exact):
            sides = sides_of(setting, ("corner", ones, placed))
            return least_of_ratio(None, sides, (1,), float(exact))
    upper = Fraction(*largest)
    lower = max(Fraction(largest[0] - 2 * error - 1, largest[1] + 2 * error), Fraction(1))
    sides = sides_of(setting, ("corner", *at))
    return least_of_ratio(upper, sides, (1,), float(exact), lower=min(lower, upper))


def dominating(setting: Voters, table: Table) -> DominatingPair:
    """Return the tight dominating pair of a gamma over all neighbours, for one query."""
    chances = Chances(setting, table)
    error, unit = chances.error, chances.unit

    def points() -> Iterator[Point]:
        for _, _, p_one, p_other in chances:
            # So small a chance is 0.
            above = 0 if p_one <= error else min(p_one + error, unit)
            yield max(p_other - error, 0), above

    return DominatingPair.of_points(points(), unit)
