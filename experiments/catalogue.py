"""Every experiment of the package: it imports all of them, and none of them imports it.

A module that assigns ``EXPERIMENT``, or ``EXPERIMENTS`` if it has several, is in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module

from dpopt import ParameterError
from experiments.finding import modules_with
from experiments.options import did_you_mean
from experiments.registry import Experiment


def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by name, in the order of the report.

    Paper after paper by name, benchmarks last; of each paper its figures, its tables, the rest.
    """
    found = [experiment for module in _modules() for experiment in of_module(module)]
    return {experiment.name: experiment for experiment in sorted(found, key=_place)}


def homes() -> dict[str, str]:
    """Return the module that assigns each experiment, by the experiment's name."""
    return {each.name: module for module in _modules() for each in of_module(module)}


def of_module(module: str) -> tuple[Experiment, ...]:
    """Return the experiments that a module assigns."""
    imported = import_module(module)
    one = (imported.EXPERIMENT,) if hasattr(imported, "EXPERIMENT") else ()
    return (*one, *getattr(imported, "EXPERIMENTS", ()))


def named(name: str) -> Experiment:
    """Return an experiment by its name.

    Raises:
        ParameterError: if there is none, with the names that look like it.
    """
    known = all_experiments()
    if name not in known:
        raise _unknown(name, known)
    return known[name]


def matching(patterns: Iterable[str], known: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments with some names, in the order of the report.

    Args:
        patterns: names, or patterns such as ``majority-*``, which stand for repeatable ones only.
        known: all experiments by name.

    Raises:
        ParameterError: if there is none for one of them.
    """
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


@cache
def _modules() -> tuple[str, ...]:
    return tuple(sorted({*modules_with("EXPERIMENT"), *modules_with("EXPERIMENTS")}))


def _place(experiment: Experiment) -> tuple[bool, str, int, int, str]:
    kind = next((i for i, word in enumerate(("Figure", "Table")) if word in experiment.item), 2)
    number = re.search(r"\d+", experiment.item)
    timed = experiment.paper == "Benchmarks"
    return (timed, experiment.paper, kind, int(number[0]) if number else 0, experiment.item)
