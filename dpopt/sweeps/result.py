"""What a sweep yields."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json
from dpopt.files import replacing, write_json
from dpopt.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EXTRAS = {"pandas": "interop", "polars": "data"}


@dataclass(frozen=True)
class Failure:
    """A point at which the function raised an exception.

    Attributes:
        parameters: of the point.
        type: name of the exception's class.
        message: its text.
    """

    parameters: Mapping[str, Any]
    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True)
class Effort:
    """What a sweep took.

    Attributes:
        computed: points.
        elapsed: seconds by the clock.
        batches: in which the points came back; as many as points where one process did all.
        deaths: workers that died with points of the sweep; the processes of one machine end
            together and count once.
        repeated: points that were handed out again for that reason, each time they were.
    """

    computed: int
    elapsed: float
    batches: int
    deaths: int = 0
    repeated: int = 0

    @property
    def throughput(self) -> float:
        """Points per second."""
        return self.computed / self.elapsed if self.computed else 0.0

    def __str__(self) -> str:
        return (
            f"{self.computed:,} points in {self.elapsed:.1f} s "
            f"({self.throughput:,.1f} per second), {self.batches:,} batches, "
            f"{self.deaths:,} deaths of workers, {self.repeated:,} points handed out again"
        )


@dataclass(frozen=True)
class SweepResult:
    """The points of a grid with what the function returned, in the order of the grid.

    Attributes:
        function: module and name of the function.
        parameters: names of the parameters.
        records: one mapping for each point: its parameters, then what the function returned (its
            mapping, or ``value``). A point that failed has ``failure`` instead, in words.
        failures: the points that failed; empty unless ``on_error="record"``.
        seconds: computation of each point, in the order of the records.
        reused: points that were read from the table and not computed.
        effort: how many points this call computed, in what time, and what went wrong meanwhile.
    """

    function: str
    parameters: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    failures: tuple[Failure, ...]
    seconds: tuple[float, ...]
    reused: int
    effort: Effort

    def to_records(self) -> list[dict[str, Any]]:
        """Return the records with the same names in each, None where a point has no value."""
        return [{name: record.get(name) for name in self.columns} for record in self.records]

    def to_frame(self, library: str = "pandas") -> Any:  # noqa: ANN401
        """Return a table with one row for each point.

        Args:
            library: "pandas" (extra ``interop``) or "polars" (extra ``data``).

        Raises:
            ImportError: if the library is not installed.
        """
        extra = _EXTRAS[_checks.choice("library", library, tuple(_EXTRAS))]
        try:
            frame = importlib.import_module(library).DataFrame
        except ImportError as error:
            raise ImportError(
                f"SweepResult.to_frame needs {library}; install it with pip install "
                f"'dpopt[{extra}]'."
            ) from error
        records = self.to_records()
        columns = {name: [record[name] for record in records] for name in self.columns}
        # A column of polars is of one type; 1 beside 0.5 is a number all the same.
        return frame(columns, **({"strict": False} if library == "polars" else {}))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that occur in the records, parameters first."""
        found = dict.fromkeys(self.parameters)
        for record in self.records:
            found.update(dict.fromkeys(record))
        return tuple(found)

    def to_dict(self) -> Json:
        """Return the sweep as values of JSON."""
        return {
            "function": self.function,
            "parameters": list(self.parameters),
            "records": [dict(record) for record in self.records],
            "failures": len(self.failures),
            "seconds": list(self.seconds),
            "reused": self.reused,
            "effort": asdict(self.effort),
        }

    def save(self, path: str | Path) -> None:
        """Write the records to a file ending in ``.json`` or ``.csv``, whole or not at all.

        In CSV a cell without a value is empty, and lists and mappings stand as JSON. JSON knows
        neither NaN nor infinity: they become null.

        Raises:
            ParameterError: if the ending is another, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix == ".json":
            write_json(path, _finite(self.to_dict()))
        elif path.suffix == ".csv":
            with (
                replacing(path) as temporary,
                temporary.open("w", encoding="utf-8", newline="") as file,
            ):
                writer = csv.DictWriter(file, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows({k: _cell(v) for k, v in row.items()} for row in self.records)
        else:
            raise ParameterError(f"path is {str(path)!r}; its ending must be .json or .csv.")

    def plot(self, x: str, y: str, by: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw ``y`` over ``x``, one line for each value of ``by``, without failed points.

        Args:
            x: a name of the records.
            y: another.
            by: a third; one line for all if None.
            ax: a new figure if None.

        Raises:
            ParameterError: if a name does not occur in the records.
        """
        for role, name in (("x", x), ("y", y), ("by", by)):
            if name is not None and name not in self.columns:
                raise ParameterError(
                    f"{role} is {name!r}; it must be one of {', '.join(self.columns)}."
                )
        axes = new_axes(ax)
        lines: dict[str, list[tuple[Any, Any]]] = {}
        for record in self.records:
            if x in record and y in record:
                label = "" if by is None else f"{by} = {record.get(by)}"
                lines.setdefault(label, []).append((record[x], record[y]))
        for label, pairs in lines.items():
            axes.plot(*zip(*pairs, strict=True), marker="o", label=label or None)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if by is not None and lines:
            axes.legend()
        return axes


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _finite(value: Any) -> Any:  # noqa: ANN401
    """Return a value of JSON with None for NaN and infinities, which standard JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
