"""The same sweep on a Dask cluster: whoever is killed, what is done stays, and all else goes on."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpopt import ParameterError
from dpopt._progress import ProgressEvent
from dpopt.sweeps import Failure, sweep

joblib = pytest.importorskip("joblib", reason="joblib is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
POSIX = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
PATIENCE = 120


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield


@contextmanager
def processes(workers: int, threads: int) -> Iterator[Any]:
    """Workers that can die without the tests."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def where(a: int) -> dict[str, object]:
    return {"cube": a**3, "worker": distributed.get_worker().name}


def picky(a: int) -> int:
    if a == 3:
        raise ValueError("no 3")
    return a


@pytest.mark.usefixtures("_cluster")
def test_the_points_run_on_the_cluster() -> None:
    result = sweep(where, {"a": range(12)}, backend="dask")
    assert [record["cube"] for record in result.records] == [a**3 for a in range(12)]
    assert {record["worker"] for record in result.records} == {0, 1}


@pytest.mark.usefixtures("_cluster")
def test_the_configuration_of_joblib_is_taken_up() -> None:
    scale = 5
    with joblib.parallel_config(backend="dask"):
        result = sweep(lambda a: {**where(a), "b": a * scale}, {"a": range(4)}, backend="current")
    assert [record["b"] for record in result.records] == [0, 5, 10, 15]


@pytest.mark.usefixtures("_cluster")
def test_the_table_is_shared_with_other_backends(tmp_path: Path) -> None:
    table = tmp_path / "sweep.jsonl"
    assert sweep(picky, {"a": [1, 2]}, table=table).reused == 0
    result = sweep(picky, {"a": [1, 2, 4]}, table=table, backend="dask")
    assert result.reused == 2
    assert sweep(picky, {"a": [4, 2, 1]}, table=table, workers=2).reused == 3


