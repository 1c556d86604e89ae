"""The sampling-histogram with exponential-mechanism noise, and what it guarantees (App. A.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Matrix
from dpopt.lp import Solution
from dpopt.privacy import Problem
from dpopt.prob.histograms import checked_histograms, histogram_count, histograms, replacements
from dpopt.shape import Answer, Question, made
from dpopt.smoothed.mechanisms import (
    LARGEST_ENTRIES,
    AnonymousMechanism,
    DrawnHistogram,
    SamplingHistogram,
    settle,
)
from dpopt.smoothed.profile import Asked, general_epsilon
from dpopt.smoothed.program import LARGEST_PROGRAM, ratio_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_EPSILON = 600.0
_LARGEST_RATIO = 1e15
# Below, the logarithm of a ratio of listed probabilities keeps fewer than about eleven digits.
_LEAST_LISTED = 1e-4


@dataclass(frozen=True)
class NoisyHistogram(AnonymousMechanism):
    """Draw T of n records, publish y with weight e^(-epsilon/4 |hist - y|_1) (Algorithm 4).

    y runs over vectors of integers of at least 0, so that each coordinate of the noise is
    independent: with r = e^(-epsilon/4), Pr[y | h] = r^|h - y| / Z(h), Z(h) = (1 + r - r^(h+1)) /
    (1 - r). A drawn count is at most T; from y = T on the law falls by the factor r whatever h,
    so the outputs y >= T of a coordinate are merged into one: the ratio of two databases is the
    same on all of them, and no divergence changes.

    Attributes:
        records: n.
        drawn: T, from 1 to n, without replacement.
        epsilon: of the noise, above 0 and at most 600; the noise level is 1 / epsilon.
        categories: m, at least 2.
    """

    records: int
    drawn: int
    epsilon: float
    categories: int = 2
    word: ClassVar[str] = "noisy-histogram"

    def __post_init__(self) -> None:
        sampling = SamplingHistogram(self.records, self.drawn, self.categories)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, _LARGEST_EPSILON, open_lower=True)
        n, drawn, m = sampling.records, sampling.drawn, sampling.categories
        settle(self, records=n, drawn=drawn, epsilon=epsilon, categories=m)

    @property
    def outputs(self) -> int:
        """(T + 1)^m: each coordinate is 0, ..., T - 1, or T and more; of m > 64, that of 64."""
        # More than anybody lists; a power of 10^12 categories would take for ever to be written.
        return (self.drawn + 1) ** min(self.categories, 64)

    @property
    def sampling(self) -> SamplingHistogram:
        """The mechanism before the noise."""
        return SamplingHistogram(self.records, self.drawn, self.categories)

    @cached_property
    def _noise(self) -> tuple[DrawnHistogram, Matrix]:
        """Return the drawn histogram and Pr[y | h], shape (drawn histograms, outputs)."""
        drawn = histogram_count(self.drawn, self.categories)
        if drawn * self.outputs > LARGEST_ENTRIES:
            raise ParameterError(
                f"drawn is {self.drawn} over {self.categories} categories: the table of the noise "
                f"would hold {drawn * self.outputs:,} entries, more than {LARGEST_ENTRIES:,}."
            )
        sampled = DrawnHistogram(self.sampling)
        table = histograms(self.drawn, self.categories)
        coordinate = coordinate_law(self.drawn, self.epsilon)
        law = np.ones((drawn, 1))
        for c in range(self.categories):
            law = (law[:, :, None] * coordinate[table[:, c]][:, None, :]).reshape(drawn, -1)
        return sampled, law

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return laws over the (T + 1)^m outputs, the last coordinate fastest.

        See `AnonymousMechanism.laws`.
        """
        rows = checked_histograms(histograms, self.records, self.categories)
        sampled, noise = self._noise
        return sampled.laws(rows) @ noise

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return {"mechanism": self.word, **asdict(self)}


