"""The program of DaRRM; its privacy rows as a family: all corner multisets priced, few written.

With h the signed gamma and G(p) = E h(L), L ~ PoissonBinomial(p), DaRRM is (m epsilon, delta)-DP
iff f(p, p') = G(p) - e^(m epsilon) G(p') <= e^(m epsilon) - 1 + 2 delta for every choice of a
corner (p_i, p'_i) for each voter (lemmas 3.4 and 5.1): C(K+7, 7) multisets of the corners, or
C(K+3, 3) if Delta = 0.

Theorem (reduction). It is enough to check the multisets in which bc and cb do not both occur,
nor D0 and 0D, nor 1m and m1.

The proof is on the page docs/theorems/corners.md: exchanging the p' of two voters leaves f as it
is, and makes two voters of the segment from 00 to 11, along which f is affine.

What remains are O(K^2) multisets for Delta = 0, and O(K^4) in eight families otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import advance, track
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows, solve
from dpopt.majority.objectives import WorstCase
from dpopt.majority.priors import Prior
from dpopt.majority.shifted import ShiftedRows
from dpopt.majority.voters import (
    Multiset,
    Voters,
    by_axis,
    fold,
    full_gamma,
    last_axis_table,
    partly_priced,
    reduced_size,
    require_priceable,
    require_voters,
    signed,
    walk,
    walk_size,
)
from dpopt.privacy import Problem
from dpopt.prob import binomial_pmf

Counts = tuple[tuple[str, int], ...]
"""How many voters sit at which corner, such as (("bc", 3), ("11", 8))."""

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

    Maximise weights @ gamma subject to 0 <= gamma <= 1 and (m epsilon, delta)-privacy of DaRRM
    over all corner multisets (equation 2 of the paper); add rows of your own before solving.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.

    Raises:
        ParameterError: if K is too large for every multiset to be priced.
    """
    return problem_over(CornerOracle(setting), weights)


def problem_over(oracle: CornerOracle, weights: npt.ArrayLike) -> Problem:
    """Return the program of `gamma_problem` whose privacy rows are those of an oracle."""
    problem = Problem("DaRRM noise function")
    problem.add_variables("gamma", oracle.setting.middle, lower=0.0, upper=1.0)
    problem.maximise({"gamma": weights})
    first = oracle.spread if len(oracle.setting.axes) == 1 else None
    problem.add_family("corners", oracle, over="gamma", first=first)
    # Without gamma the output is a fair coin; the rows are divided by their budget.
    problem.set_inside({"gamma": 0.0}, slack=1.0)
    return problem


def worst_case_problem(setting: Voters, prior: Prior) -> Problem:
    """Return the program that minimises the largest error over all p that a prior allows.

    Variables "gamma" and "worst", families "corners" and "worst case"; see `WorstCase`.

    Args:
        setting: the voters and the target.
        prior: where p may lie; for U[0, 1] anywhere, and the program then maximises min gamma.

    Raises:
        ParameterError: if K is too large for every multiset to be priced.
    """
    require_voters(setting)
    problem = gamma_problem(setting, np.zeros(setting.middle))
    add_worst_case(problem, WorstCase(setting.mechanisms, prior))
    return problem


def add_worst_case(problem: Problem, family: WorstCase) -> None:
    """Add the variable "worst", its family "worst case" and the objective to a program of gamma."""
    problem.add_variables("worst", 1, lower=0.0, upper=1.0)
    problem.minimise({"worst": 1.0})
    problem.add_family("worst case", family)
    # No error of a fair coin is above 1/2.
    problem.set_inside({"gamma": 0.0, "worst": 1.0}, slack=0.5)


def corner_rows(setting: Voters, multisets: list[Counts]) -> Rows:
    """Return the privacy rows of some multisets over gamma's upper half, divided by the budget.

    Args:
        setting: the voters and the target.
        multisets: counts that sum to K each.

    Returns:
        Rows fold(alpha - e^(m epsilon) alpha') / budget @ gamma <= 1.
    """
    require_voters(setting)
    if not isinstance(multisets, list | tuple) or not all(map(_is_multiset, multisets)):
        raise ParameterError(
            "multisets must be a list of multisets, each a tuple of pairs (corner, count)."
        )
    sides = [np.array([_law(setting, counts, side) for counts in multisets]) for side in (0, 1)]
    matrix = fold(sides[0] - setting.ratio * sides[1]) / setting.budget
    return make_rows(matrix, upper=1.0)


def _is_multiset(counts: object) -> bool:
    return isinstance(counts, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in counts
    )


