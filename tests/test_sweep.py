"""Sweeps: what they return, resumption, who dies meanwhile, and docs/cluster.md on a cluster."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, sweep
from dpopt._sweep import _append, _mark
from tests.pages import ROOT, Page, failures

joblib = pytest.importorskip("joblib", reason="joblib is not installed")
POINTS = 60
SCRIPT = f"""
import os, sys, time, dpopt
def square(a):
    time.sleep(0.002)
    return a * a
for end in range(4, {POINTS} + 1, 4):
    found = dpopt.sweep(square, {{"a": range(end)}}, table=sys.argv[1], version="1")
    assert [record["value"] for record in found.records] == [a * a for a in range(end)]
"""


def picky(a: int, b: float = 0.5) -> dict[str, Any]:
    if a % 3 == 0:
        raise ValueError(f"{a} is a multiple of 3")
    return {"half": np.float64(a) * b, "list": np.arange(a), "infinite": math.inf}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [None, 2])
def test_records_in_order_and_failures_in_words(workers: int | None) -> None:
    scale = np.array([2.0, 3.0])
    found = sweep(lambda b, a: {"s": a * scale + b}, {"b": [0, 0.5], "a": (1, 2)}, workers=workers)
    expected = [(b, a, [a * 2.0 + b, a * 3.0 + b]) for b in (0, 0.5) for a in (1, 2)]
    assert [tuple(record.values()) for record in found.records] == expected
    assert list(found.records[0]) == ["b", "a", "s"]
    failing = sweep(picky, [{"a": 2}, {"a": np.int64(3)}], workers=workers)
    words = {"a": 3, "failure": "ValueError: 3 is a multiple of 3"}
    assert failing.failures == failing.records[1:] == (words,)
    assert failing.records[0] == {"a": 2, "half": 1.0, "list": [0, 1], "infinite": math.inf}
    assert repr(failing) == f"<SweepResult: 2 points, 0 reused, 1 failed, such as {words}>"


@pytest.mark.parametrize("returned", [object(), 1j, {"a": 1}, {"failure": 1}, {(): 1}])
def test_what_a_table_cannot_hold_is_a_failure(returned: object) -> None:
    (record,) = sweep(lambda a: (a, returned)[1], {"a": [1]}).failures
    assert list(record) == ["a", "failure"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "missing/sweep.jsonl"}, "its folder 'missing' is missing"),
        ({"table": "."}, "a directory"),
        ({"grid": {"failure": [1]}}, "a parameter 'failure'"),
        *(({"grid": g}, "^grid is ") for g in ({}, {"k": []}, {3: [1]}, {"k": [1j]}, [3], [{}])),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sweep(**{"function": picky, "grid": {"a": [1]}, **change})


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ImportError, match=r"pip install 'dpopt\[sweeps\]'"):
        sweep(picky, {"a": [1]})


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    """Points in the table are not computed again, those that failed are."""
    calls, table, mended = tmp_path / "calls", tmp_path / "table", tmp_path / "mended"
    calls.mkdir()

    def counted(a: int) -> float:
        (calls / f"{a}-{len(list(calls.glob(f'{a}-*')))}").touch()
        return a / mended.exists() if a == 1 else math.sqrt(a)

    def cancel(event: dpopt.ProgressEvent) -> None:
        if event.done == 4:
            raise TimeoutError("enough")

    with dpopt.reporting(cancel), pytest.raises(TimeoutError, match="enough"):
        sweep(counted, {"a": range(40)}, table=table)
    mended.touch()
    found = sweep(counted, {"a": range(40)}, table=table, workers=2)
    assert found.reused == 3
    assert [record["value"] for record in found.records] == [math.sqrt(a) for a in range(40)]
    assert sorted(file.name for file in calls.iterdir() if "-0" not in file.name) == ["1-1"]
    events: list[dpopt.ProgressEvent] = []
    with dpopt.reporting(events.append):
        again = sweep(counted, {"a": [39, 4]}, table=str(table))
    assert (again.reused, again.records[1]) == (2, {"a": 4, "value": 2.0})
    assert events == [dpopt.ProgressEvent("sweep", 2, 2)]


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_torn_line_counts_for_nothing(tmp_path: Path, cut: int) -> None:
    table, grid = tmp_path / "table", {"a": [1, 2, 3]}
    sweep(math.sqrt, [{"x": 1}], table=table)
    whole = sweep(lambda a: 2 * a, grid, table=table, version="1")
    table.write_bytes(table.read_bytes()[:-cut])
    assert sweep(lambda a: -a, grid, table=table, version="2").reused == 0
    torn = sweep(lambda a: 2 * a, grid, table=table, version="1")
    # An end of line that alone is missing takes nothing along.
    assert (torn.reused, torn.records) == (3 if cut == 1 else 2, whole.records)
    assert sweep(lambda a: 2 * a, grid, table=table, version="1").reused == 3


@pytest.mark.parametrize("text", ["hello\n", "hello", "[]\n", '{"a": 1}\n', "[" * 100_000, "\0\n"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(ParameterError, match="no table of a sweep"):
        sweep(picky, {"a": [1]}, table=path)
    assert path.read_text() == text


def adding(constant: Any) -> Callable[..., Any]:
    return lambda a: a + constant


def test_functions_that_differ_have_other_marks() -> None:
    nested = [lambda a: [a + b for b in (1, 2)], lambda a: [a + b for b in (1, 3)]]
    defaults = [lambda a, b=1: a + b, lambda a, b=2: a + b]
    bound = [partial(picky, b=2.0), partial(picky, b=3.0), adding(1), adding(2), adding(nested[0])]
    functions = [picky, math.sqrt, abs, adding(nested[1]), *nested, *defaults, *bound]
    assert len({_mark(each, None, joblib.hash) for each in functions}) == len(functions)
    once, again = (_mark(adding(np.eye(2)), None, joblib.hash) for _ in range(2))
    assert once == again
    assert _mark(adding(1), "1", joblib.hash) == _mark(adding(2), "1", joblib.hash)
    assert _mark(adding(1), "1", joblib.hash) != _mark(picky, "1", joblib.hash)
    with pytest.raises(ParameterError, match="say version="):
        _mark(adding(sys.stdout), None, joblib.hash)


@pytest.mark.slow
def test_a_mark_is_the_same_in_every_process() -> None:
    code = (
        "import joblib; from dpopt._sweep import _mark\n"
        "print(_mark(lambda a: a in {'x', 'y', 'z', 'w'}, None, joblib.hash))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(said) == 1


@pytest.mark.slow
def test_processes_on_one_table_lose_nothing_even_if_killed(tmp_path: Path) -> None:
    table, before = tmp_path / "table", b""
    command = [sys.executable, "-c", SCRIPT, str(table)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    while running[1].poll() is None:
        now = table.read_bytes() if table.exists() else b""
        assert now.startswith(before)  # Lines are only ever added.
        before = now
        if now.count(b"\n") > 30:
            running[0].kill()
        time.sleep(0.002)
    assert [process.wait() for process in running[1:]] == [0, 0]
    running[0].wait()
    lines = [json.loads(line) for line in table.read_text().splitlines()]
    assert {line["point"]["a"] for line in lines} == set(range(POINTS))
    assert all(line["values"] == {"value": line["point"]["a"] ** 2} for line in lines)


def test_on_windows_lines_are_added_under_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same byte is locked before a line is written and unlocked after, even if it fails."""
    table, calls = tmp_path / "table", list[tuple[int, int, int]]()

    def locking(descriptor: int, mode: int, count: int) -> None:
        calls.append((mode, os.lseek(descriptor, 0, os.SEEK_CUR), table.stat().st_size))
        assert count == 1

    monkeypatch.setattr(sys, "platform", "win32")
    windows = SimpleNamespace(locking=locking, LK_LOCK=1, LK_UNLCK=0)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    for size in (0, 5):
        _append(table, "line\n")
        (locked, unlocked) = calls
        # Far beyond the end, and within the 32 bits that the lock counts in.
        assert locked[1] == unlocked[1] == 2**31 - 2
        assert [(locked[0], locked[2]), (unlocked[0], unlocked[2])] == [(1, size), (0, size + 5)]
        calls.clear()
    assert table.read_text(encoding="utf-8") == "line\nline\n"


