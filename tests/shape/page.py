"""The code of a page of documentation, taken out of it and run in a copy of the package."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = "from dpopt.cli import main; main()"
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


@dataclass(frozen=True)
class Copy:
    """A copy of the package, with a folder to work in.

    Attributes:
        root: where the copy is; also the folder that commands run in.
    """

    root: Path

    @classmethod
    def make(cls, root: Path, page: Page) -> Copy:
        """Copy the package, its experiments, tests and pages, and add what a page says."""
        leave = shutil.ignore_patterns("__pycache__", "*.pyc", "*.png")
        for name in ("dpopt", "experiments", "tests", "docs"):
            shutil.copytree(ROOT / name, root / name, ignore=leave)
        shutil.copy(ROOT / "pyproject.toml", root)
        for name, text in page.files.items():
            (root / name).write_text(text, encoding="utf-8")
        for (name, table), lines in page.entries.items():
            text = (root / name).read_text(encoding="utf-8")
            start = re.search(rf"^{table}\b.*\{{\n", text, re.MULTILINE)
            assert start is not None, f"{name} has no dictionary {table}"
            text = text[: start.end()] + lines + text[start.end() :]
            (root / name).write_text(text, encoding="utf-8")
        return cls(root)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run this Python in the copy's folder, where it finds the copy first."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**_environment(), "PYTHONPATH": str(self.root), "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )

    def shell(self, command: str) -> str:
        """Run a command of the page; return what it prints, and how it ended if it failed."""
        program, *arguments = shlex.split(command)
        before = {"dpopt": ["-c", _COMMAND], "python": []}[program]
        if arguments[:2] == ["-m", "pytest"]:
            arguments += ["-n", "0", "-p", "no:cacheprovider"]
        done = self.python(*before, *arguments)
        if done.returncode == 0:
            return done.stdout
        return f"{done.stdout}{done.stderr}[exit code {done.returncode}]\n"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def differs(expected: str, printed: str) -> str | None:
    """What a reader of the page would miss; None if it is as printed, "..." for anything."""
    checker = doctest.OutputChecker()
    if checker.check_output(expected, printed, _SIGNS):
        return None
    example = doctest.Example("", expected)
    return checker.output_difference(example, printed, doctest.REPORT_NDIFF | _SIGNS)
