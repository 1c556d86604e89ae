"""Children of the benchmarks: what they return, and that their failures are values."""

from __future__ import annotations

import math
import os
import signal
import sys
import time

import pytest

from experiments.benchmarks import memory
from experiments.benchmarks.memory import DONE, OUT_OF_MEMORY, Limits, Ran, run_child

# Elsewhere the address space cannot be limited, or the peak is measured otherwise.
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are Linux's")
SMALL = Limits(60, 1)


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
