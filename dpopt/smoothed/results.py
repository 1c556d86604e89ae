"""What results share that are deltas: kept as logarithms, since they may underflow."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from dpopt._figure import new_axes
from dpopt._page import result_page
from dpopt._types import Json, brief, frozen
from dpopt.files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")
LN10 = math.log(10.0)


class Found(ABC, Generic[T]):
    """A delta, or a vector of them; its subclasses are frozen dataclasses.

    Attributes:
        log_delta: natural logarithm of delta, -inf where it is 0; a vector is read-only.
        kind: what `to_dict` says it is.
    """

    log_delta: T
    kind: ClassVar[str]

    @property
    def delta(self) -> T:
        """Return delta itself; 0 below 1e-308, where `log10_delta` still tells it."""
        return _like(self.log_delta, np.exp(cast(Any, self.log_delta)))

    @property
    def log10_delta(self) -> T:
        """Decimal logarithm of delta."""
        return _like(self.log_delta, cast(Any, self.log_delta) / LN10)

    @abstractmethod
    def facts(self) -> Json:
        """Return what the one-line repr, the page and the command line tell."""

    @abstractmethod
    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return one tidy table, columns by name: for frames and the command line."""

    @abstractmethod
    def draw(self, axes: Axes, label: str | None) -> None:
        """Draw the result on axes."""

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the result on ``ax``, or on a new figure; return the axes."""
        axes = new_axes(ax)
        self.draw(axes, label)
        return axes

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())

    def __repr__(self) -> str:
        return brief(self, **self.facts())

    def _repr_html_(self) -> str:
        """Return picture and facts, for notebooks."""
        return result_page(type(self).__name__, "", None, self.facts(), self.plot)


def finite(value: float) -> float | None:
    """Return the value for JSON: None if it is not finite (log10 of a delta that is 0)."""
    return value if math.isfinite(value) else None


def _like(given: T, value: Any) -> T:  # noqa: ANN401
    """Return a value as what was given: a float, or a read-only vector."""
    return cast(T, frozen(value) if isinstance(given, np.ndarray) else float(value))
