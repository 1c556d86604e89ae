"""Follow docs/adding.md in one process, ``python -m tests.shape.follow FOLDER``.

The page's files lie in a folder beside the package, which finds them as if they were its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import _kinds
from tests.pages import Page, failures, printed
from tests.shape import checks as over

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


def broken(kind: Any, folder: Path) -> Iterator[str]:
    """Yield what every kind has to pass and a kind of the page does not."""
    for check in over.CHECKS:
        try:
            over.run(check, kind, folder)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
            yield f"{kind.kind}, {check.__name__}: {error!r}"


def follow(folder: Path) -> dict[str, Any]:
    """Return what commands print, what sessions print otherwise, and what is broken."""
    page = Page.of("docs/adding.md")
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
