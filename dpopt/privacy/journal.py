"""A file to which lines are added and none is changed: each holds the SHA-256 of all up to it.

What was edited, reordered or lost in the middle is refused. Lines that somebody cut off whole from
the end are not noticed by who opens the file afterwards: the chain guards against mistakes, not
against its keeper. Several processes may write at once: one at a time holds the file's lock.

The end of a line that is missing is a crash while it was written. Nothing was drawn for it: a
release is drawn after `Journal.writing` ended, which is after the file was synchronised, which is
after the whole line was written. So the part of a line is taken away by the next one who writes,
and a line says so. A line that lacks nothing but its end is kept and counts: if not for a release,
then to be on the safe side. Whatever else stands there is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from dpopt._errors import ParameterError
from dpopt._lock import locked
from dpopt._types import Json
from dpopt.files import check_target, folder_to_disk, parse_json, why_unread

FOREIGN = "it is no ledger of dpopt"
MALFORMED = "one of its lines is malformed"

_OPEN, _HEX, _MIDDLE = b'{"chain":"', 64, b'","line":'
_TIME = b'{"time":"'
_TIME_ENDS = len(_TIME + b'2026-01-31T23:59:59Z"')
_CHANGED = "one of its lines was changed, moved or cut off after it was written"
_MOST_LINE = 1 << 16
_BLOCK = 1 << 20


class Broken(Exception):  # noqa: N818 - a `Journal` makes an error of the parameter of it
    """The file cannot be used, and why."""


class Journal:
    """A file of records; the first one says what the file is, all others begin with their time."""

    def __init__(
        self, path: Path, take: Callable[[Iterator[bytes]], None], forget: Callable[[], None]
    ) -> None:
        """Take a path; nothing is read yet.

        Args:
            path: absolute.
            take: is given the records that are new, in JSON, whenever the file was read; it goes
                through all of them, and raises `Broken` for one that it does not understand.
            forget: drops all that was taken; what was read is then given to ``take`` again.
        """
        self.path = path
        self._take, self._forget = take, forget
        self._reader = _Reader()
        # Whether all that the reader passed was taken. Whatever ends a read or a write early, even
        # a second interrupt, leaves it False, and the next one begins at the start.
        self._sound = True
        self._files = set[int]()

    def begin(self, head: Json) -> None:
        """Make the file with its first record: whole, or not at all, by one process alone.

        Raises:
            ParameterError: if it cannot be made.
        """
        check_target(self.path)
        temporary = self.path.parent / f".dpopt-{secrets.token_hex(8)}.ledger"
        try:
            file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            try:
                _write(file, chained("", head))
            finally:
                os.close(file)
            # Where another process was first, its file stays.
            with suppress(FileExistsError):
                os.link(temporary, self.path)
            folder_to_disk(self.path.parent)
        except OSError as error:
            raise self._refusal(why_unread(error)) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def catch_up(self) -> None:
        """Read what is new.

        Raises:
            ParameterError: if the file cannot be read, was changed, or is not the one from before.
        """
        # Under the lock: who mends the part of a line cuts it off while others would read it.
        with self._opened(os.O_RDONLY) as file, locked(file, shared=True):
            self._read(file)

    def forked(self) -> None:
        """Let go, in a new process, of what other threads of the old one were doing."""
        # The lock belongs to the open file: kept open here, it outlived a writer that is killed.
        for file in self._files:
            with suppress(OSError):
                os.close(file)
        self._files = set[int]()
        self._sound = False

    @contextmanager
    def writing(self) -> Iterator[Callable[[Json], None]]:
        """Hold the lock of the file, read to its end; yield what adds a record to it.

        A record is on disk when that returns; what a failure leaves of it is mended by the next one
        who writes. Who adds one takes it himself, before the end.

        Raises:
            ParameterError: if the file cannot be written, or has no lock.
        """
        with self._opened(os.O_RDWR | os.O_APPEND) as file, locked(file) as sure:
            if not sure:
                raise Broken("its file system has no locks; keep it on a disk of your own")
            self._read(file)
            self._mend(file)
            yield lambda record: self._append(file, record)
            self._sound = True

    def records(self) -> Iterator[bytes]:
        """Return all records that are known, from the first on, in JSON, read one after the other.

        Whole lines are never touched again, so that no lock is held meanwhile.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        return self._records(self._reader.offset, self.unended())

    def _records(self, end: int, unended: list[bytes]) -> Iterator[bytes]:
        with self._opened(os.O_RDONLY) as file:
            yield from _Reader().bodies(file, end)
        yield from unended

    def unended(self) -> list[bytes]:
        """Return the last record, if its line was read and lacks its end alone."""
        return list(self._reader.unended())

    def _refusal(self, why: str) -> ParameterError:
        return ParameterError(
            f"ledger {str(self.path)!r} cannot be used: {why}; nothing was drawn."
        )

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Yield the descriptor of the file; its errors become errors of the parameter."""
        try:
            check_target(self.path)
            extra = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            file = os.open(self.path, flags | extra | getattr(os, "O_CLOEXEC", 0))
            self._files.add(file)
            try:
                yield file
            finally:
                self._files.discard(file)
                os.close(file)
        except OSError as error:
            raise self._refusal(why_unread(error)) from error
        except Broken as error:
            raise self._refusal(str(error)) from None

    def _read(self, file: int) -> None:
        if not self._sound:
            self._reader = self._reader.anew()
            self._forget()
        self._sound = False
        self._reader.require_same(file)
        self._take(self._reader.bodies(file))
        self._reader.remember()
        self._sound = True

    def _mend(self, file: int) -> None:
        """Take away the part of a line, under the lock; or end a line that lacks its end alone."""
        tail = self._reader.tail
        if not tail:
            return
        self._sound = False
        whole = tail.rstrip(b"\0")
        if self._reader.complete(whole):
            os.ftruncate(file, self._reader.offset + len(whole))
            _write(file, b"\n")
            self._sound = True
            self._read(file)
            return
        os.ftruncate(file, self._reader.offset)
        self._append(file, {"time": now(), "unfinished": len(tail)})
        self._sound = True

    def _append(self, file: int, record: Json) -> None:
        line = chained(self._reader.chain, record)
        if len(line) > _MOST_LINE:
            raise ParameterError("what is too long an entry for a ledger; name fewer words.")
        self._sound = False
        _write(file, line)
        self._reader.passed(line)
        self._reader.remember()


class _Reader:
    """What was read of a file, line by line, each with the chain of all before it.

    Attributes:
        offset: bytes that were read and whose lines are whole.
        count: number of these lines.
        chain: of the last one.
        tail: the bytes after them: part of a line, or a line without its end.
    """

    def __init__(self) -> None:
        self.offset, self.count, self.chain, self.tail = 0, 0, "", b""
        self._last = b""
        self._identity: tuple[int, int] | None = None
        self._seen = 0, b""

    def anew(self) -> _Reader:
        """Return a reader of the same file that read nothing, and expects what this one knew."""
        found = _Reader()
        found._identity, found._seen = self._identity, self._seen
        return found

    def remember(self) -> None:
        """Expect the last line at its place from now on."""
        self._seen = self.offset, self._last

    def require_same(self, file: int) -> None:
        """Refuse another file than the one that was read before, or one that lost lines."""
        found = os.fstat(file)
        if self._identity is None:
            self._identity = found.st_dev, found.st_ino
        ends, last = self._seen
        os.lseek(file, ends - len(last), os.SEEK_SET)
        same = self._identity == (found.st_dev, found.st_ino)
        if not same or _taken(file, len(last)) != last:
            raise Broken("it was replaced or changed since it was opened")

    def bodies(self, file: int, end: int | None = None) -> Iterator[bytes]:
        """Yield what each new line says, its chain compared.

        Args:
            file: its descriptor.
            end: of the lines to read, in bytes; None for all.

        Raises:
            Broken: at a line that nobody wrote here, or was changed.
        """
        os.lseek(file, self.offset, os.SEEK_SET)
        rest, at = b"", self.offset
        while block := os.read(file, _BLOCK if end is None else min(_BLOCK, end - at)):
            at += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                body = self._body(line)
                if body is None:
                    raise Broken(FOREIGN if self.count == 0 else _CHANGED)
                self.passed(line + b"\n")
                yield body
            if len(rest) > _MOST_LINE:
                raise Broken(FOREIGN if self.count == 0 else _CHANGED)
        if self.count == 0:
            raise Broken(FOREIGN if rest else "it is empty, which a ledger never is")
        if not self._mendable(rest):
            raise Broken(_CHANGED)
        self.tail = rest

    def passed(self, line: bytes) -> None:
        """Go on after a line that is whole."""
        self.offset += len(line)
        self.count += 1
        self.chain = line[len(_OPEN) : len(_OPEN) + _HEX].decode()
        self._last, self.tail = line, b""

    def complete(self, line: bytes) -> bool:
        """Whether these bytes are the next line but for its end."""
        return self._body(line) is not None

    def unended(self) -> Iterator[bytes]:
        """Yield what the last line says, if it lacks its end alone."""
        body = self._body(self.tail.rstrip(b"\0"))
        if body is not None:
            yield body

    def _body(self, line: bytes) -> bytes | None:
        start = len(_OPEN) + _HEX
        body = line[start + len(_MIDDLE) : -1]
        chain = _chain(self.chain, body)
        whole = b"".join((_OPEN, chain.encode(), _MIDDLE, body, b"}"))
        return body if whole == line else None

    def _mendable(self, tail: bytes) -> bool:
        """Whether bytes are part of the next line, perhaps with zeros that a crash left."""
        part = tail.rstrip(b"\0")
        if not part or self.complete(part):
            return True
        head, chain = part[: len(_OPEN)], part[len(_OPEN) : len(_OPEN) + _HEX]
        middle = part[len(_OPEN) + _HEX :][: len(_MIDDLE)]
        begun = _OPEN.startswith(head) and _MIDDLE.startswith(middle)
        # A line and something else than its end was changed by somebody.
        return begun and not chain.strip(b"0123456789abcdef") and not self.complete(part[:-1])


def now() -> str:
    """Return the time in UTC, as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timed(body: bytes) -> tuple[str, bytes]:
    """Return the time of a record, and all after it.

    Raises:
        Broken: for a record that does not begin with its time.
    """
    if not body.startswith(_TIME):
        raise Broken(MALFORMED)
    return body[len(_TIME) : _TIME_ENDS - 1].decode(errors="replace"), body[_TIME_ENDS:]


def parsed(body: bytes) -> Json:
    """Return a record.

    Raises:
        Broken: if it is no JSON.
    """
    try:
        found = parse_json(body.decode())
    except ValueError:
        raise Broken(MALFORMED) from None
    if not isinstance(found, dict):
        raise Broken(MALFORMED)
    return found


def chained(chain: str, record: Json) -> bytes:
    """Return the line of a record that follows a chain."""
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    return b"".join((_OPEN, _chain(chain, body).encode(), _MIDDLE, body, b"}\n"))


def _chain(chain: str, body: bytes) -> str:
    return hashlib.sha256(chain.encode() + body).hexdigest()


def _write(file: int, line: bytes) -> None:
    """Write bytes at the end of a file, and wait for the disk."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def _taken(file: int, size: int) -> bytes:
    """Return the next bytes of a file, fewer only at its end."""
    found = b""
    while len(found) < size and (block := os.read(file, size - len(found))):
        found += block
    return found
