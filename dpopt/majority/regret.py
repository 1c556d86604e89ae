"""Least regret: the noise function whose largest regret over several priors is smallest.

Under prior j let b_j be the least expected error of a private noise function, and c_j that of a
fair coin. The regret of gamma is (error_j(gamma) - b_j) / c_j: its loss against the best one, in
units of the error of a coin. The largest regret over the priors is convex in gamma, so a linear
program minimises it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpopt import _checks
from dpopt._errors import ParameterError
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
