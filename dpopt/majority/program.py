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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import verify
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
from dpopt.prob import binomial_pmf

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
