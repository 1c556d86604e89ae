"""The table on disk: what it holds, what is dropped, what is refused."""

import json
import os
from pathlib import Path

import pytest

from dpopt import ParameterError
from dpopt.sweeps import sweep


def double(a: int) -> int:
    return 2 * a


def triple(a: int) -> int:
    return 3 * a


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.jsonl"
    sweep(double, {"a": [1, 2, 3]}, table=path)
    return path


def test_a_head_and_one_line_for_each_point(table: Path) -> None:
    head, *lines = (json.loads(line) for line in table.read_text().splitlines())
    assert head["dpopt"] == "sweep"
    assert head["schema"] == 1
    assert head["function"].endswith(".double")
    assert head["parameters"] == ["a"]
    assert [line["point"] for line in lines] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [line["values"] for line in lines] == [{"value": 2}, {"value": 4}, {"value": 6}]


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_line_that_was_cut_is_dropped_and_computed_again(table: Path, cut: int) -> None:
    data = table.read_bytes()
    table.write_bytes(data[:-cut])
    result = sweep(double, {"a": [1, 2, 3]}, table=table)
    assert result.reused == 2
    assert [record["value"] for record in result.records] == [2, 4, 6]
    assert [len(json.loads(line)) > 0 for line in table.read_text().splitlines()] == [True] * 4
    assert sweep(double, {"a": [1, 2, 3]}, table=table).reused == 3


def test_an_empty_file_becomes_a_table(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    sweep(double, {"a": [1]}, table=path)
    assert sweep(double, {"a": [1]}, table=str(path)).reused == 1


def test_points_outside_the_grid_stay_in_the_table(table: Path) -> None:
    result = sweep(double, {"a": [3, 4]}, table=table)
    assert result.records == ({"a": 3, "value": 6}, {"a": 4, "value": 8})
    assert sweep(double, {"a": [1, 2, 3, 4]}, table=table).reused == 4


def test_the_last_line_of_a_point_counts(table: Path) -> None:
    with table.open("a") as file:
        file.write('{"point": {"a": 2}, "seconds": 1.0, "values": {"value": 99}}\n')
    assert sweep(double, {"a": [2]}, table=table).records == ({"a": 2, "value": 99},)
    with table.open("a") as file:
        failure = {"type": "ValueError", "message": "no"}
        file.write(json.dumps({"point": {"a": 2}, "seconds": 1.0, "failure": failure}) + "\n")
    assert sweep(double, {"a": [2]}, table=table).records == ({"a": 2, "value": 4},)


def test_tables_of_other_sweeps_are_refused_and_left_alone(table: Path) -> None:
    before = table.read_bytes()
    with pytest.raises(ParameterError, match=r"another sweep, whose function is .*double"):
        sweep(triple, {"a": [1]}, table=table)
    with pytest.raises(ParameterError, match=r"another sweep, whose parameters is \['a'\]"):
        sweep(double, {"a": [1], "b": [2]}, table=table)
    with pytest.raises(ParameterError, match="its version"):
        sweep(double, {"a": [1]}, table=table, version="2")
    assert table.read_bytes() == before


def test_an_edited_function_is_refused_unless_its_version_is_given(tmp_path: Path) -> None:
    def versions(constant: int) -> list:
        return [lambda a: a + constant]

    path, kept = tmp_path / "code.jsonl", tmp_path / "version.jsonl"
    sweep(versions(1)[0], {"a": [1]}, table=path)
    with pytest.raises(ParameterError, match="Name another file, or remove this one"):
        sweep(versions(2)[0], {"a": [1]}, table=path)
    sweep(versions(1)[0], {"a": [1]}, table=kept, version="1")
    assert sweep(versions(2)[0], {"a": [1]}, table=kept, version="1").records[0]["value"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "not the table of a sweep"),
        ("hello", "not the table of a sweep"),
        ("[]\n", "not the table of a sweep"),
        ('{"a": 1}\n', "not the table of a sweep"),
        ("\n", "not the table of a sweep"),
        ('{"dpopt": "sweep", "schema": 2}\n', "its schema is 2, not 1"),
        ("\x00\xff\n", "not the table of a sweep"),
        ("[" * 100_000 + "\n", "not the table of a sweep"),
        ('{"dpopt": "sweep", "schema": ' + "[" * 900 + "]" * 900 + "}\n", "schema is"),
    ],
)
def test_other_files_are_refused_and_left_alone(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "other"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ParameterError, match=message):
        sweep(double, {"a": [1]}, table=path)
    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[]", "{}", '{"point": 3, "seconds": 1, "values": {}}', '{"point": {"a": 1}}', ""],
)
def test_a_damaged_line_is_named(table: Path, line: str) -> None:
    lines = table.read_text().splitlines()
    lines[2] = line
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(ParameterError, match="its line 3 is not that of a point"):
        sweep(double, {"a": [1]}, table=table)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write to any file")
def test_a_file_that_cannot_be_written(table: Path) -> None:
    table.chmod(0o400)
    with pytest.raises(ParameterError, match="ermission denied"):
        sweep(double, {"a": [9]}, table=table)


def test_nothing_is_written_without_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep(double, {"a": [1]})
    assert list(tmp_path.iterdir()) == []
