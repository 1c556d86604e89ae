"""What a benchmark is: sizes, contenders, and what their answers have in common."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.benchmarks.memory import Limits


def same(size: int) -> int:
    """Return the size: nothing is prepared."""
    return size


@dataclass(frozen=True)
class Answer:
    """What one call of a contender found.

    Attributes:
        value: the optimum or checksum that contenders are compared by.
        error: standard error of the value, where it is random.
        note: what else is to be said.
    """

    value: float
    error: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Contender:
    """A way to do a benchmark's work.

    Attributes:
        name: in the tables.
        prepare: makes what ``run`` is given, from the size; not timed.
        run: does the work; both are importable by name, for they run in a child process.
        largest: size beyond which it is not tried; None for no limit.
        same: whether it answers the same question; if not, its value is shown and not judged.
        needs: a package that it cannot do without, and the extra that brings it.
    """

    name: str
    prepare: Callable[[int], Any]
    run: Callable[[Any], Answer]
    largest: int | None = None
    same: bool = True
    needs: tuple[str, str] | None = None


@dataclass(frozen=True)
class Benchmark:
    """One frozen comparison, run at several sizes.

    Attributes:
        name: on the command line and in the tables.
        title: a few words.
        measures: what is timed, in one sentence.
        setting: the parameters that are the same, or how they follow from the size.
        axis: what the size counts.
        value: what `Answer.value` is.
        sizes: ascending.
        contenders: the first is ours, which ratios refer to.
        tolerance: largest difference from the first's value that counts as agreement, as a share
            of the larger of 1 and that value; random values may differ by six standard errors more.
        warm_up: size of the call that each child makes first.
        limits: of each child.
    """

    name: str
    title: str
    measures: str
    setting: str
    axis: str
    value: str
    sizes: tuple[int, ...]
    contenders: tuple[Contender, ...]
    tolerance: float = 1e-6
    warm_up: int = 5
    limits: Limits = field(default_factory=Limits)


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("suites.toml").read_text(encoding="utf-8"))


def benchmark(
    name: str,
    sizes: tuple[int, ...],
    contenders: tuple[Contender, ...],
    **about: Any,  # noqa: ANN401
) -> Benchmark:
    """Return the benchmark that ``suites.toml`` describes, with its sizes and contenders."""
    return Benchmark(name=name, **_texts()[name], sizes=sizes, contenders=contenders, **about)


def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name, in the order of the report: suite after suite."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("suite_*.py"))
    suites = (vars(import_module(f"experiments.benchmarks.{name}")) for name in names)
    defined = (value for suite in suites for value in suite.values())
    return {each.name: each for each in defined if isinstance(each, Benchmark)}
