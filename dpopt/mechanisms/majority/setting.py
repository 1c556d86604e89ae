"""The setting of DaRRM: K private voters, and the privacy that their majority may spend."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Vector
from dpopt.privacy import Guarantee

_LARGEST_EXPONENT = 600.0

CORNERS = ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")
"""Names of the corners of a voter's polygon, first letter p, second p'; m stands for 1 - Delta."""


@dataclass(frozen=True)
class MajoritySetting:
    """K voters, each (epsilon, mechanism_delta)-private, and the target (m epsilon, delta).

    Attributes:
        mechanisms: K, odd.
        epsilon: of each voter, above 0.
        allowance: m, real, in (0, K].
        mechanism_delta: the paper's Delta, of each voter, in [0, 1).
        delta: of the majority, in [mechanism_delta, 1).
    """

    mechanisms: int
    epsilon: float
    allowance: float
    mechanism_delta: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        k = _checks.integer("mechanisms", self.mechanisms, 1)
        if k % 2 == 0:
            raise ParameterError(f"mechanisms is {k}; it must be odd, so that no vote is tied.")
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
                f"mechanism_delta is {voter:g} and delta {delta:g}; "
                "mechanism_delta must not exceed delta."
            )
        values = (k, epsilon, allowance, voter, delta)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def middle(self) -> int:
        """Smallest count of ones that is a majority, (K + 1) / 2; also the number of unknowns."""
        return (self.mechanisms + 1) // 2

    @property
    def guarantee(self) -> Guarantee:
        """The target: (m epsilon, delta)."""
        return Guarantee(self.allowance * self.epsilon, self.delta)

    @property
    def ratio(self) -> float:
        """e^(m epsilon)."""
        return math.exp(self.allowance * self.epsilon)

    @property
    def budget(self) -> float:
        """Right side of every privacy row: e^(m epsilon) - 1 + 2 delta."""
        return math.expm1(self.allowance * self.epsilon) + 2.0 * self.delta

    def corner(self, name: str) -> tuple[float, float]:
        """Return (p, p') of a corner of the voter's polygon (lemma 5.1)."""
        shift, r = self.mechanism_delta, math.exp(self.epsilon)
        value = {
            "0": 0.0,
            "1": 1.0,
            "D": shift,
            "m": 1.0 - shift,
            "b": (r + shift) / (r + 1.0),
            "c": (1.0 - shift) / (r + 1.0),
        }
        return value[name[0]], value[name[1]]

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return asdict(self)


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


def check_gamma(setting: MajoritySetting, gamma: npt.ArrayLike) -> Vector:
    """Return gamma on 0..K as an array, given on 0..K or on its upper half.

    Raises:
        ParameterError: for another shape, values outside [0, 1], or a gamma not symmetric.
    """
    array = np.array(gamma, dtype=float)
    k = setting.mechanisms
    if array.shape == (setting.middle,):
        array = full_gamma(array)
    if array.shape != (k + 1,):
        raise ParameterError(
            f"gamma has shape {array.shape}; it must be ({k + 1},) or ({setting.middle},)."
        )
    if not np.all((array >= 0.0) & (array <= 1.0)):
        raise ParameterError("gamma holds a value outside [0, 1]; noise levels must lie in it.")
    if not np.array_equal(array, array[::-1]):
        raise ParameterError("gamma is not symmetric; gamma(l) must equal gamma(K - l).")
    return array