def coordinate_law(drawn: int, epsilon: float) -> Matrix:
    """Return Pr[y | h] of one coordinate for h = 0..T and y = 0..T, the last y meaning T or more.

    Args:
        drawn: T.
        epsilon: of the noise.

    Returns:
        Shape (T + 1, T + 1), rows summing to 1.
    """
    r, h = math.exp(-epsilon / 4.0), np.arange(drawn + 1)
    law = r ** np.abs(h[:, None] - h[None, :])
    law[:, -1] /= -math.expm1(-epsilon / 4.0)
    return law / law.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Claims:
    """What is known in closed form of the pure DP of `NoisyHistogram`; eta = T / n.

    Replacing a drawn record changes the weights by at most r^-2 = e^(epsilon/2), and Z(h_a - 1)
    Z(h_b + 1) / (Z(h_a) Z(h_b)) is largest at h_a = T, h_b = 0, so that the noise has

        eps' = epsilon/2 + ln(1 + r - r^2) + ln((1 + r - r^T) / (1 + r - r^(T+1))),

    in [epsilon/2, 3 epsilon/4], as r - r^2 <= 1 - r <= epsilon/4. The record is drawn with
    probability eta, hence ``amplified``. It is at most eta epsilon

    - for every epsilon if eta >= 1/2: f(eta) = e^(eta epsilon) - 1 - eta (e^eps' - 1) is convex
      with f(0) = 0, and f(1/2) >= r^-2 (1 - (1 + r) / 2) >= 0;
    - for every eta if e^eps' <= 1 + epsilon, as then f'(0) >= 0.

    For every eta < 1/2 the claim of Table 1 fails from some epsilon on: where x has n equal records
    and x' another one, M(x') draws (T - 1, 1) with probability eta and (T, 0) otherwise; the
    largest ratios of M(x') to M(x) and back are 1 + eta (e^(epsilon - eps') - 1), about
    eta e^(epsilon/2), and 1 / (1 - eta + eta e^-eps').

    Attributes:
        claimed: eta epsilon, of Table 1.
        noise: the least epsilon of the noise alone, eps'.
        amplified: ln(1 + eta (e^eps' - 1)), which the mechanism satisfies: sampling amplifies.
        attained: the largest log ratio of the databases of n equal records and their neighbours;
            the mechanism satisfies nothing below it.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Table 1 and Appendix A.3.
    """

    claimed: float
    noise: float
    amplified: float
    attained: float

    @classmethod
    def of(cls, mechanism: NoisyHistogram) -> Claims:
        """Return the claims about a mechanism of any size."""
        epsilon, drawn = mechanism.epsilon, mechanism.drawn
        eta, r = drawn / mechanism.records, math.exp(-epsilon / 4.0)
        # (1 + r - r^T) / (1 + r - r^(T+1)) is 1 - x.
        x = r**drawn * -math.expm1(-epsilon / 4.0) / (1.0 + r - r ** (drawn + 1))
        noise = epsilon / 2.0 + math.log1p(r * -math.expm1(-epsilon / 4.0)) + math.log1p(-x)
        amplified = math.log1p(eta * math.expm1(noise))
        upward = math.log1p(eta * math.expm1(epsilon - noise))
        kept = (mechanism.records - drawn) / mechanism.records + eta * math.exp(-noise)
        downward = -math.log(kept) if kept < 0.5 else -math.log1p(eta * math.expm1(-noise))
        attained, claimed = max(upward, downward), eta * epsilon
        return cls(claimed, noise, amplified, attained)


