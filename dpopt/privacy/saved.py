"""Files of mechanisms: JSON with exact integers, a checksum, and strict checks when read.

A file is regular, text, and at most 256 MiB; no object repeats a name; numbers are finite, and
strings of digits are bounded before they become numbers. Everything that can be recomputed is.
Values that cannot, such as the bound of a program that was solved elsewhere, are marked as stated
by the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, shown
from dpopt._types import Json
from dpopt.files import contents, parse_json, versions, why_unread, write_json

SCHEMA = 3
"""Version of the format, the first one published; all kinds share one body, see `dpopt.shape`."""

# What a file says that it is.
FORMAT = "dpopt mechanism"
STATED = "stated_by_file"
"""Name, in `to_dict`, of the list of values that were read from a file and not recomputed."""
AUDIT = "audit"
"""Kind of a file about a mechanism that is not proved private: it can be read, never released."""


@dataclass(frozen=True)
class Sealed:
    """A parsed file whose envelope is checked and whose body, plain values, is not yet."""

    path: Path
    kind: str
    body: Json
    provenance: dict[str, Any]
    digest: str

    def refuse(self, why: str) -> ParameterError:
        """Return the error to raise when the body does not fit its kind."""
        return ParameterError(f"file {str(self.path)!r} cannot be used: {why}.")

    def require_hash(self) -> None:
        """Check that the contents match the hash in the file."""
        try:
            digest = _digest(self.kind, self.body, self.provenance)
        except RecursionError:
            raise self.refuse("it is nested too deeply") from None
        if digest != self.digest:
            raise self.refuse("its contents were changed after it was saved (hash mismatch)")


def seal(kind: str, body: Json, path: Path) -> None:
    """Write a mechanism with schema, provenance and hash, atomically."""
    provenance = versions()
    # The mark concerns values read from a file; in a file it would say nothing.
    body = {name: value for name, value in body.items() if name != STATED}
    write_json(
        path,
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "kind": kind,
            "body": body,
            "provenance": provenance,
            "hash": _digest(kind, body, provenance),
        },
    )


def read_sealed(path: Path) -> Sealed:
    """Read a saved file and check its envelope."""
    refuse = Sealed(path, "", {}, {}, "").refuse
    try:
        envelope = parse_json(contents(path))
    except (OSError, ValueError) as error:
        raise refuse(why_unread(error)) from None
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise refuse("it is not a saved dpopt mechanism")
    schema = envelope.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise refuse(f"its schema is {shown(schema)}, not {SCHEMA}; another dpopt wrote it")
    parts = [envelope.get(name) for name in ("kind", "body", "provenance", "hash")]
    if not all(map(isinstance, parts, (str, dict, dict, str))):
        raise refuse("kind, body, provenance or hash is missing")
    return Sealed(path, *cast(Any, parts))


def _digest(kind: str, body: Json, provenance: Json) -> str:
    parts = [SCHEMA, kind, body, provenance]
    text = json.dumps(parts, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a parameter as a JSON value that its constructor also accepts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list | range):
        return [plain(entry) for entry in value]
    if is_dataclass(value) and "__str__" not in type(value).__dict__:
        return [plain(getattr(value, f.name)) for f in fields(cast(Any, value))]
    return str(value)
