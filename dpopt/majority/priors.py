"""Priors of the voters' probabilities p_1, ..., p_K of saying 1, and their text forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from scipy.special import (
    betainc,
    betaln,
    gammaln,
    roots_jacobi,
    spherical_jn,
    xlog1py,
    xlogy,
)

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector, brief, frozen
from dpopt.prob import binomial_pmf

# Nodes of the Gauss-Jacobi quadrature at most, and the largest shape for which it is used.
_MOST_NODES, _LARGEST_SHAPE = 600, 100.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)


def _parsed(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the name and the numbers of a prior's text form, checked."""
    try:
        name, numbers = verify.voters_prior(text)
    except verify.Malformed:
        raise ParameterError(
            f"prior is {_checks.shown(text)}; it must have the form uniform:LOW,HIGH[,LOW,HIGH], "
            "with disjoint intervals in [0, 1], ascending; beta:A,B, with A and B in [1e-300, "
            "10000]; common- before either of these; or point:P[,P], with P in [0, 1]."
        ) from None
    return name, tuple(map(float, numbers))


@dataclass(frozen=True)
class UniformPrior:
    """p_1, ..., p_K independent, each uniform on a union of intervals.

    Attributes:
        intervals: disjoint (lower, upper) pairs in [0, 1], ascending, each of positive length.
    """

    intervals: tuple[tuple[float, float], ...] = ((0.0, 1.0),)

    def __post_init__(self) -> None:
        pairs = self.intervals
        if not isinstance(pairs, tuple | list) or any(np.shape(pair) != (2,) for pair in pairs):
            raise ParameterError(
                "prior's intervals must be at least one pair (lower, upper), such as (0, 1)."
            )
        ends = (tuple(_checks.real("prior's end", end) for end in pair) for pair in pairs)
        object.__setattr__(self, "intervals", tuple(ends))
        _parsed(str(self))

    def __str__(self) -> str:
        ends = (repr(end).removesuffix(".0") for pair in self.intervals for end in pair)
        return "uniform:" + ",".join(ends)

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest p."""
        return self.intervals[0][0], self.intervals[-1][1]

    @property
    def variation(self) -> float:
        """Bound v with |tilted(t)| <= v / t: the total variation of p f(p) and (1 - p) f(p)."""
        return 2 * len(self.intervals) / sum(b - a for a, b in self.intervals)

    @property
    def mean(self) -> float:
        """E p."""
        total = sum(b - a for a, b in self.intervals)
        return sum((b - a) * (a + b) / 2 for a, b in self.intervals) / total

    def binomial(self, trials: int, *, signed: bool = False) -> Vector:
        """Return E[Binomial(trials, p) pmf] on 0..trials, times sign(p - 1/2) if ``signed``."""
        ones, below = np.arange(trials + 1), -1.0 if signed else 1.0
        # (lower, upper, sign) of the intervals cut at 1/2, where the sign changes.
        pieces = [(a, min(b, 0.5), below) for a, b in self.intervals if a < 0.5]
        pieces += [(max(a, 0.5), b, 1.0) for a, b in self.intervals if b > 0.5]
        total = sum(b - a for a, b in self.intervals)
        pmf = np.zeros(trials + 1)
        for a, b, sign in pieces:
            # Length of an interval below which 48 Gauss-Legendre nodes replace a difference that
            # would cancel.
            if b - a < 0.02:
                # A difference of incomplete beta functions would lose its digits.
                pmfs = [binomial_pmf(trials, a + (b - a) * (x + 1) / 2) for x in _NODES]
                pmf += sign * (b - a) / 2 * (_NODE_WEIGHTS @ np.array(pmfs))
                continue
            integral = betainc(ones + 1, trials - ones + 1, b)
            integral -= betainc(ones + 1, trials - ones + 1, a)
            pmf += sign * integral / (trials + 1)
        return pmf / total

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Vector:
        """Draw independent p's; for experiments, not private."""
        lengths = np.array([b - a for a, b in self.intervals])
        # Put the intervals end to end, draw a point on them, and move it back to its interval.
        edges = np.concatenate([[0.0], np.cumsum(lengths)])
        u = rng.random(shape) * edges[-1]
        index = np.minimum(np.searchsorted(edges, u, side="right") - 1, lengths.size - 1)
        return np.array([a for a, _ in self.intervals])[index] + (u - edges[index])

    def tilted(self, t: Vector) -> tuple[np.ndarray, np.ndarray]:
        """Return E[p e^{it(p - 1/2)}] and E[(1 - p) e^{it(p - 1/2)}], shape of t."""
        total = sum(b - a for a, b in self.intervals)
        one, zero = np.zeros(t.shape, complex), np.zeros(t.shape, complex)
        for a, b in self.intervals:
            centre, radius = (a + b) / 2, (b - a) / 2
            # Fourier transforms of 1 and of p - centre on the interval: Bessel functions j0, j1.
            turn = np.exp(1j * t * (centre - 0.5)) * ((b - a) / total)
            flat = spherical_jn(0, radius * t)
            slope = 1j * radius * spherical_jn(1, radius * t)
            one += turn * (centre * flat + slope)
            zero += turn * ((1 - centre) * flat - slope)
        return one, zero


