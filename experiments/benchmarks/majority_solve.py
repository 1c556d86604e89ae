"""DaRRM's noise function by cutting planes, beside programs with every row written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from dpopt import majority
from experiments.benchmarks import majority_contenders as ways
from experiments.benchmarks.majority_figure import (
    CERTIFIED,
    CVXPY,
    EXTRAPOLATED,
    LINPROG,
    MEASURED,
    ONE_BY_ONE,
    OURS,
    findings,
    plot,
)
from experiments.benchmarks.memory import DONE, Limits, Ran, run_child
from experiments.registry import Advance, Cell, Experiment, Outcome, Table

_WAYS: dict[str, Callable[[ways.Instance], ways.Answer]] = {
    OURS: ways.ours,
    CERTIFIED: ways.ours_certified,
    CVXPY: ways.with_cvxpy,
    LINPROG: ways.with_linprog,
    ONE_BY_ONE: ways.one_by_one,
}


@dataclass(frozen=True)
class Size:
    """K, m and Delta; delta = 1 - (1 - Delta)^m."""

    mechanisms: int
    allowance: float
    mechanism_delta: float = 0.0
    certified: bool = True


@dataclass(frozen=True)
class Config:
    """What is compared, how often, and within which limits.

    Attributes:
        races: sizes at which all contenders run.
        scale: sizes at which only ours runs.
        epsilon: of each voter.
        rounds: turns; each contender gets one fresh process in each.
        least_seconds: a process repeats its call until this much time has passed.
        patience: seconds after which a contender takes no further turn.
        whole_up_to: largest set whose laws are computed one at a time; beyond, the time is
            extrapolated from 2,000 multisets drawn uniformly.
        limits: of each process.
    """

    races: tuple[Size, ...]
    scale: tuple[Size, ...]
    epsilon: float = 0.1
    rounds: int = 3
    least_seconds: float = 0.5
    patience: float = 20.0
    whole_up_to: int = 50_000
    limits: Limits = field(default_factory=Limits)


def run(config: Config, advance: Advance) -> Outcome:
    """Race the contenders at each size, then measure ours where the others do not go."""
    times, scale = [], []
    for size in config.races:
        times += _race(config, size, tuple(_WAYS))
        advance()
    for size in config.scale:
        scale += _race(config, size, (OURS, CERTIFIED) if size.certified else (OURS,))
        advance()
    tables = {
        "times": Table.of(
            "Alternating runs in fresh processes, one thread each; ratio of medians to "
            f"{OURS}. row_seconds is the part spent on building rows; peak_mib is above "
            "what the imports held.",
            times,
        ),
        "scale": Table.of("Ours alone, in fresh processes, one thread.", scale),
    }
    return Outcome(tables, tuple(findings(tables)))


def _race(config: Config, size: Size, names: tuple[str, ...]) -> list[dict[str, Cell]]:
    """Return one record for each contender at one size."""
    instance = _instance(config, size)
    sampled = majority.full_size(instance.setting) > config.whole_up_to
    found: dict[str, list[Ran]] = {name: [] for name in names}
    for turn in range(config.rounds):
        for name, ran in found.items():
            spent = sum(sum(r.seconds) for r in ran)
            failed = any(r.outcome != DONE for r in ran)
            if turn and (failed or spent * (turn + 1) / turn > config.patience):
                continue
            sampling = name == ONE_BY_ONE and sampled
            way = ways.one_by_one_sampled if sampling else _WAYS[name]
            warm_up = [_instance(config, Size(5, 2.0, size.mechanism_delta))]
            least = 0.0 if sampling else config.least_seconds
            ran.append(
                run_child(way, instance, config.limits, warm_up=warm_up, least_seconds=least)
            )
    records = {name: _record(instance, name, ran) for name, ran in found.items()}
    if sampled and ONE_BY_ONE in records:
        _extrapolate(records[ONE_BY_ONE], records[LINPROG])
    base = records[OURS]["median_seconds"]
    for record in records.values():
        seconds = record["median_seconds"]
        if isinstance(seconds, float) and isinstance(base, float):
            record["ratio"] = seconds / base
    return list(records.values())


def _instance(config: Config, size: Size) -> ways.Instance:
    return ways.Instance.of(size.mechanisms, config.epsilon, size.allowance, size.mechanism_delta)


def _record(instance: ways.Instance, name: str, ran: list[Ran]) -> dict[str, Cell]:
    setting, answer = instance.setting, ran[-1].value
    done = isinstance(answer, ways.Answer)
    seconds = [s for r in ran for s in r.seconds]
    built = [r.value.building for r in ran if r.value and r.value.building is not None]
    peaks = [r.peak for r in ran if r.peak is not None]
    return {
        "mechanism_delta": setting.mechanism_delta,
        "mechanisms": setting.mechanisms,
        "allowance": setting.allowance,
        "contender": name,
        "outcome": ran[-1].outcome,
        "how": MEASURED,
        "runs": len(seconds),
        "median_seconds": median(seconds) if seconds else None,
        "fastest": min(seconds, default=None),
        "slowest": max(seconds, default=None),
        "cpu_seconds": median(s for r in ran for s in r.cpu_seconds) if seconds else None,
        "row_seconds": median(built) if built else None,
        "ratio": None,
        "optimum": answer.optimum if done else None,
        "peak_mib": max(peaks) / 2**20 if peaks else None,
        "multisets": answer.multisets if done else None,
        "rows": answer.rows if done else None,
        "paper_multisets": majority.full_size(setting),
        "note": answer.note if done else "",
    }


def _extrapolate(record: dict[str, Cell], linprog: dict[str, Cell]) -> None:
    """Turn seconds for sampled multisets into seconds for all, and add linprog's solve."""
    record["how"] = EXTRAPOLATED
    sample, total, built = record["multisets"], record["paper_multisets"], record["row_seconds"]
    if not (isinstance(sample, int) and isinstance(total, int) and isinstance(built, float)):
        return
    rows = built / sample * total
    whole, shared = linprog["median_seconds"], linprog["row_seconds"]
    solving = None
    if isinstance(whole, float) and isinstance(shared, float):
        solving = whole - shared
    record |= {
        "median_seconds": rows + (solving or 0.0),
        "row_seconds": rows,
        "fastest": None,
        "slowest": None,
        "cpu_seconds": None,
        "peak_mib": None,
        "note": f"{record['note']}; rows from {sample:,} of {total:,} multisets, "
        + ("without a solve" if solving is None else "solve as measured for linprog"),
    }


_RACES = (Size(11, 3, 1e-5), Size(21, 3, 1e-5), Size(51, 10), Size(101, 20))
_SCALE = (Size(101, 20), Size(501, 50), Size(1001, 100, certified=False))

EXPERIMENT = Experiment(
    name="benchmark-majority",
    paper="Benchmarks",
    item="DaRRM's noise function",
    summary="Solving equation 2 of the DaRRM paper over its whole constraint set: seconds and "
    "memory of cutting planes, of programs with every row, and of rows built one law at a time.",
    published="Gurobi solves up to K = 41 on a laptop if Delta > 0, and beyond K = 100 if Delta = "
    "0 (footnote 1).",
    config=Config(
        (*_RACES, Size(31, 3, 1e-5)),
        (*_SCALE, Size(41, 3, 1e-5), Size(101, 10, 1e-5)),
        rounds=7,
        patience=120.0,
        whole_up_to=2_000_000,
        limits=Limits(seconds=1200.0),
    ),
    quick=Config(_RACES, (*_SCALE, Size(41, 3, 1e-5), Size(101, 10, 1e-5, certified=False))),
    steps=lambda config: len(config.races) + len(config.scale),
    run=run,
    plot=plot,
    repeatable=False,
)
