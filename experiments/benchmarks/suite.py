"""The registry of benchmarks."""

from __future__ import annotations

from experiments.benchmarks import (
    suite_kernels,
    suite_majority,
    suite_proofs,
    suite_release,
    suite_roo,
    suite_sgd,
    suite_smoothed,
)
from experiments.benchmarks.spec import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = (
    *suite_majority.BENCHMARKS,
    *suite_kernels.BENCHMARKS,
    *suite_roo.BENCHMARKS,
    *suite_smoothed.BENCHMARKS,
    *suite_sgd.BENCHMARKS,
    *suite_proofs.BENCHMARKS,
    *suite_release.BENCHMARKS,
)
"""In the order of the report; names are unique."""


def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name."""
    return {benchmark.name: benchmark for benchmark in BENCHMARKS}
