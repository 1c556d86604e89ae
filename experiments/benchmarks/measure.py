"""Runs a benchmark: contenders in turns, each in a fresh process, at every size."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from dpopt.files import versions
from experiments.benchmarks.memory import DONE, Ran, run_child
from experiments.benchmarks.spec import Benchmark, Contender
from experiments.registry import Cell, track

_STANDARD_ERRORS = 6.0
_LEAST_TURN = 0.1
_LEAST_POINTS = 3

Record = dict[str, Cell]
Child = Callable[..., Ran]


@dataclass(frozen=True)
class Effort:
    """How often things are run.

    Attributes:
        rounds: turns; each contender gets one fresh process in each.
        least_seconds: a process repeats its call until this much time has passed.
        patience: seconds of calls at one size after which a contender takes no further turn.
    """

    rounds: int = 3
    least_seconds: float = 0.2
    patience: float = 10.0


def measure(
    benchmark: Benchmark, sizes: tuple[int, ...], effort: Effort, child: Child = run_child
) -> list[Record]:
    """Return one record for each contender at each size.

    In each round every contender takes a turn, ours first. Seconds are the processor's, so that
    other work on the machine does not count. A ratio is that of a turn to our turn of the same
    round; medians and quartiles are over the rounds.
    """
    stopped: dict[str, str] = {}
    records: list[Record] = []
    for size in track(sizes):
        reasons = {c.name: stopped.get(c.name) or _not_tried(c, size) for c in benchmark.contenders}
        tried = [c for c in benchmark.contenders if reasons[c.name] is None]
        turns = _turns(benchmark, size, tried, effort, child)
        for name, ran in turns.items():
            reasons[name] = ran[-1].outcome
            if ran[-1].outcome != DONE:
                stopped[name] = f"not tried ({reasons[name]} at {size:,})"
        ours = turns.get(benchmark.contenders[0].name, [])
        records += [
            {
                "benchmark": benchmark.name,
                "size": size,
                "contender": contender.name,
                "outcome": reasons[contender.name],
            }
            | _times(turns.get(contender.name, []), ours)
            | _compared(benchmark, contender, turns.get(contender.name, []), ours)
            for contender in benchmark.contenders
        ]
    return records


def _not_tried(contender: Contender, size: int) -> str | None:
    if contender.needs and find_spec(contender.needs[0]) is None:
        package, extra = contender.needs
        return f"skipped: {package} is not installed (extra {extra})"
    if contender.largest is not None and size > contender.largest:
        return f"not tried above {contender.largest:,}"
    return None


def _turns(
    benchmark: Benchmark, size: int, tried: list[Contender], effort: Effort, child: Child
) -> dict[str, list[Ran]]:
    """Let the contenders take turns until rounds or patience are used up."""
    turns: dict[str, list[Ran]] = {contender.name: [] for contender in tried}
    for _ in range(effort.rounds):
        for contender in tried:
            ran = turns[contender.name]
            spent = sum(sum(r.cpu_seconds) for r in ran)
            failed = any(r.outcome != DONE for r in ran)
            if ran and (failed or spent * (len(ran) + 1) / len(ran) > effort.patience):
                continue
            ran.append(
                child(
                    contender.run,
                    size,
                    benchmark.limits,
                    prepare=contender.prepare,
                    warm_up=(benchmark.warm_up,),
                    least_seconds=effort.least_seconds,
                )
            )
    return turns


def turn_seconds(ran: Ran) -> float:
    """Return the seconds of one call in a turn that ended.

    The processor's time of all calls over their number: a single short call is below the clock of
    processor time, which may tick every 4 ms. Turns of less than 0.1 s are taken by the wall clock.
    """
    by_clock = sum(ran.seconds) < _LEAST_TURN
    return sum(ran.seconds if by_clock else ran.cpu_seconds) / len(ran.seconds)


def _times(ran: list[Ran], ours: list[Ran]) -> Record:
    """Return seconds and memory, and the ratios of turns to ours of the same round."""
    seconds = [turn_seconds(r) for r in ran if r.outcome == DONE]
    resident = [r.resident for r in ran if r.resident is not None]
    ratios = [
        turn_seconds(r) / turn_seconds(own)
        for r, own in zip(ran, ours, strict=False)
        if r.outcome == own.outcome == DONE
    ]
    low, _, high = (
        quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else (None, None, None)
    )
    return {
        "turns": len(seconds),
        "seconds": median(seconds) if seconds else None,
        "peak_mib": max(resident) / 2**20 if resident else None,
        "ratio": median(ratios) if ratios else None,
        "ratio_low": low,
        "ratio_high": high,
    }


def _compared(
    benchmark: Benchmark, contender: Contender, ran: list[Ran], ours: list[Ran]
) -> Record:
    """Return the value of the last turn, its difference from ours, and whether they agree."""
    answer, own = (turns[-1].value if turns else None for turns in (ran, ours))
    difference = agrees = None
    if answer and own:
        difference = answer.value - own.value
        slack = benchmark.tolerance * max(1.0, abs(own.value))
        slack += _STANDARD_ERRORS * (answer.error**2 + own.error**2) ** 0.5
        agrees = abs(difference) <= slack if contender.same else None
    return {
        "value": answer.value if answer else None,
        "difference": difference,
        "agrees": agrees,
        "note": answer.note if answer else "",
    }


_FITTED = ("contender", "slope", "constant", "last_slope", "sizes")


def slopes(records: Sequence[Record]) -> list[Record]:
    """Fit log seconds = a + b log size for each contender with three sizes or more.

    With the slope between its two largest sizes beside it.
    """
    fits: list[Record] = []
    for name in dict.fromkeys(record["contender"] for record in records):
        timed: list[Any] = [
            (record["size"], record["seconds"])
            for record in records
            if record["contender"] == name and record["outcome"] == DONE and record["seconds"]
        ]
        if len(timed) < _LEAST_POINTS:
            continue
        x, y = np.log(np.array(timed, dtype=float)).T
        slope, constant = np.polyfit(x, y, 1)
        last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
        found = (name, float(slope), float(np.exp(constant)), last, len(timed))
        fits.append(dict(zip(_FITTED, found, strict=True)))
    return fits


_PACKAGES = ("clarabel", "opendp")


def run_benchmarks(
    chosen: Sequence[Benchmark],
    effort: Effort,
    *,
    most_sizes: int | None = None,
    jobs: int = 1,
    child: Child = run_child,
) -> dict[str, list[Record]]:
    """Run benchmarks; return their times, how these grow with the size, and the machine."""
    start, load = perf_counter(), _load()

    def one(benchmark: Benchmark) -> list[Record]:
        return measure(benchmark, benchmark.sizes[:most_sizes], effort, unless_stopped)

    def unless_stopped(*arguments: Any, **named: Any) -> Ran:  # noqa: ANN401
        if stop.is_set():
            raise CancelledError
        return child(*arguments, **named)

    # Threads, which only wait for the children that do the work.
    stop = Event()
    with ThreadPoolExecutor(jobs) as lanes:
        try:
            found = list(lanes.map(one, chosen))
        finally:
            # After an error or Ctrl-C, the other benchmarks end with their present child.
            stop.set()
            lanes.shutdown(wait=False, cancel_futures=True)
    growth = [
        {"benchmark": benchmark.name, "title": benchmark.title, "axis": benchmark.axis} | slope
        for benchmark, records in zip(chosen, found, strict=True)
        for slope in slopes(records) or [dict.fromkeys(_FITTED)]
    ]
    about = machine() | {"load_before": load, "load_after": _load()}
    about["versions"] = ", ".join(f"{name} {v}" for name, v in versions(*_PACKAGES).items())
    about |= {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "seconds": perf_counter() - start}
    times = [record for records in found for record in records]
    return {"times": times, "growth": growth, "machine": [about]}


def machine() -> Record:
    """Return model and number of the processors, memory in GiB, and the operating system."""
    processor, memory = platform.processor() or platform.machine(), None
    if platform.system() == "Linux":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = models[0] if models else processor
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": platform.platform(terse=True),
    }


def _load() -> float | None:
    """Return how many processes were running in the last minute, on average."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
