"""The code of a page of documentation, taken out of it, run, and compared with what it prints."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from dpopt.cli import main

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SIGNS = doctest.ELLIPSIS


@dataclass(frozen=True)
class Page:
    """A page of documentation.

    Attributes:
        files: what its blocks of Python say of files, by the path in their first line.
        entries: lines for a dictionary in a file, by path and the dictionary's name.
        sessions: its blocks of Python with a prompt.
        scripts: its other blocks of Python.
        commands: its commands with what they print.
        lines: its other lines of a shell.
    """

    files: dict[str, str]
    entries: dict[tuple[str, str], str]
    sessions: list[str]
    scripts: list[str]
    commands: list[tuple[str, str]]
    lines: list[str]

    @classmethod
    def of(cls, name: str) -> Page:
        """Read a page by its path in the repository."""
        page = cls({}, {}, [], [], [], [])
        for language, text in _BLOCK.findall((ROOT / name).read_text(encoding="utf-8")):
            file = re.match(r"# (\S+\.py)(?:, in (\w+))?\n", text)
            if language == "console":
                parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
                page.commands.extend((c, out) for c, _, out in (p.partition("\n") for p in parts))
            elif language == "sh":
                page.lines.extend(text.replace("\\\n", " ").splitlines())
            elif text.startswith(">>>"):
                page.sessions.append(text)
            elif file is None:
                page.scripts.append(text)
            elif file[2] is None:
                page.files[file[1]] = text
            else:
                page.entries[file[1], file[2]] = text[file.end() :]
        return page


def differs(expected: str, printed: str) -> str:
    """What a reader of the page would miss; empty if it is as printed, "..." for anything."""
    if doctest.OutputChecker().check_output(expected, printed, _SIGNS):
        return ""
    example = doctest.Example("", expected)
    return doctest.OutputChecker().output_difference(
        example, printed, doctest.REPORT_NDIFF | _SIGNS
    )


def failures(sessions: Sequence[str]) -> str:
    """Return what sessions, one going on from the other, print otherwise than the page says."""
    out = io.StringIO()
    test = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, "session", None, 0)
    doctest.DocTestRunner(optionflags=_SIGNS).run(test, out=out.write)
    return out.getvalue()


def printed(command: str) -> str:
    """Return what a command of a page prints, and how it ended if it failed."""
    program, *words = shlex.split(command)
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if program == "dpopt":
                main(words)
            elif words[:2] == ["-m", "pytest"]:
                options = ["-n", "0", "-p", "no:cacheprovider", "-c", "/dev/null"]
                code = pytest.main([*words[2:], *options])
            else:
                with patch.object(sys, "argv", words):
                    runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            code = end.code
    return out.getvalue() + (f"[exit code {code}]\n" if code else "")
