"""Ctrl-C as a terminal sends it, to every process: the table stays, no worker does."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

POINTS = 150

SCRIPT = """
import os, signal, sys, time
from dpopt.sweeps import sweep

# A test runner in the background may have left it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def slow(a):
    time.sleep(PAUSE)
    return {"square": a * a, "process": os.getpid()}

PAUSE = float(sys.argv[4])
backend, workers, table = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    result = sweep(
        slow, {"a": range(POINTS)}, workers=workers, backend=backend, table=table, version="1"
    )
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(130)
print(result.reused, sum(record["square"] for record in result.records))
""".replace("POINTS", str(POINTS))


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(os.name != "posix", reason="signals to groups of processes are POSIX")
@pytest.mark.parametrize(
    ("backend", "workers"), [("processes", 1), ("processes", 2), ("threads", 2)]
)
def test_an_interrupted_sweep_keeps_what_is_done(
    tmp_path: Path, backend: str, workers: int
) -> None:
    if workers > 1:
        pytest.importorskip("joblib", reason="joblib is not installed")
    script, table = tmp_path / "script.py", tmp_path / "sweep.jsonl"
    script.write_text(SCRIPT)
    command = [sys.executable, "-W", "error", str(script), backend, str(workers), str(table)]
    with subprocess.Popen(
        [*command, "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        wait_for_lines(table, 5, process)
        os.killpg(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, "interrupted\n", "")
    text = table.read_text()
    assert text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()][1:]
    assert 4 <= len(lines) < POINTS
    workers_seen = {line["values"]["process"] for line in lines}
    assert not any(is_there(worker) for worker in workers_seen)
    again = subprocess.run(
        [*command, "0.0"], capture_output=True, text=True, timeout=60, check=False
    )
    squares = sum(a * a for a in range(POINTS))
    assert (again.stdout, again.stderr) == (f"{len(lines)} {squares}\n", "")


def wait_for_lines(table: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until the table has some lines; a process that ends before is a failure."""
    deadline = time.monotonic() + 60
    while not table.exists() or table.read_text().count("\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
