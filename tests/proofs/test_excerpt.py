"""The part of the checker that one file needs runs alone, says the same and refuses all else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import verify
from dpopt.proofs.excerpt import WORDS, excerpt, words_of
from dpopt.proofs.saved import write_excerpt
from tests.cli.running import Capture, run

KINDS: dict[str, type[Any]] = {each.kind: each for each in dpopt.kinds() if each.kind in WORDS}
# Lines that a referee reads, of the whole file's 2,000.
SHORT = ("mollifier", "roo", "smooth-floor", *verify.QUESTIONS)
# Majorities have four objectives, and priors the whole kernel program beside their closed form.
LONGEST = 880


def ran(source: str, *files: Path) -> tuple[int, str, str]:
    script = files[0].with_name("alone.py")
    script.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script), *map(str, files)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("word", WORDS)
def test_it_is_short_and_of_the_standard_library(word: str) -> None:
    source = excerpt(word)
    lines = source.splitlines()
    assert len(lines) <= (500 if word in (*SHORT, "finding", "exact-optimum") else LONGEST)
    whole = Path(verify.__file__).read_text(encoding="utf-8")
    for part in ast.parse(source).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            assert (ast.get_source_segment(source, part) or source) in whole
        if isinstance(part, ast.Import):
            assert {alias.name for alias in part.names} <= sys.stdlib_module_names
        if isinstance(part, ast.ImportFrom):
            assert part.module is not None
            assert part.module.split(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("kind", KINDS)
def test_it_accepts_its_kind_alone(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    example = KINDS[kind].example()
    dpopt.design(example).save(file)
    assert verify.main([str(file)]) == 0
    assert ran(excerpt(kind), file) == (0, capsys.readouterr().out, "")
    other = "roo" if kind != "roo" else "kernel"
    code, out, said = ran(excerpt(other), file)
    assert (code, out) == (2, "")
    assert "is not checked here" in said


def test_an_exact_optimum_and_its_kind(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    found = dpopt.exact_optimum(dpopt.kernel.KernelSetting.example(), Fraction(3))
    file.write_text(json.dumps(found.to_dict()), encoding="utf-8")
    assert words_of(file) == ("exact-optimum", "kernel")
    code, out, _ = ran(write_excerpt(file).read_text(encoding="utf-8"), file)
    assert code == 0
    assert out.splitlines() == list(verify.check(str(file)))
    code, _, said = ran(excerpt("kernel"), file)
    assert code == 2
    assert "its sort, dpopt exact optimum, is not checked here" in said


def test_the_command_lays_it(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "k.json"
    dpopt.design(dpopt.kernel.KernelSetting.example()).save(file, proof=True)
    assert run(["verify", str(file), "--excerpt"], capsys)[0] == 0
    laid = tmp_path / "k.verify.py"
    assert laid.read_text(encoding="utf-8") == excerpt("kernel")
    assert ran(excerpt("kernel"), file, tmp_path / "k.proof.json")[0] == 0
    laid.write_text("mine", encoding="utf-8")
    assert run(["verify", str(file), "--excerpt"], capsys)[0] == 2


def test_words_that_are_unknown() -> None:
    with pytest.raises(dpopt.ParameterError, match="it must be one of"):
        excerpt("nothing")
    with pytest.raises(dpopt.ParameterError, match="it must be one of"):
        excerpt()


def test_the_questions_that_are_told_from_designs() -> None:
    assert set(verify.ASKED) == set(verify.QUESTIONS)
