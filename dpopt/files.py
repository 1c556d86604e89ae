"""Files written whole or not at all, and the versions that made them."""

from __future__ import annotations

import csv
import json
import math
import os
import platform
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpopt._errors import ParameterError

if TYPE_CHECKING:
    from dpopt._types import Json


LARGEST_FILE = 1 << 28
"""Bytes of the largest file that is read or saved: 256 MiB."""

TABLES = (".csv", ".tsv")
"""Endings of files that hold a table."""

# Said of a file that is too large; digits of the longest integer in one.
_TOO_LARGE = f"it has more than {LARGEST_FILE >> 20} MiB"
_LONGEST_INTEGER = 4_000
# Endings by which a reader, or a program, expects something other than JSON.
_OTHER_FORMATS = {
    *(".bz2", ".csv", ".docx", ".feather", ".gz", ".h5", ".html", ".jpg", ".ledger", ".mat"),
    *(".npy", ".npz", ".parquet", ".pdf", ".pickle", ".pkl", ".png", ".pt", ".py", ".svg"),
    *(".tar", ".toml", ".tsv", ".xls", ".xlsx", ".xml", ".xz", ".yaml", ".yml", ".zip"),
}


def check_target(path: Path) -> None:
    """Refuse a path that cannot become a file."""
    if "\0" in str(path):
        raise _refusal(path, "a path holds no NUL character")
    try:
        if path.is_dir():
            raise _refusal(path, "a directory; it must be a file")
        if path.exists() and not path.is_file():
            raise _refusal(path, "a device or a pipe; it must be a file")
        if not path.parent.is_dir():
            raise _refusal(path, f"its folder {str(path.parent)!r} is missing")
        path.resolve()
    except (RuntimeError, UnicodeEncodeError):
        # Before Python 3.13 a loop of symbolic links is a RuntimeError.
        raise _refusal(path, "it is a loop of links, or no file can have that name") from None
    except OSError as error:
        raise _refusal(path, _reason(error)) from error


def check_json_target(path: Path) -> None:
    """Refuse a path that cannot become a file of JSON; see `check_target`."""
    if path.suffix.lower() in _OTHER_FORMATS:
        why = f"the file is JSON, so its ending must be .json, not {path.suffix}"
        raise _refusal(path, why)
    check_target(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path of the same ending; on success it takes the place of ``path``."""
    check_target(path)
    # Through a symbolic link to its target, which is what an ordinary write would change.
    path = path.resolve()
    temporary = _created_beside(path)
    try:
        yield temporary
        # First the contents, then the name: a crash in between leaves the old file.
        with temporary.open("rb+") as file:
            to_disk(file.fileno())
        temporary.replace(path)
        with suppress(OSError):
            # Either file is whole; a folder that may not be read, or cannot be synced, is no error.
            folder_to_disk(path.parent)
    except OSError as error:
        raise _refusal(path, _reason(error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _created_beside(path: Path) -> Path:
    """Create an empty file of a new name in the folder of ``path``, as private as ``path`` is."""
    temporary = path.parent / f".dpopt-{secrets.token_hex(8)}{path.suffix}"
    try:
        mode = (path.stat().st_mode & 0o777) | 0o600 if path.exists() else None
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if mode is None else mode))
        if mode is not None:
            temporary.chmod(mode)
    except OSError as error:
        raise _refusal(path, _reason(error)) from error
    return temporary


def folder_to_disk(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system has that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            to_disk(descriptor)
        finally:
            os.close(descriptor)


def to_disk(descriptor: int) -> None:
    """Wait until a file or folder is on the disk.

    On macOS `os.fsync` waits for the drive's memory only.
    """
    if sys.platform == "darwin":
        import fcntl

        # A disk of another file system may not have it.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Json) -> None:
    """Write ``value`` as indented JSON, whole or not at all."""
    check_json_target(path)
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    if len(text) > LARGEST_FILE:
        raise _refusal(path, f"the file would be too large: {_TOO_LARGE}")
    write_text(path, text)


def _refusal(path: Path, why: str) -> ParameterError:
    return ParameterError(f"path is {str(path)!r}; {why}.")


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8."""
    try:
        return contents(path)
    except (OSError, ValueError) as error:
        raise _refusal(path, why_unread(error)) from error


def contents(path: Path) -> str:
    """Return the text of an ordinary file in UTF-8; see `why_unread` for a message.

    A device or a pipe may never end, and waiting for one may not either: neither is opened to be
    read, and no more than `LARGEST_FILE` bytes are.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_NOCTTY", 0)), "rb", closefd=True) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is a device or a pipe, not a file")
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(_TOO_LARGE)
    return data.decode("utf-8").replace("\r\n", "\n")


def why_unread(error: OSError | ValueError) -> str:
    """Return the reason why `contents` failed, or `parse_json`."""
    if isinstance(error, OSError):
        return _reason(error)
    return "it is not text" if isinstance(error, UnicodeError) else str(error)


def parse_json(text: str) -> Any:  # noqa: ANN401
    """Return the value of a JSON text in which no name stands twice and all numbers are finite."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_named_once,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_short,
        )
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON, or it was cut off") from None


