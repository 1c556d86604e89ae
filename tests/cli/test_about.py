"""The commands cite, doctor and completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import dpopt
from dpopt import ParameterError, _kinds, majority
from dpopt._cite import names
from dpopt.cli import cli, release, words
from dpopt.shape import kind_of
from tests.cli.running import Capture, run


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
