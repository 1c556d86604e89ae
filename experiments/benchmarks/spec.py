"""What a benchmark is: sizes, contenders, and what their answers have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.benchmarks.memory import Limits

OURS, PAPER, SOLVER, LIBRARY = "dpopt", "paper", "solver", "library"
KINDS = (OURS, PAPER, SOLVER, LIBRARY)

_ON_THE_CLOCK = 8.0


def limited(seconds: int, gibibytes: int = 8) -> Limits:
    """Return limits of processor time and address space; eight times as long by the clock."""
    return Limits(gibibytes << 30, _ON_THE_CLOCK * seconds, seconds)


@dataclass(frozen=True)
class Answer:
    """What one call of a contender found.

    Attributes:
        value: the optimum or checksum that contenders are compared by; None if there is none,
            as where only a part of the work was done.
        part: share of the work that was done, in (0, 1]; below 1 the time for all of it is
            extrapolated, and said to be.
        error: standard error of the value, where it is random.
        note: what else is to be said.
    """

    value: float | None
    part: float = 1.0
    error: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Contender:
    """A way to do a benchmark's work.

    Attributes:
        name: in the tables.
        kind: among `KINDS`: dpopt, a paper's algorithm as written, a solver given every row, or
            another library.
        prepare: makes what ``run`` is given, from the size; not timed.
        run: does the work; both are importable by name, for they run in a child process.
        largest: size beyond which it is not tried; None for no limit.
        same: whether it answers the same question; if not, its value is shown and not judged.
        needs: a package that it cannot do without, and the extra that brings it.
        seconds: limit of processor time instead of the benchmark's, where a size of interest
            needs more.
    """

    name: str
    kind: str
    prepare: Callable[[int], Any]
    run: Callable[[Any], Answer]
    largest: int | None = None
    same: bool = True
    needs: tuple[str, str] | None = None
    seconds: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; it must be one of {KINDS}.")

    def allowed(self, limits: Limits) -> Limits:
        """Return a benchmark's limits, with this contender's own time if it has one."""
        if self.seconds is None:
            return limits
        clock = _ON_THE_CLOCK * self.seconds
        return replace(limits, seconds=clock, processor_seconds=self.seconds)


@dataclass(frozen=True)
class Target:
    """A factor stated before: at ``size``, ``contender`` takes so many times as long as ours.

    Attributes:
        size: of the instance.
        contender: its name.
        factor: the ratio that was asked for, or that an earlier run found.
    """

    size: int
    contender: str
    factor: float


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
        contenders: the first is the one that ratios refer to.
        tolerance: largest difference from the first's value that counts as agreement, as a share
            of the larger of 1 and that value; random values may differ by six standard errors more.
        warm_up: size of the call that each child makes first.
        limits: of each child.
        targets: factors stated before, which a run shows or does not.
    """

    name: str
    title: str
    measures: str
    setting: str
    axis: str
    value: str
    sizes: tuple[int, ...]
    contenders: tuple[Contender, ...]
    tolerance: float
    warm_up: int
    limits: Limits = field(default_factory=lambda: limited(30))
    targets: tuple[Target, ...] = ()

    def __post_init__(self) -> None:
        names = [contender.name for contender in self.contenders]
        if len(set(names)) != len(names):
            raise ValueError(f"contenders of {self.name} are {names}; names must differ.")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"sizes of {self.name} are {self.sizes}; they must ascend.")
        for target in self.targets:
            if target.size not in self.sizes or target.contender not in names:
                raise ValueError(f"{target} is no row of {self.name}.")
