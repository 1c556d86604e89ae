"""The judge of a noise function: the paper's own constraint set, without the reduction.

It shares no code with the separation that designs gamma: laws come from `dpopt.prob`, every
multiset of corners is enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import comb, log

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import track
from dpopt._types import IntVector, Json, Vector
from dpopt.majority.voters import CORNERS, Voters, check_gamma, require_voters, signed
from dpopt.prob import poisson_binomial_pmf

FULL_LIMIT = 1_200_000
"""Most multisets that are enumerated: K = 21 for Delta > 0, K = 191 for Delta = 0."""

_LARGEST_GRID = 200_000


@dataclass(frozen=True)
class PrivacyCheck:
    """What the paper's corner set says of a gamma, in double precision.

    Attributes:
        constraints_checked: number of multisets.
        excess: max of Pr[1 | p] - e^(m epsilon) Pr[1 | p'] - delta.
        rounding: bound on the error of the excess in double precision.
        epsilon: smallest epsilon for which gamma is (epsilon, delta)-DP, up to rounding; infinite
            if there is none.
        worst: how many voters sit at which corner (p, p') where the excess is largest.
    """

    constraints_checked: int
    excess: float
    rounding: float
    epsilon: float
    worst: dict[str, int]

    def to_dict(self) -> Json:
        """Return the fields as plain values; an infinite epsilon becomes None."""
        plain = asdict(self)
        if not np.isfinite(self.epsilon):
            plain["epsilon"] = None
        return plain


def rounding_error(setting: Voters) -> float:
    """Return a bound on the error of an excess computed from laws of K voters.

    The recurrence adds positive terms: 3 K units in the last place for each probability, and p
    rounded in its last place moves Pr[output 1] by at most 1 for each unit and voter.
    """
    return 8.0 * setting.mechanisms * 2.0**-53 * (1.0 + setting.ratio)


def full_size(setting: Voters) -> int:
    """Return the size of the paper's set: C(K+7, 7), or C(K+3, 3) if Delta = 0."""
    require_voters(setting)
    others = 3 if setting.mechanism_delta == 0.0 else 7
    return comb(setting.mechanisms + others, others)


def check_full(setting: Voters, gamma: Vector, chances: Vector | None = None) -> PrivacyCheck:
    """Check gamma against every multiset of the paper's corners.

    Args:
        setting: the voters and the target; `full_size` must be at most `FULL_LIMIT`.
        gamma: noise function on 0..K, shape (K + 1,).
        chances: Pr[output 1 | L = l] on 0..K, where they are known better than 1/2 +- gamma / 2:
            a gamma next to 1 loses the digits of 1 - gamma.
    """
    require_voters(setting)
    gamma = check_gamma(setting, gamma)
    if chances is None:
        chances = 0.5 + 0.5 * signed(gamma)
    chances = _checks.floats("chances", chances)
    if chances.shape != gamma.shape or not np.all((chances >= 0.0) & (chances <= 1.0)):
        raise ParameterError(f"chances must be {gamma.size} probabilities.")
    corners = CORNERS if setting.mechanism_delta > 0.0 else ("00", "11", "bc", "cb")
    inner = ("D", "m", "b", "c") if setting.mechanism_delta > 0.0 else ("b", "c")
    table = _Chances(setting, chances, inner)
    # p's own rounding: without it, p = delta beside q = 0 would count as an infinite loss.
    noise = 8.0 * setting.mechanisms * 2.0**-53
    worst, loss, counts = -np.inf, 0.0, np.zeros(len(corners), np.int64)
    for block in track(multisets(setting.mechanisms, len(corners)), "check of all corners"):
        p = table(_groups(block, corners, inner, side=0))
        q = table(_groups(block, corners, inner, side=1))
        excess = p - setting.ratio * q - setting.delta
        top = int(np.argmax(excess))
        if excess[top] > worst:
            worst, counts = float(excess[top]), block[top]
        over = np.maximum(p * (1.0 - noise) - setting.delta, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(over > 0.0, over / q, 0.0)
        loss = max(loss, float(ratios.max()))
    where = {name: int(n) for name, n in zip(corners, counts, strict=True) if n}
    epsilon = log(loss) if 1.0 < loss < np.inf else (np.inf if loss == np.inf else 0.0)
    return PrivacyCheck(full_size(setting), worst, rounding_error(setting), epsilon, where)


class _Chances:
    """Pr[output 1] for every law of L that corners can make, by the counts of inner values.

    L is the number of voters at probability 1 plus a Poisson-binomial over the inner values.
    """

    def __init__(self, setting: Voters, chances: Vector, inner: tuple[str, ...]) -> None:
        k = setting.mechanisms
        values = np.array([setting.corner(name + name)[0] for name in inner])
        counts = np.concatenate(list(multisets(k, len(inner) + 1)))[:, :-1]
        laws = np.concatenate(
            [_laws(values, part, k) for part in np.array_split(counts, len(counts) // 20_000 + 1)]
        )
        # Sums of non-negative terms: a chance that is zero comes out as zero.
        one = np.concatenate([chances, np.zeros(k)])
        shifted = np.lib.stride_tricks.sliding_window_view(one, k + 1)
        self._values = laws @ shifted.T
        self._base = k + 1
        self._place = np.full((k + 1) ** len(inner), -1, dtype=np.int64)
        self._place[self._code(counts)] = np.arange(len(counts))

    def __call__(self, groups: tuple[IntVector, IntVector]) -> Vector:
        counts, ones = groups
        return self._values[self._place[self._code(counts)], ones]

    def _code(self, counts: IntVector) -> IntVector:
        return counts @ (self._base ** np.arange(counts.shape[1], dtype=np.int64))


def _laws(values: Vector, counts: IntVector, k: int) -> npt.NDArray[np.float64]:
    """Return the law of the sum of counts[r, i] voters at values[i], padded to 0..k."""
    ends = np.cumsum(counts, axis=1)
    voter = np.arange(k)
    which = (voter[None, :, None] >= ends[:, None, :]).sum(axis=2)
    return poisson_binomial_pmf(np.concatenate([values, [0.0]])[which])


def _groups(
    block: IntVector, corners: tuple[str, ...], inner: tuple[str, ...], side: int
) -> tuple[IntVector, IntVector]:
    """Return how many voters sit at each inner value, and at 1, on one side of the pair."""
    at = {
        letter: sum(
            (block[:, i] for i, corner in enumerate(corners) if corner[side] == letter),
            np.zeros(len(block), np.int64),
        )
        for letter in (*inner, "1")
    }
    return np.stack([at[letter] for letter in inner], axis=1), at["1"]


def multisets(total: int, parts: int) -> Iterator[IntVector]:
    """Yield all ways to write ``total`` as ``parts`` ordered counts, in blocks of rows."""
    if parts == 2 or (total + 1) ** (parts - 1) <= _LARGEST_GRID:
        yield _compositions(total, parts)
        return
    for first in range(total + 1):
        for rest in multisets(total - first, parts - 1):
            yield np.concatenate([np.full((len(rest), 1), first), rest], axis=1)


def _compositions(total: int, parts: int) -> IntVector:
    grid = np.indices((total + 1,) * (parts - 1), dtype=np.int64).reshape(parts - 1, -1).T
    grid = grid[grid.sum(axis=1) <= total]
    return np.concatenate([grid, total - grid.sum(axis=1, keepdims=True)], axis=1)
