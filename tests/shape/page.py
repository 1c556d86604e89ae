"""The code of a page of documentation, taken out of it, and compared with what it prints."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SIGNS = doctest.ELLIPSIS


@dataclass(frozen=True)
class Page:
    """A page of documentation.

    Attributes:
        files: what its blocks of Python say of files, by the path in their first line.
        sessions: its blocks of Python with a prompt.
        commands: its commands with what they print.
        entries: lines for a dictionary in a file, by path and the dictionary's name.
    """

    files: dict[str, str]
    sessions: list[str]
    commands: list[tuple[str, str]]
    entries: dict[tuple[str, str], str]

    @classmethod
    def of(cls, path: Path) -> Page:
        """Read a page."""
        files: dict[str, str] = {}
        entries: dict[tuple[str, str], str] = {}
        sessions, commands = [], []
        for language, text in _BLOCK.findall(path.read_text(encoding="utf-8")):
            if language == "console":
                commands += list(_commands(text))
            elif text.startswith(">>>"):
                sessions.append(text)
            else:
                name = re.match(r"# (\S+\.py)(?:, in (\w+))?\n", text)
                assert name is not None, f"a block that names no file: {text[:80]}"
                if name[2] is None:
                    files[name[1]] = text
                else:
                    entries[name[1], name[2]] = text[name.end() :]
        return cls(files, sessions, commands, entries)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def differs(expected: str, printed: str) -> str | None:
    """What a reader of the page would miss; None if it is as printed, "..." for anything."""
    checker = doctest.OutputChecker()
    if checker.check_output(expected, printed, _SIGNS):
        return None
    example = doctest.Example("", expected)
    return checker.output_difference(example, printed, doctest.REPORT_NDIFF | _SIGNS)
