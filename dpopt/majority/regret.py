"""Least regret: one noise function that loses little under each of several priors.

Every prior j has a best error b_j, the least that a private noise function has under it, and the
error c_j of a fair coin. The regret of gamma under it is (error_j(gamma) - b_j) / c_j: what gamma
loses to the best one, as a share of what a coin loses to the truth. The largest regret over the
priors is convex in gamma, so one program finds the gamma of which it is smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.majority.objectives import expected_error_weights
from dpopt.majority.priors import CommonPrior, Prior, UniformPrior, as_prior
from dpopt.privacy import Problem

HEDGED = (UniformPrior(), CommonPrior(UniformPrior()), CommonPrior(UniformPrior(((0.8, 1.0),))))
"""The priors of a least regret if none are given."""

# A coin whose error is below this is no measure of a loss.
_LEAST_COIN = 1e-9


@dataclass(frozen=True)
class Regret:
    """What a noise function loses under one of several priors.

    Attributes:
        prior: its name.
        error: the expected error of the noise function, sum_l c_l (1 - gamma(l)) with the weights
            c of `expected_error_weights`.
        best: no private noise function has a smaller one; from the dual vector of its own program.
        coin: the expected error of a fair coin, gamma = 0.
        regret: (error - best) / coin.
    """

    prior: str
    error: float
    best: float
    coin: float
    regret: float


@dataclass(frozen=True)
class Yardstick:
    """What a noise function is measured against under one prior.

    Attributes:
        prior: its name.
        linear: the weights c of its expected error, shape ((K + 1) / 2,).
        best: no private noise function has a smaller expected error.
    """

    prior: str
    linear: Vector
    best: float

    @classmethod
    def of(cls, prior: Prior, linear: Vector, bound: float) -> Self:
        """Return that of a prior, from a bound on ``linear @ gamma`` of private gammas.

        The bound's rounding is not let below the error of a gamma that has no noise.
        """
        least = float(np.sum(np.minimum(linear, 0.0)))
        return cls(str(prior), linear, max(float(np.sum(linear)) - bound, least))

    @property
    def coin(self) -> float:
        """The expected error of a fair coin."""
        return float(np.sum(self.linear))

    def regret(self, gamma: Vector) -> Regret:
        """Return what gamma's upper half loses."""
        error = float(self.linear @ (1.0 - gamma))
        return Regret(self.prior, error, self.best, self.coin, (error - self.best) / self.coin)


def hedged(priors: object) -> tuple[Prior, ...] | None:
    """Return several priors from objects, their names, or one text with ";" between the names."""
    if priors is None:
        return None
    listed = priors.split(";") if isinstance(priors, str) else priors
    if not isinstance(listed, list | tuple) or len(listed) < 2:
        raise ParameterError(
            f"priors is {_checks.shown(priors)}; it must hold at least two priors, "
            "or their names with ; between them."
        )
    # None would be the default prior.
    named = [prior.strip() if isinstance(prior, str) else prior or "" for prior in listed]
    return tuple(map(as_prior, named))


def linear_of(voters: int, prior: Prior) -> Vector:
    """Return the weights of the expected error under one of several priors."""
    linear = expected_error_weights(voters, prior).values
    if float(np.sum(linear)) < _LEAST_COIN:
        raise ParameterError(
            f"priors holds {prior}, under which a fair coin has no expected error; it must hold "
            "priors under which it has one."
        )
    return linear


def with_regrets(
    problem: Problem, yardsticks: tuple[Yardstick, ...], seen: Callable[[Vector], Vector]
) -> None:
    """Add the variable "regret", its row for each prior, and the objective to a program of gamma.

    Args:
        problem: with the variable "gamma" and its privacy rows.
        yardsticks: of the priors.
        seen: returns weights as a solver is to see them, at least their own: so the rows ask for no
            more than the priors do, and the bound is one of the true program.
    """
    problem.add_variables("regret", 1, lower=0.0, upper=1.0)
    coins = np.array([yardstick.coin for yardstick in yardsticks])
    bests = np.array([yardstick.best for yardstick in yardsticks])
    rows = np.array([seen(yardstick.linear) for yardstick in yardsticks]) / coins[:, None]
    problem.add_rows(
        "priors", {"gamma": rows, "regret": np.ones((len(rows), 1))}, lower=1.0 - bests / coins
    )
    problem.maximise({"regret": -1.0, "gamma": np.zeros(rows.shape[1])})
    problem.set_inside({"gamma": 0.0, "regret": 1.0}, slack=1.0)
