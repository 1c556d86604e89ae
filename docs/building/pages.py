"""Pages that are made before Sphinx reads: only what has changed is written, the rest removed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Make a folder hold the given files and no others; equal ones keep their time.

    Args:
        folder: of generated pages.
        pages: their text by file name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
