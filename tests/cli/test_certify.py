"""The commands certify and release: exit codes, one line on failure, nothing half printed."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import dpopt
from tests.cli.running import Capture, run
from tests.solved import solved


def refused(arguments: list[str], code: int, capfd: Capture) -> str:
    """Check the exit code, an empty stdout and a single line on stderr; return the line."""
    found, out, err = run(arguments, capfd)
    assert (found, out) == (code, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    solved("kernel-tight").save(tmp_path / "kernel.json")
    return tmp_path / "kernel.json"


@pytest.fixture
def design(tmp_path: Path) -> Path:
    dpopt.design(dpopt.Majority(5, 0.2, 2)).save(tmp_path / "gamma.json")
    return tmp_path / "gamma.json"


def test_certificate_of_a_kernel_as_json(kernel: Path, capfd: Capture) -> None:
    code, out, err = run(["certify", str(kernel), "--json"], capfd)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["private"] is True
    assert found["constraints"] == 4
    assert (found["epsilon"], found["delta"]) == (0.5, 0.0)
    assert 0 <= Fraction(found["slack_exact"]) < Fraction(1, 2**62)
    assert found["slack"] == float(Fraction(found["slack_exact"]))
    assert found["seconds"] >= 0


def test_release_of_a_file_of_queries(design: Path, tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "votes.txt"
    path.write_text("1,1,0,1,0\n\n0 0 0 0 1\n1,1,1,1,1\n")
    code, out, err = run(["release", str(design), "--input", str(path)], capfd)
    assert code == 0
    assert err == ""
    assert len(out.splitlines()) == 3
    assert set(out.splitlines()) <= {"0", "1"}


def test_release_of_a_kernel(kernel: Path, tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "inputs.txt"
    path.write_text("0,1\n1\n")
    kept = ["--ledger", str(tmp_path / "a.ledger")]
    assert run(["ledger", kept[1], "--new"], capfd)[0] == 0
    for text, count, all_of_them in (("0", 1, 1), ("0,1,1,0", 4, 5), (str(path), 3, 8)):
        code, out, err = run(["release", str(kernel), "--input", text, *kept], capfd)
        assert code == 0
        assert err.startswith(f"{all_of_them} release")
        assert len(out.splitlines()) == count
        assert set(out.splitlines()) <= {"0", "1"}


def test_bad_votes_exit_2(design: Path, capfd: Capture) -> None:
    for text, words in [
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
        ("1,1,0,1," + "a" * 5000, "no such file"),
        ("1.0,1,1,1,1", "no such file"),
        ("missing.txt", "no such file"),
        (".", "directory"),
    ]:
        message = refused(["release", str(design), "--input", text], 2, capfd)
        assert words in message
        # They may be votes with a slip in them.
        assert text not in message or text in ("", ",", ".")


TABLE = "a,b,c\n0.7,0.2,0.1\n0.3,0.4,0.3\n0.1,0.2,0.7\n"
OWN = '[["near", [[0, 0, 0], [0, 0, 1]], [1, 1], [0.6], [null]]]'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "own.json").write_text(OWN)
    return tmp_path / "table.csv"


def test_the_least_epsilon_of_a_table(table: Path, capfd: Capture) -> None:
    code, out, err = run(["certify", str(table)], capfd)
    assert (code, err) == (0, "")
    assert re.search(r"^least epsilon +1\.94591014905531", out)
    assert "inputs 0 and 2, outputs a" in out
    _, out, _ = run(["certify", str(table), "--graph", "path", "--json"], capfd)
    least = json.loads(out)
    assert least["lower"] <= math.log(3) <= least["upper"]
    _, out, _ = run(["certify", str(table), "--epsilon", "0", "--delta", "least"], capfd)
    assert re.search(r"^least delta +0\.6", out)


def test_a_table_is_made_private_saved_and_released(
    table: Path, tmp_path: Path, capfd: Capture
) -> None:
    saved = tmp_path / "table.json"
    asked = ["--epsilon", "1", "--graph", "path", "--tolerance", "0.2", "--save", str(saved)]
    rows = ["--constraints", str(tmp_path / "own.json")]
    code, out, err = run(["certify", str(table), *asked, *rows, "--json"], capfd)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["private"] is True
    assert 0.008 < found["moved"] < 0.009
    assert found["residuals"] == {"near": 0.0}
    weights = json.loads(saved.read_text())["body"]["table"]["weights"]
    assert 10 * (int(weights[0][0]) + int(weights[0][1])) >= 6 * sum(map(int, weights[0]))
    code, out, _ = run(["certify", str(saved)], capfd)
    assert (code, out.splitlines()[0]) == (
        0,
        "(1, 0)-DP: the kernel is private along 4 directed edges of 3 inputs",
    )
    code, out, _ = run(["release", str(saved), "--input", "0,1,2"], capfd)
    assert (code, len(out.splitlines())) == (0, 3)
    code, out, _ = run(["certify", str(table), *asked[:-2], *rows], capfd)
    assert code == 0
    assert "moved by           0.00875" in out
    assert "row near missed by 0" in out


def test_a_table_too_far_from_private_exits_4(table: Path, tmp_path: Path, capfd: Capture) -> None:
    saved = tmp_path / "not.json"
    said = refused(["certify", str(table), "--epsilon", "1", "--save", str(saved)], 4, capfd)
    assert "moves a row by 0.1224" in said
    assert "it needs epsilon 1.9459" in said
    assert not saved.exists()


def test_own_rows_in_conflict_exit_3(table: Path, tmp_path: Path, capfd: Capture) -> None:
    far = '["far", [[0, 0, 0], [0, 0, 1]], [1, 1], [null], [0.1]]'
    (tmp_path / "own.json").write_text(f"{OWN[:-1]}, {far}]")
    asked = ["--epsilon", "1", "--constraints", str(tmp_path / "own.json"), "--tolerance", "1"]
    assert "near" in refused(["certify", str(table), *asked], 3, capfd)


@pytest.mark.parametrize(
    "option", ["--epsilon=1", "--delta=0", "--graph=path", "--tolerance=0.1", "--save=x.json"]
)
def test_options_of_a_table_beside_a_mechanism_exit_2(
    option: str, design: Path, capfd: Capture
) -> None:
    name = option[2:].partition("=")[0]
    said = refused(["certify", str(design), option], 2, capfd)
    assert f"{name} is given, which belongs to a table" in said
