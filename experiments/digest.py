"""What made a result, in short: digests of code, versions of libraries, the state of data files."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpopt.provenance import versions
from experiments.options import plain

_ROOT = Path(__file__).parent
_PACKAGE = _ROOT.name
# Parts of dpopt that no number rests on.
_NO_NUMBERS = ("cli", "_interact.py", "_sweep.py", "_figure.py")
# Looks of pictures.
_STYLE = "experiments.style"
_FURTHER = ("polars", "scikit-learn")
_TEXTS = {".md", ".html", ".css", ".png"}


def code_digest(modules: Iterable[str], *, drawing: bool = False) -> str:
    """Return a digest of all sources that results of some modules of the experiments rest on.

    These are the modules, what they import within the experiments, the data files beside either,
    and dpopt.

    Args:
        modules: names of modules.
        drawing: whether the results are pictures: then what styles them counts too.
    """
    counted = closure(frozenset(modules)) - (set() if drawing else {_STYLE})
    files = [file for module in sorted(counted) for file in _files(module)]
    return _of_files((*files, *_library(drawing)))


@cache
def closure(modules: frozenset[str]) -> frozenset[str]:
    """Return modules of the experiments and all that they import there, anywhere in their text."""
    found: set[str] = set()
    waiting = [module for module in modules if _source(module) is not None]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported(module)
    return frozenset(found)


def imported(module: str) -> set[str]:
    """Return the modules of the experiments that a module imports, and the packages above.

    Imports inside functions count.
    """
    path = _source(module)
    tree = ast.parse("" if path is None else path.read_text(encoding="utf-8"))
    named: set[str] = {module}
    for node in _run(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    named |= {name[:place] for name in named for place, c in enumerate(name) if c == "."}
    return {name for name in named if _source(name) is not None} - {module}


def libraries(*, drawing: bool = False) -> dict[str, str]:
    """Return the versions that a result depends on."""
    names = (*_FURTHER, *(["matplotlib"] if drawing else []))
    return versions(*names)


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
    changes = _git(checkout, "status", "--porcelain", "--", "dpopt", _PACKAGE)
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


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a module that may be run; what only type checkers read is left out."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
            continue
        yield part
        yield from _run(part)


def _source(module: str) -> Path | None:
    """Return the file of a module of the experiments; None of any other."""
    top, *parts = module.split(".")
    if top != _PACKAGE:
        return None
    base = _ROOT.joinpath(*parts)
    found = (base / "__init__.py", base.with_suffix(".py") if parts else base)
    return next((path for path in found if path.is_file()), None)


def _files(module: str) -> list[Path]:
    """Return the source of a module, and the data of its package; the top package has none."""
    source = _source(module)
    if source is None:
        return []
    folder = source.parent
    return [source, *(_data(folder) if folder != _ROOT else [])]


def _data(folder: Path) -> list[Path]:
    """Return the data files of a package, down to the packages within."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            inner = (path / "__init__.py").exists() or path.name == "__pycache__"
            found += [] if inner else _data(path)
        elif path.suffix != ".py" and path.suffix not in _TEXTS:
            found.append(path)
    return found


@cache
def _library(drawing: bool) -> tuple[Path, ...]:
    found = find_spec("dpopt")
    root = Path(found.origin).parent if found is not None and found.origin else Path()
    sheets = sorted(root.rglob("*.mplstyle")) if drawing else []
    sources = (
        path
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in _NO_NUMBERS
    )
    return (*sources, *sheets)


def _of_files(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in dict.fromkeys(files):
        inside = _digest(path, *_state(path))
        found.update(f"{path.parent.name}/{path.name} {inside}\n".encode())
    return found.hexdigest()


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    del size, changed
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _texts(value: Any) -> list[str]:  # noqa: ANN401
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts(part)]
    return [text for part in value for text in _texts(part)] if isinstance(value, tuple) else []
