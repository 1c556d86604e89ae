"""The base class of results that are deltas, stored as logarithms since they may underflow."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

import numpy as np

from dpopt._figure import new_axes, result_page
from dpopt._types import Json, T, brief, frozen
from dpopt.files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From natural to decimal logarithms.
LN10 = math.log(10.0)


class DeltaResult(ABC, Generic[T]):
    """A result that is a delta or a vector of deltas; subclasses are frozen dataclasses.

    Attributes:
        log_delta: natural logarithm of delta, -inf where it is 0; a vector is read-only.
        kind: the name of the kind of result in `to_dict`.
        written: the names of what else `to_dict` returns.
    """

    log_delta: T
    kind: ClassVar[str]
    written: ClassVar[tuple[str, ...]]

    @property
    def delta(self) -> T:
        """Delta itself; 0 below 1e-308, where `log10_delta` is still accurate."""
        return _like(self.log_delta, np.exp(cast(Any, self.log_delta)))

    @property
    def log10_delta(self) -> T:
        """Decimal logarithm of delta."""
        return _like(self.log_delta, cast(Any, self.log_delta) / LN10)

    @abstractmethod
    def facts(self) -> Json:
        """Return the summary shown by the repr, the notebook page and the command line."""

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""
        return {name: plain(getattr(self, name)) for name in ("kind", *self.written)}

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return a tidy table, columns by name, for data frames and the command line."""

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
        """Return plot and summary as HTML, for notebooks."""
        return result_page(type(self).__name__, "", None, self.facts(), self.plot)


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a value ready for JSON; None for what is not finite, log10 of a delta of 0."""
    if isinstance(value, np.ndarray | tuple | list):
        return list(map(plain, value.tolist() if isinstance(value, np.ndarray) else value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.to_dict() if hasattr(value, "to_dict") else value


def _like(template: T, value: Any) -> T:  # noqa: ANN401
    """Return a value in the type of the template: a float, or a read-only vector."""
    return cast(T, frozen(value) if isinstance(template, np.ndarray) else float(value))
