"""Sweeps: records, order, failures, resuming, progress and cancelling, on every backend here."""

import json
import math
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt._progress import ProgressEvent, reporting
from dpopt.sweeps import Failure, SweepResult, WorkerError, sweep

WAYS = [
    pytest.param({"workers": 1}, id="here"),
    pytest.param({"workers": 2, "backend": "threads"}, id="threads"),
    pytest.param({"workers": 2, "backend": "processes"}, id="processes"),
]


@pytest.fixture(autouse=True)
def _needs_joblib(request: pytest.FixtureRequest) -> None:
    way = getattr(request.node, "callspec", None)
    if way is not None and way.params.get("way", {}).get("workers", 1) > 1:
        pytest.importorskip("joblib", reason="joblib is not installed")


class OddError(Exception):
    """An exception that cannot be rebuilt from its arguments."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


def square(a: int, b: float = 0.0) -> float:
    return a * a + b


def picky(a: int) -> dict[str, Any]:
    if a % 3 == 0:
        raise ValueError(f"{a} is a multiple of 3")
    return {"half": np.float64(a) / 2, "list": np.arange(a)}


@pytest.mark.parametrize("way", WAYS)
def test_records_come_in_the_order_of_the_grid(way: dict[str, Any]) -> None:
    result = sweep(square, {"a": range(4), "b": [0.0, 0.5]}, **way)
    expected = [{"a": a, "b": b, "value": a * a + b} for a in range(4) for b in (0.0, 0.5)]
    assert list(result.records) == expected
    assert result.parameters == ("a", "b")
    assert result.failures == ()
    assert result.reused == 0
    assert len(result.seconds) == 8
    assert min(result.seconds) >= 0.0


@pytest.mark.parametrize("way", WAYS)
def test_lambdas_closures_and_arrays(way: dict[str, Any]) -> None:
    scale = np.array([2.0, 3.0])
    result = sweep(lambda a: {"scaled": a * scale, "n": np.int64(a)}, {"a": [1, 2]}, **way)
    assert result.records == (
        {"a": 1, "scaled": [2.0, 3.0], "n": 1},
        {"a": 2, "scaled": [4.0, 6.0], "n": 2},
    )


@pytest.mark.parametrize("way", WAYS)
def test_an_exception_is_raised_and_what_is_done_is_kept(
    way: dict[str, Any], tmp_path: Path
) -> None:
    table = tmp_path / "sweep.jsonl"
    with pytest.raises(ValueError, match="3 is a multiple of 3") as caught:
        sweep(picky, {"a": [3]}, table=table, **way)
    assert 'at the point {"a": 3}' in caught.value.__notes__[-1]
    lines = table.read_text().splitlines()
    assert len(lines) == 1  # the head
    assert sweep(picky, {"a": [1, 2]}, table=table, **way).reused == 0
    assert sweep(picky, {"a": [2, 1]}, table=table, **way).reused == 2


@pytest.mark.parametrize("way", WAYS)
def test_exceptions_are_recorded_and_tried_again(way: dict[str, Any], tmp_path: Path) -> None:
    table, marker = tmp_path / "sweep.jsonl", tmp_path / "mended"

    def mended(a: int) -> int:
        if a == 3 and not marker.exists():
            raise ValueError("not yet")
        return a

    options = {"table": table, "on_error": "record", **way}
    first = sweep(mended, {"a": [2, 3, 4]}, **options)
    assert first.records == (
        {"a": 2, "value": 2},
        {"a": 3, "failure": "ValueError: not yet"},
        {"a": 4, "value": 4},
    )
    assert first.failures == (Failure({"a": 3}, "ValueError", "not yet"),)
    marker.touch()
    second = sweep(mended, {"a": [2, 3, 4]}, **options)
    assert second.reused == 2
    assert second.failures == ()
    assert second.records[1] == {"a": 3, "value": 3}
    assert sweep(mended, {"a": [2, 3, 4]}, **options).reused == 3


@pytest.mark.parametrize("way", WAYS)
def test_exceptions_that_do_not_travel(way: dict[str, Any]) -> None:
    def odd(a: int) -> int:
        raise OddError(code=a)

    with pytest.raises(Exception, match="code 7"):
        sweep(odd, {"a": [7]}, **way)
    assert sweep(odd, {"a": [7]}, on_error="record", **way).failures == (
        Failure({"a": 7}, "OddError", "code 7"),
    )


@pytest.mark.parametrize("on_error", ["raise", "record"])
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (object(), "what the function returned holds <object .* of type object"),
        ({"a": 1}, "has the name 'a', which is a parameter"),
        ({"failure": 1}, "has the name 'failure', which is kept for failures"),
    ],
)
def test_results_that_cannot_be_kept_are_refused(
    on_error: str, returned: object, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        sweep(lambda a: (a, returned)[1], {"a": [1]}, on_error=on_error)


@pytest.mark.parametrize("way", WAYS[1:])
def test_workers_refuse_them_too(way: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="what the function returned holds 1j") as caught:
        sweep(lambda a: a * 1j, {"a": [1]}, on_error="record", **way)
    assert 'at the point {"a": 1}' in caught.value.__notes__[-1]


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_sweep_computes_only_what_is_missing(way: dict[str, Any], tmp_path: Path) -> None:
    table, calls = tmp_path / "sweep.jsonl", tmp_path / "calls"
    calls.mkdir()

    def counted(a: int) -> dict[str, float]:
        (calls / f"{a}-{len(list(calls.glob(f'{a}-*')))}").touch()
        return {"root": math.sqrt(a), "infinite": math.inf, "third": 1 / 3}

    whole = sweep(counted, {"a": range(6)}, **way)
    for file in calls.iterdir():
        file.unlink()
    assert sweep(counted, {"a": [0, 4, 9]}, table=table, **way).reused == 0
    resumed = sweep(counted, {"a": range(6)}, table=table, **way)
    assert resumed.reused == 2
    assert resumed.records == whole.records
    assert sorted(file.name for file in calls.iterdir()) == [f"{a}-0" for a in (*range(6), 9)]
    again = sweep(counted, {"a": range(6)}, table=table, **way)
    assert again.records == whole.records
    assert again.seconds == resumed.seconds


@pytest.mark.parametrize("way", WAYS)
def test_progress(way: dict[str, Any], tmp_path: Path) -> None:
    table = tmp_path / "sweep.jsonl"
    sweep(square, {"a": [1]}, table=table, **way)
    seen: list[ProgressEvent] = []
    outer: list[ProgressEvent] = []
    with reporting(outer.append):
        sweep(square, {"a": [1, 2, 3]}, table=table, progress=seen.append, **way)
    assert outer == []
    assert [(e.task, e.done, e.total) for e in seen] == [("sweep", n, 3) for n in (1, 2, 3)]
    assert {e.message for e in seen[1:]} == {"a=2", "a=3"}
    with reporting(outer.append):
        sweep(square, {"a": [1, 2, 3]}, table=table, **way)
    assert outer == [ProgressEvent("sweep", 3, 3)]


@pytest.mark.parametrize("way", WAYS)
def test_a_callback_cancels_and_what_is_done_is_kept(way: dict[str, Any], tmp_path: Path) -> None:
    table = tmp_path / "sweep.jsonl"

    def cancel(event: ProgressEvent) -> None:
        if event.done == 3:
            raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match="enough"):
        sweep(square, {"a": range(50)}, table=table, progress=cancel, **way)
    assert len(table.read_text().splitlines()) == 4
    result = sweep(square, {"a": range(50)}, table=table, **way)
    assert result.reused == 3
    assert [record["value"] for record in result.records] == [a * a for a in range(50)]


def test_a_function_that_cannot_travel_is_refused() -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    lock = threading.Lock()
    with pytest.raises(ParameterError, match=r"function cannot be sent .* use backend='threads'"):
        sweep(lambda a: (lock, a)[1], {"a": [1]}, workers=2)
    assert sweep(lambda a: (lock, a)[1], {"a": [1]}, workers=2, backend="threads").reused == 0


def fatal(a: int) -> int:
    if a == 5:
        os._exit(3)
    return a


def test_a_point_that_ends_its_process_is_given_up(tmp_path: Path) -> None:
    """All else is computed, and only that point again when the sweep is called again."""
    pytest.importorskip("joblib", reason="joblib is not installed")
    table, grid = tmp_path / "sweep.jsonl", {"a": range(30)}
    options: dict[str, Any] = {"workers": 2, "table": table, "on_error": "record"}
    result = sweep(fatal, grid, **options)
    message = "the worker died 2 times while it computed nothing but this point"
    (failure,) = result.failures
    assert (failure.parameters, failure.type) == ({"a": 5}, "WorkerError")
    assert failure.message.startswith(message)
    assert [record.get("value") for record in result.records] == [
        a if a != 5 else None for a in range(30)
    ]
    # Once in a batch or beside the other process, once more singly, then alone.
    assert 2 <= result.effort.deaths <= 4
    again = sweep(fatal, grid, tries=1, **options)
    assert (again.reused, again.effort.deaths) == (29, 1)
    with pytest.raises(WorkerError, match="died once while it computed nothing but this") as raised:
        sweep(fatal, grid, workers=2, table=table, tries=1)
    assert 'at the point {"a": 5}' in raised.value.__notes__[-1]


def test_a_point_that_ended_its_process_by_chance_is_computed_again(tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    marker = tmp_path / "was here"

    def once(a: int) -> int:
        if a == 5 and not marker.exists():
            marker.touch()
            os._exit(3)
        return a

    result = sweep(once, {"a": range(30)}, workers=2)
    assert [record["value"] for record in result.records] == list(range(30))
    assert result.effort.deaths == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers is 0; it must be an integer of at least 1"),
        ({"workers": 1.5}, "workers is 1.5"),
        ({"backend": "ray"}, "backend is 'ray'; it must be one of processes, threads, dask"),
        ({"on_error": "ignore"}, "on_error is 'ignore'; it must be one of raise, record"),
        ({"tries": 0}, "tries is 0; it must be an integer of at least 1"),
        ({"progress": 3}, "callback is 3; it must be callable"),
        ({"table": "missing/sweep.jsonl"}, "its folder 'missing' is missing"),
        ({"table": "."}, "a directory"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sweep(square, {"a": [1]}, **change)


def test_a_function_must_be_callable() -> None:
    with pytest.raises(ParameterError, match="function is 3; it must be callable"):
        sweep(3, {"a": [1]})  # type: ignore[arg-type]


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sweep(square, {"a": [1]})
    monkeypatch.setitem(sys.modules, "joblib", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'dpopt\[sweeps\]'"):
        sweep(square, {"a": [1]}, workers=2)
    with pytest.raises(ImportError, match=r"pip install 'dpopt\[interop\]'"):
        result.to_frame()
    assert sweep(square, {"a": [1]}).records == result.records


def test_a_cluster_must_be_there() -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.raises(ParameterError, match="there is no cluster; open one before"):
        sweep(square, {"a": [1]}, backend="dask")


@pytest.fixture
def swept() -> SweepResult:
    return sweep(
        lambda a, b: {"sum": a + b, "pair": [a, b]} if a != 1 else 1 / 0,
        {"a": [1, 2, 3], "b": [0.5, math.inf]},
        on_error="record",
    )


def test_to_frame(swept: SweepResult) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = swept.to_frame()
    assert list(frame.columns) == ["a", "b", "failure", "sum", "pair"]
    assert frame["a"].tolist() == [1, 1, 2, 2, 3, 3]
    assert frame["sum"].tolist()[2:] == [2.5, math.inf, 3.5, math.inf]
    assert frame["sum"].isna().tolist() == [True, True, False, False, False, False]
    assert frame["failure"][0] == "ZeroDivisionError: division by zero"


def test_to_a_frame_of_polars(swept: SweepResult) -> None:
    pytest.importorskip("polars", reason="polars is not installed")
    frame = swept.to_frame("polars")
    assert frame.columns == ["a", "b", "failure", "sum", "pair"]
    assert frame["sum"].to_list() == [None, None, 2.5, math.inf, 3.5, math.inf]
    assert frame["pair"].to_list()[4] == [3.0, 0.5]
    with pytest.raises(ParameterError, match="library is 'numpy'; it must be one of pandas"):
        swept.to_frame("numpy")


def test_to_records_have_the_same_names(swept: SweepResult) -> None:
    records = swept.to_records()
    assert {tuple(record) for record in records} == {("a", "b", "failure", "sum", "pair")}
    assert records[0]["sum"] is None
    assert records[2]["failure"] is None
    assert records[2]["pair"] == [2, 0.5]


def test_save(swept: SweepResult, tmp_path: Path) -> None:
    swept.save(tmp_path / "sweep.json")
    saved = json.loads((tmp_path / "sweep.json").read_text())
    assert saved["records"][2] == {"a": 2, "b": 0.5, "sum": 2.5, "pair": [2, 0.5]}
    assert saved["records"][3]["b"] is None
    assert saved["failures"] == 2
    swept.save(tmp_path / "sweep.csv")
    rows = (tmp_path / "sweep.csv").read_text().splitlines()
    assert rows[0] == "a,b,failure,sum,pair"
    assert rows[1] == "1,0.5,ZeroDivisionError: division by zero,,"
    assert rows[3] == '2,0.5,,2.5,"[2, 0.5]"'
    with pytest.raises(ParameterError, match=r"its ending must be \.json or \.csv"):
        swept.save(tmp_path / "sweep.txt")


def test_plot(swept: SweepResult) -> None:
    axes = swept.plot("a", "sum", by="b")
    assert [line.get_label() for line in axes.get_lines()] == ["b = 0.5", "b = inf"]
    assert axes.get_lines()[0].get_xydata().tolist() == [[2.0, 2.5], [3.0, 3.5]]  # type: ignore[union-attr]
    assert len(swept.plot("a", "sum").get_lines()) == 1
    with pytest.raises(ParameterError, match="y is 'product'; it must be one of a, b"):
        swept.plot("a", "product")


def test_a_real_design_is_the_same_in_a_sweep() -> None:
    from dpopt import majority

    def error(mechanisms: int, allowance: int) -> float:
        return majority.design(mechanisms, 0.1, allowance).expected_error

    result = sweep(error, {"mechanisms": [3, 5], "allowance": [1, 2]})
    for record in result.records:
        design = majority.design(record["mechanisms"], 0.1, record["allowance"])
        assert record["value"] == design.expected_error
