"""Every experiment of the package: it imports all of them, and none of them imports it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path

from dpopt import ParameterError
from experiments.parameters import did_you_mean
from experiments.registry import REGISTERED, Experiment, texts_of

_ROOT = Path(__file__).parent
MODULES = tuple(
    f"{path.parent.name}.{module}"
    for path in sorted(_ROOT.glob("*/items.toml"))
    for module in texts_of(path.parent)["modules"]
)
"""The modules that register experiments, as the texts of each folder list them."""


@cache
def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by name, in the order of the report.

    Paper after paper by name, benchmarks last; of each paper its figures, its tables, the rest.
    """
    for module in MODULES:
        import_module(f"experiments.{module}")
    known = [each for each in REGISTERED.values() if each.module.startswith("experiments.")]
    return {experiment.name: experiment for experiment in sorted(known, key=_place)}


def named(name: str) -> Experiment:
    """Return an experiment by its name."""
    known = all_experiments()
    if name not in known:
        raise _unknown(name, known)
    return known[name]


def matching(patterns: Iterable[str], known: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments with some names, in the order of the report."""
    found: set[str] = set()
    for pattern in patterns:
        names = {pattern} & set(known) or {
            name
            for name, experiment in known.items()
            if experiment.repeatable and fnmatchcase(name, pattern)
        }
        if not names:
            raise _unknown(pattern, known)
        found |= names
    return [experiment for name, experiment in known.items() if name in found]


def _unknown(name: str, known: Iterable[str]) -> ParameterError:
    listed = "one that `python -m experiments list` names"
    return ParameterError(f"experiment is {name!r}; it must be {did_you_mean(name, known, listed)}")


def _place(experiment: Experiment) -> tuple[bool, str, int, int, str]:
    kind = next((i for i, word in enumerate(("Figure", "Table")) if word in experiment.item), 2)
    number = re.search(r"\d+", experiment.item)
    timed = experiment.paper == "Benchmarks"
    return (timed, experiment.paper, kind, int(number[0]) if number else 0, experiment.item)