@dataclass(frozen=True)
class BetaPrior:
    """p_1, ..., p_K independent, each Beta(a, b).

    Attributes:
        a: from 1e-300 to 1e4; the density is proportional to p^(a-1) (1 - p)^(b-1).
        b: in the same range.
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            # Below about 6e-309 the beta function, whose logarithm is needed, overflows.
            value = _checks.real(f"prior's {name}", getattr(self, name), 1e-300, 1e4)
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"beta:{self.a!r},{self.b!r}"

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest p."""
        return 0.0, 1.0

    @property
    def mean(self) -> float:
        """E p."""
        return self.a / (self.a + self.b)

    @property
    def variation(self) -> float:
        """Bound v with |tilted(t)| <= v / t: twice the peak of each density; inf if unbounded."""
        if self.a < 1.0 or self.b < 1.0:
            return math.inf
        logs = []
        for a, b in ((self.a, self.b - 1), (self.a - 1, self.b)):
            # p^a (1 - p)^b is largest at a / (a + b).
            mode = a / (a + b)
            logs.append(xlogy(a, mode) + xlog1py(b, -mode))
        return 2 * math.exp(max(logs) - betaln(self.a, self.b))

    def within(self, terms_by_width: float) -> bool:
        """Whether `tilted` reaches t = 2 pi terms / width."""
        return (
            max(self.a, self.b) <= _LARGEST_SHAPE
            and 0.25 * 2 * math.pi * terms_by_width + 40 <= _MOST_NODES
        )

    def tilted(self, t: Vector) -> tuple[np.ndarray, np.ndarray]:
        """Return E[p e^{it(p - 1/2)}] and E[(1 - p) e^{it(p - 1/2)}], by Gauss's quadrature."""
        nodes = math.ceil(0.25 * float(np.max(t))) + 40
        x, weight = roots_jacobi(nodes, self.b - 1, self.a - 1)
        p, weight = (1 + x) / 2, weight / weight.sum()
        wave = np.exp(1j * np.multiply.outer(t, p - 0.5)) * weight
        return wave @ p, wave @ (1 - p)

    def binomial(self, trials: int, *, signed: bool = False) -> Vector:
        """Return E[Binomial(trials, p) pmf] on 0..trials, times sign(p - 1/2) if ``signed``."""
        ones = np.arange(trials + 1)
        log = gammaln(trials + 1) - gammaln(ones + 1) - gammaln(trials - ones + 1)
        log = log + betaln(ones + self.a, trials - ones + self.b) - betaln(self.a, self.b)
        below = betainc(ones + self.a, trials - ones + self.b, 0.5) if signed else 0.0
        return np.exp(log) * (1 - 2 * below)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Vector:
        """Draw independent p's; for experiments, not private."""
        return rng.beta(self.a, self.b, shape)


@dataclass(frozen=True)
class CommonPrior:
    """p_1 = ... = p_K = p, with p from a distribution on [0, 1].

    Attributes:
        base: the distribution of p.
    """

    base: UniformPrior | BetaPrior

    def __post_init__(self) -> None:
        if not isinstance(self.base, UniformPrior | BetaPrior):
            raise ParameterError("prior's base must be a UniformPrior or a BetaPrior.")

    def __str__(self) -> str:
        return f"common-{self.base}"

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
        """Draw one p for each row and repeat it; for experiments, not private."""
        return np.broadcast_to(self.base.sample((shape[0], 1), rng), shape)