@dataclass(frozen=True, kw_only=True)
class NoisyEpsilon(Question["NoisyGuarantee"]):
    """The least epsilon of pure DP of the sampling-histogram with exponential noise.

        minimise    r
        subject to  P_x(a) <= r P_x'(a)                       (ratios)
                    r >= 1

    over all pairs of neighbours x, x', in both directions, and outputs a; the value is log r. Each
    row is divided by P_x'(a). The closed form is the largest log ratio; where the outputs are too
    many to list it is the interval from what some databases attain to what amplification by
    sampling proves, and the value is the proved end.

    Attributes:
        records: n, at least 1.
        drawn: T, from 1 to n, without replacement.
        epsilon: of the noise, above 0 and at most 600; the noise level is 1 / epsilon.
        categories: m, at least 2.
    """

    kind: ClassVar[str] = "noisy-histogram"

    records: int
    drawn: int
    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        settle(self, **asdict(self.mechanism))

    @classmethod
    def example(cls) -> Self:
        """Return two of three records drawn."""
        return cls(records=3, drawn=2, epsilon=1.0)

    @property
    def mechanism(self) -> NoisyHistogram:
        """The mechanism asked about."""
        return NoisyHistogram(self.records, self.drawn, self.epsilon, self.categories)

    @cached_property
    def claims(self) -> Claims:
        """What is known in closed form at any size."""
        return Claims.of(self.mechanism)

    def problem(self) -> Problem:
        """Return the program of the class's docstring.

        Raises:
            ParameterError: if it would have more than 2,000,000 rows, or a ratio above 1e15; or for
                an epsilon below 1e-4, whose ratios are too near to 1.
        """
        if self.epsilon < _LEAST_LISTED:
            raise ParameterError(
                f"epsilon is {self.epsilon:g}; the program is written out from {_LEAST_LISTED:g} "
                "on, since solvers do not tell smaller ratios from 1."
            )
        mechanism, m = self.mechanism, self.categories
        pairs = histogram_count(self.records - 1, m) * m * (m - 1) // 2
        rows = 2 * pairs * mechanism.outputs
        if rows > LARGEST_PROGRAM:
            raise ParameterError(
                f"records is {self.records} and drawn {self.drawn}: the program would have "
                f"{rows:,} rows; at most {LARGEST_PROGRAM:,} are written out."
            )
        table = histograms(self.records, m)
        laws, pairs = mechanism.laws(table), replacements(table)
        # Rows run over (direction, pair, output).
        first, second = laws[pairs[:, 0]], laws[pairs[:, 1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.concatenate([(first / second).ravel(), (second / first).ravel()])
        if not np.max(ratios) <= _LARGEST_RATIO:
            raise ParameterError(
                f"epsilon is {self.epsilon:g}: a ratio of the program is above 1e15, where solvers "
                "lose it; the closed form goes further."
            )
        return ratio_problem("pure privacy of a noisy histogram", ratios)

    def closed_form(self) -> tuple[float, float]:
        """Return the largest log ratio twice; where it cannot be listed, what encloses it.

        That is also so below epsilon = 1e-4, where differences of logarithms lose digits.
        """
        if self.epsilon < _LEAST_LISTED:
            return self.claims.attained, self.claims.amplified
        try:
            exact = float(np.max(general_epsilon(self.mechanism)))
        except ParameterError:
            return self.claims.attained, self.claims.amplified
        return exact, exact

    def point(self, solution: Solution) -> tuple[float, float]:
        """Return log r twice."""
        epsilon = math.log(solution["ratio"][0])
        return epsilon, epsilon

    def value(self, units: tuple[float, float]) -> float:
        """Return the epsilon that is satisfied."""
        return units[1]

    def bound(self, units: tuple[float, float], solution: Solution | None) -> float:
        """Return an epsilon below which nothing is satisfied."""
        return units[0] if solution is None else math.log(max(1.0, solution.bound))

    def draw(self, axes: Axes, units: tuple[float, float], label: str | None = None) -> None:
        """Draw what is claimed beside what is so."""
        rows = self.columns(units)
        axes.plot(rows["name"], rows["epsilon"], "o", label=label)
        axes.set_ylabel(r"$\varepsilon$ (nats)")

    def columns(self, units: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return each epsilon by its name."""
        told = {**asdict(self.claims), "satisfied": units[1]}
        return {"name": list(told), "epsilon": list(told.values())}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoisyGuarantee(Answer):
    """What pure DP of `NoisyHistogram` is claimed and what is so; see `Claims`.

    Attributes:
        units: an epsilon below which nothing is satisfied, and one that is; equal where all ratios
            were listed.
    """

    claimed = Asked[float]("claims.claimed", "T / n times epsilon, of Table 1.")
    noise = Asked[float]("claims.noise", "The least epsilon of the noise alone.")
    amplified = Asked[float]("claims.amplified", "What is satisfied, since sampling amplifies.")
    attained = Asked[float](
        "claims.attained", "What some databases attain; nothing below it is satisfied."
    )

    @property
    def holds(self) -> bool | None:
        """Whether the claim is true; None if neither end of what is known decides it."""
        lower, upper = self.units
        return True if upper <= self.claimed else False if lower > self.claimed else None

    def facts(self) -> Json:
        """Return the claims and whether the published one holds."""
        return {**asdict(self.setting.claims), "holds": self.holds}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "claimed": self.claimed, "holds": self.holds}


NoisyEpsilon.answer = NoisyGuarantee


def noisy_guarantee(mechanism: NoisyHistogram) -> NoisyGuarantee:
    """Return what is known in closed form of the pure DP of the noisy sampling-histogram.

    At any size; `dpopt.design` of a `NoisyEpsilon` lists the ratios where it can. The value is
    ``amplified``, which is satisfied, and the bound ``attained``; proofs stand in `Claims`.

    Args:
        mechanism: n, T, epsilon.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Table 1 and Appendix A.3.
    """
    _checks.instance("mechanism", mechanism, NoisyHistogram)
    question = NoisyEpsilon(**asdict(mechanism))
    return made(question, (question.claims.attained, question.claims.amplified))
