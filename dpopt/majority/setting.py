"""The setting of DaRRM: K private voters, and the privacy that their majority may spend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import MOST_BITS, digits, exact_rational, exact_text, float_up
from dpopt._types import Json, Vector
from dpopt.privacy import Guarantee
from dpopt.privacy.exponential import exp_lower, exp_upper, log_upper, rational

_LARGEST_EXPONENT = 600.0
_ROUNDING = 1e-15

CORNERS = ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")
"""Names of the corners of a voter's polygon, first letter p, second p'; m stands for 1 - Delta."""


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


@dataclass(frozen=True)
class MajoritySetting:
    """K voters, each (epsilon, mechanism_delta)-private, and the target (m epsilon, delta).

    Attributes:
        mechanisms: K, odd.
        epsilon: of each voter, above 0; with groups, of the least private one.
        allowance: m, real, in (0, K].
        mechanism_delta: the paper's Delta, of each voter, in [0, 1); with groups, the largest.
        delta: of the majority, in [mechanism_delta, 1).
        groups: voters of different privacy, see `of_groups`; empty if all are alike.
        voter_ratio: e^epsilon as a rational, if it is one: epsilon is then its logarithm, up to
            rounding, the allowance a whole number, and every proof is about voter_ratio^m.
    """

    mechanisms: int
    epsilon: float
    allowance: float
    mechanism_delta: float = 0.0
    delta: float = 0.0
    groups: tuple[VoterGroup, ...] = ()
    voter_ratio: Fraction | None = None

    def __post_init__(self) -> None:
        k = odd(self.mechanisms)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        allowance = _checks.real("allowance", self.allowance, 0.0, k, open_lower=True)
        if max(allowance, 1.0) * epsilon > _LARGEST_EXPONENT:
            raise ParameterError(
                f"epsilon is {epsilon} and allowance {allowance}; "
                f"epsilon and their product must be at most {_LARGEST_EXPONENT:g}."
            )
        voter = _checks.real("mechanism_delta", self.mechanism_delta, 0.0, 1.0, open_upper=True)
        delta = _checks.real("delta", self.delta, 0.0, 1.0, open_upper=True)
        if voter > delta:
            raise ParameterError(
                f"mechanism_delta is {digits(voter)} and delta {digits(delta)}; "
                "mechanism_delta must not exceed delta."
            )
        groups = self.groups
        if not isinstance(groups, tuple | list) or not all(
            isinstance(group, VoterGroup) for group in groups
        ):
            raise ParameterError("groups must be a tuple of VoterGroup; use of_groups.")
        ratio = self._exact_ratio(epsilon, allowance)
        values = (k, epsilon, allowance, voter, delta, tuple(groups), ratio)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)
        if self.groups and self != self._of(self.groups, allowance, delta):
            raise ParameterError(
                "groups disagree with mechanisms, epsilon or mechanism_delta, which must be their "
                "number of voters and their largest epsilon and Delta; use of_groups."
            )

    def _exact_ratio(self, epsilon: float, allowance: float) -> Fraction | None:
        """Return the rational e^epsilon, checked; None if there is none."""
        if self.voter_ratio is None:
            return None
        ratio = rational("voter_ratio", self.voter_ratio)
        # The ratio and its logarithm were both rounded to floats.
        room = Fraction(2 * math.ulp(max(epsilon, 1.0)))
        low, high = Fraction(epsilon) - room, Fraction(epsilon) + room
        if not exp_lower(low) <= ratio <= exp_upper(high) or ratio <= 1:
            raise ParameterError(
                f"voter_ratio is {_checks.shown(ratio)}; it must be above 1, and epsilon, "
                f"{epsilon!r}, its logarithm."
            )
        if allowance != int(allowance) or self.groups:
            raise ParameterError(
                f"voter_ratio is {_checks.shown(ratio)} with allowance {digits(allowance)} and "
                f"{len(self.groups)} groups; it takes a whole number, and voters that are alike."
            )
        if allowance * ratio.numerator.bit_length() > MOST_BITS:
            raise ParameterError(
                f"voter_ratio is {_checks.shown(ratio)}; its power {allowance:g} must have at most "
                f"{MOST_BITS:,} bits."
            )
        return ratio

    @classmethod
    def of_groups(
        cls, groups: Iterable[VoterGroup | tuple[float, ...]], allowance: float, delta: float = 0.0
    ) -> MajoritySetting:
        """Return the setting of voters of different privacy.

        Args:
            groups: `VoterGroup`, or (size, epsilon) or (size, epsilon, Delta); sizes sum to K.
            allowance: m; the majority may spend m times the largest epsilon.
            delta: of the majority, at least the largest Delta.

        Raises:
            ParameterError: for parameters out of range.
        """
        found = []
        listed = isinstance(groups, Iterable) and getattr(groups, "ndim", 1) > 0
        if isinstance(groups, str) or not listed:
            raise ParameterError(
                f"groups is {_checks.shown(groups)}; it must hold groups of voters."
            )
        for group in groups:
            sized = isinstance(group, tuple | list) and 2 <= len(group) <= 3
            if not isinstance(group, VoterGroup) and not sized:
                raise ParameterError(
                    f"groups holds {_checks.shown(group)}; it must hold (size, epsilon) or "
                    "(size, epsilon, mechanism_delta)."
                )
            found.append(group if isinstance(group, VoterGroup) else VoterGroup(*group))  # type: ignore[arg-type]
        if not found:
            raise ParameterError("groups is empty; it must hold at least one group of voters.")
        same: dict[tuple[float, float], int] = {}
        for group in found:
            key = (group.epsilon, group.mechanism_delta)
            same[key] = same.get(key, 0) + group.size
        merged = [VoterGroup(size, *key) for key, size in same.items()]
        if len(merged) > 1:
            return cls._of(tuple(merged), allowance, delta)
        only = merged[0]
        return cls(only.size, only.epsilon, allowance, only.mechanism_delta, delta)

    @classmethod
    def _of(cls, groups: tuple[VoterGroup, ...], allowance: float, delta: float) -> MajoritySetting:
        blank = cls(
            sum(group.size for group in groups),
            max(group.epsilon for group in groups),
            allowance,
            max(group.mechanism_delta for group in groups),
            delta,
        )
        object.__setattr__(blank, "groups", groups)
        return blank

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
        found = []
        for kind in kinds:
            for place, group in enumerate(self.voters):
                if kind == kinds[-1] or group.mechanism_delta > 0.0:
                    tag = f"@{place + 1}" if self.groups else ""
                    names = kind[0] + tag, kind[1] + tag
                    found.append(Axis(place, names, self.corner(names[0])))
        return tuple(found)

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
        found = []
        for group in self.voters:
            shift, r = group.mechanism_delta, math.exp(group.epsilon)
            b, c = (r + shift) / (r + 1.0), (1.0 - shift) / (r + 1.0)
            found.append({"0": 0.0, "1": 1.0, "D": shift, "m": 1.0 - shift, "b": b, "c": c})
        return tuple(found)

    def to_dict(self) -> Json:
        """Return the parameters as plain values; groups and voter_ratio only if there are any."""
        plain = asdict(self)
        plain["groups"] = [list(asdict(group).values()) for group in self.groups]
        plain["voter_ratio"] = self.voter_ratio and exact_text(self.voter_ratio)
        optional = ("groups", "voter_ratio")
        return {name: value for name, value in plain.items() if value or name not in optional}

    @classmethod
    def from_dict(cls, plain: Json) -> MajoritySetting:
        """Return the setting that `to_dict` wrote.

        Raises:
            ParameterError: for parameters out of range.
            TypeError: for missing or unknown ones.
            ValueError: for a voter_ratio that is no rational.
        """
        groups = tuple(VoterGroup(*group) for group in plain.get("groups", ()))
        stated = plain.get("voter_ratio")
        ratio = None if stated is None else exact_rational(stated)
        return cls(**{**plain, "groups": groups, "voter_ratio": ratio})


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


def check_gamma(setting: MajoritySetting, gamma: npt.ArrayLike) -> Vector:
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
