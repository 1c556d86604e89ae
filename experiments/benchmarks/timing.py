"""Contenders timed alternately in one process: medians, spread, ratios to the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

from experiments.registry import Cell

Contender = Callable[[], object]


def race(
    task: str, size: str, contenders: Mapping[str, Contender], rounds: int
) -> list[dict[str, Cell]]:
    """Time each contender ``rounds`` times, in turns, after one run of each to warm up.

    Args:
        task: what is done.
        size: of the instance.
        contenders: by name; the first is what the others are compared with.
        rounds: runs of each.

    Returns:
        One record for each contender: median, fastest and slowest seconds, ratio of medians.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    base = median(next(iter(seconds.values())))
    return [
        {
            "task": task,
            "size": size,
            "contender": name,
            "median_seconds": median(times),
            "fastest": min(times),
            "slowest": max(times),
            "ratio": median(times) / base,
        }
        for name, times in seconds.items()
    ]
