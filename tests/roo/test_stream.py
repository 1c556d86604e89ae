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


def written(folder: Path, values: Any) -> Path:
    pl.DataFrame({"other": range(len(values)), "x": values}).write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


@pytest.mark.parametrize(
    ("values", "dtype", "labels"),
    [
        (["b", "", "b", "01"], None, ("01", "b", "", "1")),
        (["b", "a", "b"], pl.Categorical, ("a", "b")),
        (["b", "a", "b"], pl.Enum(["a", "b", "c"]), ("b", "c", "a")),
    ],
)
def test_parquet_columns_are_those_of_memory(
    values: list[str], dtype: Any, labels: Any, tmp_path: Path
) -> None:
    found = tally_file(written(tmp_path, pl.Series(values, dtype=dtype)), "x", labels)
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


REFUSED: list[tuple[str, Any, str | None]] = [
    *(("x.csv", f"x,y\n{field},1\n".encode(), "none of the labels") for field in CSV_OUTSIDE),
    *(("x.parquet", values, "none of the labels") for values in (["1", "6174"], ["1", None])),
    ("x.parquet", b"", None),
    ("x.parquet", b"PAR1" + bytes(range(256)) + b"6174PAR1", None),
    ("x.csv", b"", None),
    ("x.csv", b"x,y\n1,\xff\xfe6174\n\xff,1\n", None),
    ("x.csv", b"x\n1,6174,3\n", None),
    ("x.csv", b'x,y\n"6174\n1,2\n', None),
]


@pytest.mark.parametrize(("name", "content", "said"), REFUSED)
def test_a_refusal_is_one_sentence_that_shows_no_record(
    name: str, content: Any, said: str | None, tmp_path: Path
) -> None:
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        written(tmp_path, content)
    with pytest.raises(ParameterError, match=said) as caught:
        tally_file(tmp_path / name, "x", ("0", "1"))
    assert "6174" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_name_with_wildcards_is_one_file(tmp_path: Path) -> None:
    path = written(tmp_path, ["b", "a"]).rename(tmp_path / "a[1]*.parquet")
    assert tally_file(path, "x", ["a", "b"]).counts.tolist() == [1, 1]


def test_numbers_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="labels must hold only text"):
        tally_file(written(tmp_path, ["1"]), "x", [1, 2])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    with pytest.raises(ParameterError, match="it holds Int64, no text"):
        tally_file(written(tmp_path, [1, 2]), "x", ["1", "2"])


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
        f"found = tally_file(sys.argv[1], 'x', map(str, range({labels})))\n"
        "print(json.dumps([found.counts.tolist(), used() - before]))\n"
    )
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", script, str(path)]
    counts, grown = json.loads(subprocess.check_output(command, env=environment))
    assert counts == expected
    if sys.platform == "linux":
        assert grown < values.nbytes * 0.75
