"""The commands certify and release: exit codes, one line on failure, nothing half printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpopt import Guarantee, majority
from dpopt.privacy import ExactKernel, exp_lower
from tests.cli.running import Capture, run

Json = dict[str, Any]
Change = Callable[[Json], object]


def refused(arguments: list[str], code: int, capsys: Capture) -> str:
    """Check the exit code, an empty stdout and a single line on stderr; return the line."""
    found, out, err = run(arguments, capsys)
    assert (found, out) == (code, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    low = 2**62 // 5
    high = int(exp_lower(0.5) * low)
    weights = [[high, 2**62 - high], [low, 2**62 - low]]
    ExactKernel.make(weights, 62, Guarantee(0.5)).save(tmp_path / "kernel.json")
    return tmp_path / "kernel.json"


@pytest.fixture
def design(tmp_path: Path) -> Path:
    majority.design(5, 0.2, 2).save(tmp_path / "gamma.json")
    return tmp_path / "gamma.json"


@pytest.fixture(params=["kernel", "design"])
def saved(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def edit(path: Path, change: Change) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_certificate_of_a_kernel_as_json(kernel: Path, capsys: Capture) -> None:
    code, out, err = run(["certify", str(kernel), "--json"], capsys)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["private"] is True
    assert (found["constraints"], found["bits"]) == (4, 62)
    assert (found["epsilon"], found["delta"]) == (0.5, 0.0)
    assert 0 <= Fraction(found["slack_exact"]) < Fraction(1, 2**62)
    assert found["slack"] == float(Fraction(found["slack_exact"]))
    assert found["seconds"] >= 0


def test_certificate_of_a_majority_as_json(design: Path, capsys: Capture) -> None:
    code, out, err = run(["certify", str(design), "--json"], capsys)
    assert (code, err) == (0, "")
    found = json.loads(out)
    proof = majority.design(5, 0.2, 2).certificate
    assert proof is not None
    assert found["private"] is True
    assert {name: found[name] for name in proof.to_dict()} == proof.to_dict()
    assert found["constraints"] > 0
    assert found["slack"] >= 0
    assert found["bits"] == 62


def test_certificate_as_text(saved: Path, capsys: Capture) -> None:
    code, out, err = run(["certify", str(saved)], capsys)
    assert (code, err) == (0, "")
    for word in ("-DP", "constraints", "slack", "tightest", "2^62"):
        assert word in out


UNUSABLE: dict[str, tuple[Change, str]] = {
    "tampered": (lambda record: record["body"].update(note=1), "changed"),
    "newer": (lambda record: record.update(schema=4), "newer"),
    "schema": (lambda record: record.update(schema="x"), "schema"),
    "format": (lambda record: record.update(format="x"), "not a saved dpopt mechanism"),
    "kind": (lambda record: record.update(kind="x"), "kind"),
    "no-integers": (
        lambda record: record["body"].pop("units" if "units" in record["body"] else "weights"),
        "malformed",
    ),
    "infinite": (lambda record: record["body"].update(weights=[float("inf")]), "not finite"),
    "infinite-row": (lambda record: record["body"].update(weights=[[float("inf")]]), "not finite"),
    "huge": (lambda record: record["body"].update(shrink=10**400, cost=10**400), "cannot be used"),
}


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("command", [["certify"], ["certify", "--json"], ["release", "--input=0"]])
def test_an_unusable_file_exits_2(
    name: str, command: list[str], saved: Path, capsys: Capture
) -> None:
    change, words = UNUSABLE[name]
    edit(saved, change)
    assert words in refused([*command, str(saved)], 2, capsys)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_truncated_file_exits_2(part: float, saved: Path, capsys: Capture) -> None:
    text = saved.read_text()
    saved.write_text(text[: int(part * len(text))])
    assert "cut off" in refused(["certify", str(saved)], 2, capsys)


def test_binary_garbage_exits_2(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "kernel.json"
    path.write_bytes(bytes(range(255, -1, -1)))
    assert "not text" in refused(["certify", str(path)], 2, capsys)


@pytest.mark.parametrize("command", [["certify"], ["release", "--input=0"]])
def test_a_missing_file_and_a_directory_exit_2(
    command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert "no such file" in refused([*command, str(tmp_path / "missing.json")], 2, capsys)
    assert "directory" in refused([*command, str(tmp_path)], 2, capsys)


def one_unit(record: Json) -> None:
    row = record["body"]["weights"][0]
    record["body"]["weights"][0] = [str(int(row[0]) + 1), str(int(row[1]) - 1)]


@pytest.mark.parametrize("command", [["certify"], ["certify", "--json"], ["release", "--input=0"]])
def test_a_kernel_that_is_not_private_exits_4(
    command: list[str], kernel: Path, capsys: Capture
) -> None:
    edit(kernel, one_unit)
    assert "inputs 0 and 1 break (0.5, 0)-DP" in refused([*command, str(kernel)], 4, capsys)


def test_one_unit_on_any_weight_of_a_majority_exits_4(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "gamma.json"
    design = majority.design(11, 0.1, 3)
    design.save(path)
    assert run(["certify", str(path)], capsys)[0] == 0
    text = path.read_text()
    inner = [place for place, weight in enumerate(design.weights) if weight < 2**62]
    assert inner
    for place in inner:
        path.write_text(text)
        raised = [str(w + (i == place)) for i, w in enumerate(design.weights)]
        edit(path, lambda record, raised=raised: record["body"].update(units=raised))
        line = refused(["certify", str(path)], 4, capsys)
        assert re.search(r"(\d+ voters at .*); neighbour: (\d+ voters at .*)\.$", line)


def test_a_weight_above_one_exits_2(design: Path, capsys: Capture) -> None:
    edit(design, lambda record: record["body"]["units"].__setitem__(0, str(2**62 + 1)))
    assert "weight" in refused(["certify", str(design)], 2, capsys)


@pytest.mark.parametrize("text", ["1,1,0,1,0", "1 1 0 1 0", "1, 1, 0, 1, 0"])
def test_release_of_one_query(text: str, design: Path, capsys: Capture) -> None:
    code, out, err = run(["release", str(design), "--input", text], capsys)
    assert (code, err) == (0, "")
    assert out in ("0\n", "1\n")


def test_release_of_a_file_of_queries(design: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "votes.txt"
    path.write_text("1,1,0,1,0\n\n0 0 0 0 1\n1,1,1,1,1\n")
    code, out, err = run(["release", str(design), "--input", str(path)], capsys)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 3
    assert set(out.splitlines()) <= {"0", "1"}


def test_release_of_a_kernel(kernel: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "inputs.txt"
    path.write_text("0,1\n1\n")
    for text, count in (("0", 1), ("0,1,1,0", 4), (str(path), 3)):
        code, out, err = run(["release", str(kernel), "--input", text], capsys)
        assert (code, err) == (0, "")
        assert len(out.splitlines()) == count
        assert set(out.splitlines()) <= {"0", "1"}


def test_releases_differ(kernel: Path, capsys: Capture) -> None:
    text = ",".join(["0"] * 300)
    outputs = {run(["release", str(kernel), "--input", text], capsys)[1] for _ in range(2)}
    assert len(outputs) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,1,0,1", "votes"),
        ("1,1,0,1,0,1", "votes"),
        ("1,1,0,1,2", "votes"),
        ("1,1,0,1,-1", "votes"),
        ("1,1,0,1," + "9" * 30, "votes"),
        ("1,1,0,1," + "9" * 5000, "integers"),
        ("1,1,0,1,--1", "integers"),
        ("", "empty"),
        (",", "empty"),
        ("a,b,c", "no such file"),
        ("1,1,0,1,x", "no such file"),
        ("1.0,1,1,1,1", "no such file"),
        ("missing.txt", "no such file"),
        (".", "directory"),
    ],
)
def test_bad_votes_exit_2(text: str, words: str, design: Path, capsys: Capture) -> None:
    assert words in refused(["release", str(design), "--input", text], 2, capsys)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"a b c", "integers"),
        (b"1,1,0,1,0.5", "integers"),
        (b"1,1,0,1,0\n1,1\n", "votes"),
        (b"1,1,0,1,0\n,\n", "empty"),
        (b"1,1,0,1,0\n1,1,0,1,3\n", "votes"),
        (bytes(range(256)), "not text"),
    ],
)
def test_bad_files_of_votes_exit_2(
    content: bytes, words: str, design: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "votes.txt"
    path.write_bytes(content)
    assert words in refused(["release", str(design), "--input", str(path)], 2, capsys)


@pytest.mark.parametrize("text", ["2", "-1", "0,1,2", "9" * 30])
def test_an_index_out_of_range_exits_2(text: str, kernel: Path, capsys: Capture) -> None:
    assert "inputs" in refused(["release", str(kernel), "--input", text], 2, capsys)


@pytest.mark.parametrize("arguments", [["certify"], ["release"], ["certify", "a", "b"]])
def test_missing_arguments_exit_2(arguments: list[str], capsys: Capture) -> None:
    refused(arguments, 2, capsys)


def test_a_release_needs_an_input(kernel: Path, capsys: Capture) -> None:
    assert "--input" in refused(["release", str(kernel)], 2, capsys)
