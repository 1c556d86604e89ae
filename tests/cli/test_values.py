"""Known values through the commands, what they refuse and cite, and what becomes of files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import dpopt
from dpopt._figure import STYLES
from dpopt._kinds import arguments
from dpopt.cli import group
from dpopt.cli.group import loaded
from dpopt.plurality.setting import Rule
from dpopt.privacy import graph
from dpopt.proofs.saved import seal
from tests.cli.running import Capture, run

MAJORITY = "majority --voters 11 --epsilon 0.1 --allowance 3"
PRIOR = "public-prior --public 0.05,0.1,0.15,0.2,0.5 --epsilon 1"

VALUES = {
    f"{MAJORITY} --voter-delta 1e-5 --delta 3e-5 --objective surrogate": 0.424403008456,
    f"{MAJORITY} --coefficients 0,0,0,0,0,1": 1.0,
    f"{PRIOR}": 0.874839002002,
    f"{PRIOR} --objective leximin": 0.874839002002,
}


@pytest.mark.parametrize("backend", [None, "highs", "cvxpy"])
def test_a_known_value_by_the_solver_that_is_asked_for(backend: str | None, capfd: Capture) -> None:
    for line, value in VALUES.items():
        asked = [] if backend is None else ["--backend", backend]
        code, out, err = run([*line.split(), *asked, "--json"], capfd)
        found = json.loads(out)
        assert (code, err, str(found["backend"]).startswith(backend or "")) == (0, "", True)
        assert found["value"] == pytest.approx(value, rel=1e-7 if backend else 1e-9)


def test_a_list_is_a_file_of_numbers_too(tmp_path: Path, capfd: Capture) -> None:
    one, table = tmp_path / "one.txt", tmp_path / "table.txt"
    one.write_text("0, 0, 0\n0 0 1")
    code, out, _ = run([*MAJORITY.split(), "--coefficients", str(one), "--json"], capfd)
    assert (code, json.loads(out)["value"]) == (0, pytest.approx(1.0, abs=1e-9))
    one.write_text("0.2 0.3 0.5\n")
    table.write_text("1 0 0\n0.5 0.5 0\n0.1,0.1,0.8\n")
    words = ["population", "--public", str(one), "--epsilon", "2", "--users"]
    listed = run([*words, "1:0:0,0.5:0.5:0,0.1:0.1:0.8", "--json"], capfd)[1]
    path, mine = tmp_path / "kernel.json", tmp_path / "mine.txt"
    code, out, _ = run([*words, str(table), "--json", "--save", str(path)], capfd)
    assert (code, json.loads(out)["value"]) == (0, json.loads(listed)["value"])
    assert run(["certify", str(path)], capfd)[0] == 0
    mine.write_text("0.25 1/4 0.5")
    code, out, _ = run(["release", str(path), "--distribution", str(mine)], capfd)
    assert (code, out.strip() in ("0", "1", "2")) == (0, True)


def test_solver_failure_exits_3(capfd: Capture) -> None:
    code, out, err = run([*MAJORITY.split(), "--time-limit", "0"], capfd)
    assert (code, out) == (3, "")
    assert "time_limit" in err
    assert err.count("\n") == 1


BROKEN = [("conference", 20, 3, 0.1, 1.00668167682), ("journal", 3, 2, 0.5, 1.10772159688)]


@pytest.mark.parametrize(("rule", "n", "k", "epsilon", "factor"), BROKEN)
def test_a_broken_rule_is_shown_exits_4_and_writes_nothing(
    rule: str, n: int, k: int, epsilon: float, factor: float, tmp_path: Path, capfd: Capture
) -> None:
    sized = f"reveal-or-obscure --records {n} --categories {k} --epsilon {epsilon}".split()
    path, words = tmp_path / "rule.json", [*sized, "--rule", rule]
    code, out, err = run([*words, "--json"], capfd)
    found = json.loads(out)
    assert (code, found["private"], found["certificate"]) == (4, False, None)
    assert found["excess_factor"] == pytest.approx(factor, abs=1e-11)
    assert f"rule {rule!r} is not {epsilon:g}-DP" in err
    assert json.loads(run([*sized, "--json"], capfd)[1])["private"] is True

    code, out, err = run([*words, "--save", str(path)], capfd)
    assert (code, "not private" in out, list(tmp_path.iterdir())) == (4, True, [])
    # What was asked for is no guarantee.
    assert "target             (" in out
    assert "guarantee" not in out
    assert "Nothing was saved; --even-if-not-private" in err
    code, _, err = run([*words, "--save", str(path), "--even-if-not-private"], capfd)
    assert (code, "Nothing was saved" in err, path.exists()) == (4, False, True)
    for verb in (["certify", str(path)], ["release", str(path), "--input", "2,1"]):
        code, out, err = run(verb, capfd)
        assert (code, out, err.count("\n")) == (4, "", 1)
        assert "releases nothing" in err


def test_the_counts_of_a_release_must_fit(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "rule.json"
    dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1)).save(path)
    code, out, _ = run(["release", str(path), "--input", "10,10,0"], capfd)
    assert (code, out.strip() in ("0", "1", "2")) == (0, True)
    assert run(["release", str(path), "--input", "10,10,1"], capfd)[0] == 2
    # A rule that is not private is no mechanism, however its file says so.
    seal(
        "reveal-or-obscure",
        dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference")).to_dict(),
        path,
    )
    code, out, err = run(["release", str(path), "--input", "10,10,0"], capfd)
    assert (code, out) == (4, "")
    assert "1.00668 e^epsilon" in err


def test_the_words_that_a_command_offers_are_the_package_s() -> None:
    for command, option, words in (
        ("certify", "graph", graph.GRAPHS),
        ("majority", "style", STYLES),
        ("mode", "rule", get_args(Rule)),
    ):
        (found,) = (each for each in loaded().commands[command].params if each.name == option)
        assert found.type.words == words  # pyright: ignore[reportAttributeAccessIssue]


def test_words_of_the_command_line(capsys: Capture) -> None:
    for line, words in [
        ("majorty --epsilon 1", "No such command 'majorty'. Did you mean 'majority'?"),
        ("xyzzyx", "No such command 'xyzzyx'."),
        ("majority --epsilon 1 --allowance 1", "Missing option '--voters'"),
        ("majority --voters 11 --epsilon 1", "allowance is missing; give it, or releases, total"),
    ]:
        code, out, err = run(line.split(), capsys)
        assert (code, out) == (2, "")
        assert words in err


def test_all_rows_are_printed_if_asked(capsys: Capture) -> None:
    line = "kernel --loss absolute --inputs 16 --graph path --epsilon 1 --objective worst-case"
    _, few, _ = run(line.split(), capsys)
    _, whole, _ = run([*line.split(), "--all-rows"], capsys)
    assert few.splitlines()[-1] == "... 216 more; --all-rows prints them"
    table = [words.split() for words in whole.splitlines()[-256:]]
    assert [row[:2] for row in table] == [[str(x), str(y)] for x in range(16) for y in range(16)]
    # Each row of the kernel sums to 1, to the digits that are printed.
    masses = np.array([float(row[2]) for row in table]).reshape(16, 16)
    assert masses.sum(axis=1) == pytest.approx(np.ones(16), abs=1e-10)


def test_a_loss_is_a_table_like_any_other(tmp_path: Path, capsys: Capture) -> None:
    """|x - y| of three inputs at epsilon 1 on a complete graph, in each form that certify takes."""
    loss = abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    lines = ["0,1,2", "1,0,1", "2,1,0"]
    cells = [f"{x},{y},{abs(x - y)}" for y in range(3) for x in (2, 0, 1)]
    texts = {
        "plain.csv": lines,
        "named.csv": ["a,b,c", *lines],
        "indexed.csv": [",a,b,c", *(f"{x},{line}" for x, line in enumerate(lines))],
        "long.csv": ["input,output,loss", *cells],
        "rows.txt": [line.replace(",", " ") for line in lines],
    }
    for name, text in texts.items():
        (tmp_path / name).write_text("\n".join(text))
    wanted = dpopt.design(dpopt.Kernel(loss, 1.0)).value
    for name in texts:
        words = ["kernel", "--loss", str(tmp_path / name), "--epsilon", "1", "--json"]
        code, out, _ = run(words, capsys)
        assert code == 0
        told = json.loads(out)
        assert told["setting"]["loss"] == loss.tolist(), name
        assert told["value"] == pytest.approx(wanted, abs=1e-9)
    (tmp_path / "texts.csv").write_text("input,output,loss\nlow,a,1\nhigh,a,0\n")
    words = ["kernel", "--loss", str(tmp_path / "texts.csv"), "--epsilon", "1"]
    code, _, err = run(words, capsys)
    assert code == 2
    assert "whose order is not known" in err


TWO = "uniform:0,1;common-uniform:0.8,1"


def test_priors_are_read_with_semicolons_between_them(capfd: Capture) -> None:
    line = [*MAJORITY.split(), "--objective", "least-regret", "--priors", TWO, "--json"]
    code, out, _ = run(line, capfd)
    found = json.loads(out)
    assert code == 0
    assert found["setting"]["priors"] == TWO.split(";")
    design = dpopt.design(dpopt.Majority(11, 0.1, 3, objective="least-regret", priors=TWO))
    assert [known.prior for known in design.regrets] == TWO.split(";")
    assert found["value"] == design.value == -max(known.regret for known in design.regrets)


@pytest.mark.parametrize("priors", [None, TWO, ("point:0.5", "point:0.6"), "beta:2,2;point:0.1"])
def test_what_is_typed_is_written_back(priors: str | None) -> None:
    for objective in ("least-regret", "mean"):
        setting = dpopt.Majority(5, 0.5, 1.5, objective=objective, priors=priors)  # type: ignore[arg-type]
        plain = setting.to_dict()
        assert dpopt.Majority.from_dict(plain) == setting
        words = arguments({"priors": plain["priors"]})
        given = [] if plain["priors"] is None else ["--priors", ";".join(plain["priors"])]
        assert words == given


def test_cite_prints_the_references(capfd: Capture) -> None:
    code, out, _ = run(["cite"], capfd)
    keys = re.findall(r"^@\w+\{([^,]+),$", out, flags=re.MULTILINE)
    assert code == 0
    assert {"jiang2024optimized", "dpopt", "huangfu2018parallelizing", "mckenna2020permute"} <= {
        *keys
    }
    assert len(keys) == len(set(keys)) == out.count("\n}")
    assert out.count("{") == out.count("}")
    assert f"version = {{{dpopt.__version__}}}" in out


def test_doctor_solves_the_known_program_with_each_backend(capfd: Capture) -> None:
    code, out, _ = run(["doctor", "--json"], capfd)
    found = json.loads(out)
    names = [entry["backend"] for entry in found["backends"]]
    assert code == 0
    assert {"highs", "cvxpy:HIGHS", "cvxpy:CLARABEL"} <= set(names)
    assert all(entry["objective"] == pytest.approx(11.0, abs=1e-4) for entry in found["backends"])
    assert found["versions"]["dpopt"] == dpopt.__version__
    code, out, _ = run(["doctor"], capfd)
    assert code == 0
    assert out.count("optimum 11 found") == len(names)


def test_doctor_reports_a_backend_that_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr(group, "_backends", lambda: ["highs", "cvxpy:MISSING"])
    code, out, err = run(["doctor"], capfd)
    assert code == 3
    assert "FAILED: solver is 'MISSING'" in out
    assert err == "the known optimum was not found by cvxpy:MISSING.\n"


def test_what_is_printed_to_any_console_is_ascii(capfd: Capture) -> None:
    """A console of Windows may have another encoding than UTF-8."""
    for name in loaded().commands:
        code, out, _ = run([name, *["--help"] * (name != "cite")], capfd)
        assert code == 0
        assert out.isascii()


def test_python_runs_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dpopt", "--version"], capture_output=True, text=True, check=True
    )
    assert dpopt.__version__ in done.stdout
