"""Everything a run of the benchmarks found, as plain values: results.json."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from dpopt.provenance import versions
from experiments.benchmarks.measure import DONE, Child, Effort, Record, measure
from experiments.benchmarks.memory import Ran, run_child
from experiments.benchmarks.spec import Benchmark

FORMAT = 1
_LEAST_POINTS = 3
_PACKAGES = ("clarabel", "opendp")

Results = dict[str, Any]


def run_benchmarks(
    chosen: Sequence[Benchmark],
    effort: Effort,
    *,
    most_sizes: int | None = None,
    jobs: int = 1,
    child: Child = run_child,
) -> Results:
    """Run benchmarks; return machine, versions, times and slopes.

    Args:
        chosen: what is run.
        effort: rounds and repeats.
        most_sizes: only so many of the smallest sizes; all if None.
        jobs: benchmarks that run at a time; the contenders of each still take turns.
        child: see `measure`.
    """
    start, load = perf_counter(), _load()
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    where = {"date": date, "cores": os.cpu_count(), "load": load}
    where |= {"rounds": effort.rounds, "jobs": jobs}

    def one(benchmark: Benchmark) -> dict[str, Any]:
        sizes = benchmark.sizes[:most_sizes]
        return _one(benchmark, sizes, effort, unless_stopped) | where

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
    return {
        "format": FORMAT,
        "date": date,
        "machine": machine() | {"load_before": load, "load_after": _load()},
        "versions": versions(*_PACKAGES),
        "jobs": jobs,
        "rounds": effort.rounds,
        "least_seconds": effort.least_seconds,
        "patience": effort.patience,
        "seconds": perf_counter() - start,
        "benchmarks": found,
    }


def _one(
    benchmark: Benchmark, sizes: tuple[int, ...], effort: Effort, child: Child
) -> dict[str, Any]:
    records = measure(benchmark, sizes, effort, child)
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "measures": benchmark.measures,
        "setting": benchmark.setting,
        "axis": benchmark.axis,
        "value": benchmark.value,
        "tolerance": benchmark.tolerance,
        "memory_gib": benchmark.limits.address_space / 2**30,
        "seconds": benchmark.limits.processor_seconds,
        "contenders": [
            {"name": c.name, "kind": c.kind, "same": c.same, "seconds": c.seconds}
            for c in benchmark.contenders
        ],
        "records": records,
        "slopes": slopes(records),
        "targets": [
            {"size": t.size, "contender": t.contender, "factor": t.factor}
            for t in benchmark.targets
            if t.size in sizes
        ],
    }


def slopes(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Fit log seconds = a + b log size for each contender with three sizes or more.

    Returns:
        One record for each: slope b by least squares over all its sizes, the constant e^a, the
        slope between its two largest sizes, and the number of sizes.
    """
    found = []
    for name in dict.fromkeys(record["contender"] for record in records):
        points = [
            (float(str(record["size"])), record["seconds"])
            for record in records
            if record["contender"] == name and record["outcome"] == DONE
        ]
        timed = [(n, s) for n, s in points if isinstance(s, float) and s > 0]
        if len(timed) < _LEAST_POINTS:
            continue
        x, y = np.log(np.array(timed)).T
        slope, constant = np.polyfit(x, y, 1)
        found.append(
            {
                "contender": name,
                "slope": float(slope),
                "constant": math.exp(float(constant)),
                "last_slope": float((y[-1] - y[-2]) / (x[-1] - x[-2])),
                "sizes": len(timed),
            }
        )
    return found


def machine() -> dict[str, Any]:
    """Return model and number of the processors, memory in GiB, and the operating system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory(),
        "system": _system(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return round(size / 2**30, 1)


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.release()
    return f"{platform.system()}, {name}"


def _load() -> float | None:
    """Return how many processes were running in the last minute, on average."""
    try:
        return round(os.getloadavg()[0], 1)
    except (AttributeError, OSError):
        return None
