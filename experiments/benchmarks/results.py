"""Everything a run of the benchmarks found, as plain values: results.json."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

from dpopt.provenance import versions
from experiments.benchmarks.measure import Child, Effort, measure, slopes
from experiments.benchmarks.memory import Ran, run_child
from experiments.benchmarks.spec import Benchmark

_PACKAGES = ("clarabel", "opendp")
_SAID = ("name", "title", "measures", "setting", "axis", "value")

Results = dict[str, Any]


def run_benchmarks(
    chosen: Sequence[Benchmark],
    effort: Effort,
    *,
    most_sizes: int | None = None,
    jobs: int = 1,
    child: Child = run_child,
) -> Results:
    """Run benchmarks; return machine, versions, times and slopes."""
    start, load = perf_counter(), _load()

    def one(benchmark: Benchmark) -> dict[str, Any]:
        records = measure(benchmark, benchmark.sizes[:most_sizes], effort, unless_stopped)
        return {key: getattr(benchmark, key) for key in _SAID} | {
            "memory_gib": benchmark.limits.gibibytes,
            "seconds": benchmark.limits.seconds,
            "same": {c.name: c.same for c in benchmark.contenders},
            "records": records,
            "slopes": slopes(records),
        }

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
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine() | {"load_before": load, "load_after": _load()},
        "versions": versions(*_PACKAGES),
        "jobs": jobs,
        "rounds": effort.rounds,
        "least_seconds": effort.least_seconds,
        "patience": effort.patience,
        "seconds": perf_counter() - start,
        "benchmarks": found,
    }


def machine() -> dict[str, Any]:
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
