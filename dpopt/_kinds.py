"""Where each kind of setting is defined, found in the source: no list names them.

A setting says ``kind: ClassVar[str] = "..."`` in the body of its class. That line is looked for in
the files of the package, so that the command line can name every kind without importing one.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_KIND = re.compile(r'^    kind: ClassVar\[str\] = "([a-z][a-z0-9-]*)"$', re.MULTILINE)


@cache
def homes() -> dict[str, Path]:
    """Return the file that defines each kind of the package, in the order of the files' names."""
    root = Path(__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        for kind in _KIND.findall(path.read_text(encoding="utf-8")):
            found[kind] = path
    return found


def module_of(path: Path) -> str:
    """Return the name of the module that a file of the package is."""
    parts = path.relative_to(Path(__file__).parent.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")
