"""The benchmarks of all suites."""

from __future__ import annotations

from importlib import import_module

from experiments.benchmarks.spec import Benchmark

_SUITES = (
    "accounting",
    "kernels",
    "modelling",
    "release",
    "samplers",
    "symmetry",
    "verify",
    "votes",
)


def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name, in the order of the report: suite after suite."""
    suites = (import_module(f"experiments.benchmarks.suite_{name}") for name in _SUITES)
    return {benchmark.name: benchmark for suite in suites for benchmark in suite.BENCHMARKS}
