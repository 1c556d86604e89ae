"""The privacy rows of DaRRM as a family: all corner multisets priced, few of them written.

With h the signed gamma and G(p) = E h(L), L ~ PoissonBinomial(p), DaRRM is (m epsilon, delta)-DP
iff f(p, p') = G(p) - e^(m epsilon) G(p') <= e^(m epsilon) - 1 + 2 delta for every choice of a
corner (p_i, p'_i) for each voter (lemmas 3.4 and 5.1): C(K+7, 7) multisets of the corners, or
C(K+3, 3) if Delta = 0.

Theorem (reduction). It is enough to check the multisets in which bc and cb do not both occur,
nor D0 and 0D, nor 1m and m1.

Proof. G depends on the multiset {p_i} only, so exchanging the p' of two voters leaves f as it
is; a voter at bc and one at cb become (b, b) and (c, c), both on the segment from 00 to 11.
Given the others, f is affine along that segment, hence largest at 00 or 11. The pairs (D0, 0D)
and (1m, m1) become (0, 0), (Delta, Delta) and (1, 1), (1 - Delta, 1 - Delta): the same.

What remains are O(K^2) multisets for Delta = 0, and O(K^4) in eight families otherwise. With
groups of voters of different privacy, the exchange stays within a group: each has its own three
pairs of corners, of which one each need occur, while 00 and 11 are common to all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import advance, track
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows
from dpopt.majority.reduction import (
    priceable,
    reduced_size,
    reduced_sizes,
    require_priceable,
    walk_size,
)
from dpopt.majority.setting import MajoritySetting, fold, full_gamma, signed
from dpopt.prob import binomial_pmf

Counts = tuple[tuple[str, int], ...]
"""How many voters sit at which corner, such as (("bc", 3), ("11", 8))."""

_PARTIAL_VOTERS, _PARTIAL_SIZE = 1001, 20_000_000
# Relative violation above which a slice without D and M voters is cut before all are priced.
_PLAIN = 1e-7


def corner_rows(setting: MajoritySetting, multisets: list[Counts]) -> Rows:
    """Return the privacy rows of some multisets over gamma's upper half, divided by the budget.

    Args:
        setting: the voters and the target.
        multisets: counts that sum to K each.

    Returns:
        Rows fold(alpha - e^(m epsilon) alpha') / budget @ gamma <= 1.
    """
    _checks.instance("setting", setting, MajoritySetting)
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


def _law(setting: MajoritySetting, counts: Counts, side: int) -> Vector:
    """Return the law of L on one side: binomials of the corners, convolved."""
    law, ones = np.ones(1), 0
    for name, count in counts:
        p = setting.corner(name)[side]
        if p == 1.0:
            ones += count
        elif p > 0.0:
            part = binomial_pmf(count, p)
            law = part if law.size == 1 else np.convolve(law, part)
    full = np.zeros(setting.mechanisms + 1)
    full[ones : ones + law.size] = law
    return full


@dataclass(frozen=True)
class Priced:
    """A multiset and f / budget - 1 at it."""

    violation: float
    counts: Counts


class CornerOracle:
    """Prices every multiset of the reduced set by one recursion, and returns the worst rows.

    T[n, s, o] = E h(o + sum of Bin(n_a, p_a) + Bin(s, p_B)), with one count n_a for each pair of
    opposite corners but the last, B, obeys T[.., one voter more at p, o] = p T[.., o + 1] +
    (1 - p) T[.., o]; then f = T[p's] - e^(m epsilon) T[p''s]. The families (D0 or 0D, 1m or m1,
    bc or cb) are the choices of the p_a; a family's p' is the opposite choice.

    Args:
        setting: the voters and the target.
        cuts: most rows to return at once.
        partial: price only as many voters at corners with Delta as 2e7 multisets allow, where
            the whole set is too large; what is not priced is not known to hold.

    Raises:
        ParameterError: if K is too large for the whole reduced set to be priced.
    """

    def __init__(
        self, setting: MajoritySetting, cuts: int | None = None, *, partial: bool = False
    ) -> None:
        _checks.instance("setting", setting, MajoritySetting)
        self._most, self.checked = setting.mechanisms, 0
        partial = _checks.flag("partial", partial)
        if partial and not priceable(setting):
            self._most, self.checked = _partial(setting)
        else:
            require_priceable(setting)
            self.checked = reduced_size(setting)
        self.setting = setting
        most = 2 * setting.middle + 8
        self.cuts = most if cuts is None else _checks.integer("cuts", cuts, 1)
        *self._outer, self._last = setting.axes
        whole = self._most == setting.mechanisms
        sizes = [group.size for group in setting.voters]
        self._total = walk_size(self._outer, sizes) if whole else None
        self._flipped = (slice(None, None, -1),) * len(setting.axes)
        self._shifted = sum(axis.names[0][0] != "b" for axis in self._outer)
        steps = np.arange(setting.mechanisms + 1)
        self._sum = steps[:, None] + steps[None, :]

    def __call__(self, gamma: Vector) -> Separation:
        """Separate gamma's upper half, shape ((K + 1) / 2,), from the set of private ones."""
        worst, plain, found = 0.0, 0.0, []
        for counts, values in track(
            self._slices(signed(full_gamma(gamma))), "pricing corner multisets", self._total
        ):
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
                found.append(_peaks(counts, values, best))
        if not found:
            empty = make_rows(np.empty((0, self.setting.middle)), upper=1.0)
            return Separation(empty, worst, self.checked)
        rows = corner_rows(self.setting, self._chosen(np.concatenate(found)))
        return Separation(rows, worst, self.checked)

    def _chosen(self, peaks: npt.NDArray[np.float64]) -> list[Counts]:
        """Return the worst multisets, one of each kind first.

        Voters at Delta or 1 - Delta are next to 0 or 1, so multisets with the same voters at b or
        c and as many near 1 have nearly the same row: one cut speaks for all.
        """
        peaks = peaks[np.argsort(-peaks[:, 0], kind="stable")]
        places = peaks[:, 1:].astype(np.int64)
        outer, family = places[:, : len(self._outer)], places[:, len(self._outer) :]
        mirrored = [i for i, axis in enumerate(self._outer) if axis.names[0][0] == "1"]
        kind = np.column_stack(
            [
                outer[:, self._shifted :],
                family[:, self._shifted : -1],
                outer[:, mirrored].sum(axis=1) + family[:, -1],
            ]
        )
        order = np.arange(len(peaks))
        if self._shifted:
            first = np.unique(kind, axis=0, return_index=True)[1]
            others = np.setdiff1d(order[: 2 * self.cuts], first)
            order = np.concatenate([np.sort(first), others])
        chosen: dict[Counts, None] = {}
        for place in order:
            if len(chosen) == self.cuts:
                break
            chosen[self._counts(places[place])] = None
        return list(chosen)

    def _slices(self, h: Vector) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.float64]]]:
        """Yield f / budget - 1 over (family, s, o) for all outer counts; -inf where s + o > K'."""
        base = self._base(h)
        table = np.broadcast_to(base, (*(2,) * len(self._outer), *base.shape))
        left = [group.size for group in self.setting.voters]
        yield from self._walk(table, (), left, self._most)

    def _walk(
        self, table: npt.NDArray[np.float64], counts: tuple[int, ...], left: list[int], most: int
    ) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.float64]]]:
        place = len(counts)
        if place == len(self._outer):
            yield counts, self._excess(table)
            return
        axis = self._outer[place]
        shape = [1] * table.ndim
        shape[place] = 2
        p = np.reshape(axis.chances, shape)
        room = left[axis.group]
        for n in range((min(room, most) if place < self._shifted else room) + 1):
            if n:
                last = -1 if axis.group == self._last.group else None
                table = p * table[..., :last, 1:] + (1.0 - p) * table[..., :last, :-1]
            fewer = [size - n * (g == axis.group) for g, size in enumerate(left)]
            rest = most - n if place < self._shifted else most
            yield from self._walk(table, (*counts, n), fewer, rest)

    def _base(self, h: Vector) -> npt.NDArray[np.float64]:
        """Return T[B, s, o] / budget without outer voters, shape (2, group's size + 1, K + 1)."""
        k, size = self.setting.mechanisms, self.setting.voters[self._last.group].size
        p = np.array(self._last.chances)[:, None]
        table = np.zeros((2, size + 1, k + 1))
        table[:, 0] = h / self.setting.budget
        for s in range(1, size + 1):
            before = table[:, s - 1, : k + 2 - s]
            table[:, s, : k + 1 - s] = p * before[:, 1:] + (1.0 - p) * before[:, :-1]
        return table

    def _excess(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        opposite = table[self._flipped]
        values = table - self.setting.ratio * opposite - 1.0
        s, o = table.shape[-2:]
        values[..., self._sum[:s, :o] >= o] = -np.inf
        return values

    def price(self, gamma: Vector) -> Priced:
        """Return the multiset of the reduced set where f is largest."""
        best = Priced(-np.inf, ())
        for counts, values in track(
            self._slices(signed(full_gamma(gamma))), "pricing corner multisets", self._total
        ):
            place = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[place] > best.violation:
                best = Priced(float(values[place]), self._counts(np.array([*counts, *place])))
        return best

    def _counts(self, flat: npt.NDArray[np.int64]) -> Counts:
        """Name the multiset of (outer counts, family, s, o)."""
        *rest, s, o = flat.tolist()
        outer, family = rest[: len(self._outer)], rest[len(self._outer) :]
        inner = (*outer, s)
        axes = (*self._outer, self._last)
        named = [(axis.names[i], n) for axis, i, n in zip(axes, family, inner, strict=True)]
        named += [("11", o), ("00", self.setting.mechanisms - sum(inner) - o)]
        return tuple((name, count) for name, count in named if count)


def _partial(setting: MajoritySetting) -> tuple[int, int]:
    """Return how many voters at corners with Delta are priced, and how many multisets that is."""
    if setting.mechanism_delta == 0.0 or setting.groups:
        require_priceable(setting)
    if setting.mechanisms > _PARTIAL_VOTERS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; with mechanism_delta above 0 a noise function "
            f"can be designed up to {_PARTIAL_VOTERS} voters, unverified above 203."
        )
    covered, most = 0, -1
    for size in reduced_sizes(setting):
        if covered + size > _PARTIAL_SIZE and most >= 1:
            break
        covered, most = covered + size, most + 1
    return most, covered


