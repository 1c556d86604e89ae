"""Least regret: the noise function whose largest regret over several priors is smallest.

Under prior j let b_j be the least expected error of a private noise function, and c_j that of a
fair coin. The regret of gamma is (error_j(gamma) - b_j) / c_j: its loss against the best one, in
units of the error of a coin. The largest regret over the priors is convex in gamma, so a linear
program minimises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.majority.objectives import expected_error_weights
from dpopt.majority.priors import CommonPrior, Prior, UniformPrior, as_prior

REGRET_PRIORS = (
    UniformPrior(),
    CommonPrior(UniformPrior()),
    CommonPrior(UniformPrior(((0.8, 1.0),))),
)
"""The default priors of the objective "least-regret"."""


@dataclass(frozen=True)
class Regret:
    """The regret of a noise function under one of several priors.

    Attributes:
        prior: its text form.
        error: the expected error of the noise function, sum_l c_l (1 - gamma(l)) with the weights
            c of `expected_error_weights`.
        best: a lower bound on the expected error of every private noise function, from the dual
            solution of this prior's program.
        coin: the expected error of a fair coin, gamma = 0.
        regret: (error - best) / coin.
    """

    prior: str
    error: float
    best: float
    coin: float
    regret: float


@dataclass(frozen=True)
class PriorOptimum:
    """The least expected error under one prior, which regrets are measured against."""

    prior: str
    # The weights c of the expected error, shape ((K + 1) / 2,).
    linear: Vector
    # A lower bound on the expected error of every private noise function.
    best: float

    @classmethod
    def of(cls, prior: Prior, linear: Vector, bound: float) -> Self:
        """Return the optimum under a prior from an upper bound on ``linear @ gamma``."""
        # sum_l c_l (1 - gamma(l)) is least at gamma(l) = 1 for c_l > 0, else 0.
        least = float(np.sum(np.minimum(linear, 0.0)))
        return cls(str(prior), linear, max(float(np.sum(linear)) - bound, least))

    @property
    def coin(self) -> float:
        """The expected error of a fair coin."""
        return float(np.sum(self.linear))

    def regret(self, gamma: Vector) -> Regret:
        """Return the regret of gamma's upper half."""
        error = float(self.linear @ (1.0 - gamma))
        return Regret(self.prior, error, self.best, self.coin, (error - self.best) / self.coin)


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
    # An entry None becomes "", which is refused: `as_prior` takes None for the default prior.
    entries = [prior.strip() if isinstance(prior, str) else prior or "" for prior in listed]
    return tuple(map(as_prior, entries))


def linear_of(voters: int, prior: Prior) -> Vector:
    """Return the weights of the expected error under a prior that a regret is defined for."""
    linear = expected_error_weights(voters, prior).values
    # Least expected error of a fair coin that a regret is divided by.
    if float(np.sum(linear)) < 1e-9:
        raise ParameterError(
            f"priors holds {prior}, under which a fair coin has no expected error; it must hold "
            "priors under which it has one."
        )
    return linear
