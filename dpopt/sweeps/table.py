"""The table of a sweep on disk: a line that says whose it is, and one line for each point done.

Several processes may fill one table. Each appends under the table's lock, after it has read what
the others appended. A process that is killed leaves at most a last line without its end, which
whoever holds the lock next cuts off: no one else can be writing it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpopt._errors import ParameterError
from dpopt._lock import locked
from dpopt._numbers import shown
from dpopt.files import check_target
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


class Lines:
    """Points that are done, in memory only.

    Attributes:
        lines: the last line of each point, by key.
        foreign: how many of them other processes have added meanwhile.
    """

    def __init__(self) -> None:
        self.lines: dict[str, Done] = {}
        self.foreign = 0

    def done(self, key: str) -> bool:
        """Return whether there is a point, and its last try did not fail."""
        return key in self.lines and self.lines[key].failure is None

    def append(self, line: Done) -> None:
        """Keep a line, unless another process has finished its point already."""
        key = key_of(line.parameters)
        if not self.done(key):
            self.lines[key] = line

    def flush(self) -> None:
        """Have the disk write what was appended; nothing to do in memory."""


class Table(Lines):
    """An open table on disk; lines go to its end.

    Args:
        path: created if it is missing.
        name: module and name of the function.
        fingerprint: of the function.
        parameters: names of the parameters.

    Raises:
        ParameterError: if the file cannot be written, or belongs to something else.
    """

    def __init__(self, path: Path, name: str, fingerprint: str, parameters: list[str]) -> None:
        super().__init__()
        self.path = path
        self.header = {
            "dpopt": "sweep",
            "schema": SCHEMA,
            "function": name,
            "fingerprint": fingerprint,
            "parameters": sorted(parameters),
        }
        self._rows, self._end, self._sure = 0, 0, False
        check_target(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise self._disk(error) from error
        try:
            with self._alone():
                self._begin()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def append(self, line: Done) -> None:
        """Write a line, unless another process has finished its point already.

        A line written outlives this process; after `flush`, the machine too.

        Raises:
            ParameterError: if the disk does not take it, or the file is no longer at its place.
        """
        with self._alone():
            self.foreign += self._catch_up()
            if not self.done(key_of(line.parameters)):
                self._write(json.dumps(line.to_dict()))
                super().append(line)

    def flush(self) -> None:
        """Have the disk write what was appended.

        Raises:
            ParameterError: if it does not.
        """
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._disk(error) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the table's lock; errors of the disk become errors of the parameter."""
        try:
            with locked(self._file) as self._sure:
                self._check_place()
                yield
        except OSError as error:
            raise self._disk(error) from error

    def _begin(self) -> None:
        """Read the table, or write its head if the file is empty or holds a part of that head."""
        if not self._sure:
            warnings.warn(
                f"table is {str(self.path)!r}; its file system has no locks: let one process at a "
                "time use it.",
                RuntimeWarning,
                stacklevel=4,
            )
        head = json.dumps(self.header)
        data = self._unread()
        if len(data) <= len(head) and f"{head}\n".encode().startswith(data):
            self._cut(bool(data))
            self._write(head)
            self._rows = 1
            os.fsync(self._file)
        else:
            self._catch_up()

    def _catch_up(self) -> int:
        """Read the lines since the last one read; return how many there were."""
        data = self._unread()
        whole = data.rfind(b"\n") + 1
        rows = data[:whole].decode(errors="replace").split("\n")[:-1]
        if self._rows == 0:
            self._check_header(rows[0] if rows else "")
        for number, row in enumerate(rows, start=self._rows + 1):
            if number > 1:
                self._take(number, row)
        self._rows += len(rows)
        self._end += whole
        self._cut(len(data) > whole)
        return len(rows)

    def _take(self, number: int, row: str) -> None:
        try:
            line = Done.from_dict(json.loads(row))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise ParameterError(
                f"table is {str(self.path)!r}; its line {number} is not that of a point."
            ) from None
        self.lines[key_of(line.parameters)] = line

    def _unread(self) -> bytes:
        os.lseek(self._file, self._end, os.SEEK_SET)
        parts = iter(lambda: os.read(self._file, 1 << 20), b"")
        return b"".join(parts)

    def _cut(self, needed: bool) -> None:
        """Drop what follows the last whole line; only the holder of the lock may."""
        if needed and not self._sure:
            raise ParameterError(
                f"table is {str(self.path)!r}; its last line was cut off, and without locks "
                "another process may be writing it: end that line, or remove it."
            )
        if needed:
            os.ftruncate(self._file, self._end)

    def _write(self, row: str) -> None:
        data = f"{row}\n".encode()
        written = os.write(self._file, data)
        if written != len(data):
            self._cut(True)
            raise ParameterError(f"table is {str(self.path)!r}; the disk is full.")
        self._end += len(data)
        self._rows += 1

    def _check_place(self) -> None:
        """Refuse to go on with a file that is no longer what its path names."""
        try:
            there = os.path.samestat(self.path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            there = False
        if not there:
            raise ParameterError(
                f"table is {str(self.path)!r}; it was removed or replaced while the sweep ran."
            )

    def _disk(self, error: OSError) -> ParameterError:
        return ParameterError(f"table is {str(self.path)!r}; {error.strerror}.")

    def _check_header(self, row: str) -> None:
        try:
            found = json.loads(row)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("dpopt") != "sweep":
            raise self._refusal("it is not the table of a sweep")
        if found.get("schema") != SCHEMA:
            raise self._refusal(f"its schema is {shown(found.get('schema'))}, not {SCHEMA}")
        for part in ("function", "parameters"):
            if found.get(part) != self.header[part]:
                raise self._refusal(
                    f"it is of another sweep, whose {part} is {shown(found.get(part))} and not "
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
