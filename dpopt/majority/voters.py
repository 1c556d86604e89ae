"""The voters: their privacy polygon, the inputs of their table, and noise functions.

An (epsilon, Delta)-private voter says 1 with p on one data set and p' on its neighbour, and (p, p')
lies in a polygon of up to eight corners (lemma 5.1 of the DaRRM paper). It suffices to check the
majority's privacy with every voter at a corner; see `dpopt.majority.program`. The paper calls the
voters mechanisms.

The majority treats 0 and 1 alike. So its table has one row for each number of votes for the
majority, with the probabilities of the majority's answer and of the other one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector, frozen
from dpopt.ballots.choice import PrivateVoters, count_queries
from dpopt.table import Inputs, Table

CORNERS = ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")
"""Names of the corners of a voter's polygon: p, then p'; D is Delta, m is 1 - Delta."""

Counts = tuple[tuple[str, int], ...]
"""How many voters sit at which corner, such as (("bc", 3), ("11", 8))."""


def odd(voters: object) -> int:
    """Return the number of voters K, checked to be odd."""
    k = _checks.integer("voters", voters, 1)
    if k % 2 == 0:
        raise ParameterError(f"voters is {k}; it must be odd, so that no vote is tied.")
    return k


@dataclass(frozen=True, eq=False, repr=False)
class Votes(Inputs):
    """The votes of K voters, up to exchanging the labels 0 and 1.

    A row is the number of votes for the majority, (K + 1) / 2..K; its variables are the
    probabilities of the majority's answer and of the other one. Neighbours are not pairs of rows:
    they are distributions of votes, which depend on the voters (see `Voters`).
    """

    voters: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys mean equal inputs and variables."""
        return "votes", self.voters

    @property
    def inputs(self) -> int:
        """The number of inputs, K + 1: the ones among the votes are 0..K."""
        return self.voters + 1

    @property
    def outputs(self) -> int:
        """The number of outputs, 2: the labels 0 and 1."""
        return 2

    @cached_property
    def rows(self) -> IntVector:
        """The row of each variable: the votes for the majority, less (K + 1) / 2."""
        # Two variables for each of the (K + 1) / 2 rows.
        return np.repeat(np.arange(self.inputs // 2), 2)

    @cached_property
    def counts(self) -> IntVector:
        """Each variable is one label."""
        return np.ones(self.inputs, dtype=np.int64)

    def located(self, data: Any) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return the number of ones of each query, and whether the data are a single query."""
        counts, single = count_queries(data, self.voters, 2)
        return counts[:, 1], single

    def rows_of(self, located: IntVector) -> IntVector:
        """Return the row of each query: the votes for the majority, less (K + 1) / 2."""
        return np.maximum(located, self.voters - located) - self.inputs // 2

    def variables_of(self, located: IntVector) -> IntVector:
        """Return the variables of the labels 0 and 1, shape (queries, 2)."""
        # Variable 2 r is the majority's answer of row r, 2 r + 1 the other one.
        label = (2 * located > self.voters)[:, None]
        return 2 * self.rows_of(located)[:, None] + (np.arange(2) != label)

    def chosen(self, located: IntVector, variables: IntVector, index: IntVector) -> IntVector:
        """Return the label of each drawn variable."""
        del index
        return (2 * located > self.voters) ^ (variables % 2)

    def claim(self) -> str:
        """Return the claim that a proof of such a table makes."""
        return "DaRRM with this gamma is private for all voters (reduced corner set)"

    def words(self, first: int, second: int) -> tuple[str, str, str]:
        """Return the votes of two variables, and the label of the first, in words."""
        votes = [f"{self.inputs // 2 + v // 2} of {self.voters} alike" for v in (first, second)]
        return votes[0], votes[1], "the other label" if first % 2 else "their label"


class Voters(PrivateVoters):
    """Quantities derived from the parameters of a `Majority`: corners, target, budget."""

    contrary: bool

    @property
    def middle(self) -> int:
        """The smallest majority, (K + 1) / 2; also the number of variables gamma(l)."""
        return (self.voters + 1) // 2

    @property
    def least(self) -> float:
        """Lower bound of gamma: 0, or -1 if ``contrary``."""
        return -1.0 if self.contrary else 0.0

    @property
    def domain(self) -> Votes:
        """The inputs: numbers of votes for the majority."""
        return Votes(self.voters)

    @property
    def ratio(self) -> float:
        """e^(m epsilon)."""
        return math.exp(self.allowance * self.epsilon)

    @property
    def budget(self) -> float:
        """Right-hand side of every privacy row: e^(m epsilon) - 1 + 2 delta."""
        return math.expm1(self.allowance * self.epsilon) + 2.0 * self.delta

    def corner(self, name: str) -> tuple[float, float]:
        """Return (p, p') of a corner of a voter's polygon (lemma 5.1).

        Its name is two of 0, 1, D, m, b and c: p, then p'; not only those in `CORNERS`. Here
        b = (e^epsilon + Delta) / (e^epsilon + 1) and c = 1 - b.
        """
        delta, exp_epsilon = self.voter_delta, math.exp(self.epsilon)
        b, c = (exp_epsilon + delta) / (exp_epsilon + 1.0), (1.0 - delta) / (exp_epsilon + 1.0)
        values = {"0": 0.0, "1": 1.0, "D": delta, "m": 1.0 - delta, "b": b, "c": c}
        return values[name[0]], values[name[1]]


def require_voters(setting: object) -> None:
    """Raise `ParameterError` unless the setting is a `Majority`."""
    if not isinstance(setting, Voters):
        raise ParameterError(f"setting is {_checks.shown(setting)}; it must be a Majority.")


def reduced_size(setting: Voters) -> int:
    """Return the number of multisets of corners that the reduction theorem leaves to check.

    (K + 1)^2 for Delta = 0, else C(K+4, 4) + 3 C(K+3, 4) + 3 C(K+2, 4) + C(K+1, 4).
    """
    require_voters(setting)
    k = setting.voters
    if setting.voter_delta == 0.0:
        return (k + 1) ** 2
    return sum(factor * math.comb(k + 4 - n, 4) for n, factor in enumerate((1, 3, 3, 1)))


# --- noise functions -----------------------------------------------------------------------------


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


def noise_levels(gamma: Vector, least: float = 0.0, noise: float = 1e-15) -> Vector:
    """Return gamma clipped to [least, 1]; refuse values outside it by more than some noise."""
    if not np.all((gamma >= least - noise) & (gamma <= 1.0 + noise)):
        raise ParameterError(
            f"gamma holds a value outside [{least:g}, 1]; noise levels must lie in it."
        )
    return np.clip(gamma, least, 1.0)


def check_gamma(setting: Voters, gamma: npt.ArrayLike, noise: float = 0.0) -> Vector:
    """Return gamma on 0..K, checked; it may be given on 0..K or on its upper half.

    A solver's noise, in the symmetry or outside the interval, is removed.
    """
    array, k = _checks.floats("gamma", gamma), setting.voters
    if array.shape == (setting.middle,):
        array = full_gamma(array)
    if array.shape != (k + 1,):
        raise ParameterError(
            f"gamma has shape {array.shape}; it must be ({k + 1},) or ({setting.middle},)."
        )
    array = noise_levels(array, setting.least, max(noise, 1e-15))
    if np.any(np.abs(array - array[::-1]) > 2 * noise):
        raise ParameterError("gamma is not symmetric; gamma(l) must equal gamma(K - l).")
    return 0.5 * (array + array[::-1])


def table_of(setting: Voters, upper: Vector, bits: int) -> Table:
    """Return gamma's upper half as a table, rounded down to multiples of 2^(1 - bits)."""
    # The probabilities (1 + gamma) / 2 and (1 - gamma) / 2 are half + w and half - w over 2 half.
    half = 1 << bits - 1
    levels = [math.floor(Fraction(value) * half) for value in upper.tolist()]
    weights = (weight for w in levels for weight in (half + w, half - w))
    return Table(setting.domain, tuple(weights), 2 * half)


def gamma_of(table: Table) -> Vector:
    """Return gamma's upper half from a table: Pr[majority's answer] - Pr[the other one]."""
    pairs = zip(table.weights[::2], table.weights[1::2], strict=True)
    return frozen([(one - other) / table.total for one, other in pairs])
