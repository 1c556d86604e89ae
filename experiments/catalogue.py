"""Every experiment of the package: it imports all of them, and none of them imports it.

A module that assigns ``EXPERIMENT``, or ``EXPERIMENTS`` if it has several, is in the catalogue.
"""

from __future__ import annotations

import re

from experiments.finding import defined
from experiments.registry import Experiment


def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by name, in the order of the report.

    Paper after paper by name, benchmarks last; of each paper its figures, its tables, the rest.
    """
    found = [*defined("EXPERIMENT"), *(each for group in defined("EXPERIMENTS") for each in group)]
    return {experiment.name: experiment for experiment in sorted(found, key=_place)}


def _place(experiment: Experiment) -> tuple[bool, str, int, int, str]:
    kind = next((i for i, word in enumerate(("Figure", "Table")) if word in experiment.item), 2)
    number = re.search(r"\d+", experiment.item)
    timed = experiment.paper == "Benchmarks"
    return (timed, experiment.paper, kind, int(number[0]) if number else 0, experiment.item)
