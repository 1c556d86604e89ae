"""The same sweep on a Dask cluster, through joblib."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpopt._progress import ProgressEvent
from dpopt.sweeps import Failure, sweep

joblib = pytest.importorskip("joblib", reason="joblib is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield


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
