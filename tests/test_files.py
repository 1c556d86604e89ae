"""Files appear whole or not at all."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from dpopt import ParameterError, files
from dpopt.cli.release import _rows
from dpopt.files import contents, parse_json, read_table, replacing, write_json, write_text


class StopError(Exception):
    """Raised in the middle of writing."""


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A file that stays as it is, alone in its folder."""
    path = tmp_path / "file.json"
    path.write_text("old", encoding="utf-8")
    yield path
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt])
def test_old_file_survives_an_error(old: Path, error: type[BaseException]) -> None:
    def interrupted() -> None:
        with replacing(old) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        interrupted()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("open", PermissionError(13, "Permission denied"), "permission denied"),
        ("fsync", OSError(5, "Input/output error"), "input/output error"),
    ],
)
def test_what_the_system_refuses_leaves_the_old_file(
    call: str, error: OSError, said: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(ParameterError, match=f"path is .* {said}"):
        write_text(old, "new")


posix = pytest.mark.skipif(os.name != "posix", reason="permissions and masks of POSIX")


@posix
def test_permissions_of_a_new_file_follow_the_mask_which_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        # Another thread would create its files with whatever mask is set meanwhile.
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", None)
            write_text(tmp_path / "file.txt", "text")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_of_an_old_file_stay_while_it_is_written_too(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file.txt"
    path.touch()
    path.chmod(mode)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == mode
        temporary.write_text("text", encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_contents_are_on_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def synced(file: int | IO[bytes]) -> None:
        number = file if isinstance(file, int) else file.fileno()
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "contents")
        sync(number)

    def renamed(path: Path, target: Path) -> Path:
        done.append("name")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_text(tmp_path / "file.txt", "text")
    assert done == ["contents", "name", "folder"]


def test_numbers_beyond_all_floats_are_refused() -> None:
    for text in [
        "1e999",
        "[1, -1e999]",
        '{"a": [[0.5], [[1e400]]]}',
        "[[NaN]]",
        "Infinity",
        "[{}, 9e999]",
    ]:
        with pytest.raises(ValueError, match="not finite"):
            parse_json(text)


@pytest.mark.parametrize("bad", [math.nan, math.inf, object()])
def test_json_that_cannot_be_written_leaves_the_old_file(old: Path, bad: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_json(old, {"value": bad})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_a_pipe_is_no_target_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ParameterError, match="pipe"):
        write_text(pipe, "x")
    assert pipe.is_fifo()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_columns_of_a_text(tmp_path: Path) -> None:
    for ending in ["csv", "TSV"]:
        for text, columns in [
            ("a,b\n1,2\n", {"a": [1.0], "b": [2.0]}),
            ("\ufeffa, b\n\n1 ,2\n", {"a": [1.0], "b": [2.0]}),
            ("1,2\n3,4\n", {"0": [1.0, 3.0], "1": [2.0, 4.0]}),
            ("0,1,2\n3,4,5\n", {"0": [3.0], "1": [4.0], "2": [5.0]}),
            ("0.0,1.0\n1,0\n", {"0": [0.0, 1.0], "1": [1.0, 0.0]}),
            (",a,b\n0,1,2\n1,3,4\n", {"input": [0, 1], "a": [1.0, 3.0], "b": [2.0, 4.0]}),
            (",a\nx,1\n", {"input": ["x"], "a": [1.0]}),
            (",input,a\n0,x,1\n", {"input": ["x"], "a": [1.0]}),
            ("input,a\nx,1\n", {"input": ["x"], "a": [1.0]}),
            ("a,b\nx,1\n", {"a": ["x"], "b": [1.0]}),
            ("a,input\n1,2\n", {"a": [1.0], "input": [2]}),
            ("input\n1\n", {"input": [1]}),
            ("input,output,loss\nx,y,1\n", {"input": ["x"], "output": ["y"], "loss": [1.0]}),
            (
                "input,output,probability,more\n0,1,0.5,2\n",
                {"input": [0], "output": [1], "probability": [0.5], "more": [2.0]},
            ),
            ("input,output,weight\nx,1,2\n", {"input": ["x"], "output": [1], "weight": [2.0]}),
        ]:
            path = tmp_path / f"table.{ending}"
            path.write_text(text if ending == "csv" else text.replace(",", "\t"), encoding="utf-8")
            assert repr(read_table(path)) == repr(columns)


def test_what_is_no_table_of_text(tmp_path: Path) -> None:
    for text, told in [
        ("0,1\n1,0\n", "may be names of columns or numbers"),
        (" , \n\n", "it is empty"),
        ("a,b\n1\n", "line 2 has 1 values, and the first has 2"),
        ("1,2\n3,4\n5\n", "line 3 has 1 values, and the first has 2"),
        ("a,a\n1,2\n", "two of its columns have the same name"),
        ('a,"b\n', "it is not a table of text"),
    ]:
        path = tmp_path / "table.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ParameterError, match=told):
            read_table(path)


def test_files_that_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    told = {
        "folder.csv": "a directory",
        "missing.csv": "; no such file",
        "table.xlsx": r"a table is a file that ends in \.csv",
    }
    for name, why in told.items():
        with pytest.raises(ParameterError, match=why):
            read_table(tmp_path / name)


def test_the_largest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, table, written = (tmp_path / name for name in ("text", "table.csv", "written.json"))
    text.write_text("12345", encoding="utf-8")
    most = 200
    table.write_text("1,2\n" * 50, encoding="utf-8")
    for size, fits in ((most, True), (most - 1, False)):
        text.write_text("1" * most, encoding="utf-8")
        monkeypatch.setattr(files, "LARGEST_FILE", size)
        for asked in (
            lambda: contents(text),
            lambda: read_table(table),
            lambda: write_json(written, {"x": "y" * (most - 14)}),
        ):
            if fits:
                asked()
            else:
                with pytest.raises(ValueError, match=r"it has more than|would be too large"):
                    asked()


def test_rows_of_integers_from_a_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    for text, rows in [
        ("1,2 -3", [[1, 2, -3]]),
        ("1,2\n\n3\t4\n", [[1, 2], [3, 4]]),
        ("0123456789, \t-1", [[123456789, -1]]),
    ]:
        file.write_text(text, encoding="utf-8")
        for given in (str(file), text)[: 1 if "\n" in text else 2]:
            assert _rows("input", given, int, "integers") == rows


def test_names_and_integers_of_json() -> None:
    assert parse_json('{"a": 1, "b": {}}') == {"a": 1, "b": {}}
    with pytest.raises(ValueError, match="a name stands twice"):
        parse_json('{"a": 1, "a": 1}')
    assert parse_json("9" * 4000) == 10**4000 - 1
    with pytest.raises(ValueError, match="more than 4,000 digits"):
        parse_json("9" * 4001)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a\0b", "a path holds no NUL character"),
        ("", "a directory; it must be a file"),
        ("none/file", "its folder '.*none' is missing"),
        ("table.CSV", r"its ending must be \.json, not \.CSV"),
    ],
)
def test_paths_that_cannot_become_a_file(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=told):
        write_json(tmp_path / name, {})


def test_rows_of_numbers_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("1, 2:0.5\n\n3\n")
    assert files.read_rows(path) == [[1, 2, 0.5], [3]]
    for text in ("", "one\n"):
        path.write_text(text)
        with pytest.raises(ParameterError, match="it must hold numbers only"):
            files.read_rows(path)
