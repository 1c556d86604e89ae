"""What is known of one step of SGD on one database: delta, and the neighbour that attains it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpopt._plot import new_axes
from dpopt._types import IntVector, Json, Vector, brief, frozen
from dpopt.files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class SgdNeighbour:
    """The neighbour at which delta is attained.

    Attributes:
        replaced: the value of the record that is replaced.
        replacement: what it is replaced by.
        direction: "d(x, x')" or "d(x', x)", x' being the neighbour.
    """

    replaced: int
    replacement: int
    direction: str


@dataclass(frozen=True, eq=False)
class SgdProfile:
    """delta_{eps,M}(x) of one database of quantised gradients, at one or several epsilon.

    Attributes:
        values: x, shape (N,), read-only.
        drawn: T, the batch size.
        epsilons: in nats, shape (E,), read-only.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by.
        rounded: whether the output is the rounded mean of the batch, or its sum.
        neighbours: "all" replacements, or the two "extreme" ones only.
        log_delta: natural logarithm of delta, shape (E,), -inf where delta is 0; read-only.
        worst: a neighbour that attains delta, for each epsilon; None where delta is 0.
        provenance: versions that made it.
    """

    values: IntVector
    drawn: int
    epsilons: Vector
    lowest: int
    highest: int
    rounded: bool
    neighbours: str
    log_delta: Vector
    worst: tuple[SgdNeighbour | None, ...]
    provenance: dict[str, str]

    def __repr__(self) -> str:
        return brief(self)

    @property
    def delta(self) -> Vector:
        """Return delta itself, shape (E,)."""
        return frozen(np.exp(self.log_delta))

    @property
    def log10_delta(self) -> Vector:
        """Decimal logarithm of delta, shape (E,)."""
        return frozen(self.log_delta / math.log(10.0))

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw log10 delta against epsilon; return the axes."""
        axes = new_axes(ax)
        order = np.argsort(self.epsilons)
        axes.plot(self.epsilons[order], self.log10_delta[order], marker="o", label=label)
        axes.set_xlabel(r"$\varepsilon$")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")
        return axes

    def to_records(self) -> list[Json]:
        """Return one record for each epsilon, for tables and frames."""
        return [
            {
                "epsilon": epsilon,
                "log10_delta": value if math.isfinite(value) else None,
                "replaced": None if worst is None else worst.replaced,
                "replacement": None if worst is None else worst.replacement,
                "direction": None if worst is None else worst.direction,
            }
            for epsilon, value, worst in zip(
                self.epsilons.tolist(), self.log10_delta.tolist(), self.worst, strict=True
            )
        ]

    def to_dict(self) -> Json:
        """Return the profile as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "sgd-profile",
            "values": self.values.tolist(),
            "drawn": self.drawn,
            "lowest": self.lowest,
            "highest": self.highest,
            "rounded": self.rounded,
            "neighbours": self.neighbours,
            "profile": self.to_records(),
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the profile to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())
