"""The voters, the corners of what their privacy allows, and the walk over all choices of them.

A voter that is (epsilon, Delta)-private says 1 with p on one data set and p' on its neighbour, and
(p, p') lies in a polygon of up to eight corners (lemma 5.1 of the DaRRM paper). The majority's
privacy is decided where every voter sits at a corner; by the theorem in the program module, at
choices of how many voters of each group stand on each pair of opposite corners, an `Axis`.
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
from dpopt.privacy.exponential import exp_lower, exp_upper, log_upper

BITS = 62
"""A noise level gamma(l) is an integer over 2^BITS."""

Units = tuple[int, ...]
"""gamma's upper half as integers over 2^BITS, l = (K + 1) / 2..K."""

CORNERS = ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")
"""Names of the corners of a voter's polygon, first letter p, second p'; m stands for 1 - Delta."""

_ROUNDING = 1e-15
_LARGEST_VOTERS, _LARGEST_SHIFTED = 4001, 501
_LARGEST_GROUPED, _LARGEST_SIZE = 151, 600_000_000
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
class VoterGroup:
    """Voters with the same privacy.

    Attributes:
        size: their number, at least 1.
        epsilon: of each of them, above 0.
        mechanism_delta: the paper's Delta, of each of them, in [0, 1).
    """

    size: int
    epsilon: float
    mechanism_delta: float = 0.0

    def __post_init__(self) -> None:
        size = _checks.integer("size", self.size, 1)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        shift = _checks.real("mechanism_delta", self.mechanism_delta, 0.0, 1.0, open_upper=True)
        for name, value in zip(self.__dataclass_fields__, (size, epsilon, shift), strict=True):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Axis:
    """Two opposite corners (p, p') of a group's polygon, of which one at a time need occur.

    Attributes:
        group: place of the group.
        names: of the two corners, such as ("bc", "cb").
        chances: p of each; p' is the other one.
    """

    group: int
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
    groups: tuple[VoterGroup, ...]
    voter_ratio: Fraction | None

    def subject(self, units: object) -> tuple[object, ...]:
        """Return what a certificate is about: voters, target and integers, and no objective."""
        voters = self.mechanisms, self.epsilon, self.mechanism_delta, self.groups, self.voter_ratio
        return "majority", voters, self.allowance, self.delta, units

    @property
    def middle(self) -> int:
        """Smallest count of ones that is a majority, (K + 1) / 2; also the number of unknowns."""
        return (self.mechanisms + 1) // 2

    @property
    def guarantee(self) -> Guarantee:
        """The target: (m epsilon, delta), m epsilon rounded up to a float."""
        if self.voter_ratio is not None:
            return Guarantee(log_upper(self.voter_ratio ** int(self.allowance)), self.delta)
        return Guarantee(float_up(Fraction(self.allowance) * Fraction(self.epsilon)), self.delta)

    def ratio_below(self, bits: int) -> Fraction:
        """Return the largest multiple of 2^-bits that is proved to be at most e^(m epsilon)."""
        if self.voter_ratio is None:
            return exp_lower(Fraction(self.allowance) * Fraction(self.epsilon), bits)
        power = self.voter_ratio ** int(self.allowance)
        return Fraction((power.numerator << bits) // power.denominator, 1 << bits)

    def voter_ratio_above(self, group: VoterGroup, bits: int) -> Fraction:
        """Return a rational of at least a group's e^epsilon, by less than 2^-bits."""
        return exp_upper(group.epsilon, bits) if self.voter_ratio is None else self.voter_ratio

    @property
    def ratio(self) -> float:
        """e^(m epsilon)."""
        return math.exp(self.allowance * self.epsilon)

    @property
    def budget(self) -> float:
        """Right side of every privacy row: e^(m epsilon) - 1 + 2 delta."""
        return math.expm1(self.allowance * self.epsilon) + 2.0 * self.delta

    @cached_property
    def voters(self) -> tuple[VoterGroup, ...]:
        """The groups; a single one if all voters are alike."""
        alike = VoterGroup(self.mechanisms, self.epsilon, self.mechanism_delta)
        return self.groups or (alike,)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The pairs of opposite corners; those with Delta come first, the last is a "bc"."""
        kinds = [("D0", "0D"), ("1m", "m1"), ("bc", "cb")]
        axes = []
        for kind in kinds:
            for place, group in enumerate(self.voters):
                if kind == kinds[-1] or group.mechanism_delta > 0.0:
                    tag = f"@{place + 1}" if self.groups else ""
                    names = kind[0] + tag, kind[1] + tag
                    axes.append(Axis(place, names, self.corner(names[0])))
        return tuple(axes)

    def corner(self, name: str) -> tuple[float, float]:
        """Return (p, p') of a corner of a voter's polygon (lemma 5.1), or any pair of its values.

        Args:
            name: such as "bc"; with groups, such as "bc@2" for the second group.

        Raises:
            ParameterError: if there is no such corner.
        """
        kind, _, place = str(name).partition("@")
        index = int(place) if place.isdecimal() and len(place) < 9 else 1 if not place else 0
        if len(kind) != 2 or not set(kind) <= set("01Dmbc") or not 1 <= index <= len(self.voters):
            raise ParameterError(
                f"corner is {_checks.shown(name)}; it must be a pair of 0, 1, D, m, b and c, such "
                f"as {', '.join(CORNERS)}, with @ and the number of the group if there are groups."
            )
        value = self._values[index - 1]
        return value[kind[0]], value[kind[1]]

    @cached_property
    def _values(self) -> tuple[dict[str, float], ...]:
        """The values 0, 1, D, m, b and c of each group."""
        values = []
        for group in self.voters:
            shift, r = group.mechanism_delta, math.exp(group.epsilon)
            b, c = (r + shift) / (r + 1.0), (1.0 - shift) / (r + 1.0)
            values.append({"0": 0.0, "1": 1.0, "D": shift, "m": 1.0 - shift, "b": b, "c": c})
        return tuple(values)


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

    (K + 1)^2 for Delta = 0, else C(K+4, 4) + 3 C(K+3, 4) + 3 C(K+2, 4) + C(K+1, 4); with groups,
    counted from the ways to place t voters of each group at its corners.
    """
    require_voters(setting)
    return int(sum(reduced_sizes(setting)))


def reduced_sizes(setting: Voters) -> list[int]:
    """Return how many multisets have d voters at corners with Delta, d = 0..K."""
    k = setting.mechanisms
    if not setting.groups:
        # d voters at corners with Delta in 4 d ways, the others as for Delta = 0.
        last = 0 if setting.mechanism_delta == 0.0 else k
        return [(4 * d or 1) * (k - d + 1) ** 2 for d in range(last + 1)]
    # ways[d, t]: ways to have t voters at inner corners, d of them at corners with Delta.
    ways = {(0, 0): 1}
    for place, group in enumerate(setting.voters):
        kinds = [axis.names[0][0] != "b" for axis in setting.axes if axis.group == place]
        inside = {(0, 0): 1}
        for shifted in kinds:
            wider: dict[tuple[int, int], int] = {}
            for (d, t), count in inside.items():
                for n in range(group.size - t + 1):
                    at = (d + n * shifted, t + n)
                    wider[at] = wider.get(at, 0) + count * (2 if n else 1)
            inside = wider
        joined: dict[tuple[int, int], int] = {}
        for (d, t), count in ways.items():
            for (e, u), other in inside.items():
                joined[d + e, t + u] = joined.get((d + e, t + u), 0) + count * other
        ways = joined
    sizes = [0] * (k + 1)
    for (d, t), count in ways.items():
        sizes[d] += count * (k - t + 1)
    return sizes


def priceable(setting: Voters) -> bool:
    """Whether the whole reduced set can be priced; of groups of voters, up to 6e8 multisets."""
    k = setting.mechanisms
    if setting.groups:
        pure = len(setting.axes) == 1
        return k <= _LARGEST_GROUPED and (pure or reduced_size(setting) <= _LARGEST_SIZE)
    return k <= (_LARGEST_SHIFTED if setting.mechanism_delta else _LARGEST_VOTERS)


def require_priceable(setting: Voters) -> None:
    """Refuse a setting whose reduced set is too large to be priced.

    Raises:
        ParameterError: if it is.
    """
    require_voters(setting)
    if not priceable(setting):
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; every constraint can be priced up to "
            f"{_LARGEST_VOTERS} voters if mechanism_delta is 0, else up to {_LARGEST_SHIFTED} (for "
            f"groups: up to {_LARGEST_GROUPED} voters and {_LARGEST_SIZE:.0e} multisets)."
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
    if setting.mechanism_delta == 0.0 or setting.groups:
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
    sizes: Sequence[int],
    table: T,
    add: Callable[[int, T], T],
    most_shifted: int | None = None,
) -> Iterator[tuple[tuple[int, ...], T]]:
    """The corner recursion: yield (counts, table) for every choice of voters for each axis.

    With two axes of one group of 2 voters the counts are (0, 0), (0, 1), (0, 2), (1, 0), (1, 1),
    (2, 0). Each table is made from one with a voter less, so that all of them together cost one
    step each, whatever a table holds: floats, integers, for all families at once.

    Args:
        axes: walked over from first to last.
        sizes: of the groups; the voters on all axes of a group are at most its size.
        table: for no voters on any of the axes.
        add: returns a table with one voter more on the axis of a place.
        most_shifted: of voters on axes with Delta; no limit if None.
    """

    def deeper(
        place: int, table: T, counts: tuple[int, ...], left: Sequence[int], spare: int
    ) -> Iterator[tuple[tuple[int, ...], T]]:
        if place == len(axes):
            yield counts, table
            return
        group, shifted = axes[place].group, axes[place].shifted
        room = min(left[group], spare) if shifted else left[group]
        for n in range(room + 1):
            if n:
                table = add(place, table)
            fewer = [size - n * (g == group) for g, size in enumerate(left)]
            yield from deeper(place + 1, table, (*counts, n), fewer, spare - n * shifted)

    spare = sum(sizes) if most_shifted is None else most_shifted
    yield from deeper(0, table, (), sizes, spare)


def walk_size(axes: Sequence[Axis], sizes: Sequence[int]) -> int:
    """Return how many tables `walk` yields; its arguments are the same."""
    return math.prod(
        math.comb(size + sum(axis.group == group for axis in axes), size)
        for group, size in enumerate(sizes)
    )


def by_axis(place: int, dims: int, values: Any, dtype: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return numbers of an axis's two corners, shaped for tables whose first dimensions are axes.

    Args:
        place: of the axis.
        dims: of the table: the choice of corner on each axis, then what follows them.
        values: two numbers.
        dtype: of the array.
    """
    return np.array(values, dtype=dtype).reshape(*(1,) * place, 2, *(1,) * (dims - place - 1))


def float_tables(
    axes: Sequence[Axis],
    sizes: Sequence[int],
    h: Vector,
    p: Sequence[Vector],
    q: Sequence[Vector],
    *,
    whole: bool = False,
    most_shifted: int | None = None,
) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.float64]]]:
    """Walk over all axes but the last: yield the counts there, and E h(L) in doubles.

    Args:
        axes: what `walk` takes, as are the two other arguments that it has.
        sizes: of the groups.
        h: on 0..K.
        p: of the two corners of each axis.
        q: 1 - p, likewise.
        whole: give every dimension of a corner its length of two, even where nobody stands.
        most_shifted: of voters on axes with Delta.

    Yields:
        The counts, and a table over the choice of corner on each axis walked (of length 1 where
        nobody stands on it), that on the last one, voters s there and voters o at 11; it means
        nothing where s + o is more than the voters left.
    """
    *outer, last = axes
    base = last_axis_table(h, p[-1], q[-1], sizes[last.group])
    table = np.broadcast_to(base, (*(1 + whole,) * len(outer), *base.shape))
    ones, zeros = (
        [by_axis(place, table.ndim, values, float) for place, values in enumerate(side[:-1])]
        for side in (p, q)
    )

    def add(place: int, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        # One voter more says 1, and o is one more, or 0. If it is of the last axis's group, one
        # less can stand there.
        rest = -1 if outer[place].group == last.group else None
        return ones[place] * table[..., :rest, 1:] + zeros[place] * table[..., :rest, :-1]

    return walk(outer, sizes, table, add, most_shifted)


def last_axis_table(h: Vector, p: Vector, q: Vector, size: int) -> npt.NDArray[np.float64]:
    """Return E h(o + Bin(s, p)), shape (2, size + 1, K + 1): corner, s, o; 0 for s + o > K."""
    p, q, last = p[:, None], q[:, None], h.size
    table = np.zeros((2, size + 1, last))
    table[:, 0] = h
    for s in range(1, size + 1):
        # Each step is good for one o less.
        before = table[:, s - 1, : last + 1 - s]
        table[:, s, : last - s] = p * before[:, 1:] + q * before[:, :-1]
    return table