IndependentPrior = UniformPrior | BetaPrior
"""p_1, ..., p_K independent and alike."""

DEFAULT_PRIOR = CommonPrior(UniformPrior())
"""One p for all voters, uniform on [0, 1]: they judge the same thing, of unknown difficulty."""


@dataclass(frozen=True)
class PointPrior:
    """Fixed probabilities p_1, ..., p_K.

    Attributes:
        p: one value for all voters, or K values, in [0, 1].
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
        return "point:" + ",".join(repr(value) for value in self.p)

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:  # noqa: ARG002
        """Repeat the probabilities in each row."""
        if len(self.p) not in (1, shape[1]):
            raise ParameterError(
                f"prior has {len(self.p)} probabilities; it must have 1 or {shape[1]}."
            )
        return np.broadcast_to(np.array(self.p), shape)


@dataclass(frozen=True, eq=False)
class SamplePrior:
    """Samples of (p_1, ..., p_K): measured, or drawn by a generator of your own.

    Attributes:
        samples: shape (draws, K), in [0, 1], at least two rows.
    """

    samples: Matrix

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        array = _checks.floats("prior's samples", self.samples)
        malformed = array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1
        if malformed or not np.all((array >= 0) & (array <= 1)):
            raise ParameterError(
                f"prior's samples have shape {array.shape}; they must have shape (draws, K) with "
                "at least two rows of numbers in [0, 1]."
            )
        object.__setattr__(self, "samples", frozen(array))

    @cached_property
    def _name(self) -> str:
        digest = sha256(np.ascontiguousarray(self.samples).tobytes()).hexdigest()[:16]
        return f"samples:{self.samples.shape[0]}x{self.samples.shape[1]}:{digest}"

    def __str__(self) -> str:
        return self._name

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
        """Draw rows with replacement; for experiments, not private."""
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
        return self.name

    def sample(self, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:  # noqa: ARG002
        """Raise `ParameterError`: the samples were not saved."""
        raise ParameterError(f"prior is {self.name}; its samples were not saved with the design.")


REGRET_PRIORS = (
    UniformPrior(),
    CommonPrior(UniformPrior()),
    CommonPrior(UniformPrior(((0.8, 1.0),))),
)
"""The default priors of the objective "least-regret"."""

Prior = UniformPrior | BetaPrior | CommonPrior | PointPrior | SamplePrior | RecordedPrior
"""A distribution of (p_1, ..., p_K)."""

PriorLike = Prior | str
"""A prior, or its name."""


def parse_prior(prior: object) -> Prior:
    """Return a prior from an object or its text form; None gives one p for all, on [0, 1].

    The text form is ``uniform:LOW,HIGH[,LOW,HIGH...]``, ``beta:A,B``, either with ``common-``
    before it for a p that all voters share, or ``point:P[,P...]``. The name of samples, as in a
    file, gives a prior that cannot be sampled.

    Raises:
        ParameterError: for any other form, or values out of range.
    """
    if prior is None:
        return DEFAULT_PRIOR
    if isinstance(prior, Prior):
        return prior
    if not isinstance(prior, str):
        raise ParameterError(f"prior is {_checks.shown(prior)}; it must be a prior, or its name.")
    name, values = _parsed(prior)
    if name == "samples":
        return RecordedPrior(prior)
    if name == "point":
        return PointPrior(values)
    if name.endswith("beta"):
        base = BetaPrior(*values)
    else:
        base = UniformPrior(tuple(zip(values[::2], values[1::2], strict=True)))
    return CommonPrior(base) if name.startswith("common-") else base


def several_priors(priors: object) -> tuple[Prior, ...] | None:
    """Return priors from a sequence of objects or text forms, or from one text separated by ;."""
    if priors is None:
        return None
    listed = priors.split(";") if isinstance(priors, str) else priors
    if not isinstance(listed, list | tuple) or len(listed) < 2:
        raise ParameterError(
            f"priors is {_checks.shown(priors)}; it must hold at least two priors, "
            "or their names with ; between them."
        )
    # An entry None becomes "", which is refused: `parse_prior` takes None for the default prior.
    entries = [prior.strip() if isinstance(prior, str) else prior or "" for prior in listed]
    return tuple(map(parse_prior, entries))