def _peaks(
    counts: tuple[int, ...], values: npt.NDArray[np.float64], best: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return, for each family, the violated local maxima over s of the best o.

    Rows (violation, outer counts, family, s, o).
    """
    edge = np.full((*best.shape[:-1], 1), -np.inf)
    around = np.concatenate([edge, best, edge], axis=-1)
    peak = (best > 0.0) & (best >= around[..., :-2]) & (best >= around[..., 2:])
    place = np.nonzero(peak)
    fixed = np.full((place[0].size, len(counts)), counts)
    last = values[place].argmax(axis=-1)
    return np.column_stack([best[place], fixed, *place, last]).astype(np.float64)


def reduced_multisets(setting: MajoritySetting) -> list[Counts]:
    """List the reduced set, for tests and for small K."""
    k, axes = setting.mechanisms, setting.axes
    found: dict[Counts, None] = {}
    for counts in np.ndindex(*(setting.voters[axis.group].size + 1 for axis in axes), k + 1):
        *inner, ones = counts
        rest = k - sum(counts)
        used = [0] * len(setting.voters)
        for axis, n in zip(axes, inner, strict=True):
            used[axis.group] += n
        if rest < 0 or any(u > g.size for u, g in zip(used, setting.voters, strict=True)):
            continue
        for family in product(*(axis.names for axis in axes)):
            pairs = (*zip(family, inner, strict=True), ("11", ones), ("00", rest))
            found[tuple((name, int(n)) for name, n in pairs if n)] = None
    return list(found)
