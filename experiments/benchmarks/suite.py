"""The registry of benchmarks: what the modules of this folder assign to ``BENCHMARKS``."""

from __future__ import annotations

from functools import cache

from experiments.benchmarks.spec import Benchmark
from experiments.finding import defined


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name, in the order of the report: suite after suite."""
    return {benchmark.name: benchmark for group in defined("BENCHMARKS") for benchmark in group}