def _named_once(pairs: list[tuple[str, Any]]) -> Json:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name stands twice in one of its objects")
    return record


def _finite(text: str) -> float:
    """Refuse what JSON does not have, Infinity and NaN, and numbers beyond all floats."""
    if not math.isfinite(number := float(text)):
        raise ValueError("it holds a number that is not finite")
    return number


def _short(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError(f"it holds an integer of more than {_LONGEST_INTEGER:,} digits")
    return int(text)


def read_rows(path: Path) -> list[list[int | float]]:
    """Read numbers, a row a line, separated by white space, commas or colons."""
    lines = read_text(path).replace(",", " ").replace(":", " ").splitlines()
    try:
        rows = [[number(word) for word in line.split()] for line in lines if line.strip()]
    except ValueError:
        rows = []
    if not rows:
        raise _refusal(path, "it must hold numbers only")
    return rows


def read_table(path: Path) -> dict[str, list[Any]]:
    """Read a table of numbers: a .csv or .tsv file.

    Returns:
        A list for each column by name: of numbers, or of words. A first line holds names unless it
        holds numbers other than 0, 1, 2, ...; 0, 1 alone, which may be either, is refused. A first
        column without a name comes back as "input".
    """
    ending = path.suffix.lower()
    if ending not in TABLES:
        raise _refusal(path, f"a table is a file that ends in {', '.join(TABLES)}")
    separator = "\t" if ending == ".tsv" else ","
    try:
        text = read_text(path).removeprefix("\ufeff").splitlines()
        read = csv.reader(text, delimiter=separator, strict=True)
        lines = [[word.strip() for word in line] for line in read if any(map(str.strip, line))]
    except csv.Error:
        raise _refusal(path, "it is not a table of text") from None
    if not lines:
        raise _refusal(path, "it is empty")
    count = len(lines[0])
    numbered = [str(number) for number in range(count)]
    if lines[0] == ["0", "1"]:
        why = f"its first line 0{separator}1 may be names of columns or numbers"
        raise _refusal(path, f"{why}: name the columns otherwise, or write 0.0 and 1.0")
    named = lines[0] == numbered or not all(map(_is_number, lines[0]))
    names = lines.pop(0) if named else numbered
    for number, line in enumerate(lines, 1 + named):
        if len(line) != count:
            why = f"line {number} has {len(line)} values, and the first has {count}"
            raise _refusal(path, why)
    if len(set(names)) < count:
        raise _refusal(path, "two of its columns have the same name")
    columns = {name: [line[at] for line in lines] for at, name in enumerate(names)}
    if names[0] == "":
        # What pandas writes beside a column of names are the numbers of its lines.
        lines = columns.pop("")
        columns = columns if "input" in columns else {"input": lines, **columns}
    return {name: _column(name, words) for name, words in columns.items()}


def _column(name: str, words: list[str]) -> list[Any]:
    """Return numbers if all words are, and else the words: names of inputs or outputs."""
    if name in ("input", "output"):
        plain = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
        return list(map(number, words)) if all(re.fullmatch(plain, w) for w in words) else words
    return list(map(float, words)) if all(map(_is_number, words)) else words


def _is_number(word: object) -> bool:
    try:
        float(str(word))
    except ValueError:
        return False
    return True


def number(word: str) -> int | float:
    """Return a number that somebody wrote, a whole one as an integer."""
    try:
        return int(word)
    except ValueError:
        return float(word)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def versions(*further: str) -> dict[str, str]:
    """Return the versions of Python, dpopt and the libraries that its numbers rest on.

    Args:
        further: names of other packages whose versions are asked for.
    """
    installed = {
        package: _version(package)
        for package in (*("dpopt", "numpy", "scipy", "highspy", "cvxpy", "python-flint"), *further)
    }
    return {"python": platform.python_version(), **installed}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
