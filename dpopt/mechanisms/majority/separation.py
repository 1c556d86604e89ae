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

What remains are O(K^2) multisets for Delta = 0, and O(K^4) in eight families otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.lp import Rows, Separation, make_rows
from dpopt.mechanisms.majority.setting import MajoritySetting, fold, full_gamma, signed
from dpopt.prob import binomial_pmf

Counts = tuple[tuple[str, int], ...]
"""How many voters sit at which corner, such as (("bc", 3), ("11", 8))."""

_LARGEST_PURE, _LARGEST_APPROXIMATE = 4001, 201
# Relative violation above which a slice without D and M voters is cut before all are priced.
_PLAIN = 1e-7
_PAIRS = (("D0", "0D"), ("1m", "m1"), ("bc", "cb"))


def reduced_size(setting: MajoritySetting) -> int:
    """Return the number of multisets that the reduction leaves to check."""
    k = setting.mechanisms
    if setting.mechanism_delta == 0.0:
        return (k + 1) ** 2
    return comb(k + 4, 4) + 3 * comb(k + 3, 4) + 3 * comb(k + 2, 4) + comb(k + 1, 4)


def require_priceable(setting: MajoritySetting) -> None:
    """Refuse a setting whose reduced set is too large to be priced.

    Raises:
        ParameterError: if it is.
    """
    largest = _LARGEST_PURE if setting.mechanism_delta == 0.0 else _LARGEST_APPROXIMATE
    if setting.mechanisms > largest:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; every constraint can be priced up to "
            f"{_LARGEST_PURE} voters if mechanism_delta is 0, else {_LARGEST_APPROXIMATE}."
        )


