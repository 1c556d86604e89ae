"""How long experiments take: as their last run into a folder, or as recorded in times.json.

`python -m experiments times FOLDER` renews times.json from the runs that a folder keeps.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpopt import ParameterError
from dpopt.files import write_json
from experiments.kept import kept_run
from experiments.options import plain
from experiments.registry import Experiment

RECORDED = Path(__file__).with_name("times.json")
"""Seconds of each experiment by "quick" or "full", then by name."""

# What starting the processes costs.
_START = 2.0


def seconds_of(experiment: Experiment, config: Any, folder: Path, *, full: bool) -> float | None:  # noqa: ANN401
    """Return how long a run took last time, or elsewhere; None if nobody knows.

    Args:
        experiment: as registered.
        config: of the run.
        folder: that may keep an earlier one.
        full: whether the configuration started from that of the full run.
    """
    last = last_seconds(experiment, config, folder)
    return recorded(full=full).get(experiment.name) if last is None else last


def last_seconds(experiment: Experiment, config: Any, folder: Path) -> float | None:  # noqa: ANN401
    """Return how long the last run into a folder took, if it had the same parameters."""
    about = kept_run(experiment.name, folder)
    found = about.get("seconds")
    same = plain(about.get("configuration")) == plain(asdict(config))
    if not same or about.get("failure") is not None or not isinstance(found, int | float):
        return None
    return float(found)


def recorded(*, full: bool, path: Path = RECORDED) -> dict[str, float]:
    """Return the recorded seconds of each experiment."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found.get("full" if full else "quick", {})


def record(experiments: Mapping[str, Experiment], folder: Path, path: Path = RECORDED) -> int:
    """Record the seconds of the runs that a folder keeps; return how many there are.

    Runs that failed, or have parameters of a reader's own, do not count.

    Raises:
        ParameterError: if there is none.
    """
    times = {kind: recorded(full=kind == "full", path=path) for kind in ("quick", "full")}
    count = 0
    for name, experiment in experiments.items():
        about = kept_run(name, folder)
        seconds, full = about.get("seconds"), bool(about.get("full"))
        own = asdict(experiment.config if full else experiment.quick)
        if not experiment.repeatable or about.get("failure") or not isinstance(seconds, float):
            continue
        if plain(about.get("configuration")) == plain(own):
            times["full" if full else "quick"][name] = round(seconds, 1)
            count += 1
    if not count:
        raise ParameterError(f"folder is {str(folder)!r}; it must hold the files of some run.")
    order = list(experiments)
    write_json(
        path,
        {
            kind: {name: found[name] for name in order if name in found}
            for kind, found in times.items()
        },
    )
    return count


def until_done(seconds: Sequence[float], workers: int) -> float:
    """Return when some workers are done, each of whom takes the next piece of work when free."""
    if workers == 1 or len(seconds) < 2:
        return sum(seconds)
    free = [_START] * workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)
