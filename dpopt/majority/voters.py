"""The voters, the corners of what their privacy allows, and the walk over all choices of them.

A voter that is (epsilon, Delta)-private says 1 with p on one data set and p' on its neighbour, and
(p, p') lies in a polygon of up to eight corners (lemma 5.1 of the DaRRM paper). The majority's
privacy is decided where every voter sits at a corner; by the theorem in the program module, at
choices of how many voters stand on each pair of opposite corners, an `Axis`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_up
from dpopt._types import Vector
from dpopt.privacy import Guarantee
from dpopt.privacy.exponential import exp_lower

BITS = 62
"""A noise level gamma(l) is an integer over 2^BITS."""

Units = tuple[int, ...]
"""gamma's upper half as integers over 2^BITS, l = (K + 1) / 2..K."""

CORNERS = ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")
"""Names of the corners of a voter's polygon, first letter p, second p'; m stands for 1 - Delta."""

_ROUNDING = 1e-15
_LARGEST_VOTERS, _LARGEST_SHIFTED = 4001, 501
_PARTIAL_VOTERS, _PARTIAL_SIZE = 1001, 20_000_000

T = TypeVar("T")


def odd(mechanisms: object) -> int:
    """Return a number of voters K, which must be odd.

    Raises:
        ParameterError: if it is not.
    """
    k = _checks.integer("mechanisms", mechanisms, 1)
    if k % 2 == 0:
        raise ParameterError(f"mechanisms is {k}; it must be odd, so that no vote is tied.")
    return k


@dataclass(frozen=True)
class Axis:
    """Two opposite corners (p, p') of a voter's polygon, of which one at a time need occur.

    Attributes:
        names: of the two corners, such as ("bc", "cb").
        chances: p of each; p' is the other one.
    """

    names: tuple[str, str]
    chances: tuple[float, float]

    @property
    def shifted(self) -> bool:
        """Whether its corners are there for Delta > 0 only."""
        return self.names[0][0] != "b"


@dataclass(frozen=True)
class Multiset:
    """Voters by corner: for each axis how many, and which of its two corners; the rest at 0 or 1.

    Attributes:
        counts: of voters on each axis.
        family: 0 or 1 for each axis: all its voters are at the first corner, or all at the second.
        ones: voters at (1, 1); those left are at (0, 0).
    """

    counts: tuple[int, ...]
    family: tuple[int, ...]
    ones: int


