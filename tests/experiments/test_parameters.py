"""Parameters as texts and from Python: read by their annotations, refused in a sentence."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Le

import experiments
from dpopt import ParameterError
from experiments import __main__ as runner
from experiments.catalogue import all_experiments
from experiments.kept import Entry
from experiments.parameters import (
    Several,
    changed,
    configuration,
    configured,
    documented,
    parameters_of,
    parsed,
    text_of,
)
from experiments.public_prior import example_one
from experiments.registry import Experiment
from tests.experiments.comparing import exit_code, refusal

EXAMPLE = example_one.run
REPEATABLE = [name for name, each in all_experiments().items() if each.repeatable]
run = partial(exit_code, runner.main)


@configuration
class Config:
    """One field of each kind.

    More about it.

    Attributes:
        whole: K, odd.
        number: epsilon, which
            goes on.
        truth: a flag: yes or no.
        word: free.
        choice: a word.
        wholes: some.
        numbers: some.
        words: some.
        perhaps: a number, or not.

    Nothing more.
    """

    whole: int = 3
    number: float = 0.1
    truth: bool = False
    word: str = "beta:2,2"
    choice: Literal["exact", "roo"] = "roo"
    wholes: Several[Annotated[int, Ge(1), Le(50)]] = (1, 2)
    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ("uniform:0,1", "b")
    perhaps: float | None = None

    def __post_init__(self) -> None:
        if self.whole % 2 == 0:
            raise ParameterError(f"whole is {self.whole}; it must be odd.")


WHOLES = "whole numbers at least 1 and at most 50"
ALL: Experiment = replace(EXAMPLE, config=Config(whole=5), quick=Config())


def test_what_the_docstring_says_of_each_field() -> None:
    about = documented(Config)
    assert list(about) == [field.name for field in fields(Config)]
    assert about["number"] == "epsilon, which goes on."
    assert about["truth"] == "a flag: yes or no."
    assert about["perhaps"] == "a number, or not."
    assert documented(int) == {}


def test_texts_are_read_by_the_annotation() -> None:
    for field, text, value in [
        ("whole", "7", 7),
        ("whole", " 15 ", 15),
        ("number", "2", 2.0),
        ("number", "1e-5", 1e-5),
        ("truth", "true", True),
        ("truth", "False", False),
        ("word", "point:0.5, and ; more", "point:0.5, and ; more"),
        ("word", "none", "none"),
        ("choice", "exact", "exact"),
        ("wholes", "1,2, 4", (1, 2, 4)),
        ("wholes", "3", (3,)),
        ("numbers", "", ()),
        ("numbers", "0.1,1", (0.1, 1.0)),
        ("words", "beta:2,2; uniform:0,0.1", ("beta:2,2", "uniform:0,0.1")),
        ("words", "beta:2,2", ("beta:2,2",)),
        ("perhaps", "none", None),
        ("perhaps", "0.25", 0.25),
    ]:
        found = parsed(ALL, {field: text})
        assert found == {field: value}
        assert type(found[field]) is type(value)
        assert parsed(ALL, {field: text_of(value)}) == found
        assert asdict(configured(ALL, True, found)) == asdict(Config(whole=5)) | {field: value}


def test_other_texts_are_refused() -> None:
    for field, text, message in [
        ("whole", "x", "whole is 'x'; it must be a whole number."),
        ("whole", "1.5", "whole is '1.5'; it must be a whole number."),
        ("whole", "9" * 5000, "whole is '9999"),
        ("number", "nan", "number is 'nan'; it must be a number."),
        ("number", "", "number is ''; it must be a number."),
        ("truth", "maybe", "truth is 'maybe'; it must be true or false."),
        ("choice", "Exact", "choice is 'Exact'; it must be one of exact, roo."),
        ("wholes", "1;2", f"wholes is '1;2'; it must be {WHOLES}, separated by commas."),
        ("wholes", "1,,2", f"wholes is '1,,2'; it must be {WHOLES}, separated by commas."),
        ("wholes", "0", f"wholes is '0'; it must be {WHOLES}, separated by commas."),
        ("wholes", "", "wholes is ''; it must hold at least one value."),
        ("wholes", "3,3", "wholes is '3,3'; it must hold each value once."),
        ("perhaps", "x", "perhaps is 'x'; it must be a number, or none."),
    ]:
        found = refusal(parsed, ALL, {field: text})
        assert found.startswith(message)
        assert len(found) < 160


def test_values_from_python() -> None:
    for field, value, same in [
        ("whole", np.int64(7), 7),
        ("number", 2, 2.0),
        ("number", np.array(0.5), 0.5),
        ("truth", True, True),
        ("word", Path("a") / "b", "a/b"),
        ("wholes", [1, np.int32(2)], (1, 2)),
        ("wholes", range(1, 4), (1, 2, 3)),
        ("numbers", np.array([0.5, 1]), (0.5, 1.0)),
        ("perhaps", None, None),
    ]:
        found = getattr(configured(ALL, False, {field: value}), field)
        assert found == same
        assert type(found) is type(same)


def test_other_values_are_refused() -> None:
    for field, value, message in [
        ("whole", True, "whole is True; it must be a whole number."),
        ("whole", 2.0, "whole is 2.0; it must be a whole number."),
        ("whole", "7", "whole is '7'; it must be a whole number."),
        ("whole", 4, "whole is 4; it must be odd."),
        ("number", float("inf"), "number is inf; it must be a number."),
        ("number", 10**400, "number is 1"),
        ("number", None, "number is None; it must be a number."),
        ("truth", 1, "truth is 1; it must be true or false."),
        ("wholes", 1, f"wholes is 1; it must be {WHOLES}, separated by commas."),
        ("wholes", "12", f"wholes is '12'; it must be {WHOLES}, separated by commas."),
        ("words", "b", "words is 'b'; it must be texts, separated by semicolons."),
        ("perhaps", "x", "perhaps is 'x'; it must be a number, or none."),
        ("choice", 3, "choice is 3; it must be one of exact, roo."),
        ("wholse", 3, "setting is 'wholse'; it must be a known one; did you mean whole"),
    ]:
        assert refusal(configured, ALL, False, {field: value}).startswith(message)


def test_every_parameter_can_be_set_and_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    for name in REPEATABLE:
        experiment = all_experiments()[name]
        found = parameters_of(experiment)
        assert set(experiment.effort) <= set(found)
        assert run(["show", name]) == 0
        shown = capfd.readouterr().out
        assert f"{experiment.paper}, {experiment.item}" in shown
        for field, parameter in found.items():
            assert parameter.about.endswith("."), field
            assert f"  {field} = {text_of(parameter.quick)}" in shown
        for own, full in ((experiment.quick, True), (experiment.config, False)):
            texts = {field: text_of(getattr(own, field)) for field in found}
            assert configured(experiment, full, parsed(experiment, texts)) == own
            entry = Entry(experiment, None, None, full=full, configuration=asdict(own))
            different = changed(experiment, asdict(own), full)
            assert entry.command.count("--set") == len(different)
            assert set(different) <= set(found)


def test_the_command_of_an_entry() -> None:
    def command(style: str = "plain", **settings: object) -> str:
        config = configured(ALL, False, settings)
        return Entry(ALL, None, None, configuration=asdict(config), style=style).command

    start = f"python -m experiments run {ALL.name}"
    assert command() == start
    assert command("icml", whole=9, wholes=(1, 2, 4)) == (
        f"{start} --set whole=9 --set wholes=1,2,4 --style icml"
    )
    assert command(words=["a", "b"], truth=True) == f"{start} --set truth=true --set 'words=a;b'"
    assert command(word="two words") == f"{start} --set 'word=two words'"
    full = Entry(ALL, None, None, full=True)
    assert full.command == f"{start} --full"


def test_bad_commands_exit_2_in_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = EXAMPLE.name
    for arguments, said in (
        (["run", "prior-exmple-1"], "did you mean prior-example-1"),
        (["show", "prior-exmple-1"], "did you mean prior-example-1"),
        (["run", name, "--set", "epsilom=2"], "did you mean epsilon?"),
        (["run", name, "--set", "zzz=2"], "it must be one of epsilon, points, public, user."),
        (["run", name, "--set", "epsilon"], "setting is 'epsilon'; it must be a field, =, and"),
        (
            ["run", name, "--set", "epsilon=two"],
            "epsilon is 'two'; it must be a number above 0 and",
        ),
        (["run", name, "--style", "nature"], "'neurips'"),
        (["run", name, "--workers", "0"], "--workers"),
        ([name], name),
        (["--nonsense"], "--nonsense"),
    ):
        assert run([*arguments, *(["--out", str(tmp_path / "out")] * (arguments[0] == "run"))]) == 2
        captured = capfd.readouterr()
        assert said in captured.err, arguments
        assert captured.err.count("\n") == 1
        assert captured.out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_setting_is_for_those_that_have_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ("prior-example-1", "prior-figure-2")
    given = ["--set", "public=0.02", "--set", "runs=2", "--set", "points=3", "--workers", "1"]
    assert run(["run", *names, *given, "--out", str(tmp_path)]) == 0
    err = capfd.readouterr().err
    assert err.startswith("2 items")
    changes: tuple[dict[str, Any], ...] = ({"public": 0.02, "points": 3}, {"runs": 2, "points": 3})
    for name, own in zip(names, changes, strict=True):
        experiment = all_experiments()[name]
        again = experiments.run(name, cache=tmp_path / ".cache", **own)
        assert again.reused
        assert again.configuration == experiment.parameters(False) | own
        assert again.comparisons == ()


@pytest.mark.slow
def test_a_run_from_python(tmp_path: Path) -> None:
    found = experiments.run(EXAMPLE.name, points=11, style="icml")
    assert isinstance(found, experiments.Entry)
    assert found.experiment == EXAMPLE
    assert found.configuration == EXAMPLE.parameters(False) | {"points": 11}
    assert len(found.tables["curves"].rows) == 2 * 11
    assert not found.reused
    assert found.figure("neurips").get_axes()
    found.save(tmp_path / "own")
    written = {path.name for path in (tmp_path / "own").iterdir()}
    assert {f"{EXAMPLE.name}.{part}" for part in ("json", "run.json", "png", "pdf")} <= written
    out = tmp_path / "out"
    again = [experiments.run(EXAMPLE.name, points=11, style="icml", out=out) for _ in range(2)]
    assert [run.reused for run in again] == [False, True]
    for path in (tmp_path / "own").iterdir():
        if not path.name.endswith(".run.json"):
            assert (out / path.name).read_bytes() == path.read_bytes()
    paper = experiments.run(EXAMPLE.name)
    assert paper.comparisons
    assert not paper.own_parameters
