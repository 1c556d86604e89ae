"""A designed noise function: what it is, what was proved of it, and draws from exactly it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text
from dpopt._plot import new_axes
from dpopt._types import Json, Vector, brief, frozen
from dpopt.lp import Solution
from dpopt.majority.certificate import BITS, GammaProver, Weights, gamma_rounding
from dpopt.majority.check import FULL_LIMIT, PrivacyCheck, check_full, full_size
from dpopt.majority.prior import Prior
from dpopt.majority.reduction import reduced_size
from dpopt.majority.setting import MajoritySetting, full_gamma, signed
from dpopt.majority.weights import sampled_error
from dpopt.privacy import Guarantee
from dpopt.privacy.exact import Certificate
from dpopt.privacy.release import Words, cumulative_words, draw, random_words
from dpopt.privacy.saved import STATED, seal_judged
from dpopt.privacy.vouched import Implied, Vouched

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def floats(weights: Weights) -> Vector:
    """Return gamma on 0..K from its upper half over 2^62, read-only."""
    return frozen(full_gamma([weight / (1 << BITS) for weight in weights]))


OBJECTIVES = ("expected-error", "surrogate", "worst-case")


@dataclass(frozen=True)
class MajorityDesign(Vouched):
    """A noise function gamma for the private majority of K private voters, and its record.

    With L ones among the K votes, DaRRM outputs the majority with probability gamma(L), else a
    fair coin (algorithm 1 of the paper).

    Attributes:
        setting: the voters and the target guarantee.
        weights: gamma's upper half as integers over 2^62, l = (K + 1) / 2..K: what is certified,
            and what `release` draws from.
        gamma: the same as floats on 0..K, shape (K + 1,), read-only.
        certificate: the exact proof; None if gamma is not private (only possible for a given one).
        excess: largest Pr[1 | p] - e^(m epsilon) Pr[1 | p'] - delta, from the exact arithmetic;
            0 if unverified.
        priced: None if every multiset is proved or refuted; else how many of them the program
            priced, the others being unverified (K above 203 and Delta > 0).
        objective: one of `OBJECTIVES`, "weights", or "given" for a gamma not designed.
        value: objective weights @ gamma's upper half, which the program maximises; for
            "worst-case", minus the largest error.
        bound: upper bound on the value of any private gamma, from the dual vector; up to the
            rounding of the rows, about 1e-16 / (e^(m epsilon) - 1 + 2 delta).
        gap: bound - value: what the solver, repair and quantisation together may have lost.
        prior: the prior that `expected_error` refers to.
        expected_error: see the function of that name.
        expected_error_standard_error: of it, if it comes from samples; else 0.
        expected_error_method: "closed form", "quadrature", or which samples it comes from.
        shrink: the repair's factor: gamma is the point times this, up to 2^24 units of 2^-62.
        solution: the solve behind it; None if gamma was given or loaded.
        provenance: versions that made it.
        stated: names, as in `to_dict`, of what the file of a loaded design stated and nothing here
            could check: no solve is behind its bound. Empty if the design was made here.
    """

    setting: MajoritySetting
    weights: Weights
    gamma: Vector
    certificate: Certificate | None
    excess: float
    priced: int | None
    objective: str
    value: float | None
    bound: float | None
    gap: float | None
    prior: Prior
    expected_error: float
    expected_error_standard_error: float
    expected_error_method: str
    shrink: float
    solution: Solution | None
    provenance: dict[str, str]
    stated: tuple[str, ...] = field(default=(), compare=False)

    def _subject(self) -> tuple[object, ...]:
        return "majority", self.setting, self.weights

    def _implied(self) -> Iterator[Implied]:
        yield "gamma", self.gamma, floats(self.weights)

    def _prove(self) -> Certificate:
        return GammaProver(self.setting).certify(self.weights)

    @property
    def guarantee(self) -> Guarantee:
        """The (m epsilon, delta) that gamma was meant to have."""
        return self.setting.guarantee

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        return self.certificate is not None

    @property
    def verdict(self) -> str:
        """What is known of its privacy: "private", "not private", "not proved" or "unverified".

        "not proved" if it misses by no more than the rounding of gamma to doubles explains, so that
        the gamma that was meant may be private; `assess` with repair=True gives one that is.
        "unverified" if not all constraints were priced.
        """
        if self.priced is not None:
            return "unverified"
        if self.private:
            return "private"
        return "not proved" if self.excess <= gamma_rounding(self.setting) else "not private"

    @cached_property
    def check(self) -> PrivacyCheck | None:
        """The paper's full corner set in double precision, enumerated when first asked for.

        None where it is too large: K above 21 for Delta > 0, above 191 for Delta = 0; and for
        groups of voters.
        """
        if self.setting.groups or full_size(self.setting) > FULL_LIMIT:
            return None
        chances = np.array([ones / (1 << (BITS + 1)) for _, ones in self._rows])
        return check_full(self.setting, self.gamma, chances)

    @property
    def worst_violation(self) -> float | None:
        """By how much the worst constraint is broken, in probability; None if unverified."""
        if self.priced is not None:
            return None
        return 0.0 if self.private else max(self.excess, 0.0)

    def sampled_error(self, rng: np.random.Generator, draws: int = 10_000) -> tuple[float, float]:
        """Return mean and standard error of the error over p drawn from the prior."""
        return sampled_error(self.setting, self.gamma, self.prior, rng, draws)

    def release(self, votes: npt.ArrayLike) -> npt.NDArray[np.int64] | int:
        """Return the private majority of votes, with the operating system's randomness.

        Each row of votes is one query and spends the whole guarantee once. Pr[output 1] is
        exactly (2^62 + h) / 2^63, with h = weights above the middle and -weights below. No seed;
        Python is not constant-time, and timing is outside the guarantee.

        Args:
            votes: zeros and ones, shape (K,) for one query or (queries, K).

        Returns:
            0 or 1 for one query; an array of them, shape (queries,), for several.

        Raises:
            ParameterError: for another shape or other values. A refusal for a vote's value tells of
                the data and is not covered by the guarantee: make a 0 or 1 of each vote before.
            NotPrivateError: if gamma has no certificate; it names the voters.
        """
        self.require_private()
        ones, single = self._count(votes)
        drawn = draw(self._cumulative, ones, random_words(BITS + 1, ones.size))
        return int(drawn[0]) if single else drawn

    def require_private(self) -> None:
        """Refuse a gamma without a certificate.

        Raises:
            NotPrivateError: naming the voters whose constraint fails; or that not all were checked.
        """
        if self.priced is not None:
            raise NotPrivateError(
                f"gamma is unverified: only {self.priced:,} of "
                f"{reduced_size(self.setting):,} constraints were priced."
            )
        if not self.private:
            GammaProver(self.setting).certify(self.weights)

    def simulate(
        self, votes: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        _checks.instance("rng", rng, np.random.Generator)
        ones, single = self._count(votes)
        p = 0.5 + 0.5 * signed(self.gamma)[ones]
        drawn = (rng.random(p.size) < p).astype(np.int64)
        return int(drawn[0]) if single else drawn

    @property
    def _rows(self) -> list[tuple[int, int]]:
        """Weights of the outputs 0 and 1 for each number of ones, over 2^(BITS + 1)."""
        half = 1 << BITS
        lower = [(half + w, half - w) for w in reversed(self.weights)]
        return lower + [(half - w, half + w) for w in self.weights]

    @cached_property
    def _cumulative(self) -> Words:
        return cumulative_words(self._rows, BITS + 1)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw gamma against the number of ones, on ``ax`` or on a new figure; return the axes."""
        axes = new_axes(ax)
        axes.plot(np.arange(self.gamma.size), self.gamma, marker="o", markersize=3, label=label)
        axes.set_xlabel("number of ones among the votes, $l$")
        axes.set_ylabel(r"$\gamma(l)$")
        axes.set_ylim(-0.03, 1.03)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            mechanisms=self.setting.mechanisms,
            guarantee=self.guarantee,
            verdict=self.verdict,
            objective=self.objective,
            expected_error=self.expected_error,
            **({STATED: ", ".join(self.stated)} if self.stated else {}),
        )

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; weights as decimal strings."""
        solved, check, proof = self.solution, self.check, self.certificate
        counted = proof.constraints if proof else self.priced
        counted = check.constraints_checked if check else counted
        return {
            "setting": self.setting.to_dict(),
            "guarantee": {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta},
            "gamma": self.gamma.tolist(),
            "bits": BITS,
            "weights": [exact_text(weight) for weight in self.weights],
            "objective_name": self.objective,
            "objective": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "prior": str(self.prior),
            "expected_error": self.expected_error,
            "expected_error_standard_error": self.expected_error_standard_error,
            "expected_error_method": self.expected_error_method,
            "private": self.private,
            "verdict": self.verdict,
            "worst_violation": self.worst_violation,
            "constraints_checked": counted,
            "certificate": None if proof is None else proof.to_dict(),
            "check": None if check is None else check.to_dict(),
            "shrink": self.shrink,
            "status": None if solved is None else str(solved.status),
            "backend": None if solved is None else solved.backend,
            "rows_used": None if solved is None else solved.rows_used,
            "rounds": None if solved is None else solved.rounds,
            "provenance": self.provenance,
            **({STATED: list(self.stated)} if self.stated else {}),
        }

    def save(self, path: str | Path, *, even_if_not_private: bool = False) -> None:
        """Write the design to a JSON file that `dpopt.load` certifies again.

        Args:
            path: of the file.
            even_if_not_private: of a gamma that is not private, or unverified, write the record of
                its audit: a file for reading, which `dpopt.load` refuses as not private.

        Raises:
            ParameterError: if the file cannot be written.
            NotPrivateError: if gamma is not proved private and its audit was not asked for.
        """
        seal_judged("majority", self, path, even_if_not_private)

    def _count(self, votes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
        array = _checks.array("votes", votes)
        k = self.setting.mechanisms
        if array.ndim not in (1, 2) or array.shape[-1] != k:
            raise ParameterError(
                f"votes has shape {array.shape}; it must be ({k},) or (queries, {k})."
            )
        if not np.all((array == 0) | (array == 1)):
            raise ParameterError("votes holds a value other than 0 and 1.")
        return np.atleast_2d(array).astype(np.int64).sum(axis=1), array.ndim == 1
