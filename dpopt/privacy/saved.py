"""Saved mechanisms: JSON with exact integers, read back with suspicion."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpopt._errors import ParameterError
from dpopt._types import Json
from dpopt.files import write_json
from dpopt.privacy.guarantee import Guarantee
from dpopt.provenance import versions

SCHEMA = 1
FORMAT = "dpopt mechanism"


@dataclass(frozen=True)
class Sealed:
    """A saved file, parsed, its envelope checked, its body not yet believed.

    Attributes:
        path: where it came from.
        kind: what the body describes, such as "majority".
        body: the mechanism.
        provenance: what made it.
        digest: the hash that the file states.
    """

    path: Path
    kind: str
    body: Json
    provenance: dict[str, Any]
    digest: str

    def refuse(self, why: str) -> ParameterError:
        """Return the error to raise when the body is not what its kind asks for."""
        return ParameterError(f"file {str(self.path)!r} cannot be used: {why}.")

    def integer(self, name: str) -> int:
        """Return a whole number of the body."""
        value = self.body.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
            raise self.refuse(f"{name} is {value!r}, not a whole number in 1..4096")
        return value

    def require_hash(self) -> None:
        """Refuse a file whose contents were changed after it was saved.

        Raises:
            ParameterError: if the hash does not match.
        """
        try:
            digest = _digest(self.kind, self.body, self.provenance)
        except RecursionError:
            raise self.refuse("it is nested too deeply") from None
        if digest != self.digest:
            raise self.refuse("its contents were changed after it was saved (hash mismatch)")


def seal(kind: str, body: Json, path: Path) -> None:
    """Write a mechanism with schema, provenance and hash; whole or not at all."""
    provenance = versions()
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
    """Read a saved file and check its envelope.

    Raises:
        ParameterError: if it is missing, truncated, of another format or of a newer schema.
    """
    refuse = Sealed(path, "", {}, {}, "").refuse
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:
        raise refuse("it is not text") from None
    except OSError as error:
        raise refuse((error.strerror or str(error)).lower()) from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse("it is not JSON, or it was cut off") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise refuse("it is not a saved dpopt mechanism")
    schema = found.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise refuse("its schema is not a whole number")
    if schema > SCHEMA:
        raise refuse(f"its schema is {schema}, newer than {SCHEMA}; install a newer dpopt")
    parts = (found.get("kind"), found.get("body"), found.get("provenance"), found.get("hash"))
    kind, body, provenance, digest = parts
    if not (
        isinstance(kind, str)
        and isinstance(body, dict)
        and isinstance(provenance, dict)
        and isinstance(digest, str)
    ):
        raise refuse("kind, body, provenance or hash is missing")
    return Sealed(path, kind, body, provenance, digest)


def guarantee_of(sealed: Sealed) -> Guarantee:
    """Return the guarantee that the body states.

    Raises:
        ParameterError: if it is missing or out of range.
    """
    stated = sealed.body.get("guarantee")
    if not isinstance(stated, dict):
        raise sealed.refuse("its guarantee is missing")
    try:
        return Guarantee(stated.get("epsilon"), stated.get("delta"))  # type: ignore[arg-type]
    except ParameterError as error:
        raise sealed.refuse(f"its guarantee is wrong: {str(error).rstrip('.')}") from None


def whole(value: object) -> int:
    """Return an integer of a saved body: a JSON integer, or a string of decimal digits.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,2000}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not a whole number")


def _digest(kind: str, body: Json, provenance: Json) -> str:
    text = json.dumps([SCHEMA, kind, body, provenance], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
