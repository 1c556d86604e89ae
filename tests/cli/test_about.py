"""The commands cite, doctor and completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import dpopt
from dpopt import ParameterError, _kinds, majority
from dpopt._cite import names
from dpopt.cli import about, cli, release, words
from dpopt.shape import kind_of
from tests.cli.running import Capture, run


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("majority", ["jiang2024optimized", "dpopt", "huangfu2018parallelizing"]),
        ("roo", ["tasnim2025differentially", "tasnim2025reveal"]),
        ("public-prior", ["zamanlooy2024locally"]),
        ("kernel", ["dpopt", "huangfu2018parallelizing"]),
        ("smoothed", ["liu2023smoothed"]),
    ],
)
def test_cite_by_name(name: str, keys: list[str], capfd: Capture) -> None:
    code, out, _ = run(["cite", name], capfd)
    found = re.findall(r"^@\w+\{([^,]+),$", out, flags=re.MULTILINE)
    assert code == 0
    assert set(keys) <= set(found)
    assert len(found) == len(set(found))
    assert out.count("{") == out.count("}")


@pytest.mark.parametrize("name", list(_kinds.KINDS))
def test_cite_every_kind_and_its_settings(name: str) -> None:
    kind = kind_of(name)
    assert kind is not None
    entries = dpopt.cite(name)
    assert entries.count("\n\n") == len(kind.papers) + 1
    assert dpopt.cite(kind.example()) == entries
    assert name in names()


class Own:
    """Something with papers of its own, as a setting from outside has them."""

    def __init__(self, *papers: str) -> None:
        self.papers = papers


def test_cite_papers_of_ones_own() -> None:
    entry = "@article{own2026, title = {Mine}}"
    assert dpopt.cite(Own(entry, "darrm")).startswith(f"{entry}\n\n@article{{jiang2024optimized")
    with pytest.raises(ParameterError, match="papers holds 'mine'"):
        dpopt.cite(Own("mine"))


def test_cite_a_result_and_its_file(tmp_path: Path, capfd: Capture) -> None:
    design = majority.design(mechanisms=3, epsilon=0.1, allowance=1)
    path = tmp_path / "gamma.json"
    design.save(path)
    assert dpopt.cite(design) == dpopt.cite("majority") == dpopt.cite(path)
    assert run(["cite", str(path)], capfd)[1].strip() == dpopt.cite("majority")


def test_cite_names_cvxpy_where_it_solved() -> None:
    design = majority.design(mechanisms=3, epsilon=0.1, allowance=1, backend="cvxpy:CLARABEL")
    entries = dpopt.cite(design)
    assert "diamond2016cvxpy" in entries
    assert "huangfu" not in entries


def test_cite_refuses_what_it_does_not_know(capfd: Capture) -> None:
    code, out, err = run(["cite", "laplace"], capfd)
    assert (code, out) == (2, "")
    assert "subject is 'laplace'" in err
    with pytest.raises(ParameterError, match="of type int"):
        dpopt.cite(3)


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
    monkeypatch.setattr(about, "_backends", lambda: ["highs", "cvxpy:MISSING"])
    code, out, err = run(["doctor"], capfd)
    assert code == 3
    assert "FAILED: solver is 'MISSING'" in out
    assert err == "the known optimum was not found by cvxpy:MISSING.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, capfd: Capture) -> None:
    code, out, _ = run(["completion", shell], capfd)
    assert code == 0
    assert "_DPOPT_COMPLETE" in out
    assert "dpopt" in out


def test_tab_offers_the_commands() -> None:
    asked = {"_DPOPT_COMPLETE": "bash_complete", "COMP_WORDS": "dpopt ma", "COMP_CWORD": "1"}
    program = "import sys; from dpopt.cli import main; sys.argv = ['dpopt']; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,majority"]


def test_completion_refuses_another_shell(capfd: Capture) -> None:
    code, out, err = run(["completion", "tcsh"], capfd)
    assert (code, out) == (2, "")
    assert "tcsh" in err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sample --rule s", {"smooth-floor"}),
        ("majority --backend h", {"highs"}),
        ("cite ro", {"roo", "ro"}),
        ("completion z", {"zsh"}),
        ("certify some", {"some"}),
    ],
)
def test_tab_offers_values(typed: str, offered: set[str]) -> None:
    """Words that begin so; where a file may stand, what was typed, for the shell to complete."""
    *words, incomplete = typed.split()
    found = ShellComplete(cli, {}, "dpopt", "_DPOPT_COMPLETE").get_completions(words, incomplete)
    assert {item.value for item in found} == offered


def test_what_tab_offers_is_what_is_accepted() -> None:
    for backend in words.SOLVERS[:3]:
        assert majority.design(3, 0.1, 1, backend=backend).private
    for rule in set(release.SAMPLE_RULES) - {"smooth-floor"}:
        assert dpopt.roo.min_count(5, 2, 1.0, rule).private
