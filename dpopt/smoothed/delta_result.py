"""What is known over a set of distributions: smoothed delta, its proof, and its inverse."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpopt._plot import new_axes
from dpopt._types import Json, Matrix, brief
from dpopt.files import write_json
from dpopt.smoothed.result import LN10, Mechanism, finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class MaximumCertificate:
    """Why no composition of the records has a larger expected delta.

    Attributes:
        claim: what is proved, in words.
        method: "one composition", "ends of a V-shape" (total positivity), "every composition" or
            "branch and bound" (V-shaped majorants).
        evaluated: number of compositions whose expectation was computed.
        compositions: number of all.
        log_bound: no composition's logarithm is larger.
        excess: log_bound - log_delta: what rounding may hide, in the logarithm.
        slack: twice the rounding allowed, less the excess: at least 0 if the claim is proved.
    """

    claim: str
    method: str
    evaluated: int
    compositions: int
    log_bound: float
    excess: float
    slack: float

    def to_dict(self) -> Json:
        """Return the fields as plain values; None for the logarithm of 0."""
        return {**asdict(self), "log_bound": finite(self.log_bound)}


@dataclass(frozen=True, eq=False)
class SmoothedDelta:
    """max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x) (Definition 3), and where it is.

    Attributes:
        mechanism: M.
        epsilon: in nats.
        distributions: Pi, one distribution in each row, shape (l, m), read-only.
        log_delta: natural logarithm of the maximum, -inf if it is 0.
        argmax: how many records come from each distribution where the maximum is, summing to n.
        certified: whether every composition was evaluated or bounded.
        certificate: the bound on all compositions, and how it was found.
        log_dp_delta: natural logarithm of the worst database's delta, which is DP's.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    distributions: Matrix
    log_delta: float
    argmax: tuple[int, ...]
    certified: bool
    certificate: MaximumCertificate
    log_dp_delta: float
    provenance: dict[str, str]

    @property
    def delta(self) -> float:
        """Smoothed delta; 0 below 1e-308, where `log10_delta` still tells it."""
        return math.exp(self.log_delta)

    @property
    def log10_delta(self) -> float:
        """Decimal logarithm of smoothed delta."""
        return self.log_delta / LN10

    @property
    def bound(self) -> float:
        """Upper bound of the expected delta of every composition."""
        return math.exp(self.certificate.log_bound)

    @property
    def dp_delta(self) -> float:
        """DP's delta at the same epsilon."""
        return math.exp(self.log_dp_delta)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw log10 of smoothed delta beside DP's; return the axes."""
        axes = new_axes(ax)
        names = [r"smoothed $\delta$", r"DP's $\delta$"]
        axes.plot(names, [self.log10_delta, self.log_dp_delta / LN10], "o")
        axes.set_ylabel(r"$\log_{10} \delta$")
        axes.set_title(rf"$\varepsilon = {self.epsilon:g}$, $n = {self.mechanism.records}$")
        axes.margins(x=0.5)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            log10_delta=self.log10_delta,
            argmax=self.argmax,
            certified=self.certified,
        )

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "smoothed-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "distributions": self.distributions.tolist(),
            "delta": self.delta,
            "log10_delta": finite(self.log10_delta),
            "argmax": list(self.argmax),
            "certified": self.certified,
            "certificate": self.certificate.to_dict(),
            "dp_delta": self.dp_delta,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


@dataclass(frozen=True, eq=False)
class ExpectedDelta:
    """E_{x ~ pi} delta_{epsilon,M}(x) at one composition of the records.

    Attributes:
        mechanism: M.
        epsilon: in nats.
        distributions: the laws, one in each row, shape (l, m), read-only.
        composition: how many records come from each law, summing to n.
        log_delta: natural logarithm of the expectation, -inf if it is 0.
        rounding: what rounding can have changed in it, for the profile as computed.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    distributions: Matrix
    composition: tuple[int, ...]
    log_delta: float
    rounding: float
    provenance: dict[str, str]

    @property
    def delta(self) -> float:
        """The expectation; 0 below 1e-308, where `log10_delta` still tells it."""
        return math.exp(self.log_delta)

    @property
    def log10_delta(self) -> float:
        """Decimal logarithm of the expectation."""
        return self.log_delta / LN10

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            composition=self.composition,
            log10_delta=self.log10_delta,
        )

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "expected-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "distributions": self.distributions.tolist(),
            "composition": list(self.composition),
            "delta": self.delta,
            "log10_delta": finite(self.log10_delta),
            "rounding": self.rounding,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


@dataclass(frozen=True, eq=False)
class SmoothedEpsilon:
    """The least epsilon at which smoothed delta is at most a target.

    Attributes:
        target: the delta that was asked for.
        epsilon: an epsilon that suffices up to the rounding that ``at`` states: the upper end of
            the bracket; infinite if none below 700 does.
        lower: an epsilon that was not found to suffice, or 0.
        at: smoothed delta at ``epsilon``; at 700 if ``epsilon`` is infinite.
    """

    target: float
    epsilon: float
    lower: float
    at: SmoothedDelta

    @property
    def certified(self) -> bool:
        """Whether the maximum over compositions is proved at ``epsilon``."""
        return self.at.certified

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for an infinite epsilon."""
        return {
            "kind": "smoothed-epsilon",
            "target": self.target,
            "epsilon": finite(self.epsilon),
            "lower": self.lower,
            "at": self.at.to_dict(),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what `SmoothedDelta.plot` does, at ``epsilon``; return the axes."""
        return self.at.plot(ax)

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())
