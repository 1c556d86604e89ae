"""Files of mechanisms, with the proof of their bound and the verifier beside them.

A mechanism is JSON with exact integers, a checksum, and strict checks when read. A file is regular,
text, and at most 256 MiB; no object repeats a name; numbers are finite, and strings of digits are
bounded before they become numbers. Everything that can be recomputed is. Values that cannot, such
as the bound of a program that was solved elsewhere, are marked as stated by the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, shown
from dpopt._types import Json
from dpopt.files import (
    contents,
    parse_json,
    read_text,
    replacing,
    versions,
    why_unread,
    write_json,
    write_text,
)
from dpopt.proofs.dual import Optimality

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


# What a proof file says that it is, and the version of its form.
_PROOF, _PROOF_SCHEMA = "dpopt proof", 1


def proof_path(path: Path) -> Path:
    """Return X.proof.json for X.json."""
    return path.with_name(path.name.removesuffix(".json") + ".proof.json")


def write_verifier(path: Path) -> Path:
    """Copy `dpopt.verify` as verify.py into the folder of a design's file; return its path."""
    target, source = path.with_name("verify.py"), Path(verify.__file__).read_text(encoding="utf-8")
    if not target.exists():
        write_text(target, source)
    elif read_text(target) != source:
        raise ParameterError(f"path is {str(target)!r}; another file of that name is there.")
    return target


@contextmanager
def laid_beside(
    path: Path, kind: str, proof: Optimality | None, verifier: bool, data: Json | None = None
) -> Iterator[None]:
    """Save proof and verifier with a design that the block writes: all of them, or none.

    The proof may be None, and the verifier, verify.py, left out; ``data`` are those of
    `optimality`.
    """
    added = verifier and not path.with_name("verify.py").exists()
    try:
        if verifier:
            write_verifier(path)
        with ExitStack() as stack:
            if proof is not None:
                multipliers = [[*name, exact_text(y)] for name, y in proof.multipliers]
                head = {"format": _PROOF, "schema": _PROOF_SCHEMA, "kind": kind, **(data or {})}
                bound = {"bound": exact_text(proof.bound), "multipliers": multipliers}
                write_json(stack.enter_context(replacing(proof_path(path))), head | bound)
            yield
    except BaseException:
        if added:
            path.with_name("verify.py").unlink(missing_ok=True)
        raise