class Voters:
    """What follows from the parameters of a `MajoritySetting` about its voters and its target."""

    mechanisms: int
    epsilon: float
    allowance: float
    mechanism_delta: float
    delta: float

    def subject(self, units: object) -> tuple[object, ...]:
        """Return what a certificate is about: voters, target and integers, and no objective."""
        voters = self.mechanisms, self.epsilon, self.mechanism_delta
        return "majority", voters, self.allowance, self.delta, units

    @property
    def middle(self) -> int:
        """Smallest count of ones that is a majority, (K + 1) / 2; also the number of unknowns."""
        return (self.mechanisms + 1) // 2

    @property
    def guarantee(self) -> Guarantee:
        """The target: (m epsilon, delta), m epsilon rounded up to a float."""
        return Guarantee(float_up(Fraction(self.allowance) * Fraction(self.epsilon)), self.delta)

    def ratio_below(self, bits: int) -> Fraction:
        """Return the largest multiple of 2^-bits that is proved to be at most e^(m epsilon)."""
        return exp_lower(Fraction(self.allowance) * Fraction(self.epsilon), bits)

    @property
    def ratio(self) -> float:
        """e^(m epsilon)."""
        return math.exp(self.allowance * self.epsilon)

    @property
    def budget(self) -> float:
        """Right side of every privacy row: e^(m epsilon) - 1 + 2 delta."""
        return math.expm1(self.allowance * self.epsilon) + 2.0 * self.delta

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The pairs of opposite corners; those with Delta come first, the last is "bc"."""
        pairs = [("D0", "0D"), ("1m", "m1"), ("bc", "cb")]
        kept = pairs if self.mechanism_delta > 0.0 else pairs[-1:]
        return tuple(Axis(names, self.corner(names[0])) for names in kept)

    def corner(self, name: str) -> tuple[float, float]:
        """Return (p, p') of a corner of a voter's polygon (lemma 5.1), or any pair of its values.

        Raises:
            ParameterError: if there is no such corner.
        """
        text = str(name)
        if len(text) != 2 or not set(text) <= set(self._values):
            raise ParameterError(
                f"corner is {_checks.shown(name)}; it must be a pair of 0, 1, D, m, b and c, such "
                f"as {', '.join(CORNERS)}."
            )
        return self._values[text[0]], self._values[text[1]]

    @cached_property
    def _values(self) -> dict[str, float]:
        """The values 0, 1, D, m, b and c."""
        shift, r = self.mechanism_delta, math.exp(self.epsilon)
        b, c = (r + shift) / (r + 1.0), (1.0 - shift) / (r + 1.0)
        return {"0": 0.0, "1": 1.0, "D": shift, "m": 1.0 - shift, "b": b, "c": c}


def require_voters(setting: object) -> None:
    """Refuse what is no `MajoritySetting`.

    Raises:
        ParameterError: for another object.
    """
    if not isinstance(setting, Voters):
        raise ParameterError(f"setting is {_checks.shown(setting)}; it must be a MajoritySetting.")


def full_gamma(upper: npt.ArrayLike) -> Vector:
    """Return gamma on 0..K from its upper half l = (K + 1) / 2..K, by gamma(l) = gamma(K - l)."""
    half = np.asarray(upper, dtype=float)
    return np.concatenate([half[::-1], half])


def signed(gamma: Vector) -> Vector:
    """Return h: gamma above the middle, -gamma below; Pr[output 1 | L = l] = 1/2 + h(l) / 2."""
    middle = gamma.size // 2
    return np.concatenate([-gamma[:middle], gamma[middle:]])


def fold(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a(l) - a(K - l) for l = (K + 1) / 2..K, over the last axis.

    For an antisymmetric h, sum_l a(l) h(l) = sum over the upper half of fold(a)(l) gamma(l).
    """
    middle = weights.shape[-1] // 2
    return weights[..., middle:] - weights[..., middle - 1 :: -1]


def noise_levels(gamma: Vector) -> Vector:
    """Return gamma's values, those beyond 0 or 1 by at most a rounding, 1e-15, set to it.

    Raises:
        ParameterError: for other values outside [0, 1].
    """
    if not np.all((gamma >= -_ROUNDING) & (gamma <= 1.0 + _ROUNDING)):
        raise ParameterError("gamma holds a value outside [0, 1]; noise levels must lie in it.")
    return np.clip(gamma, 0.0, 1.0)


def check_gamma(setting: Voters, gamma: npt.ArrayLike) -> Vector:
    """Return gamma on 0..K as an array, given on 0..K or on its upper half.

    Raises:
        ParameterError: for another shape, values outside [0, 1], or a gamma not symmetric.
    """
    array = _checks.floats("gamma", gamma)
    k = setting.mechanisms
    if array.shape == (setting.middle,):
        array = full_gamma(array)
    if array.shape != (k + 1,):
        raise ParameterError(
            f"gamma has shape {array.shape}; it must be ({k + 1},) or ({setting.middle},)."
        )
    array = noise_levels(array)
    if not np.array_equal(array, array[::-1]):
        raise ParameterError("gamma is not symmetric; gamma(l) must equal gamma(K - l).")
    return array


def reduced_size(setting: Voters) -> int:
    """Return the number of multisets that the reduction leaves to check.

    (K + 1)^2 for Delta = 0, else C(K+4, 4) + 3 C(K+3, 4) + 3 C(K+2, 4) + C(K+1, 4).
    """
    require_voters(setting)
    return int(sum(reduced_sizes(setting)))


def reduced_sizes(setting: Voters) -> list[int]:
    """Return how many multisets have d voters at corners with Delta, d = 0..K."""
    # d voters at corners with Delta in 4 d ways, the others as for Delta = 0.
    k = setting.mechanisms
    last = 0 if setting.mechanism_delta == 0.0 else k
    return [(4 * d or 1) * (k - d + 1) ** 2 for d in range(last + 1)]


def priceable(setting: Voters) -> bool:
    """Whether the whole reduced set can be priced."""
    return setting.mechanisms <= (_LARGEST_SHIFTED if setting.mechanism_delta else _LARGEST_VOTERS)


def require_priceable(setting: Voters) -> None:
    """Refuse a setting whose reduced set is too large to be priced.

    Raises:
        ParameterError: if it is.
    """
    require_voters(setting)
    if not priceable(setting):
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; every constraint can be priced up to "
            f"{_LARGEST_VOTERS} voters if mechanism_delta is 0, else up to {_LARGEST_SHIFTED}."
        )


