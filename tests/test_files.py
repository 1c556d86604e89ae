"""Files appear whole or not at all."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import ParameterError
from dpopt.files import (
    json_text,
    parse_json,
    read_rows,
    replacing,
    write_json,
    write_text,
)


def test_old_file_is_replaced_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")
    with replacing(path) as temporary:
        temporary.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


class StopError(Exception):
    """Raised in the middle of writing."""


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt])
def test_old_file_survives_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(StopError), replacing(tmp_path / "file.txt"):
        raise StopError
    assert list(tmp_path.iterdir()) == []


def test_error_of_the_disk_names_the_path(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"path is .*file\.txt.*no space"), replacing(path):
        raise OSError(28, "No space left on device")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ParameterError, match="path is .* permission denied"):
        write_text(tmp_path / "file.txt", "text")


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


def test_what_cannot_be_synced_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old", encoding="utf-8")

    def refuse(_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ParameterError, match="input/output error"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf8_with_plain_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "ε\nδ\n")
    assert (tmp_path / "file.txt").read_bytes() == "ε\nδ\n".encode()


@pytest.mark.slow
@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.floats(allow_nan=False)
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(st.floats(0, 1), max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), inner, max_size=3),
        ),
    )
)
def test_json_is_indented_as_by_the_library(value: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / "file.json", {"value": value}
        try:
            expected = json.dumps(written, indent=2, allow_nan=False) + "\n"
        except ValueError:
            with pytest.raises(ValueError, match="JSON"):
                write_json(path, written)
            return
        numbers = dict[int, str]()
        write_json(path, written, numbers)
        assert path.read_text(encoding="utf-8") == expected
    try:
        expected = json.dumps(written, sort_keys=True, separators=(",", ":"))
    except TypeError:
        # Names of an object that are texts and integers have no order.
        return
    assert json_text(written) == json_text(written, None, numbers) == expected


@pytest.mark.parametrize(
    "text",
    ["1e999", "[1, -1e999]", '{"a": [[0.5], [[1e400]]]}', "[[NaN]]", "Infinity", "[{}, 9e999]"],
)
def test_numbers_beyond_all_floats_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not finite"):
        parse_json(text)


@pytest.mark.parametrize("bad", [math.nan, math.inf, object()])
def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path, bad: object) -> None:
    path = tmp_path / "file.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises((TypeError, ValueError)):
        write_json(path, {"value": bad})
    assert path.read_text(encoding="utf-8") == "{}"
    assert list(tmp_path.iterdir()) == [path]


def test_numbers_read_back(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("0.5, 1e-3\n2,3\t4\n", encoding="utf-8")
    assert read_rows(path) == [[0.5, 1e-3], [2, 3, 4]]


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
