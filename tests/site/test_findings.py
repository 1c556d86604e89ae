"""The findings name commands that there are; their numbers stand in cells that the site runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.catalogue import all_experiments

FINDINGS = sorted((Path(__file__).resolve().parents[2] / "docs/findings").glob("*.md"))


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_every_command_is_one_that_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"python -m experiments run ([\w-]+)", text)
    assert set(named) <= set(all_experiments())
    assert named or path.stem in ("index", "kernels")


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_few_results_stand_in_prose(path: Path) -> None:
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(re.findall(r"(?<!\d)\d+\.\d{2,}", prose)) < 5
