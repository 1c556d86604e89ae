"""The examples of the README and of the page of tools run and print the decimals beside them.

README and PAPERS state few other results; links lead to files. The README's two first commands are
what CI calls; its patterns name experiments that there are.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dpopt.cli import main
from experiments.__main__ import main as run_experiments
from experiments.catalogue import all_experiments, matching
from experiments.parameters import parameters_of

ROOT = Path(__file__).resolve().parents[1]
README, TOOLS, PAPERS = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/tools.md", "PAPERS.md")
)
PYTHON = re.findall(r"```python\n(.*?)```", README + TOOLS, flags=re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", README + TOOLS, flags=re.DOTALL)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("example", PYTHON, ids=[f"example{i}" for i in range(len(PYTHON))])
def test_python_examples_run(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    exec(compile(example, "README.md", "exec"), scope)
    assert "design" not in scope or scope["design"].certificate.slack >= 0
    out = capfd.readouterr().out
    assert out
    printed = [float(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", out)]
    comments = " ".join(line.partition("#")[2] for line in example.splitlines())
    for number in re.findall(r"\d+\.\d+", comments):
        unit = 10.0 ** -len(number.partition(".")[2])
        assert any(abs(value - float(number)) <= unit for value in printed), number


def test_a_block_that_writes_files_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader does who tries it again in the same folder."""
    monkeypatch.chdir(tmp_path)
    (kept,) = (example for example in PYTHON if "dpopt.Ledger(" in example)
    (saved,) = (example for example in PYTHON if "verifier=True" in example)
    for block in (kept, saved) * 2:
        exec(compile(block, "README.md", "exec"), {})


def test_few_results_stand_in_prose() -> None:
    """Of two decimals or more, outside of code; the tests that PAPERS names assert them."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", README + PAPERS, flags=re.DOTALL)
    results = re.findall(r"\d*\.\d{2,}", prose)
    assert len(results) < 20, results


def test_numbers_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    (vote,) = (example for example in PYTHON if "# 0.0256" in example)
    exec(compile(vote, "README.md", "exec"), scope)
    assert f"{scope['design'].expected_error:.4f}" == "0.0256"
    assert scope["label"] in (0, 1)


def test_what_the_referee_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's files, checked by their own verify.py, say what is printed there."""
    monkeypatch.chdir(tmp_path)
    (saved,) = (example for example in PYTHON if "verifier=True" in example)
    exec(compile(saved, "README.md", "exec"), {})
    (session,) = re.findall(r"```console\n\$ python (.*?)```", README, flags=re.DOTALL)
    command, *printed = session.splitlines()
    ran = [sys.executable, "-I", *command.split()]
    told = subprocess.run(ran, capture_output=True, text=True, check=True).stdout.splitlines()
    number = r"\d+(?:\.\d+)?(?:e-\d+)?"
    assert [re.sub(number, "N", line) for line in told] == [
        re.sub(number, "N", line) for line in printed
    ]
    # The gap is what rounding leaves, and another solver's basis leaves another.
    (*found, gap), (*shown, _) = (
        [float(n) for n in re.findall(number, " ".join(lines))] for lines in (told, printed)
    )
    assert found == pytest.approx(shown, abs=1e-12)
    assert gap < 1e-12


@pytest.mark.slow
def test_command_line_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in SHELL for line in block.splitlines() if line.startswith("dpopt ")]
    assert lines
    for line in lines:
        with pytest.raises(SystemExit) as caught:
            main(shlex.split(line)[1:])
        assert caught.value.code == 0
        assert capfd.readouterr().out
    assert (tmp_path / "gamma.png").exists()


@pytest.mark.slow
def test_commands_of_the_experiments_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start = ".venv/bin/python -m experiments "
    lines = "\n".join(SHELL).replace("\\\n", " ").splitlines()
    given = [shlex.split(line.removeprefix(start)) for line in lines if line.startswith(start)]
    assert [arguments[0] for arguments in given] == ["list", "show", "run", "run"]
    for arguments in given:
        if "--full" in arguments:
            # Minutes; only whether there are such experiments.
            assert len(matching([arguments[1]], all_experiments())) > 1
            continue
        with pytest.raises(SystemExit) as caught:
            run_experiments(arguments)
        assert caught.value.code == 0
        assert capfd.readouterr().out
    assert {"majority-figure-2.pdf", "index.html"} <= {
        path.name for path in (tmp_path / "mine").iterdir()
    }


def test_what_is_named_is_there() -> None:
    for name, field in re.findall(r"`run ([\w-]+) --set (\w+)=", README):
        assert field in parameters_of(all_experiments()[name])
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert "docs/limits.md" in links
    assert [link for link in links if ":" not in link and not (ROOT / link).exists()] == []


def test_the_first_screen_has_the_two_commands() -> None:
    first = "\n".join(README.splitlines()[:22])
    commands = [line for line in first.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("-m experiments")
    assert commands[1].endswith("-m pytest")
