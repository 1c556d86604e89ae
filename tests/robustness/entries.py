"""Hostile files and command lines that are kept: what each is, and how it must end.

An entry is a JSON file with ``what`` (in words), ``arguments`` of ``dpopt`` and ``expect``:
"refused" (exit 2, 3 or 4, in one sentence) or "harmless" (that, or an answer). In the arguments
``{file}`` stands for a file that is made for it, ``{pipe}`` for a pipe that nobody writes to, and
``{kept}/x`` for one of the files of the other tests here. The file is either given by ``text``, a
list of texts with how often each is repeated, or by ``hex``; or it is a mechanism of ``kind`` as
dpopt saves it today, parts of its body replaced by ``body`` and sealed with a right hash, which
protects from accidents only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpopt.proofs.saved import seal
from tests.robustness.commands import Ended, complaint, files
from tests.solved import solved

KEPT = "{kept}/"
FOLDER = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Entry:
    """One file of the corpus."""

    what: str
    arguments: list[str]
    expect: str = "refused"
    text: list[tuple[str, int]] | None = None
    hex: str | None = None
    kind: str | None = None
    body: dict[str, Any] | None = None

    def prepare(self, folder: Path) -> list[str]:
        """Make the file in an empty folder; return the arguments that name it."""
        path, pipe = folder / "file.json", folder / "pipe"
        if self.text is not None:
            path.write_text("".join(part * times for part, times in self.text), encoding="utf-8")
        elif self.hex is not None:
            path.write_bytes(bytes.fromhex(self.hex))
        elif self.kind is not None:
            solved(self.kind).save(path)
            record = json.loads(path.read_text(encoding="utf-8"))
            seal(record["kind"], record["body"] | (self.body or {}), path)
        if any("{pipe}" in argument for argument in self.arguments):
            os.mkfifo(pipe)
        if any(argument.startswith(KEPT) for argument in self.arguments):
            files(folder)
        places = {"{file}": str(path), "{pipe}": str(pipe)}
        return [
            places.get(argument, argument.replace(KEPT, f"{folder}/", 1))
            for argument in self.arguments
        ]

    def save(self, path: Path) -> None:
        """Write the entry."""
        kept = {name: value for name, value in asdict(self).items() if value is not None}
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def entries(folder: Path = FOLDER) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of a folder with their names."""
    for path in sorted(folder.glob("*.json")):
        yield path.stem, Entry(**json.loads(path.read_text(encoding="utf-8")))


def fault(ended: Ended, expect: str) -> str | None:
    """Return what is wrong with how an entry ended; None if nothing is."""
    if "out of memory" in ended.err:
        return "read until the memory was full"
    if ended.code == 4 and "Traceback" not in ended.err:
        # What was found not to be private may be described on stdout.
        return None
    if expect == "refused" and ended.code not in (2, 3):
        return f"exit code {ended.code} and not refused: {ended.out[:200]!r}"
    return complaint(ended)
