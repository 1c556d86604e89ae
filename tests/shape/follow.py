"""Follow docs/adding.md in one process, ``python -m tests.shape.follow FOLDER``.

The page's files lie in a folder beside the package, which finds them as if they were its own.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import runpy
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import _kinds
from dpopt.cli import main
from tests.shape import checks as over
from tests.shape.page import ROOT, Page

NEW = ("count", "survey")


def with_files(page: Page, folder: Path) -> None:
    """Write the files of the page, and its lines of the dictionary of kinds."""
    for name, text in page.files.items():
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    dpopt.__path__.append(str(folder / "dpopt"))
    for (name, table), lines in page.entries.items():
        module = import_module(name.removesuffix(".py").replace("/", "."))
        getattr(module, table).update(eval(f"{{{lines}}}"))


def printed(command: str) -> str:
    """Return what a command of the page prints, and how it ended if it failed."""
    program, *words = shlex.split(command)
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if program == "dpopt":
                main(words)
            elif words[:2] == ["-m", "pytest"]:
                code = pytest.main(
                    [*words[2:], "-n", "0", "-p", "no:cacheprovider", "-c", "/dev/null"]
                )
            else:
                sys.argv = words
                runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            code = end.code
    return out.getvalue() + (f"[exit code {code}]\n" if code else "")


def failures(sessions: list[str]) -> str:
    """Return what sessions, one going on from the other, print otherwise than the page says."""
    out = io.StringIO()
    test = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, "session", None, 0)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.write)
    return out.getvalue()


def broken(kind: Any, folder: Path) -> Iterator[str]:
    """Yield what every kind has to pass and a kind of the page does not."""
    for check in over.CHECKS:
        try:
            over.run(check, kind, folder)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
            yield f"{kind.kind}, {check.__name__}: {error!r}"


def follow(folder: Path) -> dict[str, Any]:
    """Return what commands print, what sessions print otherwise, and what is broken."""
    page = Page.of(ROOT / "docs/adding.md")
    with_files(page, folder)
    os.chdir(folder)
    told: dict[str, Any] = {"commands": [printed(command) for command, _ in page.commands]}
    told["sessions"] = failures(page.sessions)
    kinds = {kind.kind: kind for kind in map(_kind, NEW)}
    told["broken"] = [text for kind in kinds.values() for text in broken(kind, folder)]
    told["help"] = printed("dpopt --help")
    return told


def _kind(name: str) -> Any:
    return getattr(import_module(_kinds.KINDS[name][0]), name.capitalize())


if __name__ == "__main__":
    answer = follow(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(answer))
