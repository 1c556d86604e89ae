"""The benchmarks of all suites."""

from __future__ import annotations

from experiments.benchmarks import (
    suite_accounting,
    suite_kernels,
    suite_majority,
    suite_modelling,
    suite_release,
    suite_samplers,
    suite_symmetry,
    suite_verify,
    suite_votes,
)
from experiments.benchmarks.spec import Benchmark

_SUITES = (
    suite_accounting,
    suite_kernels,
    suite_majority,
    suite_modelling,
    suite_release,
    suite_samplers,
    suite_symmetry,
    suite_verify,
    suite_votes,
)


def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name, in the order of the report: suite after suite."""
    return {benchmark.name: benchmark for suite in _SUITES for benchmark in suite.BENCHMARKS}
