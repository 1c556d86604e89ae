"""Results that are kept between runs: found again by name, parameters, data, code and versions."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpopt.files import versions
from experiments.entry import make_folder
from experiments.parameters import plain
from experiments.registry import REGISTERED, Experiment

if TYPE_CHECKING:
    from joblib import Memory

_Value = TypeVar("_Value")
_ROOT = Path(__file__).parent
# What no number rests on: parts of dpopt, and of the experiments what runs and shows them.
_NO_NUMBERS = ("cli", "_interact.py", "_sweep.py", "_figure.py")
_FRAME = ("__main__.py", "kept.py", "report", "runner.py", "benchmarks")
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


_LARGEST = "1G"


def keys_of(experiment: Experiment, config: Any, style: str) -> dict[str, str]:  # noqa: ANN401
    """Return what tells the "tables" and the "pictures" of a run apart from all others, as JSON.

    Nothing if its results are not kept: of times, or of foreign code.
    """
    if not experiment.repeatable or REGISTERED.get(experiment.name) is not experiment:
        return {}
    configuration = asdict(config)
    shared = {
        "experiment": experiment.name,
        "configuration": configuration,
        "data": data_files(configuration),
    }
    own = {
        "tables": {"code": code_digest(), "versions": libraries()},
        "pictures": {
            "code": code_digest(drawing=True),
            "versions": libraries(drawing=True),
            "style": style,
        },
    }
    return {
        kind: json.dumps(shared | about, sort_keys=True, default=repr)
        for kind, about in own.items()
    }


@dataclass(frozen=True)
class Store:
    """A folder of kept results.

    Attributes:
        folder: None to keep nothing.
        fresh: whether what is kept is computed anew.
    """

    folder: Path | None
    fresh: bool = False

    def holds(self, keys: Mapping[str, str]) -> bool:
        """Return whether there are results under all keys; they may be damaged."""
        kept = (self._calls.check_call_in_cache(*key, None) for key in keys.items())
        return bool(keys) and not self.fresh and all(kept)

    def get(
        self, kind: str, keys: Mapping[str, str], compute: Callable[[], _Value]
    ) -> tuple[_Value, bool]:
        """Return what is kept, or computed and kept now; and whether it was there."""
        if kind not in keys:
            return compute(), False
        anew: list[str] = []

        def made() -> _Value:
            anew.append(kind)
            return compute()

        arguments = (kind, keys[kind], made)
        value = self._calls.call(*arguments)[0] if self.fresh else self._calls(*arguments)
        return value, not anew

    def limit(self) -> None:
        """Drop what was not used for longest, beyond a gigabyte."""
        if self.folder is not None and self.folder.exists():
            with suppress(OSError):
                self._memory.reduce_size(bytes_limit=_LARGEST)

    @cached_property
    def _memory(self) -> Memory:
        from joblib import Memory

        if self.folder is not None:
            make_folder(self.folder, "cache")
        return Memory(self.folder, verbose=0)

    @cached_property
    def _calls(self) -> Any:  # noqa: ANN401
        return self._memory.cache(_result, ignore=["compute"])


def _result(kind: str, key: str, compute: Callable[[], object]) -> object:
    """Compute what joblib keeps under the other two."""
    del kind, key
    return compute()
