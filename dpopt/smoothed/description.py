"""Anonymous mechanisms: the law of the output depends on the histogram of the records only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Matrix, brief, frozen
from dpopt.prob.histograms import checked_histograms, histogram_count, index_of

_SUM_TOLERANCE = 1e-9


class AnonymousMechanism(ABC):
    """A mechanism that treats all records alike, given by the law of its output.

    Attributes:
        records: n, the same for all databases, and public.
        categories: m, the number of values that a record can take.
    """

    records: int
    categories: int

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs."""

    @abstractmethod
    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the law of the output for each database.

        Args:
            histograms: counts of the categories, shape (N, m), each row summing to n.

        Returns:
            Probabilities, shape (N, outputs), rows summing to 1 up to rounding.

        Raises:
            ParameterError: if a row is no histogram of n records over m categories.
        """

    @abstractmethod
    def to_dict(self) -> Json:
        """Return the parameters as plain values."""


@dataclass(frozen=True, eq=False)
class KernelMechanism(AnonymousMechanism):
    """Any anonymous mechanism, by its law over all histograms.

    Attributes:
        records: n, at least 1.
        categories: m, at least 2.
        kernel: Pr[output | histogram], shape (C(n + m - 1, m - 1), outputs), rows in the order of
            `histograms`, divided by their sums, which must be 1 to 1e-9; read-only.
        name: what `to_dict` calls it.
    """

    records: int
    categories: int
    kernel: Matrix
    name: str = "kernel"

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        n = _checks.integer("records", self.records, 1)
        m = _checks.integer("categories", self.categories, 2)
        wanted = histogram_count(n, m)
        rows = _checks.floats("kernel", self.kernel)
        if rows.ndim != 2 or rows.shape[0] != wanted or rows.shape[1] < 1:
            raise ParameterError(
                f"kernel has shape {rows.shape}; it must be ({wanted}, outputs), one row for each "
                "histogram."
            )
        if not np.all(np.isfinite(rows) & (rows >= 0)):
            raise ParameterError("kernel holds a value that is not finite or below 0.")
        sums = rows.sum(axis=1, keepdims=True)
        if np.any(np.abs(sums - 1.0) > _SUM_TOLERANCE):
            raise ParameterError("kernel has a row whose sum is not 1.")
        object.__setattr__(self, "records", n)
        object.__setattr__(self, "categories", m)
        object.__setattr__(self, "kernel", frozen(rows / sums))

    @property
    def outputs(self) -> int:
        """Number of columns of the kernel."""
        return self.kernel.shape[1]

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return rows of the kernel; see `AnonymousMechanism.laws`."""
        rows = checked_histograms(histograms, self.records, self.categories)
        return self.kernel[index_of(rows)]

    def to_dict(self) -> Json:
        """Return the parameters and the kernel as plain values."""
        return {
            "mechanism": self.name,
            "records": self.records,
            "categories": self.categories,
            "kernel": self.kernel.tolist(),
        }
