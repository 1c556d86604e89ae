"""The table of a sweep on disk: a line that says whose it is, and one line for each point done.

Every line is JSON and is appended by one write, so that a process that is killed leaves at most
its last line short of an end; such a line is dropped when the table is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpopt._errors import ParameterError
from dpopt.files import check_target, write_text
from dpopt.sweeps.grid import key_of
from dpopt.sweeps.result import Failure

SCHEMA = 1


@dataclass(frozen=True)
class Done:
    """A point that was computed.

    Attributes:
        parameters: of the point, as values of JSON.
        values: what the function returned, by name; empty if it failed.
        seconds: of computation.
        failure: the exception; None if there was none.
    """

    parameters: Mapping[str, Any]
    values: Mapping[str, Any]
    seconds: float
    failure: Failure | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the line of the table."""
        line: dict[str, Any] = {"point": self.parameters, "seconds": self.seconds}
        if self.failure is None:
            return {**line, "values": self.values}
        return {**line, "failure": {"type": self.failure.type, "message": self.failure.message}}

    @classmethod
    def from_dict(cls, line: Any) -> Done:  # noqa: ANN401
        """Read a line of the table; KeyError, TypeError or ValueError if it is not one."""
        failed = line.get("failure")
        failure = None
        if failed is not None:
            failure = Failure(dict(line["point"]), str(failed["type"]), str(failed["message"]))
        values = {} if failure else dict(line["values"])
        return cls(dict(line["point"]), values, float(line["seconds"]), failure)


class Table:
    """An open table; lines go to its end.

    Args:
        path: created if it is missing.
        name: module and name of the function.
        fingerprint: of the function.
        parameters: names of the parameters.

    Raises:
        ParameterError: if the file cannot be written, or belongs to something else.
    """

    def __init__(self, path: Path, name: str, fingerprint: str, parameters: list[str]) -> None:
        self.path = path
        self.header = {
            "dpopt": "sweep",
            "schema": SCHEMA,
            "function": name,
            "fingerprint": fingerprint,
            "parameters": sorted(parameters),
        }
        check_target(path)
        if not path.exists() or path.stat().st_size == 0:
            write_text(path, json.dumps(self.header) + "\n")
        self.file, self.lines = self._opened()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.fsync(self.file)
        os.close(self.file)

    def done(self) -> dict[str, Done]:
        """Return the last line of each point, by key, without points whose last try failed."""
        found = {key_of(line.parameters): line for line in self.lines}
        return {key: line for key, line in found.items() if line.failure is None}

    def append(self, line: Done) -> None:
        """Write a line.

        Raises:
            ParameterError: if the disk does not take it.
        """
        data = (json.dumps(line.to_dict()) + "\n").encode()
        try:
            # One call, not a buffer: an interrupt cannot come between the parts of a line.
            written = os.write(self.file, data)
        except OSError as error:
            raise ParameterError(f"table is {str(self.path)!r}; {error.strerror}.") from error
        if written != len(data):
            raise ParameterError(f"table is {str(self.path)!r}; the disk is full.")

    def _opened(self) -> tuple[int, list[Done]]:
        """Open the file at its end, after the last line that is whole, and read its lines."""
        try:
            data = self.path.read_bytes()
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise ParameterError(f"table is {str(self.path)!r}; {error.strerror}.") from error
        whole = data.rfind(b"\n") + 1
        try:
            lines = self._read(data[:whole].decode(errors="replace"))
            os.ftruncate(file, whole)
        except ParameterError:
            os.close(file)
            raise
        return file, lines

    def _read(self, text: str) -> list[Done]:
        rows = text.split("\n")
        self._check_header(rows[0])
        lines = []
        for number, row in enumerate(rows[1:-1], start=2):
            try:
                lines.append(Done.from_dict(json.loads(row)))
            except (AttributeError, KeyError, TypeError, ValueError):
                raise ParameterError(
                    f"table is {str(self.path)!r}; its line {number} is not that of a point."
                ) from None
        return lines

    def _check_header(self, row: str) -> None:
        try:
            found = json.loads(row)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("dpopt") != "sweep":
            raise self._refusal("it is not the table of a sweep")
        if found.get("schema") != SCHEMA:
            raise self._refusal(f"its schema is {found.get('schema')!r}, not {SCHEMA}")
        for part in ("function", "parameters"):
            if found.get(part) != self.header[part]:
                raise self._refusal(
                    f"it is of another sweep, whose {part} is {found.get(part)!r} and not "
                    f"{self.header[part]!r}"
                )
        if found.get("fingerprint") != self.header["fingerprint"]:
            raise self._refusal(
                "the function, its version, or the version of dpopt or Python is another than the "
                "one that made it"
            )

    def _refusal(self, reason: str) -> ParameterError:
        return ParameterError(
            f"table is {str(self.path)!r}; {reason}. Name another file, or remove this one."
        )