@pytest.mark.slow
def test_a_point_that_ends_its_process_ends_the_sweep_that_goes_on(tmp_path: Path) -> None:
    def fatal(a: int) -> int:
        if a == 25 and not (tmp_path / "mended").exists():
            os._exit(3)
        return a

    with pytest.raises(Exception, match="unexpectedly terminated"):
        sweep(fatal, {"a": range(30)}, workers=2, table=tmp_path / "table")
    (tmp_path / "mended").touch()
    found = sweep(fatal, {"a": range(30)}, workers=2, table=tmp_path / "table")
    assert 0 < found.reused < 30
    assert [record["value"] for record in found.records] == list(range(30))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_page_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session on a cluster within this process, then its script on one that is apart."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    monkeypatch.chdir(tmp_path)
    page = Page.of("docs/cluster.md")
    assert set(page.files) == {"study.py", "slurm.py"}
    compile(page.files["slurm.py"], "slurm.py", "exec")
    assert failures(page.sessions) == ""
    (tmp_path / "study.py").write_text(page.files["study.py"])
    (tmp_path / "study.jsonl").unlink()
    with distributed.LocalCluster(n_workers=2, dashboard_address=":0") as dask:
        (tmp_path / "scheduler.json").write_text(json.dumps({"address": dask.scheduler_address}))
        said = [
            subprocess.run(
                [sys.executable, "study.py"],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=120,
                check=True,
            ).stdout
            for _ in range(2)
        ]
    whole = "<SweepResult: 27 points, {} reused, 0 failed>\n"
    assert said == [whole.format(0), whole.format(27)]
    rows = [json.loads(row) for row in (tmp_path / "study.jsonl").read_text().splitlines()]
    for row in rows[:27:7]:
        design = dpopt.design(
            dpopt.Majority(row["point"]["voters"], 0.1, row["point"]["allowance"])
        )
        assert row["values"]["error"] == design.expected_error
