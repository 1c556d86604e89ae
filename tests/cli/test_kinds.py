"""The command of every kind: what its help says is what its class is, and its example runs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.shell_completion import ShellComplete

import dpopt
from dpopt import ParameterError, _kinds
from dpopt._kinds import arguments, choices, parted
from dpopt.cli.group import cli
from dpopt.cli.release import inputs_of
from dpopt.shape import Design, kind_of
from tests.robustness.commands import run
from tests.shape.checks import input_of
from tests.solved import solved

KINDS = list(_kinds.KINDS)
over_kinds = pytest.mark.parametrize("name", KINDS)


def kind(name: str) -> Any:
    found = kind_of(name)
    assert found is not None
    return found


def command_line(name: str) -> list[str]:
    """Return the command that asks for a kind's example."""
    return [name, *arguments(kind(name).example().to_dict())]


def answer(words: list[str]) -> dict[str, Any]:
    ended = run(*words, "--json")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def same(left: object, right: object) -> bool:
    """Whether two plain values are the same up to rounding, as after JSON."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, int | float):
        return left == pytest.approx(right, rel=1e-9, abs=1e-12)
    return left == right


def test_a_rule_is_saved_and_said_to_have_no_proof_of_optimality(tmp_path: Path) -> None:
    words = shlex.split(
        "plurality --records 6 --classes 3 --epsilon 1 --rule ladder --proof --save"
    )
    ended = run(*words, str(tmp_path / "x.json"))
    assert ended.code == 0
    assert ended.err.startswith("Note: there is no proof of optimality")
    assert ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@over_kinds
def test_its_help_names_every_option_and_an_example_that_runs(name: str) -> None:
    about, ended = _kinds.described(kind(name)), run(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    for field in about.fields:
        assert f"--{field.name.replace('_', '-')} " in ended.out
    line = about.example
    assert line in " ".join(ended.out.split())
    found = answer(shlex.split(line)[1:])
    assert found["kind"] == name


@over_kinds
def test_the_command_of_the_example_answers_as_the_library_does(name: str) -> None:
    design = solved(name)
    found, expected = answer(command_line(name)), design.to_dict()
    assert found.pop("seconds") >= 0.0
    assert same(found["setting"], json.loads(json.dumps(design.setting.to_dict())))
    for key in ("kind", "value", "bound"):
        assert same(found[key], json.loads(json.dumps(expected[key])))
    assert found.keys() == expected.keys()
    words = run(*command_line(name))
    assert words.code == 0
    assert "value " in words.out
    assert next(iter(design.setting.columns(design.table))) in words.out


def typed_input(design: Design, data: object, folder: Path) -> list[str]:
    """Return the options that give data: as a line of integers, as their counts, or as a pmf."""
    if data is None:
        return []
    setting, listed = design.setting, np.atleast_1d(np.asarray(data)).tolist()
    if not all(isinstance(value, int) for value in listed):
        (folder / "pmf.txt").write_text(" ".join(map(str, listed)))
        return ["--distribution", str(folder / "pmf.txt")]
    pmf = list(setting.output_weights(design.table, data))
    counts = [
        listed.count(category) for category in range(getattr(setting, "categories", None) or 0)
    ]
    for numbers in (listed, counts):
        try:
            (query,) = inputs_of(setting, numbers)
            found = setting.output_weights(design.table, query)
        except (ParameterError, ValueError):
            continue
        if list(found) == pmf:
            return ["--input", ",".join(map(str, numbers))]
    raise AssertionError(f"no line of integers stands for {data}")


@pytest.mark.every_case
@pytest.mark.slow_after(3)
@over_kinds
def test_what_a_command_saved_is_certified_and_released(name: str, tmp_path: Path) -> None:
    path, figure = tmp_path / "found.json", tmp_path / "found.png"
    ended = run(*command_line(name), "--save", str(path), "--plot", str(figure))
    assert (ended.code, ended.err) == (0, "")
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert same(dpopt.load(path).value, solved(name).value)
    data = input_of(kind(name))
    assert json.loads(run("certify", str(path), "--json").out)["private"]
    options = typed_input(dpopt.load(path), data, tmp_path)
    ledger = dpopt.Ledger(tmp_path / "a.ledger")
    ended = run("release", str(path), *options, "--json", "--ledger", str(ledger.path))
    assert ended.code == 0
    assert ended.err.startswith("1 release of data set 'unnamed' so far spends (")
    assert [entry.count for entry in ledger.entries()] == [1]
    assert len(json.loads(ended.out)["released"]) == 1


def typed(words: str) -> set[str]:
    *before, incomplete = words.split(" ")
    complete = ShellComplete(cli, {}, "dpopt", "_DPOPT_COMPLETE")
    return {item.value for item in complete.get_completions(before, incomplete)}


@over_kinds
def test_tab_offers_the_words_of_a_choice(name: str) -> None:
    assert name in typed(name[:2])
    for field in _kinds.described(kind(name)).fields:
        option = f"--{field.name.replace('_', '-')}"
        assert option in typed(f"{name} {option[:3]}")
        annotation = field.annotation.removesuffix(" | None")
        if annotation.startswith("Literal["):
            assert typed(f"{name} {option} ") == set(choices(annotation))
        for word in parted(field.annotation)[1]:
            assert word in typed(f"{name} {option} {word[:2]}")


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
    words, variables = [sys.executable, "-c", program], {**os.environ, **asked}
    return subprocess.run(words, env=variables, stdout=-1, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sample --rule s", "smooth-floor"),
        ("majority --backend h", "highs"),
        ("certify some", "some"),
    ],
)
def test_tab_offers_values(words: str, offered: str) -> None:
    """Words that begin so; where a file may stand, what was typed, for the shell to complete."""
    assert typed(words) == {offered}


def test_the_list_and_its_completion_load_no_library() -> None:
    program = (
        "import sys\nfrom dpopt.cli import main\nfrom dpopt.cli.group import cli\n"
        "from click.shell_completion import ShellComplete\n"
        "complete = ShellComplete(cli, {}, 'dpopt', '_DPOPT_COMPLETE')\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert len(complete.get_completions([], '')) == 20\n"
        "assert complete.get_completions([], '--')\n"
        "sys.exit(bool({'numpy', 'scipy', 'highspy', 'rich', 'cvxpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
