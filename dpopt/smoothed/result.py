"""What is known of databases: the profile, and the worst of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._plot import new_axes
from dpopt._types import Json, Vector, brief, frozen
from dpopt.files import write_json
from dpopt.smoothed.description import AnonymousMechanism
from dpopt.smoothed.histogram import SamplingHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mechanism = SamplingHistogram | AnonymousMechanism
"""What a profile can be asked of."""

LN10 = math.log(10.0)


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
        return frozen(self.log_delta / LN10)

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

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            databases=len(self.histograms),
            method=repr(self.method),
        )

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
            "log10_delta": finite(self.log_delta / LN10),
            "histogram": list(self.histogram),
            "method": self.method,
        }
