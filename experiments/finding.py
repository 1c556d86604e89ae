"""What the modules of the experiments define under one name, found by scanning their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent


def modules_with(name: str) -> list[str]:
    """Return the modules that assign ``name`` at their top level, in the order of their names."""
    assigned = re.compile(rf"^{name}(: .*)? = ", re.MULTILINE)
    return [
        ".".join((_ROOT.name, *path.relative_to(_ROOT).with_suffix("").parts))
        for path in sorted(_ROOT.rglob("*.py"))
        if assigned.search(path.read_text(encoding="utf-8"))
    ]


def defined(name: str) -> Iterator[Any]:
    """Yield what each of them assigns; no other module is imported for it."""
    for module in modules_with(name):
        yield getattr(import_module(module), name)
