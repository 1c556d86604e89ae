"""Columns of files against the same records counted in memory; errors that show no record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.data.tally import tally, tally_file

pl: Any = pytest.importorskip("polars")
SECRET = "6174"


def written(folder: Path, values: Any, ending: str = "parquet", name: str = "category") -> Path:
    frame = pl.DataFrame({"other": pl.Series(range(len(values))), name: values})
    path = folder / f"records.{ending}"
    frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    return path


COLUMNS: list[tuple[list[Any], Any, Any]] = [
    (["b", "", "b", "01"], None, ("01", "b", "", "1")),
    (["b", "a", "b"], pl.Categorical, ("a", "b")),
    (["b", "a", "b"], pl.Enum(["a", "b", "c"]), ("b", "c", "a")),
]


@pytest.mark.parametrize("place", range(len(COLUMNS)))
def test_parquet_columns_are_those_of_memory(tmp_path: Path, place: int) -> None:
    values, dtype, labels = COLUMNS[place]
    path = written(tmp_path, pl.Series(values, dtype=dtype))
    found = tally_file(path, "category", labels)
    expected = tally(values, labels)
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.labels == expected.labels
    assert not found.counts.flags.writeable


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("x\n01\n1\n1\n", ("1", "01"), [2, 1]),
        ('x\n"a,b"\na\n"a,b"\n', ("a", "a,b"), [1, 2]),
        ("y,x\n6174,a\n,b\n", ("b", "a"), [1, 1]),
        ("x\n", ("b", "a"), [0, 0]),
    ],
)
def test_csv_text_is_read_as_the_labels_are(
    tmp_path: Path, text: str, labels: Any, expected: list[int]
) -> None:
    path = tmp_path / "records.CSV"
    path.write_text(text, encoding="utf-8")
    assert tally_file(str(path), "x", labels).counts.tolist() == expected


CSV_OUTSIDE = ["6174", "x6174", "", "1.5", "6174.5", "99999999999999999999", "nan", "true"]


@pytest.mark.parametrize("field", CSV_OUTSIDE)
def test_csv_fields_outside_are_refused_and_not_shown(tmp_path: Path, field: str) -> None:
    path = tmp_path / "records.csv"
    path.write_text(f"x,y\n{field},1\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="none of the labels") as caught:
        tally_file(path, "x", ("0", "1"))
    assert_hidden(caught.value)


def assert_hidden(error: BaseException) -> None:
    assert SECRET not in str(error)
    assert str(error).endswith(".")
    assert "\n" not in str(error)
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["a", "6174"], ("a", "b")),
        (["a", None], ("a", "b")),
    ],
)
def test_parquet_records_outside_are_refused_and_not_shown(
    tmp_path: Path, values: list[Any], labels: Any
) -> None:
    with pytest.raises(ParameterError, match="none of the labels") as caught:
        tally_file(written(tmp_path, pl.Series(values)), "category", labels)
    assert_hidden(caught.value)


def test_a_name_with_wildcards_is_one_file(tmp_path: Path) -> None:
    path = written(tmp_path, ["b", "a"]).rename(tmp_path / "a[1]*.parquet")
    assert tally_file(path, "category", ["a", "b"]).counts.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", b""),
        ("x.parquet", b"PAR1" + bytes(range(256)) + b"6174PAR1"),
        ("x.csv", b""),
        ("x.csv", b"x,y\n1,\xff\xfe6174\n\xff,1\n"),
        ("x.csv", b"x\n1,6174,3\n"),
        ("x.csv", b'x,y\n"6174\n1,2\n'),
    ],
)
def test_garbage_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ParameterError) as caught:
        tally_file(path, "x", ["0", "1"])
    assert_hidden(caught.value)


def test_numbers_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="labels must hold only text"):
        tally_file(written(tmp_path, ["1"]), "category", [1, 2])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    with pytest.raises(ParameterError, match="it holds Int64, no text"):
        tally_file(written(tmp_path, [1, 2]), "category", ["1", "2"])


@pytest.mark.nightly
@pytest.mark.slow
def test_millions_of_rows_in_memory_for_a_part_of_them(tmp_path: Path) -> None:
    rows, labels = 16_000_000, 1000
    values = np.random.default_rng(3).integers(0, labels, rows)
    path = written(tmp_path, pl.Series(values).cast(pl.String))
    expected = np.bincount(values, minlength=labels).tolist()
    script = (
        "import json, resource, sys, polars\n"
        "from dpopt.data.tally import tally_file\n"
        "used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = used()\n"
        f"found = tally_file(sys.argv[1], 'category', map(str, range({labels})))\n"
        "print(json.dumps([found.counts.tolist(), used() - before]))\n"
    )
    counts, grown = json.loads(run(script, str(path)))
    assert counts == expected
    if sys.platform == "linux":
        assert grown < values.nbytes * 0.75


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