def _law(setting: Voters, counts: Counts, side: int) -> Vector:
    """Return the law of L on one side: binomials of the corners, convolved."""
    law, ones = np.ones(1), 0
    for name, count in counts:
        p = setting.corner(name)[side]
        if p == 1.0:
            ones += count
        elif p > 0.0:
            binomial = binomial_pmf(count, p)
            law = binomial if law.size == 1 else np.convolve(law, binomial)
    full = np.zeros(setting.mechanisms + 1)
    full[ones : ones + law.size] = law
    return full


def proving_corners(
    setting: Voters, gamma: Vector, ask: Callable[[Problem], None]
) -> tuple[list[tuple[object, ...]], Vector]:
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

    Raises:
        SolverError: if the solver found no answer.
    """
    oracle = CornerOracle(setting, partial=True)
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
    return [oracle.row_of(multisets[place]) for place in order[: 2 * setting.middle]], best


def _optimum(
    setting: Voters, multisets: list[Counts], ask: Callable[[Problem], None]
) -> tuple[Vector, Vector, Vector]:
    """Return the slacks of the rows and their multipliers' sizes at the optimum, and this gamma."""
    problem = Problem("the rows of a proof")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    ask(problem)
    if not multisets:
        return np.empty(0), np.empty(0), solve(problem)["gamma"]
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

    The trick: of K voters there are K^2 or K^4 such ways, but those that differ in one voter share
    their work. With T[s, o] = E h(o + Bin(s, b)) the table for one voter more at p, whatever the
    others do, is T'[s, o] = p T[s, o + 1] + (1 - p) T[s, o]: one more one, or none. `walk` goes
    through the counts of voters on all axes but the last, with a dimension for the choice of corner
    on each axis; s, on the last axis, and o, voters at 11, are dimensions too. As p' is the other
    corner of the same axis, E' h is the same table with the choices turned around.

    Args:
        setting: the voters and the target.
        cuts: most rows to return at once.
        partial: price only as many voters at corners with Delta as 2e7 multisets allow, where
            the whole set is too large; what is not priced is not known to hold.

    Raises:
        ParameterError: if K is too large for the whole reduced set to be priced.
    """

    def __init__(self, setting: Voters, cuts: int | None = None, *, partial: bool = False) -> None:
        require_voters(setting)
        partly = partly_priced(setting) if _checks.flag("partial", partial) else None
        if partly is None:
            require_priceable(setting)
        self._most_shifted, self.checked = partly or (None, reduced_size(setting))
        self.setting = setting
        most = 2 * setting.middle + 8
        self.cuts = most if cuts is None else _checks.integer("cuts", cuts, 1)
        self._outer = setting.axes[:-1]
        self._total = None if partly else walk_size(self._outer, setting.mechanisms)
        # With Delta, and few enough that every multiset is priced.
        quick = partly is None and len(setting.axes) > 1
        self._quick = _shifted_rows(setting) if quick else None
        self._flipped = (slice(None, None, -1),) * len(setting.axes)
        self._shifted = sum(axis.shifted for axis in self._outer)
        steps = np.arange(setting.mechanisms + 1)
        self._sum = steps[:, None] + steps[None, :]

    def spread(self) -> Rows:
        """Return rows from all over the reduced set of voters without Delta.

        The row of s voters at bc is a bump over the number of ones, sqrt(s p (1 - p)) wide, and
        moves with the voters at 11: rows nearer than that to each other say nearly the same. With
        all others at 00, it is the one whose multiplier is largest at most optima.
        """
        k, (axis,) = self.setting.mechanisms, self.setting.axes
        p = axis.chances[0]
        places = [(0, s, 0) for s in range(k, 0, -_ALONE)]
        s = _FIRST_VOTERS
        while s < k:
            count = 1 + max(1, ceil((k - s) / (_APART * sqrt(s * p * (1.0 - p)))))
            ones = np.unique(np.rint(np.linspace(0, k - s, count)).astype(np.int64))
            places += [(family, s, o) for o in ones.tolist() for family in (0, 1)]
            s *= 2
        return corner_rows(self.setting, [self._counts(place) for place in dict.fromkeys(places)])

    def __call__(self, gamma: Vector) -> Separation:
        """Separate gamma's upper half, shape ((K + 1) / 2,), from the set of private ones."""
        multisets, worst = self.broken(gamma)
        if not multisets:
            empty = make_rows(np.empty((0, self.setting.middle)), upper=1.0)
            return Separation(empty, worst, self.checked)
        return Separation(corner_rows(self.setting, multisets), worst, self.checked)

    def broken(self, gamma: Vector) -> tuple[list[Counts], float]:
        """Return the multisets whose rows gamma's upper half breaks most, and by how much at most.

        Args:
            gamma: shape ((K + 1) / 2,).
        """
        h = signed(full_gamma(gamma))
        if self._quick is not None:
            return self._broken_quick(self._quick, h / self.setting.budget)
        worst, plain, peaks = 0.0, 0.0, []
        for counts, values in track(self._slices(h), "pricing corner multisets", self._total):
            shifted = any(counts[: self._shifted])
            if shifted and plain > _PLAIN:
                # Violated without any D or M voter: cut there before pricing the rest.
                worst = np.inf
                advance("pricing corner multisets", 1, 1)
                break
            best = values.max(axis=-1)
            top = float(best.max())
            worst = max(worst, top)
            plain = plain if shifted else worst
            if top > 0.0:
                peaks.append(_peaks(counts, values, best))
        return (self._chosen(np.concatenate(peaks)) if peaks else []), worst

    def _broken_quick(self, rows: ShiftedRows, h: Vector) -> tuple[list[Counts], float]:
        """Return what `broken` does, from h over the budget, all places priced at once."""
        best = rows.best(h, 1.0, _MOST_PLACES * self.setting.mechanisms**2)
        if not best.complete and best.values.max() <= 1.0 + _PLAIN:
            best = rows.best(h, 1.0, np.inf)
        worst = max(float(best.values.max()) - 1.0, 0.0) if best.complete else np.inf
        violation, places = _best_peaks(best.values - 1.0)
        # Of one kind: (corner, s, voters near 1).
        chosen: dict[Counts, None] = {}
        for place in self._ordered(violation, places[:, 2:]):
            if len(chosen) == self.cuts:
                break
            at = tuple(places[place].tolist())
            chosen[self._counts(_flat(rows.multiset(best.table, at)))] = None
        return list(chosen), worst

    def _chosen(self, peaks: npt.NDArray[np.float64]) -> list[Counts]:
        """Return the worst multisets, one of each kind first.

        Voters at Delta or 1 - Delta are next to 0 or 1, so multisets with the same voters at b or
        c and as many near 1 have nearly the same row: one cut speaks for all.
        """
        # Columns: the violation, counts on the outer axes, the choice on every axis, s, o.
        peaks = peaks[np.argsort(-peaks[:, 0], kind="stable")]
        places = peaks[:, 1:].astype(np.int64)
        outer, family = places[:, : len(self._outer)], places[:, len(self._outer) :]
        mirrored = [i for i, axis in enumerate(self._outer) if axis.names[0][0] == "1"]
        # What a kind shares: voters at b or c and their corners, and how many are near 1.
        kind = np.column_stack(
            [
                outer[:, self._shifted :],
                family[:, self._shifted : -1],
                outer[:, mirrored].sum(axis=1) + family[:, -1],
            ]
        )
        chosen: dict[Counts, None] = {}
        for place in self._ordered(peaks[:, 0], kind):
            if len(chosen) == self.cuts:
                break
            chosen[self._counts(places[place].tolist())] = None
        return list(chosen)

    def _ordered(self, violation: Vector, kind: npt.NDArray[np.int64]) -> list[int]:
        """Return the places of rows, given from the worst on, one of each kind first."""
        order = np.arange(violation.size)
        if self._shifted:
            first = np.unique(kind, axis=0, return_index=True)[1]
            others = np.setdiff1d(order[: 2 * self.cuts], first)
            order = np.concatenate([np.sort(first), others])
        return order.tolist()

    def _slices(self, h: Vector) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.float64]]]:
        """Yield f / budget - 1 over (family, s, o) for all outer counts; -inf where s + o > K'."""
        p = [np.array(axis.chances) for axis in self.setting.axes]
        base = last_axis_table(h / self.setting.budget, p[-1], 1.0 - p[-1])
        start = np.broadcast_to(base, (*(2,) * len(self._outer), *base.shape))
        ones, zeros = (
            [by_axis(place, start.ndim, values, float) for place, values in enumerate(side)]
            for side in (p[:-1], [1.0 - chances for chances in p[:-1]])
        )

        def add(place: int, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            # One voter more says 1, and o is one more, or 0; one less can stand on the last axis.
            return ones[place] * table[..., :-1, 1:] + zeros[place] * table[..., :-1, :-1]

        voters, most = self.setting.mechanisms, self._most_shifted
        tables = walk(self._outer, voters, start, add, most)
        return ((counts, self._excess(table)) for counts, table in tables)

    def _excess(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return f / budget - 1 from E h / budget, over the same dimensions."""
        # The choice of corner turned around on every axis: each voter at p', so E' h.
        opposite = table[self._flipped]
        values = table - self.setting.ratio * opposite - 1.0
        s, o = table.shape[-2:]
        values[..., self._sum[:s, :o] >= o] = -np.inf
        return values

    def price(self, gamma: Vector) -> Priced:
        """Return the multiset of the reduced set where f is largest."""
        if self._quick is not None:
            h = signed(full_gamma(gamma)) / self.setting.budget
            value, worst = self._quick.largest(h)
            return Priced(value - 1.0, self._counts(_flat(worst)))
        best = Priced(-np.inf, ())
        for counts, values in track(
            self._slices(signed(full_gamma(gamma))), "pricing corner multisets", self._total
        ):
            place = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[place] > best.violation:
                best = Priced(float(values[place]), self._counts([*counts, *map(int, place)]))
        return best

    def tight(self, gamma: Vector) -> list[Counts]:
        """Return the multisets whose rows are tight at gamma's upper half, the tightest first.

        Those where h is the same for every number of ones that can occur say no more than
        gamma <= 1, and are left out.
        """
        h, found = signed(full_gamma(gamma)), list[tuple[float, tuple[int, ...]]]()
        if self._quick is not None:
            scaled, error = h / self.setting.budget, 1e-13 * (1.0 + self.setting.ratio)
            error /= self.setting.budget
            near = self._quick.reaching(scaled, 1.0 - _TIGHT, np.inf, error, _MOST_LISTED).near
            found = [(value, _flat(at)) for value, at in near]
        else:
            for counts, values in self._slices(h):
                places = np.argwhere(values >= -_TIGHT)
                values = values[tuple(places.T)].tolist()
                found += [
                    (value, (*counts, *place))
                    for value, place in zip(values, places.tolist(), strict=True)
                ]
        changes = np.concatenate([[0], np.cumsum(np.diff(h) != 0.0)])
        found.sort(reverse=True)
        tight = list[Counts]()
        for _, place in found:
            if len(tight) == _MOST_TIGHT * self.setting.middle:
                break
            # All but the choices of corners, and the last: voters at 11.
            width = sum(place[: len(self._outer)]) + place[-2]
            if changes[place[-1]] != changes[place[-1] + width]:
                tight.append(self._counts(place))
        return tight

    def row_of(self, counts: Counts) -> tuple[object, ...]:
        """Return the row of a multiset as `dpopt.verify` names it."""
        placed = tuple((name, n) for name, n in counts if name not in ("00", "11"))
        return "corner", dict(counts).get("11", 0), placed

    def _counts(self, flat: Sequence[int]) -> Counts:
        """Name the multiset of (outer counts, family, s, o)."""
        *rest, s, o = flat
        outer, family = rest[: len(self._outer)], rest[len(self._outer) :]
        inner = (*outer, s)
        named = [
            (axis.names[i], n) for axis, i, n in zip(self.setting.axes, family, inner, strict=True)
        ]
        named += [("11", o), ("00", self.setting.mechanisms - sum(inner) - o)]
        return tuple((name, count) for name, count in named if count)


def _shifted_rows(setting: Voters) -> ShiftedRows:
    """Return the rows of voters with Delta above 0."""
    inner, shift = np.array(setting.axes[-1].chances), setting.mechanism_delta
    return ShiftedRows(setting.mechanisms, inner, 1.0 - inner, (shift, 1.0 - shift), setting.ratio)


def _flat(at: Multiset) -> tuple[int, ...]:
    """Return a multiset as (outer counts, family, voters on the last axis, voters at 11)."""
    return *at.counts[:-1], *at.family, at.counts[-1], at.ones


def _peaks(
    counts: tuple[int, ...], values: npt.NDArray[np.float64], best: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return, for each family, the violated local maxima over s of the best o.

    Rows (violation, outer counts, family, s, o).
    """
    # best: over the choice on every axis and s, the largest value of any o.
    edge = np.full((*best.shape[:-1], 1), -np.inf)
    around = np.concatenate([edge, best, edge], axis=-1)
    peak = (best > 0.0) & (best >= around[..., :-2]) & (best >= around[..., 2:])
    place = np.nonzero(peak)
    fixed = np.full((place[0].size, len(counts)), counts)
    last = values[place].argmax(axis=-1)
    return np.column_stack([best[place], fixed, *place, last]).astype(np.float64)


def _best_peaks(values: npt.NDArray[np.float64]) -> tuple[Vector, npt.NDArray[np.int64]]:
    """Return the violated local maxima over s, and those over the voters near 1, the worst first.

    And their places, which are those of `Best.values`.
    """
    peak = np.zeros(values.shape, dtype=bool)
    for axis in (-2, -1):
        along = np.moveaxis(values, axis, -1)
        edge = np.full((*along.shape[:-1], 1), -np.inf)
        around = np.concatenate([edge, along, edge], axis=-1)
        most = (along >= around[..., :-2]) & (along >= around[..., 2:])
        peak |= np.moveaxis(most, -1, axis)
    places = np.argwhere(peak & (values > 0.0))
    violation = values[tuple(places.T)]
    order = np.argsort(-violation, kind="stable")
    return violation[order], places[order]
