"""The commands cite and doctor, and what Tab offers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import dpopt
from dpopt.cli import group
from dpopt.cli.group import cli, loaded
from tests.cli.running import Capture, run


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    said = completed(_DPOPT_COMPLETE=f"{shell}_source")
    assert f"_DPOPT_COMPLETE={shell}_complete" in said


def test_tab_offers_the_commands() -> None:
    said = completed(_DPOPT_COMPLETE="bash_complete", COMP_WORDS="dpopt ma", COMP_CWORD="1")
    assert said.split() == ["plain,majority"]


def completed(**asked: str) -> str:
    """What a shell is answered that asks by these variables."""
    program = "import sys; from dpopt.cli import main; sys.argv = ['dpopt']; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sample --rule s", {"smooth-floor"}),
        ("majority --backend h", {"highs"}),
        ("certify some", {"some"}),
    ],
)
def test_tab_offers_values(typed: str, offered: set[str]) -> None:
    """Words that begin so; where a file may stand, what was typed, for the shell to complete."""
    *words, incomplete = typed.split()
    found = ShellComplete(cli, {}, "dpopt", "_DPOPT_COMPLETE").get_completions(words, incomplete)
    assert {item.value for item in found} == offered
