"""Several processes on one table: nothing that was finished is lost, whoever is killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpopt import ParameterError, _lock
from dpopt.sweeps import pools, run, sweep

POINTS = 60

# Opened again and again, as by jobs of a cluster that come and go, and all at the same points.
SCRIPT = """
import os, sys, time
from dpopt.sweeps import sweep

def square(a):
    time.sleep(PAUSE)
    open(os.path.join(sys.argv[2], f"{a}-{os.getpid()}"), "x").close()
    return a * a

PAUSE = float(sys.argv[3])
step = int(sys.argv[4])
for end in range(step, POINTS + 1, step):
    found = sweep(square, {"a": range(end)}, table=sys.argv[1], version="1")
    assert [record["value"] for record in found.records] == [a * a for a in range(end)]
""".replace("POINTS", str(POINTS))


def begin(folder: Path, pause: float, step: int) -> subprocess.Popen[bytes]:
    script, calls = folder / "script.py", folder / "calls"
    script.write_text(SCRIPT)
    calls.mkdir(exist_ok=True)
    arguments = [str(folder / "sweep.jsonl"), str(calls), str(pause), str(step)]
    return subprocess.Popen([sys.executable, "-W", "error", str(script), *arguments])


def whole_lines(table: Path) -> bytes:
    data = table.read_bytes() if table.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def lines(table: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in table.read_text().splitlines()[1:]]


@pytest.mark.parametrize("step", [4, POINTS])
@pytest.mark.parametrize("trial", range(4))
def test_no_point_of_any_process_vanishes(tmp_path: Path, step: int, trial: int) -> None:
    """Each call of the function that returned has its line or lost to an equal one."""
    table = tmp_path / "sweep.jsonl"
    processes = [begin(tmp_path, 0.002 * (1 + trial), step) for _ in range(3)]
    before = b""
    while any(process.poll() is None for process in processes):
        now = whole_lines(table)
        # Lines are only ever added: what was there once stays, byte for byte.
        assert now.startswith(before)
        before = now
        time.sleep(0.002)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert table.read_bytes().endswith(b"\n")
    assert sorted(line["point"]["a"] for line in lines(table)) == list(range(POINTS))
    assert all(line["values"] == {"value": line["point"]["a"] ** 2} for line in lines(table))
    calls = [name.name.split("-")[0] for name in (tmp_path / "calls").iterdir()]
    assert set(calls) == {str(a) for a in range(POINTS)}


def test_processes_share_the_work(tmp_path: Path) -> None:
    """In step with each other, three processes would compute every point three times."""
    processes = [begin(tmp_path, 0.03, POINTS) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert POINTS <= len(list((tmp_path / "calls").iterdir())) < 2 * POINTS


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_processes_killed_in_the_middle_take_no_line_of_another_along(tmp_path: Path) -> None:
    table = tmp_path / "sweep.jsonl"
    steady, before, killed = begin(tmp_path, 0.03, POINTS), b"", 0
    while steady.poll() is None:
        victim = begin(tmp_path, 0.001, POINTS)
        deadline = time.monotonic() + 30
        while whole_lines(table).count(b"\n") < min(POINTS, before.count(b"\n") + 3):
            assert time.monotonic() < deadline
        victim.send_signal(signal.SIGKILL)
        killed += victim.wait() == -signal.SIGKILL
        now = whole_lines(table)
        assert now.startswith(before)
        before = now
    assert (steady.returncode, killed > 0) == (0, True)
    assert begin(tmp_path, 0.0, POINTS).wait() == 0
    assert table.read_bytes().startswith(before)
    assert sorted(line["point"]["a"] for line in lines(table)) == list(range(POINTS))


def double(a: int) -> int:
    return 2 * a


def test_a_short_last_line_is_cut_off_by_whoever_appends_next(tmp_path: Path) -> None:
    """A process dies within its write while this one computes."""
    table = tmp_path / "sweep.jsonl"

    def died_beside(a: int) -> int:
        if a == 2:
            with table.open("a") as file:
                file.write('{"point": {"a": 1}, "seconds": 1.0, "values": {"value": 2}}\n{"poi')
        return 2 * a

    result = sweep(died_beside, {"a": [0, 2, 1]}, table=table)
    assert [record["value"] for record in result.records] == [0, 4, 2]
    # The other's line was taken: its point was not computed again.
    assert result.reused == 1
    assert [line["point"]["a"] for line in lines(table)] == [0, 1, 2]


def test_of_two_lines_for_a_point_the_first_success_counts(tmp_path: Path) -> None:
    table = tmp_path / "sweep.jsonl"

    def slower(a: int) -> int:
        with table.open("a") as file:
            file.write('{"point": {"a": 1}, "seconds": 1.0, "values": {"value": 7}}\n')
        raise ValueError(a)

    result = sweep(slower, {"a": [1]}, table=table, on_error="record")
    assert (result.records, result.failures) == (({"a": 1, "value": 7},), ())
    assert len(lines(table)) == 1


@pytest.mark.parametrize("kept", [0, 1, 40, -1])
def test_a_head_that_was_cut_short_is_written_again(tmp_path: Path, kept: int) -> None:
    table = tmp_path / "sweep.jsonl"
    sweep(double, {"a": [1]}, table=table)
    head = table.read_bytes().split(b"\n")[0]
    table.write_bytes(head[:kept])
    assert sweep(double, {"a": [1]}, table=table).reused == 0
    assert table.read_bytes().split(b"\n")[0] == head
    assert len(lines(table)) == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_table_taken_away_meanwhile_is_an_error(tmp_path: Path, replaced: bool) -> None:
    table = tmp_path / "sweep.jsonl"

    def removing(a: int) -> int:
        table.unlink()
        if replaced:
            table.write_text("mine")
        return a

    with pytest.raises(ParameterError, match="removed or replaced while the sweep ran"):
        sweep(removing, {"a": [1]}, table=table)
    assert not replaced or table.read_text() == "mine"


def refuse_locks(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_lock, "_lock", refuse)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_said(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "sweep.jsonl"
    refuse_locks(number, monkeypatch)
    with pytest.warns(RuntimeWarning, match="no locks: let one process at a time use it") as said:
        sweep(double, {"a": [1, 2]}, table=table)
    assert [warning.filename for warning in said] == [__file__]
    with pytest.warns(RuntimeWarning, match="no locks"):
        assert sweep(double, {"a": [1, 2, 3]}, table=table).reused == 2
    # Whether that line is still being written cannot be told: it is left alone.
    with table.open("a") as file:
        file.write('{"poi')
    before = table.read_bytes()
    with (
        pytest.warns(RuntimeWarning, match="no locks"),
        pytest.raises(ParameterError, match="its last line was cut off"),
    ):
        sweep(double, {"a": [4]}, table=table)
    assert table.read_bytes() == before


def test_a_lock_refused_for_another_reason_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(errno.EIO, monkeypatch)
    with pytest.raises(ParameterError, match=r"table is .*sweep\.jsonl"):
        sweep(double, {"a": [1]}, table=tmp_path / "sweep.jsonl")


@pytest.mark.parametrize(("points", "started"), [(1, 1), (2, 2), (3, 3)])
def test_no_more_workers_than_points(
    points: int, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    asked: list[int] = []

    def pool_of(backend: str, function: Callable[..., Any], workers: int) -> pools.Pool:
        asked.append(workers)
        return pools.pool_of(backend, function, workers)

    monkeypatch.setattr(run, "pool_of", pool_of)
    for backend in ("threads", "processes"):
        sweep(double, {"a": range(points)}, workers=40, backend=backend)
    assert asked == [started] * 2