@pytest.mark.usefixtures("_cluster")
def test_exceptions_and_cancelling(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no 3"):
        sweep(picky, {"a": [3]}, backend="dask")
    assert sweep(picky, {"a": [2, 3]}, backend="dask", on_error="record").failures == (
        Failure({"a": 3}, "ValueError", "no 3"),
    )

    def cancel(event: ProgressEvent) -> None:
        if event.done == 2:
            raise TimeoutError

    table = tmp_path / "sweep.jsonl"
    with pytest.raises(TimeoutError):
        sweep(picky, {"a": range(5, 25)}, backend="dask", progress=cancel, table=table)
    assert sweep(picky, {"a": range(5, 25)}, backend="dask", table=table).reused == 2


@pytest.mark.usefixtures("_cluster")
def test_many_points_take_few_batches() -> None:
    """Never more of them are on the cluster than it has threads."""
    client, most = distributed.Client.current(), 0

    def count(_: ProgressEvent) -> None:
        nonlocal most
        most = max(most, len(client.futures))

    result = sweep(lambda a: a * a, {"a": range(3000)}, backend="dask", progress=count)
    assert [record["value"] for record in result.records] == [a * a for a in range(3000)]
    assert result.effort.computed == 3000
    assert result.effort.batches < 100
    assert most <= 2
    assert str(result.effort).startswith("3,000 points in ")


@pytest.mark.usefixtures("_cluster")
def test_a_sweep_within_a_task() -> None:
    def inner(a: int) -> int:
        result = sweep(lambda b: 10 * a + b, {"b": range(3)}, backend="dask")
        return sum(record["value"] for record in result.records)

    result = sweep(inner, {"a": range(4)}, backend="dask")
    assert [record["value"] for record in result.records] == [30 * a + 3 for a in range(4)]


@pytest.mark.usefixtures("_cluster")
def test_what_is_interrupted_is_called_off() -> None:
    def cancel(_: ProgressEvent) -> None:
        if len(client.futures) == 2:
            raise TimeoutError

    client = distributed.Client.current()
    with pytest.raises(TimeoutError):
        sweep(where, {"a": range(50)}, backend="dask", progress=cancel)
    deadline = time.monotonic() + PATIENCE
    while client.futures:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_workers_may_come_late_and_leave() -> None:
    with (
        distributed.LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        late = threading.Timer(1.0, cluster.scale, [2])
        late.start()

        def leave(event: ProgressEvent) -> None:
            if event.done == 4:
                cluster.scale(1)

        def slow(a: int) -> int:
            time.sleep(0.1)
            return -a

        result = sweep(slow, {"a": range(12)}, backend="dask", progress=leave)
        late.join()
    assert [record["value"] for record in result.records] == [-a for a in range(12)]


def test_an_asynchronous_client_is_refused() -> None:
    async def ask() -> None:
        async with distributed.Client(processes=False, dashboard_address=":0", asynchronous=True):
            with pytest.raises(ParameterError, match="the current client is asynchronous"):
                sweep(picky, {"a": [1]}, backend="dask")

    import asyncio

    asyncio.run(ask())


@POSIX
def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    table, calls = tmp_path / "sweep.jsonl", tmp_path / "calls"
    calls.mkdir()

    def once(a: int) -> int:
        (calls / f"{a}-{len(list(calls.glob(f'{a}-*')))}").touch()
        if a == 13 and not (calls / "13-1").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return a * a

    with processes(2, 1):
        result = sweep(once, {"a": range(40)}, backend="dask", table=table)
    assert [record["value"] for record in result.records] == [a * a for a in range(40)]
    assert (result.failures, result.effort.deaths) == ((), 1)
    lines = [json.loads(line) for line in table.read_text().splitlines()[1:]]
    assert sorted(line["point"]["a"] for line in lines) == list(range(40))
    assert (calls / "13-1").exists()


def test_a_point_that_ends_its_worker_is_given_up(tmp_path: Path) -> None:
    def fatal(a: int) -> int:
        if a == 3:
            os._exit(3)
        time.sleep(0.02)
        return a

    table = tmp_path / "sweep.jsonl"
    with processes(2, 1):
        result = sweep(fatal, {"a": range(24)}, backend="dask", on_error="record", table=table)
    assert [record.get("value") for record in result.records] == [
        None if a == 3 else a for a in range(24)
    ]
    assert [failure.parameters for failure in result.failures] == [{"a": 3}]
    assert {failure.type for failure in result.failures} == {"WorkerError"}
    assert 2 <= result.effort.deaths <= 4


def started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL)


@contextmanager
def separate(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and a worker as processes of their own, as on other machines."""
    file = folder / "scheduler.json"
    local = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = started(
        "distributed.cli.dask_scheduler", *local, "--port", "0", "--scheduler-file", str(file)
    )
    worker = started(
        *("distributed.cli.dask_worker", *local, "--scheduler-file", str(file)),
        *("--nthreads", "1", "--no-nanny", "--local-directory", str(folder)),
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


SCRIPT = """
import sys, time
import distributed
from dpopt.sweeps import WorkerError, sweep

def slow(a):
    time.sleep(0.05)
    return a * a

def told(event):
    print(event.done, flush=True)

if __name__ == "__main__":
    address, table, points = sys.argv[1:]
    options = {"table": table, "version": "1", "progress": told}
    client = distributed.Client(address, timeout=5) if address else None
    backend = "dask" if client else "processes"
    try:
        result = sweep(slow, {"a": range(int(points))}, backend=backend, **options)
    except WorkerError as error:
        print(error)
    else:
        print("reused", result.reused, sum(record["value"] for record in result.records))
"""


def client(folder: Path, address: str, points: int) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), address, str(folder / "sweep.jsonl")]
    return subprocess.Popen(
        [*command, str(points)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def last_line(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE)[0].splitlines()[-1]


@POSIX
@pytest.mark.parametrize("victim", ["client", "scheduler"])
def test_a_killed_client_and_a_lost_scheduler(victim: str, tmp_path: Path) -> None:
    """What was done is on disk and not done again, by whatever goes on with the table."""
    points = 60
    with separate(tmp_path) as (address, scheduler):
        first = client(tmp_path, address, points)
        assert first.stdout is not None
        for line in first.stdout:
            if line.strip() == "7":
                break
        if victim == "client":
            first.kill()
            first.communicate(timeout=PATIENCE)
        else:
            scheduler.kill()
            said = last_line(first)
            assert said.startswith("the scheduler of the Dask cluster is lost")
        table = (tmp_path / "sweep.jsonl").read_text()
        done = table.count("\n") - 1
        assert 7 <= done < points
        again = client(tmp_path, address if victim == "client" else "", points)
        squares = sum(a * a for a in range(points))
        assert last_line(again) == f"reused {done} {squares}"
    lines = [json.loads(line) for line in (tmp_path / "sweep.jsonl").read_text().splitlines()[1:]]
    assert sorted(line["point"]["a"] for line in lines) == list(range(points))
