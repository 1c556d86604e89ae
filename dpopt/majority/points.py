"""Priors that are not independent and alike: a common p, known ones, samples; and their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, brief, frozen
from dpopt.majority.prior import BetaPrior, Prior, UniformPrior

Sampler = Callable[[tuple[int, int], np.random.Generator], npt.ArrayLike]
"""Returns probabilities of a shape (draws, K)."""


@dataclass(frozen=True)
class CommonPrior:
    """p_1 = ... = p_K = p, with p from a law on [0, 1].

    Attributes:
        base: the law of p.
    """

    base: UniformPrior | BetaPrior

    def __post_init__(self) -> None:
        if not isinstance(self.base, UniformPrior | BetaPrior):
            raise ParameterError("prior's base must be a UniformPrior or a BetaPrior.")

    def __str__(self) -> str:
        """Return the form that `parse_prior` reads."""
        return f"common-{self.base}"

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest p."""
        return self.base.reach

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
        """Draw one p for each row and repeat it; for experiments, not private."""
        return np.broadcast_to(self.base.sample((shape[0], 1), rng), shape)


@dataclass(frozen=True)
class PointPrior:
    """Known probabilities.

    Attributes:
        p: one for all voters, or one for each.
    """

    p: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.p, float | int):
            object.__setattr__(self, "p", (self.p,))
        if not isinstance(self.p, tuple | list) or not self.p:
            raise ParameterError("prior has no p; give one for all voters, or one for each.")
        values = tuple(_checks.real("prior's p", value, 0.0, 1.0) for value in self.p)
        object.__setattr__(self, "p", values)

    def __str__(self) -> str:
        """Return the form that `parse_prior` reads."""
        return "point:" + ",".join(repr(value) for value in self.p)

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest p."""
        return min(self.p), max(self.p)

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:  # noqa: ARG002
        """Repeat the probabilities in each row.

        Raises:
            ParameterError: if their number is neither 1 nor K.
        """
        if len(self.p) not in (1, shape[1]):
            raise ParameterError(
                f"prior has {len(self.p)} probabilities; it must have 1 or {shape[1]}."
            )
        return np.broadcast_to(np.array(self.p), shape)


@dataclass(frozen=True, eq=False)
class SamplePrior:
    """Given samples of (p_1, ..., p_K): measured ones, or draws of any sampler.

    Attributes:
        samples: shape (draws, K), in [0, 1], at least two rows.
    """

    samples: Matrix

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        array = _table(self.samples)
        small = array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1
        if small or not np.all((array >= 0) & (array <= 1)):
            raise ParameterError(
                f"prior's samples have shape {array.shape}; they must have shape (draws, K) with "
                "at least two rows of numbers in [0, 1]."
            )
        object.__setattr__(self, "samples", frozen(array))

    @classmethod
    def draw(
        cls, sampler: Sampler, mechanisms: int, rng: np.random.Generator, draws: int = 100_000
    ) -> SamplePrior:
        """Return ``draws`` draws of any sampler, called with (draws, K) and the generator.

        Args:
            sampler: returns probabilities in [0, 1], of the shape that it is called with.
            mechanisms: K, at least 1.
            rng: the generator that it is called with.
            draws: number of rows, at least 2.

        Raises:
            ParameterError: if it returns another shape, or values outside [0, 1].
        """
        k = _checks.integer("mechanisms", mechanisms, 1)
        shape = (_checks.integer("draws", draws, 2), k)
        if not callable(sampler):
            raise ParameterError(
                f"sampler is {_checks.shown(sampler)}; it must be a function of shape and rng."
            )
        found = _table(sampler(shape, rng))
        if found.shape != shape:
            raise ParameterError(f"sampler returned shape {found.shape}; it must be {shape}.")
        return cls(found)

    @cached_property
    def _name(self) -> str:
        digest = sha256(np.ascontiguousarray(self.samples).tobytes()).hexdigest()[:16]
        return f"samples:{self.samples.shape[0]}x{self.samples.shape[1]}:{digest}"

    def __str__(self) -> str:
        """Return the size of the sample and a digest of it."""
        return self._name

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest p."""
        return float(self.samples.min()), float(self.samples.max())

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
        """Draw rows with replacement; for experiments, not private.

        Raises:
            ParameterError: if the samples are of another number of voters.
        """
        if shape[1] != self.samples.shape[1]:
            raise ParameterError(
                f"prior's samples are of {self.samples.shape[1]} voters; there are {shape[1]}."
            )
        return self.samples[rng.integers(0, self.samples.shape[0], shape[0])]


@dataclass(frozen=True)
class RecordedPrior:
    """The name of a prior whose samples were not saved with the design."""

    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @property
    def reach(self) -> tuple[float, float]:
        """All of [0, 1]."""
        return 0.0, 1.0

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:  # noqa: ARG002
        """Refuse: the samples are not here.

        Raises:
            ParameterError: always.
        """
        raise ParameterError(f"prior is {self.name}; its samples were not saved with the design.")


def _table(values: npt.ArrayLike) -> Matrix:
    """Return real numbers as a float array.

    Raises:
        ParameterError: if they are something else.
    """
    array = _checks.array("prior's samples", values)
    if array.dtype.kind not in "biuf":
        raise ParameterError(
            "prior's samples are not a table of numbers; it must have shape (draws, K)."
        )
    return array.astype(np.float64)


def as_prior(prior: object) -> Prior:
    """Return a prior: itself, the one that a text names, or U[0, 1] for None.

    Raises:
        ParameterError: for anything else.
    """
    if prior is None:
        return UniformPrior()
    if isinstance(prior, str):
        return parse_prior(prior)
    if isinstance(prior, type) or not isinstance(prior, Prior):
        raise ParameterError(f"prior is {_checks.shown(prior)}; it must be a prior, or its name.")
    return prior


def parse_prior(text: str) -> UniformPrior | BetaPrior | CommonPrior | PointPrior:
    """Read a prior from words.

    ``uniform:LOW,HIGH[,LOW,HIGH...]``, ``beta:A,B``, either with ``common-`` before it for a p
    that all voters share, or ``point:P[,P...]``.

    Raises:
        ParameterError: for any other form, or values out of range.
    """
    _checks.instance("prior", text, str)
    kind, _, rest = text.partition(":")
    if kind in ("common-uniform", "common-beta"):
        base = parse_prior(text.removeprefix("common-"))
        if isinstance(base, UniformPrior | BetaPrior):
            return CommonPrior(base)
    if kind == "uniform":
        return UniformPrior.parse(text)
    try:
        values = tuple(float(part) for part in rest.split(","))
    except ValueError:
        values = ()
    if kind == "beta" and len(values) == 2:
        return BetaPrior(*values)
    if kind == "point" and values:
        return PointPrior(values)
    raise ParameterError(
        f"prior is {_checks.shown(text)}; it must have the form uniform:LOW,HIGH[,LOW,HIGH], "
        "beta:A,B, common-uniform:LOW,HIGH, common-beta:A,B or point:P[,P]."
    )
