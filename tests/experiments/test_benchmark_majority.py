"""The contenders for DaRRM compute the same thing, and children fail as values."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpopt.majority.program import corner_rows
from experiments.benchmarks import memory
from experiments.benchmarks import suite_votes as ways
from experiments.benchmarks.memory import DONE, OUT_OF_MEMORY, Limits, Ran, run_child
from experiments.majority.full_set import corner_names, every_multiset, rows_of

# Elsewhere the address space cannot be limited, or the peak is measured otherwise.
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are Linux's")
CASES = [(5, 2.0, 0.0), (7, 3.0, 0.0), (5, 2.0, 1e-5), (7, 2.0, 1e-2)]
SMALL = Limits(60, 1)


def instance(k: int, m: float, shift: float) -> ways.Instance:
    return ways.Instance.of(k, 0.3, m, shift)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "m", "shift"), CASES)
def test_rows_are_those_of_the_definition(k: int, m: float, shift: float) -> None:
    case = instance(k, m, shift)
    counts, corners = every_multiset(case.setting), corner_names(case.setting)
    listed = combinations_with_replacement(range(len(corners)), k)
    expected = {tuple(np.bincount(c, minlength=len(corners))) for c in listed}
    assert {tuple(row) for row in counts.tolist()} == expected
    assert len(counts) == len(expected)
    shared = rows_of(case.setting, counts)
    named = [
        tuple((name, int(n)) for name, n in zip(corners, row, strict=True) if n) for row in counts
    ]
    ours = corner_rows(case.setting, named).matrix.toarray() * case.setting.budget
    assert np.allclose(shared, ours, atol=1e-12)


@linux
def test_a_child_returns_its_value_times_and_memory() -> None:
    idle = run_child(os.urandom, 8, SMALL).resident
    ran = run_child(os.urandom, 64 << 20, SMALL, warm_up=[8], least_seconds=0.01)
    assert ran.outcome == DONE
    assert len(ran.value) == 64 << 20
    assert len(ran.seconds) == len(ran.cpu_seconds) >= 1
    assert ran.resident is not None
    assert idle is not None
    # A second value beside the first would show.
    assert 60 << 20 < ran.resident - idle < 100 << 20


@pytest.mark.slow
@linux
def test_the_memory_of_the_parent_is_not_the_child_s() -> None:
    ballast = os.urandom(256 << 20)
    small = run_child(os.urandom, 8, SMALL).resident
    assert small is not None
    assert small < 128 << 20
    assert len(ballast) == 256 << 20


@linux
def test_failures_of_a_child_are_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_child(bytearray, 2 << 30, SMALL) == Ran(OUT_OF_MEMORY)
    assert run_child(math.sqrt, -1, SMALL).outcome.startswith("error: ValueError")
    assert run_child(signal.raise_signal, signal.SIGSEGV, SMALL) == Ran("ended by SIGSEGV")
    monkeypatch.setattr(memory, "_ON_THE_CLOCK", 0.5)
    assert run_child(time.sleep, 60, Limits(1, 1)) == Ran("over 0.5 s")
