"""Experiments in processes of their own give what they give one after another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from experiments.catalogue import all_experiments
from experiments.runner import run_all

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("roo-figure-1", "prior-example-1")


def test_two_at_a_time_write_the_same_bytes(tmp_path: Path) -> None:
    known = all_experiments()
    chosen = [known[name] for name in NAMES]
    entries = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        entries[workers] = run_all(chosen, folder, full=False, workers=workers)
        assert [entry.experiment.name for entry in entries[workers]] == list(NAMES)
        assert all(entry.failure is None and entry.seconds > 0 for entry in entries[workers])
    for one, two in zip(entries[1], entries[2], strict=True):
        assert one.outcome is not None
        assert one.outcome == two.outcome
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / w).iterdir()} for w in "12")
    assert first == second
    assert len(first) > 6


def test_an_interrupted_run_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments", "smoothed-figure-5", "majority-claims"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(6.0)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.2)
    else:
        raise AssertionError("a worker is still running")
    assert not (tmp_path / "out" / "report.html").exists()
