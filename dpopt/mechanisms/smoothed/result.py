"""What is known of a mechanism: its profile over databases, its smoothed delta, its inverse."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._plot import new_axes
from dpopt._types import Json, Matrix, Vector, frozen
from dpopt.files import write_json
from dpopt.mechanisms.smoothed.description import AnonymousMechanism
from dpopt.mechanisms.smoothed.histogram import SamplingHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mechanism = SamplingHistogram | AnonymousMechanism
"""What a profile can be asked of."""

_LN10 = math.log(10.0)


def finite(value: float) -> float | None:
    """Return the value for JSON: None if it is not finite (log10 of a delta that is 0)."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class PrivacyProfile:
    """delta_{epsilon,M}(x) of one database or of all (Definition 2).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        histograms: one database in each row, shape (N, m), read-only.
        log_delta: natural logarithm of delta, shape (N,), -inf where delta is 0; read-only.
        method: how it was computed.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    histograms: npt.NDArray[np.int64]
    log_delta: Vector
    method: str
    provenance: dict[str, str]

    @property
    def delta(self) -> Vector:
        """Return delta itself, shape (N,); 0 below 1e-308, where `log10_delta` still tells it."""
        return frozen(np.exp(self.log_delta))

    @property
    def log10_delta(self) -> Vector:
        """Decimal logarithm of delta, shape (N,)."""
        return frozen(self.log_delta / _LN10)

    @property
    def worst(self) -> int:
        """Row of the database with the largest delta."""
        return int(np.argmax(self.log_delta))

    def at(self, histogram: npt.ArrayLike) -> float:
        """Return log delta of one of the databases.

        Raises:
            ParameterError: if it is not among the rows.
        """
        found = np.flatnonzero(np.all(self.histograms == np.asarray(histogram), axis=1))
        if found.size == 0:
            raise ParameterError(
                f"histogram is {np.asarray(histogram).tolist()}; it must be one of the "
                f"{len(self.histograms)} databases of this profile."
            )
        return float(self.log_delta[found[0]])

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw log10 delta against the share of the first category; return the axes."""
        axes = new_axes(ax)
        share = self.histograms[:, 0] / self.mechanism.records
        line = "-" if self.mechanism.categories == 2 and len(share) > 1 else "."
        axes.plot(share, self.log10_delta, line, label=label)
        axes.set_xlabel("share of the first category")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")
        return axes

    def to_records(self) -> list[Json]:
        """Return one record for each database, for tables and frames."""
        names = [f"count_{c}" for c in range(self.mechanism.categories)]
        return [
            {**dict(zip(names, row, strict=True)), "log10_delta": finite(value)}
            for row, value in zip(self.histograms.tolist(), self.log10_delta.tolist(), strict=True)
        ]

    def to_dict(self) -> Json:
        """Return the profile as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "privacy-profile",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "histograms": self.histograms.tolist(),
            "log10_delta": [finite(value) for value in self.log10_delta.tolist()],
            "method": self.method,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the profile to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


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
        return self.log_delta / _LN10

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
        axes.plot(names, [self.log10_delta, self.log_dp_delta / _LN10], "o")
        axes.set_ylabel(r"$\log_{10} \delta$")
        axes.set_title(rf"$\varepsilon = {self.epsilon:g}$, $n = {self.mechanism.records}$")
        axes.margins(x=0.5)
        return axes

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
class SmoothedEpsilon:
    """The least epsilon at which smoothed delta is at most a target.

    Attributes:
        target: the delta that was asked for.
        epsilon: an epsilon that suffices: the upper end of the bracket; infinite if none below 700
            does.
        lower: an epsilon that does not suffice, or 0.
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


@dataclass(frozen=True, eq=False)
class WorstCase:
    """max over databases of delta_{epsilon,M}(x), which is DP's delta (Theorem 1).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        log_delta: natural logarithm of the maximum.
        histogram: a database that attains it.
        method: "closed form" or "every database".
    """

    mechanism: Mechanism
    epsilon: float
    log_delta: float
    histogram: tuple[int, ...]
    method: str

    @property
    def delta(self) -> float:
        """DP's delta."""
        return math.exp(self.log_delta)

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON."""
        return {
            "kind": "worst-case-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "log10_delta": finite(self.log_delta / _LN10),
            "histogram": list(self.histogram),
            "method": self.method,
        }