def corner_rows(setting: MajoritySetting, multisets: list[Counts]) -> Rows:
    """Return the privacy rows of some multisets over gamma's upper half, divided by the budget.

    Args:
        setting: the voters and the target.
        multisets: counts that sum to K each.

    Returns:
        Rows fold(alpha - e^(m epsilon) alpha') / budget @ gamma <= 1.
    """
    sides = [np.array([_law(setting, counts, side) for counts in multisets]) for side in (0, 1)]
    matrix = fold(sides[0] - setting.ratio * sides[1]) / setting.budget
    return make_rows(matrix, upper=1.0)


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

    T[n_D, n_M, s, o] = E h(o + Bin(n_D, p_D) + Bin(n_M, p_M) + Bin(s, p_B)) obeys
    T[.., one voter more at p, o] = p T[.., o + 1] + (1 - p) T[.., o]; then
    f = T[p's] - e^(m epsilon) T[p''s]. The eight families (D0 or 0D, 1m or m1, bc or cb) are the
    eight choices of (p_D, p_M, p_B); a family's p' is the opposite choice.

    Args:
        setting: the voters and the target.
        cuts: most rows to return at once.

    Raises:
        ParameterError: if K is too large for the whole reduced set to be priced.
    """

    def __init__(self, setting: MajoritySetting, cuts: int | None = None) -> None:
        require_priceable(setting)
        self.setting = setting
        self.cuts = 2 * setting.middle + 8 if cuts is None else cuts
        steps = np.arange(setting.mechanisms + 1)
        self._sum = steps[:, None] + steps[None, :]

    def __call__(self, gamma: Vector) -> Separation:
        """Separate gamma's upper half, shape ((K + 1) / 2,), from the set of private ones."""
        worst, found = 0.0, []
        for n_d, n_m, values in self._slices(signed(full_gamma(gamma))):
            best = values.max(axis=-1)
            top = float(best.max())
            worst = max(worst, top)
            if top > 0.0:
                found.append(_peaks(n_d, n_m, values, best))
            if n_d == n_m == 0 and top > _PLAIN and self.setting.mechanism_delta > 0.0:
                # Violated without any D or M voter: cut there before pricing the rest.
                worst = np.inf
                break
        if not found:
            empty = make_rows(np.empty((0, self.setting.middle)), upper=1.0)
            return Separation(empty, worst, reduced_size(self.setting))
        peaks = np.concatenate(found)
        order = np.argsort(-peaks[:, 0], kind="stable")[: 2 * self.cuts]
        multisets = dict.fromkeys(self._counts(*peaks[place, 1:].astype(int)) for place in order)
        rows = corner_rows(self.setting, list(multisets)[: self.cuts])
        return Separation(rows, worst, reduced_size(self.setting))

    def _slices(self, h: Vector) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        """Yield f / budget - 1 over (family, s, o) for every (n_D, n_M); -inf where s + o > K'."""
        setting, k = self.setting, self.setting.mechanisms
        base = self._base(h)
        if setting.mechanism_delta == 0.0:
            yield 0, 0, self._excess(base[None, None], k)
            return
        p_d = np.array([setting.corner("D0")[0], setting.corner("0D")[0]]).reshape(2, 1, 1, 1, 1)
        p_m = np.array([setting.corner("1m")[0], setting.corner("m1")[0]]).reshape(1, 2, 1, 1, 1)
        outer = np.broadcast_to(base, (2, 2, *base.shape))
        for n_d in range(k + 1):
            if n_d:
                outer = _one_more(outer, p_d)
            inner = outer
            for n_m in range(k + 1 - n_d):
                if n_m:
                    inner = _one_more(inner, p_m)
                yield n_d, n_m, self._excess(inner, k - n_d - n_m)

    def _base(self, h: Vector) -> npt.NDArray[np.float64]:
        """Return T[B, s, o] without D and M voters, shape (2, K + 1, K + 1)."""
        k = self.setting.mechanisms
        p = np.array([self.setting.corner("bc")[0], self.setting.corner("cb")[0]])[:, None]
        table = np.zeros((2, k + 1, k + 1))
        table[:, 0] = h
        for s in range(1, k + 1):
            before = table[:, s - 1, : k + 2 - s]
            table[:, s, : k + 1 - s] = p * before[:, 1:] + (1.0 - p) * before[:, :-1]
        return table

    def _excess(self, table: npt.NDArray[np.float64], left: int) -> npt.NDArray[np.float64]:
        opposite = table[::-1, ::-1, ::-1]
        values = (table - self.setting.ratio * opposite) / self.setting.budget - 1.0
        values[..., self._sum[: left + 1, : left + 1] > left] = -np.inf
        return values

    def price(self, gamma: Vector) -> Priced:
        """Return the multiset of the reduced set where f is largest."""
        best = Priced(-np.inf, ())
        for n_d, n_m, values in self._slices(signed(full_gamma(gamma))):
            place = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[place] > best.violation:
                i, j, b, s, o = (int(index) for index in place)
                best = Priced(float(values[place]), self._counts(n_d, n_m, i, j, b, s, o))
        return best

    def _counts(self, n_d: int, n_m: int, i: int, j: int, b: int, s: int, o: int) -> Counts:
        counts = (
            (_PAIRS[0][i], n_d),
            (_PAIRS[1][j], n_m),
            (_PAIRS[2][b], s),
            ("11", o),
            ("00", self.setting.mechanisms - n_d - n_m - s - o),
        )
        return tuple((name, int(count)) for name, count in counts if count)


def _peaks(
    n_d: int, n_m: int, values: npt.NDArray[np.float64], best: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return, for each family, the violated local maxima over s of the best o.

    Rows (violation, n_D, n_M, i, j, b, s, o).
    """
    edge = np.full((*best.shape[:-1], 1), -np.inf)
    around = np.concatenate([edge, best, edge], axis=-1)
    peak = (best > 0.0) & (best >= around[..., :-2]) & (best >= around[..., 2:])
    place = np.nonzero(peak)
    fixed = np.full((place[0].size, 2), (n_d, n_m))
    last = values[place].argmax(axis=-1)
    return np.column_stack([best[place], fixed, *place, last]).astype(np.float64)


def _one_more(table: npt.NDArray[np.float64], p: Vector) -> npt.NDArray[np.float64]:
    """Return the table with one more voter at p; it loses the last s and the last o."""
    return p * table[..., :-1, 1:] + (1.0 - p) * table[..., :-1, :-1]


def reduced_multisets(setting: MajoritySetting) -> list[Counts]:
    """List the reduced set, for tests and for small K."""
    k = setting.mechanisms
    names = ["bc", "cb"] if setting.mechanism_delta == 0.0 else None
    families = [(name,) for name in names] if names else list(product(*_PAIRS))
    found: dict[Counts, None] = {}
    for family in families:
        corners = (*family, "11")
        for counts in np.ndindex(*(k + 1,) * len(corners)):
            rest = k - sum(counts)
            if rest < 0:
                continue
            pairs = (*zip(corners, counts, strict=True), ("00", rest))
            found[tuple((name, int(n)) for name, n in pairs if n)] = None
    return list(found)
