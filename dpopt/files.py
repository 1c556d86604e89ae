"""Files written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpopt._errors import ParameterError
from dpopt._types import Json


def check_target(path: Path) -> None:
    """Refuse a path that cannot become a file.

    Raises:
        ParameterError: if ``path`` is a directory, a device or a pipe, or its folder is missing.
    """
    if "\0" in str(path):
        raise ParameterError(f"path is {str(path)!r}; a path holds no NUL character.")
    try:
        if path.is_dir():
            raise ParameterError(f"path is {str(path)!r}, a directory; it must be a file.")
        if path.exists() and not path.is_file():
            raise ParameterError(f"path is {str(path)!r}, a device or a pipe; it must be a file.")
        if not path.parent.is_dir():
            raise ParameterError(
                f"path is {str(path)!r}; its folder {str(path.parent)!r} is missing."
            )
        path.resolve()
    except (RuntimeError, UnicodeEncodeError):
        # Before Python 3.13 a loop of symbolic links is a RuntimeError.
        raise ParameterError(
            f"path is {str(path)!r}; it is a loop of links, or no file can have that name."
        ) from None
    except OSError as error:
        raise ParameterError(f"path is {str(path)!r}; {_reason(error)}.") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path of the same ending; on success it takes the place of ``path``.

    Raises:
        ParameterError: if ``path`` is a directory, its folder is missing, or cannot be written.
    """
    check_target(path)
    # Through a symbolic link to its target, which is what an ordinary write would change.
    path = path.resolve()
    temporary = _created_beside(path)
    try:
        yield temporary
        # First the contents, then the name: a crash in between leaves the old file.
        _to_disk(temporary)
        temporary.replace(path)
        with suppress(OSError):
            # Either file is whole; a folder that may not be read, or cannot be synced, is no error.
            _folder_to_disk(path.parent)
    except OSError as error:
        raise ParameterError(f"path is {str(path)!r}; {_reason(error)}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def _created_beside(path: Path) -> Path:
    """Create an empty file of a new name in the folder of ``path``, as private as ``path`` is.

    A new ``path`` gets the permissions of any new file: what the process's mask leaves of 0o666.
    """
    temporary = path.parent / f".dpopt-{secrets.token_hex(8)}{path.suffix}"
    try:
        known = (path.stat().st_mode & 0o777) | 0o600 if path.exists() else None
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if known is None else known))
        if known is not None:
            temporary.chmod(known)
    except OSError as error:
        raise ParameterError(f"path is {str(path)!r}; {_reason(error)}.") from error
    return temporary


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file)


def _folder_to_disk(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Json) -> None:
    """Write ``value`` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        ParameterError: if the file is missing, a directory, or not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "it is not text"
        raise ParameterError(f"path is {str(path)!r}; {reason}.") from error


def read_numbers(path: Path) -> list[float]:
    """Read numbers separated by white space or commas.

    Raises:
        ParameterError: if the file is missing, a directory, or holds something else.
    """
    words = read_text(path).replace(",", " ").split()
    try:
        return [float(word) for word in words]
    except ValueError:
        raise ParameterError(f"path is {str(path)!r}; it must hold numbers only.") from None


def read_integer_rows(text: str) -> list[list[int]]:
    """Read rows of integers, separated by commas or blanks: from ``text``, or from a file it names.

    Raises:
        ParameterError: if it is neither, or holds something else.
    """
    if not set(text) <= set("0123456789, \t-"):
        path = Path(text)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = _reason(error) if isinstance(error, OSError) else "it is not text"
            raise ParameterError(f"input is {str(path)!r}; {reason}.") from error
    rows = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    if not rows or not all(rows):
        raise ParameterError("input is empty; give integers separated by commas.")
    try:
        return [[int(word) for word in row] for row in rows]
    except ValueError:
        raise ParameterError("input holds something other than integers.") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
