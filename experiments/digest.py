"""What made a result, in short: digests of code, versions of libraries, the state of data files."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpopt.provenance import versions
from experiments.parameters import plain

_ROOT = Path(__file__).parent
# What no number rests on: parts of dpopt, and of the experiments what runs and shows them.
_NO_NUMBERS = ("cli", "_interact.py", "_sweep.py", "_figure.py")
_FRAME = ("__main__.py", "kept.py", "report", "runner.py", "running.py", "benchmarks")
# Looks of pictures.
_LOOKS = ("drawing.py", "style.py")
_TEXTS = {".md", ".html", ".css", ".png", ".js", ".pyc"}


@cache
def code_digest(*, drawing: bool = False) -> str:
    """Return a digest of the sources and data files of dpopt and of the experiments."""
    found = find_spec("dpopt")
    library = Path(found.origin).parent if found is not None and found.origin else Path()
    files = [
        *_files(library, _NO_NUMBERS, styles=drawing),
        *_files(_ROOT, (*_FRAME, *(() if drawing else _LOOKS)), styles=drawing),
    ]
    made = hashlib.sha256()
    for path in files:
        inside = hashlib.sha256(path.read_bytes()).hexdigest()
        made.update(f"{path.parent.name}/{path.name} {inside}\n".encode())
    return made.hexdigest()


def _files(root: Path, without: Iterable[str], *, styles: bool) -> list[Path]:
    """Return the sources and data below a folder, but for some names at its top."""
    skipped = set(without) | {"__pycache__"}
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.suffix not in _TEXTS
        and (styles or path.suffix != ".mplstyle")
        and not skipped & {path.relative_to(root).parts[0], path.parent.name}
    ]


def libraries(*, drawing: bool = False) -> dict[str, str]:
    """Return the versions that a result depends on."""
    return versions("polars", "scikit-learn", *(["matplotlib"] if drawing else []))


def data_files(configuration: Mapping[str, Any]) -> list[list[Any]]:
    """Return name, size and time of change of every file that a configuration names.

    A folder stands for the files in it.
    """
    found = []
    for value in _texts(plain(configuration)):
        try:
            path = Path(value)
            files = sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else []
            for file in files:
                about = file.stat()
                found.append([str(file.resolve()), about.st_size, about.st_mtime_ns])
        except (OSError, ValueError):
            # No file has that name; whether it may be read is for the run to say.
            continue
    return found


@cache
def commit() -> str | None:
    """Return the commit of the checkout, "+ changes" if its files differ; None outside of one."""
    checkout = _ROOT.parent
    if not (checkout / ".git").exists():
        return None
    head = _git(checkout, "rev-parse", "--short=12", "HEAD")
    changes = _git(checkout, "status", "--porcelain", "--", "dpopt", _ROOT.name)
    if not head or changes is None:
        return None
    return f"{head} + changes" if changes else head


def _git(checkout: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(checkout), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10.0,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _texts(value: Any) -> list[str]:  # noqa: ANN401
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts(part)]
    return [text for part in value for text in _texts(part)] if isinstance(value, tuple) else []
