"""The voters, targets and curves of DaRRM's figures of noise functions, and their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

import dpopt
from dpopt import ParameterError, majority
from dpopt._types import Vector
from dpopt.privacy import Guarantee, general_composition
from experiments import drawing
from experiments.parameters import Count, Seed, Several, configuration
from experiments.registry import Cell


def pmf_words(prior: str) -> str:
    """Return how a distribution of the p_i is written: "U[0, 1]" for "uniform:0,1"."""
    pmf = majority.parse_prior(prior)
    if isinstance(pmf, majority.CommonPrior):
        return f"{pmf_words(str(pmf.base))}, one p for all"
    if isinstance(pmf, majority.UniformPrior):
        parts = [f"[{_ends(pair)}]" for pair in pmf.intervals]
        return "U" + " or ".join(parts)
    if isinstance(pmf, majority.BetaPrior):
        return f"Beta({_ends((pmf.a, pmf.b))})"
    return f"p = {_ends(pmf.p)}" if isinstance(pmf, majority.PointPrior) else str(pmf)


def under(prior: str) -> str:
    """Return "p ~ U[0, 1]" for the axis of a figure, or "p = .5"."""
    words = pmf_words(prior)
    return rf"$p$ = {words[4:]}" if words.startswith("p = ") else rf"$p \sim$ {words}"


def _ends(values: Sequence[float]) -> str:
    """Return numbers without the zero before their point."""
    return ", ".join(f"{value:g}".removeprefix("0") or "0" for value in values)


def whole(value: float) -> float:
    """Return a whole number as an integer, so that tables and panels show 3 and not 3.0."""
    return int(value) if float(value).is_integer() else float(value)


def harmonic(voters: int) -> Vector:
    """Return gamma(l) = 1 / |2 l - K| on 0..K, which is epsilon-DP at m = 1."""
    return 1.0 / np.abs(2.0 * np.arange(voters + 1) - voters)


def shape_rows(where: Mapping[str, Cell], gamma: Vector) -> list[dict[str, Cell]]:
    """Return a row of a table for each number of ones: its gamma(l), beside what tells it apart."""
    return [{**where, "l": ones, "gamma": float(value)} for ones, value in enumerate(gamma)]


def printed_constant(setting: dpopt.Majority, whole: Guarantee) -> float:
    """Return the right side of (4) in lemma A.1, infinite if its denominator is not above 0."""
    grown, r = float(np.exp(whole.epsilon)), setting.ratio
    loss = 2.0 * (grown - r + (1.0 + r) * whole.delta) / (grown + 1.0) + r - 1.0
    return setting.budget / loss if loss > 0.0 else float("inf")


CURVES: drawing.Looks = {
    "mean": ("LP, expected error", drawing.line("optimum")),
    "surrogate": ("LP, the paper's objective", drawing.line("paper")),
    "double": ("double subsampling", drawing.line("baseline-2")),
    "subsampling": ("subsampling", drawing.line("baseline")),
    "constant": ("randomised response", drawing.line("noise")),
}
PAPER_PRIOR = "uniform:0,1"

Curve = Literal["mean", "surrogate", "double", "subsampling", "constant"]


@dataclass(frozen=True)
class Target:
    """The privacy target of the majority, and the baselines' parameters for it.

    Attributes:
        at: position on the figure's horizontal axis, and name of the panel.
        allowance: m.
        delta: of the majority.
        sample: number of voters that subsampling draws; 0 if not even one may be drawn.
        tau: the majority is (tau epsilon, lam)-DP by composition; None for simple composition.
        lam: the delta of that bound; None likewise.
    """

    at: float
    allowance: float
    delta: float
    sample: int
    tau: float | None = None
    lam: float | None = None


def settings_within(
    voters: int, epsilon: float, allowances: Sequence[float], voter_delta: float
) -> list[dpopt.Majority]:
    """Return the settings of one K with each m up to it, delta = m Delta."""
    within = [m for m in allowances if m <= voters] or allowances
    return [dpopt.Majority(voters, epsilon, m, voter_delta, m * voter_delta) for m in within]


@configuration
class Voters(ABC):
    """What every figure of noise functions has.

    Attributes:
        voters: K, the number of voters; odd.
        epsilon: of each voter, in nats.
        voter_delta: Delta, of each voter.
        prior: the distribution of the p_i under which errors are expected and sampled, and for
            which the expected error is minimised: uniform:LOW,HIGH, beta:A,B or point:P, such as
            beta:2,2; common-uniform:LOW,HIGH and common-beta:A,B for one p of all voters.
        curves: noise functions to draw, of mean (the expected error); surrogate; double;
            subsampling; constant; none takes all that apply.
        draws: of (p_1, ..., p_K) for each sampled error.
        repeats: sampled errors, whose mean and standard deviation are drawn.
        seed: of all draws.
    """

    _: KW_ONLY
    voters: int
    epsilon: float
    voter_delta: float
    prior: str = PAPER_PRIOR
    curves: Several[Curve] | None = None
    draws: Count = 10_000
    repeats: Annotated[int, Ge(2)] = 10
    seed: Seed = 2

    def __post_init__(self) -> None:
        if "double" in self.drawn and self.voter_delta > 0.0:
            raise ParameterError(
                f"voter_delta is {self.voter_delta:g}; it must be 0 for the curve "
                "'double', as theorem 4.1 requires."
            )

    @property
    @abstractmethod
    def targets(self) -> tuple[Target, ...]:
        """The privacy target of the majority in each panel."""

    @property
    def drawn(self) -> tuple[str, ...]:
        """The curves of the figure: double subsampling is for pure differential privacy only."""
        if self.curves is not None:
            return self.curves
        sampled = min(target.sample for target in self.targets) > 0
        curves: dict[str, bool] = dict.fromkeys(CURVES, True)
        curves |= {"double": sampled and self.voter_delta == 0.0, "subsampling": sampled}
        return tuple(curve for curve, applies in curves.items() if applies)

    def setting(self, target: Target) -> dpopt.Majority:
        """Return the voters with one of the targets, and the distribution of the p_i."""
        return dpopt.Majority(
            self.voters,
            self.epsilon,
            target.allowance,
            self.voter_delta,
            target.delta,
            prior=majority.parse_prior(self.prior),
        )


@configuration
class Config(Voters):
    """Parameters of a figure whose target is (m epsilon, delta); see `Voters`.

    Attributes:
        allowance: m for each panel, in (0, K]; subsampling draws M voters, the most whose
            (M epsilon, 1 - (1 - Delta)^M) is within the target: m rounded down, unless delta is
            less than the delta of m voters.
        delta: of the majority, in every panel; none takes 1 - (1 - Delta)^m for each m, and
            Delta where m < 1.
    """

    _: KW_ONLY
    allowance: Several[float]
    delta: float | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """(m epsilon, delta) for each m."""
        targets = []
        for m in self.allowance:
            least = _union(self.voter_delta, max(1.0, m))
            delta = least if self.delta is None else self.delta
            sizes = range(1, int(min(m, self.voters)) + 1)
            within = [M for M in sizes if _union(self.voter_delta, M) <= delta]
            targets.append(Target(whole(m), float(m), delta, max(within, default=0)))
        return tuple(targets)


@configuration
class Composed(Voters):
    """Parameters of a figure whose target is the privacy cost of M sampled voters; see `Voters`.

    Attributes:
        samples: M for each panel, in 1..K: the target is that of theorem 2.3, general composition,
            for M voters.
        slack: delta' of that theorem.
    """

    _: KW_ONLY
    samples: Several[Count]
    slack: float

    @property
    def targets(self) -> tuple[Target, ...]:
        """Cost of the majority of M subsampled voters by general composition (D.1.1)."""
        voter = Guarantee(self.epsilon, self.voter_delta)
        every, *spent = (
            general_composition(voter, size, self.slack) for size in (self.voters, *self.samples)
        )
        # Simple composition is among the terms: no rounding may lift m or tau above it.
        tau = min(every.epsilon / self.epsilon, self.voters)
        return tuple(
            Target(size, min(one.epsilon / self.epsilon, size), one.delta, size, tau, every.delta)
            for size, one in zip(self.samples, spent, strict=True)
        )


def _union(voter_delta: float, count: float) -> float:
    """Return 1 - (1 - Delta)^count; a Delta out of its range is refused later."""
    if not 0.0 < voter_delta < 1.0:
        return 0.0
    return -float(np.expm1(count * np.log1p(-voter_delta)))
