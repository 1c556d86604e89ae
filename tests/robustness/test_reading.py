"""Every file that is read is read with suspicion: nothing hangs, nothing grows, no other error."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, _kinds, roo
from dpopt.cli.release import _rows
from dpopt.files import read_rows, read_text
from tests.robustness.commands import Ended, example, run
from tests.solved import example as setting_of
from tests.solved import solved

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t\n",
    "binary": bytes(range(256)) * 8,
    "zeros": b"\0" * 1000,
    "latin-1": "é".encode("latin-1"),
    "utf-16": "1,2".encode("utf-16"),
    "words": b"one two",
    "ragged": b"1,2\n3\n",
    "long line": b"1 " * 50_000,
    "digits": b"9" * 5000,
    "exponent": b"1e400",
    "nan": b"nan",
    "negative": b"-1,-2",
    "half": b"0.5,0.5",
    "complex": b"1j",
    "underscore": b"1_0",
    "byte order mark": b"\xef\xbb\xbf1,2",
    "gzip": gzip.compress(b"1,2"),
}
READERS: dict[str, Callable[[Path], object]] = {
    "text": read_text,
    "rows": read_rows,
    "integer rows": lambda path: _rows("input", str(path), int, "integers"),
    "load": dpopt.load,
    "csv": lambda path: roo.tally_file(path.with_suffix(".csv"), "x", ["a", "b"]),
    "parquet": lambda path: roo.tally_file(path.with_suffix(".parquet"), "x", ["a", "b"]),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> str:
    if request.param in ("csv", "parquet"):
        pytest.importorskip("polars")
    return request.param


def test_readers_answer_or_refuse(reader: str, tmp_path: Path) -> None:
    for number, content in enumerate(CONTENTS.values()):
        path = tmp_path / f"file{number}"
        for ending in ("", ".csv", ".parquet"):
            path.with_suffix(ending).write_bytes(content)
        try:
            READERS[reader](path)
        except ParameterError:
            continue
        assert reader in ("text", "rows", "integer rows")


def no_files(folder: Path) -> list[Path]:
    """Make paths at which no file can be."""
    (folder / "file").touch()
    (folder / "folder").mkdir()
    for ending in ("", ".csv", ".parquet"):
        (folder / f"loop{ending}").symlink_to(folder / f"loop{ending}")
    names = ("loop", "folder", "x" * 5000, "a\0b", "missing/x", "file/below")
    return [folder / name for name in names]


def test_readers_refuse_what_is_no_file(reader: str, tmp_path: Path) -> None:
    absent = [tmp_path / name for name in ("missing", "\udcff", "ε\U0001f4a5")]
    for path in (*no_files(tmp_path), *absent):
        with pytest.raises(ParameterError):
            READERS[reader](path)


def test_writers_refuse_what_can_be_no_file(tmp_path: Path) -> None:
    paths = no_files(tmp_path)
    before = sorted(tmp_path.iterdir())
    for path in paths:
        with pytest.raises(ParameterError):
            solved("kernel-tight").save(path)
    assert sorted(tmp_path.iterdir()) == before


def parquet(data: dict[str, Any]) -> bytes:
    pl = pytest.importorskip("polars")
    buffer = io.BytesIO()
    pl.DataFrame(data).write_parquet(buffer)
    return buffer.getvalue()


def test_damaged_parquet(tmp_path: Path) -> None:
    whole, rng = parquet({"x": ["a", "b", "a"] * 50}), random.Random(0)
    path = tmp_path / "file.parquet"
    # Columns of another kind.
    for values in ([["a"], ["b"]], [{"a": 1}, {"a": 2}]):
        path.write_bytes(parquet({"x": values}))
        with pytest.raises(ParameterError):
            roo.tally_file(path, "x", ["a", "b"])
    path.write_bytes(whole)
    assert roo.tally_file(path, "x", ["a", "b"]).counts.tolist() == [100, 50]
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ParameterError):
            roo.tally_file(path, "x", ["a", "b"])
    for _ in range(60):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(flipped))
        try:
            found = roo.tally_file(path, "x", ["a", "b"])
        except ParameterError:
            continue
        # Parquet has no checksum of its own by default: counts of the categories named, no others.
        assert np.all(found.counts >= 0)


@contextmanager
def special_files(folder: Path) -> Iterator[list[Path]]:
    """A device that never ends, a pipe without a writer, a pipe with one, and a link."""
    idle, busy, link = folder / "idle.csv", folder / "busy.csv", folder / "link.csv"
    os.mkfifo(idle)
    os.mkfifo(busy)
    link.symlink_to("/dev/zero")
    # Open for reading and writing does not wait for anybody.
    keeper = os.open(busy, os.O_RDWR | os.O_NONBLOCK)
    os.write(keeper, b"1,2,3\n" * 100)
    try:
        yield [Path("/dev/zero"), idle, busy, link]
    finally:
        os.close(keeper)


def commands(path: Path, saved: Path) -> dict[str, list[str]]:
    """Every argument that is the path of a file to read."""
    where = str(path)
    found = {
        "certify": ["certify", where],
        "release": ["release", where, "--input", "1"],
        "input": ["release", str(saved), "--input", where],
        "distribution": ["release", str(saved), "--distribution", where],
        "sample": ["sample", where, "--column=a", "--epsilon=1", "--labels=a,b"],
        "labels": ["sample", where, "--column=a", "--epsilon=1", "--labels", where],
    }
    for kind in _kinds.KINDS:
        for field in _kinds.described(type(setting_of(kind))).fields:
            if {"Numbers", "Table", "Constraints"} & set(field.annotation.split(" | ")):
                option = f"--{field.name.replace('_', '-')}"
                found[f"{kind} {option}"] = [kind, *example(kind), option, where]
    return found


@pytest.mark.slow_after(6)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", commands(Path("x"), Path("x")))
def test_a_device_or_a_pipe_is_refused_at_once(name: str, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.json"
    solved("public-prior").save(kernel)
    with special_files(tmp_path) as found:
        for path in found:
            ended: list[Ended] = []

            def command(arguments: list[str], into: list[Ended] = ended) -> None:
                into.append(run(*arguments))

            # A read that waits would wait for ever: in a thread, it only fails the test.
            thread = Thread(target=command, args=(commands(path, kernel)[name],), daemon=True)
            thread.start()
            thread.join(120)
            assert [(each.code, each.err.count("\n")) for each in ended] == [(2, 1)], path


def test_a_sparse_file_of_a_terabyte_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ParameterError, match="more than 256 MiB"):
        dpopt.load(path)


def test_a_prior_near_the_largest_float_is_a_prior() -> None:
    queries = [[1.0, 0.5], [0.5, 1.0]]
    prior = dpopt.Workload(queries, 1.0, prior=[1.5e308, 0.5e308]).prior
    assert prior == pytest.approx([0.75, 0.25], abs=1e-15)
    with pytest.raises(ParameterError, match="none more than 1e6 times another"):
        dpopt.Workload(queries, 1.0, prior=[1e308, 1.0])
