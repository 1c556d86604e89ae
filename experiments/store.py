"""Results that are kept between runs: found again by name, parameters, data, code and versions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.digest import code_digest, data_files, libraries
from experiments.registry import REGISTERED, Experiment

if TYPE_CHECKING:
    from joblib import Memory

_LARGEST = "1G"


@dataclass(frozen=True)
class Keys:
    """What tells a result apart from all others, as JSON.

    Attributes:
        tables: of what a run computes.
        pictures: of how it is drawn.
    """

    tables: str
    pictures: str


def keys_of(experiment: Experiment, config: Any, style: str, remarks: bool = True) -> Keys | None:  # noqa: ANN401
    """Return the keys of a run; None if its results are not kept: of times, or of foreign code."""
    if not experiment.repeatable or REGISTERED.get(experiment.name) is not experiment:
        return None
    configuration = asdict(config)
    shared = {
        "experiment": experiment.name,
        "configuration": configuration,
        "data": data_files(configuration),
    }
    tables = {"code": code_digest(), "versions": libraries()}
    pictures = {
        "style": style,
        "remarks": remarks,
        "code": code_digest(drawing=True),
        "versions": libraries(drawing=True),
    }
    return Keys(_json(shared | tables), _json(shared | pictures))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


@dataclass(frozen=True)
class Store:
    """A folder of kept results.

    Attributes:
        folder: None to keep nothing.
        fresh: whether what is kept is computed anew.
    """

    folder: Path | None
    fresh: bool = False

    def get(self, kind: str, key: str) -> Any:  # noqa: ANN401
        """Return what is kept under a key; None if there is nothing, or it is damaged."""
        if self.folder is None or self.fresh:
            return None
        try:
            if not self._calls.check_call_in_cache(kind, key, None):
                return None
            return self._calls.call_and_shelve(kind, key, None).get()
        except Exception:  # noqa: BLE001 - a damaged file may raise anything as it is unpickled
            return None

    def put(self, kind: str, key: str, value: object) -> None:
        """Keep a value; a folder that cannot be written is no error."""
        if self.folder is None:
            return
        with warnings.catch_warnings(), suppress(OSError):
            warnings.simplefilter("ignore")
            self._calls.call(kind, key, value)

    def limit(self) -> None:
        """Drop what was not used for longest, beyond a gigabyte."""
        if self.folder is not None and self.folder.exists():
            with suppress(OSError):
                self._memory.reduce_size(bytes_limit=_LARGEST)

    @cached_property
    def _memory(self) -> Memory:
        from joblib import Memory

        return Memory(self.folder, verbose=0)

    @cached_property
    def _calls(self) -> Any:  # noqa: ANN401
        return self._memory.cache(_kept, ignore=["value"])


def _kept(kind: str, key: str, value: object) -> object:
    """Return a value, which joblib keeps under the other two."""
    del kind, key
    return value