def partly_priced(setting: Voters) -> tuple[int, int] | None:
    """Return how many voters at corners with Delta are priced, and how many multisets that is.

    None if all are. Where the whole reduced set is too large, as many voters as 2e7 multisets
    allow.

    Raises:
        ParameterError: if there are too many voters even for that.
    """
    if priceable(setting):
        return None
    if setting.mechanism_delta == 0.0:
        require_priceable(setting)
    if setting.mechanisms > _PARTIAL_VOTERS:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; with mechanism_delta above 0 a noise function "
            f"can be designed up to {_PARTIAL_VOTERS} voters, unverified above {_LARGEST_SHIFTED}."
        )
    covered, most = 0, -1
    for size in reduced_sizes(setting):
        if covered + size > _PARTIAL_SIZE and most >= 1:
            break
        covered, most = covered + size, most + 1
    return most, covered


def walk(
    axes: Sequence[Axis],
    voters: int,
    table: T,
    add: Callable[[int, T], T],
    most_shifted: int | None = None,
) -> Iterator[tuple[tuple[int, ...], T]]:
    """The corner recursion: yield (counts, table) for every choice of voters for each axis.

    With two axes and 2 voters the counts are (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0). Each
    table is made from one with a voter less, so that all of them together cost one step each,
    whatever a table holds: floats, integers, for all families at once.

    Args:
        axes: walked over from first to last.
        voters: on all axes, at most.
        table: for no voters on any of the axes.
        add: returns a table with one voter more on the axis of a place.
        most_shifted: of voters on axes with Delta; no limit if None.
    """

    def deeper(
        place: int, table: T, counts: tuple[int, ...], left: int, spare: int
    ) -> Iterator[tuple[tuple[int, ...], T]]:
        if place == len(axes):
            yield counts, table
            return
        shifted = axes[place].shifted
        for n in range((min(left, spare) if shifted else left) + 1):
            if n:
                table = add(place, table)
            yield from deeper(place + 1, table, (*counts, n), left - n, spare - n * shifted)

    yield from deeper(0, table, (), voters, voters if most_shifted is None else most_shifted)


def walk_size(axes: Sequence[Axis], voters: int) -> int:
    """Return how many tables `walk` yields; its arguments are the same."""
    return math.comb(voters + len(axes), voters)


def by_axis(place: int, dims: int, values: Any, dtype: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return numbers of an axis's two corners, shaped for tables whose first dimensions are axes.

    Args:
        place: of the axis.
        dims: of the table: the choice of corner on each axis, then what follows them.
        values: two numbers.
        dtype: of the array.
    """
    return np.array(values, dtype=dtype).reshape(*(1,) * place, 2, *(1,) * (dims - place - 1))


def last_axis_table(h: Vector, p: Vector, q: Vector) -> npt.NDArray[np.float64]:
    """Return E h(o + Bin(s, p)), shape (2, K + 1, K + 1): corner, s, o; 0 for s + o > K."""
    p, q, last = p[:, None], q[:, None], h.size
    table = np.zeros((2, last, last))
    table[:, 0] = h
    for s in range(1, last):
        # Each step is good for one o less.
        before = table[:, s - 1, : last + 1 - s]
        table[:, s, : last - s] = p * before[:, 1:] + q * before[:, :-1]
    return table
