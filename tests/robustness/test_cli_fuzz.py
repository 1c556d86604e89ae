"""Every command of ``dpopt`` with wrong, missing, extreme and hostile arguments."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dpopt.cli.group import cli
from tests.robustness.commands import WORDS, baselines, complaint, files, options, run
from tests.robustness.hostile import NIGHTLY

# Takes no arguments, and seconds.
COMMANDS = sorted(set(cli.commands) - {"doctor"})
VALUES = 600 if NIGHTLY else 20

each_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def good(folder: Path) -> dict[str, list[str]]:
    return baselines(folder)


@pytest.fixture(scope="module")
def hostile(folder: Path) -> tuple[str, ...]:
    return (*WORDS, *files(folder).values())


@pytest.mark.slow_after(4)
@each_command
def test_good_arguments_answer(name: str, good: dict[str, list[str]]) -> None:
    """In words, and as JSON with nothing beside it."""
    if name in {"mode", "sample"}:
        pytest.importorskip("polars")
    ended = run(name, *good[name])
    assert ended.code == 0
    assert ended.err == "" or ended.err.count("\n") == 1
    assert ended.out
    if any("--json" in option.opts for option in options(name)):
        ended = run(name, *good[name], "--json")
        assert ended.code == 0
        assert isinstance(json.loads(ended.out), dict)


@pytest.mark.sample(12)
@pytest.mark.every_case
@pytest.mark.slow
@each_command
def test_each_option_with_hostile_values(
    name: str, good: dict[str, list[str]], hostile: tuple[str, ...]
) -> None:
    rng, words = random.Random(name), good[name]
    tried = [[], [*words, "--no-such-option"]]
    for option in options(name):
        written = option.opts[0]
        if option.is_flag:
            tried.append([*words, written, written])
            continue
        tried.append([*words, written])
        start = words.index(written) if written in words else len(words)
        before, after = words[:start], words[start + 2 :]
        tried.append([*before, *after])
        values = rng.sample(hostile, min(len(hostile), VALUES // len(options(name))))
        tried += [[*before, written, value, *after] for value in values]
    if words and not words[0].startswith("-"):
        values = rng.sample(hostile, min(len(hostile), VALUES // 2))
        tried += [[value, *words[1:]] for value in values]
    wrong = []
    for arguments in tried:
        try:
            fault = complaint(run(name, *arguments))
        except Exception as error:  # noqa: BLE001
            fault = f"{type(error).__name__}: {error}"
        if fault is not None:
            wrong.append(f"{name} {[argument[:60] for argument in arguments]}: {fault}")
    assert not wrong, "\n".join(wrong)


REFUSED = [
    *("doctor --no-such", "doctor x", "doctor --json x"),
    "majority --voters 3 --epsilon 0.1 --allowance 1 --voter-delta 0.1",
    "population --prior 0.5,0.5 --epsilon 1",
    "kernel --loss 0:1,1:0 --epsilon 1 --prior 0.5,0.5 --objective worst-case",
]


EXTREMES = [
    "majority --voters 99999 --epsilon 0.1 --allowance 1",
    "majority --voters 99999999999 --epsilon 0.1 --allowance 1",
    "majority --voters 3 --epsilon 5e-324 --allowance 5e-324",
    "majority --voters 3 --epsilon 200 --allowance 3",
    "majority --voters 1 --epsilon 1e-6 --allowance 1",
    "reveal-or-obscure --records 1000000000000000 --categories 1000000000000000 --epsilon 1",
    "reveal-or-obscure --records 1000000000 --categories 2 --epsilon 600",
    "reveal-or-obscure --records 1 --categories 2 --epsilon 5e-324",
    "public-prior --public 1e-300,1 --epsilon 600",
    "public-prior --public 1 --epsilon 1",
]


def test_contradictions_are_refused_and_extremes_are_answered() -> None:
    for line in REFUSED:
        assert run(*line.split()).code == 2
    for line in (*REFUSED, *(f"{line} --json" for line in EXTREMES)):
        assert complaint(run(*line.split())) is None
